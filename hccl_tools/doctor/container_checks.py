"""Checks of a container: what is mounted, and what the ids of its devices mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import Example, Finding, check
from hccl_tools.host import hccn_conf, hccn_tool, npu_smi
from hccl_tools.host.machine import DRIVER, MANAGERS, ROOTINFO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.check_input import Case

_MOUNTS = (hccn_conf.USUAL_PLACE, hccn_tool.USUAL_PLACE, npu_smi.USUAL_PLACE, DRIVER)


@check(
    "HCD401",
    "manager-node-missing",
    "stops",
    remedy="load the driver, or restart the host, which loads it; in a container use ascend-docker-runtime, or add the "
    "nodes",
    source="device nodes that ascend-docker-runtime mounts beside those of the devices",
    example=Example("observed", "manager_nodes", '["davinci_manager"]'),
    of_npus=True,
)
def manager_node_missing(case: Case) -> Iterator[Finding]:
    """Are the other device nodes of the driver there?"""
    missing = [name for name in MANAGERS if name not in case.seen.manager_nodes]
    if not case.seen.nodes or not missing:
        return
    options = " ".join(f"--device /dev/{name}" for name in missing)
    yield Finding(
        f"there is no {', '.join(f'/dev/{name}' for name in missing)}",
        remedy=f"`docker run {options} ...`" if case.seen.in_container else None,
    )


@check(
    "HCD402",
    "not-mounted",
    "may-stop",
    remedy="mount it read-only",
    source="addresses cannot be seen in the container; some services then give wrong answers without an error",
    example=Example("observed", "in_container", "true"),
    of_npus=True,
)
def not_mounted(case: Case) -> Iterator[Finding]:
    """Are hccn.conf, hccn_tool, npu-smi and the driver mounted in this container?"""
    if not case.seen.in_container or not case.seen.nodes:
        return
    files = case.seen.files
    missing = [path for path in _MOUNTS if files.get(path) == "absent"]
    if DRIVER in missing and hccn_tool.USUAL_PLACE in missing:
        missing.remove(hccn_tool.USUAL_PLACE)  # the folder contains it
    if case.product == "a5" and files.get(ROOTINFO) == "absent":
        missing.append(ROOTINFO)
    if missing:
        options = " ".join(f"-v {path}:{path}:ro" for path in missing)
        yield Finding(
            f"not mounted in this container: {', '.join(missing)}",
            remedy=f"`docker run {options} ...`; in a pod, a hostPath volume for each",
        )


@check(
    "HCD403",
    "rootinfo-is-a-directory",
    "stops",
    remedy=f"remove the container, then the empty folder {ROOTINFO} on the host; mount the file only if it exists",
    source="docker -v makes a directory of a file that does not exist on the host",
    example=Example("folder", ROOTINFO),
    of_npus=True,
)
def rootinfo_is_a_directory(case: Case) -> Iterator[Finding]:
    """Is /etc/hccl_rootinfo.json a file?"""
    for path in (ROOTINFO, hccn_conf.USUAL_PLACE):
        if case.seen.files.get(path) == "directory":
            yield Finding(
                f"{path} is a directory: docker made it, because the host had no such file",
                remedy=f"remove the container, then the empty folder {path} on the host",
            )


@check(
    "HCD404",
    "logical-ids-differ",
    "note",
    remedy="use physical ids in tables and with `hccn_tool -i`, logical ids in ASCEND_RT_VISIBLE_DEVICES",
    source="CANN numbers the devices of a container from 0",
    example=Example("observed", "nodes", "[4, 5, 6, 7]"),
    of_npus=True,
)
def logical_ids_differ(case: Case) -> Iterator[Finding]:
    """Are the physical ids of the devices other than the logical ids?"""
    nodes = case.seen.nodes
    if nodes and nodes != tuple(range(len(nodes))):
        own = ",".join(map(str, nodes))
        logical = ",".join(map(str, range(len(nodes))))
        yield Finding(f"physical devices {own} are devices {logical} for programs here")
