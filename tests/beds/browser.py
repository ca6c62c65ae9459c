"""A headless Chromium, driven by puppeteer-core from npm; axe-core looks for what keeps people out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = Path(__file__).parents[2] / ".venv" / "browser" / "node_modules"
_DRIVER = Path(__file__).with_name("browser.js")


@dataclass(frozen=True)
class Browser:
    """Opens pages; the driver is one process for all tests."""

    driver: subprocess.Popen[str]

    def __call__(self, file: Path, *steps: tuple[str, str]) -> list[Any]:
        """Open a file, run steps (see browser.js), and return the results.

        The page may neither write to the console nor ask for another file.
        """
        assert self.driver.stdin is not None
        assert self.driver.stdout is not None
        first = [step for step in steps if step[0] == "theme"]  # before the page starts
        json.dump([*first, ("open", file.as_uri()), *steps], self.driver.stdin)
        self.driver.stdin.write("\n")
        self.driver.stdin.flush()
        answer = json.loads(self.driver.stdout.readline())
        assert "error" not in answer, answer["error"]
        assert answer["complaints"] == []
        return list(answer["results"])


def missing() -> str:
    """Return what is not installed, "" for nothing."""
    absent = [program for program in ("chromium", "node") if shutil.which(program) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    absent = [module for module in ("puppeteer-core", "axe-core") if not (MODULES / module).is_dir()]
    return f"not installed: {', '.join(absent)} (`make .venv/browser/.installed`)" if absent else ""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the browser; the test is left out without Chromium, Node.js or the two modules."""
    if why := missing():
        pytest.skip(f"bed browser: {why}")
    with subprocess.Popen(
        ["node", str(_DRIVER), str(shutil.which("chromium"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "NODE_PATH": str(MODULES)},
        text=True,
    ) as driver:
        yield Browser(driver)
