"""``hccl_tools.spawn``: run a function in one process per device, like paddle's ``spawn``.

The environment of each process is complete before its interpreter starts (MindSpore reads DEVICE_ID at its
import), results and exceptions are sent in files, and a keeper ends all processes when the caller exits.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from multiprocessing import reduction
from multiprocessing import spawn as preparing
from typing import TYPE_CHECKING, Any

from hccl_tools import own_python
from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch import preflight
from hccl_tools.launch.model.request import Hosts, LaunchRequest, Program
from hccl_tools.launch.mpi import repeated_start
from hccl_tools.launch.planning import interpreter, planner, ports
from hccl_tools.launch.render import plan_output
from hccl_tools.launch.spawn import child
from hccl_tools.launch.spawn import options as spawn_options
from hccl_tools.launch.spawn.context import SpawnContext
from hccl_tools.launch.spawn.errors import SpawnOptionError
from hccl_tools.notation.phrases import count
from hccl_tools.processes import keeper, run_files
from hccl_tools.processes.keeper_protocol import Task
from hccl_tools.runs import directory, names, own_runs, private_files, table_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.launch.spawn.options import SpawnKeywords, SpawnOptions

_CHILD = "from hccl_tools.launch.spawn.child import main; main({folder!r})"

_TOP_LEVEL = "define the function at the top level of a module or script"


def spawn(
    func: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: Unpack[SpawnKeywords],
) -> SpawnContext:
    """Run ``func(*args)`` in one process per device.

    Args:
        func: A function at the top level of a module (it is pickled). ``hccl_tools.current_rank()`` returns
            its rank.
        args: The arguments of the function.
        nprocs: The number of processes; -1 for all visible devices, in a rehearsal for those that a variable
            names, else 2.
        join: Wait for the end; otherwise the context is returned at once and its ``join`` waits.
        daemon: With ``join=False``: end the processes when the caller exits, instead of waiting for them. An
            exception that ends the caller always ends the processes.
        **options: ``npus``, ``devices`` or ``gpus``: physical ids such as ``"4,5"``, ``"4-7"`` or ``[4, 5]``;
            ``rank_table``: a file; ``log_dir``: where the run directory is made; ``log_mode``: its mode
            (``"750"``), by default readable by you only; ``cpu=True``: rehearse without NPUs; ``tail``:
            the ranks whose output ``join`` shows (0, ``[0, 3]``, ``"all"`` or ``None``);
            ``start``: how the framework finds its peers (``table``, ``cluster`` or ``torch``); ``env``: more
            variables; ``grace``: seconds from SIGTERM to SIGKILL (15); ``product``, ``ignore``,
            ``start_port`` as for ``hccl-tools launch``.
            ``preflight=False``: start even if a device is missing or in use by another process.
            ``start_method`` is accepted and ignored: every process is a new interpreter.

    Returns:
        The context: ``results`` by rank, ``processes``, ``join(timeout)``, ``terminate()``, ``run_dir``.

    Raises:
        RankFailedError: With ``join``: a rank failed; the others have been ended.
        ValueError: An option is unknown or contradicts another (a ``SpawnOptionError``).
        LaunchError: The table or the devices do not allow the start.
    """
    if child.is_preparing():
        raise SpawnOptionError(
            "this script calls spawn whenever it is imported, and every rank imports it: put the call below "
            'if __name__ == "__main__":'
        )
    try:
        repeated_start.refuse(os.environ, "spawn")
    except UsageError as error:
        raise SpawnOptionError(f"{error.head}: {error.hint}") from None
    wanted = spawn_options.read(nprocs, options, os.environ)
    folder = private_files.new_path(os.environ)
    payload = pickled(func, arguments(args))
    prepared = _prepare(wanted, folder)
    plan = prepared.plan
    if wanted.start.preflight:
        _preflight(prepared)
    private_dir, locks = _write(prepared, payload, folder, wanted.logs.mode)
    guard = keeper.start(subreaper=False)
    tasks = [
        Task(process.argv[0], process.argv, process.environment, os.path.join(plan.run_dir, process.log), ())
        for process in plan.local
    ]
    guard.start_tasks(tasks, prepared.shared_environment, plan.working_dir)
    context = SpawnContext(
        guard, plan.local, plan.run_dir, private_dir, grace=wanted.grace, tail=wanted.logs.tail, locks=locks
    )
    if join:
        context.join()
    else:
        context.at_exit(daemon=daemon)
        context.wait_for_start()
    return context


def _prepare(wanted: SpawnOptions, folder: str) -> PreparedLaunch:
    start = wanted.start
    if start.method is None:
        frameworks = interpreter.installed_frameworks(sys.path)
        start = start._replace(method=interpreter.choose_start(frameworks, cpu=start.cpu)[0])
    # The ranks get the options of this interpreter (-W, -X, -O ...), too.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    argv = (sys.executable, *flags, *own_python.script(_CHILD.format(folder=folder))[1:])
    request = LaunchRequest(
        program=Program(argv, kind="program", python=sys.executable),
        table=wanted.table,
        # Every start sets paddle's endpoints, so every job needs a port.
        hosts=Hosts(start_port=_start_port(wanted)),
        devices=wanted.devices,
        start=start,
        variables=wanted.variables,
        logs=wanted.logs,
    )
    try:
        prepared = planner.prepare(request, environ=dict(os.environ), working_dir=os.getcwd())
    except UsageError as error:
        raise SpawnOptionError(error.head, hint=error.hint, lines=error.lines) from error
    here = sum(process.rank >= 0 for process in prepared.plan.local)
    if wanted.devices.ranks not in {None, here}:
        own = count(here, "rank")
        raise SpawnOptionError(f"nprocs={wanted.devices.ranks}, but the table has {own} on this machine")
    return prepared


def _start_port(wanted: SpawnOptions) -> int:
    try:
        return ports.chosen_port(wanted.start_port, os.environ, several_hosts=False)[0] or ports.free_port()
    except UsageError as error:
        raise SpawnOptionError(error.head, hint=error.hint) from error


def _preflight(prepared: PreparedLaunch) -> None:
    """Refuse devices that are in use, missing or not accessible: the ranks would fail after minutes."""
    found = preflight.check(prepared.plan, prepared.shared_environment, prepared.nodes)
    preflight.refuse(found, skip="preflight=False starts anyway", rehearse="cpu=True rehearses without NPUs")


def _write(
    prepared: PreparedLaunch, payload: bytes, folder: str, mode: int
) -> tuple[tuple[str, int], tuple[int, ...]]:
    plan = prepared.plan
    lock = -1
    if (data := prepared.table_to_lock) is not None:
        lock = table_lock.take(data, plan.run_dir, os.environ)
    directory.create(plan.run_dir, mode=mode)
    directory.write(plan.run_dir, names.PLAN, plan_output.as_bytes(plan, prepared.environment))
    own_runs.note(plan.run_dir, os.environ)
    if prepared.table_data is not None:
        directory.write(plan.run_dir, names.TABLE, prepared.table_data)
    if prepared.backup_variables is not None:
        directory.write(plan.run_dir, names.BACKUP_VARIABLES, prepared.backup_variables)
    private_dir = folder, private_files.make(folder)
    try:
        run_files.write(folder, child.PAYLOAD, payload)
    except OSError as error:
        raise LaunchError(f"{folder} cannot be written to: {error.strerror}") from error
    return private_dir, (lock, directory.hold(plan.run_dir, kind="spawn"))


def arguments(args: Any) -> tuple[Any, ...]:
    """Return ``args`` as a tuple.

    Raises:
        SpawnOptionError: ``args`` is not a sequence of arguments; a text would give one argument per letter.
    """
    if isinstance(args, str | bytes) or not isinstance(args, Iterable):
        raise SpawnOptionError(f"args={args!r} is not a sequence of arguments: write args=({args!r},)")
    return tuple(args)


def pickled(func: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """Return the interpreter state that the child needs, the function and its arguments as bytes.

    Raises:
        SpawnOptionError: The function or an argument cannot be pickled.
    """
    _check_function(func)
    preparation = preparing.get_preparation_data("hccl-tools rank")
    # multiprocessing gives its key only to its own children; the ranks do not use its pipes.
    preparation.pop("authkey", None)
    if not _main_can_be_imported():
        preparation.pop("init_main_from_path", None)
    buffer = io.BytesIO()
    pickle.dump(preparation, buffer)
    try:
        reduction.ForkingPickler(buffer).dump((func, args))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SpawnOptionError(
            f"the function and its arguments must be picklable: {error}", hint=_TOP_LEVEL
        ) from error
    return buffer.getvalue()


def _check_function(func: Any) -> None:
    if not callable(func):
        raise SpawnOptionError(
            f"{func!r} is not a function", hint="spawn(train, args=(3,)), without calling it"
        )
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__qualname__", type(func).__qualname__)
    if "<lambda>" in name:
        raise SpawnOptionError("a lambda cannot be sent to another process: it has no name", hint=_TOP_LEVEL)
    if "<locals>" in name:
        raise SpawnOptionError(
            f"{name} cannot be sent to another process: it is defined inside a function", hint=_TOP_LEVEL
        )
    module = getattr(func, "__module__", None) or type(func).__module__
    if module == "__main__" and not _main_can_be_imported():
        where = "was typed into an interactive session, python -c or stdin"
        if getattr(sys.modules["__main__"], "__spec__", None) is not None:
            where = "is defined in the __main__.py of a package"
        raise SpawnOptionError(
            f"{name} {where}, where other processes cannot find it: write it into a file and import it from "
            "there",
            hint="from my_file import " + name,
        )


def _main_can_be_imported() -> bool:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).rpartition(".")[2] != "__main__"
    path = getattr(main, "__file__", None)
    return path is not None and os.path.exists(path)
