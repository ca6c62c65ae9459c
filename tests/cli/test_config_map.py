"""Tables in ConfigMaps, as ``kubectl get configmap`` prints them."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.diagnostics import render
from hccl_tools.errors import HcclToolsError
from hccl_tools.files.inputs import Inputs
from hccl_tools.table.format_names import SERVICE
from hccl_tools.validation.checker import validate
from hccl_tools.validation.config_maps import check_all
from tests.support.config_maps import as_yaml, config_map, listed
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.commands import CommandLine

BAD = """\
{
    "version": "1.0",
    "server_count": "1",
    "server_list": [
        {
            "server_id": "10.0.0.1",
            "device": [
                {"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"},
                {"device_id": "1", "device_ip": "192.168.1.2", "rank_id": "0"}
            ]
        }
    ],
    "status": "completed"
}
"""
GOOD = json.dumps(table("1.0", 1, 8), indent=4)


def give_stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_golden(command_line: CommandLine, golden: Callable[[str, str], None]) -> None:
    command_line.write("cm.json", config_map(hccl__json=BAD, version="1"))
    command_line.write("cm.yaml", as_yaml(config_map(hccl__json=BAD, version="1")))

    done = command_line("validate", "cm.json", "cm.yaml", "--color", "never")

    assert done.code == 1
    golden("config-map.txt", done.out)


@pytest.mark.parametrize("write", [json.dumps, as_yaml])
def test_a_good_table_is_validated_and_shown(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, write: Callable[[Any], str]
) -> None:
    text = write(config_map(hccl__json=GOOD, version="1"))
    command_line.write("cm.txt", text)
    command_line.write("hccl.json", GOOD)

    assert command_line("validate", "cm.txt").code == 0
    shown = command_line("show", "cm.txt")
    assert shown.out.replace("cm.txt#", "") == command_line("show", "hccl.json").out
    give_stdin(monkeypatch, text)
    assert command_line("validate", "-").out.startswith("<stdin>#hccl.json: format 1.0 ")


@pytest.mark.parametrize("write", [json.dumps, as_yaml])
def test_convert_extracts_a_table(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, write: Callable[[Any], str]
) -> None:
    text = write(config_map(hccl__json=GOOD))
    command_line.write("cm.yaml", text)

    assert command_line("convert", "cm.yaml", "--to", "1.0").code == 0
    assert command_line.names == ["cm.v1.0.json", "cm.yaml"]
    assert command_line.read("cm.v1.0.json") == command_line.read(command_line.write("hccl.json", GOOD))
    give_stdin(monkeypatch, text)
    assert command_line("convert", "-", "--to", "1.0", "-o", "other.json").code == 0
    assert command_line.read("other.json") == command_line.read("hccl.json")


def test_other_commands_read_it_too(command_line: CommandLine) -> None:
    two = [json.dumps(table("1.0", 1, 8)), json.dumps(table("1.0", 2, 8))]
    spare = GOOD.replace("10.0.0.1", "10.0.0.9").replace("192.168.0.", "192.168.9.")
    command_line.write("a.yaml", as_yaml(config_map(hccl__json=two[0])))
    command_line.write("b.json", config_map(a__json=two[0], b__json=two[1]))
    command_line.write("spare.json", config_map(hccl__json=spare))

    assert command_line("diff", "a.yaml", "b.json#a.json").code == 0
    differs = command_line("diff", "a.yaml", "b.json#b.json")
    assert differs.code == 1
    assert differs.out.startswith("- a.yaml#hccl.json: 1.0, 1 server")
    assert command_line("merge", "a.yaml", "spare.json", "-o", "merged.json").code == 0
    assert [server.server_id for server in command_line.read("merged.json").servers] == [
        "10.0.0.1",
        "10.0.0.9",
    ]
    assert command_line("subset", "b.json#b.json", "--servers", "10.0.0.2").code == 0
    assert len(command_line.read("b.s1.json")) == 8
    replaced = command_line(
        "replace", "a.yaml", "--server", "10.0.0.1", "--with", "spare.json", "-o", "c.json"
    )
    assert replaced.code == 0
    assert command_line.read("c.json").servers[0].server_id == "10.0.0.9"


def test_a_conflict_of_merge_names_the_place_in_the_table(command_line: CommandLine) -> None:
    text = BAD.replace('"rank_id": "0"}\n', '"rank_id": "1"}\n')
    command_line.write("a.json", config_map(hccl__json=text))
    command_line.write("b.json", text)

    done = command_line("merge", "a.json", "b.json")

    assert done.code == 1
    assert "\n  a.json#hccl.json:6:26  (/server_list/0/server_id)\n  b.json:6:26 " in done.err


def test_several_tables(command_line: CommandLine) -> None:
    command_line.write(
        "cm.json", config_map(a__json=GOOD, b__json=BAD, readme="see a.json", other__json="{}")
    )

    done = command_line("validate", "cm.json", "-f", "concise")
    assert done.code == 1
    assert done.out.startswith('cm.json#b.json:9:75: error HCC203 rank id "0" is used by two devices')
    for command in (["show"], ["convert", "--to", "1.0", "-o", "-"], ["merge"]):
        done = command_line(*command, "cm.json")
        assert done.code == 2
        assert done.err.splitlines() == [
            "error: cm.json has 2 rank tables: cm.json#a.json, cm.json#b.json",
            "  help: specify one of them, such as 'cm.json#a.json'",
        ]
    assert command_line("show", "cm.json#a.json").code == 0


def test_several_tables_on_standard_input() -> None:
    text = json.dumps(config_map(a__json=GOOD, b__json=BAD))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        words = (sys.executable, "-m", "hccl_tools", *words)
        return subprocess.run(words, input=text, capture_output=True, text=True, check=False)

    assert "<stdin> has 2 rank tables: /dev/fd/0#a.json, /dev/fd/0#b.json" in run("show", "-").stderr
    assert json.loads(run("show", "/dev/fd/0#a.json", "-f", "json").stdout)["file"] == "/dev/fd/0#a.json"
    assert run("convert", "/dev/fd/0#a.json", "--to", "1.0", "-o", "-").stdout == GOOD + "\n"
    assert "both tables are standard input" in run("diff", "--", "-#a.json", "-#b.json").stderr


@pytest.mark.parametrize("write", [json.dumps, lambda value: as_yaml(*value["items"]), as_yaml])
def test_a_list_of_config_maps(command_line: CommandLine, write: Callable[[Any], str]) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"hccl.json": GOOD}}
    several = [config_map(name, hccl__json=GOOD) for name in ("job-a", "job-b")]
    command_line.write("all.txt", write(listed(*several, secret)))

    done = command_line("validate", "all.txt")

    assert done.code == 0
    assert [line.partition(":")[0] for line in done.out.splitlines() if ": format" in line] == [
        "all.txt#job-a/hccl.json",
        "all.txt#job-b/hccl.json",
    ]
    assert command_line("show", "all.txt#job-b/hccl.json").code == 0
    assert command_line("show", "all.txt#train/job-b/hccl.json").code == 0
    assert command_line("show", "all.txt#hccl.json").code == 2


def test_config_maps_of_the_same_name_in_two_namespaces(command_line: CommandLine) -> None:
    several = [config_map("job", space, hccl__json=GOOD) for space in ("a", "b")]
    command_line.write("all.json", listed(*several))

    assert "all.json#a/job/hccl.json, all.json#b/job/hccl.json" in command_line("show", "all.json").err
    assert command_line("show", "all.json#b/job/hccl.json").code == 0


def test_binary_data(command_line: CommandLine) -> None:
    encoded = base64.b64encode(BAD.encode()).decode()
    value = {**config_map(), "binaryData": {"hccl.json": encoded}}
    command_line.write("cm.json", value)
    assert command_line("validate", "cm.json", "-f", "concise").out.startswith("cm.json#hccl.json:9:75: ")

    command_line.write("cm.json", {**value, "binaryData": {"hccl.json": "###"}})
    done = command_line("validate", "cm.json")
    assert done.code == 1
    assert '"hccl.json": the value in binaryData is not valid base64' in done.out


@pytest.mark.parametrize("write", [json.dumps, as_yaml])
@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        (
            config_map(readme="hello", numbers="1"),
            'it is a Kubernetes ConfigMap, and none of its keys has a rank table: "readme", "numbers"',
            "specify a ConfigMap with a rank table",
        ),
        (
            config_map(),
            "it is a Kubernetes ConfigMap without data",
            "extract the table: kubectl get configmap ",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"hccl.json": GOOD}},
            'it is a Kubernetes object of kind "Secret" without a ConfigMap that has data',
            "extract the table: kubectl get configmap ",
        ),
        (
            config_map(hccl__json=12),
            '"hccl.json": the value is a number, not a string; Kubernetes refuses this ConfigMap',
            "`kubectl create configmap NAME --from-file=hccl.json` stores the text of a table correctly",
        ),
        (
            config_map(hccl__json=True),
            '"hccl.json": the value is true or false, not a string; Kubernetes refuses this ConfigMap',
            "`kubectl create configmap NAME --from-file=hccl.json` stores the text of a table correctly",
        ),
    ],
)
def test_without_a_table(
    command_line: CommandLine, write: Callable[[Any], str], value: Any, message: str, hint: str
) -> None:
    command_line.write("cm.txt", write(value))

    done = command_line("validate", "cm.txt")

    assert done.code == 1
    said = re.compile(rf"not a rank table: {re.escape(message)}( \(line [0-9]+\))?\n")  # In YAML.
    assert said.search(done.out)
    assert f"  = help: {hint}" in done.out
    for command in (["show"], ["convert", "--to", "1.0"]):
        refused = command_line(*command, "cm.txt")
        assert refused.code == 1
        assert said.search(refused.err)


def test_a_value_that_is_no_string_has_a_position(command_line: CommandLine) -> None:
    command_line.write("cm.json", '{"apiVersion": "v1", "kind": "ConfigMap",\n "data": {"hccl.json": 7}}')

    assert " --> cm.json:2:24  (/data/hccl.json)" in command_line("validate", "cm.json").out


@pytest.mark.parametrize(
    ("key", "text", "finding"),
    [
        ("hccl.json", '{"version": "1.0",', "cm.json#hccl.json:1:19: error HCC101 "),
        ("table.json", '{"server_list": [\n,', "cm.json#table.json:2:1: error HCC101 "),
        ("hccl.json", '{"status": "initializing"}', "cm.json#hccl.json:1:12: error HCC106 "),
        (
            "global_ranktable.json",
            '{"server_group_list": []}',
            "cm.json#global_ranktable.json:1:1: error HCC701 ",
        ),
    ],
)
def test_a_damaged_table_is_found(command_line: CommandLine, key: str, text: str, finding: str) -> None:
    command_line.write("cm.json", config_map(**{key: text, "config": "x"}))

    done = command_line("validate", "cm.json", "-f", "concise")

    assert done.code == 1
    assert done.out.startswith(finding)


@pytest.mark.parametrize(
    ("argument", "message", "hint"),
    [
        (
            "cm.json#hccl.jso",
            'cm.json has no key "hccl.jso" in a ConfigMap',
            'its keys: "hccl.json", "number"',
        ),
        (
            "cm.json#number",
            "cm.json#number: the value is a number, not a string",
            "`kubectl create configmap",
        ),
        ("table.json#hccl.json", "table.json is not a Kubernetes ConfigMap", "specify the file without #"),
        ("absent.json#hccl.json", "no such file: absent.json#hccl.json", "check the name"),
        ("twice.json", "twice.json:1:", "for several ConfigMaps, use one List: kubectl get configmap "),
    ],
)
@pytest.mark.parametrize("command", [["validate"], ["show"], ["convert", "--to", "1.0"]])
def test_what_cannot_be_read(
    command_line: CommandLine, command: list[str], argument: str, message: str, hint: str
) -> None:
    value = config_map(hccl__json=GOOD, number=3)
    command_line.write("cm.json", value)
    command_line.write("table.json", GOOD)
    command_line.write("twice.json", json.dumps(value) + json.dumps(value))

    done = command_line(*command, argument)

    assert done.code == 2
    assert done.err.splitlines()[0].startswith(f"error: {message}")
    assert done.err.splitlines()[1].startswith(f"  help: {hint}")


def test_a_key_that_is_named_need_not_look_like_a_table(command_line: CommandLine) -> None:
    command_line.write("cm.json", config_map(hccl__json=GOOD, notes="hello"))

    done = command_line("validate", "cm.json#notes", "-f", "concise")

    assert done.code == 1
    assert done.out.startswith("cm.json#notes:1:1: error HCC101 ")


def test_a_file_whose_name_has_the_mark_is_a_file(command_line: CommandLine) -> None:
    command_line.write("cm.json", config_map(hccl__json=BAD))
    command_line.write("cm.json#hccl.json", GOOD)

    assert "HCC203" not in command_line("validate", "cm.json#hccl.json").out


def test_wait_does_not_wait_for_what_kubectl_printed(command_line: CommandLine) -> None:
    command_line.write("cm.json", config_map(hccl__json=GOOD))

    assert command_line("validate", "--wait", "600", "cm.json#hccl.json").code == 0


@pytest.mark.parametrize("is_yaml", [False, True])
def test_a_copy_of_a_table_that_is_not_complete_is_fetched_again(
    command_line: CommandLine, is_yaml: bool
) -> None:
    text = config_map(hccl__json='{"status":"initializing"}')
    name = f"cm.{'yaml' if is_yaml else 'json'}"
    command_line.write(name, as_yaml(text) if is_yaml else text)

    done = command_line("validate", "--wait", "600", name)

    assert done.code == 1
    assert f"note: {name} is a copy of a ConfigMap and does not change" in done.err
    assert "HCC110" not in done.out
    # A new file: a kubectl that fails leaves the old one.
    command = f"kubectl get configmap -n train rings-config-job -o {name[3:]} > cm.2.{name[3:]};"
    assert command in done.out
    assert "to correct the table" not in done.out
    assert "1 error: HCCL waits 30 minutes for this table" in done.out


def test_a_table_that_is_encoded_twice_is_decoded_after_it_is_taken_out(
    command_line: CommandLine, tmp_path: Path
) -> None:
    command_line.write("cm.json", config_map(hccl__json=json.dumps(GOOD)))
    (tmp_path / "hccl.json").write_text(json.dumps(GOOD))  # As kubectl writes it.

    out = command_line("validate", "cm.json").out
    hint = next(line for line in out.splitlines() if "= help: " in line)
    decode = hint.partition("decode that: ")[2].partition("; then make")[0]

    assert "write its text to a file: kubectl get configmap -n train rings-config-job -o jsonpath=" in hint
    assert "to correct the table" not in out
    subprocess.run(["sh", "-c", decode.replace("python3", sys.executable, 1)], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "table.json").read_text()) == json.loads(GOOD)


_TWICE = json.dumps(GOOD)
_OBJECT = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}'


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (("validate", "cm.json"), config_map(train__py=GOOD)),
        (("validate", "--fix", "cm.json"), config_map(train__py=BAD)),
        (("validate", "cm.json"), config_map(hccl__json=_TWICE)),
        (("validate", "cm.json#table.json"), config_map(table__json=_TWICE)),
        (("validate", "cm.json"), config_map(hccl__json='{"status":"initializing"}')),
        (("validate", "cm.json"), _OBJECT),
        (("validate", "cm.json"), "apiVersion: v1\nkind: Pod\n"),
        (("show", "cm.json"), _OBJECT),
    ],
)
def test_no_printed_command_writes_to_a_file_that_exists_or_twice_to_one(
    command_line: CommandLine, typed: tuple[str, ...], text: str
) -> None:
    """A key of a ConfigMap must not choose which file of the current folder is replaced."""
    for name in ("train.py", "hccl.json", "table.json"):
        (command_line.folder / name).symlink_to("precious")
    command_line.write("cm.json", text)

    done = command_line(*typed)
    line = next(line for line in (done.out + done.err).splitlines() if "kubectl get configmap" in line)
    written = re.findall(r" > ([^\s;]+)", line)

    assert written
    assert len({*written}) == len(written)
    assert not [name for name in written if (command_line.folder / name).is_symlink()]


def test_a_table_beside_data_is_moved_into_it(command_line: CommandLine) -> None:
    value = config_map(hccl__json=GOOD)
    value["hccl.json"] = value.pop("data")["hccl.json"]
    command_line.write("cm.json", value)

    out = command_line("validate", "cm.json").out

    assert 'its key "hccl.json" is beside "data"' in out
    assert 'move the key into "data"' in out


def test_formats_for_programs_have_the_position_in_the_file(command_line: CommandLine) -> None:
    command_line.write("cm.yaml", as_yaml(config_map(hccl__json=BAD)))

    report = json.loads(command_line("validate", "cm.yaml", "-f", "json").out)["files"][0]
    assert (report["file"], report["container"]) == ("cm.yaml#hccl.json", "cm.yaml")
    finding = report["findings"][0]
    assert (finding["line"], finding["column"], finding["container_line"]) == (9, 75, 12)
    annotation = command_line("validate", "cm.yaml", "-f", "github").out
    assert ",file=cm.yaml,line=12::" in annotation
    assert "%0Aat cm.yaml#hccl.json:9:75%0A" in annotation
    (result,) = json.loads(command_line("validate", "cm.yaml", "-f", "sarif").out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "cm.yaml"},
        "region": {"startLine": 12},
    }
    assert "at cm.yaml#hccl.json:9:75." in result["message"]["text"]


def test_a_job_needs_the_table_itself(command_line: CommandLine) -> None:
    value = config_map("it's a job", hccl__json=GOOD)
    command_line.write("cm.json", value)

    done = command_line("env", "cm.json", "--target", "torch")

    assert done.code == 1
    assert 'it is a Kubernetes ConfigMap; the rank table is the value of its key "hccl.json"' in done.err
    (line,) = [line for line in done.err.splitlines() if "extract the table" in line]
    shell = line.partition("extract the table: ")[2].replace("kubectl", "printf '%s\\n'")
    words = subprocess.run(
        ["sh", "-c", shell.partition(" > ")[0]], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert words == [
        *("get", "configmap", "-n", "train", "it's a job", "-o", "jsonpath={.data.hccl\\.json}"),
    ]


def test_doctor_needs_the_table_itself(command_line: CommandLine) -> None:
    command_line.write("cm.json", config_map(hccl__json=GOOD))

    done = command_line("doctor", "--local", "--select", "HCD002", "cm.json")

    assert done.code == 1
    assert "the rank table is the value of its key" in done.out
    assert "  = help: extract the table: kubectl get configmap -n train rings-config-job " in done.out


def test_a_large_list_takes_linear_time(command_line: CommandLine) -> None:
    """A quadratic search for positions or names would take minutes."""
    small = json.dumps(table("1.0", 1, 1))
    command_line.write("all.json", listed(*(config_map(f"job-{n}", hccl__json=small) for n in range(2000))))

    assert "all.json has 2,000 rank tables" in command_line("show", "all.json").err


@pytest.mark.parametrize("write", [json.dumps, as_yaml])
def test_a_key_whose_value_is_no_string(command_line: CommandLine, write: Callable[[Any], str]) -> None:
    command_line.write("cm.txt", write(config_map(hccl__json=table(), b__json=GOOD)))

    done = command_line("validate", "cm.txt#hccl.json")

    assert done.code == 2
    assert done.sentence.startswith("cm.txt#hccl.json: the value is an object, not a string")


def test_names_in_the_file_do_not_reach_the_terminal(command_line: CommandLine) -> None:
    command_line.write("cm.json", config_map(**{"\x1b[31mhccl.json": GOOD}))

    for command in ("validate", "show"):
        done = command_line(command, "cm.json")
        assert done.code == (1 if command == "validate" else 0)
        assert "cm.json#\\u001b[31mhccl.json: " in done.out
        assert "\x1b" not in done.out + done.err


@pytest.mark.slow
@given(
    st.sampled_from([json.dumps, as_yaml]),
    st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 30), st.text('{}[]":,\\ \n#&*-|>!0', max_size=3))
    ),
)
@settings(deadline=None, max_examples=60)
def test_damage_never_ends_in_a_traceback(
    write: Callable[[Any], str], edits: list[tuple[int, int, str]]
) -> None:
    text = write(config_map(hccl__json=BAD, version="1"))
    for at, removed, added in edits:
        begin = at % (len(text) + 1)
        text = text[:begin] + added + text[begin + removed :]

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cm.txt"
        file.write_text(text, encoding="utf-8")
        for argument in (str(file), f"{file}#hccl.json"):
            with contextlib.suppress(HcclToolsError):
                assert "".join(render(check_all(argument, validate)))
            with contextlib.suppress(HcclToolsError):
                Inputs().table(argument)


@pytest.mark.parametrize("write", [json.dumps, as_yaml])
def test_a_service_table(command_line: CommandLine, write: Callable[[Any], str]) -> None:
    """The ConfigMap of MindIE-Motor."""
    text = json.dumps(table(SERVICE, 2, 8), indent=2)
    command_line.write("cm.txt", write(config_map("global-ranktable", "mindie", table=text)))
    command_line.write("table.json", text)

    assert command_line("validate", "cm.txt").code == 0
    assert command_line("show", "cm.txt").out.replace("cm.txt#table", "table.json") == (
        command_line("show", "table.json").out
    )
    made = command_line("convert", "cm.txt", "--instance", "2", "--to", "1.0", "-o", "-")
    assert made.code == 0
    assert made.out == command_line("convert", "table.json", "--instance", "2", "--to", "1.0", "-o", "-").out
    refused = command_line("convert", "cm.txt", "--to", "1.0")
    assert refused.code == 1
    assert refused.sentence.startswith("cm.txt#table cannot be used: ")
    assert "--instance" in refused.err
    command_line.write("cm.txt", write(config_map("global-ranktable", "mindie", table=text[:-20])))
    assert "cm.txt#table:" in command_line("validate", "cm.txt", "-f", "concise").out


def test_a_plain_table_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "hccl.json").write_text(GOOD)
    program = (
        "import sys; from hccl_tools import cli; "
        "cli.run(cli.cli, ['validate', 'hccl.json'], 'hccl-tools'); "
        "print(*sorted({'yaml', 'base64', 'hccl_tools.formats.kubernetes.tables'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == ""


def test_the_command_that_takes_a_table_out_runs_no_key(command_line: CommandLine) -> None:
    key = '"]) or __import__("os").system("touch ran") or ([""]["'
    there = {"apiVersion": "v1", "kind": "ConfigMap", "data": {key: table()}}
    command_line.write("map.json", json.dumps(there))

    done = command_line("validate", "map.json")

    (program,) = re.findall(r"python3 -I -c ('.*') < map\.json > map\.new\.json", done.out)
    with Path("map.json").open() as file:
        subprocess.run([sys.executable, "-c", *shlex.split(program)], stdin=file, check=True)
    assert "ran" not in command_line.names


@pytest.mark.parametrize("is_yaml", [False, True])
def test_a_sound_table_in_a_config_map_still_has_to_be_taken_out(
    command_line: CommandLine, is_yaml: bool
) -> None:
    value = config_map(hccl__json=GOOD)
    command_line.write("cm.json", as_yaml(value) if is_yaml else json.dumps(value))
    lines = command_line("validate", "cm.json").out.splitlines()
    assert lines[-2] == "no findings: HCCL accepts the table in this file, but refuses the file itself"
    assert lines[-1].startswith(
        "HCCL reads only a file with the table alone; take it out of the ConfigMap: kubectl get"
    )
    assert lines[-1].endswith(" > hccl.json")


@pytest.mark.parametrize("is_yaml", [False, True])
def test_a_config_map_that_hccl_is_to_read_itself_is_refused(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, is_yaml: bool
) -> None:
    value = config_map(hccl__json=GOOD)
    command_line.write("cm.json", as_yaml(value) if is_yaml else json.dumps(value))
    monkeypatch.setenv("RANK_TABLE_FILE", "cm.json")

    done = command_line("validate")

    assert done.code == 1
    assert "= HCCL: refuses the table" in done.out
    assert "help: extract the table: kubectl get configmap" in done.out


def test_a_table_that_is_an_object_becomes_text_and_all_else_stays(command_line: CommandLine) -> None:
    value = config_map(hccl__json=table(), version="7")
    value["metadata"]["labels"] = {"ring-controller.atlas": "ascend-910b"}
    command_line.write("cm.json", json.dumps(value))

    done = command_line("validate", "cm.json")

    found = re.search(r"(python3 -I -c '.*') < cm\.json > cm\.new\.json; then apply", done.out)
    assert found is not None, done.out
    _, *words = shlex.split(found[1])
    made = subprocess.run(
        [sys.executable, *words], input=json.dumps(value), capture_output=True, text=True, check=True
    )
    command_line.write("cm.new.json", made.stdout)
    assert command_line("validate", "cm.new.json#hccl.json").code == 0
    text = json.loads(made.stdout)
    assert json.loads(text["data"].pop("hccl.json")) == value["data"].pop("hccl.json")
    assert text == value


@pytest.mark.parametrize("begin", ["  hccl.json:\n", "  hccl.json: "])
def test_a_bar_that_is_missing_in_yaml_is_named(command_line: CommandLine, begin: str) -> None:
    rest = "\n".join("    " + line for line in json.dumps(table(), indent=2).splitlines())
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: rings\ndata:\n{begin}"
    command_line.write("cm.yaml", f"{text}{rest if begin[-1:] == chr(10) else rest.strip()}\n")

    done = command_line("validate", "cm.yaml")

    assert 'Kubernetes refuses this ConfigMap, because the "|" behind the key is missing (line ' in done.out
    assert 'write "|" behind the key, `hccl.json: |`' in done.out
    command_line.write("cm.yaml", f"{text.rstrip()} |\n{rest}\n")
    assert "not a rank table" not in command_line("validate", "cm.yaml").out


@pytest.mark.parametrize("write", [json.dumps, as_yaml])
def test_a_config_map_that_is_given_as_a_table_ends_with_1(
    command_line: CommandLine, write: Callable[[Any], str]
) -> None:
    text = write(config_map(hccl__json=GOOD))
    for name in ("table.json", "cm.yaml"):
        command_line.write(name, text)

    done = command_line("validate", "table.json")

    assert done.code == 1
    assert (
        "note: the exit code is 1, because a job cannot read the ConfigMap; `hccl-tools validate" in done.err
    )
    quiet = command_line("validate", "-q", "table.json")
    assert (quiet.code, quiet.out, quiet.err) == (1, "", "")
    for named in ("table.json#hccl.json", "cm.yaml"):
        assert command_line("validate", "-q", named).code == 0
