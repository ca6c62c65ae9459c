"""``explain --bundle``: what a bug report needs, without secrets and, if wanted, without names."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.explain.anonymous import Anonymiser
from hccl_tools.validation.checker import validate
from tests.support.hostile_inputs import saved_run
from tests.support.plogs import Plogs
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.fixture
def job(command_line: CommandLine) -> CommandLine:
    plogs = Plogs(command_line.folder / "logs", 16, 8).start()
    plogs.error(5, 5, "host nic listen start failed, port[60000], return[11]")
    plogs.screen(5, "export HF_TOKEN=hf_0123456789abcdefghij on 10.0.0.1")
    command_line.write("hccl.json", table("1.0", 2, 8))
    return command_line


def unpacked(command_line: CommandLine, *options: str) -> dict[str, str]:
    done = command_line("explain", "logs", "--bundle", "bug.tar.gz", *options)
    assert done.code == 0, done.err
    assert done.err.startswith("bug.tar.gz: ")
    with tarfile.open(command_line.folder / "bug.tar.gz") as archive:
        return {
            member.name: file.read().decode()
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }


def test_a_bundle_has_logs_table_answer_and_versions(job: CommandLine) -> None:
    files = unpacked(job, "--rank-table", "hccl.json")

    assert {
        "explain/answer.txt",
        "explain/answer.json",
        "explain/versions.txt",
        "explain/hccl.json",
    } <= files.keys()
    assert files["explain/hccl.json"] == (job.folder / "hccl.json").read_text()
    (log,) = [text for name, text in files.items() if "10.0.0.1/debug/plog/plog-4005" in name]
    assert "port[60000]" in log
    assert (job.folder / "bug.tar.gz").stat().st_mode & 0o777 == 0o600


def test_logs_whose_names_are_equal_once_they_are_safe_are_all_packed(command_line: CommandLine) -> None:
    for number, name in enumerate(("a\n.log", "a\\.log", "a_.log", "a_.log.2.log")):
        command_line.write(f"logs/{name}", f"RuntimeError: {number}")

    files = unpacked(command_line)

    logs = {name: text for name, text in files.items() if name.startswith("explain/logs/")}
    assert len(logs) == 4
    assert sorted(logs.values()) == [f"RuntimeError: {number}" for number in range(4)]


def test_a_folder_may_be_named_by_a_link_but_has_none_below_it(command_line: CommandLine) -> None:
    command_line.write("kept/rank_0.log", "RuntimeError: one")
    command_line.write("elsewhere.log", "RuntimeError: two")
    (command_line.folder / "kept/rank_1.log").symlink_to("../elsewhere.log")
    (command_line.folder / "logs").symlink_to("kept")

    files = unpacked(command_line)

    assert [text for name, text in files.items() if name.startswith("explain/logs/")] == ["RuntimeError: one"]


def test_a_bundle_of_the_latest_run_has_its_files(command_line: CommandLine) -> None:
    plan, report = saved_run()
    for name, value in (
        ("plan.json", plan),
        ("report.json", report),
        ("rank_0.log", "one"),
        ("rank_1.log", "two"),
    ):
        command_line.write(f"log/run/{name}", value)
    (command_line.folder / "log/latest").symlink_to("run")

    done = command_line("explain", "log/latest", "--bundle", "b.tar.gz")

    with tarfile.open(command_line.folder / "b.tar.gz") as file:
        names = file.getnames()
    assert "left out" not in done.err
    assert {"explain/plan.json", "explain/logs/rank_0.log", "explain/logs/rank_1.log"} <= set(names)


def test_secrets_are_masked(job: CommandLine) -> None:
    text = unpacked(job, "--rank-table", "hccl.json")["explain/logs/rank_5.log"]

    assert "hf_0123456789abcdefghij" not in text
    assert "HF_TOKEN=***" in text


def test_names_and_addresses_are_replaced_consistently(job: CommandLine) -> None:
    files = unpacked(job, "--rank-table", "hccl.json", "--anonymise")

    everything = "".join([*files, *files.values()])
    assert "10.0.0." not in everything
    assert "192.168." not in everything
    made = json.loads(files["explain/hccl.json"])
    assert validate(made).ok
    (cause,) = json.loads(files["explain/answer.json"])["causes"]
    assert cause["host"] == made["server_list"][0]["server_id"]


def test_a_bundle_does_not_replace_a_file(job: CommandLine) -> None:
    job.write("bug.tar.gz", "mine")
    done = job("explain", "logs", "--bundle", "bug.tar.gz")

    assert (done.code, done.sentence) == (2, "bug.tar.gz exists already")
    assert (job.folder / "bug.tar.gz").read_text() == "mine"


def test_anonymise_needs_a_bundle(job: CommandLine) -> None:
    assert job("explain", "logs", "--anonymise").sentence == "--anonymise needs --bundle"


@given(st.ip_addresses(), st.ip_addresses())
def test_equal_addresses_stay_equal_and_others_differ(one: object, other: object) -> None:
    hide = Anonymiser([]).text

    assert hide(str(one)) == hide(str(one))
    assert (hide(f"[{one}]") == hide(f"[{other}]")) == (one == other)


def test_host_names_and_times() -> None:
    hide = Anonymiser(["node17.example.org", "localhost"]).text

    assert hide("node17 10:00:05 localhost 127.0.0.1 node17.example.org node170") == (
        "host1 10:00:05 localhost 127.0.0.1 host2 node170"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hccl_8p_01234567_10.1.2.3.json", "hccl_8p_01234567_198.18.0.1.json"),
        ("node_10.1.2.3/ ip10.1.2.3 10.1.2.3_0", "node_198.18.0.1/ ip198.18.0.1 198.18.0.1_0"),
        ("10.1.2.3:60000 0:1:10.1.2.3", "198.18.0.1:60000 0:1:198.18.0.1"),
        ("10.1.2.[3-5]", "host1"),
        ("::ffff:10.1.2.3 ::ffff:a01:203 10.1.2.3", "::ffff:198.18.0.1 ::ffff:198.18.0.1 198.18.0.1"),
        ("64:ff9b::10.1.2.3 FE80::1_0 fe80::1", "2001:db8::1 2001:db8::2_0 2001:db8::2"),
        (r"\nfe80::1", r"\n2001:db8::1"),
        (
            "ether 3c:ec:ef:0a:1b:2c 3C:EC:EF:0A:1B:2C 3c:ec:ef:0a:1b:2d 3c:ec:ef:0a:1b",
            "ether 02:00:00:00:00:01 02:00:00:00:00:01 02:00:00:00:00:02 3c:ec:ef:0a:1b",
        ),
        ("8.5.0 7.1.0.5.220 300.1.2.3 10:00:05.123.456", "8.5.0 7.1.0.5.220 300.1.2.3 10:00:05.123.456"),
    ],
)
def test_addresses_are_found_beside_letters(text: str, shown: str) -> None:
    assert Anonymiser([]).text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("NODE7 node7_ib0 node7-ib 节点node7故障", "host1 host1_ib0 host1-ib 节点host1故障"),
        ("node7.cluster.local node7.log node70", "host1 host2.log node70"),
        ("login.corp.example", "login.host1"),
        ("gpu-node-7 gpu-node-70", "host1 gpu-node-70"),
        ("node[01-07,9] port[60000]", "host1 port[60000]"),
        ("\\nnode7 \\\\node7 \x1b[31mnode7\x1b[0m", "\\nhost1 \\\\host1 \x1b[31mhost1\x1b[0m"),
        ("server_list", "server_list"),
    ],
)
def test_names_are_found_in_words(text: str, shown: str) -> None:
    assert Anonymiser(["node7", "gpu-node-7", "Node8.corp.example", "server"]).text(text) == shown


def test_a_short_name_needs_a_number() -> None:
    assert Anonymiser(["n1", "ip"]).text("n1 ip n12 n1-ib") == "host1 ip n12 host1-ib"


def test_the_names_of_many_hosts_are_replaced_in_linear_time() -> None:
    hide = Anonymiser(f"gpu-node-{number:05d}" for number in range(20_000))

    assert set(hide.text("gpu-node-00017 x-gpu-node-99999 " * 20_000).split()) == {
        "host1",
        "x-gpu-node-99999",
    }
