"""What a fault in broken JSON stands for, read from the text around it: empty cells, git, UTF-16.

The text is not a value yet, so that its keys are searched for in the text itself.
"""

from __future__ import annotations

import re

from hccl_tools.notation import host_list
from hccl_tools.notation.hint import FILES

_DEVICE = re.compile(r'"device_id"\s{0,8}:\s{0,8}"?(\d{1,4})\b')
#: A value in place of an empty cell, as programs for tables write it.
_EMPTY_CELL = re.compile(r":\s{0,8}(?:NaN|nan|None|NULL|Null|undefined|nil)\b")
_SERVER = re.compile(r'"server_id"\s{0,8}:\s{0,8}"([^"\\\n]{1,64})"')
#: A side of a conflict that is a count alone, and a rank.
_COUNT = re.compile(r'\s*"(rank_count|server_count)"\s*:\s*"?(\d{1,6})"?\s*,?\s*')
_RANK = re.compile(r'"rank_id"\s{0,8}:')
#: What an entry of a side of a conflict is, and its id.
_ENTRIES = (("server", _SERVER), ("device", _DEVICE))
#: How far from a value its object is searched for.
_FAR = 2_000
#: Devices of one NPU of an A3, each of which is a chip of it.
_CHIPS = 2
#: The keys whose values the host shows or the order of the file gives.
OF_DEVICES = ("device_ip", "super_device_id", "device_id", "rank_id")
_MIDDLE, _LAST = re.compile(r"^=======[ \t\r]*$", re.MULTILINE), re.compile(r"^>>>>>>>[^\n]*", re.MULTILINE)
#: The longest line of a side of a conflict that is shown.
_LONGEST = 60


#: Characters of UTF-16 in a text that is read as UTF-8: each of them has a zero byte after or before it.
_WIDE_AFTER, _WIDE_BEFORE = re.compile(r"[^\0]\0(?:[^\0]\0)+"), re.compile(r"\0[^\0](?:\0[^\0])+")


def wide_part(text: str, at: int) -> tuple[str, str] | None:
    """Return message and hint on zero bytes that belong to text in UTF-16; None for others."""
    if not (_WIDE_AFTER.match(text, max(0, at - 1)) or _WIDE_BEFORE.match(text, at)):
        return None
    line = text.count("\n", 0, at) + 1
    message = (
        f"from line {line} on each character has a zero byte: this is text in UTF-16 after text in UTF-8, as "
        ">> of Windows PowerShell writes it"
    )
    hint = (
        f"write it in UTF-8, too: tr -d '\\000' < {FILES} removes the zero bytes; in PowerShell write "
        "with Add-Content -Encoding utf8"
    )
    return message, hint


def empty_cell(text: str, at: int, word: str, key: str | None) -> tuple[str, str] | None:
    """Return message and hint on a word in place of an empty cell; None if its key is not of a device."""
    if key not in OF_DEVICES:
        return None
    of, hint = of_cell(text, at, key), how_to_write(text, at, key)
    others = len(_EMPTY_CELL.findall(text, at + len(word)))
    also = f"; the values of {others} other empty cells are missing, too" if others else ""
    if others == 1:
        also = "; the value of another empty cell is missing, too"
    return (
        f"{word} stands for an empty cell: the {key}{of} is missing",
        f"{hint}{also}",
    )


def of_cell(text: str, at: int, key: str) -> str:
    """Return the device and server of a place, as the end of a phrase."""
    device, server = _device_at(text, at), _server_at(text, at)
    of = f" of device {device}" if device is not None and key != "device_id" else ""
    return of + (f' of server "{server}"' if server else "")


def how_to_write(text: str, at: int, key: str) -> str:
    """Return how to write a value of a device that is missing at a place; "" for other keys."""
    device, host = _device_at(text, at), f" on {host_list.named(_server_at(text, at) or '')}"
    number = "N" if device is None else device
    quotes = "" if '"rank_list"' in text else ", in double quotes"
    if key == "device_ip":
        return f"write the address that `hccn_tool -i {number} -ip -g`{host} shows, in double quotes"
    if key == "super_device_id":
        place = "N -c M" if device is None else f"{int(device) // _CHIPS} -c {int(device) % _CHIPS}"
        return f"write the SDID that `npu-smi info -t spod-info -i {place}`{host} shows, in double quotes"
    if key == "device_id":
        return f"write the number of the device, which no other entry of its server has{quotes}"
    return f"write the rank, which no other device has{quotes}" if key == "rank_id" else ""


def left_out(text: str, at: int) -> str:
    """Return the hint on dots in place of entries: which devices these are, by the entries around them."""
    again = "or make the table with `hccl-tools gen`"
    before = [*_DEVICE.finditer(text, max(0, at - _FAR), at)]
    after = _DEVICE.search(text, at, at + _FAR)
    plain = f"write all entries in their place, each with the values of its own device, {again}"
    if not before or after is None or '"server_id"' in text[before[-1].start() : after.start()]:
        return plain
    first, last = int(before[-1][1]) + 1, int(after[1]) - 1
    if first > last:
        return plain
    server = _server_at(text, at)
    host = f" on {host_list.named(server)}" if server else " on the host"
    which, each = (f"device {first}", "") if first == last else (f"devices {first} to {last}", ", and so on")
    noun = "entry" if first == last else "entries"
    return (
        f"write the {noun} of {which} in their place, with a rank_id each: "
        f"`hccn_tool -i {first} -ip -g`{host} shows the address of device {first}{each}; {again}{host}"
    )


