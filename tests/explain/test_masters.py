"""Masters that the other hosts do not reach: a loopback address in the command, a proxy in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

REFUSED = "RuntimeError: The client socket has failed to connect to any network address of (127.0.0.1, 29500): timed out\n"


def explained(command_line: CommandLine, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = command_line.folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return command_line("explain", "logs").out.splitlines()[0]


@pytest.mark.parametrize(
    "command",
    [
        "msrun --worker_num 16 --local_worker_num 8 --node_rank 1 --master_addr 127.0.0.1 --master_port 8118 a.py",
        "torchrun --nnodes 2 --node_rank 1 --nproc_per_node 8 --master_addr localhost a.py",
        "torchrun --nnodes=1:4 --rdzv_backend=c10d --rdzv_endpoint=localhost:29400 a.py",
        "python -m paddle.distributed.launch --nnodes 2 --master 127.0.0.1:37777 a.py",
        "[me@b ~]$ torchrun --node-rank=3 --nnodes=4 --master-addr=127.0.0.1 a.py",
    ],
)
def test_a_loopback_address_in_the_command(command_line: CommandLine, command: str) -> None:
    answer = explained(command_line, {"b/screen.txt": f"{command}\n{REFUSED}"})

    assert answer.startswith("The master's address is a loopback address")


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nnodes=1 --nproc_per_node=8 --master_addr=127.0.0.1 a.py",
        "msrun --worker_num=8 --local_worker_num=8 --master_addr=127.0.0.1 a.py",
        "torchrun --nnodes=2 --node_rank=0 --master_addr=localhost a.py",
        "torchrun --nnodes=2 --node_rank=1 --master_addr=127.example.org a.py",
        "torchrun --nnodes=2 --node_rank=1 --master_addr=10.0.0.1 a.py",
    ],
)
def test_an_address_that_may_be_right(command_line: CommandLine, command: str) -> None:
    answer = explained(command_line, {"b/screen.txt": f"{command}\n{REFUSED}"})

    assert "The master's address is a loopback address" not in answer


@pytest.mark.parametrize(
    "line",
    [
        "[tcp.cc:1] Connection 3 from 10.0.0.2:50300 to 10.0.0.9:8118 is refused, errno: 111 Connection refused",
        "connect failed, source: 10.0.0.2:50300, destination: 10.0.0.9:8118, Connection refused",
        "connect to 10.0.0.9:8118 failed: Connection refused",
    ],
)
def test_the_port_of_the_other_end(command_line: CommandLine, line: str) -> None:
    answer = explained(command_line, {"rank_1.log": f"{line}\n"})

    assert "port 8118" in answer
    assert "address 10.0.0.9" in answer


MASTER = "LAUNCH INFO 2026-03-18 10:00:00,000 master: 10.0.0.1:37777\n"
NOT_READY = "LAUNCH WARNING 2026-03-18 10:00:0{},000 master not ready\n"
WAITS = MASTER + "".join(map(NOT_READY.format, range(5)))


@pytest.mark.parametrize(
    "variables",
    [
        "http_proxy=http://10.0.9.9:3128\n",
        "http_proxy=http://10.0.9.9:3128\nno_proxy=localhost,127.0.0.1\n",
        'export http_proxy="http://proxy.local:8080"\nexport no_proxy=".local,10.0.0.10"\n',
    ],
)
def test_a_proxy_before_the_master(command_line: CommandLine, variables: str) -> None:
    answer = explained(command_line, {"n2/env.txt": variables, "n2/launch.log": WAITS, "n1/env.txt": "A=1\n"})

    assert answer.startswith("Host n2: requests to the launcher of the master go to a proxy")
    assert "no_proxy does not name 10.0.0.1" in answer


@pytest.mark.parametrize(
    ("folder", "variables"),
    [
        ("n1", "http_proxy=http://10.0.9.9:3128\n"),
        ("n2", "http_proxy=http://10.0.9.9:3128\nno_proxy=10.0.0.1,localhost\n"),
        ("n2", "http_proxy=http://10.0.9.9:3128\nno_proxy=10.0.0.0/8\n"),
        ("n2", "http_proxy=http://10.0.9.9:3128\nno_proxy=*\n"),
        ("n2", "http_proxy=\n"),
    ],
)
def test_a_proxy_that_is_not_in_between(command_line: CommandLine, folder: str, variables: str) -> None:
    answer = explained(command_line, {f"{folder}/env.txt": variables, "n2/launch.log": WAITS})

    assert "paddle's launcher did not reach the launcher of the master" in answer.lower()
