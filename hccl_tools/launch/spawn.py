"""``hccl_tools.spawn``: a function in one process per device, with paddle's contract and none of its traps.

The environment of each process is complete before its interpreter starts (MindSpore reads DEVICE_ID at
import), results and exceptions travel by file, and a keeper sees to it that nothing outlives the caller.
"""

from __future__ import annotations

import atexit
import difflib
import io
import os
import pickle
import sys
from multiprocessing import reduction
from multiprocessing import spawn as preparing
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import environment, interpreter, keeper, placement, planning, run_directory
from hccl_tools.launch.channel import Task
from hccl_tools.launch.request import Request
from hccl_tools.launch.spawn_child import PAYLOAD
from hccl_tools.launch.spawn_context import SpawnContext
from hccl_tools.launch.spawn_errors import SpawnOptionError
from hccl_tools.launch.visible import VisibleDevices, visible_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hccl_tools.launch.planning import Prepared

_OPTIONS = {
    "gpus", "npus", "devices", "xpus", "selected_devices", "rank_table", "log_dir", "cpu", "start", "env",
    "grace", "product", "ignore", "start_port", "started_port", "start_method", "backend", "print_config",
}  # fmt: skip
_DEVICE_OPTIONS = ("npus", "devices", "gpus", "xpus", "selected_devices")
_CHILD = "from hccl_tools.launch.spawn_child import main; main()"
_GRACE = 15.0


def spawn(
    func: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: Any,
) -> SpawnContext:
    """Run ``func(*args)`` in one process per device.

    Args:
        func: A function of a module's top level (it is pickled). It asks ``hccl_tools.current_rank()`` or its
            framework which rank it is.
        args: What each process calls it with.
        nprocs: How many; -1 for all visible devices.
        join: Wait for the end; otherwise the context is returned at once and its ``join`` waits.
        daemon: With ``join=False``: end the processes with the caller instead of waiting for them.
        **options: ``npus``, ``devices`` or ``gpus``: physical ids such as ``"4,5"``; ``rank_table``: a file;
            ``log_dir``: where the run directory is made; ``cpu=True``: rehearse without NPUs; ``start``:
            ``table``, ``cluster`` or ``torch``; ``env``: more variables; ``grace``: seconds from SIGTERM to
            SIGKILL (15); ``product``, ``ignore``, ``start_port`` as for ``hccl-tools launch``.

    Returns:
        The context: ``results`` by rank, ``processes``, ``join(timeout)``, ``run_dir``.

    Raises:
        RankFailedError: With ``join``: a rank failed; the others have been ended.
        ValueError: An option is unknown or contradicts another (a ``SpawnOptionError``).
        LaunchError: The table or the devices stand against the start.
    """
    prepared = _prepare(nprocs, options)
    payload = _payload(func, tuple(args))
    plan = prepared.plan
    run_directory.create(plan.run_dir)
    run_directory.write(plan.run_dir, PAYLOAD, payload)
    if prepared.table_data is not None:
        run_directory.write(plan.run_dir, planning.TABLE_COPY, prepared.table_data)
    guard = keeper.start(fresh=True, subreaper=False)
    tasks = [
        Task(process.argv[0], process.argv, process.environment, os.path.join(plan.run_dir, process.log), ())
        for process in plan.local
    ]
    guard.start_tasks(tasks, {**prepared.environment, **plan.common}, plan.working_dir)
    grace = float(options.get("grace", _GRACE))
    context = SpawnContext(guard, list(plan.local), plan.run_dir, grace)
    if join:
        context.join()
    elif daemon:
        atexit.register(context.terminate)
    else:
        atexit.register(context.join)
    return context


def _prepare(nprocs: int, options: dict[str, Any]) -> Prepared:
    _check_options(options)
    cpu = bool(options.get("cpu"))
    devices = _devices(nprocs, options, cpu=cpu)
    start = options.get("start")
    if start is None:
        start, _reason = interpreter.choose_start(interpreter.installed_frameworks(sys.path), cpu=cpu)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    request = Request(
        program=(sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {_CHILD}"),
        kind="program",
        rank_table=options.get("rank_table"),
        ranks=None if nprocs == -1 and devices is None else nprocs if devices is None else len(devices),
        physical=devices,
        product=options.get("product"),
        ignore=tuple(options.get("ignore", ())),
        start=start,
        cpu=cpu,
        environment=environment.parse_assignments(
            (f"{name}={value}" for name, value in dict(options.get("env", {})).items()), where="env"
        ),
        log_dir=str(options.get("log_dir", "log")),
        start_port=options.get("start_port") or options.get("started_port"),
    )
    return planning.prepare(request, environ=dict(os.environ), working_dir=os.getcwd())


def _check_options(options: dict[str, Any]) -> None:
    """Refuse what is not known before anything is started."""
    for name in options:
        if name not in _OPTIONS:
            close = difflib.get_close_matches(name, _OPTIONS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"options: {', '.join(sorted(_OPTIONS))}"
            raise SpawnOptionError(f"the option {name} of spawn is not supported ({hint})", hint=hint)
    given = [name for name in _DEVICE_OPTIONS if options.get(name)]
    if len(given) > 1:
        raise SpawnOptionError(f"{given[0]} and {given[1]} name the same thing: give one of them")
    if options.get("start_method", "spawn") != "spawn":
        raise SpawnOptionError(
            "start_method: only spawn is possible, since MindSpore reads DEVICE_ID at its import"
        )


def _devices(nprocs: int, options: dict[str, Any], *, cpu: bool) -> tuple[int, ...] | None:
    """Return the physical devices that were named, in rank order, or ``None``."""
    name = next((name for name in _DEVICE_OPTIONS if options.get(name)), None)
    if name is None:
        if nprocs == -1 and cpu and not options.get("rank_table"):
            raise SpawnOptionError("with cpu=True say how many processes: nprocs=2")
        if not cpu and _visible().chosen is None:
            raise SpawnOptionError("this host has no NPU: cpu=True rehearses without")
        return None
    value = options[name]
    words = value.split(",") if isinstance(value, str) else list(value)
    if not all(str(word).strip().isdecimal() for word in words):
        raise SpawnOptionError(f'{name}={value!r} names no devices: for example {name}="4,5"')
    devices = tuple(int(word) for word in words)
    if nprocs not in {-1, len(devices)}:
        raise SpawnOptionError(f"nprocs={nprocs}, but {name} names {len(devices)} devices")
    visible = _visible()
    if not cpu and (outside := visible.outside(list(devices))):
        raise SpawnOptionError(f"{name}: device {outside[0]} is not visible here ({visible.source})")
    return devices


def _visible() -> VisibleDevices:
    return visible_devices(os.environ, placement.present_devices(os.environ))


def _payload(func: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """Return what the child needs: how to become this interpreter, then the function and its arguments."""
    preparation = preparing.get_preparation_data("hccl-tools rank")
    # multiprocessing hands its key to its own children only; ours need none of its pipes.
    preparation.pop("authkey", None)
    buffer = io.BytesIO()
    pickle.dump(preparation, buffer)
    try:
        reduction.ForkingPickler(buffer).dump((func, args))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SpawnOptionError(
            f"the function and its arguments must be picklable: {error}",
            hint="define the function at the top level of a module",
        ) from error
    return buffer.getvalue()
