"""Other versions of Python on this machine: on PATH, or installed by pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def python(version: str) -> str:
    """Return an interpreter of this version (``3.8``), or skip the test."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    installed = [str(path) for path in sorted(pyenv.glob(f"{version}*/bin/{name}"))]
    for found in [shutil.which(name), *installed]:
        # A shim of pyenv fails if its version is not the selected one.
        if found and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
            return found
    pytest.skip(f"no {name} here")
