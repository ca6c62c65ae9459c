"""The devices that a container or process may use: ``ASCEND_VISIBLE_DEVICES`` and related variables.

``ASCEND_VISIBLE_DEVICES`` (ascend-docker-runtime) holds physical ids, in any order, with ranges and the
prefixes ``npu-`` and ``Ascend910-``; with ``void`` or an empty value the runtime mounts nothing.
With ``VIRTUAL`` in ``ASCEND_RUNTIME_OPTIONS`` the ids refer to virtual NPUs.
``ASCEND_RT_VISIBLE_DEVICES`` (CANN) holds logical ids of this container, a plain list whose order matters.

Source: ascend-docker-runtime runtime/process/process.go (checkVisibleDevice, parseDevices, addDevice) and its
documentation of the parameters.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hccl_tools.host.site_defaults import Site

PHYSICAL_VARIABLE = "ASCEND_VISIBLE_DEVICES"
LOGICAL_VARIABLE = "ASCEND_RT_VISIBLE_DEVICES"

# Patterns as texts: `re` compiles them at their first use, and most commands need none of them.
_ITEM = r"(?a)(?:(?:npu|Ascend[0-9A-Za-z]*)-)?(?P<first>[0-9]{1,4})"
_SPAN = r"(?a)(?P<first>[0-9]{1,4})\s*-\s*(?P<last>[0-9]{1,4})"
_LARGEST = 128
_DAVINCI = r"(?a)davinci([0-9]{1,9})"


def physical(environ: Mapping[str, str]) -> tuple[int, ...] | None:
    """Return the physical ids of ``ASCEND_VISIBLE_DEVICES``, ascending.

    ``None`` if the variable does not limit the devices: it is not set, empty, or ``void``. Devices that are
    present nevertheless were added to the container in another way (``--device``, ``--privileged``).

    Raises:
        DiscoveryError: The value is invalid, or the ids refer to virtual NPUs.
    """
    text = environ.get(PHYSICAL_VARIABLE, "").strip()
    if text in {"", "void"}:
        return None
    if are_virtual(environ):
        raise DiscoveryError(
            f"{PHYSICAL_VARIABLE}={text} has ids of virtual NPUs (ASCEND_RUNTIME_OPTIONS=VIRTUAL), "
            "which HCCL cannot use",
            hint="start the container with whole NPUs",
        )
    ids: set[int] = set()
    for item in text.split(","):
        ids.update(_physical_item(item.strip(), text))
    return tuple(sorted(ids))


def are_virtual(environ: Mapping[str, str]) -> bool:
    """Return whether the ids of ``ASCEND_VISIBLE_DEVICES`` refer to virtual NPUs."""
    return "VIRTUAL" in environ.get("ASCEND_RUNTIME_OPTIONS", "").upper()


def _physical_item(item: str, text: str) -> range:
    span, single = re.fullmatch(_SPAN, item), re.fullmatch(_ITEM, item)
    if span is not None:
        first, last = int(span["first"]), int(span["last"])
    elif single is not None:
        first = last = int(single["first"])
    else:
        first, last = 1, 0
    if first > last or last > _LARGEST:
        raise DiscoveryError(
            f'cannot read "{item}" in {PHYSICAL_VARIABLE}={text}',
            hint="use physical ids such as 0,2-5 or npu-1,npu-3, or unset the variable",
        )
    return range(first, last + 1)


def logical(environ: Mapping[str, str]) -> tuple[int, ...] | None:
    """Return the logical ids of ``ASCEND_RT_VISIBLE_DEVICES`` in their order; None if it is not set.

    Raises:
        DiscoveryError: The value is not a plain list of distinct ids.
    """
    text = environ.get(LOGICAL_VARIABLE, "").strip()
    if not text:
        return None
    items = [item.strip() for item in text.split(",")]
    wrong = next((item for item in items if not re.fullmatch(r"[0-9]{1,4}", item, re.ASCII)), None)
    if wrong is not None:
        raise DiscoveryError(
            f'cannot read "{wrong}" in {LOGICAL_VARIABLE}={text}',
            hint="CANN accepts a plain list of this container's ids, such as 0,1,2,3, without ranges",
        )
    ids = tuple(map(int, items))
    if len(set(ids)) < len(ids):
        raise DiscoveryError(f"{LOGICAL_VARIABLE}={text} lists a device twice", hint="list every device once")
    return ids


def present(site: Site) -> tuple[int, ...]:
    """Return the physical ids of the device nodes of this host or container, ascending."""
    try:
        return device_nodes(os.listdir(site.path("/dev")))
    except OSError:
        return ()


def device_nodes(names: Iterable[str]) -> tuple[int, ...]:
    """Return the physical ids in the names of device nodes (``davinciN``), ascending; skip other names."""
    nodes = (name for name in names if name.startswith("davinci"))
    return tuple(sorted(int(match[1]) for name in nodes if (match := re.fullmatch(_DAVINCI, name))))