def _device_at(text: str, at: int) -> str | None:
    """Return the device_id of the object in which a place is."""
    begin = text.rfind("{", max(0, at - _FAR), at)
    end = text.find("}", at, at + _FAR)
    found = _DEVICE.search(text, begin, end) if begin >= 0 and end >= 0 else None
    return None if found is None else found[1]


def _server_at(text: str, at: int) -> str | None:
    """Return the server_id of a place: it stands before or after the devices of all servers."""
    first, devices = text.find('"server_id"'), text.find('"device"')
    if first < 0 or devices < 0 or devices > at:
        return None
    if first > devices:
        found = _SERVER.search(text, at)
        return None if found is None else found[1]
    begin = text.rfind('"server_id"', 0, at)
    found = _SERVER.match(text, begin) if begin >= 0 else None
    return None if found is None else found[1]


def conflict(text: str, at: int) -> str:
    """Return the hint on a conflict of git that begins at a place: the lines of its sides and markers."""
    plain = "resolve the conflict and remove its marker lines"
    middle = _MIDDLE.search(text, at) if text.startswith("<<<<<<<", at) else None
    last = _LAST.search(text, middle.end()) if middle is not None else None
    if middle is None or last is None or "\n|||||||" in text[at : middle.start()]:
        return plain
    line = text.count("\n", 0, at) + 1
    second = line + text.count("\n", at, middle.start())
    third = second + text.count("\n", middle.start(), last.start())
    begin = text.find("\n", at) + 1
    kept = text[begin : middle.start()], text[middle.end() : last.start()]
    sides = (
        _side(kept[0], line + 1, second - 1, text[at + 7 : begin].strip()),
        _side(kept[1], second + 1, third - 1, last[0][7:].strip()),
    )
    markers = f"the marker lines {line}, {second} and {third}"
    one = f"keep {' or '.join(sides)}, and delete the rest with {markers}"
    elsewhere = _elsewhere(text, at, last.end(), kept) or _counted(text[:at] + text[last.end() :], kept)
    return f"{_of_both(kept, markers, one) or one}{elsewhere}"


def _counted(rest: str, sides: tuple[str, str]) -> str:
    """Return how many entries the rest of the file has, if the sides of a conflict count them."""
    counts = [_COUNT.fullmatch(side) for side in sides]
    if counts[0] is None or counts[1] is None or counts[0][1] != counts[1][1]:
        return ""
    key = counts[0][1]
    number = len(_RANK.findall(rest)) if key == "rank_count" else len({*_SERVER.findall(rest)})
    if str(number) not in (counts[0][2], counts[1][2]):
        return ""
    return f"; the file lists {number} {'ranks' if key == 'rank_count' else 'servers'}"


def _elsewhere(text: str, start: int, end: int, sides: tuple[str, str]) -> str:
    """Return what else is to be done if a line before or after a conflict names the only server of a side."""
    names = [_SERVER.findall(side) for side in sides]
    if [len(one) for one in names] != [1, 1] or names[0] == names[1]:
        return ""
    for own in (names[1][0], names[0][0]):
        before, after = text.rfind(f'"{own}"', 0, start), text.find(f'"{own}"', end)
        place = before if before >= 0 else after
        if place >= 0:
            line = text.count("\n", 0, place) + 1
            return f'; line {line} has "{own}", too: write the server that you keep there'
    return ""


def _of_both(sides: tuple[str, str], markers: str, one: str) -> str:
    """Return how to keep both sides of a conflict if each has an entry of its own; "" for others.

    Args:
        one: How to keep one of the two.
    """
    found = ((noun, [pattern.findall(side) for side in sides]) for noun, pattern in _ENTRIES)
    noun, names = next(((noun, names) for noun, names in found if any(names)), ("", []))
    if not names or not all(names) or not {*names[0]}.isdisjoint(names[1]):
        return ""
    own = f'"{names[0][0]}" and "{names[1][0]}"'
    bare = [side.strip().strip(",") for side in sides]
    if not all(side.startswith("{") and side.endswith("}") for side in bare):
        both = f"write two entries, each with all of its keys: {_COUNTED}"
        return f"{one}; only if the job uses both {noun}s ({own}), {both}" if noun == "server" else ""
    join = f"delete only {markers}, and write a comma between the two sides; {_COUNTED}"
    return (
        f"each side has a {noun} of its own ({own}); if the job uses both, {join}, and keep both "
        f"entries in the other conflicts of the file, too; if it uses one, {one}"
    )


#: What the second of two entries changes.
_COUNTED = "number the ranks of the second on, and count both in the counts of the table"


def _side(lines: str, first: int, last: int, name: str) -> str:
    """Return one side of a conflict: its lines, its text if that is one line, and its name."""
    of = f" of {name[:_LONGEST]}" if name else ""
    if last < first:
        return f"nothing, as on the side{of}"
    if first == last:
        shown = lines.strip()
        return f"line {first} ({shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '...'}){of}"
    return f"lines {first} to {last}{of}"
