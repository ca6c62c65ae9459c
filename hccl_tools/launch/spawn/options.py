"""The options of ``spawn``: read, and refused, before anything is started."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from hccl_tools.errors import UsageError
from hccl_tools.launch.planning import log_paths
from hccl_tools.launch.planning.visible_devices import present_devices, visible_devices
from hccl_tools.launch.runs.directory import RUN_VARIABLE
from hccl_tools.launch.spawn.errors import SpawnOptionError
from hccl_tools.notation import assignments, device_range, phrases
from hccl_tools.table.product_names import read_name

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import Tail
    from hccl_tools.launch.planning.visible_devices import VisibleDevices

_DEVICE_OPTIONS = ("npus", "devices", "gpus", "xpus", "selected_devices")
_STARTS = ("table", "cluster", "torch")
_METHODS = ("spawn", "fork", "forkserver")
#: Backend -> what paddle is told of it.
_BACKENDS: dict[str, dict[str, str]] = {
    "auto": {},
    "hccl": {"PADDLE_DISTRI_BACKEND": "xccl"},
    "xccl": {"PADDLE_DISTRI_BACKEND": "xccl"},
    "gloo": {"PADDLE_DISTRI_BACKEND": "gloo"},
}
#: Names that paddle has given up, and what they are called now.
_OLD_NAMES = {"selected_devices": "devices", "started_port": "start_port", "use_paddlecloud": None}
_OF_SEVERAL_MACHINES = ("ips", "cluster_node_ips", "node_ip")
#: By these a rank knows where its result belongs.
_OWN_VARIABLES = frozenset({"RANK_ID", RUN_VARIABLE})
_GRACE = 15.0
_HIGHEST_DEVICE = 1024

Devices = str | int | Iterable[int | str] | None
FilePath = str | os.PathLike[str]


class SpawnKeywords(TypedDict, total=False):
    """The options of ``spawn``, as its docstring describes them; the old names are left out."""

    npus: Devices
    devices: Devices
    gpus: Devices
    xpus: Devices
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
#: The parameters of ``spawn`` that are no options: a misspelt option may be one of them.
_PARAMETERS = ("func", "args", "nprocs", "join", "daemon")


class SpawnOptions(NamedTuple):
    """One call of ``spawn``, checked.

    ``devices`` are physical ids in rank order, ``ranks`` the number of ranks where only that was said; both
    are ``None`` where table or visible devices decide. ``grace`` is in seconds.
    """

    devices: tuple[int, ...] | None
    ranks: int | None
    rank_table: str | None
    start: Start | None
    cpu: bool
    env: dict[str, str]
    log_dir: str
    log_mode: int
    start_port: int | None
    product: str | None
    ignore: tuple[str, ...]
    grace: float
    tail: Tail
    preflight: bool


def read(nprocs: Any, options: Mapping[str, Any], environ: Mapping[str, str]) -> SpawnOptions:
    """Return what was asked for.

    Raises:
        SpawnOptionError: An option is unknown, has a value that it does not take, or contradicts another.
    """
    _check_names(options)
    cpu, rank_table = bool(options.get("cpu")), options.get("rank_table")
    count = _count(nprocs)
    devices = _devices(count, options, environ, cpu=cpu)
    if devices is None and count is None and rank_table is None:
        devices = _all_visible(environ, cpu=cpu)
    # A fresh interpreter is what all three come to here.
    _choice("start_method", options.get("start_method", "spawn"), _METHODS)
    _choice("backend", backend := options.get("backend", "auto"), tuple(_BACKENDS))
    start = options.get("start")
    if start is not None:
        _choice("start", start, _STARTS)
    return SpawnOptions(
        devices=devices,
        ranks=count if devices is None else None,
        rank_table=None if rank_table is None else _path("rank_table", rank_table),
        start=start,
        cpu=cpu,
        env={**_BACKENDS[backend], **_env(options.get("env"))},
        log_dir=_path("log_dir", options.get("log_dir", "log")),
        log_mode=_log_mode(options.get("log_mode", 0o700)),
        start_port=_port(options),
        product=_product(options.get("product")),
        ignore=_words("ignore", options.get("ignore", ())),
        grace=_seconds("grace", options.get("grace", _GRACE)),
        tail=_tail(options.get("tail", 0)),
        preflight=bool(options.get("preflight", True)),
    )


def _product(name: Any) -> str | None:
    """Return a product's own name, and print how another name was read."""
    if name is None:
        return None
    try:
        reading = read_name(str(name))
    except UsageError as error:
        raise SpawnOptionError(f"product={name!r}: {error.message}", hint=error.hint) from error
    if reading.note:
        print(f"note: {reading.note}", file=sys.stderr)
    return reading.product.name


