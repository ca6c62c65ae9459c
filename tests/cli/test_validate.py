"""``hccl-tools validate`` as users call it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import reports
from tests.support.commands import run_here

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent.parent


def table(ranks: tuple[str, ...] = ("0", "1"), **changes: object) -> str:
    devices = [
        {"device_id": str(number), "device_ip": f"192.168.1.{number + 1}", "rank_id": rank}
        for number, rank in enumerate(ranks)
    ]
    value = {
        "version": "1.0",
        "server_count": "1",
        "server_list": [{"server_id": "10.0.0.1", "device": devices}],
        "status": "completed",
    }
    return json.dumps({**value, **changes}, indent=4)


V2 = """{"version": "2.0", "rank_count": 1, "x": "@", "rank_list": [{"rank_id": 0, "local_id": 0,
"device_id": 0, "level_list": [{"net_layer": 0, "net_instance_id": "a", "net_type": "TOPO_FILE_DESC",
"rank_addr_list": [{"addr_type": "IPV4", "addr": "10.0.0.1", "ports": ["0/0"]}]}]}]}"""


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.json").write_text(table())
    (tmp_path / "bad.json").write_text(table(("0", "0")))
    (tmp_path / "waits.json").write_text(table(status="initializing"))
    (tmp_path / "odd.json").write_text(table() + "\ntext behind\n")
    return tmp_path


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run_here("validate", *arguments, environ={**os.environ, **env})


def run_with(stdin: str | bytes, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a process of its own, which reads ``stdin``."""
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "validate", *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        env={**os.environ, **env},
        capture_output=True,
        timeout=120,
        check=False,
    )
    result = subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )
    assert "Traceback" not in result.stderr
    return result


@pytest.mark.usefixtures("tables")
def test_exit_codes() -> None:
    assert run("good.json").returncode == 0
    assert run("bad.json").returncode == 1
    assert run("good.json", "bad.json").returncode == 1
    assert run("odd.json").returncode == 0
    assert run("--strict", "odd.json").returncode == 1
    assert run("--strict", "good.json").returncode == 0


@pytest.mark.usefixtures("tables")
def test_what_a_person_sees() -> None:
    result = run("good.json", "bad.json")

    assert 'good.json: format 1.0 (version is "1.0"), product 910a' in result.stdout
    assert "no findings: HCCL accepts this table" in result.stdout
    assert re.search(
        r"^error\[HCC\d{3}\]: rank id \"0\" is used by two devices$", result.stdout, re.MULTILINE
    )
    assert "(/server_list/0/device/1/rank_id)" in result.stdout
    assert result.stdout.endswith("2 files: 1 accepted, 1 refused\n")
    assert result.stderr == ""


@pytest.mark.usefixtures("tables")
def test_json_has_the_verdicts() -> None:
    result = run("-f", "json", "good.json", "bad.json", "waits.json")

    files = json.loads(result.stdout)["files"]
    assert [(file["file"], file["verdict"]) for file in files] == [
        ("good.json", "accepted"), ("bad.json", "refused"), ("waits.json", "hangs"),
    ]  # fmt: skip


@pytest.mark.usefixtures("tables")
def test_annotations_are_the_default_in_github_s_actions() -> None:
    assert run("bad.json", GITHUB_ACTIONS="true").stdout == run("-f", "github", "bad.json").stdout
    assert run("bad.json", GITHUB_ACTIONS="true").stdout.startswith("::error ")
    assert run("-f", "text", "bad.json", GITHUB_ACTIONS="true").stdout == run("bad.json").stdout


@pytest.mark.parametrize("arguments", [(), ("-f", "text"), ("-f", "concise"), ("--fix",)], ids=str)
@pytest.mark.parametrize(
    "name", ["##[error]absent.json", "::error::absent.json", "##[group]a.json", "::error::a.json"]
)
def test_a_workflow_takes_no_name_of_a_file_for_a_command(
    tables: Path, arguments: tuple[str, ...], name: str
) -> None:
    if "absent" not in name:
        (tables / name).write_text(table(("0", "0")))
    result = run(*arguments, name, GITHUB_ACTIONS="true")

    annotations = [
        line for line in result.stdout.splitlines() if line.startswith("::error title=hccl-tools (")
    ]
    assert result.returncode != 0
    assert reports.commands_of_workflow(result.stdout + result.stderr) == annotations


