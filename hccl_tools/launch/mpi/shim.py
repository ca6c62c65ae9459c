"""The parent of one MPI rank: starts it in its own session, passes signals on, shows its log, ends it all.

The session must be the rank's, not ours: under Open MPI 5 ``setsid`` in the process that mpirun has started
fails. Everything arrives in one poll(): signals, ended children, time to look at the log.

An mpirun that ends its ranks kills the processes that it has started, after 0.25 s or at once. Where no
launcher of ours is above, a copy of that process does the work therefore, and ends the rank with all it has
started when mpirun has killed the original.
"""

from __future__ import annotations

import os
import select
import signal
import time

from hccl_tools.launch.mpi.launcher_link import Above
from hccl_tools.launch.processes import linux, procfs

TYPE_CHECKING = False  # That of typing, which a shim does without; see records.
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from hccl_tools.launch.logs.follower import Follower
    from hccl_tools.launch.mpi.launcher_link import LauncherLink
    from hccl_tools.launch.mpi.prepared import PreparedRank

_PASSED_ON = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGTSTP,
)  # fmt: skip
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
#: Milliseconds between two looks at a followed log.
_LOOK = 20
#: Milliseconds between two looks at the process that has started this one, where the kernel does not tell.
_LOOK_ABOVE = 250


def run(prepared: PreparedRank, link: LauncherLink | None = None) -> int:
    """Start the rank and see it to its end; return its exit code, 128+n for signal n.

    ``link`` is the connection to the launcher, if one has started mpirun.
    """
    said = "" if prepared.keep_binding else _unbind()
    if prepared.cores:
        os.sched_setaffinity(0, prepared.cores)
    if prepared.exec:
        os.execvpe(prepared.argv[0], prepared.argv, prepared.environment)  # noqa: S606  (no shell)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_PASSED_ON})
    if link is None:
        _leave_the_original_to_mpirun()
    linux.become_subreaper()
    signals = linux.signal_descriptor({signal.SIGCHLD, *_PASSED_ON})
    scheduler = _start_scheduler(prepared)
    again = f".restart_{prepared.restart}" if prepared.restart else ""
    log = os.path.join(prepared.run_dir, f"rank_{prepared.rank}{again}.log")
    above = Above(link)
    began = time.monotonic()
    pid = _start(prepared.argv, prepared.environment, log, said)
    follower = _follower(log) if _is_shown(prepared.rank, prepared.tail) else None
    status = _watch(pid, signals, follower, above)
    duration = time.monotonic() - began
    _end_rest(keep=scheduler)
    if follower:
        _show(follower, last=True)
    code = os.waitstatus_to_exitcode(status)
    is_orphan = above.has_gone()
    if link is not None:
        from hccl_tools.launch.mpi import end_report  # noqa: PLC0415  (while the rank starts nobody needs it)

        end_report.report(
            link, prepared.rank, pid=pid, status=status, duration=duration, log=log, lost=above.lost
        )
    elif code != 0 and not is_orphan and not above.asked:
        from hccl_tools.launch.mpi import failure_report  # noqa: PLC0415  (most ranks end well)

        failure_report.say(prepared, pid=pid, status=status, duration=duration, log=log)
    if scheduler:
        from hccl_tools.launch.mpi import scheduler_end  # noqa: PLC0415  (rank 0 only, and not always)

        scheduler_end.end(scheduler, prepared.port, patiently=code == 0)
    code = code if code >= 0 else 128 - code
    if code != 0 and link is None and not is_orphan:
        from hccl_tools.launch.mpi import end_report  # noqa: PLC0415

        end_report.end_job(code)
    return code


