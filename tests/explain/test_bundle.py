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
    done = command_line("explain", "logs", "--rank-table", "hccl.json", "--bundle", "bug.tar.gz", *options)
    assert done.code == 0, done.err
    assert done.err.startswith("bug.tar.gz: ")
    with tarfile.open(command_line.folder / "bug.tar.gz") as archive:
        return {
            member.name: file.read().decode()
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }


def test_a_bundle_has_logs_table_answer_and_versions(job: CommandLine) -> None:
    files = unpacked(job)

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


def test_secrets_are_masked(job: CommandLine) -> None:
    text = unpacked(job)["explain/logs/rank_5.log"]

    assert "hf_0123456789abcdefghij" not in text
    assert "HF_TOKEN=***" in text


def test_names_and_addresses_are_replaced_consistently(job: CommandLine) -> None:
    files = unpacked(job, "--anonymise")

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
