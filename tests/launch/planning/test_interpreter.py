from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.model.request import Program, StartChoice
from hccl_tools.launch.planning import interpreter, program_check
from hccl_tools.programs.lookup import ProgramMissingError, ProgramRefusedError

if TYPE_CHECKING:
    from hccl_tools.errors import LaunchError
    from hccl_tools.launch.model.plan import Start


def install(site: Path, *names: str) -> list[str]:
    for name in names:
        (site / name).mkdir(parents=True)
    return [str(site)]


@pytest.mark.parametrize(
    ("names", "cpu", "start"),
    [
        (["mindspore-2.10.0.dist-info"], False, "cluster"),
        (["mindspore-2.4.0.dist-info"], False, "cluster"),
        (["mindspore-2.3.1.dist-info"], False, "table"),
        (["mindspore-2.3.1.dist-info"], True, "cluster"),
        (["mindspore_ascend-1.10.1.dist-info"], False, "table"),
        (["mindspore-2.10.0.dist-info", "torch-2.1.0+cpu.dist-info"], False, "cluster"),
        (["torch-2.1.0.dist-info", "torch_npu-2.1.0.post3.dist-info"], False, "torch"),
        (["paddlepaddle-3.3.1.dist-info", "pip-23.0.dist-info"], False, "torch"),
        (["paddlepaddle_gpu-2.6.0.dist-info", "mindspore-2.2.0.dist-info"], False, "table"),
        (["torch-2.1.0-py3.9.egg-info"], False, "torch"),
        (["mindspore_toolkit-1.0.dist-info", "torchvision-0.16.dist-info"], False, "table"),
        ([], False, "table"),
    ],
)
def test_start_follows_from_what_is_installed(
    names: list[str], cpu: bool, start: str, own_directory: Path
) -> None:
    found = interpreter.installed_frameworks([*install(own_directory / "site", *names), "/nonexistent"])

    assert interpreter.choose_start(found, cpu=cpu)[0] == start


PADDLE, PLUG_IN = "paddlepaddle-3.3.1.dist-info", "paddle_custom_npu-3.3.1.dist-info"
NO_PLUG_IN = "paddle 3.3.1 of the ranks knows no NPU: paddle-custom-npu is not installed for /venv/python"


@pytest.mark.parametrize(
    ("names", "start", "cpu", "said"),
    [
        ([PADDLE], "torch", False, NO_PLUG_IN),
        ([PADDLE], "torch", True, None),
        ([PADDLE, PLUG_IN], "torch", False, None),
        (["paddlepaddle_npu-2.4.0.dist-info"], "torch", False, None),
        ([PADDLE, "torch-2.1.0.dist-info"], "torch", False, None),  # torch may be what the ranks use.
        ([PADDLE], "cluster", True, "for MindSpore, which /venv/python lacks (it has paddle 3.3.1)"),
        ([PADDLE, "mindspore-2.10.0.dist-info"], "cluster", True, None),
        ([], "cluster", True, None),
    ],
)
def test_what_the_frameworks_lack_is_said(
    names: list[str], start: Start, cpu: bool, said: str | None, own_directory: Path
) -> None:
    found = interpreter.installed_frameworks(install(own_directory / "site", *names))
    python = interpreter.Interpreter("/venv/python", "--python", found)

    notes = interpreter.warnings(python, start, {}, cpu=cpu)

    assert len(notes) == (said is not None)
    assert all(str(said) in note for note in notes)
    assert not cpu or notes == interpreter.warnings(python, start, {"CUSTOM_DEVICE_ROOT": "/x"}, cpu=cpu)


def test_plug_ins_of_paddle_in_another_place_count() -> None:
    python = interpreter.Interpreter("/venv/python", "--python", {"paddle": "3.3.1"})

    assert interpreter.warnings(python, "torch", {}, cpu=False)
    assert not interpreter.warnings(python, "torch", {"CUSTOM_DEVICE_ROOT": "/plugins"}, cpu=False)