@pytest.mark.usefixtures("tables")
def test_rules_are_chosen() -> None:
    rule = json.loads(run("-f", "json", "bad.json").stdout)["files"][0]["findings"][0]["rule"]

    assert run("--ignore", rule, "bad.json").returncode == 0
    assert run("--select", rule, "bad.json").returncode == 1
    unknown = run("--select", "HCC999", "bad.json")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "HCC999" in unknown.stderr


@pytest.mark.usefixtures("tables")
def test_only_hccl_leaves_what_hccl_itself_refuses() -> None:
    Path("guide.json").write_text(table(("0", "1", "2")).replace('"device_id": "2"', '"device_id": "5"'))
    Path("crossing.json").write_text(table().replace('"device_id": "1"', '"device_id": "4"'))

    assert run("crossing.json").returncode == 1
    assert run("--only-hccl", "crossing.json").returncode == 0
    assert run("--only-hccl", "--strict", "odd.json").returncode == 0
    assert run("--only-hccl", "waits.json").returncode == 1


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("product", ["a2", "A2"])
def test_the_product_is_said(product: str) -> None:
    assert "product a2 (" in run("--product", product, "good.json").stdout
    assert "product a2 (" in run("good.json", HCCL_TOOLS_PRODUCT=product).stdout
    unknown = run("--product", "910x", "good.json")
    assert unknown.returncode == 2
    assert 'unknown product "910x"' in unknown.stderr
    assert "a2 (910B, 910B1" in unknown.stderr


@pytest.mark.usefixtures("tables")
def test_how_the_name_of_a_chip_was_read_is_said_once() -> None:
    done = run("--product", "910B4", "good.json", "good.json")
    assert "product a2 (" in done.stdout
    assert done.stderr == "note: 910B4 is an a2\n"
    assert run("--product", "a2", "good.json").stderr == ""

    by_variable = run("good.json", HCCL_TOOLS_PRODUCT="Atlas 800T A2")
    assert "product a2 (from HCCL_TOOLS_PRODUCT" in by_variable.stdout
    assert by_variable.stderr == "note: HCCL_TOOLS_PRODUCT: Atlas 800T A2 is an a2\n"
    unknown = run("good.json", HCCL_TOOLS_PRODUCT="910x")
    assert unknown.returncode == 2
    assert 'HCCL_TOOLS_PRODUCT: unknown product "910x"' in unknown.stderr


@pytest.mark.usefixtures("tables")
def test_the_advice_for_a_set_across_groups_leads_to_the_rules_of_the_named_chip() -> None:
    Path("crossing.json").write_text(table().replace('"device_id": "1"', '"device_id": "4"'))

    advice = run("crossing.json").stdout
    assert "if the chip is not a 910A, specify it with --product 910B4" in advice
    assert run("--product", "910B4", "crossing.json").returncode == 0


def test_our_own_sample_tables_have_no_findings() -> None:
    samples = sorted(map(str, (Path(__file__).parents[2] / "sample_tables").glob("*.json")))
    done = run(*samples)

    assert done.returncode == 0
    assert (
        'a3-server_1.0.json: format 1.0 (version is "1.0"), product a3 (by the addresses, which'
        in done.stdout
    )


def test_variables_of_hccl_change_its_verdict() -> None:
    file = str(ROOT / "tests" / "data" / "corpus" / "cases" / "sp_backup_self.json")
    backup = ("--env", "HCCL_OP_EXPANSION_MODE=AI_CPU", "--env", "HCCL_OP_RETRY_ENABLE=L2:1")

    assert run("--product", "a3", "--only-hccl", file).returncode == 0
    assert run("--product", "a3", "--only-hccl", *backup, file).returncode == 1
    unknown = run("--env", "HCCL_WRONG=1", file)
    assert unknown.returncode == 2
    assert "HCCL_OP_RETRY_ENABLE" in unknown.stderr


@pytest.mark.usefixtures("tables")
def test_standard_input() -> None:
    assert run_with(table(), "-").returncode == 0
    assert run_with(table(("0", "0")), "-").returncode == 1
    assert run_with(b"\xef\xbb\xbf" + table().encode(), "-").returncode == 0
    empty = run_with("", "-")
    assert empty.returncode == 1
    assert "the file is empty" in empty.stdout


