"""What was seen on a host, as plain data that other hosts can send; nothing here is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.codec import decode, shown
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import packed
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.records import Count, Gigabytes, OsText, Port, Seconds


#: The networks between the devices of different servers.
ROCE, HCCS = "RoCE", "HCCS"


class PingServer(NamedTuple):
    """A server of the table: its addresses and names, its super pod or ``""``, device ids with addresses."""

    names: tuple[str, ...]
    super_pod: str
    devices: tuple[tuple[int, str], ...]


class ObservationRequest(NamedTuple):
    """What to look at on a host.

    Attributes:
        device_ids: The physical ids to query on a host without device nodes.
        addresses: The addresses of the table's servers; the host reports which are its own.
        super_pod: Whether to query the places of the devices in their super pod.
        levels: Whether to query EIDs instead of addresses, for a 2.0 table.
        ports: Ports that the job needs on this host, beside those of HCCL.
        table: The path of the table, to compare the copies of the hosts; empty for none.
        tool_timeout: Seconds for each call of a tool.
        code: Paths of programs of which the copies of the hosts are compared.
        data: Paths of data sets of which the copies of the hosts are compared.
        ping: The servers between which devices ping each other; empty for no pings.
        ping_all: Whether each device pings all devices of other servers.
        ping_over: The network of the pings: ``RoCE``, or ``HCCS`` between the servers of a super pod, where
            nothing else is looked at.
        ping_time: Seconds for the pings of one host.
        reach: The addresses of the job's hosts, to which each host connects; that of the rendezvous is first.
        start_port: The rendezvous port, 0 for none.
        cpu: Whether the job uses no NPU: no device is looked at.
        command: The user's own health check, for the shell; empty for none.
        command_time: Seconds for it.
        command_only: Whether nothing else is looked at.
    """

    device_ids: tuple[int, ...] = ()
    addresses: tuple[str, ...] = ()
    super_pod: bool = False
    levels: bool = False
    ports: tuple[int, ...] = ()
    table: str = ""
    tool_timeout: float = 10.0
    code: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    ping: tuple[PingServer, ...] = ()
    ping_all: bool = False
    ping_over: str = ROCE
    ping_time: float = 0.0
    reach: tuple[str, ...] = ()
    start_port: int = 0
    cpu: bool = False
    command: str = ""
    command_time: float = 60.0
    command_only: bool = False


class DeviceObservation(NamedTuple):
    """One device, by physical id.

    ``None`` means unknown. ``link`` is ``UP`` or ``DOWN``, ``health`` the word of ``-net_health``, ``tls``
    the number of the switch; ``gateway`` and ``netdetect`` are empty if none is set; ``vnic`` is the address
    inside the super pod, ``speed`` is in Mb/s, ``errors`` the number of faulty packets that were received,
    ``netmask`` that of the first address, empty if no IPv4 address is set, ``mtu`` in bytes, ``changed`` the
    time at which the link went down last, as the tool prints it, ``downs`` how often it went down in the last
    hour, ``expiry`` 2 if a certificate for TLS has expired, 1 if one soon will.
    ``ips``, ``configured``, ``problem`` and ``super_device_id`` are those of ``DeviceState``.
    """

    device: Count
    ips: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    problem: OsText | None = None
    super_device_id: int | None = None
    link: str | None = None
    health: str | None = None
    tls: Count | None = None
    gateway: str | None = None
    netdetect: str | None = None
    vnic: str | None = None
    speed: int | None = None
    errors: int | None = None
    netmask: str | None = None
    mtu: int | None = None
    changed: str | None = None
    downs: Count | None = None
    expiry: Count | None = None

    @property
    def is_without_address(self) -> bool:
        """Whether the tool says that the device has no address."""
        return self.netmask == "" and not self.ips

    def check(self) -> str:
        """Return what is wrong with a device that another host has sent, "" for nothing."""
        # Other hosts ping it: the tool must not take it for an option.
        is_address = not self.vnic or (packed(self.vnic) is not None and "\0" not in self.vnic)
        return "" if is_address else f"vnic: {shown(self.vnic)} is not an address"


class NpuObservation(NamedTuple):
    """One chip as ``npu-smi`` lists it; ``device`` is its physical id, if known, ``name`` its kind."""

    npu: Count
    chip: Count
    device: Count | None = None
    health: str = ""
    driver: str | None = None
    firmware: str | None = None
    compatibility: str | None = None
    name: str = ""


class DeviceProcess(NamedTuple):
    """A process on a device; ``memory`` in MB there, ``age`` in seconds, ``run`` its run directory."""

    pid: Count
    device: Count
    command: OsText
    user: str = ""
    memory: int | None = None
    age: Seconds | None = None
    run: OsText | None = None


class PingObservation(NamedTuple):
    """A ping from a device of this host to an address: packets sent and received."""

    device: Count
    address: str
    sent: Count
    received: Count
    over: str = ROCE


class BandwidthObservation(NamedTuple):
    """``all_reduce_test`` between a device of this host and the device ``peer`` of a host.

    ``link`` is that of the table, ``gigabytes`` the bandwidth in GB/s, ``verdict`` that of the program on the
    sum: ``success``, ``failed`` or ``NULL``.
    """

    device: Count
    host: str
    peer: Count
    link: str
    gigabytes: Gigabytes
    verdict: str


class PortUse(NamedTuple):
    """A port that a program listens on, with its process id and command if known, or a connection has."""

    port: Port
    listens: bool = False
    pid: Count | None = None
    command: OsText = ""


class UnreachedHost(NamedTuple):
    """A port of another host from which no answer came, and why."""

    address: str
    port: Port
    reason: OsText


class SlowHost(NamedTuple):
    """A host whose answers are late: of ``tries``, ``repeated`` came to a packet that was sent again.

    ``seconds`` is the time of the quickest answer.
    """

    address: str
    tries: Count
    repeated: Count
    seconds: Seconds


class Unknown(NamedTuple):
    """A fact that could not be determined, and why."""

    topic: str
    reason: OsText
    devices: tuple[Count, ...] = ()


class Observation(NamedTuple):
    """One host.

    Attributes:
        names: The names of the host.
        nodes: The physical ids of its device nodes.
        closed_nodes: The paths of the device nodes that this user cannot open.
        manager_nodes: The names of the other device nodes of the driver that exist.
        local_addresses: The addresses of the request that belong to this host.
        stated: The host's addresses in variables of the platform.
        problems: Other facts about the table that could not be determined, one sentence each.
        hccl_ports: HCCL's host ports that are in use at the address on which HCCL listens.
        busy_ports: The requested ports, and the device port, that are in use at any address.
        limits: Soft limits: nofile, nproc, memlock, as, fsize (bytes), cpu (s), pids (cgroup); -1 for none.
        sizes: What ``machine.sizes`` returns, by name.
        kernel: Of the kernel: ``thp``, ``governor``, ``local_ports`` (``32768-60999``), ``reserved_ports``,
            ``somaxconn``.
        versions: By component: python, hccl-tools, driver, CANN.
        variables: The variables of HCCL and of frameworks in the environment.
        files: State of paths: ``file``, ``directory``, ``absent``.
        table_sha256: The hash of the content of the table at the requested path; empty if there is none.
        table_hashes: The same of the tables in variables, by variable.
        clock: The host's time in seconds since the epoch.
        code: The summaries of the programs of the request, by path.
        data: The summaries of the data sets of the request, by path.
        pings: The answers to the pings of the request.
        bandwidths: What ``doctor --bandwidth`` measured; no host measures it when it is asked.
        own_addresses: The addresses of the host's own name; none if it has none, ``None`` if unknown.
        named_hosts: What is wrong with a host that a variable names, by variable: it has no address here, or
            gives no answer.
        tried: The number of other hosts to which this host connected.
        unreached: The ports of other hosts from which no answer came.
        slow: The other hosts whose answers are late, or had to be asked for again.
        cut: The addresses of other hosts that answer small packets, and none of the size of ``mtu``.
        nic: The interface with the address on which HCCL listens, and ``mtu`` its MTU, if known.
        time_zone: The name of the time zone, and ``utc_offset`` its seconds east of UTC.
        libraries: How programs find the driver's libraries: what ``machine.libraries`` returns.
        proxies: The names of the variables with an HTTP proxy.
        cpus: The number of CPUs that programs may use; 0 if unknown.
        super_pod: The id of the super pod in which the driver sees the devices.
        interface_addresses: The address of the interface that a variable chooses, by variable.
        leaders: The addresses here of the host that a variable names as the leader of the job, by variable.
        white_list: The state of the file of HCCL_WHITELIST_FILE: ``file``, ``directory``, ``absent``,
            ``unreadable`` or ``invalid``; empty if it is not set.
        white_listed: The addresses of hosts in this file.
        named_tables: The state of the files of variables with a table, by variable: ``file``, ``directory``,
            ``absent``, ``unreadable``.
        command_code: The exit code of the user's own health check; None if it was not asked for.
        command_said: Why it failed.
    """

    names: tuple[str, ...] = ()
    nodes: tuple[Count, ...] = ()
    closed_nodes: tuple[OsText, ...] = ()
    manager_nodes: tuple[str, ...] = ()
    product: str | None = None
    devices: tuple[DeviceObservation, ...] = ()
    npus: tuple[NpuObservation, ...] = ()
    processes: tuple[DeviceProcess, ...] = ()
    local_addresses: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    conf: OsText = "/etc/hccn.conf"
    problems: tuple[OsText, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    hccl_ports: tuple[PortUse, ...] = ()
    busy_ports: tuple[PortUse, ...] = ()
    limits: Mapping[str, int] = {}
    sizes: Mapping[str, int] = {}
    log_folder: OsText = ""
    log_writable: bool = True
    kernel: Mapping[str, str] = {}
    versions: Mapping[str, str] = {}
    variables: Mapping[OsText, OsText] = {}
    in_container: bool = False
    files: Mapping[OsText, OsText] = {}
    table_sha256: str = ""
    table_hashes: Mapping[OsText, OsText] = {}
    clock: Seconds = 0.0
    code: Mapping[OsText, OsText] = {}
    data: Mapping[OsText, OsText] = {}
    pings: tuple[PingObservation, ...] = ()
    bandwidths: tuple[BandwidthObservation, ...] = ()
    own_addresses: tuple[str, ...] | None = None
    named_hosts: Mapping[OsText, OsText] = {}
    tried: Count = 0
    unreached: tuple[UnreachedHost, ...] = ()
    slow: tuple[SlowHost, ...] = ()
    cut: tuple[str, ...] = ()
    nic: OsText = ""
    mtu: Count | None = None
    time_zone: OsText = ""
    utc_offset: int | None = None
    libraries: str = ""
    named_tables: Mapping[OsText, OsText] = {}
    proxies: tuple[str, ...] = ()
    cpus: Count = 0
    super_pod: str = ""
    interface_addresses: Mapping[str, str] = {}
    leaders: Mapping[str, tuple[OsText, ...]] = {}
    white_list: str = ""
    white_listed: tuple[OsText, ...] = ()
    command_code: int | None = None
    command_said: OsText = ""

    def check(self) -> str:
        """Return what is wrong with an observation that another host has sent, "" for nothing."""
        if self.bandwidths:
            return "bandwidths: no host measures them when it is asked"
        for name, most in _MOST.items():
            if len(getattr(self, name)) > most:
                return f"{name}: there are {len(getattr(self, name))}, and a host has at most {most}"
        known = self.product is None or self.product in PRODUCTS
        return "" if known else f"product: {shown(self.product)} is not known"

    def with_pings(self, later: Observation) -> Observation:
        """Return this observation with the pings of a later one of the same host."""
        return self._replace(pings=self.pings + later.pings, unknown=self.unknown + later.unknown)

    def as_json(self) -> dict[str, Any]:
        """Return the observation, ready for JSON."""
        fields = self._asdict()
        for name in _RECORDS:
            fields[name] = [one._asdict() for one in fields[name]]
        return {**fields, **{name: dict(fields[name]) for name in _MAPPINGS}}


#: The most that a host has of what is compared with each other.
_MOST = {
    **dict.fromkeys(("names", "manager_nodes", "stated", "kernel", "versions", "limits", "sizes"), 64),
    **dict.fromkeys(("nodes", "closed_nodes", "devices", "npus", "local_addresses"), 256),
    **dict.fromkeys(("processes", "interfaces", "hccl_ports", "busy_ports", "problems", "unknown"), 4096),
}
_RECORDS = {
    "devices": DeviceObservation,
    "npus": NpuObservation,
    "processes": DeviceProcess,
    "hccl_ports": PortUse,
    "busy_ports": PortUse,
    "unknown": Unknown,
    "unreached": UnreachedHost,
    "slow": SlowHost,
    "pings": PingObservation,
    "bandwidths": BandwidthObservation,
}
_MAPPINGS = (
    "limits",
    "sizes",
    "kernel",
    "versions",
    "variables",
    "files",
    "code",
    "data",
    "named_hosts",
    "named_tables",
    "table_hashes",
    "interface_addresses",
    "leaders",
)


def from_json(fields: Any) -> Observation:
    """Return the observation of :meth:`Observation.as_json`.

    Raises:
        DecodeError: The fields are not those of an observation.
    """
    return decode(Observation, fields)
