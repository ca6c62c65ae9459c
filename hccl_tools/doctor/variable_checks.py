"""Checks of variables that contradict each other, the table, or the framework; and of the table's file."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import Example, Finding, check
from hccl_tools.rules import job_variables
from hccl_tools.tablefiles.export_targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.case import Case

#: torch_npu with a table needs this many seconds at least.
_TORCH_TIMEOUT = 300
_TABLE_VARIABLES = ("RANK_TABLE_FILE", "RANKTABLEFILE", "MINDSPORE_HCCL_CONFIG_PATH")


@check(
    "HCD308",
    "variables-contradict",
    "stops",
    remedy="keep one of the settings",
    source="hcomm externalinput.cc (ParseIntraLinkType, ParseRetryEnable)",
    example=Example("env", "HCCL_INTRA_ROCE_ENABLE", "0"),
)
def variables_contradict(case: Case) -> Iterator[Finding]:
    """Do the variables of HCCL and of the frameworks agree?"""
    for problem in job_variables.problems(case.environ):
        yield Finding(problem.message, remedy=problem.hint)
    named = {name: case.environ[name] for name in _TABLE_VARIABLES if case.environ.get(name)}
    if len({os.path.realpath(path) for path in named.values()}) > 1:
        listed = ", ".join(f"{name}={path}" for name, path in named.items())
        yield Finding(f"the variables name different tables: {listed}", consequence="may-stop")


@check(
    "HCD311",
    "timeout-too-short-for-torch",
    "may-stop",
    remedy="set HCCL_CONNECT_TIMEOUT=600 on all hosts",
    source="torch_npu: with a table, HCCL_CONNECT_TIMEOUT must be at least 300 s",
)
def timeout_too_short_for_torch(case: Case) -> Iterator[Finding]:
    """With a table under torch_npu: is HCCL_CONNECT_TIMEOUT at least 300 s?"""
    text = case.environ.get("HCCL_CONNECT_TIMEOUT", "")
    if case.target == "torch" and case.table is not None and text.isdecimal() and int(text) < _TORCH_TIMEOUT:
        yield Finding(
            f"HCCL_CONNECT_TIMEOUT={text} is below {_TORCH_TIMEOUT} s, which torch_npu needs with a table"
        )


@check(
    "HCD312",
    "table-file-refused",
    "stops",
    remedy="write it again for the framework: `hccl-tools convert TABLE --target NAME -o FILE`",
    source="MindIE ranktable_config.cpp (mode 640, owner); torch_npu and xLLM (no symbolic link)",
)
def table_file_refused(case: Case) -> Iterator[Finding]:
    """Has the file of the table the mode, the owner and the kind that the framework requires?"""
    target = TARGETS.get(case.target or "")
    if target is None or not case.table_path or not os.path.exists(case.table_path):
        return
    path = os.path.abspath(case.table_path)
    found = os.stat(path)
    mode = stat.S_IMODE(found.st_mode)
    if not target.follows_links and os.path.islink(path):
        yield Finding(
            f"{path} is a symbolic link, which {target.title} refuses to open",
            remedy=f"name its target: {os.path.realpath(path)}",
        )
    if target.mode is not None and mode & ~target.mode:
        yield Finding(
            f"{path} has mode {mode:o}; {target.title} requires {target.mode:o}",
            remedy=f"`chmod {target.mode:o} {path}`",
            commands=(("chmod", f"{target.mode:o}", "--", path),),
        )
    if target.mode is not None and found.st_uid != os.geteuid():
        yield Finding(
            f"{path} belongs to user {found.st_uid}; {target.title} opens only files of its own user",
            remedy="copy it as the user of the job",
        )
