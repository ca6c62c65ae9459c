"""The archive for hosts without hccl-tools: complete, free of dependencies, and good for Python 3.8."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.gathering.stdout_framing import EngineOutput
from hccl_tools.host.survey import SurveyRequest
from hccl_tools.remote import archive, target
from hccl_tools.version import IMPORT_ROOT
from tests.support.bulk import for_each
from tests.support.pythons import python

OLDEST = (3, 8)
NAMES = [f"hccl_tools/{name}" for name in archive.names()]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "hccl-tools.pyz"
    path.write_bytes(archive.make().data)
    return path


def test_the_same_sources_give_the_same_archive_with_its_hash() -> None:
    first, second = archive.make(), archive.make()

    assert first == second
    assert first.sha256 == hashlib.sha256(first.data).hexdigest()
    assert zipfile.ZipFile(io.BytesIO(first.data)).namelist() == [*NAMES, "__main__.py"]


@for_each([*NAMES, "hccl_tools/remote/target.py"], name=str)
def test_each_file_is_python_3_8(name: str) -> None:
    ast.parse(Path(IMPORT_ROOT, name).read_text(), feature_version=OLDEST)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.8", "3.9", "3"])
def test_every_module_is_imported_from_the_archive_alone(packed: Path, version: str) -> None:
    """Also those that a survey imports in a function: an import that the archive lacks would fail there."""
    modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in NAMES]
    program = (
        f"import importlib, sys; sys.path.insert(0, {str(packed)!r})\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print({{m.__file__.partition('/hccl_tools/')[0] for n, m in sys.modules.items()"
        f" if n.startswith('hccl_tools')}} == {{{str(packed)!r}}})\n"
    )

    done = subprocess.run(
        [python(version), "-I", "-S", "-c", program], capture_output=True, text=True, check=False, cwd="/"
    )

    assert (done.stdout, done.stderr) == ("True\n", "")


def test_what_a_module_imports_is_in_the_archive() -> None:
    missing = set()
    for name in NAMES:
        for module in run_time_imports(Path(IMPORT_ROOT, name)):
            place = module.replace(".", "/")
            if not {f"{place}.py", f"{place}/__init__.py"} & set(NAMES):
                missing.add(f"{name} imports {module}")

    # `hccl_tools.NAME` loads other modules for the library's public names only.
    assert missing == set()


def run_time_imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, without those for type checkers alone."""
    tree = ast.parse(path.read_text())
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in typed:
            module = node.module or ""
            package = Path(IMPORT_ROOT, module.replace(".", "/"))
            found |= {
                f"{module}.{a.name}" if (package / f"{a.name}.py").exists() else module for a in node.names
            }
        elif isinstance(node, ast.Import) and id(node) not in typed:
            found |= {alias.name for alias in node.names}
    return {module for module in found if module.split(".")[0] == "hccl_tools"}


PRODUCTS = ("910a", "a2", "a3", "a5")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.8", "3.9", "3"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_the_archive_surveys_a_host(version: str, product: str, packed: Path) -> None:
    task = SurveyTask("node1", 1, SurveyRequest(simulate=product), over_mpi=False)

    done = subprocess.run(
        [python(version), "-I", "-S", "-B", str(packed), "node1", task.to_json()],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    output = EngineOutput(["node1"])
    for line in done.stdout.splitlines():
        output.add_line(line)
    answer = SurveyAnswer.from_json(output.texts()["node1"])
    assert answer.facts is not None, answer.message
    assert len(answer.facts.devices) > 1


@pytest.mark.slow
def test_a_python_that_is_too_old_says_so() -> None:
    interpreter = python("3.7")

    done = subprocess.run(
        ["/bin/sh"], input=archive.start_line(interpreter, 30.0), capture_output=True, text=False, check=False
    )

    assert done.returncode == 1
    assert done.stderr == b"python3 there is 3.7; 3.8 or later is required\n"


def test_the_starter_is_sent_as_text() -> None:
    made = archive.make()
    line, _, data = made.message(["a"], 1.5).partition(b"\n")

    assert json.loads(line) == {
        "program": Path(target.__file__).read_text(),
        "size": len(data),
        "sha256": made.sha256,
        "argv": ["a"],
        "seconds": 1.5,
    }
    assert data == made.data
