"""Tables in which everything is wrong, of about a given size: ``python -m benchmarks.broken NAME SIZE FILE``.

Each repeats one fault in as few bytes as it takes, so that a megabyte has as many findings as can be.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_DEVICES = '{"version":"1.0","status":"completed","server_list":[{"server_id":"a","device":[', "]}]}"
_SERVERS = '{"version":"1.0","status":"completed","server_list":[', "]}"
_GROUPS = '{"status":"completed","group_count":"1","group_list":[', "]}"
_LAB = '{"deploy_mode":"lab","para_plane_nic_location":"device","group_count":"1","group_list":[', "]}"
_RANKS = '{"version":"2.0","rank_count":1,"rank_list":[', "]}"
_NODES = '{"version":"1.1","status":"completed","collective_id":"c","node_list":[', "]}"
_DEVICE, _RANK = '"device_id":"0","rank_id":"0"', '"rank_id":0,"local_id":0,"device_id":0,"level_list":['
_INSTANCES = (
    _GROUPS[0] + '{"group_name":"g","device_count":"1","instance_count":"1","instance_list":[',
    "]}" + _GROUPS[1],
)
_PORTS = (
    _RANKS[0] + "{" + _RANK + '{"net_layer":0,"net_instance_id":"n","rank_addr_list":[{"addr_type":"IPV4",'
    '"addr":"1.1.1.1","ports":[',
    "]}]}]}" + _RANKS[1],
)
_IPS = _DEVICES[0] + "{" + _DEVICE + ',"device_ip":"', '"}' + _DEVICES[1]
_PODS = (
    _SERVERS[0].replace("1.0", "1.2") + '{"server_id":"a","device":[{' + _DEVICE + '}]}],"super_pod_list":[',
    _SERVERS[1],
)

_SERVICE = '{"status":"completed","server_group_list":[', "]}"
_SERVICE_DEVICES = (
    _SERVICE[0] + '{"group_id":"2","server_list":[{"server_id":"a","server_ip":"b","device":[',
    "]}]}" + _SERVICE[1],
)
_SERVICE_SERVERS = _SERVICE[0] + '{"group_id":"2","server_list":[', "]}" + _SERVICE[1]


def _address(number: int) -> str:
    addr = f"10.0.{number // 256 % 256}.{number % 256}"
    return f'{{"addr_type":"IPV4","addr":"{addr}","ports":["{number}","{number - 1}"],"plane_id":"0"}}'


#: Name -> what stands around the repeated entries, and the entry of a number.
TABLES: dict[str, tuple[tuple[str, str], Callable[[int], str]]] = {
    "empty servers": (_SERVERS, lambda _: "{}"),
    "numbers as servers": (_SERVERS, lambda _: "1"),
    "nulls as servers": (_SERVERS, lambda _: "null"),
    "empty devices": (_DEVICES, lambda _: "{}"),
    "empty groups": (_GROUPS, lambda _: "{}"),
    "empty instances": (_INSTANCES, lambda _: "{}"),
    "empty ranks": (_RANKS, lambda _: "{}"),
    "numbers as ports": (_PORTS, lambda _: "1"),
    "empty ports": (_PORTS, lambda _: '""'),
    "ranks with ports of their own": (
        _RANKS,
        lambda number: (
            f'{{"rank_id":{number},"local_id":{number % 8},"device_id":{number % 8},"level_list":'
            f'[{{"net_layer":0,"net_instance_id":"n{number // 8}","rank_addr_list":[{_address(number)}]}}]}}'
        ),
    ),
    "addresses with ports of their own": (
        (
            _RANKS[0] + "{" + _RANK + '{"net_layer":0,"net_instance_id":"n","rank_addr_list":[',
            "]}]}" + _RANKS[1],
        ),
        _address,
    ),
    "empty lab groups": (_LAB, lambda _: "{}"),
    "empty nodes": (_NODES, lambda _: "{}"),
    "super pods of one name": (_PODS, lambda _: '{"super_pod_id":"0","server_list":[{"server_id":"a"}]}'),
    "device_ip of commas": (_IPS, lambda _: ""),
    "equal addresses": (_IPS, lambda _: "1.1.1.1"),
    "addresses that are none": (_IPS, lambda number: f"{number:x}"),
    "devices that are the same": (_DEVICES, lambda _: "{" + _DEVICE + "}"),
    "devices with nothing right": (
        _DEVICES,
        lambda _: '{"device_id":"x","rank_id":"y","device_ip":5,"host_port":"z","device_port":""}',
    ),
    "ranks that are the same": (_RANKS, lambda _: "{" + _RANK + "]}"),
    "a long server_id, same devices": (
        (_DEVICES[0].replace('"a"', '"' + "s" * 300_000 + '"'), _DEVICES[1]),
        lambda _: "{" + _DEVICE + "}",
    ),
    "servers named with blanks": (
        _SERVERS,
        lambda number: f'{{"server_id":" {number}","device":[{{{_DEVICE}}}]}}',
    ),
    "groups that are the same": (
        _GROUPS,
        lambda _: (
            '{"group_name":"g","device_count":"x","instance_count":"y","instance_list":'
            '[{"pod_name":"p","server_id":"a","devices":[{"device_id":"0"}]}]}'
        ),
    ),
    "a misspelt key in each device": (
        _DEVICES,
        lambda number: f'{{{_DEVICE},"device_port{number % 100}":"1"}}',
    ),
    "a key of its own in each device": (_DEVICES, lambda number: f'{{{_DEVICE},"k{number}":1}}'),
    "misspelt keys": (
        (_DEVICES[0] + "{" + _DEVICE + "}" + _DEVICES[1][:-1] + ",", "}"),
        lambda number: f'"server_lis{number}":1',
    ),
    "equal keys": (("{", "}"), lambda _: '"":1'),
    "keys that stand twice": (("{", "}"), lambda number: f'"{number:x}":1,"{number:x}":1'),
    "keys that stand twice, deep inside": (
        ('{"k":[' * 200 + "{", "}" + "]}" * 200),
        lambda number: f'"{number:x}":1,"{number:x}":1',
    ),
    "empty service groups": (_SERVICE, lambda _: "{}"),
    "service groups that are the same": (_SERVICE, lambda _: '{"group_id":"2","server_list":[]}'),
    "empty service devices": (_SERVICE_DEVICES, lambda _: "{}"),
    "service devices that are the same": (
        _SERVICE_DEVICES,
        lambda _: '{"device_id":"0","device_ip":"x","rank_id":"0"}',
    ),
    "service servers that are the same": (
        _SERVICE_SERVERS,
        lambda _: (
            '{"server_id":"a","server_ip":"b","mgmt_port":"c","device":[{"device_id":"x","rank_id":"0"}]}'
        ),
    ),
    "members of a super pod": (
        (
            _SERVICE[0] + '{"group_id":"2","server_list":[{"server_id":"a"}],"super_pod_list":'
            '[{"super_pod_id":"0","server_list":[',
            "]}]}" + _SERVICE[1],
        ),
        lambda number: f'{{"server_id":"{number}"}}',
    ),
    "numbers, cut off": (("[", ""), lambda _: "1"),
}


def text(name: str, size: int) -> str:
    """Return a table of ``TABLES`` of about so many bytes."""
    (head, tail), entry = TABLES[name]
    entries: list[str] = []
    length = len(head) + len(tail)
    while length < size or not entries:
        entries.append(entry(len(entries)))
        length += len(entries[-1]) + 1
    return head + ",".join(entries) + tail


def main() -> None:
    """Write the table that the command line names: NAME SIZE FILE."""
    name, size, target = sys.argv[1:]
    Path(target).write_text(text(name, int(size)), encoding="utf-8")


if __name__ == "__main__":
    main()