def test_without_any_framework_the_plan_says_so() -> None:
    assert interpreter.choose_start({}, cpu=False) == (
        "table",
        "the ranks' Python has no MindSpore, torch or paddle",
    )


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("import os; print(os.environ['RANK'])", "torch"),
        ('import os; print(os.environ.get("WORLD_SIZE", 1))', "torch"),
        ("import os; print(os.environ['RANK_ID'])", "table"),
        ("import os; print(os.environ.get('RANK', os.environ['RANK_ID']))", "table"),
        ("RANK = 3", "table"),
    ],
)
def test_script_without_a_framework_gets_the_variables_that_it_reads(
    text: str, start: Start, own_directory: Path
) -> None:
    bare = python(own_directory / "bin" / "python", 'printf "%s\\n" /opt/bare/python')
    (own_directory / "train.py").write_text(text)

    _python, chosen, reason = interpreter.choose(
        Program((str(own_directory / "train.py"),), python=bare),
        StartChoice(method=None, cpu=True),
        {},
        engine_starts_mpi=False,
        has_table=True,
    )

    assert chosen == start
    assert ("as torchrun sets it" in reason) is (start == "torch")


def test_a_script_in_a_pipe_is_left_to_its_rank(own_directory: Path) -> None:
    bare = python(own_directory / "bin" / "python", 'printf "%s\\n" /opt/bare/python')
    reader, writer = os.pipe()
    os.write(writer, b"import os; print(os.environ['RANK'])")

    _python, chosen, _reason = interpreter.choose(
        Program((f"/dev/fd/{reader}",), python=bare),
        StartChoice(method=None, cpu=True),
        {},
        engine_starts_mpi=False,
        has_table=True,
    )

    assert chosen == "table"
    assert os.read(reader, 100).startswith(b"import os")
    os.close(reader)
    os.close(writer)


def test_versions_are_those_of_importlib_metadata() -> None:
    from importlib import metadata

    installed = interpreter.installed_frameworks(sys.path)
    for framework, version in installed.items():
        assert metadata.version(framework) == version


