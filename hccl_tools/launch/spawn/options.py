"""Read and check the options of ``spawn``."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from hccl_tools.errors import UsageError
from hccl_tools.launch.model.request import Devices, Logs, StartChoice, TableChoice, Variables, Watch
from hccl_tools.launch.planning import log_paths
from hccl_tools.launch.planning.visible_devices import (
    cuda_note,
    of_rehearsal,
    present_devices,
    visible_devices,
)
from hccl_tools.launch.spawn.errors import SpawnOptionError
from hccl_tools.notation import assignments, device_range, phrases
from hccl_tools.notation.printable import tell
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.records import NamedTuple
from hccl_tools.table.product_names import read_name

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Tail
    from hccl_tools.launch.planning.visible_devices import VisibleDevices

_STARTS = ("table", "cluster", "torch")
_METHODS = ("spawn", "fork", "forkserver")
#: Backend -> the variables that choose it for paddle.
_BACKENDS: dict[str, dict[str, str]] = {
    "auto": {},
    "hccl": {"PADDLE_DISTRI_BACKEND": "xccl"},
    "xccl": {"PADDLE_DISTRI_BACKEND": "xccl"},
    "gloo": {"PADDLE_DISTRI_BACKEND": "gloo"},
}
#: The variables from which a rank determines where to write its result.
_OWN_VARIABLES = frozenset({"RANK_ID", RUN_VARIABLE})
#: More devices than any host has.
_HIGHEST_DEVICE = 1024

#: The options that name devices; a call may contain one of them.
DEVICE_OPTIONS = ("npus", "devices", "gpus", "xpus", "selected_devices")
#: Names that paddle no longer has -> their present names.
_OLD_NAMES = {"selected_devices": "devices", "started_port": "start_port", "use_paddlecloud": None}
_OF_SEVERAL_MACHINES = ("ips", "cluster_node_ips", "node_ip")
DeviceList = str | int | Iterable[int | str] | None
FilePath = str | os.PathLike[str]
#: The parameters of ``spawn`` that are not options: a misspelt option may be one of them.
_PARAMETERS = ("func", "args", "nprocs", "join", "daemon")


class SpawnOptions(NamedTuple):
    """The checked options of a ``spawn`` call."""

    table: TableChoice
    #: Physical ids in rank order, and the number of ranks; unset if the table decides.
    devices: Devices
    start: StartChoice
    variables: Variables
    logs: Logs
    #: 1024 to 65535; by default a free port.
    start_port: int | None
    #: From SIGTERM to SIGKILL, in seconds.
    grace: float


def read(nprocs: Any, options: Mapping[str, Any], environ: Mapping[str, str]) -> SpawnOptions:
    """Return the checked options.

    Raises:
        SpawnOptionError: An option is unknown, has an invalid value, or contradicts another option.
    """
    check(options)
    cpu, rank_table = bool(options.get("cpu")), options.get("rank_table")
    count = _count(nprocs)
    physical = _devices(count, options, environ, cpu=cpu)
    if physical is None and rank_table is None and not cpu:
        _tell_about_cuda(count, environ)
    if physical is None and count is None and rank_table is None:
        physical = _all_visible(environ, cpu=cpu)
    # Every method starts a new interpreter: check the value, but do not use it.
    _choice("start_method", options.get("start_method", "spawn"), _METHODS)
    _choice("backend", backend := options.get("backend", "auto"), tuple(_BACKENDS))
    start = options.get("start")
    if start is not None:
        _choice("start", start, _STARTS)
    return SpawnOptions(
        TableChoice(
            None if rank_table is None else _path("rank_table", rank_table),
            from_environment=physical is None,
            product=_product(options.get("product")),
            ignore=_words("ignore", options.get("ignore", ())),
        ),
        Devices(count if physical is None else len(physical), physical=physical),
        StartChoice(start, cpu=cpu, preflight=bool(options.get("preflight", True))),
        Variables({**_BACKENDS[backend], **_env(options.get("env"))}),
        Logs(
            _path("log_dir", options.get("log_dir", Logs().dir)),
            _log_mode(options.get("log_mode", Logs().mode)),
            tail=_tail(options.get("tail", 0)),
        ),
        start_port=_port(options),
        grace=_seconds("grace", options.get("grace", Watch().grace)),
    )


@contextmanager
def _reading(option: str, value: Any) -> Iterator[None]:
    """Name the option in an error about its value."""
    try:
        yield
    except UsageError as error:
        raise SpawnOptionError(
            f"{option}={value!r}: {error.head}", hint=error.hint, lines=error.lines
        ) from error


def _product(name: Any) -> str | None:
    if name is None:
        return None
    with _reading("product", name):
        reading = read_name(str(name))
    if reading.note:
        print(f"note: {reading.note}", file=sys.stderr)
    return reading.product.name


def _count(nprocs: Any) -> int | None:
    if isinstance(nprocs, int) and not isinstance(nprocs, bool) and (nprocs == -1 or nprocs > 0):
        return None if nprocs == -1 else nprocs
    raise SpawnOptionError(f"nprocs={nprocs!r}: must be at least 1, or -1 for all visible devices")


def _devices(
    count: int | None, options: Mapping[str, Any], environ: Mapping[str, str], *, cpu: bool
) -> tuple[int, ...] | None:
    """Return the physical devices of the options in rank order, or ``None``."""
    name = next((name for name in DEVICE_OPTIONS if options.get(name) not in (None, "")), None)
    if name is None:
        return None
    value = options[name]
    text = value if isinstance(value, str) else ",".join(map(str, _listed(value)))
    with _reading(name, value):
        devices = device_range.parse(
            text, device_limit=_HIGHEST_DEVICE, product="a host", beyond="name devices of this host"
        ).ids
    if count not in {None, len(devices)}:
        raise SpawnOptionError(f"nprocs={count}, but {name} names {phrases.count(len(devices), 'device')}")
    visible = _visible(environ, cpu=cpu)
    if not cpu and (outside := visible.outside(list(devices))):
        raise SpawnOptionError(f"{name}: device {outside[0]} is not visible here ({visible.source})")
    return devices


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) else [value]


def _all_visible(environ: Mapping[str, str], *, cpu: bool) -> tuple[int, ...] | None:
    if environ.get("RANK_TABLE_FILE"):
        return None
    visible = _visible(environ, cpu=cpu)
    if cpu:
        devices, note = of_rehearsal(visible, environ, cpu="cpu=True", number="nprocs")
        print(f"note: {note}", file=sys.stderr)
        return tuple(devices)
    if visible.chosen is not None:
        return visible.chosen
    raise SpawnOptionError("this host has no NPU: rehearse without NPUs, for example with cpu=True, nprocs=2")


def _tell_about_cuda(count: int | None, environ: Mapping[str, str]) -> None:
    """Say that CUDA_VISIBLE_DEVICES does not select NPUs, if the job uses others than those it names."""
    devices = _visible(environ, cpu=False).chosen or ()
    if devices and not environ.get("RANK_TABLE_FILE"):
        note = cuda_note(environ, devices[:count], 'devices="{}"')
        tell(*([f"note: {note}"] if note else []))


def _visible(environ: Mapping[str, str], *, cpu: bool) -> VisibleDevices:
    return visible_devices(environ, present_devices(environ), cpu=cpu)


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SpawnOptionError(f"{name}={value!r}: must be one of {', '.join(choices)}")


def _path(name: str, value: Any) -> str:
    try:
        return os.fsdecode(value)
    except TypeError as error:
        raise SpawnOptionError(f"{name}={value!r} is not a path") from error


def _log_mode(value: Any) -> int:
    with _reading("log_mode", value):
        return log_paths.parse_mode(f"{value:03o}" if isinstance(value, int) else str(value))


def _env(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SpawnOptionError(f"env={value!r} is not a mapping of names to values: env={{'GLOG_v': '2'}}")
    try:
        found = assignments.parse_assignments((f"{key}={text}" for key, text in value.items()), where="env")
    except UsageError as error:
        raise SpawnOptionError(error.head, hint=error.hint, lines=error.lines) from error
    if own := sorted(_OWN_VARIABLES & found.keys()):
        raise SpawnOptionError(f"env: {own[0]} is set for each rank", hint="remove it from env")
    return found


def _port(options: Mapping[str, Any]) -> int | None:
    port = options.get("start_port") or options.get("started_port")
    if port is None or (isinstance(port, int) and 1024 <= port <= 65535):
        return port
    raise SpawnOptionError(f"start_port={port!r} is not a port from 1024 to 65535")


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise SpawnOptionError(f"{name}={value!r} is not a number of seconds, 0 or more")


def _words(name: str, value: Any) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else _listed(value)
    if not all(isinstance(word, str) for word in words):
        raise SpawnOptionError(f"{name}={value!r} is not a list of names")
    return tuple(word.strip() for word in words)


def _tail(value: Any) -> Tail:
    if value is None or value == "none":
        return ()
    if value == "all":
        return "all"
    ranks = value.split(",") if isinstance(value, str) else _listed(value)
    if any(whole_number(str(rank).strip()) is None for rank in ranks):
        raise SpawnOptionError(f'tail={value!r} is not a list of ranks: tail=0, tail=[0, 3], "all" or None')
    return tuple(int(rank) for rank in ranks)


class SpawnKeywords(TypedDict, total=False):
    """The options of ``spawn``, as its docstring describes them; the old names are left out."""

    npus: DeviceList
    devices: DeviceList
    gpus: DeviceList
    xpus: DeviceList
    rank_table: FilePath | None
    cpu: bool
    start: Literal["table", "cluster", "torch"] | None
    env: Mapping[str, str | int] | None
    log_dir: FilePath
    log_mode: str | int
    tail: int | str | Iterable[int] | None
    grace: float
    preflight: bool
    product: str | None
    ignore: str | Iterable[str]
    start_port: int | None
    backend: Literal["auto", "hccl", "xccl", "gloo"]
    start_method: Literal["spawn", "fork", "forkserver"]
    print_config: bool


SUPPORTED = tuple(SpawnKeywords.__annotations__)


def check(options: Mapping[str, Any]) -> None:
    """Refuse keywords that are unknown or exclude each other, and warn of old names.

    Raises:
        SpawnOptionError: A keyword is unknown, or two keywords exclude each other.
    """
    for name in options:
        if name in _OF_SEVERAL_MACHINES:
            raise SpawnOptionError(
                f"{name}: spawn starts processes on this machine only",
                hint="for several machines put the function into a script and use `hccl-tools launch --ips`",
            )
        if name not in SUPPORTED and name not in _OLD_NAMES:
            close = difflib.get_close_matches(name, (*_PARAMETERS, *SUPPORTED), n=1)
            hint = f"did you mean {close[0]}?" if close else f"options: {', '.join(sorted(SUPPORTED))}"
            raise SpawnOptionError(f"the option {name} of spawn is not supported ({hint})", hint=hint)
        if name in _OLD_NAMES:
            now = _OLD_NAMES[name]
            text = f"spawn: {name} is an old name" + (f" of {now}" if now else " and has no effect")
            warnings.warn(text, DeprecationWarning, stacklevel=4)
    given = [name for name in (*DEVICE_OPTIONS, "rank_table") if options.get(name) not in (None, "")]
    if len(given) > 1:
        raise SpawnOptionError(f"{given[0]} and {given[1]} exclude each other")
