"""Checks of the variables with which ranks find their table, their devices and each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.ping_results import stated_addresses
from hccl_tools.doctor.registry import Example, Finding, check
from hccl_tools.doctor.variable_checks import server_here
from hccl_tools.errors import DiscoveryError
from hccl_tools.host import hccl_variables, naming, observing, visible
from hccl_tools.host.recognition import same
from hccl_tools.host.table_copies import TABLE_VARIABLES
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count, devices
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.table.addresses import is_loopback, packed
from hccl_tools.variables.rows import OWN_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.host.naming import HostInVariable

_LOOPBACK = "lo"
_RANK, _SIZE = ("RANK_ID", "RANK"), ("RANK_SIZE", "WORLD_SIZE")
_STATES = {
    "absent": "the file does not exist on this host",
    "directory": "this is a directory without jobstart_hccl.json or hccl.json",
    "unreadable": "this user cannot read it",
}
_STATES_OF_WHITE_LIST = {
    "absent": "the file does not exist on this host",
    "directory": "this is a directory",
    "unreadable": "this user cannot read it",
    "invalid": "this is not a JSON object with a list of addresses in host_ip",
}
_MOST_NAMED = 4


@check(
    "HCD316",
    "interface-variable",
    "may-stop",
    remedy="set the variable to the interface with the address of this host in the table: `ip -br address`",
    source="torch: GLOO_SOCKET_IFNAME and TP_SOCKET_IFNAME are lists of names; HCCL_SOCKET_IFNAME",
    example=Example("env", "GLOO_SOCKET_IFNAME", "eth77"),
)
def interface_variable(case: Case) -> Iterator[Finding]:
    """Do GLOO_SOCKET_IFNAME and TP_SOCKET_IFNAME name interfaces of this host?

    On several servers, no variable may choose the loopback interface alone, nor HCCL_IF_IP its address. HCD307 checks the other values of
    HCCL_SOCKET_IFNAME.
    """
    present = frozenset(case.seen.interfaces)
    listed = f"({', '.join(sorted(present))})"
    chosen = {name: _listed(case.environ.get(name, "")) for name in hccl_variables.INTERFACES}
    for name, names in chosen.items():
        missing = [one for one in names if one not in present]
        if missing and present:
            yield Finding(
                f"{name}={','.join(names)}: this host has no interface {', '.join(missing)} {listed}"
            )
    of_hccl = case.environ.get(hccl_variables.INTERFACE, "")
    chosen[hccl_variables.INTERFACE] = (
        hccl_variables.matching(of_hccl, case.seen.interfaces) if of_hccl else []
    )
    for name, names in chosen.items():
        if names == [_LOOPBACK] and case.has_several_servers:
            yield Finding(f"{name}={case.environ[name]} is the loopback interface: no other host reaches it")
    address = case.environ.get(OWN_ADDRESS, "")
    first = stated_addresses(case.table.servers[0]) if case.table is not None else []
    if case.has_several_servers and is_loopback(address) and address not in first:
        yield Finding(f"{OWN_ADDRESS}={address} is a loopback address: no other host reaches it")


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@check(
    "HCD317",
    "host-in-variable",
    "may-stop",
    remedy="set the variable to an address of the job's first host that all hosts reach",
    source="torch, MindSpore and MindIE connect to this host before anything else",
    example=Example("env", "ASCEND_MF_STORE_URL", "tcp://PIP:PORT"),
)
def host_in_variable(case: Case) -> Iterator[Finding]:
    """Do MASTER_ADDR and the like, and values such as tcp://HOST:PORT, name a host that answers?

    The name must have an address, the port must be a number, and the host must answer. On several servers the
    host is none that each host takes for itself (127.0.0.1, localhost).
    """
    lost = {one.address for one in case.seen.unreached}  # HCD512 tells of these
    for one in naming.named_hosts(case.environ):
        wrong = _wrong_host(case, one) if one.host not in lost else ""
        if one.port and not _is_port(one.port):
            port = f'"{one.port}" is not a port' + (
                "" if one.variable not in naming.PORTS else f" ({naming.PORTS[one.variable]})"
            )
            wrong = f"{wrong}, and {port}" if wrong else port
        if wrong:
            yield Finding(f"{one.variable}={case.environ[one.variable]}: {wrong}")


def _wrong_host(case: Case, one: HostInVariable) -> str:
    if reason := case.seen.named_hosts.get(one.variable):
        return reason
    if not (is_loopback(one.host) and case.has_several_servers and case.table is not None):
        return ""
    if one.host in stated_addresses(case.table.servers[0]) or server_here(case) is case.table.servers[0]:
        return ""
    return f"each of the {len(case.table.servers)} servers takes this for itself"


def _is_port(text: str) -> bool:
    number = whole_number(text)
    return number is not None and 0 < number < 65536


@check(
    "HCD318",
    "table-variable-names-nothing",
    "may-stop",
    remedy="copy the table to this path on all hosts (`hccl-tools distribute TABLE --write`), or unset the variable",
    source="RANK_TABLE_FILE; torch_npu ignores a path without a file in silence",
    example=Example("observed", "named_tables", '{"RANK_TABLE_FILE": "absent"}'),
)
def table_variable_names_nothing(case: Case) -> Iterator[Finding]:
    """Is there a table at the path of RANK_TABLE_FILE and the like?"""
    by_path: dict[tuple[str, str], list[str]] = {}
    for name in TABLE_VARIABLES:
        state = case.seen.named_tables.get(name, "")
        if state in _STATES:
            by_path.setdefault((case.environ.get(name, ""), state), []).append(name)
    for (path, state), names in by_path.items():
        yield Finding(f"{' and '.join(names)}={path}: {_STATES[state]}")


@check(
    "HCD322",
    "table-variable-names-another",
    "may-stop",
    remedy="unset the variable in the profile of the shell, or set it to the table of this job; `launch` sets it itself",
    source="RANK_TABLE_FILE; HCCL compares the CRC of the table of all ranks",
)
def table_variable_names_another(case: Case) -> Iterator[Finding]:
    """Has the table at the path of RANK_TABLE_FILE and the like the content of the table of this job?

    Variables that name different tables are a finding of their own (HCD308).
    """
    by_path: dict[str, list[str]] = {}
    for name, own in case.seen.table_hashes.items():
        if case.seen.table_sha256 and own != case.seen.table_sha256:
            by_path.setdefault(case.environ.get(name, ""), []).append(name)
    for path, names in by_path.items() if len(by_path) < 2 else ():
        yield Finding(f"{' and '.join(names)}={path}: this is another table than {case.table_path}")


@check(
    "HCD319",
    "visible-devices",
    "may-stop",
    remedy="list the logical ids of all devices that the job uses here, or unset ASCEND_RT_VISIBLE_DEVICES",
    source="CANN: ASCEND_RT_VISIBLE_DEVICES has logical ids of this host or container; it drops others in silence",
    example=Example("env", visible.LOGICAL_VARIABLE, "0,9"),
    of_npus=True,
)
def visible_devices(case: Case) -> Iterator[Finding]:
    """Does ASCEND_RT_VISIBLE_DEVICES list devices that exist, and those of the table?

    With `--target mindspore`, HCD313 compares it with the table.
    """
    try:
        listed = visible.logical(case.environ)
    except DiscoveryError as error:
        yield Finding(error.message, remedy=error.hint)
        return
    nodes = case.seen.nodes
    if listed is None or not nodes:
        return
    text = f"{visible.LOGICAL_VARIABLE}={case.environ[visible.LOGICAL_VARIABLE]}"
    if absent := [number for number in listed if number >= len(nodes)]:
        yield Finding(
            f"{text}: this host has {count(len(nodes), 'device')}, with the logical ids 0 to {len(nodes) - 1}, and no "
            f"logical {devices(absent)}; CANN ignores {'it' if len(absent) == 1 else 'them'} in silence"
        )
        return
    seen = {nodes[number] for number in listed if number < len(nodes)}
    hidden = tuple(device for device in case.devices if device in nodes and device not in seen)
    if hidden and case.target != "mindspore":
        yield Finding(f"{text} hides {devices(hidden)}, which the table has here", hidden)


@check(
    "HCD320",
    "rank-in-variable",
    "may-stop",
    remedy="unset the variable in the profile of the shell: each rank gets its own from the launcher",
    source="MindSpore and torch read RANK_ID, RANK_SIZE, RANK and WORLD_SIZE",
)
def rank_in_variable(case: Case) -> Iterator[Finding]:
    """Do RANK_ID, RANK_SIZE, RANK and WORLD_SIZE agree with the table, if they are set?"""
    if case.table is None:
        return
    here = server_here(case)
    numbers = case.table.rank_numbers
    own = sorted(number for row in here.rows if (number := numbers[row]) is not None) if here else []
    for name in _SIZE:
        if (text := case.environ.get(name)) and whole_number(text) != case.ranks:
            yield Finding(f"{name}={text}, but the table has {count(case.ranks, 'rank')}")
    for name in _RANK:
        text = case.environ.get(name)
        if not text:
            continue
        number = whole_number(text)
        if number is None or number >= case.ranks:
            yield Finding(f"{name}={text}, but the table has the ranks 0 to {case.ranks - 1}")
        elif own and number not in own:
            yield Finding(
                f"{name}={text}, but the table has {'rank' if len(own) == 1 else 'ranks'} {fold(own)} here"
            )


@check(
    "HCD323",
    "white-list",
    "stops",
    remedy="copy the white list with the addresses of all hosts to this path on each host, or unset HCCL_WHITELIST_DISABLE",
    source="HCCL guide: HCCL_WHITELIST_FILE has host_ip; EI0001",
    of_npus=True,
)
def white_list_refuses(case: Case) -> Iterator[Finding]:
    """If HCCL's white list is on: is its file there, with the hosts of the table?"""
    if case.environ.get(observing.SWITCH_VARIABLE) != "0":
        return
    path, text = case.environ.get(observing.FILE_VARIABLE, ""), f"{observing.SWITCH_VARIABLE}=0"
    if not path:
        yield Finding(f"{text}, but {observing.FILE_VARIABLE} is not set")
    elif case.seen.white_list in _STATES_OF_WHITE_LIST:
        yield Finding(
            f"{text}, and {observing.FILE_VARIABLE}={path}: {_STATES_OF_WHITE_LIST[case.seen.white_list]}"
        )
    elif case.seen.white_list == "file" and case.has_several_servers and case.table is not None:
        listed = {same(one) for one in case.seen.white_listed}
        hosts = dict.fromkeys(one.address for one in case.table.servers)
        lacking = [one for one in hosts if packed(one) is not None and same(one) not in listed]
        if lacking:
            yield Finding(
                f"{path} ({observing.FILE_VARIABLE}) does not list {and_more(lacking, _MOST_NAMED)}"
            )
