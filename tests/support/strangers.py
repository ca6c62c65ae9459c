"""Another user of the host, who may write to a directory in which jobs of ours keep their logs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

import hccl_tools
from hccl_tools.runs import parents

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOBODY = 65534


@dataclass(frozen=True)
class Stranger:
    """Runs programs as another user; ``folder`` is open to all, as a careless shared disk is."""

    folder: Path
    interpreter: str
    user: int = _NOBODY

    def as_user(self, user: int) -> Stranger:
        """Return the same for a further user, whose jobs the stranger attacks."""
        return replace(self, user=user)

    def run(self, *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program to its end in the shared folder."""
        return subprocess.run(
            argv, cwd=self.folder, user=self.user, group=self.user, extra_groups=[], text=True, timeout=60,
            check=False, capture_output=True, env=self.environ(), **options,
        )  # fmt: skip

    def environ(self) -> dict[str, str]:
        """Return the variables for a program of this user."""
        # The interpreter need not be that of these tests, whose folder may be closed to others.
        found = [str(Path(module.__file__ or "").parent.parent) for module in (hccl_tools, click)]
        return {**os.environ, "TMPDIR": str(self.folder), "PYTHONPATH": os.pathsep.join(found)}

    def python(self, script: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a Python script; it has to end well."""
        done = self.run(self.interpreter, "-I", "-c", script, *args)
        assert done.returncode == 0, done.stderr
        return done

    def tools(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run ``hccl-tools``."""
        return self.run(self.interpreter, "-m", "hccl_tools", *args)


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stranger]:
    """Another user; our jobs put their logs into the shared folder in spite of that user."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        monkeypatch.setenv(parents.TRUSTED_VARIABLE, folder)
        for interpreter in (sys.executable, "/usr/bin/python3"):
            with suppress(OSError):
                found = Stranger(Path(folder), interpreter)
                if found.run(interpreter, "-c", "import hccl_tools, click").returncode == 0:
                    yield found
                    return
        pytest.skip("no Python that another user may run")
