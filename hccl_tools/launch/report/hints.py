"""Explain exit codes, signals and HCCL codes, and suggest what to do."""

from __future__ import annotations

import errno
import os
import re
import signal
from typing import TYPE_CHECKING

from hccl_tools.explain.knowledge.registry import codes as known_codes
from hccl_tools.explain.knowledge.registry import messages as known_messages
from hccl_tools.explain.knowledge.signals import REMEDIES
from hccl_tools.notation.phrases import operand
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.processes import procfs
from hccl_tools.processes.signals import signal_name
from hccl_tools.records import NamedTuple
from hccl_tools.runs import log_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.runs.job_report import RankFailure

#: For a failed rank, whose log the report quotes.
_SIGNALS = {
    **REMEDIES,
    "SIGABRT": "the program or a library aborted; its message is above in the log",
    "SIGTERM": "the signal came from the program, a batch system, a script or a user, not the launcher",
}


#: A rank may have written any line, and the name becomes a part of a hint.
_NO_MODULE = r"ModuleNotFoundError: No module named ('[\w.]+'(?:; '[\w.]+' is not a package)?)$"
#: What a host may say about the failure of a rank: the number of texts, and characters of each.
_MOST_SAID, _LONGEST_SAID = 8, 400


def line(hint: str, host: str) -> str:
    """Return a hint on the failure of a rank of ``host`` as a line: what that host says is not a hint."""
    return hint if hint.startswith(_said_by(host)) else f"hint: {hint}"


def of_host(host: str, first: RankFailure, end: RankEnd, *, killed_by_oom: bool | None) -> list[str]:
    """Return the hints of another host, as statements of that host unless they are made here as well.

    Args:
        first: The failure, as the host has sent it.
        end: The end of the rank, as far as it is known here.
    """
    made = {
        *for_end(end, killed_by_oom=killed_by_oom),
        *for_traceback(first.traceback, end.process.argv),
        *for_codes(first.hccl_codes),
        *for_start([*first.traceback, *first.last_lines], end.process.environment),
    }
    said = _said_by(host)
    return [
        hint if hint in made else said + hint.removeprefix(said)[:_LONGEST_SAID]
        for hint in first.hints[:_MOST_SAID]
    ]


def _said_by(host: str) -> str:
    return f"{host} says: "


def for_end(end: RankEnd, *, killed_by_oom: bool | None) -> list[str]:
    """Return hints on how a process ended.

    ``killed_by_oom`` is whether a count of out-of-memory kills has increased; ``None`` if unknown.
    """
    if end.error:
        return [_cannot_run(end)]
    if end.signal == signal.SIGKILL:
        return [_killed(killed_by_oom)]
    if end.signal:
        remedy = _SIGNALS.get(signal_name(end.signal))
        return [remedy] if remedy else []
    return _for_code(end.code or 0)


def for_traceback(lines: Iterable[str], argv: Sequence[str]) -> list[str]:
    """Return a hint if a traceback of ``argv`` reports a missing module."""
    names = [found[1] for line in lines if (found := re.match(_NO_MODULE, line))]
    if not names or not os.path.basename(argv[0]).startswith("python"):
        return []
    return [f"{argv[0]} has no module {names[-1]}: select another Python for the ranks with --python"]


#: Messages of Paddle and gloo about how the ranks were started, and of programs that need a variable.
_OF_THE_START = (
    *("HCM980", "HCM981", "HCM982", "HCM983"),
    *("HCM743", "HCM744", "HCM745", "HCM746", "HCM747", "HCM748"),
)


def for_start(lines: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return a hint if the log says that something was missing at the start of the ranks.

    Args:
        environ: The variables of the rank: one that was set is a key of the program's own.
    """
    for message in map(known_messages().__getitem__, _OF_THE_START):
        anchor, pattern = message.anchor, re.compile(message.pattern)
        for line in map(str.encode, lines):
            found = pattern.search(line) if anchor in line else None
            if found and found.groupdict().get("variable", b"").decode() not in environ:
                return [message.sentence]
    return []


def for_disk(log: str) -> list[str]:
    """Return a hint if the disk of a log is full."""
    if not log_files.is_full(os.path.dirname(log)):
        return []
    return ["the disk of the log is full: a failed write may be the cause, and the end of the log is missing"]


def for_codes(codes: Iterable[str]) -> list[str]:
    """Return one sentence per known HCCL code."""
    known = known_codes()
    return [f"{code}: {known[code].sentence}" for code in codes if code in known]


def _killed(killed_by_oom: bool | None) -> str:
    if killed_by_oom:
        return (
            "the signal came from the kernel's out-of-memory killer (its count has increased): use less"
            " memory per rank, fewer data-loading workers, or a larger limit"
        )
    if killed_by_oom is None:
        return "the signal usually comes from the out-of-memory killer (see `dmesg`), or from a kill -9"
    return f"the out-of-memory killer did not send it (its count has not increased): {REMEDIES['SIGKILL']}"


def _cannot_run(end: RankEnd) -> str:
    program, reason = end.process.argv[0], os.strerror(end.error)
    if end.error == errno.ENOENT:
        if "/" in program and os.path.exists(program):
            return f'"{program}" names a missing interpreter in its first line'
        where = "" if "/" in program else " on the PATH"
        return f'there is no program "{program}"{where}'
    if end.error == errno.ENOEXEC:
        start = f"`sh {operand(program)}`"
        return f'"{program}" is not a program: a script needs a first line such as #!/bin/sh, or {start}'
    if end.error == errno.EACCES:
        start = f"`python {operand(program)}`"
        return f'"{program}" is not executable: `chmod +x` it, or start it as {start}'
    return f'"{program}" cannot be run: {reason}'


def _for_code(code: int) -> list[str]:
    if code == 120:
        return ["Python could not flush its output: is the disk full?"]
    if code in (126, 127):
        problem = "cannot be executed" if code == 126 else "was not found"
        return [f"in a shell, exit code {code} means that a command {problem}"]
    number = code - 128
    if number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTERM):
        return [f"in a shell, exit code {code} means that {signal.Signals(number).name} killed a process"]
    return []


class Kills(NamedTuple):
    """Out-of-memory kills so far, in this process's cgroup and on the whole machine; ``None`` if unknown."""

    cgroup: int | None
    machine: int | None

    def since(self, before: Kills) -> bool | None:
        """Return whether either count has changed; ``None`` if neither can be read."""
        pairs = [pair for pair in zip(self, before, strict=True) if None not in pair]
        return any(now != then for now, then in pairs) if pairs else None


def kills() -> Kills:
    """Return the current counts."""
    return Kills(_in_cgroup(), _count(procfs.read("/proc/vmstat"), "oom_kill"))


def _in_cgroup() -> int | None:
    for line in filter(None, procfs.read("/proc/self/cgroup").split("\n")):
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0":
            candidates = [f"/sys/fs/cgroup{path}/memory.events", "/sys/fs/cgroup/memory.events"]
        elif "memory" in controllers.split(","):
            candidates = [f"/sys/fs/cgroup/memory{at}/memory.oom_control" for at in (path, "")]
        else:
            continue
        # In a container the path may be the host's, while only the container's part of the tree is mounted.
        for candidate in candidates:
            if (count := _count(procfs.read(candidate), "oom_kill")) is not None:
                return count
    return None


def _count(text: str, name: str) -> int | None:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and (number := whole_number(value)) is not None:
            return number
    return None
