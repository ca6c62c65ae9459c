"""``hccl-tools explain`` as users type it: codes, files, runs, exit codes and JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from hccl_tools.formats.schema import schema_text
from tests.support.deep_folders import deep_folders
from tests.support.plogs import Plogs
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

PORT = "host nic listen start failed, port[60000], return[11]\n"


def run(*args: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", *args],
        cwd=folder, text=True, capture_output=True, check=False, timeout=120, env={**os.environ, **variables},
    )  # fmt: skip


def failed_run(folder: Path, script: str, *options: str, ranks: int = 2) -> str:
    """Start a job that fails, and return the first line that ``explain`` says about it."""
    (folder / "train.py").write_text(script)
    job = run("launch", "-n", str(ranks), "--cpu", *options, "train.py", folder=folder)
    assert job.returncode not in {0, 2, 125}, job.stderr
    done = run("explain", folder=folder)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("code", "title"),
    [
        ("EI0006", "# EI0006 Communication_Error_Get_Socket"),
        ("ej0002", "# EJ0002 Environment_Error"),
        ("11", "# HcclResult 11 HCCL_E_TCP_CONNECT"),
        ("507048", "# 507048 fftsplus-timeout"),
        ("HCM207", "# HCM207 npu-port-in-use"),
        ("HCC203", "# HCC203 duplicate-rank-id"),
    ],
)
def test_explain_and_rules_print_the_same_page_of_a_code(
    command_line: CommandLine, code: str, title: str
) -> None:
    page = command_line("explain", code)

    assert (page.code, page.out.splitlines()[0]) == (0, title)
    assert command_line("rules", code).out == page.out


def test_an_unknown_code_is_no_run(command_line: CommandLine) -> None:
    done = command_line("explain", "EI0099")

    assert (done.code, done.sentence) == (2, 'no rule, message or error code "EI0099"')


def test_a_name_of_nothing(command_line: CommandLine) -> None:
    done = command_line("explain", "nosuch")
    nothing = command_line("explain")

    assert (done.code, done.sentence) == (2, '"nosuch" is not a file, a code or a run in log')
    assert (nothing.code, nothing.sentence) == (
        2,
        f"there is no run: {command_line.folder}/log does not exist",
    )


def test_a_bundle_that_exists_is_refused_before_the_answer(command_line: CommandLine) -> None:
    command_line.write("fault.log", PORT)
    command_line.write("b.tar.gz", "")

    done = command_line("explain", "fault.log", "--bundle", "b.tar.gz")

    assert (done.code, done.out, done.sentence) == (2, "", "b.tar.gz exists already")


def test_a_file_is_read_although_its_name_is_a_code(command_line: CommandLine) -> None:
    command_line.write("EI0006", PORT)

    assert "port 60000" in command_line("explain", "EI0006").out.splitlines()[0]


def test_standard_input(command_line: CommandLine, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "explain", "-"],
        input=PORT, text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0
    assert "  in standard input:1:" in done.stdout.splitlines()


def test_exit_codes(command_line: CommandLine) -> None:
    command_line.write("fault.log", PORT)
    command_line.write("healthy.log", "step 1\n")

    assert command_line("explain", "fault.log").code == 0
    assert command_line("explain", "fault.log", "--exit-code").code == 1
    assert command_line("explain", "healthy.log").code == 1
    assert command_line("explain", "healthy.log", "--exit-code").code == 0
    assert command_line("explain", "nothing.log").code == 2
    assert command_line("explain").code == 2


def test_the_json_follows_its_schema(command_line: CommandLine) -> None:
    schema: dict[str, Any] = json.loads(schema_text("explain"))
    jsonschema.Draft202012Validator.check_schema(schema)
    job = Plogs(command_line.folder / "logs", 8, 4).start()
    job.error(5, 5, f"socket type[0], listen on ip[{job.address(5)}] and specific port[16666] fail.")
    for rank in (0, 1, 2, 3, 4, 6, 7):
        job.no_link(rank, 5, 125)
    command_line.write("hccl.json", table("1.0", 2, 4))
    done = command_line("explain", "logs", "--rank-table", "hccl.json", "-f", "json")

    answer = json.loads(done.out)
    jsonschema.validate(answer, schema, cls=jsonschema.Draft202012Validator)
    (cause,) = answer["causes"]
    assert cause["table"] == {
        "file": "hccl.json", "line": cause["table"]["line"], "pointer": "/server_list/1/device/1",
    }  # fmt: skip
    assert {one["rank"] for one in answer["consequences"]} == {0, 1, 2, 3, 4, 6, 7}


def test_the_answer_without_a_cause_follows_the_schema(command_line: CommandLine) -> None:
    command_line.write("healthy.log", "step 1\n")
    done = command_line("explain", "healthy.log", "-f", "json")

    jsonschema.validate(json.loads(done.out), json.loads(schema_text("explain")))


def test_the_text_names_the_line_of_the_table_and_folds_the_ranks(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 16, 8).start()
    job.error(9, 5, f"socket type[0], listen on ip[{job.address(9)}] and specific port[16666] fail.")
    for rank in {*range(16)} - {9}:
        job.no_link(rank, 9, 125)
    command_line.write("hccl.json", table("1.0", 2, 8))
    lines = command_line("explain", "logs", "--rank-table", "hccl.json").out.splitlines()

    assert lines[0].startswith("Rank 9 (device 1 of 10.0.0.2, address 192.168.1.101, hccl.json:")
    assert "  ranks 0-8,10-15: two devices did not connect in time" in lines


def test_a_refused_table_leads_to_the_finding(command_line: CommandLine) -> None:
    wrong = table("1.0", 1, 2)
    wrong["server_list"][0]["device"][1]["device_id"] = "0"
    command_line.write("hccl.json", wrong)
    command_line.write("rank_0.log", "EI0014: Value [0] for ranktable variable [device_id] is invalid.\n")
    out = command_line("explain", "rank_0.log", "--rank-table", "hccl.json").out

    assert "The first fault is hccl.json:" in out.splitlines()[0]
    assert "HCC3" in out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("Create global hccl comm with ranktable success, take 9 milliseconds", "connected the ranks with the rank table"),
        ("Create global hccl comm with ranktable failed, switch to original interface", "connected the ranks without it"),
        ("The rank_table_file is not available, switch to original interface.", "RANK_TABLE_FILE must be a regular file"),
        ("", "whether torch_npu used the rank table is unknown: start the job with ASCEND_GLOBAL_LOG_LEVEL=1 to see"),
    ],
)  # fmt: skip
def test_whether_torch_npu_used_the_table(command_line: CommandLine, line: str, says: str) -> None:
    command_line.write("hccl.json", table("1.0", 1, 2))
    command_line.write("rank_0.log", f"{line}\n[ERROR] torch_npu PTA(17,python) EI0006 error\n")

    assert says in command_line("explain", "rank_0.log", "--rank-table", "hccl.json").out


@pytest.mark.slow
def test_a_run_in_which_a_rank_was_killed(tmp_path: Path) -> None:
    script = "import os, time\nif os.environ['RANK_ID'] == '1': os.kill(os.getpid(), 9)\ntime.sleep(60)\n"

    assert failed_run(tmp_path, script).startswith("Rank 1 (device 1 of ")


@pytest.mark.slow
def test_a_run_in_which_a_rank_raised_an_exception(tmp_path: Path) -> None:
    script = (
        "import os, time\nif os.environ['RANK_ID'] == '1': raise ValueError('0 samples in this shard')\n"
        "time.sleep(60)\n"
    )
    first = failed_run(tmp_path, script)

    assert first.startswith("Rank 1 (")
    assert "ValueError: 0 samples in this shard" in first


@pytest.mark.slow
def test_a_run_in_which_a_port_was_taken(tmp_path: Path) -> None:
    script = (
        "import os, socket, time\nif os.environ['RANK_ID'] == '0':\n"
        "    first = socket.create_server(('127.0.0.1', 0))\n"
        "    socket.create_server(first.getsockname()[:2], reuse_port=False)\ntime.sleep(60)\n"
    )

    assert "in use" in failed_run(tmp_path, script)


@pytest.mark.slow
def test_a_run_that_ended_well(tmp_path: Path) -> None:
    """Errors that its ranks have handled, which their logs still have, are not looked for."""
    (tmp_path / "train.py").write_text(f"print({PORT!r})\n")
    job = run("launch", "-n", "2", "--cpu", "train.py", folder=tmp_path)
    done = run("explain", folder=tmp_path)
    answer = json.loads(run("explain", "-f", "json", folder=tmp_path).stdout)

    assert job.returncode == 0, job.stderr
    assert done.returncode == 1
    assert re.fullmatch(
        r"The run \S+ ended with exit code 0: nothing to explain", done.stdout.splitlines()[0]
    )
    assert (answer["causes"], answer["notes"][0]) == ([], done.stdout.splitlines()[0])


@pytest.mark.slow
def test_a_run_that_ended_well_only_after_a_restart(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\n"
        "if os.environ['HCCL_TOOLS_RESTART'] == '0' and os.environ['RANK_ID'] == '1': raise ValueError('first start')\n"
    )
    (tmp_path / "train.py").write_text(script)
    job = run("launch", "-n", "2", "--cpu", "--max-restarts", "1", "train.py", folder=tmp_path)

    assert job.returncode == 0, job.stderr
    assert "ValueError: first start" in run("explain", folder=tmp_path).stdout.splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.abort()", "the rank aborted itself (SIGABRT)"),
        ("os.kill(os.getpid(), 15)", "SIGTERM ended the rank, and the launcher had not sent it"),
        ("os.kill(os.getpid(), 9)", "a signal ended the rank: killed by SIGKILL"),
    ],
)
def test_a_run_in_which_a_rank_got_a_signal(tmp_path: Path, end: str, said: str) -> None:
    script = f"import os, time\nif os.environ['RANK_ID'] == '1': {end}\ntime.sleep(60)\n"
    first = failed_run(tmp_path, script)

    assert first.startswith("Rank 1 (")
    assert said in first


@pytest.mark.slow
def test_a_rank_that_aborts_after_an_error_passes_it_on(tmp_path: Path) -> None:
    script = (
        "import os, time\nif os.environ['RANK_ID'] == '1':\n"
        "    print('[ERROR] HCCL(7,python3):2026-03-18-10:00:00.000.000 [x.cc:1] [7][Wait][LinkEstablish]"
        "wait socket establish timeout, role[1] rank[1] timeout[120 s]', flush=True)\n    os.abort()\ntime.sleep(60)\n"
    )

    assert "aborted" not in failed_run(tmp_path, script)


@pytest.mark.slow
def test_a_run_whose_disk_is_full(tmp_path: Path) -> None:
    script = "import os\nos.write(os.open('/dev/full', os.O_WRONLY), b'checkpoint')\n"

    assert "a disk is full" in failed_run(tmp_path, script)


@pytest.mark.slow
def test_a_failed_launch_ends_with_the_explanation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import sys\nprint({PORT!r})\nsys.exit(3)\n")
    job = run("launch", "-n", "1", "--cpu", "train.py", folder=tmp_path)
    *_, first, more, verdict = job.stderr.splitlines()

    assert first.startswith("hccl-tools: explain: Rank 0 (")
    assert "another process listens on the port of the host that HCCL needs: port 60000" in first
    assert more.startswith("  more: hccl-tools explain 20")
    assert verdict == "hccl-tools: exit code 3, from rank 0"


@pytest.mark.slow
def test_a_failed_launch_with_much_to_read_says_what_to_type(tmp_path: Path) -> None:
    script = (
        f"import sys\nfor _ in range(34):\n    print('step 1', ' ' * 999_999)\nprint({PORT!r})\nsys.exit(3)\n"
    )
    (tmp_path / "train.py").write_text(script)
    job = run("launch", "-n", "1", "--cpu", "train.py", folder=tmp_path)

    assert "reads all logs and names the cause" in job.stderr.splitlines()[-2]


@pytest.mark.slow
def test_a_run_with_plogs_of_its_own(tmp_path: Path) -> None:
    """CANN's logs below the run directory belong to the rank that their folder names."""
    script = (
        "import os, sys, time\n"
        "folder = os.environ['HCCL_TOOLS_RUN_DIR'] + '/plog_rank_' + os.environ['RANK_ID'] + '/debug/plog'\n"
        "os.makedirs(folder)\n"
        "if os.environ['RANK_ID'] == '1':\n"
        f"    open(f'{{folder}}/plog-{{os.getpid()}}_1.log', 'w').write('[ERROR] HCCL ' + {PORT!r})\n"
        "    sys.exit(1)\n"
        "time.sleep(60)\n"
    )
    first = failed_run(tmp_path, script)

    assert first.startswith("Rank 1 (device 1 of ")
    assert "port 60000" in first


def test_logs_cannot_control_the_terminal(command_line: CommandLine) -> None:
    command_line.write("screen.txt", f"\x1b[2J error {PORT}")

    assert "\x1b" not in command_line("explain", "screen.txt").out


def test_the_list_of_rules_has_the_messages(command_line: CommandLine) -> None:
    lines = command_line("rules").out.splitlines()

    assert any(line.startswith("HCM207  npu-port-in-use") for line in lines)
    assert any(line.startswith("HCC203") for line in lines)
    assert command_line("rules", "HCM2").out.splitlines()[-1].endswith("explains one message")


def test_of_very_deep_folders_the_upper_ones_are_read(command_line: CommandLine, tmp_path: Path) -> None:
    with deep_folders(tmp_path / "deep") as top:
        (top / "d" / "plog.log").write_text(PORT)
        (top / "/".join("d" * 500) / "plog.log").write_text(PORT)
        done = command_line("explain", str(top), "-f", "json")
    answer = json.loads(done.out)

    assert [cause["at"]["file"] for cause in answer["causes"]] == [f"{top}/d/plog.log"]
    lowest = f"{top}{'/d' * 64}"
    assert answer["notes"] == [f"the folders in {lowest} were not read: they are more than 64 levels deep"]
