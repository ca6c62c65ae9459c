"""The page of the library is true: its examples run."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import hccl_tools

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "en" / "reference" / "library.md").read_text()


def test_its_examples_run() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))

    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert code.count("assert ") > 5


def test_every_argument_and_attribute_is_on_it() -> None:
    arguments = set(inspect.signature(hccl_tools.validate).parameters) - {"host", "begin"}
    reported = {name for name in dir(hccl_tools.Report) if not name.startswith("_")}
    reported -= {"document", "file", *dir(tuple)}

    assert [name for name in arguments | reported if f"`{name}`" not in PAGE] == []


def test_rank_table_merge_and_convert_are_on_it_whole() -> None:
    attributes = {name for name in dir(hccl_tools.RankTable) if not name.startswith("_")}
    attributes |= {field.name for field in dataclasses.fields(hccl_tools.RankTable)}
    arguments = set(inspect.signature(hccl_tools.merge).parameters)
    arguments |= set(inspect.signature(hccl_tools.convert).parameters)

    assert [name for name in attributes if not re.search(rf"`{name}[`(]", PAGE)] == []
    assert [name for name in arguments if not re.search(rf"\b{name}\b", PAGE)] == []
    assert [name for name in hccl_tools.__all__ if name != "__version__" and name not in PAGE] == []


def test_spawn_and_current_rank_are_on_it_whole() -> None:
    from hccl_tools.launch import current
    from hccl_tools.launch.spawn import options
    from hccl_tools.launch.spawn.context import SpawnContext

    arguments = set(inspect.signature(hccl_tools.spawn).parameters) - {"func", "args", "options"}
    supported = set(options.SUPPORTED)
    attributes = {name for name in vars(SpawnContext) if not name.startswith("_")}
    attributes -= {"wait_for", "wait_for_start", "at_exit"}
    sources = {launcher.rank for launcher in current._LAUNCHERS} | set(hccl_tools.CurrentRank._fields)

    names = arguments | supported | attributes | sources
    assert [name for name in names if not re.search(rf"`{name}[`(]", PAGE)] == []
