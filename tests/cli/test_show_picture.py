"""``hccl-tools show -o FILE.svg``: options, refusals, and what is written."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.config_maps import config_map
from tests.support.pictures import doctored, explained, record
from tests.support.plogs import Plogs
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.fixture
def run(command_line: CommandLine) -> CommandLine:
    command_line.write("job.json", table("1.0", 2, 8))
    return command_line


def test_the_suffix_is_the_format(run: CommandLine) -> None:
    done = run("show", "job.json", "-o", "topo.svg")

    assert (done.code, done.out) == (0, "")
    assert done.err == "wrote topo.svg\n"
    assert (run.folder / "topo.svg").read_text(encoding="utf-8").startswith("<svg ")


def test_a_page_is_written(run: CommandLine) -> None:
    done = run("show", "job.json", "-o", "topo.HTML", "--findings")

    assert (done.code, done.err) == (0, "wrote topo.HTML\n")
    assert (run.folder / "topo.HTML").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_picture_can_be_piped(run: CommandLine) -> None:
    assert run("show", "job.json", "-f", "svg").out.startswith("<svg ")
    assert run("show", "job.json", "-f", "svg", "-o", "-").out.startswith("<svg ")


@pytest.mark.parametrize("output", ["svg", "html"])
def test_a_terminal_gets_no_picture(run: CommandLine, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    done = run("show", "job.json", "-f", output)

    assert done.code == 2
    assert done.sentence == f"{output} is not printed on a terminal"
    assert f"use -o FILE.{output}" in done.err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["-o", "topo.png"], "-o topo.png: the suffix names no format of a picture"),
        (["--findings"], "--findings is for pictures only"),
        (["-f", "json", "-o", "x.json"], "-o is for pictures only"),
        (["-f", "svg", "-o", "job.json"], "-o job.json is the file that is read"),
        (["-o", "x.svg", "--rank", "3"], "--rank has no picture"),
        (
            ["-o", "x.svg", "--doctor", "job.json"],
            "job.json is not the JSON of `hccl-tools doctor`: findings is missing",
        ),
        (["-o", "x.svg", "--explain", "absent"], "no such file: absent"),
    ],
)
def test_what_cannot_be_is_refused(run: CommandLine, args: list[str], sentence: str) -> None:
    done = run("show", "job.json", *args)

    assert done.code == 2
    assert done.sentence == sentence
    assert run.names == ["job.json"]


def test_a_config_map_is_not_replaced_by_its_picture(run: CommandLine) -> None:
    name = run.write("cm.json", config_map(**{"hccl.json": json.dumps(table())}))
    done = run("show", name, "-f", "svg", "-o", name)

    assert done.sentence == "-o cm.json is the file that is read"


def test_a_device_without_readable_ids_is_drawn(run: CommandLine) -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["device"][1] |= {"rank_id": "x", "device_id": "y"}
    run.write("odd.json", value)

    assert run("show", "odd.json", "-o", "x.svg", "--findings").code == 0
    assert run("show", "odd.json", "-o", "x.html", "--findings").code == 0
    assert "NPU?" in (run.folder / "x.svg").read_text(encoding="utf-8")


def test_another_version_of_the_results_is_refused(run: CommandLine) -> None:
    run.write("explain.json", {**explained([]), "schema_version": 2})
    done = run("show", "job.json", "-o", "x.svg", "--explain", "explain.json")

    assert done.sentence == "explain.json is not of schema_version 1"


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        (
            "--explain",
            {**explained([]), "causes": [{"rank": "3"}]},
            'causes[0].rank: "3" is not a whole number',
        ),
        ("--explain", {**explained([]), "causes": [{"peer": []}]}, "causes[0].peer: a list is not an object"),
        ("--explain", {**explained([]), "consequences": [3]}, "consequences[0]: 3 is not an object"),
        ("--doctor", doctored({"hosts": 5}), "findings[0].hosts: 5 is not a list"),
        (
            "--doctor",
            doctored({"hosts": ["10.0.0.1"], "devices": [None]}),
            "findings[0].devices[0]: null is not a whole",
        ),
        (
            "--doctor",
            doctored({"hosts": ["10.0.0.1"], "consequence": "explodes"}),
            'findings[0].consequence: "explodes" is none of stops, may-stop, slows, note',
        ),
        ("--doctor", doctored({}), "findings[0].hosts: the list is empty"),
        (
            "--explain",
            explained([record(3, "", at={"file": "a", "line": 0})]),
            "causes[0].at.line: 0 is less than 1",
        ),
    ],
)
def test_a_damaged_record_is_named(run: CommandLine, option: str, value: dict[str, Any], why: str) -> None:
    run.write("x.json", value)
    done = run("show", "job.json", "-o", "x.svg", option, "x.json")

    assert done.code == 2
    assert why in done.sentence
    assert run.names == ["job.json", "x.json"]


def test_the_results_of_another_release_are_drawn(run: CommandLine) -> None:
    """It may have written further keys, and not have written some of today's."""
    run.write("new.json", {**explained([{**record(3, "lost"), "new": 1}]), "new": []})
    run.write(
        "old.json", {"schema_version": 1, "hosts": [], "findings": [{"check": "HCD202", "hosts": ["x"]}]}
    )
    done = run("show", "job.json", "-o", "x.svg", "--explain", "new.json", "--doctor", "old.json")

    assert (done.code, done.err) == (0, "wrote x.svg\n")


