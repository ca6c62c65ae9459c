"""No process of hccl-tools runs the modules that another user has put into the current folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools import own_python
from hccl_tools.notation.phrases import as_root
from hccl_tools.version import IMPORT_ROOT
from tests.support.import_graph import MODULES

#: What a stranger's module does: it says that it has run.
PLANTED = "open({mark!r} + '.' + __name__, 'w').close()\n"
#: Names that Python, hccl-tools or the frameworks import.
NAMES = (*sorted(sys.stdlib_module_names - set(sys.builtin_module_names)), "hccl_tools", "click", "mindspore")
#: Prints what ``python -m`` has imported before it runs the module that it names.
OF_PYTHON = "import runpy, pkgutil, sys; print(*sys.modules)"
TABLE = """{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{
 "server_id": "127.0.0.1", "device": [{"device_id": "0", "device_ip": "10.0.0.1", "rank_id": "0"}],
 "host_nic_ip": "reserve"}]}"""


class Folder:
    """A folder in which every name is planted; the program, the table and the logs are elsewhere."""

    def __init__(self, tmp_path: Path) -> None:
        self.home, self.shared = tmp_path / "home", tmp_path / "shared"
        self.home.mkdir()
        self.shared.mkdir()
        (self.home / "hccl-tools").write_text("from hccl_tools.__main__ import main\nmain()\n")
        (self.home / "train.py").write_text("print('trained')\n")
        (self.home / "t.json").write_text(TABLE)
        self.logs = ["--log-dir", f"{self.home}/log"]

    def plant(self, names: tuple[str, ...] = NAMES) -> None:
        for name in names:
            (self.shared / f"{name}.py").write_text(PLANTED.format(mark=str(self.home / "ran")))

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": IMPORT_ROOT}
        return subprocess.run(
            [sys.executable, *argv],
            cwd=self.shared,
            env=variables,
            text=True,
            capture_output=True,
            check=False,
        )

    def tools(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run the installed script: its first entry of sys.path is its own folder."""
        return self.run(f"{self.home}/hccl-tools", *args)

    @property
    def ran(self) -> list[str]:
        return sorted(path.suffix[1:] for path in self.home.glob("ran.*"))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ssh", pytest.param("mpirun", marks=pytest.mark.mpi)])
def test_an_engine_starts_no_planted_module(folder: Folder, engine: str) -> None:
    folder.plant()

    done = folder.tools(
        "launch", "--engine", engine, "--cpu", "--rank-table", f"{folder.home}/t.json", "--start", "table",
        *folder.logs, f"{folder.home}/train.py",
    )  # fmt: skip

    assert (done.returncode, folder.ran) == (0, []), done.stderr
    assert "trained" in done.stdout


@pytest.mark.slow
def test_a_series_starts_no_planted_module(folder: Folder) -> None:
    folder.plant()

    done = folder.tools(
        "scaling", "run", "--nproc-per-node", "1,2", "-o", f"{folder.home}/s.json", "--",
        "--cpu", "--no-table", "--start", "table", *folder.logs, f"{folder.home}/train.py",
    )  # fmt: skip

    assert (done.returncode, folder.ran) == (0, []), done.stderr


@pytest.mark.slow
def test_spawn_starts_no_planted_module(folder: Folder) -> None:
    (folder.home / "job.py").write_text(
        "import hccl_tools\n"
        "def work(): print('worked')\n"
        "if __name__ == '__main__':\n"
        f"    hccl_tools.spawn(work, nprocs=1, cpu=True, log_dir={folder.logs[1]!r})\n"
    )
    folder.plant()

    done = folder.run(f"{folder.home}/job.py")

    assert (done.returncode, folder.ran) == (0, []), done.stderr


@pytest.mark.parametrize("module", ["hccl_tools", "hccl_tools.launch", "hccl_tools.launch.rank"])
def test_a_module_that_a_user_types_imports_nothing_more_from_there(folder: Folder, module: str) -> None:
    of_python = {name.partition(".")[0] for name in folder.run("-c", OF_PYTHON).stdout.split()}
    assert "click" not in of_python
    folder.plant(tuple(name for name in NAMES if name not in {*of_python, "hccl_tools"}))

    done = folder.run("-m", module, "--help")

    assert (done.returncode, folder.ran) == (0, []), done.stderr


def test_a_checkout_in_the_current_folder_is_used(folder: Folder) -> None:
    (folder.shared / "hccl_tools").symlink_to(Path(IMPORT_ROOT, "hccl_tools"))
    code = "from hccl_tools import own_python, version; print(version.IMPORT_ROOT, own_python.script('')[2])"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[0] = {str(folder.shared)!r}; {code}"],
        cwd=folder.home, env=variables, text=True, capture_output=True, check=True,
    )  # fmt: skip

    root, program = done.stdout.split(" ", 1)
    assert root == str(folder.shared)
    assert f"[{root!r}, *filter" in program


def test_a_command_for_root_has_the_path_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my bin" / "python"))
    without = as_root("stop run")
    (tmp_path / "my bin").mkdir()
    (tmp_path / "my bin" / "hccl-tools").write_text("")
    (tmp_path / "my bin" / "hccl-tools").chmod(0o755)

    assert as_root("stop run") == f"sudo '{tmp_path}/my bin/hccl-tools' stop run"
    assert without.startswith(f"sudo '{tmp_path}/my bin/python' -c 'import sys; sys.path[:]")
    assert without.endswith(" hccl_tools stop run")


def test_the_words_of_a_module_follow_its_name() -> None:
    assert own_python.command("hccl_tools.launch", "-x", "a b")[-3:] == ["hccl_tools.launch", "-x", "a b"]


def test_a_rank_is_started_with_the_python_that_has_this_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hccl-tools can be in an environment of its own, of which only the command is on PATH."""
    (tmp_path / "python").symlink_to("/bin/true")
    own = str(Path(sys.executable).parent)
    module = ["-m", "hccl_tools.launch.rank"]

    monkeypatch.setenv("PATH", f"{own}:{tmp_path}")
    assert own_python.typed_rank() == ["python", *module]
    monkeypatch.setenv("PATH", f"{tmp_path}:{own}")
    assert own_python.typed_rank() == [sys.executable, *module, "--python", "python"]
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert own_python.typed_rank() == [sys.executable, *module]


def test_no_command_of_a_hint_imports_modules_from_the_current_folder() -> None:
    """An archive may have a ``json.py`` beside a table for which a hint prints a program."""
    unsafe = re.compile(r"python3 -[cm] .{0,40}|(?<!-I )-m (?:pip|quopri)\b")

    found = {module: unsafe.findall(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}

    assert {module: commands for module, commands in found.items() if commands} == {}
