"""The runs on disk and their states."""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import time
from collections import Counter
from contextlib import suppress
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import and_more, count, operand
from hccl_tools.notation.printable import escaped, tell
from hccl_tools.processes import guarded_folders, procfs, run_files
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, files, lock_holder, names, run_processes
from hccl_tools.runs.saved import SavedReport

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

_MOST_NAMED = 8
#: Directories of one other user that a list of runs looks at, the newest; each run costs a millisecond.
_MOST_OF_OTHERS = 1000
#: Why a run of another user is skipped.
_OF_OTHERS = "it belongs to another user"

#: The name of the log directory without --log-dir.
_USUAL = "log"
#: The folders above and beside this one in which runs are looked for.
_MOST_ABOVE = 4
_MOST_BESIDE = 64


class NoSuchRunError(UsageError):
    """The name of a run matches no run."""


class Run(NamedTuple):
    """One launch.

    Attributes:
        path: Its run directory, absolute.
        state: ``running``, ``ended`` (with a report), ``killed`` (and left no report) or ``elsewhere``
            (its launcher is on another host, which may or may not run it).
        pid: The process id of the launcher, 0 if it is not recorded.
        host: The host of the launcher.
        started: Seconds since the epoch, 0.0 if it is not recorded.
        ranks: The number of ranks on all hosts.
        exit_code: The exit code of an ended run.
        command: The command of the ranks.
        reason: Why an ended run ended, as in its report.
        kind: ``launch``, or ``spawn`` if the launcher is a user's program.
        hosts: The number of hosts.
        left: The processes on this host that a killed launcher left; counted by ``find`` only.
        user: The name of the other user whose run it is, "" for a run of this user.
    """

    path: str
    state: str
    pid: int = 0
    host: str = ""
    started: float = 0.0
    ranks: int = 0
    exit_code: int | None = None
    command: tuple[str, ...] = ()
    reason: str = ""
    kind: str = "launch"
    hosts: int = 1
    left: int = 0
    user: str = ""

    @property
    def age(self) -> float:
        """Seconds since the start of the run."""
        return max(0.0, time.time() - self.started) if self.started else 0.0

    @property
    def name(self) -> str:
        """The short name for messages, escaped: other users choose the names of their runs."""
        return escaped(names.short(os.path.basename(self.path)))

    @property
    def called(self) -> str:
        """The name for messages; of another user's run, who has chosen it, with the user and the path."""
        return self.name if not self.user else f"{self.name} of {self.user} ({escaped(self.path)})"

    def is_in(self, log_dir: str) -> bool:
        """Return whether the run is in a log directory."""
        return os.path.dirname(self.path) == os.path.abspath(log_dir)


def find(log_dir: str, part: str = "") -> list[Run]:
    """Return the runs in a log directory, oldest first, then other runs with processes on this host.

    Unreadable runs are skipped, and of each other user all but the newest runs; stderr says so.

    Args:
        log_dir: The log directory.
        part: A part of the names of the runs (``names.matching``); other runs cost nothing.
    """
    here = os.path.abspath(log_dir)
    paths = _inside(here)
    members = list(run_processes.members())
    if run_processes.are_incomplete():
        tell(
            "hccl-tools: not all runs that processes of other users name are looked at: the list of mounts"
            " (/proc/self/mountinfo) is too long, changes or is unusable"
        )
    claimed = _claimed(members, set(paths))
    processes = Counter(one.path for one in members)
    if part:
        selected = frozenset(_matching(part, [*claimed, *paths], here))
        paths = [path for path in paths if path in selected]
        claimed = {path: user for path, user in claimed.items() if path in selected}
    elsewhere, left_out = _limited(sorted(claimed), claimed)
    looked_at, not_looked_at = _limited(reversed(paths))
    left_out = Counter(left_out) + Counter(not_looked_at)
    found: list[Run] = []
    skipped: list[tuple[str, str]] = []
    with files.limited_in_all():
        for path in (*elsewhere, *looked_at):
            run, why = _tried(path)
            found += [run] if run else []
            skipped += [(path, why)] if why else []
    _tell_skipped(skipped, left_out)
    # Sort by time: names begin with the time, but only in whole seconds.
    found.sort(key=lambda run: (os.path.dirname(run.path) != here, run.started, run.path))
    return [run._replace(left=processes[run.path]) if run.state == "killed" else run for run in found]