def test_all_three_are_drawn_together(run: CommandLine) -> None:
    run.write("explain.json", explained([record(3, "Rank 3: lost.")]))
    run.write("doctor.json", doctored({"hosts": ["10.0.0.1"], "devices": [3]}))
    value = table("1.0", 2, 8)
    value["server_list"][0]["device"][1]["device_ip"] = "10.0.0.300"
    run.write("wrong.json", value)
    done = run("show", "wrong.json", "-o", "x.svg", "--findings", "--explain", "explain.json",
               "--doctor", "doctor.json")  # fmt: skip

    svg = (run.folder / "x.svg").read_text(encoding="utf-8")
    assert done.code == 0
    for words in ("HCM217, cause: Rank 3: lost.", "HCD202, error: the link is DOWN", "HCC403, error: "):
        assert words in svg


def test_what_explain_prints_is_what_is_drawn(run: CommandLine) -> None:
    job = Plogs(run.folder / "logs", 16, 8).start()
    job.error(5, 5, f"socket type[0], listen on ip[{job.address(5)}] and specific port[16666] fail.")
    for rank in (0, 1, 8, 9):
        job.no_link(rank, 5, 125)
    run.write("explain.json", run("explain", "logs", "--rank-table", "job.json", "-f", "json").out)
    run("show", "job.json", "-o", "x.svg", "--explain", "explain.json")

    svg = (run.folder / "x.svg").read_text(encoding="utf-8")
    assert "HCM207, cause: Rank 5 (device 5 of 10.0.0.1" in svg
    assert svg.count('class="npu cause"') == 1
    assert svg.count('class="npu consequence"') == 4
    assert svg.count('class="npu silent"') == 11
    assert svg.count('class="failed consequence"') == 4


def test_one_server_is_drawn_alone(run: CommandLine) -> None:
    run("show", "job.json", "--server", "10.0.0.2", "-o", "x.svg")

    svg = (run.folder / "x.svg").read_text(encoding="utf-8")
    assert "10.0.0.2" in svg
    assert "server 10.0.0.1" not in svg
    assert "1 of them shown" in svg


def test_a_file_that_is_no_table_has_no_picture(run: CommandLine) -> None:
    run.write("logs.txt", "none")
    done = run("show", "--from-log", "logs.txt", "-f", "svg")

    assert done.sentence == "--from-log has no picture"


def test_a_file_that_exists_is_replaced_only_with_force(run: CommandLine) -> None:
    (run.folder / "topo.svg").write_text("mine")
    refused = run("show", "job.json", "-o", "topo.svg")
    kept = (run.folder / "topo.svg").read_text()
    replaced = run("show", "job.json", "-o", "topo.svg", "--force")

    assert (refused.code, refused.sentence, kept) == (1, "topo.svg exists", "mine")
    assert "--force replaces it, -o writes elsewhere" in refused.err
    assert (replaced.code, replaced.err) == (0, "wrote topo.svg\n")
