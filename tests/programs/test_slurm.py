from __future__ import annotations

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.programs import slurm

TWO = {"SLURM_JOB_NODELIST": "n[1-2]"}


@pytest.mark.parametrize(
    ("step", "expected"),
    [("0", True), ("17", True), ("4294967280", False), ("4294967294", False), ("", False)],
)
def test_steps_of_the_user_and_of_slurm(step: str, expected: bool) -> None:
    assert slurm.in_step({"SLURM_STEP_ID": step}) == expected


@pytest.mark.parametrize(
    ("hosts", "environ", "nodes"),
    [
        (["a", "b"], {}, ()),
        (["a", "b"], TWO, ()),
        (["n2"], TWO, ("n2",)),
        (["n2.cluster"], TWO, ("n2",)),
        (["n3", "n1"], {"SLURM_JOB_NODELIST": "n[1-4]"}, ("n3", "n1")),
    ],
)
def test_nodes_of_the_hosts_of_a_job(
    hosts: list[str], environ: dict[str, str], nodes: tuple[str, ...]
) -> None:
    assert slurm.nodes_of_hosts(hosts, environ) == nodes


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        (["n1", "n2", "n3"], r"this allocation has 2 nodes \(n\[1-2\]\), but the table has 3 servers"),
        (["198.51.100.1"], 'no node has the name or address "198.51.100.1"'),
    ],
)
def test_allocations_that_do_not_fit(hosts: list[str], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        slurm.nodes_of_hosts(hosts, TWO)


def test_each_node_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(name: str, *_: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        asked.append(name)
        return [(2, 1, 6, "", (name if name[0].isdigit() else f"10.0.0.{name[1:]}", 0))]

    monkeypatch.setattr("_socket.getaddrinfo", look_up)
    hosts = [f"10.0.0.{number}" for number in range(40, 0, -1)]

    found = slurm.nodes_of_hosts(hosts, {"SLURM_JOB_NODELIST": "n[1-50]"})

    assert found == tuple(f"n{number}" for number in range(40, 0, -1))
    assert len(asked) == 50
