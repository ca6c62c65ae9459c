"""The range of HCCL's host ports."""

from __future__ import annotations

import pytest

from hccl_tools.host import host_ports


@pytest.mark.parametrize(
    ("environ", "cann", "expected"),
    [
        ({}, "", range(60000, 60016)),
        ({}, "7.0.0", range(60000, 60016)),
        ({}, "8.0.RC3", range(60000, 60016)),
        ({}, "8.4.9", range(60000, 60016)),
        ({}, "8.5.0", range(60000, 60032)),
        ({}, "9.0.0-beta", range(60000, 60032)),
        ({}, "10.0", range(60000, 60032)),
        ({}, "unknown", range(60000, 60016)),
        ({"HCCL_IF_BASE_PORT": "50000"}, "8.5.0", range(50000, 50016)),
        ({"HCCL_IF_BASE_PORT": "50"}, "8.5.0", range(0)),
    ],
)
def test_the_range(environ: dict[str, str], cann: str, expected: range) -> None:
    assert host_ports.hccl_range(environ, cann) == expected


def test_the_ports_of_devices() -> None:
    assert host_ports.candidates((4, 5), {"HCCL_IF_BASE_PORT": "50000"}) == (50004, 50005)
    assert host_ports.candidates((4, 5), {"HCCL_IF_BASE_PORT": "x"}) == ()
    assert host_ports.candidates((4, 5), {}, "8.5.0") == tuple(range(60000, 60032))


def test_reserved_ports() -> None:
    assert host_ports.unreserved((60000, 60001), "") == (60000, 60001)
    assert host_ports.unreserved((60000, 60001), "8080,60001-60003") == (60000,)
    assert host_ports.with_reserved((60000, 60001), "") == "60000-60001"
    assert host_ports.with_reserved((60000, 60001), "8080,60001-60003") == "8080,60000-60003"