def _matching(part: str, paths: Iterable[str], here: str) -> list[str]:
    """Return the paths whose names have a part, each among those of its user in or outside of a directory.

    Another user can give a run the short name of this user's run: it must not be the only one that matches.
    """
    groups: dict[tuple[int, bool], list[str]] = {}
    for path in paths:
        with suppress(OSError):
            owner = guarded_folders.about(path).st_uid
            groups.setdefault((owner, os.path.dirname(path) == here), []).append(path)
    found: list[str] = []
    for group in groups.values():
        selected = frozenset(names.matching(part, [os.path.basename(path) for path in group]))
        found += [path for path in group if os.path.basename(path) in selected]
    return found


def completed(log_dir: str) -> list[str]:
    """Return the names of the runs that a shell completes; they have the form of ``directory.path_for``.

    No file of a run is read.
    """
    here = os.path.abspath(log_dir)
    inside = _inside(here)
    claimed = _claimed(run_processes.members(), set(inside))
    found: list[str] = []
    for paths in (reversed(inside), sorted(claimed, reverse=True)):
        formed = (path for path in paths if names.is_of_a_run(os.path.basename(path)))
        newest, _left_out = _limited(formed, claimed)
        found += [os.path.basename(path) for path in reversed(newest) if files.is_run(path)]
    return found


def _inside(here: str) -> list[str]:
    """Return the paths in a log directory by name, without the link to the latest run."""
    found = sorted(os.listdir(here)) if os.path.isdir(here) else []
    return [os.path.join(here, name) for name in found if name != names.LATEST]


def _claimed(members: Iterable[run_processes.Member], inside: Container[str]) -> dict[str, int]:
    """Return the run directories outside of the log directory that processes name, with a user of these."""
    found: dict[str, int] = {}
    for one in members:
        if one.path not in inside and (one.path not in found or one.user == os.geteuid()):
            found[one.path] = one.user
    return found


def _limited(
    paths: Iterable[str], users: Mapping[str, int] = MappingProxyType({})
) -> tuple[list[str], dict[int, int]]:
    """Return the directories, of each other user the first ones only, and how many of each are left out.

    Every user can put any number of directories into a shared log directory, and processes can name as many.

    Args:
        users: The users for whom directories count, in place of their owners.
    """
    found: list[str] = []
    seen: Counter[int] = Counter()
    for path in paths:
        try:
            about = guarded_folders.about(path)
        except OSError:
            continue
        if stat.S_ISDIR(about.st_mode):
            user = users.get(path, about.st_uid)
            seen[user] += 1
            if user == os.geteuid() or seen[user] <= _MOST_OF_OTHERS:
                found.append(path)
    del seen[os.geteuid()]
    return found, {
        user: number - _MOST_OF_OTHERS for user, number in seen.items() if number > _MOST_OF_OTHERS
    }


def _tried(path: str) -> tuple[Run | None, str]:
    """Return the run in a directory, or why it cannot be read; neither if the directory is not a run."""
    if guarded_folders.is_closed(path):
        return None, _OF_OTHERS
    try:
        return read(path) if files.is_run(path) else None, ""
    except files.MalformedRunError as error:
        return None, error.message


def _tell_skipped(skipped: list[tuple[str, str]], left_out: dict[int, int]) -> None:
    closed = [path for path, why in skipped if why == _OF_OTHERS]
    if len(closed) > 1:
        one, *_ = closed
        where = os.path.dirname(one)
        tell(f"hccl-tools: {len(closed)} runs in {where} are skipped: they belong to other users")
        skipped = [(path, why) for path, why in skipped if why != _OF_OTHERS]
    for path, why in skipped[:_MOST_NAMED]:
        tell(f"hccl-tools: {path} is skipped: {why}")
    if len(skipped) > _MOST_NAMED:
        tell(f"hccl-tools: {len(skipped) - _MOST_NAMED} more runs are skipped")
    for user, number in islice(left_out.items(), _MOST_NAMED):
        older = count(number, "older run is", "older runs are")
        tell(
            f"hccl-tools: {links.user_name(user)}: {older} left out; of another user, the newest"
            f" {_MOST_OF_OTHERS:,} are listed, and what a command names"
        )
    if len(left_out) > _MOST_NAMED:
        tell(f"hccl-tools: runs of {len(left_out) - _MOST_NAMED} more users are left out")


