"""The page of the library is true: its examples run."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import hccl_tools

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "library.md").read_text()


def test_its_examples_run() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))

    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert code.count("assert ") > 5


def test_every_argument_and_attribute_is_on_it() -> None:
    arguments = set(inspect.signature(hccl_tools.validate).parameters) - {"host"}
    reported = {name for name in dir(hccl_tools.Report) if not name.startswith("_")} - {"document", "file"}

    assert [name for name in arguments | reported if f"`{name}`" not in PAGE] == []
