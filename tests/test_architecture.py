"""The shape of the code: what may import what, what loading costs, how long things may get."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import pytest

import hccl_tools
from hccl_tools.launch import engines
from tests.support.bulk import for_each
from tests.support.import_graph import LAYERS, MODULES, PACKAGE, folder_of, folders, imports_of, tree_of

if TYPE_CHECKING:
    from pathlib import Path

LAYER_OF = {folder: number for number, layer in enumerate(LAYERS) for folder in layer}
#: Facts about the host know nothing about tables, except what their formats and products are called.
HOST_MAY_IMPORT = {
    "codec",
    "document",
    "errors",
    "notation",
    "processes",
    "programs",
    "records",
    "table",
    "variables",
    "version",
}

LONGEST_MODULE = 500  # what one reads in one go
LONGEST_FUNCTION = 50
MOST_MODULES = 30  # in a folder
#: They have one module for each family of rules, for each command, and for each step from a log to an answer.
LARGE_FOLDERS = {"rules", "cli", "explain", "host"}


def test_every_folder_has_its_layer() -> None:
    assert {folder for layer in LAYERS for folder in layer} == set(folders())


@for_each(MODULES, name=str)
def test_imports_point_down(module: str) -> None:
    here = folder_of(module)
    if here in {"", "launch"}:  # the package itself hands out the public names of every folder
        return
    wrong = {
        name
        for name in imports_of(module)
        if folder_of(name) != here and LAYER_OF[folder_of(name)] >= LAYER_OF[here]
    }

    assert wrong == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(
            {module: imports_of(module) for module in MODULES if module != "hccl_tools"}
        ).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other in a circle: {' <- '.join(error.args[1])}")


def test_a_host_knows_nothing_about_tables() -> None:
    assert folders()["host"] <= HOST_MAY_IMPORT


def test_no_folder_is_crowded() -> None:
    count = Counter(
        str(path.parent.relative_to(PACKAGE)) for path in MODULES.values() if path.name != "__init__.py"
    )

    assert {folder for folder, modules in count.items() if modules > MOST_MODULES} <= LARGE_FOLDERS


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def loaded_by(module: str) -> set[str]:
    """Return the top-level modules outside the standard library that importing ``module`` loads."""
    output = run_python(
        f"import sys; before = set(sys.modules); import {module}; print(*set(sys.modules) - before)"
    )
    return {name.split(".")[0] for name in output.split()} - sys.stdlib_module_names


def test_the_command_line_loads_click_and_the_standard_library_only() -> None:
    assert loaded_by("hccl_tools.cli") <= {"click", "hccl_tools"}


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("hccl_tools") == {"hccl_tools"}


@pytest.mark.slow
def test_every_public_name_works_after_every_module_was_imported() -> None:
    modules = [name for name in MODULES if not name.endswith("__main__")]
    output = run_python(
        "import importlib, types, hccl_tools\n"
        "first = {name: getattr(hccl_tools, name) for name in hccl_tools.__all__}\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        "for name in hccl_tools.__all__:\n"
        "    again = getattr(hccl_tools, name)\n"
        "    assert again is first[name] and not isinstance(again, types.ModuleType), name\n"
        "print('the same')"
    )

    assert output == "the same\n"


def test_every_public_name_is_found_when_every_module_was_imported_first() -> None:
    modules = [name for name in MODULES if not name.endswith("__main__")]
    output = run_python(
        "import importlib, types, hccl_tools\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        "print(*(n for n in hccl_tools.__all__ if isinstance(getattr(hccl_tools, n), types.ModuleType)))"
    )

    assert output.split() == []


def test_no_module_has_the_name_of_a_public_function() -> None:
    assert {path.stem for path in PACKAGE.iterdir()} & set(hccl_tools.__all__) == set()


#: Names of engines, and what the flavours of mpirun begin with.
ENGINES = {*engines.ENGINES, "openmpi", "mpich", "Open MPI", "MPICH"}
ENGINE_ROOMS = ("hccl_tools.launch.engines", "hccl_tools.programs", "hccl_tools.launch.mpi.world")


def engine_comparisons(tree: ast.Module) -> list[int]:
    """The lines in which a text is compared with, or searched for, the name of an engine."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        or (isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"startswith", "removeprefix"})
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and each.value in ENGINES
    ]


@pytest.mark.slow
def test_engines_are_not_compared_by_name() -> None:
    found = {
        name: lines
        for name, path in MODULES.items()
        if not name.startswith(ENGINE_ROOMS)
        if (lines := engine_comparisons(tree_of(path)))
    }

    assert found == {}, "ask the engine: engines.get(name), engines.of(plan)"


@pytest.mark.parametrize(
    "line", ['plan.engine == "loop"', 'engine in {"mpirun", "slurm"}', 'flavour.startswith("mpich")']
)
def test_a_comparison_with_an_engines_name_is_found(line: str) -> None:
    assert engine_comparisons(ast.parse(line))


