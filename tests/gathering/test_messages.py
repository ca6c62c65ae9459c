"""What travels between hosts comes back as it was, and in pieces whatever else is said between."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

import hccl_tools
from hccl_tools.errors import HcclToolsError
from hccl_tools.gathering import consistency, stdout_framing
from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.host.observation import DeviceObservation, Observation, ObservationRequest, PingServer
from hccl_tools.host.selection import Wanted
from hccl_tools.host.site_defaults import Site
from hccl_tools.host.survey import SurveyRequest, survey


@pytest.mark.parametrize("product", ["910a", "a2", "a3", "300i"])
def test_the_facts_of_a_host_survive_the_way(product: str) -> None:
    answer = SurveyAnswer("node1", survey(SurveyRequest(simulate=product)), machine="m")

    assert SurveyAnswer.from_json(answer.to_json(), "node1") == answer
    assert answer.to_json().isascii()


def test_a_task_survives_the_way_but_not_this_host_s_environment() -> None:
    site = Site(environ={"PATH": "/secret"}, hccn_tool="/opt/hccn_tool", tool_timeout=3)
    request = SurveyRequest(Wanted(devices="0-7"), product="a2", site=site)
    task = SurveyTask("node1", 2, request, 9.0, collect="/f")

    text = task.to_json()

    assert "/secret" not in text
    assert SurveyTask.from_json(text) == task._replace(
        request=request._replace(site=site._replace(environ=Site().environ))
    )


def test_what_doctor_asks_and_hears_survives_the_way() -> None:
    task = SurveyTask("node1", 2, ObservationRequest((0, 4), ("10.0.0.1",), ports=(8118,)))
    device = DeviceObservation(4, ("10.0.0.4",), link="UP", tls=0)
    seen = Observation(names=("node1",), nodes=(0, 4), devices=(device,), limits={"nofile": 1024})
    answer = SurveyAnswer("node1", seen=seen)

    assert SurveyTask.from_json(task.to_json()) == task
    assert SurveyAnswer.from_json(answer.to_json(), "node1") == answer
    assert not answer.has_failed


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"form": 2}', '{"form": 1, "facts": {"devices": 1}}'])
def test_an_answer_in_another_form_is_one_that_says_so(text: str) -> None:
    answer = SurveyAnswer.from_json(text)

    assert answer.facts is None
    assert answer.message.startswith("the answer of ? cannot be read: ")


def test_an_error_travels_as_text() -> None:
    answer = SurveyAnswer("node1", message="no Ascend device", hint="name them")

    told = json.loads(answer.to_json())

    assert (told["message"], told["hint"], told["version"]) == (
        "no Ascend device",
        "name them",
        hccl_tools.__version__,
    )


def test_texts_arrive_whole_in_pieces_that_slurm_keeps_whole() -> None:
    stdout = io.StringIO()
    long = "x" * 5000
    with contextlib.redirect_stdout(stdout):
        stdout_framing.began("n1")
        stdout_framing.emit("n1", long)
        stdout_framing.emit("n2", "y")
    written = stdout.getvalue().splitlines(keepends=True)
    output = stdout_framing.EngineOutput(["n1", "n2", "n3"])

    for line in [*written[::-1], "srun: a word between\n", "hccl-tools-gather n3 1/2 half\n"]:
        output.add_line(line)

    assert output.texts() == {"n1": long, "n2": "y"}
    assert output.began == {"n1"}
    assert list(output.other) == [(None, "srun: a word between\n")]
    assert max(map(len, written)) < 1024


def answer_of(host: str, simulate: str) -> SurveyAnswer:
    return SurveyAnswer(host, survey(SurveyRequest(simulate=simulate)))


def test_hosts_with_different_products_are_named_with_where_that_is_from() -> None:
    answers = [answer_of("n1", "910a"), answer_of("n2", "910a:2"), answer_of("n3", "a2:3")]

    with pytest.raises(HcclToolsError) as refused:
        consistency.check(answers)

    assert "n3: a2 (--simulate)" in refused.value.message
    assert "n[1-2]: 910a" in refused.value.message
    assert "leave n3 out" in (refused.value.hint or "")


def test_one_host_under_two_names_is_refused() -> None:
    one = answer_of("n1", "910a")._replace(machine="m")
    other = answer_of("alias", "910a:2")._replace(machine="m")

    with pytest.raises(HcclToolsError, match="n1 and alias are the same host"):
        consistency.check([one, other])


def test_two_hosts_with_one_address_are_refused() -> None:
    with pytest.raises(HcclToolsError, match=r"n1 and n2 both use the address 127\.0\.0\.1"):
        consistency.check([answer_of("n1", "910a"), answer_of("n2", "910a")])


def test_hosts_are_sorted_by_address_as_a_number() -> None:
    facts = [survey(SurveyRequest(simulate=f"910a:{machine}")) for machine in (10, 2, 1)]

    assert [one.server_id for one in consistency.by_address(facts)] == [
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.10",
    ]


def test_a_long_request_fits_an_argument_of_linux() -> None:
    hosts = [f"{at // 250}.{at % 250}" for at in range(1024)]
    servers = tuple(
        PingServer((f"10.0.{host}",), "", tuple((device, f"10.{device + 1}.{host}") for device in range(8)))
        for host in hosts
    )
    task = SurveyTask("node1", 3, ObservationRequest(ping=servers, addresses=("a",)))

    text = task.to_json()

    assert len(text) < 1 << 16
    assert SurveyTask.from_json(text) == task
