"""The order of the tests, which another seed changes, and the engines that a run tries.

The files of a unit (see ``dealing``) and the tests of a file come in random order. The files are not mixed,
so that each makes its own fixtures once.

A test marked ``rotates`` runs with the first value of the named parameter and with one other, which the seed
chooses; ``--all-starts`` keeps all.
"""

from __future__ import annotations

import random

import pytest

from tests.suite import dealing

_LARGEST_SEED = 1 << 32


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("order of the tests")
    group.addoption("--seed", type=int, help="of the order and the engines of this run")
    group.addoption("--all-starts", action="store_true", help="try every engine with every fault")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.option.seed = config.workerinput["seed"]
    elif config.option.seed is None:
        config.option.seed = random.SystemRandom().randrange(_LARGEST_SEED)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Give a worker the seed, as all must have the tests in the same order."""
    node.workerinput["seed"] = node.config.option.seed  # type: ignore[attr-defined]


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of the tests: --seed {config.option.seed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop what this run does not try, and put the rest in the order of the seed."""
    seed = config.option.seed
    if not config.option.all_starts:
        kept = _rotated(items, seed)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    _shuffle(items, random.Random(seed))  # noqa: S311  (repeatable, not secret)
    dealing.deal(config, items)


def _shuffle(items: list[pytest.Item], chance: random.Random) -> None:
    """Shuffle the files, and the tests of each."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.split("::")[0], []).append(item)
    shuffled = list(files.values())
    chance.shuffle(shuffled)
    for tests in shuffled:
        chance.shuffle(tests)
    items[:] = [item for tests in shuffled for item in tests]


def _rotated(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """Return the tests of this run: of each that rotates, the first value and another."""
    kept, values = set(items), dict[str, list[str]]()
    for item in items:
        if name := _rotating(item):
            known = values.setdefault(_function_of(item), [])
            if name[1] not in known:
                known.append(name[1])
    for item in items:
        if name := _rotating(item):
            first, *others = values[_function_of(item)]
            chosen = random.Random(f"{seed} {_function_of(item)}").choice(others or [first])  # noqa: S311
            if name[1] not in {first, chosen}:
                kept.discard(item)
    return kept


def _rotating(item: pytest.Item) -> tuple[str, str] | None:
    """Return the parameter of a test that rotates, and its value."""
    mark, call = item.get_closest_marker("rotates"), getattr(item, "callspec", None)
    return (mark.args[0], str(call.params[mark.args[0]])) if mark and call else None


def _function_of(item: pytest.Item) -> str:
    return item.nodeid.split("[")[0]
