"""What a seed changes: the order of the tests, and the engines that a run tries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Twenty tests in a file, one that rotates over four engines, and one that uses a bed.
TESTS = """
import pytest

@pytest.fixture
def two_hosts():
    pass

@pytest.mark.parametrize("number", range(20))
def test_number(number):
    pass

@pytest.mark.rotates("engine")
@pytest.mark.parametrize("engine", ["ssh", "a", "b", "c"])
@pytest.mark.parametrize("fault", ["cut", "kill"])
def test_engine(engine, fault):
    pass

def test_of_a_bed(two_hosts):
    pass
"""


#: Each test starts pytest.
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    rotates(name): of this suite\n")
    return tmp_path


def collected(folder: Path, *options: str) -> list[str]:
    """Return the names of the tests in the order in which they would run."""
    plugins = ["-p", "tests.suite.dealing", "-p", "tests.suite.order", "-p", "no:hypothesispytest"]
    command = [sys.executable, "-m", "pytest", *plugins, "--collect-only", "-q", *options, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_the_same_seed_gives_the_same_order_and_another_seed_another_one(folder: Path) -> None:
    first, again, other = (collected(folder, "--seed", seed) for seed in ("1", "1", "2"))
    numbers = [name for name in first if "number" in name]

    assert first == again
    assert numbers != [name for name in other if "number" in name]
    assert sorted(numbers) == sorted(f"test_number[{number}]" for number in range(20))


def test_a_fault_is_tried_with_the_first_engine_and_one_other(folder: Path) -> None:
    engines = [
        {
            name.partition("-")[2].rstrip("]")
            for name in collected(folder, "--seed", str(seed))
            if "engine" in name
        }
        for seed in range(1, 4)
    ]

    assert all("ssh" in each and len(each) == 2 for each in engines)
    assert len(set.union(*engines)) > 2


def test_all_engines_are_tried_on_request(folder: Path) -> None:
    found = [name for name in collected(folder, "--seed", "1", "--all-starts") if "engine" in name]

    assert len(found) == 8
