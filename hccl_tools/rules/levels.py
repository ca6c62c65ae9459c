"""Rules on the network levels and addresses of 2.0 tables (Ascend 950).

A valid table of 65,536 ranks has about 130,000 levels, so each rule first checks the set of all values.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.exchanged_layers import exchanged_finding, exchanged_layers, out_of_order
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.table.hccl_numbers import byte_length, read_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path

#: The local_id of a spare device (BACKUP_LOCAL_ID).
SPARE = 64
HIGHEST_LAYER = 7
_NET_TYPES = frozenset({"TOPO_FILE_DESC", "CLOS", "1DMESH", "2DMESH", "A3_SERVER", "A2_AX_SERVER"})
_USUAL_LAYERS = ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3])
#: The maximum lengths of strings, in bytes.
LONGEST = {"net_instance_id": 1024, "plane_id": 1024, "addr": 256, "port": 32}
#: The most addresses of a level that are compared one by one.
_MOST_COMPARED = 64
Entry = dict[str, Any]


@shared
def all_levels(subject: Subject) -> list[Entry]:
    """Return the levels of all ranks, in file order."""
    return list(chain.from_iterable(subject.table.column("level_list")))


@shared
def level_addresses(subject: Subject) -> list[Entry]:
    """Return every address of every level, in file order."""
    return list(chain.from_iterable(level["rank_addr_list"] for level in all_levels(subject)))


@shared
def local_numbers(subject: Subject) -> list[int | None]:
    """Return the local_ids as numbers, in file order."""
    column = subject.table.column("local_id")
    numbers = {value: read_integer(value) for value in set(column)}
    return [*map(numbers.__getitem__, column)]


@shared
def instance_names(subject: Subject) -> set[str]:
    """Return the net_instance_ids of all levels."""
    return {level["net_instance_id"] for level in all_levels(subject)}


@shared
def layers_used(subject: Subject) -> set[Any]:
    """Return the net_layers of all levels, as they are written."""
    return {level["net_layer"] for level in all_levels(subject)}


@shared
def address_types(subject: Subject) -> set[str]:
    """Return the addr_types of all addresses."""
    return {entry["addr_type"] for entry in level_addresses(subject)}


@shared
def port_lists(subject: Subject) -> set[tuple[str, ...]]:
    """Return the different lists of ports of all addresses."""
    return {tuple(entry["ports"]) for entry in level_addresses(subject)}


def all_ports(subject: Subject) -> set[str]:
    """Return the ports of all addresses."""
    return set(chain.from_iterable(port_lists(subject)))


def each_level(subject: Subject) -> Iterator[tuple[Path, Entry]]:
    """Yield every level with its path."""
    for row, levels in enumerate(subject.table.column("level_list")):
        for index, level in enumerate(levels):
            yield ("rank_list", row, "level_list", index), level


def each_address(subject: Subject) -> Iterator[tuple[Path, Entry]]:
    """Yield every address with its path."""
    for path, level in each_level(subject):
        for index, address in enumerate(level["rank_addr_list"]):
            yield (*path, "rank_addr_list", index), address


def all_pass(entries: list[Entry], key: str, passes: Callable[[Any], bool], default: Any = None) -> bool:
    """Whether all values of a key pass a check, which runs once per distinct value."""
    values = {entry.get(key, default) for entry in entries}
    return all(value is default or passes(value) for value in values)


@rule("HCC331", "local-id", "refused", source="new_rank_info.cc:47-63")
def local_id(subject: Subject) -> Iterator[Finding]:
    """A local_id is not between 0 and 64, or a spare (local_id 64) has no replaced_local_id from 0 to 63.

    Example: /rank_list/0/local_id = 65
    Instead: /rank_list/0/local_id = 0
    Hint: write the index of the device in its node
    """
    ids, replaced = subject.table.column("local_id"), subject.table.column("replaced_local_id")
    if set(ids) <= set(range(SPARE)):
        return
    for row, value in enumerate(ids):
        number = read_integer(value)
        if number is None or not 0 <= number <= SPARE:
            yield Finding(
                f"local_id {value} is not between 0 and 64",
                ("rank_list", row, "local_id"),
                "write the index of the device in its node",
            )
        elif number == SPARE:
            other = read_integer(replaced[row])
            if other is None or not 0 <= other < SPARE:
                key = ("replaced_local_id",) if replaced[row] is not None else ()
                message = "a spare device (local_id 64) needs replaced_local_id from 0 to 63"
                yield Finding(message, ("rank_list", row, *key), _replaced(subject, row))


def _replaced(subject: Subject, row: int) -> str:
    """Return the hint on a spare without replaced_local_id: the only local_id that its node does not have."""
    rows = subject.table.servers[subject.table.server_of_row[row]].rows
    ids = {read_integer(subject.table.column("local_id")[one]) for one in rows}
    absent = [number for number in range(len(rows)) if number not in ids]
    if len(absent) != 1:
        return "add the local_id that the spare replaces"
    return f'add "replaced_local_id": {absent[0]}, the local_id that no rank of its node has'


@rule("HCC332", "spare-device", "refused", code="EI0014", stage="check", source="rank_table_info.cc:90-144")
def spare_device(subject: Subject) -> Iterator[Finding]:
    """The table has two spare devices, or a rank has the local_id that the spare replaces.

    Example: /rank_list/0/local_id = 64; /rank_list/0/replaced_local_id = 1
    Instead: /rank_list/0/local_id = 64; /rank_list/0/replaced_local_id = 5
    Hint: remove the replaced device
    """
    numbers = local_numbers(subject)
    if SPARE not in numbers:
        return
    spares = [row for row, number in enumerate(numbers) if number == SPARE]
    for row in spares[1:]:
        related = (Related(("rank_list", spares[0], "local_id"), "the first spare device here"),)
        yield Finding(
            "the table has a second spare device (local_id 64)",
            ("rank_list", row, "local_id"),
            "keep only one spare device",
            related,
        )
    replaced = read_integer(subject.table.column("replaced_local_id")[spares[0]])
    if replaced is not None and replaced in numbers:
        path = ("rank_list", numbers.index(replaced), "local_id")
        related = (Related(("rank_list", spares[0], "replaced_local_id"), "replaced here"),)
        owner = subject.table.server_of_row
        row = path[1]
        if owner[row] == owner[spares[0]]:
            yield Finding(
                f"local_id {replaced} is replaced by the spare device",
                path,
                "remove the replaced device",
                related,
            )
            return
        yield Finding(
            f"local_id {replaced} is replaced by the spare device of another node, and HCCL compares it with the local_ids of all nodes",
            path,
            "HCCL reads a spare device only in a table in which no node has the local_id that it replaces: leave the spare and its "
            "node out, or the devices of this local_id of all nodes",
            related,
        )


@rule("HCC451", "net-layer", "refused", source="rank_level_info.cc:39, new_rank_info.cc:77-103")
def net_layer(subject: Subject) -> Iterator[Finding]:
    """A net_layer is not between 0 and 7, or the levels of a rank are not in ascending order.

    Example: /rank_list/0/level_list/0/net_layer = 8
    Instead: /rank_list/0/level_list/0/net_layer = 0
    Hint: number the levels from 0
    """
    column = subject.table.column("level_list")
    if layers_used(subject) == {0} and set(map(len, column)) == {1}:
        return
    for row, levels in enumerate(column):
        layers = [level["net_layer"] for level in levels]
        if layers in _USUAL_LAYERS:
            continue
        if row in exchanged_layers(subject):
            if row in out_of_order(subject):  # Else HCC464 reports it: HCCL reads the table.
                yield exchanged_finding(subject, row)
            continue
        previous = -1
        for index, value in enumerate(layers):
            path = ("rank_list", row, "level_list", index, "net_layer")
            number = read_integer(value)
            if number is None or not 0 <= number <= HIGHEST_LAYER:
                yield Finding(f"net_layer {value} is not between 0 and 7", path, "number the levels from 0")
                continue
            if number <= previous:
                yield Finding(
                    f"net_layer {value} follows net_layer {previous}",
                    path,
                    _right_layer(subject, levels, index),
                )
            previous = number


@shared
def _usual_layers(subject: Subject) -> tuple[Any, ...]:
    """Return the layers of most ranks, in their order; empty if no more than a half have the same."""
    column = subject.table.column("level_list")
    found = Counter(tuple(level["net_layer"] for level in levels) for levels in column)
    usual, number = found.most_common(1)[0]
    return usual if 2 * number > len(column) else ()


@shared
def _usual_levels(subject: Subject) -> list[Any]:
    """Return the levels of the first rank with the layers of most ranks."""
    usual = _usual_layers(subject)
    column = subject.table.column("level_list")
    return next((one for one in column if tuple(level["net_layer"] for level in one) == usual), [])


def _are_alike(levels: list[Any], one: int, other: int) -> bool:
    """Return whether two levels of a rank have the same addresses."""
    return bool(levels[one]["rank_addr_list"] == levels[other]["rank_addr_list"])


def _right_layer(subject: Subject, levels: list[Any], index: int) -> str:
    """Return the hint on a layer that does not ascend: that of the other ranks in its place, if it is not only in another order."""
    layers = [level["net_layer"] for level in levels]
    if len(layers) > HIGHEST_LAYER + 1:
        return "list the levels by ascending net_layer"
    numbers, usual = [read_integer(one) for one in layers], _usual_layers(subject)
    wrong = [place for place, one in enumerate(layers) if len(usual) == len(layers) and one != usual[place]]
    if sorted(one or 0 for one in numbers) == sorted(read_integer(one) or 0 for one in usual) or len(
        set(numbers)
    ) == len(numbers):
        return "list the levels by ascending net_layer"
    if len(wrong) == 1:
        twin = index if wrong[0] != index else numbers.index(numbers[index])
        if _are_alike(levels, wrong[0], twin) and not _are_alike(_usual_levels(subject), wrong[0], twin):
            return (
                f"level {wrong[0] + 1} of the rank is a copy of level {twin + 1}: write its layer {usual[wrong[0]]} in this place, "
                "which `hccl-tools gen` on its host prints"
            )
        place = (
            "here"
            if wrong[0] == index
            else "in the level before it"
            if index - wrong[0] == 1
            else f"in level {wrong[0] + 1} of the rank"
        )
        return f'write "net_layer": {usual[wrong[0]]} {place}, as the other ranks have in this place'
    both = f"the levels {numbers.index(numbers[index]) + 1} and {index + 1} of this rank have one net_layer"
    return f"{both}: write the number of its own layer in each, as `hccl-tools gen` does, and list the levels by ascending net_layer"


@rule("HCC452", "net-instance-id", "refused", source="rank_level_info.cc:43")
def net_instance_id(subject: Subject) -> Iterator[Finding]:
    """A net_instance_id is empty or longer than 1024 bytes.

    Example: /rank_list/0/level_list/0/net_instance_id = ""
    Instead: /rank_list/0/level_list/0/net_instance_id = "node0"
    Hint: give the network instance an id
    """
    most = LONGEST["net_instance_id"]
    if all(0 < byte_length(name) <= most for name in instance_names(subject)):
        return
    for path, level in each_level(subject):
        if not 0 < byte_length(level["net_instance_id"]) <= most:
            yield Finding(
                f"net_instance_id is not 1 to {most} bytes long",
                (*path, "net_instance_id"),
                "give the network instance an id",
            )


@rule("HCC453", "net-type", "refused", source="rank_level_info.cc:22, :50")
def net_type(subject: Subject) -> Iterator[Finding]:
    """A net_type is unknown to HCCL.

    Each layer takes one value: HCCL refuses others than CLOS from layer 1 on (HCC464), and the guide requires
    TOPO_FILE_DESC on layer 0 (HCC462).

    Example: /rank_list/0/level_list/0/net_type = "clos"
    Instead: /rank_list/0/level_list/0/net_type = "CLOS"
    Hint: write TOPO_FILE_DESC, which the guide requires on layer 0
    """
    if all_pass(all_levels(subject), "net_type", _NET_TYPES.__contains__):
        return
    for path, level in each_level(subject):
        if "net_type" in level and level["net_type"] not in _NET_TYPES:
            yield _unknown_type(path, level)


def _unknown_type(path: Path, level: Entry) -> Finding:
    text = level["net_type"]
    is_first = (read_integer(level.get("net_layer")) or 0) <= 0
    right = "TOPO_FILE_DESC" if is_first else "CLOS"
    is_spelt = re.sub(r"[^A-Z0-9]", "", text.upper()) == right.replace("_", "")
    return Finding(
        f'net_type "{text}" is unknown' + (f": it is another spelling of {right}" if is_spelt else ""),
        (*path, "net_type"),
        f'write "{right}"'
        if is_spelt or not is_first
        else f"write {right}, which the guide requires on layer 0",
        right=right if is_spelt else None,
    )


@rule("HCC454", "uneven-rank-addresses", "refused", stage="check", source="rank_table_info.cc:127-196")
def uneven_rank_addresses(subject: Subject) -> Iterator[Finding]:
    """Ranks of one network instance have different numbers of addresses.

    Example: /rank_list/0/level_list/0/rank_addr_list = []
    Instead: table
    Hint: write the addresses that the rank lacks: `hccl-tools gen` on node0 prints the entry of this rank; do not shorten the lists of the others
    """
    sizes = {
        (level["net_layer"], level["net_instance_id"], len(level["rank_addr_list"]))
        for level in all_levels(subject)
    }
    if len({key[:2] for key in sizes}) == len(sizes):
        return
    times: dict[tuple[int | None, str], Counter[int]] = {}
    whole: dict[tuple[int | None, str, int], Path] = {}
    for path, level in each_level(subject):
        key, size = _instance(level), len(level["rank_addr_list"])
        times.setdefault(key, Counter())[size] += 1
        whole.setdefault((*key, size), path)
    usual = {key: max(sizes, key=lambda size: (sizes[size], size)) for key, sizes in times.items()}
    for path, level in each_level(subject):
        key, size = _instance(level), len(level["rank_addr_list"])
        if size != usual[key] and int(path[1]) not in out_of_order(subject):
            other = whole[(*key, usual[key])]
            pair = _of_other_layer(subject, int(path[1]), int(other[1]), int(path[3]))
            if pair is None or pair > int(path[3]):  # Else it was reported with that level.
                yield _other_number(subject, path, level, times[key], other)


def _instance(level: Entry) -> tuple[int | None, str]:
    """Return the layer of a level and its network instance."""
    layer = level["net_layer"]
    return (layer if type(layer) is int else read_integer(layer), level["net_instance_id"])


def _other_number(subject: Subject, path: Path, level: Entry, sizes: Counter[int], other: Path) -> Finding:
    """Return the finding on a level with another number of addresses than those of most ranks of its instance.

    Args:
        sizes: How often each number occurs in the instance.
        other: The level of a rank with the usual number.
    """
    row, entries = int(path[1]), level["rank_addr_list"]
    whole = subject.table.column("level_list")[int(other[1])][int(other[3])]["rank_addr_list"]
    usual, size = len(whole), len(entries)
    addresses = f"{size} {'address' if size == 1 else 'addresses'}"
    others = f"{sizes[usual]} other rank{'' if sizes[usual] == 1 else 's'} of network instance {quoted(level['net_instance_id'])}"
    message = f"{subject.rank_name(row)} has {addresses} in layer {level['net_layer']}, and {others} {'has' if sizes[usual] == 1 else 'have'} {usual}"
    node = subject.table.servers[subject.table.server_of_row[row]].server_id[:64]
    gen = f"`hccl-tools gen` on {shown_host(node)} prints the entry of this rank"
    hint = f"write the addresses that the rank lacks: {gen}; do not shorten the lists of the others"
    if size > usual:
        hint = f"remove the surplus addresses: {gen}"
    if (place := _of_other_layer(subject, row, int(other[1]), int(path[3]))) is not None:
        layers = level["net_layer"], subject.table.column("level_list")[row][place]["net_layer"]
        hint = f"exchange the rank_addr_list of layers {layers[0]} and {layers[1]} of the rank: each has those of the other layer; {gen}"
        return Finding(
            message, (*path, "rank_addr_list"), hint, (Related((*other, "rank_addr_list"), f"{usual} here"),)
        )
    lacking = (
        Counter(map(_ports, whole)) - Counter(map(_ports, entries))
        if usual <= _MOST_COMPARED
        else Counter[str]()
    )
    if size < usual and 0 < len(lacking) <= usual - size:
        message += (
            f": it lacks the {'one' if len(lacking) == 1 else 'ones'} with ports {' and '.join(lacking)}"
        )
    related = (Related((*other, "rank_addr_list"), f"{usual} here"),)
    return Finding(message, (*path, "rank_addr_list"), hint, related)


def _of_other_layer(subject: Subject, row: int, other: int, place: int) -> int | None:
    """Return the level of a rank whose addresses and those at a place are each other's, by a sound rank; None if there is none."""
    own, sound = (
        [[_ports(entry) for entry in level["rank_addr_list"][:_MOST_COMPARED]] for level in levels]
        for levels in (subject.table.column("level_list")[one] for one in (row, other))
    )
    if len(own) != len(sound):
        return None
    fitting = (
        at for at in range(len(own)) if at != place and own[place] == sound[at] and own[at] == sound[place]
    )
    return next(fitting, None) if any(own[place]) else None


def _ports(entry: Entry) -> str:
    return ",".join(entry["ports"])
