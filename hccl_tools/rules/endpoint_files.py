"""Rules on one endpoint file of an Ascend 950 device (``ub_endpoint_npu_N.json``), as hixl reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.formats.endpoint_file import EID_PROTOCOLS, IP_PROTOCOLS, VERSION, Endpoint, endpoints
from hccl_tools.rules import file_structure
from hccl_tools.rules.registry import Finding, Input, rule, shared
from hccl_tools.table.addresses import is_eid, is_v2_ipv4, is_v2_ipv6

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

_PROTOCOLS = EID_PROTOCOLS | IP_PROTOCOLS | {"hccs", "ubmem"}
_PLACEMENTS = ("device", "host")
#: Protocols between super pods, which hixl accepts on devices only.
_DEVICE_ONLY = frozenset({"uboe", "ub_rtp", "ubg"})
#: Names of protocols that not every version of hixl knows.
_OF_SOME_VERSIONS = {"ub_tp": "ub_ctp", "ubg": "ub_rtp"}
_PARSER = "hixl endpoint_generator.cc"


@shared
def entries(subject: Input) -> list[Endpoint]:
    """Return the endpoints of the file."""
    return endpoints(subject.value)


def entry_path(one: Endpoint, key: str) -> Path:
    """Return the path of a key of an endpoint."""
    return ("endpoint_list", one.place, key)


@rule(
    "HCC801",
    "endpoint-directory",
    "refused",
    stage="load",
    source="vllm-ascend utils.py, setup_ascend_local_comm_res (it opens the file)",
)
def endpoint_directory(subject: Input) -> Iterator[Finding]:
    """A directory has the name of an endpoint file.

    `docker run -v FILE:FILE` makes an empty directory on the host if the file does not exist there.

    Base: endpoints
    Example: directory
    Instead: table
    Hint: remove the directory, create the file, and start the container again
    """
    yield from file_structure.directory(subject)


@rule("HCC802", "endpoint-version", "refused", stage="load", source=f"{_PARSER}, ResolveLocalCommResContext")
def endpoint_version(subject: Input) -> Iterator[Finding]:
    """The version is not "1.3", the only one that hixl reads on Ascend 950.

    Versions 1.0 and 1.2 are files of Atlas A2 and A3, for example left over from an older image.

    Base: endpoints
    Example: /version = "1.2"
    Instead: /version = "1.3"
    Hint: make the file again on this host: `hccl-tools gen --endpoints DIR`
    """
    version = subject.value.get("version") if isinstance(subject.value, dict) else None
    if isinstance(version, str) and version != VERSION:
        yield Finding(
            f'version is {quoted(version)}; hixl reads "{VERSION}" on Ascend 950',
            ("version",),
            "make the file again on this host: `hccl-tools gen --endpoints DIR`",
        )


@rule("HCC803", "endpoint-structure", "refused", stage="structure", source=f"{_PARSER}, ParseLocalCommRes")
def endpoint_structure(subject: Input) -> Iterator[Finding]:
    """A key is missing or has the wrong type, or the list of endpoints is empty.

    A generator of these files writes `"net_instance_id": null` for a device without layer 1, which hixl
    refuses.

    Base: endpoints
    Example: /net_instance_id = null
    Instead: /net_instance_id = "0"
    Hint: write the net_instance_id of layer 1 of the root info, as a string
    """
    if subject.value != {"version": VERSION}:  # `version_only` reports it
        yield from file_structure.faults(subject, subject.value, "endpoints")


@rule("HCC804", "endpoint-protocol", "refused", source=f"{_PARSER}, ParseEndpointProtocol")
def endpoint_protocol(subject: Input) -> Iterator[Finding]:
    """The protocol is unknown to hixl. It compares upper and lower case.

    Base: endpoints
    Example: /endpoint_list/0/protocol = "UB_CTP"
    Instead: /endpoint_list/0/protocol = "ub_ctp"
    Hint: write one of hccs, roce, ub_ctp, ub_rtp, ub_tp, ubg, ubmem, uboe
    """
    for one in entries(subject):
        if one.protocol not in _PROTOCOLS:
            yield Finding(
                f"protocol {quoted(one.protocol)} is unknown",
                entry_path(one, "protocol"),
                f"write one of {', '.join(sorted(_PROTOCOLS))}",
            )


@rule("HCC805", "endpoint-placement", "refused", source=f"{_PARSER}, ParseEndpointPlacement")
def endpoint_placement(subject: Input) -> Iterator[Finding]:
    """The placement is not device or host, or it is host for a protocol that hixl accepts on devices only.

    Base: endpoints
    Example: /endpoint_list/0/placement = "npu"
    Instead: /endpoint_list/0/placement = "device"
    Hint: write "device" or "host"
    """
    for one in entries(subject):
        if one.placement not in _PLACEMENTS:
            message = f"placement {quoted(one.placement)} is unknown"
            yield Finding(message, entry_path(one, "placement"), 'write "device" or "host"')
        elif one.protocol in _DEVICE_ONLY and one.placement == "host":
            message = f"{one.protocol} is possible on a device only"
            yield Finding(message, entry_path(one, "placement"), 'write "device"')


@rule(
    "HCC806",
    "endpoint-address",
    "refused",
    source=f"{_PARSER}, ParseEidAddress, ParseIpAddress, ParseHccsCommId",
)
def endpoint_address(subject: Input) -> Iterator[Finding]:
    """A comm_id does not match its protocol.

    UB protocols need an EID of 32 hex digits without colons, roce and uboe an IP address, and hccs a device
    id.

    Base: endpoints
    Example: /endpoint_list/0/comm_id = "0000:0000:0000:0020:0010:0000:dfdf:0001"
    Instead: /endpoint_list/0/comm_id = "000000000000002000100000dfdf0001"
    Hint: write the EID as 32 hex digits without colons
    """
    for one in entries(subject):
        problem = _address_problem(one)
        if problem:
            what, hint = problem
            yield Finding(f"comm_id {quoted(one.comm_id)} is not {what}", entry_path(one, "comm_id"), hint)


def _address_problem(one: Endpoint) -> tuple[str, str] | None:
    if one.protocol in EID_PROTOCOLS and not is_eid(one.comm_id):
        return "an EID", "write the EID as 32 hex digits without colons"
    if one.protocol in IP_PROTOCOLS and not (is_v2_ipv4(one.comm_id) or is_v2_ipv6(one.comm_id)):
        return "an IP address", "write the address of the network interface"
    if one.protocol == "hccs" and not (one.comm_id.isascii() and one.comm_id.isdecimal()):
        return "a device id", "write the device id as digits"
    return None


@rule("HCC807", "endpoint-peer-address", "fails-later", source="hixl endpoint_matcher.h, MatchKey::Matches")
def endpoint_peer_address(subject: Input) -> Iterator[Finding]:
    """A dst_eid is not an EID, so it equals the comm_id of no device.

    A generator of these files writes "None" where it finds no plane.

    Base: endpoints
    Example: /endpoint_list/0/dst_eid = "None"
    Instead: table
    Hint: write the peer's EID as 32 hex digits, or remove dst_eid
    """
    for one in entries(subject):
        if one.protocol in EID_PROTOCOLS and one.dst_eid and not is_eid(one.dst_eid):
            yield Finding(
                f"dst_eid {quoted(one.dst_eid)} is not an EID",
                entry_path(one, "dst_eid"),
                "write the peer's EID as 32 hex digits, or remove dst_eid",
            )


@rule("HCC671", "protocol-of-some-versions", "advice", source=f"{_PARSER}, versions of 2026")
def protocol_of_some_versions(subject: Input) -> Iterator[Finding]:
    """Only some versions of hixl know the protocol: ub_tp was removed, and ubg is now called ub_rtp.

    Base: endpoints
    Example: /endpoint_list/7/protocol = "ub_tp"
    Instead: /endpoint_list/7/protocol = "ub_ctp"
    Hint: use ub_ctp if the topology file allows it, or check the version of hixl
    """
    for one in entries(subject):
        other = _OF_SOME_VERSIONS.get(one.protocol)
        if other:
            hint = f"use {other} if the topology file allows it, or check the version of hixl"
            yield Finding(f"not every hixl knows {one.protocol}", entry_path(one, "protocol"), hint)


@rule("HCC672", "repeated-endpoint", "advice", source="hixl endpoint_matcher.cc, BuildMatchMap")
def repeated_endpoint(subject: Input) -> Iterator[Finding]:
    """Two UB endpoints have the same dst_eid, plane and placement; hixl keeps the last one.

    With neither dst_eid nor plane, an endpoint stands for any peer, so two of them are the usual case.

    Base: endpoints
    Example: remove /endpoint_list/0/dst_eid; remove /endpoint_list/1/dst_eid
    Instead: table
    Hint: give each endpoint its dst_eid (layer 0) or its plane (layer 1)
    """
    first: dict[tuple[str, str, str], Endpoint] = {}
    for one in entries(subject):
        if one.protocol not in EID_PROTOCOLS:
            continue
        known = first.setdefault((one.dst_eid, one.plane, one.placement), one)
        if known is not one:
            related = (Related(("endpoint_list", known.place), "the other one here"),)
            yield Finding(
                "hixl does not tell this endpoint from another one: dst_eid, plane and placement are equal",
                ("endpoint_list", one.place),
                "give each endpoint its dst_eid (layer 0) or its plane (layer 1)",
                related,
            )


@rule("HCC673", "version-only", "advice", source=f"{_PARSER}, IsVersionOnlyLocalCommRes")
def version_only(subject: Input) -> Iterator[Finding]:
    """The file has only a version. Newer hixl then finds the endpoints itself; older hixl refuses the file.

    Base: endpoints
    Example: text {"version": "1.3"}
    Instead: table
    Hint: if hixl refuses it, write the endpoints: `hccl-tools gen --endpoints DIR`
    """
    if subject.value == {"version": VERSION}:
        yield Finding(
            "the file has only a version, which older hixl refuses",
            ("version",),
            "if hixl refuses it, write the endpoints: `hccl-tools gen --endpoints DIR`",
        )
