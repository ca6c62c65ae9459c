"""``hccl-tools convert --to-configmap``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.table.fingerprint import fingerprint
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

FORMATS = [("1.0", "910a"), ("1.2", "a3"), ("2.0", "a5"), ("group_list", "910a")]


def large(ranks: int) -> dict[str, Any]:
    """A 1.0 table of machines with 8 devices."""
    entries = [
        {
            "server_id": f"10.0.{server // 250}.{server % 250 + 1}",
            "device": [
                {
                    "device_id": str(device),
                    "device_ip": f"29.{server // 250}.{server % 250}.{device + 1}",
                    "rank_id": str(server * 8 + device),
                }
                for device in range(8)
            ],
        }
        for server in range(ranks // 8)
    ]
    count = str(len(entries))
    return {"version": "1.0", "server_count": count, "server_list": entries, "status": "completed"}


@pytest.mark.parametrize(("table_format", "product"), FORMATS)
def test_round_trip(command_line: CommandLine, table_format: str, product: str) -> None:
    command_line.write("table.json", table(table_format, 1, 8))

    done = command_line("convert", "table.json", "--to-configmap", "job-table")

    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "wrote job-table.configmap.json",
        "next: kubectl apply -f job-table.configmap.json",
    ]
    value = json.loads((command_line.folder / "job-table.configmap.json").read_text())
    assert {key: value[key] for key in ("apiVersion", "kind", "metadata")} == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "job-table"},
    }
    (command_line.folder / "inner.json").write_text(value["data"]["hccl.json"])
    assert command_line.read("inner.json") == command_line.read("table.json")
    checked = command_line("validate", "--product", product, "job-table.configmap.json")
    assert checked.code == 0
    assert checked.out.startswith(f"job-table.configmap.json#hccl.json: format {table_format} ")
    assert command_line("diff", "table.json", "job-table.configmap.json").code == 0


def test_a_pipe_to_validate(tmp_path: Path) -> None:
    (tmp_path / "hccl.json").write_text(json.dumps(table("1.0", 1, 8)))

    def run(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        words = (sys.executable, "-m", "hccl_tools", *words)
        return subprocess.run(words, cwd=tmp_path, input=given, capture_output=True, text=True, check=False)

    made = run("convert", "hccl.json", "--to-configmap", "job", "--key", "rank_table.json", "-o", "-")
    assert (made.returncode, made.stderr) == (0, "")
    checked = run("validate", "-", given=made.stdout)
    assert checked.returncode == 0
    assert checked.stdout.startswith("<stdin>#rank_table.json: format 1.0 ")
    again = run("convert", "-", "--to", "1.0", "-o", "-", given=made.stdout)
    assert json.loads(again.stdout) == json.loads((tmp_path / "hccl.json").read_text())


def test_with_another_format_a_namespace_and_a_key(command_line: CommandLine) -> None:
    command_line.write("jobstart_hccl.json", table("group_list", 2, 8))

    done = command_line(
        *("convert", "jobstart_hccl.json", "--to", "1.0", "--to-configmap", "job.a", "--namespace", "train"),
        *("--key", "rank_table.json", "-o", "out.yaml"),
    )

    assert done.code == 0
    assert "group_list to 1.0: 2 servers, 16 ranks" in done.err
    assert done.err.endswith("wrote out.yaml\nnext: kubectl apply -f out.yaml\n")
    value = json.loads((command_line.folder / "out.yaml").read_text())
    assert value["metadata"] == {"name": "job.a", "namespace": "train"}
    made = command_line.write("made.json", value["data"]["rank_table.json"])
    assert command_line.read(made).format == "1.0"
    assert fingerprint(command_line.read(made)) == fingerprint(command_line.read("jobstart_hccl.json"))


def test_super_pods_need_the_format(command_line: CommandLine) -> None:
    command_line.write("hccl.json", table())

    done = command_line("convert", "hccl.json", "--to-configmap", "a", "--super-pods", "hccl.json")

    assert done.code == 2
    assert done.sentence == "--super-pods is for --to 1.2: a 1.0 table has no super pods"


def test_writing_again(command_line: CommandLine) -> None:
    command_line.write("a.json", table("1.0", 1, 8))
    command_line.write("b.json", table("1.0", 2, 8))
    words = ("--to-configmap", "job", "-o", "out/")
    (command_line.folder / "out").mkdir()

    assert command_line("convert", "a.json", *words).code == 0
    again = command_line("convert", "a.json", *words)
    assert again.code == 0
    assert again.err.startswith("already up to date: out/job.configmap.json\n")
    other = command_line("convert", "b.json", *words)
    assert other.code == 1
    assert other.sentence == "out/job.configmap.json exists and has other contents"
    assert command_line("convert", "b.json", *words, "--force", "--mode", "640").code == 0
    assert (command_line.folder / "out/job.configmap.json").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ["--to-configmap", "Job"],
            '--to-configmap "Job" is not the name of a ConfigMap',
            "RFC 1123 subdomain",
        ),
        (
            ["--to-configmap", "-job"],
            '--to-configmap "-job" is not',
            "begins and ends with a letter or digit",
        ),
        (["--to-configmap", "job-"], '--to-configmap "job-" is not', "RFC 1123 subdomain"),
        (["--to-configmap", "a..b"], '--to-configmap "a..b" is not', "RFC 1123 subdomain"),
        (["--to-configmap", "a_b"], '--to-configmap "a_b" is not', "lower case letters, digits, - and ."),
        (["--to-configmap", "job\n"], '--to-configmap "job', "RFC 1123 subdomain"),
        (["--to-configmap", ""], '--to-configmap "" is not', "RFC 1123 subdomain"),
        (["--to-configmap", "a" * 254], "--to-configmap", "at most 253 characters"),
        (["--to-configmap", "a", "--namespace", "a.b"], '--namespace "a.b" is not', "an RFC 1123 label"),
        (["--to-configmap", "a", "--namespace", "a" * 64], "--namespace", "at most 63 characters"),
        (
            ["--to-configmap", "a", "--key", "x/y.json"],
            '--key "x/y.json" is not a key',
            "letters, digits, -, _ and .",
        ),
        (["--to-configmap", "a", "--key", "..json"], '--key "..json" is not a key', "does not begin with .."),
        (["--to-configmap", "a", "--key", "hccl"], '--key "hccl": a pod sees it', "use --key hccl.json"),
        (["--to", "1.0", "--key", "a.json"], "--key is for --to-configmap", "add --to-configmap NAME"),
        (["--to", "1.0", "--namespace", "a"], "--namespace is for --to-configmap", "add --to-configmap NAME"),
        (
            [],
            "missing option --to: one of 1.0, 1.2, 2.0, group_list",
            "--to-configmap NAME",
        ),
    ],
)
def test_wrong_options(command_line: CommandLine, words: list[str], message: str, hint: str) -> None:
    command_line.write("hccl.json", table())

    done = command_line("convert", "hccl.json", *words)

    assert done.code == 2
    assert done.err.startswith(f"error: {message}")
    assert hint in done.err
    assert command_line.names == ["hccl.json"]


@pytest.mark.parametrize("name", ["a", "0", "a-b.c0", "a" * 63 + "." + "b" * 189])
def test_names_that_kubernetes_takes(command_line: CommandLine, name: str) -> None:
    command_line.write("hccl.json", table("1.0", 1, 8))

    assert command_line("convert", "hccl.json", "--to-configmap", name, "-o", "-").code == 0


def test_a_table_with_an_error_is_not_written(command_line: CommandLine) -> None:
    broken = table("1.0", 1, 8)
    broken["server_list"][0]["device"][1]["device_ip"] = "x"
    command_line.write("hccl.json", broken)

    done = command_line("convert", "hccl.json", "--to-configmap", "job", "-o", "-")

    assert (done.code, done.out) == (1, "")
    assert "HCC403" in done.err
    assert "no table is written" in done.sentence


def test_limits_of_kubernetes(command_line: CommandLine) -> None:
    for ranks in (2048, 8192, 16384):
        command_line.write(f"{ranks}.json", json.dumps(large(ranks)))

    annotated = command_line("convert", "2048.json", "--to-configmap", "job")
    assert annotated.err.splitlines()[-1] == "next: kubectl apply --server-side -f job.configmap.json"
    piped = command_line("convert", "8192.json", "--to-configmap", "job", "-o", "-")
    assert piped.code == 0
    assert piped.err.splitlines() == [
        "note: the table is written without blanks, so that the ConfigMap is not too large",
        "note: this ConfigMap needs `kubectl apply --server-side -f -`",
    ]
    assert len(json.loads(piped.out)["data"]["hccl.json"]) <= 1_048_576
    refused = command_line("convert", "16384.json", "--to-configmap", "big")
    assert refused.code == 1
    size = len(json.dumps(json.loads(Path("16384.json").read_text()), separators=(",", ":")))
    assert (
        refused.sentence == f"the table has {size:,} bytes without blanks; a ConfigMap has at most 1,048,576"
    )
    assert "big.configmap.json" not in command_line.names