@pytest.mark.usefixtures("tables")
def test_one_unreadable_file_among_many() -> None:
    os.mkfifo("pipe.json")
    result = run("no.json", "good.json", ".", "pipe.json", "no*.json", "bad.json")

    assert result.returncode == 2
    assert "2 files: 1 accepted, 1 refused" in result.stdout
    assert [line for line in result.stderr.splitlines() if line.startswith("error: ")] == [
        "error: no such file: no.json",
        "error: . is a directory, not a file",
        "error: pipe.json is a pipe, not a file",
        "error: no file matches no*.json",
    ]


@pytest.mark.usefixtures("tables")
def test_quoted_patterns() -> None:
    files = json.loads(run("-f", "json", "[bg]*d.json").stdout)["files"]

    assert [file["file"] for file in files] == ["bad.json", "good.json"]


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF\x02\0\0", "it is a program"),
        (lambda: b"\0" * 100_000_000, "zero bytes"),
        (lambda: b"[" * 100_001, "nested more than 100,000 levels deep"),
        (lambda: b'{"a": ' + b"9" * 1_000_000 + b"}", "is too large"),
        (b'{"a": "\\ud800"}', "half of a character"),
        (b'{"a": "\0"}', "zero byte (NUL)"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        (b'{"version": "1.0",}', "trailing comma before }"),
    ],
    ids=lambda part: None if callable(part) else repr(part)[:20],
)
def test_a_file_that_is_no_json_is_one_finding(data: bytes | Callable[[], bytes], words: str) -> None:
    Path("x.json").write_bytes(data() if callable(data) else data)

    result = run("x.json", "-f", "concise")

    assert result.returncode == 1
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) == 1
    assert words in result.stdout


@pytest.mark.usefixtures("tables")
def test_usage() -> None:
    for arguments in ((), ("--no-such-option", "good.json"), ("-f", "xml", "good.json")):
        result = run(*arguments)
        assert result.returncode == 2
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")


def test_help_has_examples_to_paste() -> None:
    result = run("--help")

    assert result.returncode == 0
    assert "hccl-tools validate --product a2 'tables/**/*.json'" in result.stdout
    assert len(re.findall(r"^ +.*hccl-tools validate ", result.stdout, re.MULTILINE)) >= 5


