"""What hosts, peers and other users may send is read or refused: no traceback, no escape, no command.

``benchmarks/mutated_answers.py`` tries more of the same.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import HcclToolsError
from tests.support import hostile_inputs
from tests.support.mutations import TEXTS, mutated, unquoted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.hostile_inputs import Target

_NAMES = (
    "facts for gen",
    "observations for doctor",
    "files for distribute",
    "logs for explain",
    "stacks",
    "plan.json",
    "report.json",
    "run_dirs.json",
    "hosts.jsonl",
    "results of doctor",
    "results of explain",
    "messages of the protocol",
    "frames of the handshake",
)
_SEED = 20261126
_TURNS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    hostile_inputs.make_folder(made)
    return made


@pytest.fixture(scope="module")
def targets(folder: Path) -> dict[str, Target]:
    return {target.name: target for target in hostile_inputs.targets(folder)}


def test_all_kinds_of_input_are_tried(targets: dict[str, Target]) -> None:
    assert tuple(targets) == _NAMES


@pytest.mark.parametrize("name", _NAMES)
def test_what_is_not_changed_is_read(targets: dict[str, Target], folder: Path, name: str) -> None:
    target = targets[name]
    for seed in target.seeds:
        written = target.read(json.dumps(seed), 0, folder)

        assert hostile_inputs.problem(written) is None
        assert "cannot be read" not in written.text


@pytest.mark.slow
@pytest.mark.parametrize("name", _NAMES)
def test_what_is_changed_is_read_or_refused(targets: dict[str, Target], folder: Path, name: str) -> None:
    target = targets[name]
    for turn in range(_TURNS):
        random = Random(f"{_SEED}/{name}/{turn}")  # noqa: S311  (repeatable)
        text = mutated(random.choice(target.seeds), random)
        try:
            written = target.read(text, turn, folder)
        except HcclToolsError:
            continue

        assert hostile_inputs.problem(written) is None, text[:4000]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("echo '$(PWN)'\n# $(PWN)\necho PWN a-PWN\n", None),
        ("echo 'a'\"'\"'$(PWN)'\n", None),
        ("echo ok\necho $(PWN)\n", "echo $(PWN)"),
        ('echo "$(PWN)"\n', 'echo "$(PWN)"'),
        ("# comment\nPWN\n", "PWN"),
        ("echo '';PWN\n", "echo '';PWN"),
        ("echo a#'b\n;PWN'\n", None),
    ],
)
def test_a_text_that_is_not_quoted_is_found(script: str, line: str | None) -> None:
    assert unquoted(script) == line


def test_a_control_character_is_found() -> None:
    harmful = [text for text in TEXTS if not text.isprintable() and text.strip("\n") == text]

    assert all(hostile_inputs.problem(hostile_inputs.Written(f"a {text}")) for text in harmful)
    assert hostile_inputs.problem(hostile_inputs.Written("a\tb\n")) is None