@for_each(MODULES.values(), name=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    long_functions = [
        f"{node.name}: {size}"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := length(node)) > LONGEST_FUNCTION
    ]

    assert lines <= LONGEST_MODULE
    assert long_functions == []


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    docstring = function.body[0] if ast.get_docstring(function, clean=False) else None
    skipped = docstring.end_lineno - docstring.lineno + 1 if docstring and docstring.end_lineno else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - skipped


@for_each(MODULES.values(), name=lambda path: str(path.relative_to(PACKAGE)))
def test_public_names_have_a_docstring(path: Path) -> None:
    if path.name == "__init__.py" and not path.read_text(encoding="utf-8").strip():
        return
    undocumented = [
        node.name
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]

    assert undocumented == []


#: Packages of optional extras, and a module that only a rank with a flight recorder has.
OPTIONAL = {"mpi4py", "matplotlib", "yaml", "hccl_tools_recorder"}
#: What a shim or a rank of an MPI job loads, where each millisecond delays every rank.
OF_A_SHIM = (
    "hccl_tools.launch.rank",
    "hccl_tools.launch.mpi",
    "hccl_tools.launch.model.rank_messages",
    "hccl_tools.launch.rank_site",
    "hccl_tools.codec",
    "hccl_tools.own_python",
    "hccl_tools.document.links",
    "hccl_tools.runs.job_key",
    "hccl_tools.runs.parents",
    "hccl_tools.runs.secret_file",
)
#: A cold path has the milliseconds that its import takes where it is not needed.
COLD = re.compile(r"# noqa: PLC0415  \([0-9.]+ ms[;,)]")
#: A part that is loaded by its name has them, too.
PART = re.compile(r'    "([a-z_.0-9]+)",  # [0-9.]+ ms; .+')
#: As few as there are: another one takes the place of one of these.
MOST_IMPORTS_IN_FUNCTIONS = {"cold": 24, "shim": 31, "optional": 10, "order": 2}
MOST_PARTS = 33
#: Modules with a registry of commands, checks, formats or engines, or that need what may not be installed.
BY_NAME = {
    "hccl_tools.cli.completion",
    "hccl_tools.cli.lazy_group",
    "hccl_tools.diagnostics",
    "hccl_tools.diagnostics.registry",
    "hccl_tools.doctor.report",
    "hccl_tools.document.fast_parser",
    "hccl_tools.explain.knowledge.patterns",
    "hccl_tools.explain.knowledge.registry",
    "hccl_tools.formats",
    "hccl_tools.gathering.coordinator",
    "hccl_tools.imports",
    "hccl_tools.launch.engines",
    "hccl_tools.own_python",
}


def imports_in_functions() -> list[tuple[str, str]]:
    """Return the reason for each import in a function, and where it is."""
    found = []
    for module, path in MODULES.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        functions = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef))
        inside = {node for function in functions for node in ast.walk(function)}
        for node in inside:
            if isinstance(node, ast.Import | ast.ImportFrom):
                text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                found.append((reason_for(module, node, text), f"{module}:{node.lineno}: {text.strip()}"))
    return found


def reason_for(module: str, node: ast.Import | ast.ImportFrom, text: str) -> str:
    """Return why an import is in a function: it is optional, a shim's, after ``prepare``, or a cold path."""
    names = {node.module or ""} if isinstance(node, ast.ImportFrom) else {alias.name for alias in node.names}
    if {name.partition(".")[0] for name in names} <= OPTIONAL:
        return "optional"
    if module.startswith(OF_A_SHIM):
        return "shim"
    if "(after prepare)" in text:
        return "order"
    return "cold" if COLD.search(text) else "none"


def test_an_import_in_a_function_has_a_reason_and_there_are_no_more() -> None:
    found = imports_in_functions()

    assert [where for reason, where in found if reason == "none"] == []
    assert Counter(reason for reason, _ in found) <= Counter(MOST_IMPORTS_IN_FUNCTIONS)


def test_each_part_that_is_loaded_by_its_name_has_a_reason_is_used_and_there_are_no_more() -> None:
    listed = hccl_tools._PARTS
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    used = {
        node.args[0].value
        for path in MODULES.values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load_part"
        if isinstance(node.args[0], ast.Constant)
    }

    assert set(PART.findall(text)) == listed == used
    assert {f"hccl_tools.{name}" for name in listed} <= set(MODULES)
    assert len(listed) <= MOST_PARTS


def test_nothing_else_is_imported_by_its_name() -> None:
    found = {
        name
        for name, path in MODULES.items()
        for node in ast.walk(tree_of(path))
        if "import_module" in {getattr(node, "id", ""), getattr(node, "attr", "")}
    }

    assert found <= {"hccl_tools", *BY_NAME}


def test_a_part_that_is_not_in_the_table_is_not_loaded() -> None:
    with pytest.raises(LookupError, match="codec"):
        hccl_tools.load_part("codec")