def _leave_the_original_to_mpirun() -> None:
    """Go on as a copy in a session of its own; the original passes signals on and ends as the copy does."""
    original = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        linux.die_with_parent(signal.SIGTERM)
        if os.getppid() != original:
            os._exit(128 + signal.SIGKILL)
        return
    while True:
        number = signal.sigwait({signal.SIGCHLD, *_PASSED_ON})
        if number != signal.SIGCHLD:
            os.kill(pid, number)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _start(argv: tuple[str, ...], variables: Mapping[str, str], log: str, said: str = "") -> int:
    """Fork a child that becomes the program, its output going to its log; return its pid."""
    parent = os.getpid()
    descriptor = os.open(log, _LOG_FLAGS, 0o666)
    if said:
        os.write(descriptor, said.encode())
    pid = os.fork()
    if pid == 0:
        _become(argv, variables, descriptor, parent)
    os.close(descriptor)
    return pid


def _become(argv: tuple[str, ...], variables: Mapping[str, str], log: int, parent: int) -> NoReturn:
    code = 126
    try:
        os.setsid()
        linux.die_with_parent(signal.SIGKILL)
        if os.getppid() == parent:
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (log, 1), (log, 2)):
                os.dup2(source, target)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            for number in (*_PASSED_ON, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(argv[0], argv, variables)  # noqa: S606  (no shell)
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        os.write(2, f"hccl-tools: {argv[0]} cannot be run: {error.strerror}\n".encode())
    finally:
        os._exit(code)


def _watch(pid: int, signals: int, follower: Follower | None, above: Above) -> int:
    """Pass signals on and show the log until the rank has ended; return its wait status.

    When what has started this process has ended, the rank is killed.
    """
    poller = select.poll()
    poller.register(signals, select.POLLIN)
    wait = _LOOK_ABOVE if above.watch(poller) else None
    while True:
        poller.poll(_LOOK if follower else wait)
        for number in above.judge(linux.read_signals(signals)):
            _pass_on(pid, number)
        if follower:
            _show(follower)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        _collect_adopted(but=pid)


def _pass_on(pid: int, number: int) -> None:
    """Signal the rank's whole group: its own session makes it one."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _collect_adopted(but: int) -> None:
    """Collect orphans that became ours while the rank runs; the rank itself is waited for by number."""
    me = os.getpid()
    for process in procfs.processes().values():
        if process.parent == me and process.pid != but and process.state in procfs.ENDED_STATES:
            os.waitpid(process.pid, os.WNOHANG)


def _end_rest(keep: int) -> None:
    """Kill what the rank has left behind, again and again until nothing is left, the scheduler apart."""
    if not keep and _is_childless():
        return  # As a subreaper we would be the parent of whatever is left.
    pause = 0.001
    while left := [process for process in procfs.descendants(os.getpid()) if process.pid != keep]:
        for process in left:
            _kill(process.pid)
        time.sleep(pause)
        if (pause := 2 * pause) > 1:
            return  # Stuck in the kernel: nobody can end it now.


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _is_childless() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _follower(log: str) -> Follower:
    from hccl_tools.launch.logs.follower import Follower  # noqa: PLC0415  (only a shown rank needs it)

    return Follower(log)


def _is_shown(rank: int, tail: str) -> bool:
    return tail == "all" or str(rank) in tail.split(",")


def _show(follower: Follower, *, last: bool = False) -> None:
    while data := follower.read(last=last):
        written = 0
        while written < len(data):
            written += os.write(1, data[written:])


def _unbind() -> str:
    """Undo a binding to one core (mpirun's default for up to two ranks); return a line that says so, or "".

    What mpirun's own process may use is the measure: a limit from outside (taskset, a container) stays.
    """
    try:
        own, parents = os.sched_getaffinity(0), os.sched_getaffinity(os.getppid())
        # Two hardware threads are one core; wider bindings (numa, socket) were meant.
        if len(own) > 2 or not own < parents:
            return ""
        os.sched_setaffinity(0, parents)
    except OSError:
        return ""
    cores = ",".join(str(core) for core in sorted(own))
    return (
        f"hccl-tools: mpirun had bound this rank to core {cores}; it may use all {len(parents)} now "
        "(--keep-binding keeps it there)\n"
    )


def _start_scheduler(prepared: PreparedRank) -> int:
    if prepared.scheduler is None:
        return 0
    argv, variables = prepared.scheduler
    return _start(argv, variables, os.path.join(prepared.run_dir, "scheduler.log"))
