"""Select the devices of a table by the user's options and the devices of this host or container.

``--device_num`` gives indices among the visible devices (``[0,4)``: the first four of them), as in the
original script; ``--devices`` gives physical ids, in rank order. If all devices
of a host are visible, indices and physical ids are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.host import visible
from hccl_tools.notation.device_range import DeviceRange, parse
from hccl_tools.notation.phrases import NAME_THE_CHIP, count, devices
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.host.site_defaults import Site
    from hccl_tools.table.products import Product


class Wanted(NamedTuple):
    """The device options as typed; ``ids`` tells whether ``devices`` has ``physical`` or ``logical`` ids."""

    device_num: str | None = None
    devices: str | None = None
    visible_devices: str | None = None
    ids: str = "physical"


class Visible(NamedTuple):
    """The physical ids of the visible devices, and their source."""

    ids: tuple[int, ...]
    source: str
    #: Whether an option or variable lists them; otherwise they are all devices of the host.
    stated: bool = True

    def __str__(self) -> str:
        return f"{_listed(self.ids)} ({self.source})"


class Selection(NamedTuple):
    """The physical ids of a table in rank order, with notes on how they were chosen."""

    ids: tuple[int, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def visible_devices(wanted: Wanted, site: Site, product: Product) -> Visible | None:
    """Return the devices to choose from, or None if they are unknown.

    The source is ``--visible_devices``, else ``ASCEND_VISIBLE_DEVICES``, else ``/dev/davinciN``.

    Raises:
        DiscoveryError: A listed device has no device node.
    """
    nodes = visible.present(site)
    if wanted.visible_devices is not None:
        ids = parse(wanted.visible_devices, device_limit=product.device_limit, product=product.name).ids
        found = Visible(ids, "--visible_devices")
    elif (named := visible.physical(site.environ)) is not None:
        found = Visible(named, visible.PHYSICAL_VARIABLE)
    else:
        return Visible(nodes, "/dev/davinciN", stated=False) if nodes else None
    absent = [device_id for device_id in found.ids if nodes and device_id not in nodes]
    if absent:
        raise DiscoveryError(
            f"{found.source} lists {devices(absent)}, but /dev/davinci{absent[0]} does not exist: "
            f"this host has {_listed(nodes)}",
            hint="specify only devices that are present, or start the container with these devices",
        )
    return found


def select(wanted: Wanted, seen: Visible | None, site: Site, product: Product) -> Selection:
    """Return the physical ids that the options select.

    Args:
        seen: The devices to choose from; None if unknown.

    Raises:
        UsageError: A range is invalid, or selects devices that are not visible.
        DiscoveryError: No device is specified, and no device is visible.
    """
    if wanted.device_num is not None and wanted.devices is not None:
        raise UsageError(
            "--device_num and --devices exclude each other",
            hint="--device_num gives indices among the visible devices, --devices physical ids",
        )
    if wanted.devices is not None:
        return _by_ids(wanted.devices, wanted.ids, seen, site, product)
    if wanted.device_num is not None:
        return _by_position(wanted.device_num, "--device_num", seen, site, product)
    return _all(seen, site)


def _by_ids(text: str, ids: str, seen: Visible | None, site: Site, product: Product) -> Selection:
    if ids == "logical":
        if seen is None:
            raise DiscoveryError("the devices of this container are unknown", hint="specify physical ids")
        ascending = Visible(tuple(sorted(seen.ids)), seen.source)
        return _by_position(text, "--devices --ids logical", ascending, site, product)
    present, choose = (None, NAME_THE_CHIP) if seen is None else _choice(seen)
    parsed = _parsed(text, present, choose, product)
    outside = [device_id for device_id in parsed.ids if seen is not None and device_id not in seen.ids]
    if seen is not None and outside:
        hint = f"choose from {_listed(seen.ids)}"
        if max(parsed.ids) < len(seen.ids):
            as_logical = _listed(sorted(seen.ids)[position] for position in parsed.ids)
            hint = f"as logical ids they are physical devices {as_logical}: add --ids logical to select them"
        are = "is" if len(outside) == 1 else "are"
        raise UsageError(f"{devices(outside)} {are} not among the visible devices {seen}", hint=hint)
    return Selection(parsed.ids, (), (*parsed.warnings, *_hidden(parsed.ids, seen, site)))


def _parsed(text: str, present: int | None, beyond: str, product: Product) -> DeviceRange:
    """Parse a range; the devices of this host, if known, tell more than the product."""
    return parse(
        text, device_limit=product.device_limit, product=product.name, present=present,
        beyond=beyond,
    )  # fmt: skip


def _choice(seen: Visible) -> tuple[int, str]:
    """Return one more than the highest visible id, and the hint for an id above it."""
    return max(seen.ids) + 1, f"choose from {_listed(seen.ids)}"


def _by_position(text: str, option: str, seen: Visible | None, site: Site, product: Product) -> Selection:
    """Read a range of indices among the visible devices, or among all devices if these are unknown."""
    present, at_most = None, NAME_THE_CHIP
    if seen is not None:
        present = len(seen.ids)
        at_most = f'{option} selects visible devices by index, from 0: at most "[0,{present})"'
    parsed = _parsed(text, present, at_most, product)
    typed = f'{option} "{text.strip()}"'
    if option == "--device_num" and text.strip().isdecimal() and parsed.ids != (0,):
        number = parsed.ids[0]
        raise UsageError(
            f"{typed} is ambiguous: device {number} alone, or {number} devices?",
            hint=f'use "[{number},{number + 1})" or "[0,{number})"',
        )
    if seen is None:
        return Selection(parsed.ids, (), parsed.warnings)
    as_physical = all(position in seen.ids for position in parsed.ids)
    if max(parsed.ids) >= len(seen.ids):
        hint = at_most
        if as_physical:
            hint = f"{option} selects by index; for physical ids use --devices {_compact(parsed.ids)}"
        there = count(len(seen.ids), "visible device")
        raise UsageError(f"{typed} exceeds the {there} {seen}", hint=hint)
    chosen = tuple(seen.ids[position] for position in parsed.ids)
    warnings = (*parsed.warnings, *_hidden(chosen, seen, site))
    if chosen == parsed.ids:
        return Selection(chosen, (), warnings)
    if as_physical and not seen.stated:
        raise UsageError(
            f"{typed} is ambiguous here: physical devices {_listed(parsed.ids)}, or, as indices among the "
            f"visible devices {seen}, {_listed(chosen)}?",
            hint=f"use --devices {_compact(parsed.ids)} or --devices {_compact(chosen)}",
        )
    note = f"{typed} selects among the visible devices {seen}: physical devices {_listed(chosen)}"
    return Selection(chosen, (note,), warnings)


def _all(seen: Visible | None, site: Site) -> Selection:
    if seen is None:
        named = site.environ.get(visible.PHYSICAL_VARIABLE)
        raise DiscoveryError(
            "no Ascend device found on this host: /dev/davinciN does not exist, and "
            f"{visible.PHYSICAL_VARIABLE} is {named or 'not set'}",
            hint="simulate devices: `hccl-tools gen --simulate 910a`; or, with devices, specify them: "
            '--device_num "[0,8)"',
        )
    logical = visible.logical(site.environ)
    if logical is None:
        return Selection(seen.ids, (f"devices {seen}",))
    ascending = sorted(seen.ids)
    beyond = [position for position in logical if position >= len(ascending)]
    if beyond:
        raise DiscoveryError(
            f"{visible.LOGICAL_VARIABLE} lists {devices(beyond)}, but its ids are indices from 0 among the "
            f"{count(len(ascending), 'visible device')} {seen}",
            hint="correct the variable, or specify physical ids with --devices",
        )
    chosen = tuple(ascending[position] for position in logical)
    note = f"devices {_listed(chosen)}: {visible.LOGICAL_VARIABLE}={_listed(logical)} among {seen}"
    return Selection(chosen, (note,))


def _hidden(chosen: Sequence[int], seen: Visible | None, site: Site) -> tuple[str, ...]:
    """Return a warning about devices in the table that are hidden from processes of this shell."""
    logical = visible.logical(site.environ)
    if logical is None or seen is None:
        return ()
    ascending = sorted(seen.ids)
    open_ids = {ascending[position] for position in logical if position < len(ascending)}
    hidden = [device_id for device_id in chosen if device_id not in open_ids]
    if not hidden:
        return ()
    setting = f"{visible.LOGICAL_VARIABLE}={_listed(logical)}"
    return (f"{setting} in this environment hides {devices(hidden)} from processes started here",)


def _listed(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _compact(ids: Sequence[int]) -> str:
    """Return ids as a user would type them: 4-7 for consecutive ids, else 4,6,7."""
    is_run = len(ids) > 1 and list(ids) == list(range(ids[0], ids[0] + len(ids)))
    return f"{ids[0]}-{ids[-1]}" if is_run else _listed(ids)
