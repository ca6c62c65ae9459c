"""Checks of variables that contradict each other, the table, or the framework; and of the table's file."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.doctor.ping_results import stated_names
from hccl_tools.doctor.registry import Example, Finding, check
from hccl_tools.document import links
from hccl_tools.files.export_targets import TARGETS, TIMEOUT, job_variables
from hccl_tools.host.table_copies import TABLE_VARIABLES
from hccl_tools.notation.phrases import operand
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.variables.rows import contradictions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.table.model import RankTable, Server

_VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"


@check(
    "HCD308",
    "variables-contradict",
    "stops",
    remedy="keep one of the settings",
    source="hcomm externalinput.cc (ParseIntraLinkType)",
    example=Example("env", "HCCL_INTRA_ROCE_ENABLE", "0"),
    of_npus=True,
)
def variables_contradict(case: Case) -> Iterator[Finding]:
    """Do the variables of HCCL and of the frameworks agree?"""
    for problem in contradictions(case.environ, case.device_type):
        yield Finding(problem.message, remedy=problem.hint)
    named = {name: case.environ[name] for name in TABLE_VARIABLES if case.environ.get(name)}
    if len({os.path.normpath(path) for path in named.values()}) > 1:
        listed = ", ".join(f"{name}={path}" for name, path in named.items())
        yield Finding(f"the variables name different tables: {listed}", consequence="may-stop")


@check(
    "HCD311",
    "timeout-too-short-for-target",
    "may-stop",
    remedy="set HCCL_CONNECT_TIMEOUT=600 on all hosts",
    source="torch_npu: with a table, HCCL_CONNECT_TIMEOUT must be at least 300 s; MindIE's guide sets 7200",
    of_npus=True,
)
def timeout_too_short_for_target(case: Case) -> Iterator[Finding]:
    """With a table under torch_npu, xLLM or MindIE: is HCCL_CONNECT_TIMEOUT at least 300 s?"""
    text, target = case.environ.get(TIMEOUT, ""), TARGETS.get(case.target or "")
    least = target.least_timeout if target is not None and case.table is not None else None
    set_to = whole_number(text)
    if target is not None and least is not None and set_to is not None and set_to < least:
        yield Finding(
            f"{TIMEOUT}={text} is below {least} s, which {target.title} needs with a table",
            remedy=f"set {TIMEOUT}={target.usual_timeout} on all hosts",
        )


@check(
    "HCD313",
    "variables-of-target",
    "stops",
    remedy="set what `hccl-tools env TABLE --target NAME` prints",
    source="MindIE-LLM ranktable_config.cpp (MIES_CONTAINER_IP); msrun_launcher.md (ASCEND_RT_VISIBLE_DEVICES)",
    of_npus=True,
)
def variables_of_target(case: Case) -> Iterator[Finding]:
    """Do the variables of the framework agree with the table?

    A variable that is not set is not a finding: hosts are usually asked without the environment of the job.
    """
    here = server_here(case)
    if case.table is None or here is None or case.target is None:
        return
    wanted = _wanted(case.target, case.table, here)
    for name, expected in wanted.items():
        found = case.environ.get(name)
        if found and found != expected:
            yield Finding(f"{name}={found}, but the table has {expected}", remedy=f"set {name}={expected}")
    visible = case.environ.get(_VISIBLE, "")
    if case.target == "mindspore" and case.devices and visible:
        words = (whole_number(word.strip()) for word in visible.split(","))
        listed = sorted(number for number in words if number is not None)
        if listed != sorted(case.devices):
            shown = ",".join(map(str, case.devices))
            yield Finding(
                f"{_VISIBLE}={visible}, but the table has devices {shown} here",
                remedy=f"set {_VISIBLE}={shown}, or unset it",
            )


def server_here(case: Case) -> Server | None:
    """Return the server of the table that is this host, ``None`` if it is not known."""
    names = {*case.seen.names, *case.seen.local_addresses}
    servers = case.table.servers if case.table is not None else []
    own = [server for server in servers if names & set(stated_names(server))]
    return own[0] if len(own) == 1 else None


def _wanted(target: str, table: RankTable, here: Server) -> dict[str, str]:
    """Return the variables of a target whose values the table decides."""
    if target != "mindie":
        return {}
    container_ip = here.fields.get("container_ip")
    own = {"MIES_CONTAINER_IP": container_ip} if isinstance(container_ip, str) else {}
    return own | {"MASTER_IP": job_variables(TARGETS[target], table, {}).get("MASTER_IP", here.server_id)}


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
            remedy=f"name its target: {links.real_path(path)}",
        )
    if target.mode is not None and mode & ~target.mode:
        yield Finding(
            f"{path} has mode {mode:o}; {target.title} requires {target.mode:o}",
            remedy=f"`chmod {target.mode:o} {operand(path)}`",
            commands=(("chmod", f"{target.mode:o}", "--", path),),
        )
    if target.mode is not None and found.st_uid != os.geteuid():
        yield Finding(
            f"{path} belongs to user {found.st_uid}; {target.title} opens only files of its own user",
            remedy="copy it as the user of the job",
        )
