"""Checks that compare hosts: they read the cases of all hosts by name."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.doctor import ping_results
from hccl_tools.doctor.findings import HostFinding, host_finding
from hccl_tools.doctor.network_checks import set_tls
from hccl_tools.doctor.registry import Consequence, Finding, all_checks, check
from hccl_tools.notation.host_list import fold
from hccl_tools.notation.phrases import time_span
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.doctor.check_input import Case

    Cases = Mapping[str, Case]

#: The check that every host answers.
NO_ANSWER = "HCD501"
#: Seconds; hosts are not observed at the same moment.
_CLOCK_TOLERANCE = 120.0
#: The variables of HCCL that may differ between hosts.
_OWN = frozenset({"HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "HCCL_LOGIC_SUPERPOD_ID"})
_FAMILIES = {4: "IPv4", 16: "IPv6"}
#: In place of a summary that a host was asked for and has not sent.
_NOTHING = "no answer"


class Silent(NamedTuple):
    """A host that did not answer, why, and what to do."""

    host: str
    reason: str
    remedy: str | None = None


def silence(one: Silent) -> HostFinding:
    """Return the finding on a host that did not answer."""
    return host_finding(all_checks()[NO_ANSWER], Finding(one.reason, remedy=one.remedy), one.host)


@check(
    NO_ANSWER,
    "host-did-not-answer",
    "stops",
    remedy="check that the host is up and that `ssh HOST true` works without a question",
    source="the way to the hosts: srun, mpirun, ssh or --via",
    between=True,
)
def host_did_not_answer(_cases: Cases) -> Iterator[Finding]:
    """Does every host answer?"""
    yield from ()  # `silence` makes these findings: such a host has no case


def differences(
    values: Mapping[str, str], what: str, consequence: Consequence | None = None
) -> Iterator[Finding]:
    """Yield one finding for each value that fewer hosts have than the most frequent one."""
    counted = Counter(values.values()).most_common()
    usual = fold(host for host, value in values.items() if counted and value == counted[0][0])
    for value, _number in counted[1:]:
        hosts = tuple(host for host, own in values.items() if own == value)
        message = f"{what}: {value}, but {counted[0][0]} on {usual}"
        yield Finding(message, hosts=hosts, consequence=consequence)


@check(
    "HCD502",
    "products-differ",
    "stops",
    remedy="leave the other machines out of the job: HCCL needs one kind of machine",
    source="HCCL rank table guides: one product per table",
    between=True,
    explains=("HCD002", "HCD107"),
    of_npus=True,
)
def products_differ(cases: Cases) -> Iterator[Finding]:
    """Are all hosts the same product?"""
    yield from differences(
        {host: case.seen.product for host, case in cases.items() if case.seen.product}, "the product differs"
    )


@check(
    "HCD503",
    "versions-differ",
    "may-stop",
    remedy="install the same versions on all hosts",
    source="HCCL compares the CANN versions of the ranks; drivers of one release are tested together",
    between=True,
)
def versions_differ(cases: Cases) -> Iterator[Finding]:
    """Do all hosts have the same driver, firmware, CANN and Python?"""
    for name in ("driver", "firmware"):
        found: dict[str, str] = {}
        for host, case in cases.items():
            versions = {version for one in case.seen.npus if (version := getattr(one, name)) is not None}
            if len(versions) == 1:
                found[host] = versions.pop()
        yield from differences(found, f"the {name} of the NPUs differs")
    yield from _installed_drivers(cases)
    yield from _without_cann(cases)
    levels: tuple[tuple[str, Consequence | None], ...] = (("CANN", None), ("python", "note"))
    for name, consequence in levels:
        known = {host: case.seen.versions[name] for host, case in cases.items() if name in case.seen.versions}
        yield from differences(known, f"the version of {name} differs", consequence)


def _without_cann(cases: Cases) -> Iterator[Finding]:
    """Yield the hosts on which CANN is not found, if it is on most of them."""
    having = [host for host, case in cases.items() if case.cann]
    without = tuple(host for host in cases if host not in having)
    if without and len(having) > len(without):
        yield Finding(
            f"CANN is not found here, as it is on {fold(having)}: neither in ASCEND_HOME_PATH nor in its usual folders",
            hosts=without,
            remedy="install CANN of the same version as on the other hosts, or source its `set_env.sh`",
        )


def _installed_drivers(cases: Cases) -> Iterator[Finding]:
    """Yield the drivers that differ in version.info, on hosts where npu-smi does not show it."""
    running = {
        host: versions.pop()
        for host, case in cases.items()
        if len(versions := {one.driver for one in case.seen.npus if one.driver is not None}) == 1
    }
    usual = next(iter(Counter(running.values()).most_common(1)), ("", 0))[0]
    installed = {
        host: case.seen.versions["driver"]
        for host, case in cases.items()
        if "driver" in case.seen.versions and running.get(host, usual) == usual
    }
    yield from differences(installed, "the version of the installed driver (version.info) differs")


@check(
    "HCD504",
    "tls-differs-between-hosts",
    "stops",
    remedy="set one value on all devices of the job: `hccn_tool -i N -tls -s enable 0` (or 1)",
    source="HCCL requires equal TLS switches on all devices (EI0016)",
    between=True,
    of_npus=True,
)
def tls_differs_between_hosts(cases: Cases) -> Iterator[Finding]:
    """Is the TLS switch equal on all hosts?"""
    found = {}
    for host, case in cases.items():
        values = {one.tls for one in case.seen.devices if one.tls is not None}
        if len(values) == 1:  # differences on one host are a finding of that host
            found[host] = "on" if values.pop() else "off"
    for one in differences(found, "the TLS switch of the devices differs"):
        value = 0 if found[one.hosts[0]] == "on" else 1  # that of the others
        ids = {tuple(device.device for device in cases[host].seen.devices) for host in one.hosts}
        same = ids.pop() if len(ids) == 1 else ()
        yield one._replace(commands=set_tls(same, value))


@check(
    "HCD505",
    "address-families-differ",
    "stops",
    remedy="give all devices IPv4 addresses, or all IPv6 addresses",
    source="HCCL connects devices of one address family",
    between=True,
    of_npus=True,
)
def address_families_differ(cases: Cases) -> Iterator[Finding]:
    """Do all devices have addresses of one family?"""
    found = {}
    for host, case in cases.items():
        raw = {len(known) for one in case.seen.devices for ip in one.ips if (known := packed(ip)) is not None}
        if raw and all(length in _FAMILIES for length in raw):
            found[host] = " and ".join(_FAMILIES[length] for length in sorted(raw))
    yield from differences(found, "the address family of the devices differs")


@check(
    "HCD506",
    "clock-differs",
    "may-stop",
    remedy="synchronise the clocks: `chronyc makestep`, or `timedatectl set-ntp true`",
    commands=("chronyc makestep",),
    source="logs of different hosts are ordered by time; certificates are valid for a time",
    between=True,
)
def clock_differs(cases: Cases) -> Iterator[Finding]:
    """Do the clocks of all hosts agree within two minutes?"""
    clocks = {host: case.seen.clock for host, case in cases.items() if case.seen.clock}
    if len(clocks) < 2:
        return
    usual = sorted(clocks.values())[(len(clocks) - 1) // 2]
    for host, clock in clocks.items():
        if abs(clock - usual) > _CLOCK_TOLERANCE:
            way = "ahead of" if clock > usual else "behind"
            yield Finding(f"the clock is {time_span(abs(clock - usual))} {way} the others", hosts=(host,))


@check(
    "HCD507",
    "table-differs-between-hosts",
    "stops",
    remedy="copy one table to all hosts: `hccl-tools distribute TABLE --write`",
    source="HCCL compares the CRC of the table of all ranks",
    between=True,
)
def table_differs_between_hosts(cases: Cases) -> Iterator[Finding]:
    """Has the table at its path the same content on all hosts that have one?

    HCCL compares the table without its layout. A host without a table is named if most hosts have one; `launch` sends the table along, other launchers do not.
    """
    found = {host: case.seen.table_sha256[:12] for host, case in cases.items() if case.seen.table_sha256}
    yield from differences(found, "the table differs (SHA-256 of its content)")
    without = tuple(host for host, case in cases.items() if case.table_path and host not in found)
    if without and len(found) > len(without):
        path = next(case.table_path for case in cases.values())
        yield Finding(
            f"there is no table at {os.path.abspath(path)}, which {fold(found)} have",
            hosts=without,
            consequence="may-stop",
        )


@check(
    "HCD508",
    "variables-differ-between-hosts",
    "may-stop",
    remedy="set the same value on all hosts, or pass it with `launch --env`",
    source="HCCL's variables must be equal on all ranks; those of a login shell count only if the job has them",
    between=True,
)
def variables_differ_between_hosts(cases: Cases) -> Iterator[Finding]:
    """Do all hosts have the same values of HCCL's variables?"""
    names = {name for case in cases.values() for name in case.environ if name.startswith("HCCL_")}
    for name in sorted(names - _OWN):
        if not name.startswith("HCCL_TOOLS_"):
            values = {host: f"{name}={case.environ.get(name, '(unset)')}" for host, case in cases.items()}
            yield from differences(values, "a variable differs")


