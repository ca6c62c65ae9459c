"""``inspect`` is loaded when a command first uses it, and is then the usual module."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.jobs import LONG

PREPARED = """\
import sys
from hccl_tools.__main__ import prepare
prepare()
import click, inspect
assert "ast" not in sys.modules
"""
USES = {
    "a name": "assert inspect.cleandoc(' a') == 'a'",
    "an import of a name": "from inspect import cleandoc; assert cleandoc(' a') == 'a'",
    "a help text": "click.Option(['--x'], help=' a')",
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
