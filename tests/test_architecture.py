"""The shape of the code: what may import what, what loading costs, how long things may get."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import hccl_tools

PACKAGE = Path(hccl_tools.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Lowest first: a module imports from its own row and from the rows above it in this list, never from below.
LAYERS: list[set[str]] = [
    {"errors", "records", "version"},
    {"document", "notation", "programs", "table"},
    {"diagnostics", "discover", "formats"},
    {"rules"},
    {"transform", "validation"},
    {"tablefiles"},
    {"draw", "gathering", "launch"},
    {"cli", "__main__"},
]
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
#: Facts about the host know nothing about tables, except what their formats are called.
DISCOVER_MAY_IMPORT = {"errors", "notation", "programs", "table"}

LONGEST_MODULE = 280  # the aim is 250; a little more is left to a module that is one thing
LONGEST_FUNCTION = 50


def node_of(module: str) -> str:
    """``hccl_tools.formats.v1_0`` -> ``formats``: what the rows of LAYERS are made of."""
    inside = module.removeprefix("hccl_tools").removeprefix(".")
    if inside.endswith("__main__"):
        return "__main__"
    return next((name for name in LAYER_OF if "." in name and inside == name), inside.split(".")[0])


def name_of(path: Path) -> str:
    parts = ["hccl_tools", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path: Path) -> set[str]:
    """Every module of the package that a file names in an import, wherever in the file it stands."""
    found = set()
    for statement in ast.walk(tree_of(path)):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}:{statement.lineno}: relative import"
            module = statement.module or ""
            for alias in statement.names:
                full = f"{module}.{alias.name}"
                found.add(full if is_module(full) else module)
    return {name for name in found if name.startswith("hccl_tools.")}


def is_module(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return name.startswith("hccl_tools") and (path.is_dir() or path.with_suffix(".py").exists())


def test_every_module_has_its_place_in_the_layers() -> None:
    nodes = {node_of(name_of(path)) for path in MODULES} - {""}

    assert nodes == set(LAYER_OF), "add the new module to LAYERS, where design and imports allow it"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    here = node_of(name_of(path))
    if not here:  # the package itself hands out the public names of every layer
        return
    upward = {name for name in imported_modules(path) if LAYER_OF[node_of(name)] > LAYER_OF[here]}

    assert upward == set()


def test_discovery_knows_nothing_about_tables() -> None:
    imported = {
        node_of(name)
        for path in MODULES
        if node_of(name_of(path)) == "discover"
        for name in imported_modules(path)
    }

    assert imported - {"discover"} <= DISCOVER_MAY_IMPORT


def test_no_two_parts_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        here = node_of(name_of(path))
        if here:
            graph.setdefault(here, set()).update({node_of(name) for name in imported_modules(path)} - {here})

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other in a circle: {' -> '.join(error.args[1])}")


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def loaded_by(module: str) -> set[str]:
    """The distributions' top-level modules that importing ``module`` loads, the standard library left out."""
    told = run_python(
        f"import sys; before = set(sys.modules); import {module}; print(*set(sys.modules) - before)"
    )
    return {name.split(".")[0] for name in told.split()} - sys.stdlib_module_names


def test_the_command_line_loads_click_and_the_standard_library_only() -> None:
    assert loaded_by("hccl_tools.cli") <= {"click", "hccl_tools"}


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("hccl_tools") == {"hccl_tools"}


def test_every_public_name_works_after_every_module_was_imported() -> None:
    modules = [name_of(path) for path in MODULES if path.name != "__main__.py"]
    told = run_python(
        "import importlib, types, hccl_tools\n"
        "first = {name: getattr(hccl_tools, name) for name in hccl_tools.__all__}\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        "for name in hccl_tools.__all__:\n"
        "    again = getattr(hccl_tools, name)\n"
        "    assert again is first[name] and not isinstance(again, types.ModuleType), name\n"
        "print('the same')"
    )

    assert told == "the same\n"


def test_every_public_name_is_found_when_every_module_was_imported_first() -> None:
    modules = [name_of(path) for path in MODULES if path.name != "__main__.py"]
    told = run_python(
        "import importlib, types, hccl_tools\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        "print(*(n for n in hccl_tools.__all__ if isinstance(getattr(hccl_tools, n), types.ModuleType)))"
    )

    assert told.split() == []


def test_no_module_bears_the_name_of_a_public_function() -> None:
    assert {path.stem for path in PACKAGE.iterdir()} & set(hccl_tools.__all__) == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
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
    """The lines of a function without its docstring."""
    docstring = function.body[0] if ast.get_docstring(function, clean=False) else None
    spent = docstring.end_lineno - docstring.lineno + 1 if docstring and docstring.end_lineno else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - spent


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_public_names_have_a_docstring(path: Path) -> None:
    if path.name == "__init__.py" and not path.read_text(encoding="utf-8").strip():
        return
    bare = [
        node.name
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]

    assert bare == []