@pytest.mark.usefixtures("tables")
def test_colors_and_encodings() -> None:
    Path("cn.json").write_text(table().replace("10.0.0.1", "设备\x7f") + "x", encoding="utf-8")

    assert "\x1b[" not in run("bad.json").stdout
    assert "\x1b[1;31m" in run("--color", "always", "bad.json").stdout
    assert "\x1b[1;31m" in run("bad.json", FORCE_COLOR="1").stdout
    told = run("cn.json", "--all", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert told.stdout.isascii()


def test_a_reader_that_goes_away_is_no_error(tables: Path) -> None:
    wrong = table(tuple("0" for _ in range(8)))
    for number in range(300):
        (tables / f"t{number}.json").write_text(wrong)

    done = subprocess.run(
        ["bash", "-c", '"$PYTHON" -m hccl_tools validate "t*.json" | head -n 1'],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip

    assert done.stderr == ""
    assert done.stdout.startswith("t0.json: format 1.0")


def test_help_loads_no_parser_and_no_schema_library() -> None:
    code = (
        "import sys\n"
        "import hccl_tools.cli.validate\n"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " ('jsonschema', 'jsonschema_rs', 'orjson', 'referencing')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("hccl_8p_01234567_10.0.0.1.json", True), ("deploy/hccl.json", True), ("rank_table.json", True),
        ("rank_table_2x8.json", True), ("a/ranktable.json", True), ("jobstart_hccl.json", True),
        ("rank_table.json.bak", False), ("package.json", False), ("my_rank_table.json", False),
        ("hccl/config.json", False), ("hccl.txt", False),
    ],
)  # fmt: skip
def test_the_pre_commit_hook_takes_rank_tables(name: str, fits: bool) -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    (pattern,) = re.findall(r"^  files: (.+)$", hook, re.MULTILINE)

    assert bool(re.search(pattern, name)) == fits
    assert "- id: hccl-tools-validate\n" in hook
    (entry,) = re.findall(r"^  entry: hccl-tools (.+)$", hook, re.MULTILINE)
    assert run(*entry.split()[1:], "--help").returncode == 0
    # The name of a file of a pull request must not be an option.
    assert re.findall(r"^  args: \[(.+?)\]", hook, re.MULTILINE) == ["--"]


WITHOUT_FAST = """
import sys
sys.modules["orjson"] = None  # as if the [fast] extra were not installed
from hccl_tools.cli import main
main(["validate", *sys.argv[1:]])
"""


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [False, True])
def test_without_the_fast_extra_all_is_the_same(tmp_path: Path, spoil: bool) -> None:
    large = {
        "version": "1.0",
        "server_count": "1500",
        "server_list": [
            {
                "server_id": f"10.0.{server // 250}.{server % 250 + 1}",
                "device": [
                    {
                        "device_id": str(device),
                        "device_ip": f"192.{server // 250}.{server % 250}.{device + 1}",
                        "rank_id": str(server * 8 + device),
                    }
                    for device in range(8)
                ],
            }
            for server in range(1500)
        ],
        "status": "completed",
    }
    if spoil:
        large["server_list"][7]["device"][3]["rank_id"] = 59  # type: ignore[index]
    file = tmp_path / "large.json"
    file.write_text(json.dumps(large))
    commands = ([sys.executable, "-m", "hccl_tools", "validate"], [sys.executable, "-c", WITHOUT_FAST])

    fast, slow = (
        subprocess.run([*command, "-f", "json", str(file)], capture_output=True, text=True, check=False)
        for command in commands
    )

    assert slow.stdout == fast.stdout
    assert (fast.returncode, slow.returncode) == (int(spoil), int(spoil))
    assert fast.stderr == ""
    said = " ".join(slow.stderr.split())  # The path of Python decides where the line is broken.
    assert said.startswith("note: 12,000 ranks are checked faster with orjson: `")
    assert " -I -m pip install orjson`" in said


def test_a_file_whose_name_hccl_would_not_open(tables: Path) -> None:
    """A link is told by where it leads, a file by the name that was given."""
    (tables / "table.txt").write_text(table())
    (tables / "link.json").symlink_to("table.txt")

    assert '"table.txt" does not end in .json' in run("table.txt").stdout
    assert 'table.txt", the target of the link, does not end in .json' in run("link.json").stdout


