"""The keywords of ``spawn``: their types, and the paddle names that they replace."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from hccl_tools.launch.spawn.errors import SpawnOptionError

#: The options that name devices; a call may contain one of them.
DEVICE_OPTIONS = ("npus", "devices", "gpus", "xpus", "selected_devices")
#: Names that paddle no longer has -> their present names.
_OLD_NAMES = {"selected_devices": "devices", "started_port": "start_port", "use_paddlecloud": None}
_OF_SEVERAL_MACHINES = ("ips", "cluster_node_ips", "node_ip")

DeviceList = str | int | Iterable[int | str] | None
FilePath = str | os.PathLike[str]


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
#: The parameters of ``spawn`` that are not options: a misspelt option may be one of them.
_PARAMETERS = ("func", "args", "nprocs", "join", "daemon")


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
