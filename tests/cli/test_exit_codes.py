"""The tables of docs/en/reference/exit_codes.md hold: every command is run for every code that it has."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
from array import array
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from hccl_tools import cli
from tests.support.clusters import host
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.commands import CommandLine

#: Each test starts processes.
pytestmark = pytest.mark.slow

_FOLDER = Path(__file__).parents[2] / "docs" / "en" / "reference"
_PAGE = (_FOLDER / "exit_codes.md").read_text(encoding="utf-8")

#: (command, exit code) -> calls that end with it, in a folder with the files that ``folder`` writes.
CASES = {
    ("gen", 0): ["gen --simulate 910a", "gen --simulate 910a -o table.json"],
    ("gen", 1): [
        "gen", "gen --simulate 910a --device_num 0-2", "gen --simulate a2 -o table.json",
        "gen --simulate 910a -o /proc/table.json",
    ],
    ("gen", 2): ["gen --simulate 910x", "gen --hostfile absent", "gen --device_num nought", "gen more"],
    ("validate", 0): ["validate table.json", "validate warned.json"],
    ("validate", 1): ["validate bad.json", "validate broken.json", "validate --strict warned.json"],
    ("validate", 2): ["validate absent.json", "validate absent.json bad.json", "validate .", "validate"],
    ("merge", 0): ["merge a.json b.json"],
    ("merge", 1): ["merge broken.json", "merge bad.json", "merge a.json a2.json"],
    ("merge", 2): ["merge absent.json", "merge", "merge --order size a.json"],
    ("convert", 0): ["convert a.json --to group_list"],
    ("convert", 1): ["convert bad.json --to group_list", "convert a.json --to 1.2"],
    ("convert", 2): ["convert absent.json --to 1.0", "convert a.json"],
    ("replace", 0): ["replace a.json --server 10.1.0.1 --with b.json"],
    ("replace", 1): ["replace a.json --server 10.1.0.9 --with b.json",
                     "replace a.json --server 10.1.0.1 --with bad.json"],
    ("replace", 2): ["replace absent.json --server 10.1.0.1 --with b.json", "replace a.json --server x"],
    ("subset", 0): ["subset a.json --devices 0-3"],
    ("subset", 1): ["subset a.json --servers 10.1.0.9", "subset bad.json --devices 0"],
    ("subset", 2): ["subset absent.json --devices 0", "subset a.json"],
    ("show", 0): ["show a.json", "show bad.json"],
    ("show", 1): ["show broken.json", "show a.json --rank 99", "show a.json --here"],
    ("show", 2): ["show absent.json", "show a.json --rank x"],
    ("diff", 0): ["diff a.json a.json"],
    ("diff", 1): ["diff a.json b.json"],
    ("diff", 2): ["diff a.json absent.json", "diff a.json broken.json", "diff a.json"],
    ("jobs", 0): ["jobs"],
    ("jobs", 2): ["jobs --log-dir absent", "jobs now"],
    ("logs", 0): ["logs", "logs --rank 0"],
    ("logs", 2): ["logs absent", "logs --rank 7"],
    ("stacks", 2): ["stacks", "stacks absent", "stacks -f xml"],
    ("stop", 0): ["stop"],
    ("stop", 2): ["stop absent", "stop --wait soon"],
    ("key", 0): ["key create --force", "key status", "key copy localhost"],
    ("key", 1): ["key create", "key copy localhost node.invalid --ssh false"],
    ("key", 2): ["key copy", "key copy localhost localhost", "key status more", "key"],
    ("explain", 0): ["explain EI0006", "explain fault.log", "explain --exit-code nothing.log"],
    ("explain", 1): ["explain nothing.log", "explain --exit-code fault.log"],
    ("explain", 2): ["explain absent.log", "explain table.json", "explain EI0099", "explain -f json EI0006"],
    ("doctor", 0): ["doctor --cpu", "doctor --local --select HCD3 a.json"],
    ("doctor", 1): ["doctor", "doctor --local --select HCD002 bad.json", "doctor --strict"],
    ("doctor", 2): ["doctor absent.json", "doctor --select HCD9", "doctor a.json b.json"],
    ("distribute", 0): ["distribute a.json localhost"],
    ("distribute", 1): ["distribute a.json localhost -o absent.json", "distribute bad.json localhost"],
    ("distribute", 2): ["distribute absent.json", "distribute a.json --force", "distribute"],
    ("env", 0): ["env a.json --target torch --server 10.1.0.1"],
    ("env", 1): ["env bad.json --target torch", "env a.json --target torch"],
    ("env", 2): ["env absent.json --target torch", "env a.json", "env a.json --target other"],
    ("rules", 0): ["rules", "rules HCC203", "rules EI0006"],
    ("rules", 2): ["rules no-such-word", "rules HCC203 HCC204"],
    ("guide", 0): ["guide", "guide first-table", "guide --lang zh"],
    ("guide", 2): ["guide first-tabel", "guide check start", "guide --lang de"],
    ("schema", 0): ["schema", "schema 1.0"],
    ("schema", 2): ["schema 3.0"],
    ("scaling", 0): ["scaling report times.csv"],
    ("scaling", 1): ["scaling run --force --nproc-per-node 1,2 -- --cpu fails.py"],
    ("scaling", 2): ["scaling report absent.csv", "scaling report a.json", "scaling run", "scaling"],
    ("launch", 0): ["launch --no-table --cpu -n 2 --no-python true", "launch -n1 --cpu --dry-run fails.py"],
    ("launch", 1): ["launch --no-table --cpu -n 2 --no-python false"],
    ("launch", 2): ["launch", "launch --engine ssh x.py", "launch x.py"],
}  # fmt: skip
_LAUNCH = "launch --no-table --cpu -n 1 --start table"
_SLEEP = f"{_LAUNCH} --grace 5 sleeps.py"
#: What the page says of a code of `launch` -> calls that end with it, and the signal that the launcher gets.
LAUNCH_CASES: dict[int, list[tuple[str, int]]] = {
    7: [(f"{_LAUNCH} fails.py", 0)],
    128 + signal.SIGSEGV: [(f"{_LAUNCH} crashes.py", 0)],
    124: [(f"{_LAUNCH} --timeout 0.2 --no-python sleep 60", 0)],
    125: [
        ("launch --rank-table absent.json fails.py", 0),
        ("launch --rank-table bad.json fails.py", 0),
        ("launch --rank-table bad.json --dry-run fails.py", 0),
    ],
    126: [(f"{_LAUNCH} --no-python ./table.json", 0), (f"{_LAUNCH} --python ./table.json fails.py", 0)],
    127: [
        (f"{_LAUNCH} absent.py", 0), (f"{_LAUNCH} -m no.such", 0), (f"{_LAUNCH} --no-python no-such", 0),
        (f"{_LAUNCH} --python no-such fails.py", 0),
    ],
    129: [(_SLEEP, signal.SIGHUP)],
    130: [(_SLEEP, signal.SIGINT)],
    131: [(_SLEEP, signal.SIGQUIT)],
    143: [(_SLEEP, signal.SIGTERM)],
}  # fmt: skip


def rows(header: str) -> Iterator[list[str]]:
    """Yield the rows of the table on the page that begins with a header."""
    for line in _PAGE.partition(header)[2].splitlines()[2:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def documented() -> set[tuple[str, int]]:
    """The commands and the codes that the page has words for."""
    return {
        (command, code)
        for names, *cells in rows("| command | 0 | 1 |")
        for command in re.findall(r"`(\w+)`", names)
        for code, cell in enumerate([*cells, "for all of them"])
        if cell != "-"
    }


def started(call: str, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", *call.split()],
        stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def unread(pipe: IO[str] | None) -> int:
    """The bytes in a pipe that its reader has not taken yet."""
    count = array("i", [0])
    fcntl.ioctl(pipe or 0, termios.FIONREAD, count)
    return count[0]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of several kinds, failing scripts and one finished run."""
    folder = tmp_path_factory.mktemp("files")
    bad = host(1)
    bad["server_list"][0]["device"][1]["rank_id"] = "0"
    other = host(1)
    other["server_list"][0]["device"][0]["device_ip"] = "192.168.9.9"
    warned = json.dumps(host(1))[:-1] + ', "status": "completed"}'
    texts = {
        **{name: json.dumps(value) for name, value in
           {"a.json": host(1), "b.json": host(2), "a2.json": other, "bad.json": bad}.items()},
        "broken.json": "{", "warned.json": warned, "fails.py": "raise SystemExit(7)",
        "sleeps.py": "import time\nprint('up')\ntime.sleep(60)",
        "times.csv": "devices,time\n1,10\n2,6\n", "fault.log": "EI0011: error\n", "nothing.log": "step 1\n",
        "crashes.py": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    for call in ("gen --simulate 910a -o table.json", "launch --no-table --cpu -n 1 --no-python echo up"):
        subprocess.run(
            [sys.executable, "-m", "hccl_tools", *call.split()], cwd=folder, check=True, capture_output=True
        )
    return folder


@pytest.fixture
def folder(files: Path, command_line: CommandLine) -> CommandLine:
    """A folder with a copy of these files."""
    shutil.copytree(files, command_line.folder, symlinks=True, dirs_exist_ok=True)
    return command_line


def test_the_page_has_every_command_once() -> None:
    named = [name for names, *_ in rows("| command | 0 | 1 |") for name in re.findall(r"`(\w+)`", names)]

    assert sorted(named) == sorted(cli.COMMANDS)


def test_every_code_on_the_page_is_tried() -> None:
    assert documented() == {*CASES, ("stop", 1), ("stacks", 0), ("stacks", 1)}
    header = "`launch`, and `python -m hccl_tools.launch.rank`:\n\n| code |"
    launch = " ".join(code for code, _ in rows(header))
    assert {int(code) for code in re.findall(r"\d{3}", launch)} - {255} <= {*LAUNCH_CASES, 137}


def test_commands_end_with_the_codes_of_the_page(
    folder: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_ROOT", str(folder.folder / "no_devices"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.folder / "config"))
    wrong = [
        f"{call}: {done.code}, not {code}\n{done.err}"
        for (_, code), calls in CASES.items()
        for call in calls
        if (done := folder(*call.split())).code != code
    ]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("code", LAUNCH_CASES)
def test_launch_ends_with_the_codes_of_the_page(folder: CommandLine, code: int) -> None:
    for call, number in LAUNCH_CASES[code]:
        with started(call, stdout=subprocess.PIPE) as job:
            if number:
                assert job.stdout is not None
                assert job.stdout.readline() == "up\n"
                job.send_signal(number)
            _, err = job.communicate(timeout=60)

        assert job.returncode == code, f"{call}: {job.returncode}\n{err}"


def test_stacks_of_a_rank_that_has_ended_are_0(folder: CommandLine) -> None:
    folder.write(
        "one_ends.py", "import os, time\nprint('up')\nif os.environ['RANK_ID'] == '0': time.sleep(60)"
    )
    for call, code in ((_LAUNCH, 0), (_LAUNCH.replace("-n 1", "-n 2"), 0)):
        with started(f"{call} one_ends.py", stdout=subprocess.PIPE) as job:
            assert job.stdout is not None
            assert job.stdout.readline() == "up\n"

            assert eventually(partial(_stacks_end_with, folder, code))
            assert folder("stop", "--now").code == 0
            job.communicate(timeout=60)


def _stacks_end_with(folder: CommandLine, code: int) -> bool:
    return folder("stacks").code == code


def test_stop_of_a_run_that_does_not_end_is_1(folder: CommandLine) -> None:
    ignores = "signal.signal(signal.SIGTERM, lambda *_: None)"
    folder.write("stays.py", f"import signal\n{ignores}\nprint('up')\nwhile True: signal.pause()")
    with started(f"{_LAUNCH} stays.py", stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"

        assert folder("stop", "--wait", "0.1").code == 1
        assert folder("stop", "--now").code == 0
        job.communicate(timeout=60)


@pytest.mark.parametrize(
    "call",
    [
        "validate -", "merge -", "convert - --to group_list", "subset - --devices 0", "show -",
        "replace - --server 10.1.0.1 --with b.json",
    ],
)  # fmt: skip
def test_ctrl_c_while_a_table_is_read_is_130(folder: CommandLine, call: str) -> None:
    with started(call) as command:
        assert command.stdin is not None
        command.stdin.write("{")
        command.stdin.flush()
        assert eventually(lambda: unread(command.stdin) == 0)
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=60)

    assert (command.returncode, err.strip()) == (130, "")


def test_ctrl_c_while_a_tool_hangs_is_130(folder: CommandLine) -> None:
    folder.write("hangs", "#!/bin/sh\ntouch asked\nexec sleep 60\n")
    (folder.folder / "hangs").chmod(0o755)
    with started("gen --product 910a --device_num 0 --hccn-tool ./hangs") as command:
        assert eventually((folder.folder / "asked").exists)
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=60)

    assert (command.returncode, "Traceback" in err) == (130, False)


def test_ctrl_c_while_a_log_is_followed_is_130(folder: CommandLine) -> None:
    with started(_SLEEP, stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        with started("logs -f", stdout=subprocess.PIPE) as command:
            assert command.stdout is not None
            assert command.stdout.readline() == "up\n"
            command.send_signal(signal.SIGINT)
            _, err = command.communicate(timeout=60)
        job.terminate()
        job.communicate(timeout=60)

    assert command.returncode == 130
    assert err.strip().endswith(", which is running:")
    assert "\n" not in err.strip()


@pytest.mark.parametrize(
    "call",
    [
        "rules", "schema 1.0", "validate bad.json", "show a.json", "jobs", "logs --rank 0",
        "gen --simulate 910a -o -",
        "merge a.json b.json -o -", "convert a.json --to group_list -o -", "subset a.json --devices 0-3 -o -",
        "replace a.json --server 10.1.0.1 --with b.json -o -", f"{_LAUNCH} --dry-run fails.py", "--help",
    ],
)  # fmt: skip
def test_a_reader_that_has_gone_is_141(folder: CommandLine, call: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with started(call, stdout=writing) as command:
        os.close(writing)
        _, err = command.communicate(timeout=60)

    assert (command.returncode, "Traceback" in err) == (141, False), err
