"""Libraries that one host lacks, memory that another process holds, tables beside the logs, indices of an embedding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def explained(command_line: CommandLine, **files: str) -> str:
    folder = command_line.folder / "logs"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return command_line("explain", "logs").out.splitlines()[0]


def missing(ranks: range) -> str:
    text = (
        "[1,{}]<stderr>:ImportError: libhccl.so: cannot open shared object file: No such file or directory\n"
    )
    return "".join(text.format(rank) for rank in ranks)


@pytest.mark.parametrize(
    ("command", "shell", "host"),
    [
        ("$ mpirun -np 4 -H hosta:2,hostb:2 --tag-output python a.py", "", " on hostb of 4 ranks"),
        (
            "[me@hosta x]$ /opt/ompi/bin/mpirun --host hosta:2,hostb:1,hostc:1 -n 4 python a.py",
            "",
            " on hostb, hostc of",
        ),
        (
            "mpirun -n 4 --hostfile hosts python a.py",
            "$ ssh hostb 'echo [$LD_LIBRARY_PATH]'\n[]\n",
            " on hostb of 4 ranks",
        ),
        ("mpirun -n 4 --hostfile hosts python a.py", "", "Only ranks 2-3 of 4 ranks lack it"),
    ],
)
def test_a_library_that_one_host_lacks(
    command_line: CommandLine, command: str, shell: str, host: str
) -> None:
    answer = explained(command_line, screen=f"{command}\n{missing(range(2, 4))}", shell=shell)

    assert answer.startswith("Ranks 2-3: the process does not find a library of CANN: libhccl.so")
    assert host in answer
    assert "`mpirun -x LD_LIBRARY_PATH" in answer
    assert "at the top of ~/.bashrc" in answer


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("mpirun -n 4 --hostfile hosts python a.py", range(4)),
        ("mpirun -n 4 -x LD_LIBRARY_PATH --hostfile hosts python a.py", range(2, 4)),
        ("python a.py", range(2, 4)),
    ],
)
def test_a_library_that_another_reason_hides(command_line: CommandLine, command: str, ranks: range) -> None:
    answer = explained(command_line, screen=f"{command}\n{missing(ranks)}")

    assert "the process does not find a library of CANN" in answer
    assert "not interactive" not in answer


MEMORY = (
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; {} total capacity; 9.00 GiB already allocated;"
    " 9.00 GiB current active; {} free; {} reserved in total by PyTorch)\n"
)
TABLE = "| 3       0                 | 31999         | python3                  | 25000                   |\n"


@pytest.mark.parametrize(
    ("sizes", "others"),
    [(("60.00 GiB", "512.00 MiB", "20.00 GiB"), "39.5"), (("29.00 GiB", "1.00 GiB", "9.00 GiB"), "19.0")],
)
def test_memory_that_another_process_holds(
    command_line: CommandLine, sizes: tuple[str, ...], others: str
) -> None:
    answer = explained(command_line, rank_3=MEMORY.format(*sizes))

    assert "the device has no memory left, because another process holds a large part of it" in answer
    assert f"others hold about {others} GiB" in answer


def test_the_process_that_holds_the_memory(command_line: CommandLine) -> None:
    driver = (
        "[ERROR] RUNTIME(1,python3):2026-03-18-10:00:00.000.000 [a.cc:1] EL0004: Failed to allocate memory.\n"
    )
    answer = explained(
        command_line, rank_3=driver + MEMORY.format("60.00 GiB", "1.00 GiB", "20.00 GiB"), smi=TABLE
    )

    assert "process 31999 (python3) uses it, with 25,000 MB" in answer


@pytest.mark.parametrize(
    "sizes", [("60.00 GiB", "1.00 GiB", "58.00 GiB"), ("60.00 GiB", "16.00 GiB", "30.00 GiB")]
)
def test_memory_that_the_job_itself_uses(command_line: CommandLine, sizes: tuple[str, ...]) -> None:
    assert "another process" not in explained(command_line, rank_3=MEMORY.format(*sizes))


def table(ranks: list[list[str]]) -> str:
    servers = [
        {
            "server_id": f"10.0.0.{at}",
            "device": [
                {"device_id": str(n), "device_ip": f"10.1.{at}.{n}", "rank_id": rank}
                for n, rank in enumerate(of)
            ],
        }
        for at, of in enumerate(ranks, 1)
    ]
    return json.dumps(
        {"version": "1.0", "status": "completed", "server_count": str(len(servers)), "server_list": servers},
        indent=1,
    )


REFUSED = "EI0014: Value [0] for ranktable variable [rank_id] is invalid. Expected value: unique."


@pytest.mark.parametrize("place", ["logs/ranktable.json", "logs/10.0.0.1/tables.JSON".lower()])
def test_the_table_beside_the_logs(command_line: CommandLine, place: str) -> None:
    Plogs(command_line.folder / "logs", 4, 2).start().error(0, 5.0, REFUSED)
    (command_line.folder / "logs/10.0.0.1/rank_0.log").write_text("starting\n")
    (command_line.folder / place).write_text(table([["0", "1"], ["0", "1"]]))

    answer = command_line("explain", "logs").out.splitlines()[0]
    assert "HCC203" in answer
    assert "10.0.0.2" in answer


def test_two_tables_beside_the_logs(command_line: CommandLine) -> None:
    Plogs(command_line.folder / "logs", 4, 2).start().error(0, 5.0, REFUSED)
    for number, ranks in enumerate(([["0", "1"], ["0", "1"]], [["0", "1"], ["2", "3"]])):
        (command_line.folder / f"logs/table_{number}.json").write_text(table(ranks))

    assert "The first fault is" not in command_line("explain", "logs").out


def test_an_index_beyond_the_embedding(command_line: CommandLine) -> None:
    answer = explained(command_line, rank_2="IndexError: index out of range in self\n")

    assert answer.startswith("Rank 2: an index is outside of the table")
    assert "resize_token_embeddings" in answer


def test_another_index(command_line: CommandLine) -> None:
    assert "embedding" not in explained(command_line, rank_2="IndexError: list index out of range\n")
