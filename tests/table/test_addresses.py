from __future__ import annotations

import pytest

from hccl_tools.table.addresses import is_host, is_link_local, is_loopback, is_set, packed


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("10.0.0.1", b"\n\0\0\1"),
        ("10.0.0.1%eth0", b"\n\0\0\1"),
        ("::1", b"\0" * 15 + b"\1"),
        ("fe80::1%eth0", b"\xfe\x80" + b"\0" * 13 + b"\1"),
        ("10.0.0.1%", None),
        ("01.2.3.4", None),
        ("10.0.0.1 ", None),
        ("node-1", None),
        ("\udc80", None),
        ("", None),
    ],
)
def test_an_address_is_read_as_hccl_reads_it(text: str, raw: bytes | None) -> None:
    assert packed(text) == raw


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10.0.0.1", True), ("fd00::1", True), ("0.0.0.0", False), ("::", False), ("node", False), ("", False)],
)
def test_a_set_address_is_not_all_zeros(text: str, expected: bool) -> None:
    assert is_set(text) is expected


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1"])
def test_these_mean_the_machine_itself(text: str) -> None:
    assert is_loopback(text)


@pytest.mark.parametrize("text", ["10.0.0.1", "::2", "localhost2", "node", ""])
def test_these_do_not_mean_the_machine_itself(text: str) -> None:
    assert not is_loopback(text)


@pytest.mark.parametrize(
    ("text", "of_a_host", "link_local"),
    [
        ("10.0.0.1", True, False),
        ("169.254.3.4", True, True),
        ("fe80::1", True, True),
        ("fd00::1", True, False),
        ("0.0.0.0", False, False),
        ("224.0.0.1", False, False),
        ("255.255.255.255", False, False),
        ("ff02::1", False, False),
    ],
)
def test_what_an_address_can_be(text: str, of_a_host: bool, link_local: bool) -> None:
    raw = packed(text)
    assert raw is not None
    assert (is_host(raw), is_link_local(raw)) == (of_a_host, link_local)