def resolve(name: str, log_dir: str) -> Run:
    """Return a run by its path, its name in the log directory, a part of its name, or ``latest``.

    Raises:
        NoSuchRunError: No run matches.
        UsageError: The name is empty, more than one run matches, or the run cannot be read.
    """
    if not name.strip():  # ``stop "$RUN"`` with an unset variable must not stop the only run.
        raise UsageError("the name of the run is empty", hint="`hccl-tools jobs` lists the runs")
    typed = _at_path(name, log_dir)
    if typed is not None and typed.user and name in names.NEWEST:
        return _own_newest(log_dir) or typed
    if typed is not None and (not typed.user or os.sep in name):
        return typed
    all_runs = find(log_dir, name)
    # Other users choose the names of their runs: these come after the runs of this user.
    own, here = [run for run in all_runs if not run.user], [run for run in all_runs if run.is_in(log_dir)]
    found = [run for run in own if run.is_in(log_dir)] or here or own or all_runs
    if typed is not None and all(run.user and run.path != typed.path for run in found):
        found = [typed, *found]
    if len(found) == 1:
        _held(found[0].path)
        return found[0]
    if found:
        raise _ambiguous(name, found)
    known = find(log_dir)
    raise NoSuchRunError(
        sentence(log_dir, None if name in names.NEWEST else name),
        hint=remedy(log_dir, sum(run.is_in(log_dir) for run in known), name, known),
    )


def newest(log_dir: str) -> Run:
    """Return the newest run of a log directory: this user's, else that to which ``latest`` leads.

    Raises:
        NoSuchRunError: There is none.
        UsageError: The run cannot be read.
    """
    linked = resolve(os.path.join(log_dir, names.LATEST), log_dir)
    return (linked.user and _own_newest(log_dir)) or linked


def _own_newest(log_dir: str) -> Run | None:
    """Return this user's newest run, to which ``latest`` does not lead if another user owns the link."""
    own = [run for run in find(log_dir) if run.is_in(log_dir) and not run.user]
    if not own:
        return None
    _held(own[-1].path)
    return own[-1]


def _at_path(name: str, log_dir: str) -> Run | None:
    """Return the run at a path, or the latest one of a log directory; None if there is none.

    Raises:
        UsageError: The run cannot be read.
    """
    link = os.path.join(log_dir, names.LATEST)
    for path in (name, link) if name in names.NEWEST else (name,):
        if directory.leads_elsewhere(path):
            continue
        real = links.real_path(path)
        if files.is_run(real):
            # All files that the command reads are those of one directory.
            _check_links(path, real, _held(real))
            return read(real)
        if guarded_folders.is_closed(path):
            raise UsageError(
                f"{links.real_path(path)} belongs to {links.user_of(path)}, and you cannot read it",
                hint="ask that user to open it, or to launch with --log-mode 750",
            )
    if (name in names.NEWEST or name == link) and os.path.lexists(link):
        return _own_newest(log_dir)  # The link leads to logs of MPI ranks, which have no plan.
    return None


def _held(path: str) -> run_files.Folder:
    """Hold the directory of a run, so that all files that a command reads are those of one directory.

    Raises:
        UsageError: It cannot be opened: another user may exchange it meanwhile.
    """
    try:
        return run_files.hold(path)
    except OSError as error:
        raise UsageError(f"{escaped(path)} cannot be read: {run_files.reason(error)}") from None


def _ambiguous(name: str, found: list[Run]) -> UsageError:
    """Return the error for a name that several runs have."""
    known = [os.path.basename(run.path) for run in found]
    if len({run.user for run in found}) > 1 or len(set(known)) < len(known):
        shown = and_more([run.called if run.user else f"{run.name} ({escaped(run.path)})" for run in found])
        return UsageError(f'"{name}" is ambiguous: {shown}', hint="type the path of the run")
    shown = and_more([escaped(names.short(one, known)) for one in known])
    last = escaped(names.short(known[-1], known))
    return UsageError(
        f'"{name}" is ambiguous: {shown}', hint=f"type more of the name; the last run of these is {last}"
    )


def _check_links(path: str, run_dir: str, held: run_files.Folder) -> None:
    """Refuse a path to a run through a link of a third user, who chooses the run that it leads to.

    Raises:
        UsageError: The path leads through such a link, or to another directory by now.
    """
    try:
        with links.Entry(os.path.join(path, ""), owners=frozenset({0, os.geteuid(), held.owner})) as entry:
            about = os.fstat(entry.folder)
    except links.ForeignLinkError as error:
        raise UsageError(
            f"{escaped(error.link)}, a link of {links.user_name(error.owner)}, leads to a run of"
            f" {links.user_name(held.owner)}",
            hint=f"if that run is meant, type its path: {shlex.quote(run_dir)}",
        ) from None
    except OSError:
        about = None
    if about is None or not held.is_same((path, about.st_dev, about.st_ino)):
        raise UsageError(f"{escaped(path)} leads to another directory than a moment ago", hint="try again")


