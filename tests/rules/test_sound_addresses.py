"""Tables with addresses of their users' own choice get no advice on the order of values."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.commands import CommandLine

    #: Returns an address for the host with a number, its network, and a device.
    Scheme = Callable[[Random, int, int, int], str]

#: The rules on the order of values.
RULES = ("HCC631", "HCC632", "HCC633", "HCC644", "HCC645", "HCC649")
SCHEMES: dict[str, Scheme] = {
    "by chance": lambda random, _host, _network, _device: ".".join(
        ["10", *(str(random.randrange(2, 250)) for _ in range(3))]
    ),
    "a network of each host": lambda random, _host, network, _device: (
        f"172.16.{network}.{random.randrange(2, 250)}"
    ),
    "in a row in each host": lambda _random, _host, network, device: f"172.16.{network}.{20 + device}",
    "networks of devices": lambda random, _host, _network, device: (
        f"192.{1 + device % 4}.{random.randrange(2, 250)}.{random.randrange(2, 250)}"
    ),
    "numbers of hosts": lambda _random, host, _network, device: f"10.{100 + device}.0.{host}",
    "IPv6": lambda random, _host, network, device: (
        f"fd00::{network:x}:{random.randrange(1 << 16):x}:{device:x}"
    ),
}
#: A group_list with names of several lengths has ranks in another order than the file.
_BY_TEXT = "HCCL numbers the ranks of a group_list by server_id in the order of text"
#: How hosts are named: by chance, in the order of their numbers, by names with or without a number.
NAMES: dict[str, Callable[[int], str]] = {
    "addresses": lambda host: f"10.19.1.{host}",
    "names with numbers": lambda host: f"node-{host:03}",
    "names": lambda host: f"host-{chr(97 + host % 26)}{chr(97 + host // 26)}-x",
}


def irregular(table_format: str, scheme: Scheme, name: Callable[[int], str], random: Random) -> Any:
    """Return a table with unique addresses of a scheme, whose hosts and networks have no order in common."""
    servers = random.choice([1, 2, 2, 3, 4, 5, 8])
    value = table(table_format, servers, random.choice([8, 8, 16 if table_format == "1.2" else 8, 4, 2, 1]))
    entries = (
        value["group_list"][0]["instance_list"] if table_format == "group_list" else value["server_list"]
    )
    hosts, networks = random.sample(range(2, 250), servers), random.sample(range(2, 250), servers)
    used = set[str]()
    for entry, host, network in zip(entries, hosts, networks, strict=True):
        entry["server_id"] = name(host)
        for device in entry.get("device") or entry["devices"]:
            number = int(device["device_id"])
            while (text := scheme(random, host, network, number)) in used:
                pass
            used.add(text)
            device["device_ip"] = text
            if table_format == "1.2":
                device["super_device_id"] = str(network << 22 | number // 2 << 18 | number % 2 << 16 | number)
    if table_format == "1.2":
        value["super_pod_list"][0]["server_list"] = [{"server_id": entry["server_id"]} for entry in entries]
    return value


@pytest.mark.parametrize("table_format", ["1.0", "1.2", "group_list"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(6))
def test_irregular_addresses_are_sound(table_format: str, scheme: str, seed: int) -> None:
    random = Random(f"{table_format} {scheme} {seed}")  # noqa: S311  (repeatable)
    for name in NAMES.values():
        value = irregular(table_format, SCHEMES[scheme], name, random)

        found = validate(value, product="a3" if table_format == "1.2" else "a2").findings

        messages = [one.message for one in found if one.rule.id in RULES]
        assert [one for one in messages if not one.startswith(_BY_TEXT)] == []


@pytest.mark.parametrize("product", ["910a", "a2", "a3", "a5"])
@pytest.mark.parametrize("servers", [1, 2, 3, 4, 9])
def test_simulated_clusters_are_sound(command_line: CommandLine, product: str, servers: int) -> None:
    done = command_line("gen", "--simulate", product, "--servers", str(servers), "-o", "t.json")
    assert done.code == 0

    value = json.loads((command_line.folder / "t.json").read_text(encoding="utf-8"))
    found = validate(value, product=product).findings

    assert [one.message for one in found if one.rule.id in RULES] == []
