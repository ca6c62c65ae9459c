"""Determine the address of each device from ``hccn_tool``, else ``hccn.conf``; the two must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import hccn_conf, hccn_tool
from hccl_tools.host.facts import DeviceFacts, Reading
from hccl_tools.host.host_tools import find_tool
from hccl_tools.notation.phrases import as_root, devices
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.host.hccn_conf import HccnConf
    from hccl_tools.host.site_defaults import Site

#: The problem of hccn_tool if the user specified a file.
NOT_ASKED = "hccn_tool was not called because --hccn-conf is set"


class SourceReadings(NamedTuple):
    """The readings of both sources for one device."""

    device_id: int
    tool: Reading
    conf: Reading

    def agree(self) -> bool:
        """Return whether the tool reports the file's address, or a source has no address."""
        theirs = {packed(ip) for ip in self.tool.ips}
        return not theirs or all(packed(ip) in theirs for ip in self.conf.ips)


def find_addresses(
    device_ids: Sequence[int], site: Site, *, prefer: str | None = None, required: bool = True
) -> tuple[list[DeviceFacts], list[str]]:
    """Determine the addresses of devices by physical id.

    Args:
        device_ids: In the order of the result.
        prefer: The source to use if the sources disagree: ``hccn_tool`` or ``hccn.conf``.
        required: Whether every device needs an address; otherwise all devices may lack addresses.

    Returns:
        The devices, and a warning for each device that only one source knows.

    Raises:
        DiscoveryError: A device has no address in either source, or the sources disagree.
        InputError: A tool or file that the user specified cannot be used.
    """
    readings, conf = query_sources(device_ids, site)
    if not readings:
        return [], []
    if not required and not any(one.tool.ips or one.conf.ips for one in readings):
        reason = _why(readings[0])
        warning = f"no device has a network address; a job inside one super pod needs no addresses ({reason})"
        return [DeviceFacts(one.device_id, source="none set") for one in readings], [warning]
    _refuse_missing(readings, conf)
    if prefer is None:
        _refuse_disagreement(readings)
    first, second = ("conf", "tool") if prefer == "hccn.conf" else ("tool", "conf")
    devices, warnings = [], []
    for one in readings:
        chosen: Reading = getattr(one, first) if getattr(one, first).ips else getattr(one, second)
        devices.append(DeviceFacts(one.device_id, chosen.ips, chosen.source, place=chosen.place))
        if chosen is one.conf and one.tool.problem not in (None, "", hccn_tool.ABSENT, NOT_ASKED):
            warnings.append(f"device {one.device_id}: {one.tool.problem}; address from {chosen.source}")
        elif not one.agree():
            other = one.conf if chosen is one.tool else one.tool
            warnings.append(
                f"device {one.device_id}: {chosen.source} has {','.join(chosen.ips)}, {other.source} has "
                f"{','.join(other.ips)}; using {chosen.source} (--prefer)"
            )
    return devices, warnings


def query_sources(device_ids: Sequence[int], site: Site) -> tuple[list[SourceReadings], HccnConf]:
    """Query both sources for devices by physical id; a missing address is not an error.

    Raises:
        InputError: A tool or file that the user specified cannot be used.
        DiscoveryError: The file contradicts itself.
    """
    conf = hccn_conf.load(site)
    answers: Iterable[tuple[int, Reading]]
    if site.hccn_conf is not None and site.hccn_tool is None:
        # A file that the user gives replaces the tool.
        answers = [(device_id, Reading(hccn_tool.SOURCE, problem=NOT_ASKED)) for device_id in device_ids]
    else:
        answers = _ask_tool(device_ids, site)
    return [SourceReadings(device_id, tool, conf.read(device_id)) for device_id, tool in answers], conf


def find_vnic_addresses(device_ids: Sequence[int], site: Site) -> tuple[list[DeviceFacts], list[str]]:
    """Determine the addresses that devices have inside their super pod.

    Returns:
        The devices, and a warning: other machines may have the same addresses.

    Raises:
        DiscoveryError: A device has no such address.
        InputError: The tool that the user specified cannot be used.
    """
    found = []
    for device_id, reading in _ask_tool(device_ids, site, hccn_tool.read_vnic):
        if not reading.ips:
            raise DiscoveryError(
                f"no vnic address for device {device_id}: {reading.problem}",
                hint="omit --vnic: inside a super pod, a table needs no addresses",
            )
        found.append(DeviceFacts(device_id, reading.ips, "hccn_tool -vnic"))
    return found, [
        "vnic addresses are valid inside one super pod only, and other machines may have the same addresses"
    ]


def _ask_tool(
    device_ids: Sequence[int],
    site: Site,
    read: Callable[[str, int, Site], Reading] = hccn_tool.read_addresses,
) -> Iterable[tuple[int, Reading]]:
    tool = hccn_tool.find_hccn_tool(site)
    on_path = site.hccn_tool is None and tool == find_tool(site, hccn_tool.SOURCE)
    stopped: Reading | None = Reading(hccn_tool.SOURCE, problem=hccn_tool.ABSENT) if tool is None else None
    for device_id in device_ids:
        if tool is None or stopped is not None:
            yield device_id, stopped or Reading(hccn_tool.SOURCE, problem=hccn_tool.ABSENT)
            continue
        reading = read(tool, device_id, site)
        # Messages show the path of a tool that is not the first on PATH.
        yield device_id, reading if on_path else reading._replace(source=tool)
        if not reading.worth_asking:
            # A tool that hangs or stays busy for one device does so for all: do not wait N times.
            stopped = reading


def _refuse_missing(readings: Sequence[SourceReadings], conf: HccnConf) -> None:
    missing = [one for one in readings if not one.tool.ips and not one.conf.ips]
    if not missing:
        return
    first, rest = missing[0], missing[1:]
    also = f" (nor for {devices(one.device_id for one in rest)})" if rest else ""
    raise DiscoveryError(
        f"no address for device {first.device_id}: {_why(first)}{also}", hint=conf.remedy or _hint(first)
    )


def _why(one: SourceReadings) -> str:
    return f"{one.tool.problem}, and {one.conf.problem}"


def _hint(one: SourceReadings) -> str:
    problem = one.tool.problem or ""
    if "permission denied" in problem:
        return f"hccn_tool needs root: {as_root('gen ...')}"
    if "not exist!" in problem:
        return "list the devices: ls /dev/davinci*"
    if problem == hccn_tool.ABSENT:
        return (
            "on a machine without devices: `hccl-tools gen --simulate 910a`; else specify the tool with "
            "--hccn-tool PATH or a file with --hccn-conf PATH (in a container mount "
            f"{hccn_conf.USUAL_PLACE} or /usr/local/Ascend/driver)"
        )
    how = f"hccn_tool -i {one.device_id} -ip -s address A.B.C.D netmask M.M.M.M"
    return f"set an address ({how}), or specify --hccn-conf PATH"


def _refuse_disagreement(readings: Sequence[SourceReadings]) -> None:
    apart = [one for one in readings if not one.agree()]
    if not apart:
        return
    differences = "; ".join(
        f"device {one.device_id}: {one.tool.source} has {','.join(one.tool.ips)}, {one.conf.source} has "
        f"{','.join(one.conf.ips)}"
        for one in apart
    )
    raise DiscoveryError(
        f"the sources disagree about {len(apart)} of {len(readings)} addresses: {differences}",
        hint="--prefer hccn_tool uses the current addresses, --prefer hccn.conf those of the next boot",
    )
