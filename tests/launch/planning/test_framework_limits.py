"""A limit of the framework that ends a hung job before ``--hang-timeout`` is named; others are not."""

from __future__ import annotations

import pytest

from hccl_tools.launch.planning.planner import warnings

HEARTBEAT, EXEC = "TORCH_HCCL_HEARTBEAT_TIMEOUT_SEC", "HCCL_EXEC_TIMEOUT"


@pytest.mark.parametrize(
    ("seconds", "environ", "cpu", "named"),
    [
        (601.0, {}, False, HEARTBEAT),
        (600.0, {}, False, ""),
        (700.0, {HEARTBEAT: "900"}, False, ""),
        (700.0, {HEARTBEAT: "900", EXEC: "650"}, False, EXEC),
        (3600.0, {HEARTBEAT: "0"}, False, EXEC),
        (700.0, {HEARTBEAT: "no number"}, False, HEARTBEAT),
        (1801.0, {EXEC: "60"}, True, "gloo"),
        (1800.0, {EXEC: "60"}, True, ""),
        (None, {EXEC: "1"}, False, ""),
    ],
)
def test_the_shorter_limit_is_named(
    seconds: float | None, environ: dict[str, str], cpu: bool, named: str
) -> None:
    found = warnings(seconds, environ, cpu=cpu)

    assert len(found) == bool(named)
    assert all(named in line and "--hang-timeout is " in line for line in found)
