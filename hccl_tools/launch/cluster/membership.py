"""What a host says of itself when the hosts of a job meet, and how two of them differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.cluster.transport import Wire

#: Marks every word of a meeting: who says something else is none of ours.
KIND = "hccl-tools launch"
#: Subject of the port where the ranks meet: all that two hosts of one job may have differently and still find
#: each other, at the port for questions.
PORT = "--start-port"
#: Subject of what is started: its kind and its name, ``script train.py``.
PROGRAM = "program"
HINT = "the same files and options belong on every host; --no-preflight starts all the same"


class Attendance(NamedTuple):
    """One host at the meeting: its server (index in the table), its name, and what it has by subject.

    ``run_dir`` is where its part of the run will lie; that need not be the same anywhere.
    """

    server: int
    host: str
    has: dict[str, str]
    run_dir: str = ""


class Met(NamedTuple):
    """What a host has of a meeting: its wires and the run directories of all, by server."""

    wires: dict[int, Wire]
    run_dirs: dict[int, str]


def differing(one: Attendance, other: Attendance) -> list[str]:
    """Return the subjects in which two hosts do not have the same, sorted."""
    return sorted(name for name in {*one.has, *other.has} if one.has.get(name) != other.has.get(name))


def difference(one: Attendance, other: Attendance) -> str:
    """Return in a sentence what two hosts have differently, "" for nothing."""
    if one.server == other.server:
        return f"two hosts take themselves for server {one.host} of the job: tell them apart by --server"
    if one.has.get(PROGRAM) != other.has.get(PROGRAM):
        return _programs(one, other)
    for subject in differing(one, other):
        here, there = (each.has.get(subject, "none") for each in (one, other))
        return f"{subject}: {one.host} has {here}, {other.host} has {there}"
    return ""


def _programs(one: Attendance, other: Attendance) -> str:
    here, there = (each.has.get(PROGRAM, "none") for each in (one, other))
    kind, _, name = here.partition(" ")
    other_kind, _, other_name = there.partition(" ")
    if kind != other_kind:
        return f"the hosts start different programs: {here} on {one.host}, {there} on {other.host}"
    return f"the hosts start different {kind}s: {name} on {one.host}, {other_name} on {other.host}"


def parse(word: dict[str, Any]) -> Attendance | None:
    """Return who a host says it is; ``None`` for what is none of ours."""
    if word.get("kind") != KIND:
        return None
    try:
        run_dir = str(word.get("run_dir", ""))
        return Attendance(int(word["server"]), str(word["host"]), dict(word["has"]), run_dir)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def absent(hosts: str, wait: float) -> LaunchError:
    """Return the refusal for hosts that have not come in so many seconds."""
    return LaunchError(
        f"{hosts} has not come to the meeting of the job's hosts within {wait:g} s",
        hint="type the same command, with the same --start-port, on every host; look for a refusal or a "
        "firewall there; --no-preflight goes without",
    )


def some(hosts: Sequence[str]) -> str:
    """Return hosts in a few words."""
    return ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")
