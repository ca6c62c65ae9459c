"""The command line inside the test's own process: what it printed, what it left behind, its exit code."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import __main__ as program
from hccl_tools import cli, formats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hccl_tools.table.model import RankTable


@dataclass(frozen=True)
class Done:
    """One command that has ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one sentence of a refusal."""
        (line,) = [line for line in self.err.splitlines() if line.lower().startswith("error: ")]
        return line.partition(": ")[2]


@dataclass(frozen=True)
class CommandLine:
    """Runs commands in a folder of their own."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *args: str) -> Done:
        self.capsys.readouterr()
        code = cli.run(cli.cli, args, "hccl-tools")
        out, err = self.capsys.readouterr()
        assert "Traceback" not in err
        return Done(code, out, err)

    def write(self, name: str, value: Any) -> str:
        """Write a file and return its name."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value, indent=4), encoding="utf-8")
        return name

    def read(self, name: str) -> RankTable:
        return formats.read(json.loads((self.folder / name).read_text(encoding="utf-8")))

    @property
    def names(self) -> list[str]:
        """The names of all files, hidden ones too."""
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandLine]:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield CommandLine(folder, capsys)
    gc.enable()  # large tables are handled without it


@contextmanager
def _surroundings(args: list[str], environ: Mapping[str, str], folder: Path | None) -> Iterator[None]:
    """Give this process the arguments, variables and current folder of another; take them back at the end."""
    argv, variables, before = sys.argv, dict(os.environ), os.getcwd()  # noqa: PTH109  (the folder may be gone)
    sys.argv = [str(program.__file__), *args]
    os.environ.clear()
    os.environ.update(environ)
    if folder is not None:
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)
        sys.argv = argv
        gc.enable()


def run_here(
    *args: str, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m hccl_tools`` as far as a process of its own does not matter, without starting one.

    The start of a process takes longer than most commands.
    """
    written = [io.BytesIO(), io.BytesIO()]
    streams = [io.TextIOWrapper(one, encoding="utf-8", write_through=True) for one in written]
    words = cli.original_arguments(list(args))
    surroundings = _surroundings(words, os.environ.copy() if environ is None else environ, folder)
    with surroundings, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        code = cli.run(cli.cli, words, "hccl-tools")
    out, err = (one.getvalue().decode() for one in written)
    assert "Traceback" not in err
    return subprocess.CompletedProcess(["hccl-tools", *args], code, out, err)
