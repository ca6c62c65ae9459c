"""Which devices a table is for: what the user named, against what this host or container is given.

``--device_num`` counts among the visible devices (``[0,4)``: the first four of them), as in the original
script; ``--devices`` names physical ids, in rank order. On a whole host both are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.discover import visible
from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.notation.device_range import parse
from hccl_tools.notation.phrases import count as counted
from hccl_tools.notation.phrases import devices

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.discover.site import Site
    from hccl_tools.table.products import Product


class Wanted(NamedTuple):
    """The device options as typed; ``ids`` says what ``devices`` counts: ``physical`` or ``logical`` ids."""

    device_num: str | None = None
    devices: str | None = None
    visible_devices: str | None = None
    ids: str = "physical"


class Visible(NamedTuple):
    """The physical ids that can be chosen from, in their order, and who says so."""

    ids: tuple[int, ...]
    source: str
    #: Whether somebody stated them, rather than their being all there is.
    stated: bool = True

    def __str__(self) -> str:
        return f"{_listed(self.ids)} ({self.source})"


class Selection(NamedTuple):
    """The physical ids of a table in rank order, and what was understood on the way."""

    ids: tuple[int, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def visible_devices(wanted: Wanted, site: Site, product: Product) -> Visible | None:
    """Return the devices that can be chosen from.

    Returns:
        Those of ``--visible_devices``, else ``ASCEND_VISIBLE_DEVICES``, else ``/dev/davinciN``; None where
        nothing says which devices there are.

    Raises:
        DiscoveryError: A stated device has no device node here.
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
            f"{found.source} names {devices(absent)}, but there is no /dev/davinci{absent[0]}: "
            f"this host has {_listed(nodes)}",
            hint="name devices that are here, or start the container with those",
        )
    return found


def select(wanted: Wanted, seen: Visible | None, site: Site, product: Product) -> Selection:
    """Return the physical ids that the options name.

    Args:
        wanted: The options.
        seen: What can be chosen from; None where nothing says.
        site: For ``ASCEND_RT_VISIBLE_DEVICES``.
        product: Which ids there can be at all.

    Raises:
        UsageError: A range is unreadable, or means other devices than those that can be chosen.
        DiscoveryError: No device is named and none is seen.
    """
    if wanted.device_num is not None and wanted.devices is not None:
        raise UsageError(
            "--device_num and --devices exclude each other",
            hint="--device_num counts among the visible devices, --devices names physical ids",
        )
    if wanted.devices is not None:
        return _by_ids(wanted.devices, wanted.ids, seen, site, product)
    if wanted.device_num is not None:
        return _by_position(wanted.device_num, "--device_num", seen, site, product)
    return _all(seen, site)


def _by_ids(text: str, ids: str, seen: Visible | None, site: Site, product: Product) -> Selection:
    if ids == "logical":
        if seen is None:
            raise DiscoveryError("nothing says which devices this container has", hint="name physical ids")
        ascending = Visible(tuple(sorted(seen.ids)), seen.source)
        return _by_position(text, "--devices --ids logical", ascending, site, product)
    parsed = parse(text, device_limit=product.device_limit, product=product.name)
    outside = [device_id for device_id in parsed.ids if seen is not None and device_id not in seen.ids]
    if seen is not None and outside:
        hint = f"choose among {_listed(seen.ids)}"
        if max(parsed.ids) < len(seen.ids):
            as_logical = _listed(sorted(seen.ids)[position] for position in parsed.ids)
            hint = f"as logical ids they are the physical devices {as_logical}: type --ids logical for that"
        are = "is" if len(outside) == 1 else "are"
        raise UsageError(f"{devices(outside)} {are} not among the visible devices {seen}", hint=hint)
    return Selection(parsed.ids, (), (*parsed.warnings, *_hidden(parsed.ids, seen, site)))


def _by_position(text: str, option: str, seen: Visible | None, site: Site, product: Product) -> Selection:
    """Read a range that counts among the visible devices; where nothing says which these are, among all."""
    parsed = parse(text, device_limit=product.device_limit, product=product.name)
    asked = f'{option} "{text.strip()}"'
    if option == "--device_num" and text.strip().isdecimal() and parsed.ids != (0,):
        count = parsed.ids[0]
        raise UsageError(
            f"{asked} is ambiguous: device {count} alone, or {count} devices?",
            hint=f'type "[{count},{count + 1})" or "[0,{count})"',
        )
    if seen is None:
        return Selection(parsed.ids, (), parsed.warnings)
    as_physical = all(position in seen.ids for position in parsed.ids)
    if max(parsed.ids) >= len(seen.ids):
        hint = f'{option} counts among them, from 0: at most "[0,{len(seen.ids)})"'
        if as_physical:
            hint = f"{option} counts among them; for physical ids type --devices {_compact(parsed.ids)}"
        there = counted(len(seen.ids), "visible device")
        raise UsageError(f"{asked} goes beyond the {there} {seen}", hint=hint)
    chosen = tuple(seen.ids[position] for position in parsed.ids)
    warnings = (*parsed.warnings, *_hidden(chosen, seen, site))
    if chosen == parsed.ids:
        return Selection(chosen, (), warnings)
    if as_physical and not seen.stated:
        raise UsageError(
            f"{asked} is ambiguous here: the physical devices {_listed(parsed.ids)}, or, counted among the "
            f"visible devices {seen}, {_listed(chosen)}?",
            hint=f"type --devices {_compact(parsed.ids)} or --devices {_compact(chosen)}",
        )
    note = f"{asked} counts among the visible devices {seen}: physical devices {_listed(chosen)}"
    return Selection(chosen, (note,), warnings)


def _all(seen: Visible | None, site: Site) -> Selection:
    if seen is None:
        named = site.environ.get(visible.PHYSICAL_VARIABLE)
        raise DiscoveryError(
            "no Ascend device found on this host: there is no /dev/davinciN, and "
            f"{visible.PHYSICAL_VARIABLE} is {named or 'not set'}",
            hint="to try without devices: `hccl-tools gen --simulate 910a`; if they are there, name them: "
            '--device_num "[0,8)"',
        )
    logical = visible.logical(site.environ)
    if logical is None:
        return Selection(seen.ids, (f"devices {seen}",))
    ascending = sorted(seen.ids)
    beyond = [position for position in logical if position >= len(ascending)]
    if beyond:
        raise DiscoveryError(
            f"{visible.LOGICAL_VARIABLE} names {devices(beyond)}, but its ids count from 0 among the "
            f"{counted(len(ascending), 'visible device')} {seen}",
            hint="correct it, or name the physical ids with --devices",
        )
    chosen = tuple(ascending[position] for position in logical)
    note = f"devices {_listed(chosen)}: {visible.LOGICAL_VARIABLE}={_listed(logical)} among {seen}"
    return Selection(chosen, (note,))


def _hidden(chosen: Sequence[int], seen: Visible | None, site: Site) -> tuple[str, ...]:
    """Warn of devices in the table that processes started from this shell will not see."""
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
    """Return a list as one would type it: 4-7 for a run, else 4,6,7."""
    is_run = len(ids) > 1 and list(ids) == list(range(ids[0], ids[0] + len(ids)))
    return f"{ids[0]}-{ids[-1]}" if is_run else _listed(ids)
