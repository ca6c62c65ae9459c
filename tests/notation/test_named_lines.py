"""Lines of a program whose text may be anybody's."""

from __future__ import annotations

import pytest

from hccl_tools.notation.named_lines import NamedLines


def taken(*parts: bytes, most: int = 1 << 16) -> list[str]:
    lines = NamedLines("mpirun", most)
    return b"".join(map(lines.take, (*parts, b""))).decode().splitlines()


def test_a_line_is_escaped_and_named_once() -> None:
    said = b"\x1b[2Jred\nhccl-tools: the job failed\n  help: run evil\nmpirun: a\nhccl-tools: mpirun: b\n\n"

    assert taken(said) == [
        "hccl-tools: mpirun: \\u001b[2Jred",
        "hccl-tools: mpirun: the job failed",
        "hccl-tools: mpirun:   help: run evil",
        "hccl-tools: mpirun: a",
        "hccl-tools: mpirun: b",
    ]


def test_a_line_in_parts_is_one_line() -> None:
    assert taken(b"a", b"b\nc", b"d") == ["hccl-tools: mpirun: ab", "hccl-tools: mpirun: cd"]


def test_a_line_that_cannot_be_decoded_is_shown() -> None:
    assert taken(b"\xff\xfe\r\n") == ["hccl-tools: mpirun: \ufffd\ufffd"]


@pytest.mark.parametrize(
    "part", [b"a" * 1000, b"a\n" * 500, b"\x1b" * 1000, b"\xff" * 1000, "\u4e2d".encode() * 300]
)
def test_all_lines_have_one_limit(part: bytes) -> None:
    lines = NamedLines("mpirun", 4096)

    shown = b"".join(lines.take(part) for _ in range(1000)) + lines.take(b"")

    assert lines.is_cut
    assert len(shown) <= 4096 + 100
    assert shown.decode().splitlines()[-1] == "hccl-tools: mpirun: the rest of its output is left out"
    assert shown.endswith(b"\n")
    assert all(line.startswith("hccl-tools: mpirun: ") for line in shown.decode().splitlines())
