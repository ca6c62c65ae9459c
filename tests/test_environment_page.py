"""The page of the environment variables has those that the code names, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hccl_tools.launch.planning import environment

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "en" / "reference" / "environment.md").read_text(encoding="utf-8")
#: Beginnings of the names of environment variables; what else looks like one is below.
_FAMILIES = (
    "HCCL", "_HCCL", "ASCEND", "MS", "OMPI", "PMI", "PMIX", "PRTE", "SLURM", "SLURMD", "PADDLE", "FLAGS",
    "MASTER", "MA", "MIES", "MINDSPORE", "HOST", "POD", "RANK", "DEVICE", "SERVER", "LOCAL", "WORLD", "MPI",
    "HYDI", "LD", "GLOG", "PYTORCH", "OMP", "LC", "XDG", "GLOO", "CUSTOM", "NPU", "CUDA", "XPU",
)  # fmt: skip
_VARIABLE = re.compile(rf"(?:{'|'.join(_FAMILIES)})_[A-Za-z0-9_]*")
#: Values of variables, and keys of other files.
_NO_VARIABLES = {"HOST_TS", "MS_SCHED", "MS_WORKER"}


def named_in_code() -> set[str]:
    """The texts of the code that are names of variables, or beginnings of such names (``SLURM_``)."""
    found = set()
    for path in (ROOT / "hccl_tools").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and _VARIABLE.fullmatch(text):
                found.add(text)
            found |= asked_of_the_environment(node)
    return found - _NO_VARIABLES


def asked_of_the_environment(node: ast.AST) -> set[str]:
    """The name in ``environ.get("NAME")`` and ``environ["NAME"]``, whatever its family."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        owner, name = node.func.value, node.args[0]
    elif isinstance(node, ast.Subscript):
        owner, name = node.value, node.slice
    else:
        return set()
    told = ast.unparse(owner)
    is_name = isinstance(name, ast.Constant) and isinstance(name.value, str)
    return {name.value} if is_name and told.endswith("environ") else set()  # type: ignore[attr-defined]


def on_the_page() -> set[str]:
    return set(re.findall(r"`(_?[A-Z][A-Za-z0-9_]*\*?)(?:=[^`]*)?`", PAGE)) - {"VIRTUAL"}


def covers(documented: str, name: str) -> bool:
    """Whether a name on the page is that of the code; either may be the beginning of many."""
    if documented.endswith("*") and name.startswith(documented[:-1]):
        return True
    return documented == name or (name.endswith("_") and documented.startswith(name))


@pytest.mark.slow
def test_every_variable_that_the_code_names_is_on_the_page() -> None:
    page = on_the_page()

    assert sorted(name for name in named_in_code() if not any(covers(one, name) for one in page)) == []


def test_every_variable_on_the_page_is_in_the_code() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "hccl_tools").rglob("*.py"))

    assert sorted(name for name in on_the_page() if name.rstrip("*") not in code) == []


#: In which starts each family is set.
_STARTS = {
    "process": "all",
    "supervision": "all",
    "flight recorder": "all",
    "rank": "all",
    "rank table": "`table`, `cluster`; `torch` with `--pass-table`",
    "cluster": "`cluster`; `mpi` with `--cpu`",
    "torch": "`torch`",
    "gloo": "`torch`",
    "super pods": "`mpi`, `torch`",
    "paddle": "all but `mpi`",
    "visible devices": "`mpi`, `torch`",
    "kept mpi": "`mpi`, or with `--keep-mpi`",
    "logs": "all",
}


def test_the_variables_of_a_rank_are_those_of_the_table() -> None:
    _, _, section = PAGE.partition("## Set for a rank")
    rows = [line for line in section.splitlines() if line.startswith("| `")]

    assert rows == [
        f"| `{row.name}` | {_STARTS[family]} | {row.meaning} |"
        for family, variables in environment.VARIABLES.items()
        for row in variables
    ]
