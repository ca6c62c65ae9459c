"""The list of runs as text, for a screen of 80 columns, and as JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import aligned, and_more, count, operand
from hccl_tools.notation.printable import escaped
from hccl_tools.processes import run_files
from hccl_tools.runs import index, names
from hccl_tools.runs.ends import REASONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from hccl_tools.runs.index import Run


_HEADER = ("run", "user", "state", "ranks", "hosts", "age", "exit", "program")
#: Left out if every run is this user's, or has one host.
_USER, _HOSTS = _HEADER.index("user"), _HEADER.index("hosts")
#: Columns of a name that is not one of ours.
_LONGEST_NAME = 24
#: Columns of a user's name if the lines do not fit otherwise.
_SHORTER_USER = 8
#: Columns of a state and of a number: another user can make up a run with any.
_LONGEST_STATE, _LONGEST_NUMBER = 15, 8
#: Columns that a program has at least.
_SHORTEST_PROGRAM = 10
#: Left out in this order until the lines fit; ``-f json`` has them.
_LESS_NEEDED = tuple(map(_HEADER.index, ("hosts", "ranks", "age", "exit", "user")))
_STYLES = {
    "running": "good",
    "failed": "error",
    "hung": "error",
    "launcher killed": "error",
    "ended": "quiet",
}
#: The states of runs that have no report.
_STATES = {"running": "running", "killed": "launcher killed", "elsewhere": "elsewhere"}
_PYTHON = re.compile(r"python[0-9.]*")


def as_text(
    runs: Sequence[Run], log_dir: str = "log", *, among: Sequence[Run] = (), color: bool = False
) -> str:
    """Return one aligned line per run, and what a command needs to know of runs that are elsewhere.

    The lines fit the screen, or 80 columns. The names are as short as commands take them.

    Args:
        among: All runs that a command finds, if not all are listed.
    """
    if not runs:
        here = os.path.abspath(log_dir)
        there = sum(os.path.dirname(run.path) == here for run in among)
        text = index.none_listed(log_dir, there)
        return screen.fitted(text, screen.width()) + "\n"
    pen = screen.Pen(color)
    short = short_names(among or runs)
    rows = [_row(run, short[os.path.basename(run.path)]) for run in runs]
    without = {
        *([_USER] if not any(run.user for run in runs) else []),
        *([_HOSTS] if all(run.hosts == 1 for run in runs) else []),
    }
    width = screen.width() or screen.STANDARD
    head, *lines = _fitted([_HEADER, *rows], without, width)
    shown = [pen("quiet", head)]
    for run, line in zip(runs, lines, strict=True):
        state = _shown_state(run)
        shown.append(line.replace(f"  {state}", f"  {pen(_STYLES.get(state, 'warning'), state)}", 1))
    here = os.path.abspath(log_dir)
    is_elsewhere = all(os.path.dirname(run.path) != here for run in among or runs)
    typed = typed_names(among or runs, log_dir)
    notes = _notes(runs, rows, log_dir, typed, is_elsewhere=is_elsewhere)
    shown += [part for note in notes for part in screen.wrapped(note, width)]
    return "".join(f"{line}\n" for line in shown)


def _fitted(rows: Sequence[Sequence[str]], without: Collection[int], width: int) -> Iterator[str]:
    """Return rows as aligned lines of at most so many columns.

    Names and states are whole on any screen: with the start of the program, they have at most 53 columns.

    Args:
        rows: The header and the rows.
        without: The columns of the table that are left out in any case.
    """
    sizes = [max(map(screen.cells, column)) for column in zip(*rows)]  # noqa: B905  (strict= needs Python 3.10)
    kept = [column for column in range(len(_HEADER) - 1) if column not in without]
    least = min(_SHORTEST_PROGRAM, sizes[-1])

    def room() -> int:
        return width - sum(sizes[column] + len("  ") for column in kept)

    if room() < least:
        sizes[_USER] = min(sizes[_USER], _SHORTER_USER)
    for column in _LESS_NEEDED:
        if room() < least and column in kept:
            kept.remove(column)
    sizes[-1] = max(least, room())
    return aligned([[screen.cut(row[column], sizes[column]) for column in (*kept, -1)] for row in rows])


def short_names(runs: Sequence[Run]) -> dict[str, str]:
    """Return the name by which all commands find each run among these, by the name of its directory."""
    ordered = sorted({os.path.basename(run.path) for run in runs})
    # The names that share most with a name are next to it.
    return {
        name: names.short(name, ordered[max(0, place - 1) : place + 2]) for place, name in enumerate(ordered)
    }


def typed_names(runs: Sequence[Run], log_dir: str) -> dict[str, str]:
    """Return what a command is given to find each run, by path: a short name, or the path.

    A name selects the runs of this user in the log directory first. All other runs need their path.
    """
    short = short_names([run for run in runs if not run.user and run.is_in(log_dir)])
    return {
        run.path: short[os.path.basename(run.path)] if not run.user and run.is_in(log_dir) else run.path
        for run in runs
    }


def _notes(
    runs: Sequence[Run],
    rows: Sequence[Sequence[str]],
    log_dir: str,
    typed: Mapping[str, str],
    *,
    is_elsewhere: bool,
) -> Iterator[str]:
    """Yield what the rows have no room for: processes that are left, and the folders of other runs.

    Args:
        typed: What a command is given to find each run, by path.
        is_elsewhere: Whether the log directory itself has no run.
    """
    here = os.path.abspath(log_dir)
    places: dict[tuple[str, str], list[str]] = {}
    for run, row in zip(runs, rows, strict=True):
        if run.state == "killed" and run.left:
            left = count(run.left, "process is", "processes are")
            # Another user can make up a run, also with the name of one of this user's runs.
            advice = "" if run.user else f"; `hccl-tools stop {operand(typed[run.path])}` ends them"
            yield escaped(f"{row[0]}{f' of {run.user}' if run.user else ''}: {left} left") + advice
        is_there = run.state in {"running", "elsewhere"} and run.host != os.uname().nodename
        places.setdefault((os.path.dirname(run.path), run.host if is_there else ""), []).append(row[0])
    for (folder, host), some in places.items():
        if where := [
            *([f"in {names.shown(folder)}"] if folder != here else []),
            *([f"on {host}"] if host else []),
        ]:
            yield escaped(f"{' '.join(where)}: {and_more(some)}")
    if is_elsewhere:
        yield f"{index.sentence(log_dir)}; {index.remedy(log_dir, 0, known=runs)}"
    if log_dir != "log" and any(folder == here for folder, _host in places):
        yield escaped(f"other commands find these runs with --log-dir {shlex.quote(log_dir)}")


def as_json(runs: Sequence[Run]) -> str:
    """Return the runs as JSON with a version."""
    value = {
        "schema_version": 1,
        "runs": [
            {"name": os.path.basename(run.path), **run._asdict(), "shown_state": _state(run)} for run in runs
        ],
    }
    return json.dumps(value, indent=2) + "\n"


def _row(run: Run, name: str) -> tuple[str, ...]:
    code = "-" if run.exit_code is None else str(run.exit_code)
    name = screen.cut(escaped(name), _LONGEST_NAME)
    ranks, hosts, age, code = (
        screen.cut(one, _LONGEST_NUMBER) for one in (str(run.ranks), str(run.hosts), _age(run), code)
    )
    state = _shown_state(run)
    return (name, escaped(run.user or "-"), state, ranks, hosts, age, code, escaped(_program(run)))


def _shown_state(run: Run) -> str:
    return screen.cut(escaped(_state(run)), _LONGEST_STATE)


def _age(run: Run) -> str:
    """Return the age in one unit, of which there are two at least."""
    if not run.started:
        return "-"
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
        if run.age >= 2 * seconds:
            return f"{run.age // seconds:.0f} {unit}"
    return f"{run.age:.0f} s"


def _state(run: Run) -> str:
    if run.state in _STATES:
        return _STATES[run.state]
    known = REASONS.get(run.reason)
    return (known.state if known else "") or run.reason or "ended"


def _program(run: Run) -> str:
    if run.kind == "spawn":
        return f"(spawned by pid {run.pid})"
    program, *arguments = run.command or ("-",)
    name = os.path.basename(program)
    is_python = arguments and _PYTHON.fullmatch(name)
    return shlex.join(["python" if is_python else program, *arguments])


def all_running(log_dir: str) -> list[Run]:
    """Return the runs of a log directory that are running on this host, or have left processes here.

    Root can stop the runs of all users, another user only own ones.
    """
    found = [run for run in index.find(log_dir) if run.is_in(log_dir) and (not run.user or os.geteuid() == 0)]
    return [run for run in found if run.state == "running" or run.left]


def the_run(name: str | None, log_dir: str, command: str) -> Run:
    """Return the named run; without a name the running one of a log directory, else its latest.

    Args:
        command: The command that was typed, for the hint.

    Raises:
        NoSuchRunError: No run was found.
        UsageError: Several runs are running, or root's ``stop`` would end the run of another user.
    """
    if name is not None:
        return index.resolve(name, log_dir)
    inside = [run for run in index.find(log_dir) if run.is_in(log_dir)]
    found = _own_first([run for run in inside if run.state == "running" or run.left])
    # Whether a run of another host is running can only be found out there; its command says how.
    found = found or _own_first([run for run in inside if run.state == "elsewhere"])[-1:]
    if not found:
        return index.resolve(names.LATEST, log_dir)
    last = typed_names(found, log_dir)[found[-1].path]
    if len(found) == 1 and command == "stop" and found[0].user and os.geteuid() == 0:
        raise UsageError(
            f"the run that is running in {log_dir} is one of {found[0].user}",
            hint=f"name it to stop it: `hccl-tools stop {operand(last)}`",
        )
    if len(found) == 1:
        run_files.hold(found[0].path)
        return found[0]
    raise UsageError(
        f"{count(len(found), 'run')} are running in {log_dir}",
        lines=as_text(found).splitlines(),
        hint=f"name the run, for example the last one: `hccl-tools {command} {operand(last)}`"
        + ("; `hccl-tools stop --all` stops them all" if command == "stop" else ""),
    )


def followed(log_dir: str) -> Run:
    """Return the run whose output is followed: the one that was started last of those that are running.

    Without any, it is the latest run.

    Raises:
        NoSuchRunError: No run was found.
    """
    found = [run for run in index.find(log_dir) if run.is_in(log_dir)]
    running = _own_first([run for run in found if run.state == "running"])
    if not running:
        return index.resolve(names.LATEST, log_dir)
    run_files.hold(running[-1].path)
    return running[-1]


def _own_first(found: list[Run]) -> list[Run]:
    """Return the runs of this user; those of others if there are none: others can add runs at will."""
    return [run for run in found if not run.user] or found