@check(
    "HCD509",
    "code-differs-between-hosts",
    "stops",
    remedy="copy one version of the program to all hosts",
    source="ranks with different programs call different collectives, which hang or fail (EI0005)",
    between=True,
)
def code_differs_between_hosts(cases: Cases) -> Iterator[Finding]:
    """Is each file or folder of `--code` the same on all hosts?"""
    for path in dict.fromkeys(path for case in cases.values() for path in case.seen.code):
        yield from differences(
            {host: case.seen.code.get(path, _NOTHING) for host, case in cases.items()}, path
        )


@check(
    "HCD510",
    "data-differs-between-hosts",
    "may-stop",
    remedy="copy the data to all hosts, or mount one shared folder",
    source="ranks with unequal data sets have unequal numbers of steps, and the last ones hang",
    between=True,
)
def data_differs_between_hosts(cases: Cases) -> Iterator[Finding]:
    """Does each folder of `--data` have the same files on all hosts, by number, size and samples?"""
    for path in dict.fromkeys(path for case in cases.values() for path in case.seen.data):
        yield from differences(
            {host: case.seen.data.get(path, _NOTHING) for host, case in cases.items()}, path
        )


@check(
    "HCD511",
    "address-on-several-hosts",
    "stops",
    remedy="give each server of the table its own address, and name each host once",
    source="HCCL connects to a server by its address in the table",
    between=True,
    explains=("HCD512", "HCD524", "HCD525"),
)
def address_on_several_hosts(cases: Cases) -> Iterator[Finding]:
    """Does each address and name of the table belong to one host?"""
    addresses = {address for case in cases.values() for address in case.seen.local_addresses}
    table = ping_results.table_of(cases)
    servers = [] if table is None else table.servers
    names = {name for server in servers for name in ping_results.stated_names(server)}
    for name, hosts in ping_results.claimants(cases).items():
        if len(hosts) > 1 and (name in addresses or name in names):
            what = "address" if name in addresses else "name"
            yield Finding(f"several hosts have the {what} {name} of the table", hosts=tuple(hosts))
