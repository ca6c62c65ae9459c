"""How a command imports: modules of Python's library on first use, and its own ones without a search."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

import pytest

import hccl_tools.document
from hccl_tools.imports import OwnModules
from tests.support.jobs import LONG

if TYPE_CHECKING:
    from pathlib import Path

PREPARED = """\
import sys
from hccl_tools.__main__ import prepare
prepare()
import click, inspect
assert "ast" not in sys.modules
"""
USES = {
    "a name": "assert inspect.getdoc(inspect)",
    "an import of a name": "from inspect import getdoc; assert getdoc(inspect)",
    "a text of two lines": "assert inspect.cleandoc(' a\\n  b') == 'a\\nb'",
    "two texts of two lines": "from inspect import cleandoc as one\n"
    "assert one('a\\n  b') == one(' a\\n b') == 'a\\nb'",
    "a name that is missing": "assert not hasattr(inspect, 'missing')",
    "many threads": "import threading; found = []\n"
    "all_ = [threading.Thread(target=lambda: found.append(inspect.signature)) for _ in range(8)]\n"
    "[one.start() for one in all_]; [one.join() for one in all_]; assert len(found) == 8",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_inspect_is_loaded_by(use: str) -> None:
    after = "\nassert inspect.ismodule(sys.modules['inspect']) and 'ast' in sys.modules and inspect.__file__"
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + use + after],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("text", ["a", " a ", "\u3000a", " ", "", "a\r b"])
def test_the_help_of_an_option_loads_no_inspect(text: str) -> None:
    program = (
        f"click.Option(['--x'], help={text!r}); found = inspect.cleandoc({text!r})\n"
        "assert 'ast' not in sys.modules; inspect.signature\n"
        f"assert 'ast' in sys.modules and inspect.cleandoc({text!r}) == found"
    )
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + program], capture_output=True, text=True, check=False, timeout=LONG
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_platform_is_loaded_only_for_more_than_the_name_of_the_system() -> None:
    program = (
        "import platform; first = platform.system(); assert '__file__' not in vars(platform)\n"
        "assert platform.machine(); assert '__file__' in vars(platform)\n"
        "assert platform.system() == first == 'Linux'"
    )
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + program], capture_output=True, text=True, check=False, timeout=LONG
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["errors", "document", "document.reading", "missing"])
def test_own_modules_are_found_as_python_finds_them(name: str) -> None:
    path = list(hccl_tools.document.__path__ if "." in name else hccl_tools.__path__)
    found, usual = (finder.find_spec(f"hccl_tools.{name}", path) for finder in (OwnModules, PathFinder))

    assert found == usual  # Compares all but where the bytecode is, which is asked below.
    assert found is None or (usual is not None and found.cached == usual.cached)


def test_other_modules_and_those_of_an_archive_are_left_to_python(tmp_path: Path) -> None:
    assert OwnModules.find_spec("json.decoder", list(__import__("json").__path__)) is None
    assert OwnModules.find_spec("hccl_tools") is None
    assert OwnModules.find_spec("hccl_tools.errors", [str(tmp_path / "tools.pyz/hccl_tools")]) is None
