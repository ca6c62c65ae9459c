"""Runs the examples in the rules' docstrings.

``Base:`` names the table that is changed: format, servers x devices, product, ``pods N``, ``env A=B``. An
example is a list of steps: ``/pointer = JSON``, ``remove /pointer``, ``swap /a /b``, ``base 2x4``,
``product NAME``, ``env A=B``, ``text ...`` (the file's text), ``file NAME``, ``size N`` (bytes),
``levels N`` (of lists inside each other), or ``table`` (unchanged).

``host`` is that of a right table; ``host elsewhere``: one with other devices; ``host is ADDRESS``:
its only own address; ``host /devices/N = "ADDRESS"``: what a device really has (nothing for an empty text);
``host remove /devices/N``: it is not there; ``host conf N = "ADDRESS"``: what hccn.conf says; and
``host sdid N = ID``: its driver's super_device_id.

The bases ``endpoints`` and ``rootinfo`` are files of a host with eight devices. ``beside N /pointer = JSON``
changes the endpoint file of another device, ``topology /pointer = JSON`` the topology file, and
``directory`` makes a directory in place of the file, ``link`` a symbolic link; ``mode N`` sets permissions.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hccl_tools.formats.file_kinds import ROOT_INFO_NAME
from hccl_tools.host.facts import DeviceState, HostState
from hccl_tools.table.products import PRODUCTS, assume
from tests.support import host_files
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.rules.registry import Rule
    from hccl_tools.table.model import RankTable

_FORMATS = ("1.0", "1.2", "2.0", "group_list", "server_group_list", "lab")
_SIZES = {
    "1.0": (1, 2),
    "1.2": (1, 2),
    "2.0": (1, 2),
    "group_list": (1, 8),
    "lab": (1, 8),
    "server_group_list": (1, 2),
}


@dataclass
class Example:
    """What to validate, and for what."""

    value: Any
    product: str
    env: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    name: str = "table.json"
    changes_of_host: list[str] = field(default_factory=list)
    #: Further files in the folder, by name.
    beside: dict[str, Any] = field(default_factory=dict)
    is_directory: bool = False
    #: Whether the example is compared with a host.
    is_local: bool = False
    #: The permissions of the file, and whether a link has its name.
    mode: int | None = None
    is_link: bool = False

    def host(self, table: RankTable) -> HostState:
        """Return the host of the example: the table's first server, with the changes that it names."""
        if self.beside:
            return self._host_of_files()
        numbers, sdids = table.device_numbers, table.column("super_device_id")
        devices = {
            numbers[row] or 0: DeviceState(
                (table.device_ips[row],), (table.device_ips[row],), super_device_id=int(sdids[row] or 0)
            )
            for row in table.servers[0].rows
        }
        own = {table.servers[0].server_id}
        for change in self.changes_of_host:
            _change_host(change, devices, own)
        return HostState(tuple(sorted(devices)), devices, frozenset({"node"}), own.__contains__)

    def _host_of_files(self) -> HostState:
        """Return the host of an example that changes a root info or an endpoint file."""
        devices = {
            rank["device_id"]: DeviceState(
                tuple(one["addr"] for level in rank["level_list"] for one in level["rank_addr_list"])
            )
            for rank in host_files.root_info()["rank_list"]
        }
        for change in self.changes_of_host:
            _change_host(change, devices, set())
        return HostState(tuple(sorted(devices)), devices, frozenset(), lambda _ip: False)

    def write(self, folder: Path) -> str:
        """Write the example as a file and return its name."""
        file = folder / self.name
        for name, value in self.beside.items():
            (folder / name).write_text(json.dumps(value))
        if self.is_directory:
            file.mkdir()
            return str(file)
        if isinstance(self.value, dict) and self.value.get("topo_file_path") == host_files.TOPOLOGY_PLACE:
            self.value["topo_file_path"] = str(folder / "topo.json")
        text = self.text if self.text is not None else json.dumps(self.value)
        if self.is_link:
            file.symlink_to("target.json")
        file.write_text(text)
        if self.mode is not None:
            file.chmod(self.mode)
        return str(file)


def _change_host(change: str, devices: dict[int, DeviceState], own: set[str]) -> None:
    if change == "elsewhere":
        own.clear()
        for device_id, state in devices.items():
            devices[device_id] = state._replace(ips=(f"10.9.9.{device_id}",))
        return
    verb, _, rest = change.partition(" ")
    if verb == "is":
        own.clear()
        own.add(rest)
        return
    match = re.search(r"(?:/devices/|conf |sdid )(\d+)(?: = (.*))?$", change)
    assert match, change
    device_id, value = int(match[1]), json.loads(match[2] or '""')
    if verb == "remove":
        del devices[device_id]
    elif verb == "sdid":
        devices[device_id] = devices[device_id]._replace(super_device_id=value)
    elif verb == "conf":
        devices[device_id] = devices[device_id]._replace(configured=(value,))
    else:
        devices[device_id] = devices[device_id]._replace(ips=(value,) if value else ())


