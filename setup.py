"""The rest is in pyproject.toml: a build notes the commit that it was made from, which its version names."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent


def note_commit(folder: str) -> None:
    """Write the commit into a copy of the package."""
    source = HERE / "hccl_tools" / "version.py"
    text = runpy.run_path(str(source))["stamped"](source.read_text(encoding="utf-8"))
    copy = Path(folder, "hccl_tools", "version.py")
    copy.unlink()  # It may be a hard link to the source.
    copy.write_text(text, encoding="utf-8")


class BuildPy(build_py):
    """Copies the package, except for an editable install, whose commit changes."""

    def run(self) -> None:
        """Copy the package, and note the commit in the copy."""
        super().run()
        if not self.editable_mode:
            note_commit(self.build_lib)


class Sdist(sdist):
    """Collects the sources."""

    def make_release_tree(self, base_dir: str, files: Iterable[str]) -> None:
        """Copy the sources, and note the commit in the copy."""
        super().make_release_tree(base_dir, list(files))
        note_commit(base_dir)


setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