@pytest.mark.parametrize(
    ("version", "wanted", "answer"),
    [
        ("2.10.0", (2, 4), True),
        ("2.4.0rc1", (2, 4), True),
        ("2.3.9", (2, 4), False),
        ("nightly", (2, 4), False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, wanted: tuple[int, int], answer: bool) -> None:
    assert interpreter.is_at_least(version, wanted) is answer


def python(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_users_python_comes_first_on_path(own_directory: Path) -> None:
    shim = python(own_directory / "bin" / "python", f'exec {sys.executable} "$@"')

    found = interpreter.find(
        Program((), python=None, own_python=False), {"PATH": str(Path(shim).parent)}, ask=False
    )

    # A script in front of the real Python is seen through: every rank would pay for it.
    assert Path(found.path).resolve() == Path(sys.executable).resolve()
    assert found.reason == "your shell's"


def test_python_by_option_and_by_module() -> None:
    named = interpreter.find(Program((), python=sys.executable, own_python=False), {}, ask=True)
    own = interpreter.find(Program((), python=None, own_python=True), {}, ask=False)

    assert (named.path, named.reason) == (sys.executable, "--python")
    assert own.path == sys.executable


def test_python_that_is_not_there_or_does_not_run(own_directory: Path) -> None:
    with pytest.raises(ProgramMissingError, match='"nopython" does not exist'):
        interpreter.find(Program((), python="nopython", own_python=False), {"PATH": "/usr/bin"}, ask=False)
    (own_directory / "notes.txt").write_text("")
    for name, why in (("./notes.txt", "is not executable"), (".", "is a directory")):
        with pytest.raises(ProgramRefusedError, match=why):
            interpreter.find(Program((), python=name, own_python=False), {"PATH": "/usr/bin"}, ask=False)
    broken = python(own_directory / "broken", "echo its library is missing >&2; echo advice >&2; exit 1")
    with pytest.raises(ProgramRefusedError, match="its library is missing"):
        interpreter.find(Program((), python=broken, own_python=False), {"PATH": "/usr/bin:/bin"}, ask=True)


def test_commands() -> None:
    assert interpreter.command(Program(("a.py", "-x"), "script"), "/py") == ("/py", "a.py", "-x")
    assert interpreter.command(Program(("a.b", "-x"), "module"), "/py") == ("/py", "-m", "a.b", "-x")
    assert interpreter.command(Program(("./a", "-x"), "program"), "/py") == ("./a", "-x")


def test_directories_as_scripts(own_directory: Path) -> None:
    (own_directory / "app").mkdir()
    with pytest.raises(ProgramRefusedError, match="directory without __main__"):
        program_check.check(Program(("app",), "script"), {})
    (own_directory / "app" / "__main__.py").write_text("")
    program_check.check(Program(("app",), "script"), {})


@pytest.fixture
def package(own_directory: Path) -> Path:
    """``pack``, which cannot be imported without ending the process, with ``pack.inner``, and no __main__."""
    package = own_directory / "elsewhere" / "pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "inner.py").write_text("")
    return package


@pytest.mark.parametrize("name", ["own", "app", "json.tool", "pack.inner", "os.path", "hccl_tools.launch"])
def test_modules_that_python_finds(name: str, package: Path, own_directory: Path) -> None:
    (own_directory / "own.py").write_text("")
    (own_directory / "app").mkdir()
    (own_directory / "app" / "__main__.py").write_text("")
    environ = {**os.environ, "PYTHONPATH": str(package.parent)}

    program_check.check(Program((name,), "module"), environ, python=sys.executable)


@pytest.mark.parametrize(
    ("name", "refusal", "words"),
    [
        ("nope", ProgramMissingError, "finds no module nope"),
        ("nope.inner", ProgramMissingError, "finds no module nope"),
        ("pack.nope", ProgramMissingError, "finds no module pack.nope"),
        ("pack", ProgramRefusedError, "pack is a package without __main__"),
    ],
)
def test_modules_that_python_does_not_find(
    name: str, refusal: type[LaunchError], words: str, package: Path
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(package.parent)}

    with pytest.raises(refusal, match=words):
        program_check.check(Program((name,), "module"), environ, python=sys.executable)
    # Such a package may find its modules where nobody has looked.
    (package / "__init__.py").write_text("__path__ = []\n")
    if name == "pack.nope":
        program_check.check(Program((name,), "module"), environ, python=sys.executable)


@pytest.mark.parametrize(
    ("prints", "reason"),
    [
        ("printf '\\377 broken\\n' >&2; exit 3", "\ufffd broken"),
        ("head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 3", "x" * 300),
        ("exit 3", "exit code 3, without a message"),
        ("exit 0", "exit code 0, without a message"),
    ],
    ids=["other bytes", "a long line", "nothing", "nothing, successfully"],
)
def test_a_python_that_does_not_answer_is_refused(tmp_path: Path, prints: str, reason: str) -> None:
    python = tmp_path / "python9"
    python.write_text(f"#!/bin/sh\n{prints}\n")
    python.chmod(0o755)

    with pytest.raises(ProgramRefusedError) as refused:
        interpreter._asked(str(python), {"PATH": "/usr/bin:/bin"})

    assert refused.value.message == f"the ranks' Python {python} does not run: {reason}"


def test_a_python_that_prints_other_bytes_names_no_problem_of_a_module(tmp_path: Path) -> None:
    python = tmp_path / "python9"
    python.write_text("#!/bin/sh\nprintf '\\377\\n'\n")
    python.chmod(0o755)

    assert program_check.module_problem("no_such_module", str(python), {"PATH": "/usr/bin:/bin"}) is None
