"""A host that is asked for its devices is reached under the name that was asked, whatever it answers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.cli import launch_spares, launch_table
from hccl_tools.gathering.failures import Gathered
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.launch import engines
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.model.request import SpareHost
from hccl_tools.launch.spares.replacement import add_way, line
from hccl_tools.runs import index, own_runs, remote
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.support.commands import CommandLine

#: What each host says about its address; c says that of b.
SAID = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.9", "10.0.0.1": "10.0.0.1", "10.0.0.3": "10.0.0.2"}


def answers(hosts: Sequence[str], *_: object) -> Gathered:
    simulated = [survey(SurveyRequest(simulate=f"910b:{number}")) for number in range(1, len(hosts) + 1)]
    found = [
        SurveyAnswer(host, facts._replace(server_id=SAID[host]), machine=host)
        for host, facts in zip(hosts, simulated, strict=True)
    ]
    return Gathered(found, [])


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (launch_spares, launch_table):
        monkeypatch.setattr(module, "survey_hosts", answers)


def launched(command_line: CommandLine, *options: str) -> tuple[dict[str, Any], str]:
    own = ("--engine", "ssh", "--start", "torch", "--dry-run=json", "--ignore", "HCC308,HCC4,HCC6")
    done = command_line("launch", *own, *options, "--no-python", "true")
    assert done.code == 0, done.err
    return json.loads(done.out), done.out + done.err


@pytest.mark.usefixtures("lying")
def test_the_hosts_of_a_job_are_reached_as_they_were_asked(command_line: CommandLine) -> None:
    plan, _ = launched(command_line, "--hosts", "a,c")

    assert plan["hosts"] == ["10.0.0.1", "10.0.0.9"]
    assert plan["reached"] == {"10.0.0.1": "a", "10.0.0.9": "c"}
    assert plan["command"][plan["command"].index("--hosts") + 1] == "a,c"
    assert plan["command"][plan["command"].index("--shown") + 1] == "a"


@pytest.mark.usefixtures("lying")
def test_a_host_that_claims_another_address_is_named(command_line: CommandLine) -> None:
    plan, _ = launched(command_line, "--hosts", "10.0.0.1,10.0.0.3")
    of_names, _ = launched(command_line, "--hosts", "a,c")

    said = "10.0.0.3 answers that its address is 10.0.0.2: the table and the messages name it so"
    assert [one for one in plan["notes"] if "answers that" in one] == [said]
    assert not [one for one in of_names["notes"] if "answers that" in one]


@pytest.mark.usefixtures("lying")
def test_a_spare_is_named_as_it_was_asked(command_line: CommandLine) -> None:
    _, said = launched(command_line, "--hosts", "a,b,c", "--spares", "1", "--max-restarts", "1")

    assert "1 spare host: c (server_id 10.0.0.9)" in said


@pytest.mark.usefixtures("lying")
def test_a_spare_beside_a_table_is_named_as_it_was_asked(command_line: CommandLine) -> None:
    value = table("1.0", 2, 8)
    (command_line.folder / "t.json").write_text(json.dumps(value))

    plan, said = launched(command_line, "--rank-table", "t.json", "--spare-hosts", "c", "--max-restarts", "1")

    assert "1 spare host: c (server_id 10.0.0.9)" in said
    assert plan["chosen"]["spares"] == "c (server_id 10.0.0.9)"
    assert "reached" not in plan  # The table is the user's: its addresses are meant.


@pytest.mark.usefixtures("lying")
def test_an_address_that_is_asked_is_not_named_twice(command_line: CommandLine) -> None:
    plan, _ = launched(command_line, "--hosts", "10.0.0.1,b")

    assert plan["reached"] == {"10.0.0.2": "b"}


def process(rank: int, host: str) -> RankProcess:
    return RankProcess(rank, host, rank, 0, 0, {}, ("true",), f"rank_{rank}.log")


@pytest.mark.parametrize("engine", ["ssh", "mpirun", "slurm"])
def test_every_engine_reaches_hosts_as_they_were_asked(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    flavours = {"mpirun": ["openmpi-4", "openmpi-5", "mpich"]}.get(engine, [engine])
    ranks = (process(0, "10.0.0.1"), process(1, "10.0.0.9"))
    plan = Plan(
        ranks, "table", engine, "/run", "/", 2,
        engine_program="ssh", supervisor=("agent",), reached={"10.0.0.9": "c"},
    )  # fmt: skip

    for flavour in flavours:
        command = engines.get(engine).of_flavour(flavour).command(plan)
        probe = engines.get(engine).of_flavour(flavour).probe(plan, "10.0.0.9", ["true"])

        assert engine == "slurm" or "10.0.0.1,c" in command
        assert "c" in probe
        assert not [word for word in (*command, *probe) if "10.0.0.9" in word]


def test_the_place_of_a_lost_host_has_the_way_to_its_spare() -> None:
    reached = {"10.0.0.1": "a", "10.0.0.2": "b"}

    add_way(reached, "10.0.0.2", SpareHost("10.0.0.9", None, "c"))
    add_way(reached, "10.0.0.1", SpareHost("10.0.0.7", None, "10.0.0.7"))

    assert reached == {"10.0.0.9": "c"}


def test_the_line_on_a_replacement_has_both_names() -> None:
    facts = {"host": "10.0.0.2", "spare": "10.0.0.9", "ranks": [1], "table_before": "1", "table_after": "2"}

    assert line({**facts, "spare_asked": "c"}).startswith(
        "c (server_id 10.0.0.9) takes the place of 10.0.0.2"
    )
    assert line(facts).startswith("10.0.0.9 takes the place of 10.0.0.2")


def test_logs_are_read_as_the_host_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {
        "hosts": ["10.0.0.9"], "reached": {"10.0.0.9": "c"},
        "processes": [{"rank": 0, "host": "10.0.0.9", "log": "rank_0.log", "argv": ["x"], "here": False}],
    }  # fmt: skip
    run = tmp_path / "20261121-101530-abcdef"
    run.mkdir()
    (run / "plan.json").write_text(json.dumps(plan))
    own_runs.note(str(run), os.environ)
    asked = list[list[str]]()
    monkeypatch.setattr(remote, "RemoteLogs", lambda _host, command, *_: asked.append(command))
    remote.run_there(index.read(str(run)), "10.0.0.9", ["logs"], "ssh")

    ((*_, way, _),) = asked
    assert way == "c"
