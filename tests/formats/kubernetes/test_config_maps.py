"""The values of ConfigMaps."""

from __future__ import annotations

import pytest

from hccl_tools.formats.kubernetes.config_maps import Entry


def decoded(text: str) -> bytes | None:
    return Entry("", "map", "t.json", ("binaryData", "t.json"), text).decoded()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("e30=", b"{}"),
        ("e\n3 0=", b"{}"),
        ("W10K", b"[]\n"),
        ("Ww==", b"["),
        ("", b""),
        ("++//", b"\xfb\xef\xff"),
    ],
)
def test_base64_is_decoded(text: str, data: bytes) -> None:
    assert decoded(text) == data


@pytest.mark.parametrize(
    "text", ["e30", "e30==", "=e30", "e3=0", "e30=e30=", "e-0=", "e30=x", "====", "=", "节点", "e30\ud800"]
)
def test_what_kubernetes_refuses_is_not_decoded(text: str) -> None:
    """Kubernetes reads base64 with its padding and without other characters, in every version of Python."""
    assert decoded(text) is None
