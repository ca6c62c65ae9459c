"""The devices that this process may use, and how the process numbers them.

The table and HCCL use physical device ids; a process numbers the devices it sees from 0. A
container with physical devices 4-7 numbers them 0-3; ASCEND_RT_VISIBLE_DEVICES uses these numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.host import visible
from hccl_tools.host.site_defaults import Site
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.planning.local_npus import EarlyAddresses

#: The variable that the runtime reads in every process, and the variables of container runtimes.
LIMITS = (visible.LOGICAL_VARIABLE, visible.PHYSICAL_VARIABLE)


#: Variables with the visible devices of other kinds, and Paddle's for NPUs, in the order in which they count.
_OTHER_LIMITS = ("NPU_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "XPU_VISIBLE_DEVICES")
#: The variable of CUDA, which scripts for GPUs set.
_CUDA_VARIABLE = "CUDA_VISIBLE_DEVICES"
#: Words in these variables that do not name a device.
_NO_LISTS = frozenset({"all", "none", "void", "-1", "nodevfiles"})
#: The ranks of a rehearsal without a number of ranks.
_REHEARSED = 2


class VisibleDevices(NamedTuple):
    """The devices this process may use, as physical ids; ``None`` if nothing limits them."""

    #: The devices of the container or host, ascending: the i-th is device i for the runtime.
    present: tuple[int, ...] | None = None
    #: The devices in ASCEND_RT_VISIBLE_DEVICES, ascending: the i-th is DEVICE_ID i.
    counted: tuple[int, ...] | None = None
    #: The devices of ``counted`` that may be used.
    chosen: tuple[int, ...] | None = None
    #: The variable or folder that limits the devices.
    source: str = ""

    def device_id(self, device: int) -> int:
        """Return DEVICE_ID for a physical device; an unlimited device keeps its own number."""
        if self.counted is None or device not in self.counted:
            return device
        return self.counted.index(device)

    def runtime_id(self, device: int) -> int:
        """Return the number by which ASCEND_RT_VISIBLE_DEVICES names a physical device."""
        if self.present is None or device not in self.present:
            return device
        return self.present.index(device)

    def named_by(self, text: str) -> list[int]:
        """Return the devices of a ``--devices`` list, which are indices among the devices that may be used.

        Raises:
            UsageError: The text cannot be read, or names a device that does not exist.
        """
        from hccl_tools.notation import device_range  # noqa: PLC0415  (0.5 ms; --devices only)

        limit = len(self.chosen) if self.chosen else 1024
        beyond = f"use the indices of visible devices, 0 to {limit - 1}"
        ids = device_range.parse(text, device_limit=limit, product="this host", beyond=beyond).ids
        return [self.chosen[index] for index in ids] if self.chosen else list(ids)

    def outside(self, devices: list[int]) -> list[int]:
        """Return the given physical devices that this process may not use."""
        return [] if self.chosen is None else [device for device in devices if device not in self.chosen]


def visible_devices(
    environ: Mapping[str, str], nodes: tuple[int, ...], *, cpu: bool = False
) -> VisibleDevices:
    """Find out which devices are visible.

    Args:
        nodes: The N of the device nodes ``/dev/davinciN``, ascending; empty on a host without NPUs.
        cpu: Whether the job uses no device; virtual NPUs of a container are then accepted.

    Raises:
        UsageError: A variable cannot be read, or names a device that does not exist.
    """
    container = None if cpu and visible.are_virtual(environ) else _read(visible.physical, environ)
    present = nodes or container or None
    source = "/dev/davinci*" if nodes else visible.PHYSICAL_VARIABLE if container else ""
    limited = present
    if nodes and container is not None:
        source = visible.PHYSICAL_VARIABLE
        shared = [device for device in nodes if device in container]
        if not (shared or cpu):
            raise UsageError(
                f"{source}={environ[source]} does not contain a device of this host",
                hint=f"the devices of this host are {', '.join(map(str, nodes))} (/dev/davinci*)",
            )
        limited = tuple(shared) or nodes
    chosen_text = environ.get(visible.LOGICAL_VARIABLE, "").strip()
    if not chosen_text:
        return VisibleDevices(present, present, limited, source) if present else VisibleDevices()
    indices = _read(visible.logical, environ) or ()
    if present and (missing := [index for index in indices if index >= len(present)]):
        raise UsageError(
            f"{visible.LOGICAL_VARIABLE}={chosen_text}: there is no device {missing[0]}",
            hint=f"its values are indices among the devices of {source}: 0 to {len(present) - 1}",
        )
    counted = tuple(sorted(present[index] if present else index for index in indices))
    chosen = tuple(device for device in counted if limited is None or device in limited)
    if not (chosen or cpu):
        raise UsageError(
            f"{visible.LOGICAL_VARIABLE}={chosen_text} selects none of the devices that {source} names",
            hint=f"that variable names {', '.join(map(str, limited or ()))}",
        )
    return VisibleDevices(present, counted, chosen, visible.LOGICAL_VARIABLE)


def of_rehearsal(
    seen: VisibleDevices, environ: Mapping[str, str], *, cpu: str = "--cpu", number: str = "-n"
) -> tuple[list[int], str]:
    """Return the devices of a rehearsal on the CPU without a number of ranks, and a note for the user.

    They are those that a variable names, also a variable of other devices, else the first two. ``cpu`` and
    ``number`` are the names of the options.
    """
    variable = seen.source if seen.source in LIMITS else None
    devices = list(seen.chosen or ()) if variable else []
    for name in () if devices else _OTHER_LIMITS:
        words = [word.strip() for word in environ.get(name, "").split(",")]
        if all(words) and not _NO_LISTS & {word.lower() for word in words}:
            variable, devices = name, list(range(len(words)))
            break
    why = f", as {variable}={environ.get(variable, '')} says" if variable else ""
    devices = devices or list(range(_REHEARSED))
    return devices, f"{cpu} without a number of ranks: {len(devices)}{why} ({number} sets another)"


class Surroundings(NamedTuple):
    """The facts about this host on which a launch depends."""

    environ: Mapping[str, str]
    #: The ids of the device nodes ``/dev/davinciN``, ascending.
    nodes: tuple[int, ...]
    visible: VisibleDevices
    #: Whether this host has NPUs and the job uses them.
    uses_npus: bool
    #: The addresses of this host's devices, if they are compared with the table's.
    addresses: EarlyAddresses | None = None


def surroundings(
    environ: Mapping[str, str], nodes: tuple[int, ...] | None, *, cpu: bool, ignore_visible: bool
) -> Surroundings:
    """Return the facts about this host; ``None`` for ``nodes`` looks up its device nodes.

    Raises:
        UsageError: A variable that limits the devices cannot be read.
    """
    found = present_devices(environ) if nodes is None else nodes
    limits = {name: value for name, value in environ.items() if not (ignore_visible and name in LIMITS)}
    return Surroundings(environ, found, visible_devices(limits, found, cpu=cpu), bool(found) and not cpu)


def _read(
    variable: Callable[[Mapping[str, str]], tuple[int, ...] | None], environ: Mapping[str, str]
) -> tuple[int, ...] | None:
    try:
        return variable(environ)
    except DiscoveryError as error:
        raise UsageError(error.head, hint=error.hint, lines=error.lines) from error


def present_devices(environ: Mapping[str, str]) -> tuple[int, ...]:
    """Return the device ids of this host or container, ascending; empty without NPUs."""
    return visible.present(Site(environ))


def cuda_note(environ: Mapping[str, str], devices: Sequence[int], option: str) -> str | None:
    """Return a note if the user selected devices with the variable of CUDA and the job uses others.

    Args:
        devices: The devices of the job on this host.
        option: The option that selects devices, with a place for their list: ``--devices {}``.
    """
    text = environ.get(_CUDA_VARIABLE, "").strip()
    if not text or environ.get(visible.LOGICAL_VARIABLE, "").strip():
        return None
    ids = [whole_number(part.strip()) for part in text.split(",")]
    if None in ids:
        return f"{_CUDA_VARIABLE}={text} has no effect on NPUs: use {option.format('LIST')}"
    if ids == list(devices):
        return None
    listed = ",".join(map(str, ids))
    return (
        f"{_CUDA_VARIABLE}={text} has no effect on NPUs: use {visible.LOGICAL_VARIABLE}={listed}, "
        f"or {option.format(listed)}"
    )
