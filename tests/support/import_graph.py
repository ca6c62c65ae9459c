"""The imports of the package, read from its sources: which module, and which folder, imports which."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import hccl_tools

PACKAGE = Path(hccl_tools.__file__).parent

#: The folders from the lowest layer to the highest; those of ``launch`` are listed one by one. A module
#: beside the folders counts as one. A module imports from its own folder and from lower layers only.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("dropped_interrupt", "errors", "imports", "records", "version"),
    ("own_python",),
    ("codec",),
    ("notation",),
    ("document", "guide", "programs", "zh"),
    ("processes", "table"),
    ("diagnostics", "remote", "variables"),
    ("formats", "host"),
    ("runs",),
    ("rules", "transform"),
    ("validation", "show"),
    ("files",),
    ("doctor",),
    ("explain",),
    ("launch.rank_site", "launch.model"),
    ("launch.engines", "launch.logs"),
    ("launch.planning", "launch.report", "launch.stacks"),
    ("launch.render", "launch.supervise", "launch.mpi"),
    ("launch.preflight", "launch.protocol"),
    ("launch.cluster",),
    ("launch.spares",),
    ("launch.rank", "launch.current", "launch.restart"),
    ("launch.launcher",),
    ("launch.spawn",),
    ("gathering", "scaling"),
    ("cli",),
    ("__main__",),
    ("launch.__main__",),
)


def module_name(path: Path) -> str:
    """Return the dotted name of a source file of the package."""
    parts = ["hccl_tools", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


#: Dotted name -> source file, of every module of the package.
MODULES: dict[str, Path] = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a source file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules of the package that a module imports, at its top, inside a function, or by its name.

    An import for type checkers alone counts as well: a reader has to follow it, too.
    """
    found = set()
    for statement in ast.walk(tree_of(MODULES[module])):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{module}:{statement.lineno}: relative import"
            names = {f"{statement.module}.{alias.name}" for alias in statement.names}
            found |= {name if name in MODULES else statement.module or "" for name in names}
        elif isinstance(statement, ast.Call) and getattr(statement.func, "id", "") == "load_part":
            found |= {f"hccl_tools.{ast.literal_eval(part)}" for part in statement.args}
    return frozenset(name for name in found if name in MODULES) - {module, "hccl_tools"}


def folder_of(module: str) -> str:
    """Return the folder of a module: ``hccl_tools.formats.v1_0`` -> ``formats``; '' for the package."""
    inside = module.split(".")[1:]
    depth = 2 if inside[:1] == ["launch"] and len(inside) > 1 else 1
    return ".".join(inside[:depth])


def folders() -> dict[str, frozenset[str]]:
    """Return for each folder those that it imports from."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        if (here := folder_of(module)) not in {"", "launch"}:  # the package, and a folder of folders
            there = {folder_of(name) for name in imports_of(module)}
            graph.setdefault(here, set()).update(there - {here, ""})
    return {folder: frozenset(there) for folder, there in graph.items()}