def read(path: str) -> Run:
    """Return the run in a run directory.

    Raises:
        MalformedRunError: A file in the directory is malformed.
    """
    plan, report, holder = files.summary(path), files.report(path), files.holder(path)
    if report is None and holder.ended:
        report = SavedReport(*holder.ended)
    state = "running" if is_held(path) else "ended" if report else "killed"
    if state == "killed" and holder.host not in {"", os.uname().nodename}:
        state = "elsewhere"
    return Run(
        path,
        state,
        holder.pid,
        holder.host,
        holder.started,
        plan.ranks,
        report.exit_code if report else None,
        plan.command,
        report.reason if report else "",
        holder.kind,
        max(1, plan.hosts),
        user=directory.other_user(path),
    )


def processes(run: Run) -> list[int]:
    """Return the ids of the processes on this host that belong to a run, including orphans."""
    return [one.pid for one in run_processes.members() if one.path == run.path]


def is_over(run: Run) -> bool:
    """Return whether a run has ended; a run on another host has ended once its report exists."""
    if is_held(run.path):
        return False
    return run.state != "elsewhere" or files.report(run.path) is not None


def is_held(path: str) -> bool:
    """Return whether a launcher holds the lock of a run.

    Each user who can read the file can hold the lock. The lock is another user's if the launcher has recorded
    its end and is not a process of this host, or if ``lock_holder`` says so.
    """
    try:
        with run_files.opened(path) as folder, open(folder.open_read(names.LAUNCHER), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return not _has_left(path) and lock_holder.may_be_launcher(path)
    except OSError:
        return False
    return False


def _has_left(path: str) -> bool:
    """Return whether the launcher of a run on this host has recorded its end and is gone."""
    try:
        holder = files.holder(path)
    except files.MalformedRunError:
        return False
    if holder.host != os.uname().nodename or not holder.start:
        return False
    process = procfs.status(holder.pid)
    is_alive = process is not None and process.start == holder.start
    return not is_alive and (holder.ended is not None or files.has_report(path))


def sentence(log_dir: str, name: str | None = None) -> str:
    """Return that a log directory has no run, or no run with a name."""
    what = "there is no run" if name is None else f'there is no run "{name}"'
    folder = os.path.abspath(log_dir)
    return f"{what} in {folder}" if os.path.isdir(folder) else f"{what}: {folder} does not exist"


def remedy(log_dir: str, runs: int, name: str | None = None, known: Sequence[Run] = ()) -> str:
    """Return what to type instead: the list of the runs that are there, or another log directory.

    Args:
        runs: The number of runs in the log directory.
        name: What was typed in place of a run.
        known: Runs that may be of other log directories.
    """
    if name is not None and _has_runs(name):
        return f"this is a log directory: `--log-dir {operand(name)}` names it"
    if name is not None and os.path.isfile(name) and files.is_run(links.real_path(os.path.dirname(name))):
        return f"this is a file of a run: name the run, `{operand(os.path.dirname(name))}`"
    if runs:
        where = "" if log_dir == _USUAL else f" --log-dir {operand(log_dir)}"
        return f"`hccl-tools jobs{where}` lists the {count(runs, 'run')} there"
    newest = max((run.path for run in known if not run.user), key=os.path.basename, default="")
    other = next(_others(log_dir), None) or os.path.dirname(newest)
    if other:
        return f"there are runs in another folder: add `--log-dir {operand(other)}`"
    return (
        "name the log directory of the job with `--log-dir DIR`: log/ in the folder where "
        "`hccl-tools launch` was started, or the DIR of its own --log-dir"
    )


def none_listed(log_dir: str, ended: int) -> str:
    """Return the text in place of an empty list; ``ended`` is the number of runs that are left out of it."""
    if ended:
        where = "" if log_dir == _USUAL else f" --log-dir {operand(log_dir)}"
        return f"no run is running; `hccl-tools jobs{where}` lists the {count(ended, 'run')} that ended"
    return f"{sentence(log_dir)}\n  help: {remedy(log_dir, 0)}"


def _others(log_dir: str) -> Iterator[str]:
    """Yield log directories with runs: above the current folder, below it, of the shell's folder before."""
    before = os.environ.get("OLDPWD", "")
    looked_at = os.path.abspath(log_dir)
    above = [os.path.join(*[os.pardir] * depth, _USUAL) for depth in range(1, _MOST_ABOVE + 1)]
    try:
        with os.scandir() as entries:
            below = sorted(entry.name for entry in islice(entries, _MOST_BESIDE) if entry.is_dir())
    except OSError:
        below = []
    former = [os.path.join(before, _USUAL)] if os.path.isabs(before) else []
    for folder in (_USUAL, *above, *(os.path.join(name, _USUAL) for name in below), *former):
        if os.path.abspath(folder) != looked_at and _has_runs(folder):
            yield folder


def _has_runs(folder: str) -> bool:
    return files.is_run(links.real_path(os.path.join(folder, names.LATEST)))
