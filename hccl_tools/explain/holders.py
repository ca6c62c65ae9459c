"""Who holds a port, a device or its memory: from files beside the logs, and from torch_npu's own numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import and_more

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.cause import Case, Cause
    from hccl_tools.explain.events import Seen

_FULL, _HELD = "HCM657", "HCM659"
_SIZES = re.compile(
    r"(?P<total>[\d.]{1,12}) (?P<of_total>[KMG]iB) total capacity.{0,200}?"
    r"(?P<free>[\d.]{1,12}) (?P<of_free>[KMG]iB) free;"
    r" (?P<reserved>[\d.]{1,12}) (?P<of_reserved>[KMG]iB) reserved"
)
_IN_GIB = {"KiB": 1 / 1024**2, "MiB": 1 / 1024, "GiB": 1.0}
#: The part of a device that others must hold; the driver and the communicators take some of it.
_LARGE = 0.25
_PORT_IN_USE = {"HCM205", "HCM206", "HCM208", "HCM209", "HCM603", "HCM604", "HCM656", "HCM890"}
_DEVICE_IN_USE = {"HCM213", "HCM214", "HCM605", "HCM657", "HCM659", "HCM847"}
#: Processes on a device that are named.
_MOST_NAMED = 4
_LISTENERS, _DEVICE_USER = ("HCM886", "HCM887"), "HCM888"


def with_memory(first: Cause) -> Cause:
    """Return the cause with how much memory other processes hold, if that is a large part."""
    seen = first.seen
    if first.message.id != _FULL or seen is None or (found := _SIZES.search(seen.event.text)) is None:
        return first
    try:
        total, free, own = (
            float(found[name]) * _IN_GIB[found[f"of_{name}"]] for name in ("total", "free", "reserved")
        )
    except ValueError:
        return first
    others = total - free - own
    if others < _LARGE * total:
        return first
    message = messages()[_HELD]
    reason = f"this process has {own:.1f} GiB of {total:.1f} GiB, {free:.1f} GiB are free"
    reason += f": others hold about {others:.1f} GiB"
    reason = f"{first.reason}; {reason}" if first.reason else reason
    return first._replace(
        message=message, seen=seen._replace(event=seen.event._replace(message=message)), reason=reason
    )


def with_holder(case: Case, first: Cause) -> Cause:
    """Return a cause that says that a port or a device is in use, with the process that holds it."""
    if first.seen is None or first.beside is not None:
        return first
    if first.message.id in _PORT_IN_USE:
        said = [one for one in case.cluster.seen if one.event.message.id in _PORT_IN_USE]
        ports = {one.event.fields.get("port") for one in said if one.actor == first.seen.actor}
        holders = [one for one in case.cluster.seen if one.event.message.id in _LISTENERS]
        same = [one for one in holders if one.event.fields["port"] in ports]
        return _held(first, same, "listens on it")
    if first.message.id in _DEVICE_IN_USE:
        own = {one.event.pid for one in case.cluster.seen} | {first.seen.event.pid}
        holders = [one for one in case.cluster.seen if one.event.message.id == _DEVICE_USER]
        devices = {str(place.device) for place in first.places if place.device is not None}
        other = [one for one in holders if one.event.fields["pid"] not in own]
        same = [one for one in other if not devices or one.event.fields["device"] in devices]
        if len(first.places) > 1 and (several := _of_devices(first, same)) is not None:
            return several
        on = same[0].event.fields["device"] if same else ""
        pids = dict.fromkeys(one.event.fields["pid"] for one in holders if one.event.fields["device"] == on)
        if len(pids) > 1 and own.isdisjoint(pids):
            reason = f"processes {and_more([*pids], _MOST_NAMED)} use it: one of them may be the rank itself"
            reason = f"{first.reason}; {reason}" if first.reason else reason
            return first._replace(reason=reason, beside=same[0])
        return _held(first, same, "uses it")
    return first


def _of_devices(first: Cause, holders: Sequence[Seen]) -> Cause | None:
    """Return the cause of several ranks with the processes on all of their devices, if these are several."""
    pids = dict.fromkeys(one.event.fields["pid"] for one in holders)
    devices = {int(one.event.fields["device"]) for one in holders}
    if len(pids) < 2 or len(devices) < 2:
        return None
    named = and_more([*pids], _MOST_NAMED)
    reason = f"processes {named} use devices {number_list.fold(sorted(devices))}"
    reason = f"{first.reason}; {reason}" if first.reason else reason
    return first._replace(reason=reason, beside=holders[0])


def _held(first: Cause, holders: Sequence[Seen], what: str) -> Cause:
    if not holders:
        return first
    fields = holders[0].event.fields
    memory = f", with {int(fields['value']):,} MB" if fields.get("value") else ""
    reason = f"process {fields['pid']} ({fields['program']}) {what}{memory}"
    reason = f"{first.reason}; {reason}" if first.reason else reason
    return first._replace(reason=reason, beside=holders[0])
