"""Addresses that ranks did not reach: by one rank, on one host only, or of no host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

CLIENTS = (
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined.\n"
)
TRIES = (
    "[W318 10:0{}:07.356 socket.cpp:752] [c10d] The client socket has failed to connect to [10.0.0.1]:29500 "
    "(errno: 113 - No route to host).\n"
)


def answer(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


def ranks(folder: Path, texts: dict[int, str], per_host: int = 2) -> None:
    for rank in range(4):
        path = folder / f"10.0.0.{rank // per_host + 1}" / f"rank_{rank}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"2026-03-18 10:00:01 INFO rank {rank} of 4\n{texts.get(rank, '')}")


@pytest.mark.parametrize(
    "lines",
    [
        "".join(TRIES.format(minute) for minute in range(1, 9)),
        "2026-03-18 10:01:00 WARNING connect to 10.0.0.1:29500 failed: Connection refused, retry\n" * 5
        + "2026-03-18 10:10:00 ERROR connect to 10.0.0.1:29500 failed: Connection refused\n",
        "2026-03-18 10:01:00 ERROR dial tcp 10.0.0.1:29500: connect: no route to host\n" * 3,
        "2026-03-18 10:01:00 ERROR Connection timed out: cannot connect to 10.0.0.1 port 29500\n" * 3,
    ],
)
def test_a_rank_that_does_not_reach_the_address_is_the_cause(command_line: CommandLine, lines: str) -> None:
    ranks(command_line.folder / "logs", {0: CLIENTS, 3: lines})

    first = answer(command_line)

    assert first.startswith("Rank 3 (host 10.0.0.2): ")
    assert "lines say that it did not reach 10.0.0.1; rank 0 reports no such failure, and waited" in first


def test_ranks_that_all_fail_do_not_blame_one_of_them(command_line: CommandLine) -> None:
    ranks(command_line.folder / "logs", {rank: TRIES.format(rank) for rank in range(4)})

    first = answer(command_line)

    assert "reports no such failure" not in first


def test_a_rank_that_came_after_the_root_gave_up_is_late(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2, 1)
    for rank, at in ((0, 1.0), (1, 400.0)):
        job.run(
            rank, at,
            f"Entry-HcclCommInitRootInfoInner:ranks[2], rank[{rank}], rootinfo: host ip[10.0.0.1] port[60000] "
            "nicDeploy[1] identifier[10.0.0.1%eth0_60000_0_17], deviceLogicId[0]",
        )  # fmt: skip
    job.error(
        0, 121.0, "[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]"
    )
    job.error(1, 520.0, "[InitGroupStage][RanktableDetect]connect server[10.0.0.1 : 60000] failed")

    assert answer(command_line).startswith("Rank 1: the rank came later") or "came later" in answer(
        command_line
    )


def root_at(job: Plogs, address: str, interface: str) -> None:
    """The root chooses an address, which the ranks of the second host do not reach."""
    for rank in range(job.ranks):
        job.run(
            rank, 1.0,
            f"Entry-HcclCommInitRootInfoInner:ranks[{job.ranks}], rank[{rank}], rootinfo: host ip[{address}] port[60000] "
            f"nicDeploy[1] identifier[{address}%{interface}_60000_0_17], deviceLogicId[{job.device(rank)}]",
        )  # fmt: skip
        if rank >= job.per_host:
            job.error(
                rank,
                121.0,
                f"[InitGroupStage][RanktableDetect]connect server[{address} : 60000] failed, timeout[120 s]",
            )
        else:
            job.error(
                rank,
                124.0,
                "[InitGroupStage][RanktableDetect]topo exchange agent get socket timeout! timeout[120 s]",
            )


@pytest.mark.parametrize(
    ("address", "interface", "why"),
    [
        ("172.17.0.1", "docker0", "172.17.0.1 is the address of docker0, an interface of one host"),
        ("10.88.0.1", "podman0", "10.88.0.1 is the address of podman0"),
        ("192.168.122.1", "virbr0", "192.168.122.1 is the address of virbr0"),
        ("127.0.1.1", "eth0", "127.0.1.1 is a loopback address"),
        ("169.254.3.4", "eth5", "169.254.3.4 is a link-local address"),
    ],
)
def test_an_address_of_one_host_is_the_cause(
    command_line: CommandLine, address: str, interface: str, why: str
) -> None:
    root_at(Plogs(command_line.folder / "logs", 4, 2), address, interface)

    first = answer(command_line)

    assert "the other hosts cannot reach the address that they were given" in first
    assert why in first
    assert "inferred" in first
    assert "HCCL_SOCKET_IFNAME" in first


def test_an_address_of_the_hosts_network_is_not(command_line: CommandLine) -> None:
    root_at(Plogs(command_line.folder / "logs", 4, 2), "10.0.0.1", "bond0")

    assert "cannot reach the address that they were given" not in answer(command_line)


def test_a_local_address_on_one_host_is_not(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    folder.mkdir()
    for rank in (1, 2, 3):
        (folder / f"rank_{rank}.log").write_text(
            "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] connect [127.0.0.1]:40981: Connection refused\n"
        )
    (folder / "rank_0.log").write_text("ValueError: bad shape\n")

    assert "cannot reach the address" not in answer(command_line)


def test_gloo_on_a_loopback_address(command_line: CommandLine) -> None:
    refused = "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] connect [127.0.1.1]:40981: Connection refused\n"
    ranks(command_line.folder / "logs", {2: refused, 3: refused})

    first = answer(command_line)

    assert "127.0.1.1 is a loopback address, which each host has for itself" in first
    assert "GLOO_SOCKET_IFNAME" in first


def test_a_failure_before_the_local_address_is_the_cause(command_line: CommandLine) -> None:
    refused = "2026-03-18 10:05:00 ERROR connect to 127.0.1.1:40981 failed: Connection refused\n"
    failed = "2026-03-18 10:01:00 begins\nValueError: bad shape\n2026-03-18 10:01:01 ends\n"
    ranks(command_line.folder / "logs", {0: failed, 2: refused})

    assert "bad shape" in answer(command_line)


def test_an_address_that_no_host_has(command_line: CommandLine) -> None:
    lines = TRIES.format(1).replace("10.0.0.1", "10.0.9.1")
    ranks(command_line.folder / "logs", dict.fromkeys(range(4), lines))

    first = answer(command_line)

    assert "an address that none of their hosts has" in first
    assert "no host with logs is known by 10.0.9.1, but by 10.0.0.1, 10.0.0.2" in first.replace(
        "No host", "no host"
    )


def test_an_address_of_one_of_the_hosts(command_line: CommandLine) -> None:
    ranks(command_line.folder / "logs", dict.fromkeys(range(4), TRIES.format(1)))

    assert "none of their hosts" not in answer(command_line)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("get host ip success, host ip[172.17.0.1], ifname[docker0]", "docker0"),
        ("the nic [virbr0] ip [192.168.122.1] is used as host ip", "virbr0"),
        ("HCCL host ip is 127.0.1.1 (node-1)", "127.0.1.1"),
        ("using 169.254.3.4 as the address of this host", "169.254.3.4"),
    ],
)
def test_an_address_that_a_process_chose_is_the_cause_of_waits(
    command_line: CommandLine, line: str, value: str
) -> None:
    ranks(
        command_line.folder / "logs",
        {0: f"2026-03-18 10:00:02 INFO {line}\n2026-03-18 10:10:02 {CLIENTS}", 3: TRIES.format(1)},
    )

    first = answer(command_line)

    assert "the other hosts cannot reach the address that they were given" in first
    assert f"the line says that {value} was chosen" in first.replace("The line", "the line")


@pytest.mark.parametrize(
    "line",
    [
        "ifnames in the environment is as follows: lo, docker0, eth0",
        "interfaces: docker0 172.17.0.1, eth0 10.0.0.1",
        "127.0.1.1 host-1 is in /etc/hosts",
    ],
)
def test_an_address_in_a_list_is_not_chosen(command_line: CommandLine, line: str) -> None:
    ranks(
        command_line.folder / "logs",
        {0: f"2026-03-18 10:00:02 INFO {line}\n2026-03-18 10:10:02 {CLIENTS}", 3: TRIES.format(1)},
    )

    assert "Rank 3 (host 10.0.0.2): " in answer(command_line)


def test_a_chosen_address_does_not_explain_an_exception(command_line: CommandLine) -> None:
    ranks(
        command_line.folder / "logs",
        {0: "2026-03-18 10:00:02 INFO host ip is 127.0.1.1\nValueError: bad shape\n", 3: TRIES.format(1)},
    )

    assert "bad shape" in answer(command_line)


RETRY = "2026-03-18 10:00:02 WARNING connect to 10.0.0.1:29500 failed: Connection refused, retry\n"


def test_ranks_that_reached_the_address_later_are_not_blamed(command_line: CommandLine) -> None:
    waited = "2026-03-18 10:10:00 ERROR EI0006: Getting socket times out.\n"
    busy = f"{RETRY}2026-03-18 10:09:00 INFO tokenizing shard 5/64\n"
    ranks(command_line.folder / "logs", {0: waited, 1: RETRY + waited, 2: RETRY + waited, 3: busy})

    first = answer(command_line)

    assert first.startswith("Rank 3 (host 10.0.0.2): still at work")


def test_a_rank_whose_last_lines_are_attempts_is_blamed(command_line: CommandLine) -> None:
    waited = "2026-03-18 10:10:00 ERROR EI0006: Getting socket times out.\n"
    ranks(command_line.folder / "logs", {0: waited, 1: RETRY + waited, 2: waited, 3: RETRY * 4})

    first = answer(command_line)

    assert first.startswith("Rank 3 (host 10.0.0.2): could not connect")
    assert "4 lines say that it did not reach 10.0.0.1" in first
