"""docs/en/reference/promises.md: what the last release had is there, with the same meaning."""

from __future__ import annotations

import copy
import json

import pytest

from hccl_tools.version import __version__
from tests.support.promises import HELD, ROOT, differences, promised


@pytest.fixture(scope="module")
def now() -> dict[str, dict[str, str]]:
    return promised()


@pytest.fixture
def held() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(HELD.read_text())
    return found


def test_nothing_of_the_last_release_is_missing_or_differs(
    held: dict[str, dict[str, str]], now: dict[str, dict[str, str]]
) -> None:
    assert differences(held, now) == []
    assert {kind: bool(values) for kind, values in held.items()} == dict.fromkeys(now, True)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ids", "HCC203"),
        ("ids", "HCD002"),
        ("options", "gen --force"),
        ("exit codes", "124"),
        ("variables", "HCCL_TOOLS_SSH"),
        ("JSON keys", "report /restarts"),
        ("library", "merge"),
        ("tables", "a2 2"),
    ],
)
def test_a_removal_and_another_meaning_are_found(
    held: dict[str, dict[str, str]], now: dict[str, dict[str, str]], kind: str, name: str
) -> None:
    removed, changed = copy.deepcopy(now), copy.deepcopy(now)
    del removed[kind][name]
    changed[kind][name] = "another"

    assert [one.partition(": ")[0] for one in differences(held, removed)] == [kind]
    assert [one.partition(": ")[0] for one in differences(held, changed)] == [kind]


def test_the_changelog_has_the_version_with_its_date() -> None:
    release = __version__.partition("+")[0]

    assert f"\n## [{release}] - 20" in (ROOT / "CHANGELOG.md").read_text()
