"""Checks of the devices of a host: nodes, health, driver, processes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import Consequence, Example, Finding, check
from hccl_tools.host.machine import DRIVER
from hccl_tools.notation.phrases import and_more, devices, time_span
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.host.observation import DeviceProcess

_HEALTHY = frozenset({"OK", "NA", ""})
#: npu-smi gives the process id 0 to what it cannot see.
_UNKNOWN_OWNER = (
    "run `npu-smi info` on the host, outside of containers: it names the process. If none is left there, the memory is "
    "that of an ended process: reset the NPU or restart the host"
)
_GROUP_OF_CONTAINER = "run the container as root, or add the group of the file to it (a pod's supplementalGroups, docker's --group-add)"
#: Words of npu-smi for faults that do not stop a device.
_MILD = frozenset({"Warning", "Minor"})


@check(
    "HCD101",
    "no-npu",
    "stops",
    remedy="load the driver (`npu-smi info`; a restart of the host loads an installed one); in a container add the "
    "devices: `docker run --device /dev/davinci0 ...`; a rehearsal without NPUs: `hccl-tools doctor --cpu`",
    source="HCCL rank table guides: device_id is the N of /dev/davinciN",
    example=Example("observed", "nodes", "[]"),
    explains=("HCD001", "HCC341", "HCC431", "HCC641", "HCC643"),
    of_npus=True,
)
def no_npu(case: Case) -> Iterator[Finding]:
    """Does this host have device nodes (/dev/davinciN)?

    Without them no NPU can be looked at. A host that only asks others is not asked itself.
    """
    if not case.seen.nodes:
        yield Finding(
            "this host shows no NPU, so that no NPU was looked at: there is no /dev/davinci* (no NPU, or its"
            " driver is not loaded)"
        )


@check(
    "HCD102",
    "device-node-closed",
    "stops",
    remedy="join the group of the device nodes (usually HwHiAiUser), then log in again",
    source="mode of the driver's device nodes",
    example=Example("observed", "closed_nodes", '["/dev/davinci3"]'),
    quick=True,
    of_npus=True,
)
def device_node_closed(case: Case) -> Iterator[Finding]:
    """Can this user open the device nodes?"""
    way = _GROUP_OF_CONTAINER if case.seen.in_container else None
    for path in case.seen.closed_nodes:
        device = whole_number(path.rpartition("davinci")[2])
        yield Finding(
            f"{path} cannot be opened by this user: {way or 'join its group (usually HwHiAiUser)'}",
            () if device is None else (device,),
            remedy=way,
        )


@check(
    "HCD103",
    "npu-unhealthy",
    "stops",
    remedy="see `npu-smi info -t health -i {device}` and the driver's log; reset the NPU or restart the host, which "
    "cures most of these; replace the NPU if it is back",
    commands=("npu-smi info -t health -i {device}",),
    source="npu-smi info, column Health",
    example=Example(
        "tool",
        "npu-smi info",
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
        "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n"
        + "".join(
            f"| {npu}     910A                | {health:<13} | 68.8        39                0    / 0             |\n"
            "| 0                         | 0000:C1:00.0  | 0           942  / 13553      0    / 32768         |\n"
            for npu, health in enumerate(("OK", "OK", "OK", "Critical"))
        ),
    ),
    of_npus=True,
)
def npu_unhealthy(case: Case) -> Iterator[Finding]:
    """Does npu-smi report every NPU as healthy?"""
    for one in case.seen.npus:
        if one.health not in _HEALTHY and (
            one.device is None or not case.devices or one.device in case.devices
        ):
            ids = () if one.device is None else (one.device,)
            name = f"device {one.device}" if ids else f"NPU {one.npu} chip {one.chip}"
            mild: Consequence | None = "may-stop" if one.health in _MILD else None
            yield Finding(f"npu-smi reports the health of {name} as {one.health}", ids, consequence=mild)


@check(
    "HCD104",
    "firmware-does-not-fit-driver",
    "may-stop",
    remedy="install driver and firmware of one release, then restart the host",
    source="npu-smi info -t board, Compatibility",
    example=Example(
        "tool",
        "npu-smi info -t board -i 3",
        "\tNPU ID                         : 3\n\tSoftware Version               : 23.0.5\n"
        "\tFirmware Version               : 7.1.0.7.220\n\tCompatibility                  : Failed\n",
    ),
    of_npus=True,
)
def firmware_does_not_fit_driver(case: Case) -> Iterator[Finding]:
    """Do driver and firmware fit each other?"""
    seen = {one.npu: one for one in case.seen.npus}
    for one in seen.values():
        if one.compatibility not in {None, "OK", "NA"}:
            yield Finding(
                f"firmware {one.firmware} of NPU {one.npu} does not fit driver {one.driver}: npu-smi says "
                f'"{one.compatibility}"',
                () if one.device is None else (one.device,),
            )


@check(
    "HCD105",
    "driver-differs-on-host",
    "may-stop",
    remedy="install one driver and firmware for all NPUs of the host",
    source="npu-smi info -t board, Software Version and Firmware Version",
    example=Example(
        "tool",
        "npu-smi info -t board -i 3",
        "\tNPU ID                         : 3\n\tSoftware Version               : 22.0.1\n"
        "\tFirmware Version               : 7.1.0.7.220\n\tCompatibility                  : OK\n",
    ),
    of_npus=True,
)
def driver_differs_on_host(case: Case) -> Iterator[Finding]:
    """Do all NPUs of the host have the same driver and firmware?"""
    for what in ("driver", "firmware"):
        found = {one.npu: getattr(one, what) for one in case.seen.npus if getattr(one, what)}
        common = Counter(found.values()).most_common(1)
        other = {npu: version for npu, version in found.items() if version != common[0][0]} if common else {}
        if other:
            listed = ", ".join(f"NPU {npu} has {version}" for npu, version in other.items())
            ids = tuple(one.device for one in case.seen.npus if one.npu in other and one.device is not None)
            yield Finding(
                f"the NPUs have different {what} versions: {listed}, the others {common[0][0]}", ids
            )


@check(
    "HCD106",
    "device-in-use",
    "stops",
    remedy="wait for the other job or end it (`hccl-tools jobs`, `npu-smi info`), or use other devices",
    commands=("npu-smi info",),
    source="one process per device: HCCL's ports and the memory of the device are taken",
    example=Example(
        "observed", "processes", '[{"pid": 4711, "device": 3, "command": "python train.py", "user": "ann"}]'
    ),
    quick=True,
    of_npus=True,
)
def device_in_use(case: Case) -> Iterator[Finding]:
    """Are the devices of the job free?"""
    found = [one for one in case.seen.processes if not case.devices or one.device in case.devices]
    if not found:
        return
    ids = tuple(sorted({one.device for one in found}))
    unknown = [one for one in found if not one.pid]
    remedy = _UNKNOWN_OWNER if len(unknown) == len(found) else None
    if len(found) == 1:
        yield Finding(_process(found[0]), ids, remedy=remedy)
        return
    pids = len({one.pid for one in found})
    are = "are" if len(ids) > 1 else "is"
    by = "programs" if unknown else f"{pids} process{'es' if pids > 1 else ''}"
    yield Finding(f"{devices(ids)} {are} in use by {by}; the first: {_process(found[0])}", ids, remedy=remedy)


def _process(one: DeviceProcess) -> str:
    user = f" of {one.user}" if one.user else ""
    age = f", {time_span(one.age)} old" if one.age is not None else ""
    left = f", left over from run {one.run}" if one.run else ""
    memory = f", {one.memory} MB on the device" if one.memory else ""
    command = f": {one.command}" if one.command else ""
    owner = (
        f"process {one.pid}" if one.pid else "a program whose process is not seen here (of another container)"
    )
    return f"device {one.device} is in use by {owner}{user}{age}{memory}{left}{command}"


@check(
    "HCD107",
    "product-not-the-table-s",
    "stops",
    remedy="make a new table on this kind of host: `hccl-tools gen`, or name the product with --product",
    source="HCCL rank table guides: one table format per product",
    of_npus=True,
)
def product_not_the_table_s(case: Case) -> Iterator[Finding]:
    """Is this host the product for which the table was made?"""
    found = case.seen.product
    if found is None:
        return
    if case.product_by_user is not None and case.product_by_user != found:
        yield Finding(f"this host is {found}, not {case.product_by_user} (--product)")
    elif case.table is not None and case.table.format not in PRODUCTS[found].formats:
        formats = and_more(PRODUCTS[found].formats)
        yield Finding(f"this host is {found}, which reads {formats} tables, not {case.table.format}")


@check(
    "HCD108",
    "npu-not-listed",
    "may-stop",
    remedy="see the driver's log (`dmesg`), and restart the host, which often brings the NPU back; else replace it",
    source="npu-smi info lists the NPUs that answer the driver",
    example=Example("observed", "nodes", "[0, 1, 2, 3, 4]"),
    of_npus=True,
)
def npu_not_listed(case: Case) -> Iterator[Finding]:
    """Does npu-smi list as many NPUs as there are device nodes?"""
    nodes, listed = case.seen.nodes, case.seen.npus
    if listed and len(listed) < len(nodes):
        known = {one.device for one in listed}
        lost = () if None in known else tuple(device for device in nodes if device not in known)
        named = f"; {devices(lost)} {'is' if len(lost) == 1 else 'are'} missing there" if lost else ""
        yield Finding(f"npu-smi lists {len(listed)} of the {len(nodes)} NPUs of /dev/davinci*{named}", lost)


@check(
    "HCD109",
    "installed-driver-not-running",
    "note",
    remedy="restart the host: a driver that was installed runs from the next start on",
    source="version.info of the driver; npu-smi info -t board, Software Version",
    example=Example("file", f"{DRIVER}/version.info", "Version=24.1.rc2\n"),
    of_npus=True,
)
def installed_driver_not_running(case: Case) -> Iterator[Finding]:
    """Do the NPUs run the driver that is installed?"""
    installed = case.seen.versions.get("driver", "")
    running = {one.driver for one in case.seen.npus if one.driver}
    if installed and running and installed.lower() not in {version.lower() for version in running}:
        yield Finding(
            f"driver {installed} is installed (version.info), but npu-smi shows {and_more(sorted(running))}: the host "
            "was probably not restarted since"
        )
