"""Answers that a broken or hostile host may give: each is that host's failure and nothing else."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.gathering import coordinator, distribution, stdout_framing
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.gathering.table_copy import FileState, pack
from hccl_tools.host.observation import (
    DeviceObservation,
    NpuObservation,
    Observation,
    ObservationRequest,
)
from hccl_tools.host.survey import SurveyRequest, survey
from tests.support.bulk import for_each

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

PAYLOADS: list[Any] = [
    "0;>PWN-$(id -un);#", "", "\n", "\x1b[31m", -1, 1.5, True, None, [], {}, [[]], 10**30, "x" * (1 << 16),
]  # fmt: skip
DEVICE, NPU = DeviceObservation(0, ("10.0.0.1",)), NpuObservation(0, 0, 0, "OK")
SEEN = json.loads(
    SurveyAnswer("h1", seen=Observation(devices=(DEVICE,), npus=(NPU,), product="a2")).to_json()
)
FACTS = {
    product: json.loads(SurveyAnswer("h1", survey(SurveyRequest(simulate=product))).to_json())
    for product in ("a2", "a3", "a5")
}
FILE = json.loads(SurveyAnswer("h1", file=FileState("file", "0" * 64, 0o640)).to_json())
EXAMPLE = {
    "version": "1.0", "server_count": "1", "status": "completed",
    "server_list": [
        {"server_id": "10.0.0.1", "device": [
            {"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"}]}],
}  # fmt: skip
ANSWERS = [SEEN, *FACTS.values(), FILE]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(inside)[:40]:
        yield from places(one, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@pytest.mark.slow
@for_each(ANSWERS, name=lambda answer: ",".join(answer)[:60])
def test_each_field_of_another_kind_is_read_or_refused(answer: dict[str, Any]) -> None:
    for path in places(answer):
        for new in PAYLOADS:
            found = SurveyAnswer.from_json(json.dumps(changed(answer, path, new)), "h1")

            assert found.host == "h1"
            assert found.has_failed or all(
                type(one.device) is int for one in (found.seen or Observation()).devices
            )


@pytest.mark.parametrize("field", ["devices", "npus"])
def test_a_command_in_place_of_a_device_is_refused(field: str) -> None:
    text = json.dumps(changed(SEEN, ("seen", field, 0, "device"), PAYLOADS[0]))

    answer = SurveyAnswer.from_json(text, "h1")

    assert answer.has_failed
    assert answer.message.startswith(f"the answer of h1 cannot be read: seen.{field}[0].device: ")


@pytest.mark.parametrize("text", ["[" * 200_000, "1" * 5000, '{"form": 1, "message": 5}', "\x00", '"\ud800"'])
def test_no_text_ends_in_a_traceback(text: str) -> None:
    assert SurveyAnswer.from_json(text, "h1").message.startswith("the answer of h1 cannot be read: ")


@pytest.mark.parametrize("name", ["h2", "", "\n"])
def test_a_host_has_the_name_that_was_asked(name: str) -> None:
    assert SurveyAnswer.from_json(json.dumps({**SEEN, "host": name}), "h1").host == "h1"


@pytest.mark.parametrize("server_id", ["x;$(id)", "0.0.0.0", "10.0.0.1%eth0", "\n"])
def test_a_server_that_is_no_address_is_refused(server_id: str) -> None:
    answer = SurveyAnswer.from_json(json.dumps(changed(FACTS["a2"], ("facts", "server_id"), server_id)), "h1")

    assert answer.has_failed
    assert "server_id" in answer.message
    assert "is not the address of a host" in answer.message


def test_an_answer_to_another_question_is_a_failure_of_its_host() -> None:
    answer = SurveyAnswer.from_json(json.dumps(FILE), "h1")

    assert coordinator._fitting(answer, ObservationRequest()).message == (
        'the answer of h1 cannot be read: it has "file" and not "seen"'
    )


def test_the_number_of_a_piece_is_short() -> None:
    output = stdout_framing.EngineOutput(["h1"])

    output.add_line(f"hccl-tools-gather h1 {'1' * 5000}/1 x\n")

    assert output.texts() == {}


@pytest.mark.parametrize(
    ("label", "first", "texts"),
    [
        (stdout_framing.SRUN_LABEL, 0, ["0: ", "9: ", "0: 1: ", " 1: "]),
        (
            stdout_framing.MPIRUN_LABEL,
            1,
            [
                "[1,1]<stdout>:",
                "[1,0]<stdout>:",
                "[1,1]<stderr>: [1,2]<stdout>:",
                "[prterun-h-7@1,2]<stdout>: ",
            ],
        ),
    ],
    ids=["srun", "mpirun"],
)
def test_a_label_of_the_engine_decides_who_sent_a_line(
    label: re.Pattern[str], first: int, texts: list[str]
) -> None:
    output = stdout_framing.EngineOutput(["h1", "h2"], label=label, first=first)
    of_first, of_none, nested, of_second = texts

    for line in [
        f"{of_first}hccl-tools-gather h2 began\n",
        f"{of_first}hccl-tools-gather h2 1/1 forged\n",
        "hccl-tools-gather h2 1/1 forged\n",
        f"{of_none}hccl-tools-gather h2 1/1 forged\n",
        f"{nested}hccl-tools-gather h2 1/1 forged\n",
        f"{of_second}hccl-tools-gather h2 1/1 own\n",
    ]:
        output.add_line(line)

    assert output.texts() == {"h2": "own"}
    assert output.impostors == {"h1": "h2"}
    assert output.began == set()


def test_names_that_were_not_asked_take_no_memory() -> None:
    output = stdout_framing.EngineOutput(["h1"])

    for number in range(20_000):
        output.add_line(f"hccl-tools-gather x{number} 1/1 text\n")

    assert output.texts() == {}
    assert len(output.other) == 10_000


@pytest.mark.parametrize("second", ["hccl-tools-gather h1 1/1 false\n", "hccl-tools-gather h1 2/2 true\n"])
def test_a_host_in_whose_name_two_answers_came_has_none(second: str) -> None:
    """A daemon of the engine on another host can write in the name of each process."""
    output = stdout_framing.EngineOutput(["h1", "h2"])
    for line in ("hccl-tools-gather h1 1/1 true\n", "hccl-tools-gather h2 1/1 true\n"):
        output.add_line(line)
    output.add_line("hccl-tools-gather h2 1/1 true\n")

    output.add_line(second)

    assert output.contradicted == {"h1"}
    assert output.texts() == {"h2": "true"}


@pytest.mark.parametrize(("pieces", "is_flooded"), [(1 << 12, False), ((1 << 12) + 1, True)])
def test_a_host_that_sends_too_much_has_no_answer(pieces: int, is_flooded: bool) -> None:
    output = stdout_framing.EngineOutput(["h1"])
    piece = "x" * 1023

    for number in range(1, pieces + 1):
        output.add_line(f"hccl-tools-gather h1 {number}/{pieces} {piece}\n")

    assert (output.flooded == {"h1"}) is is_flooded
    assert output.text("h1") == (None if is_flooded else piece * pieces)


@pytest.mark.parametrize(("label", "of_engine"), [("0: ", False), ("", True)])
def test_lines_that_are_no_answer_are_counted_for_the_host_or_the_engine(
    label: str, *, of_engine: bool
) -> None:
    output = stdout_framing.EngineOutput(["h1", "h2"], label=stdout_framing.SRUN_LABEL)
    output.add_line("0: hccl-tools-gather h1 1/1 text\n")
    output.add_line("1: hccl-tools-gather h2 1/1 text\n")

    for _ in range(1 << 12):
        output.add_line(f"{label}{'x' * 1023}\n")

    assert output.flooded == set()
    assert not output.is_flooded
    output.add_line(f"{label}x\n")
    assert output.is_flooded is of_engine
    assert output.texts() == ({"h2": "text"} if not of_engine else {"h1": "text", "h2": "text"})


def test_pieces_without_text_take_little_memory() -> None:
    output = stdout_framing.EngineOutput(["h1", "h2"])

    def used(numbers: Iterable[int]) -> int:
        tracemalloc.start()
        try:
            for number in numbers:
                output.add_line(f"hccl-tools-gather h1 {number}/999999 \n")
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    assert used(range(20_000)) < 1 << 18
    output.add_line("hccl-tools-gather h1 1/1 text\n")
    output.add_line("hccl-tools-gather h2 1/1 text\n")
    assert output.flooded == {"h1"}
    assert output.texts() == {"h2": "text"}


def test_contents_that_do_not_have_their_digest_speak_for_no_other_host() -> None:
    data = json.dumps(EXAMPLE).encode()
    copy = distribution.Copy(b"{}", "f", "/t")
    known: dict[str, str] = {}
    digest = hashlib.sha256(data).hexdigest()
    states = (FileState("file", digest, content=pack(content)) for content in (b"{}", data))

    first, second = (
        distribution._judged(SurveyAnswer(host), seen, copy, known)
        for host, seen in zip(("h1", "h2"), states, strict=True)
    )

    assert first.fingerprint == ""
    assert second.fingerprint
