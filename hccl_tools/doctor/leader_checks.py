"""Checks that compare how the hosts find each other: interfaces of variables, and the leader of the job."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.doctor.cross_host_checks import differences
from hccl_tools.doctor.registry import Consequence, Finding, check
from hccl_tools.host import hccl_variables
from hccl_tools.host.naming import LEADERS, PORTS
from hccl_tools.notation import host_list
from hccl_tools.table.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.doctor.check_input import Case

    Cases = Mapping[str, Case]


@check(
    "HCD526",
    "interface-with-one-address-everywhere",
    "stops",
    remedy="set the variable to the interface with the address of the host in the table: `ip -br address`",
    source="HCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME; docker0 has the address 172.17.0.1 on every host",
    between=True,
)
def interface_with_one_address_everywhere(cases: Cases) -> Iterator[Finding]:
    """Has the interface that a variable chooses another address on each host?

    With one address on several hosts, as of docker0, each host connects to itself.
    """
    for name in (hccl_variables.INTERFACE, *hccl_variables.INTERFACES):
        hosts_of: dict[tuple[str, str], list[str]] = {}
        for host, case in cases.items():
            address = case.seen.interface_addresses.get(name, "")
            if address and not is_loopback(address):
                hosts_of.setdefault((case.environ.get(name, ""), address), []).append(host)
        consequence: Consequence | None = None if name == hccl_variables.INTERFACE else "may-stop"
        for (text, address), hosts in hosts_of.items():
            if len(hosts) > 1:
                yield Finding(
                    f"{name}={text} chooses an interface with the same address, {address}, on {len(hosts)} hosts: "
                    "no host reaches another there",
                    hosts=tuple(hosts),
                    consequence=consequence,
                )


@check(
    "HCD527",
    "leaders-differ",
    "may-stop",
    remedy="set the variable to one address of the first host of the job on all hosts",
    source="torch, MindSpore and MindIE connect to this host before anything else",
    between=True,
    explains=("HCD317",),
)
def leaders_differ(cases: Cases) -> Iterator[Finding]:
    """Do MASTER_ADDR and the like name the same host, at the same port, on all hosts?

    Two names of one address are equal. A host without the variable is not compared.
    """
    for name in LEADERS:
        stated = {host: case.environ[name] for host, case in cases.items() if case.environ.get(name)}
        if len(set(stated.values())) > 1:
            yield from _other_hosts(name, stated, cases)
        elif stated:
            yield from _other_addresses(name, stated, cases)
    for port in dict.fromkeys(PORTS.values()):
        values = {
            host: f"{port}={case.environ[port]}" for host, case in cases.items() if case.environ.get(port)
        }
        yield from differences(values, "the port of the job's first host differs")


def _other_hosts(name: str, stated: Mapping[str, str], cases: Cases) -> Iterator[Finding]:
    """Yield the hosts whose variable names another host."""
    addresses = [{*cases[host].seen.leaders.get(name, ()), text} for host, text in stated.items()]
    if set.intersection(*addresses):
        return
    if all(_is_own(name, text, cases[host]) for host, text in stated.items()):
        yield Finding(f"{name} is the host's own address on each of {len(stated)} hosts", hosts=tuple(stated))
        return
    yield from differences(
        {host: f"{name}={text}" for host, text in stated.items()}, "the leader of the job differs"
    )


def _other_addresses(name: str, stated: Mapping[str, str], cases: Cases) -> Iterator[Finding]:
    """Yield the hosts on which the same name has another address; the host that it names may have others."""
    known = {
        host: addresses
        for host, text in stated.items()
        if (addresses := cases[host].seen.leaders.get(name, ())) and not _is_own(name, text, cases[host])
    }
    usual = Counter(addresses[0] for addresses in known.values()).most_common(1)
    own = {
        address
        for host, text in stated.items()
        if _is_own(name, text, cases[host])
        for address in (host, *cases[host].seen.local_addresses)
    }
    for host, addresses in known.items():
        if own and not own.intersection(addresses):
            right = min(own.intersection(*known.values()) or own)
        elif own or usual[0][0] in addresses:
            continue
        else:
            right = usual[0][0]
        # The value comes from another host: a text that is not a host name could end the quotes of a command.
        shown = "this name" if host_list.why_not_a_host(stated[host], ipv6=True) else stated[host]
        yield Finding(
            f"{name}={stated[host]}: this name has the address {addresses[0]} here, not {right}",
            hosts=(host,),
            remedy=f"correct the line of {shown} in /etc/hosts, or the name server of this host",
        )


def _is_own(name: str, text: str, case: Case) -> bool:
    """Return whether a host is the one that a variable names there."""
    return text in {*case.seen.names, *case.seen.local_addresses, *(case.seen.own_addresses or ())} or any(
        address in case.seen.local_addresses for address in case.seen.leaders.get(name, ())
    )


@check(
    "HCD528",
    "chips-differ",
    "may-stop",
    remedy="leave the other hosts out of the job, or use programs and sizes that fit each of its chips",
    source="npu-smi info, column Name; chips of one product have unequal memory, and operators are compiled for one",
    between=True,
    of_npus=True,
)
def chips_differ(cases: Cases) -> Iterator[Finding]:
    """Do all hosts of one product have the same chips?"""
    names = {host: {one.name for one in case.seen.npus if one.name} for host, case in cases.items()}
    if len({case.seen.product for case in cases.values() if case.seen.product}) < 2:
        yield from differences(
            {host: ", ".join(sorted(found)) for host, found in names.items() if found}, "the chip differs"
        )