def test_kubernetes_objects_are_told_and_how_to_get_the_table_out(tables: Path) -> None:
    (tables / "map.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "data": {}}')
    (tables / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\n")

    for name in ("map.json", "map.yaml"):
        result = run(name)
        assert result.returncode == 1
        assert "a Kubernetes object" in result.stdout
        assert "help: extract the table: kubectl get configmap " in result.stdout


@pytest.mark.usefixtures("tables")
def test_a_table_that_is_not_complete_yet_names_wait() -> None:
    assert "`hccl-tools validate --wait 600 FILE`" in run("waits.json").stdout
    assert "--wait" in run("--help").stdout


@pytest.mark.usefixtures("tables")
def test_a_variable_that_no_job_starts_with_is_named_with_what_to_do() -> None:
    result = run("--env", "HCCL_INTRA_ROCE_ENABLE=0", "good.json")

    assert result.returncode == 1
    assert "error[HCC116]: HCCL_INTRA_ROCE_ENABLE is 0 and HCCL_INTRA_PCIE_ENABLE is not set" in result.stdout
    assert "help: set HCCL_INTRA_PCIE_ENABLE=1, or unset HCCL_INTRA_ROCE_ENABLE" in result.stdout


@pytest.mark.usefixtures("tables")
def test_what_is_ignored_is_named_beside_the_verdict() -> None:
    ignored = run("--ignore", "HCC203", "bad.json")

    assert ignored.returncode == 0
    assert ignored.stdout.endswith("nothing shown (HCC203 is ignored), but HCCL refuses this table\n")
    assert run("--select", "HCC3", "bad.json").stdout.endswith(
        "nothing shown (HCC203 is not selected), but HCCL refuses this table\n"
    )
    as_json = json.loads(run("--ignore", "HCC203", "-f", "json", "bad.json").stdout)["files"][0]
    assert (as_json["verdict"], as_json["left_out"], as_json["findings"]) == ("refused", ["HCC203"], [])
    assert run("--ignore", "HCC203", "good.json").stdout.endswith("no findings: HCCL accepts this table\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "product", "by"),
    [
        (86_000, "910a", None),
        (90_000, "910a", "hccl-tools"),
        (1_000_000, "910a", "hccl-tools"),
        (90_000, "a5", "hccl-tools"),
    ],
)
def test_a_verdict_on_nesting_is_called_ours(tables: Path, levels: int, product: str, by: str | None) -> None:
    text = table(x="@") if product == "910a" else V2
    (tables / "deep.json").write_text(text.replace('"@"', "[" * levels + "]" * levels))

    shown = run("--product", product, "deep.json").stdout
    (found,) = json.loads(run("--product", product, "-f", "json", "deep.json").stdout)["files"]

    assert (found["verdict"], found["verdict_by"]) == ("refused" if by else "accepted", by or "HCCL")
    assert ("hccl-tools refuses this table; HCCL has no limit here" in shown) == bool(by)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "validate <(cat t.json)",
        "validate t.json <(cat t.json)",
        "show --wait 5 <(cat t.json)",
        "merge <(cat t.json) -o -",
        "convert <(sleep 0.1; cat t.json) --to group_list -o -",
    ],
)
def test_a_table_from_a_process_substitution(tmp_path: Path, command: str) -> None:
    (tmp_path / "t.json").write_text(table())
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m hccl_tools {command}"],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "HCC102" not in done.stdout


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.json")
    done = run(str(tmp_path / "t.json"))

    assert done.returncode == 2
    assert "is a pipe, not a file" in done.stderr


def test_a_folder_gets_the_file_to_name(tmp_path: Path) -> None:
    assert "this directory has no .json file" in run(str(tmp_path)).stderr
    (tmp_path / "hccl.json").write_text(table())
    assert f"specify a file in it: {tmp_path}/hccl.json\n" in run(str(tmp_path)).stderr
    (tmp_path / "other.json").write_text(table())
    done = run(str(tmp_path))

    assert f"specify a file in it: {tmp_path}/hccl.json; it has 2: '{tmp_path}/*.json'" in done.stderr
    assert done.returncode == 2


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("command", ["validate", "show"])
def test_without_a_file_the_table_of_the_environment_is_meant(tables: Path, command: str) -> None:
    def without_file(**env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hccl_tools", command], capture_output=True, text=True, timeout=60,
            check=False, env={**os.environ, **env},
        )  # fmt: skip

    done = without_file(RANK_TABLE_FILE="good.json")
    assert done.returncode == 0
    assert done.stdout.startswith("good.json: ")
    assert done.stderr == "note: no FILE given: using RANK_TABLE_FILE=good.json\n"

    (tables / "job").mkdir()
    (tables / "good.json").rename(tables / "job" / "hccl.json")
    assert without_file(RANK_TABLE_FILE="job").stdout.startswith("job/hccl.json: ")

    nothing = without_file(RANK_TABLE_FILE="")
    assert nothing.returncode == 2
    assert nothing.stdout == ""
    assert "name the file of a table: `hccl-tools" in nothing.stderr


@pytest.mark.usefixtures("tables")
def test_variables_of_the_shell_are_judged_with_env_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_BUFFSIZE", "0\x1b[31m")

    assert run("good.json").returncode == 0
    text = run("--env", "good.json")
    assert text.returncode == 1
    assert r'error[HCC116]: HCCL_BUFFSIZE="0\u001b[31m": HCCL accepts 1 to 4294967295 MB' in text.stdout
    assert "help: set it to 1 to 4294967295 MB, or unset it" in text.stdout
    report = json.loads(run("-f", "json", "good.json", "--env").stdout)["files"][0]
    assert report["verdict"] == "refused"
    assert [finding["rule"] for finding in report["findings"]] == ["HCC116"]
    assert run("--env", "HCCL_BUFFSIZE=200", "--env", "good.json").returncode == 0