def _check_names(options: Mapping[str, Any]) -> None:
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
            text = f"spawn: {name} is an old name" + (f" of {now}" if now else " and without effect")
            warnings.warn(text, DeprecationWarning, stacklevel=4)
    given = [name for name in (*_DEVICE_OPTIONS, "rank_table") if options.get(name) not in (None, "")]
    if len(given) > 1:
        raise SpawnOptionError(f"{given[0]} and {given[1]} name the same thing: give one of them")


def _count(nprocs: Any) -> int | None:
    if isinstance(nprocs, int) and not isinstance(nprocs, bool) and (nprocs == -1 or nprocs > 0):
        return None if nprocs == -1 else nprocs
    raise SpawnOptionError(f"nprocs={nprocs!r}: must be at least 1, or -1 for all visible devices")


def _devices(
    count: int | None, options: Mapping[str, Any], environ: Mapping[str, str], *, cpu: bool
) -> tuple[int, ...] | None:
    """Return the physical devices that were named, in rank order, or ``None``."""
    name = next((name for name in _DEVICE_OPTIONS if options.get(name) not in (None, "")), None)
    if name is None:
        return None
    value = options[name]
    text = value if isinstance(value, str) else ",".join(map(str, _listed(value)))
    try:
        devices = device_range.parse(
            text, device_limit=_HIGHEST_DEVICE, product="a host", beyond="name devices of this host"
        ).ids
    except UsageError as error:
        raise SpawnOptionError(
            f"{name}={value!r} names no devices: {error.message}", hint=error.hint
        ) from error
    if count not in {None, len(devices)}:
        raise SpawnOptionError(f"nprocs={count}, but {name} names {phrases.count(len(devices), 'device')}")
    visible = _visible(environ, cpu=cpu)
    if not cpu and (outside := visible.outside(list(devices))):
        raise SpawnOptionError(f"{name}: device {outside[0]} is not visible here ({visible.source})")
    return devices


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) else [value]


def _all_visible(environ: Mapping[str, str], *, cpu: bool) -> tuple[int, ...] | None:
    """Return the visible devices, ``None`` where the table of the environment decides."""
    if environ.get("RANK_TABLE_FILE"):
        return None
    visible = _visible(environ, cpu=cpu).chosen
    if visible is not None:
        return visible
    if cpu:
        raise SpawnOptionError("with cpu=True say how many processes: nprocs=2")
    raise SpawnOptionError("this host has no NPU: cpu=True rehearses without, for instance with nprocs=2")


def _visible(environ: Mapping[str, str], *, cpu: bool) -> VisibleDevices:
    return visible_devices(environ, present_devices(environ), cpu=cpu)


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SpawnOptionError(f"{name}={value!r}: it is one of {', '.join(choices)}")


def _path(name: str, value: Any) -> str:
    try:
        return os.fsdecode(value)
    except TypeError as error:
        raise SpawnOptionError(f"{name}={value!r} is not a path") from error


def _log_mode(value: Any) -> int:
    try:
        return log_paths.parse_mode(f"{value:03o}" if isinstance(value, int) else str(value))
    except UsageError as error:
        raise SpawnOptionError(f"log_mode={value!r}: {error.message}", hint=error.hint) from error


def _env(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SpawnOptionError(f"env={value!r} is not a mapping of names to values: env={{'GLOG_v': '2'}}")
    try:
        found = assignments.parse_assignments((f"{key}={text}" for key, text in value.items()), where="env")
    except UsageError as error:
        raise SpawnOptionError(error.message, hint=error.hint) from error
    if own := sorted(_OWN_VARIABLES & found.keys()):
        raise SpawnOptionError(f"env: {own[0]} is each rank's own", hint="leave it out of env")
    return found


def _port(options: Mapping[str, Any]) -> int | None:
    port = options.get("start_port") or options.get("started_port")
    if port is None or (isinstance(port, int) and 1024 <= port <= 65535):
        return port
    raise SpawnOptionError(f"start_port={port!r} is not a port: 1024 to 65535")


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
    if not all(str(rank).strip().isdecimal() for rank in ranks):
        raise SpawnOptionError(f'tail={value!r} is not a list of ranks: tail=0, tail=[0, 3], "all" or None')
    return tuple(int(rank) for rank in ranks)
