"""The parent of one MPI rank: starts it in a new session, forwards signals, shows its log and ends it.

The rank must create the session: under Open MPI 5, ``setsid`` fails in the process that mpirun has started.
One poll() waits for signals, exited children and the next read of the log.

When mpirun ends its ranks, it kills the processes that it has started, after 0.25 s or at once. Without a
launcher, a copy of the shim therefore does the work, and ends the rank and all its processes after mpirun has
killed the original shim.
"""

from __future__ import annotations

import os
import select
import time

from hccl_tools.launch.mpi.launcher_link import ParentWatch
from hccl_tools.processes import linux, procfs, run_files

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import NoReturn

    from hccl_tools.launch.logs.follower import Follower
    from hccl_tools.launch.mpi.launcher_link import LauncherLink
    from hccl_tools.launch.mpi.prepared import PreparedRank
else:
    import _signal as signal  # Without the names of the signals, which take 4 ms.

_FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGTSTP,
)  # fmt: skip
#: Milliseconds between two reads of a followed log.
_LOG_INTERVAL = 20
#: Milliseconds between two checks of the parent process, on kernels without process descriptors.
_PARENT_INTERVAL = 250
#: Seconds to wait after SIGKILL for the leftover processes of the rank.
_KILL_TIMEOUT = 2.0


def run(prepared: PreparedRank, link: LauncherLink | None = None) -> int:
    """Run the rank until it exits; return its exit code, 128+n for signal n.

    ``link`` is the connection to the launcher, if one has started mpirun.
    """
    header = "" if prepared.keep_binding else _unbind()
    if prepared.cores:
        os.sched_setaffinity(0, prepared.cores)
    if prepared.exec:
        os.execvpe(prepared.argv[0], prepared.argv, prepared.environment)  # noqa: S606  (no shell)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_FORWARDED})
    if link is None:
        _continue_in_a_copy()
    linux.become_subreaper()
    signals = linux.signal_descriptor({signal.SIGCHLD, *_FORWARDED})
    scheduler = _start_scheduler(prepared)
    again = f".restart_{prepared.restart}" if prepared.restart else ""
    log = os.path.join(prepared.run_dir, f"rank_{prepared.rank}{again}.log")
    parent = ParentWatch(link)
    began = time.monotonic()
    pid = _start(prepared.argv, prepared.environment, log, header)
    is_shown = prepared.tail == "all" or str(prepared.rank) in prepared.tail.split(",")
    follower = _follower(log) if is_shown else None
    status = _watch(pid, signals, follower, parent)
    duration = time.monotonic() - began
    _kill_leftovers(keep=scheduler)
    if follower:
        _show(follower, last=True)
    code = os.waitstatus_to_exitcode(status)
    is_orphan = parent.has_ended()
    if link is not None:
        from hccl_tools.launch.model.rank_messages import RankExit  # noqa: PLC0415  (not needed while the rank starts)
        from hccl_tools.launch.mpi import end_report  # noqa: PLC0415

        ended = RankExit(prepared.rank, pid, status, round(duration, 3), None, log)
        end_report.report(link, ended, parent.lost)
    elif code != 0 and not is_orphan and not parent.has_terminated:
        from hccl_tools.launch.mpi import failure_report  # noqa: PLC0415  (most ranks succeed)

        failure_report.print_failure(prepared, pid=pid, status=status, duration=duration, log=log)
    if scheduler:
        from hccl_tools.launch.mpi import scheduler_end  # noqa: PLC0415  (rank 0 only, and not always)

        scheduler_end.end(scheduler, prepared.port, wait=code == 0)
    code = code if code >= 0 else 128 - code
    if code != 0 and link is None and not is_orphan:
        from hccl_tools.launch.mpi import end_report  # noqa: PLC0415

        end_report.end_job(code)
    return code


def _continue_in_a_copy() -> None:
    original = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        linux.die_with_parent(signal.SIGTERM)
        if os.getppid() != original:
            os._exit(128 + signal.SIGKILL)
        return
    while True:
        number = signal.sigwait({signal.SIGCHLD, *_FORWARDED})
        if number != signal.SIGCHLD:
            os.kill(pid, number)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _start(argv: tuple[str, ...], variables: Mapping[str, str], log: str, header: str = "") -> int:
    parent = os.getpid()
    descriptor = run_files.open_append(log)
    if header:
        os.write(descriptor, header.encode())
    pid = os.fork()
    if pid == 0:
        _exec_child(argv, variables, descriptor, parent)
    os.close(descriptor)
    return pid


def _exec_child(argv: tuple[str, ...], variables: Mapping[str, str], log: int, parent: int) -> NoReturn:
    code = 126
    try:
        linux.reset_signals()
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        linux.ChildSetup().exec(
            lambda: os.execvpe(argv[0], argv, variables),  # noqa: S606  (no shell)
            parent=parent,
            stdin=null,
            log=log,
        )
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        os.write(2, f"hccl-tools: {argv[0]} cannot be run: {error.strerror}\n".encode())
    finally:
        os._exit(code)


def _watch(pid: int, signals: int, follower: Follower | None, parent: ParentWatch) -> int:
    """Forward signals and show the log until the rank exits or must be killed; return its wait status."""
    poller = select.poll()
    poller.register(signals, select.POLLIN)
    wait = _PARENT_INTERVAL if parent.watch(poller) else None
    while True:
        poller.poll(_LOG_INTERVAL if follower else wait)
        for number in parent.signals_to_forward(linux.read_signals(signals)):
            _forward(pid, number)
        if follower:
            _show(follower)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        _reap_orphans(but=pid)


def _forward(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _reap_orphans(but: int) -> None:
    me = os.getpid()
    for process in procfs.processes().values():
        if process.parent == me and process.pid != but and process.state in procfs.ENDED_STATES:
            os.waitpid(process.pid, os.WNOHANG)


def _kill_leftovers(keep: int) -> None:
    if not keep and _is_childless():
        return  # As a subreaper, this process would be the parent of any leftover process.
    me = os.getpid()
    procfs.kill_until_gone(lambda: procfs.signal_all(me, signal.SIGKILL, but=keep), timeout=_KILL_TIMEOUT)


def _is_childless() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _follower(log: str) -> Follower:
    from hccl_tools.launch.logs.follower import Follower  # noqa: PLC0415  (only a shown rank needs it)

    return Follower(log)


def _show(follower: Follower, *, last: bool = False) -> None:
    while data := follower.read(last=last):
        written = 0
        while written < len(data):
            written += os.write(1, data[written:])


def _unbind() -> str:
    """Undo a binding to one core (mpirun's default for up to two ranks); return a message about it, or "".

    The rank gets the cores of mpirun's own process: limits of taskset or a container still apply.
    """
    try:
        own, parents = os.sched_getaffinity(0), os.sched_getaffinity(os.getppid())
        # Two hardware threads are one core; wider bindings (numa, socket) are intended.
        if len(own) > 2 or not own < parents:
            return ""
        os.sched_setaffinity(0, parents)
    except OSError:
        return ""
    cores = ",".join(str(core) for core in sorted(own))
    return (
        f"hccl-tools: mpirun bound the rank to core {cores}; it now has all {len(parents)} (--keep-binding)\n"
    )


def _start_scheduler(prepared: PreparedRank) -> int:
    if prepared.scheduler is None:
        return 0
    argv, variables = prepared.scheduler
    return _start(argv, variables, os.path.join(prepared.run_dir, "scheduler.log"))
