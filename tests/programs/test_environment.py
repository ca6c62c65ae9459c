"""Programs that need no job key do not inherit it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hccl_tools.host import host_tools
from hccl_tools.processes import signals
from hccl_tools.programs.environment import KEY_VARIABLES, without_key
from tests.support.import_graph import MODULES, tree_of

#: Modules that start launchers, ranks or parts of this tool, which need it or get their own variables.
_NEED_IT = {
    "hccl_tools.processes.keeper",
    "hccl_tools.processes.keeper_process",
    "hccl_tools.launch.mpi.shim",
    "hccl_tools.launch.engines.remote_shell",
    "hccl_tools.remote.connection",
    "hccl_tools.remote.target",
    "hccl_tools.scaling.single_run",
}
_START = {"run", "Popen", "posix_spawn", "execve", "execvpe", "execv", "check_output", "call"}


def test_the_variables_are_left_out() -> None:
    variables = {**dict.fromkeys(KEY_VARIABLES, "x"), "PATH": "/bin", "HCCL_TOOLS_REQUIRE_KEY": "1"}

    assert without_key(variables) == {"PATH": "/bin", "HCCL_TOOLS_REQUIRE_KEY": "1"}


@pytest.mark.slow
def test_every_module_that_starts_programs_leaves_them_out() -> None:
    """A new module that starts a program states that it needs the key, or leaves the key out."""
    starting = set()
    for module, path in MODULES.items():
        for node in ast.walk(tree_of(Path(path))):
            called = node.func if isinstance(node, ast.Call) else None
            if (
                isinstance(called, ast.Attribute)
                and called.attr in _START
                and isinstance(called.value, ast.Name)
            ):
                starting |= {module} if called.value.id in {"subprocess", "os"} else set()
    keyless = {module for module in starting if "without_key" in Path(MODULES[module]).read_text()}

    assert starting - keyless - _NEED_IT == set()
    assert signals.__name__ in keyless
    assert host_tools.__name__ in keyless