def example(rule: Rule, which: str) -> Example:
    """Return the example of a docstring, ``Example`` or ``Instead``."""
    doc = rule.check.__doc__ or ""
    found = _base(rule, _line(doc, "Base") or "")
    steps = _line(doc, which)
    assert steps, f"{rule.facts.id} has no {which}:"
    if steps.startswith("text "):
        found.text = steps[5:]
        return found
    for step in steps.split("; "):
        _apply(found, step.strip(), rule)
    return found


def _line(doc: str, key: str) -> str | None:
    match = re.search(rf"^ *{key}: (.*)$", doc, re.MULTILINE)
    return match[1].strip() if match else None


def _base(rule: Rule, text: str) -> Example:
    words, _, variables = text.partition("env ")
    if words in ("endpoints", "rootinfo"):
        return _base_of_host_files(words)
    table_format = next((word for word in words.split() if word in _FORMATS), (rule.formats or ("1.0",))[0])
    product = next((word for word in words.split() if word in PRODUCTS), None)
    size = re.search(r"(\d+)x(\d+)", words)
    pods = re.search(r"pods (\d+)", words)
    servers, devices = (int(size[1]), int(size[2])) if size else _SIZES[table_format]
    value = table(table_format, servers, devices, int(pods[1]) if pods else 1)
    default = assume(table_format if table_format in _FORMATS[:-2] else None)[0].name
    env = dict(pair.split("=", 1) for pair in variables.split())
    return Example(value, product or default, env)


def _base_of_host_files(kind: str) -> Example:
    if kind == "rootinfo":
        beside = {"topo.json": host_files.topology()}
        return Example(host_files.root_info(), "a5", name=ROOT_INFO_NAME, beside=beside)
    others = {f"ub_endpoint_npu_{n}.json": host_files.endpoint_file(n) for n in range(1, host_files.DEVICES)}
    beside = {**others, ROOT_INFO_NAME: host_files.root_info()}
    return Example(host_files.endpoint_file(), "a5", name="ub_endpoint_npu_0.json", beside=beside)


def _apply(found: Example, step: str, rule: Rule) -> None:
    verb, _, rest = step.partition(" ")
    if verb in ("beside", "topology"):
        name = "topo.json"
        if verb == "beside":
            number, _, rest = rest.partition(" ")
            name = f"ub_endpoint_npu_{number}.json"
        _set(found.beside[name], rest)
    elif verb == "mode":
        found.mode = int(rest, 8)
    elif verb == "link":
        found.is_link = True
    elif verb == "directory":
        found.is_directory = True
    elif verb == "host":
        found.is_local = True
        found.changes_of_host += [rest] if rest else []
    elif verb == "product":
        found.product = rest
    elif verb == "env":
        name, _, value = rest.partition("=")
        found.env[name] = value
    elif verb == "file":
        found.name = rest
    elif verb == "marked":
        found.text = "\ufeff" + json.dumps(found.value)
    elif verb == "size":
        found.text = _of_size(found.value, int(rest))
    elif verb == "levels":
        inside = int(rest) - 1
        found.text = json.dumps({**found.value, "x": "@"}).replace('"@"', "[" * inside + "]" * inside)
    elif verb == "base":
        found.value = _base(rule, rest).value
    elif verb == "remove":
        holder, key = _holder(found.value, rest)
        if isinstance(holder, list) or key in holder:
            del holder[key]
    elif verb == "swap":
        (one, a), (other, b) = (_holder(found.value, pointer) for pointer in rest.split())
        one[a], other[b] = other[b], one[a]
    elif verb != "table":
        _set(found.value, step)


def _set(where: Any, step: str) -> None:
    pointer, value = step.split(" = ", 1)
    holder, key = _holder(where, pointer)
    holder[key] = _json(value)


def _json(text: str) -> Any:
    if text.startswith("repeat "):
        _, letter, count = text.split()
        return json.loads(letter) * int(count)
    return json.loads(text)


def _holder(value: Any, pointer: str) -> tuple[Any, Any]:
    keys: list[Any] = [int(key) if key.isdecimal() else key for key in pointer.split("/")[1:]]
    for key in keys[:-1]:
        value = value[key]
    return value, keys[-1]


def _of_size(value: Any, size: int) -> str:
    empty = json.dumps({**value, "x": ""}, separators=(",", ":"))
    return json.dumps({**value, "x": "x" * (size - len(empty))}, separators=(",", ":"))
