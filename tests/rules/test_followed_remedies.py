"""Remedies of damaged tables, carried out literally: no new error appears, and there are fewer errors."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import reduce
from operator import getitem
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Path

#: Product, format, servers, devices of each, super pods.
TABLES = [
    ("910a", "1.0", 1, 8, 1), ("910a", "1.0", 2, 8, 1), ("a2", "1.0", 4, 8, 1), ("300i", "1.0", 1, 4, 1),
    ("910a", "group_list", 2, 8, 1), ("a3", "1.2", 4, 16, 2), ("a3", "1.2", 2, 8, 1), ("a5", "2.0", 2, 4, 1),
]  # fmt: skip
_VALUE = r'("[^"]*"|-?\d+)'
#: A hint that states one value and no condition: alone, or with its reason.
_WRITE = re.compile(
    rf'write (?:"(\w+)": )?{_VALUE}(?:, (?:the (?:only|number|rank|device) [\w ]+|as [\w ]+))?'
)
_WRITE_TWO = re.compile(rf'write "(\w+)": {_VALUE} and "(\w+)": {_VALUE}')
_RENAME = re.compile(r'rename "([^"]*)" to "(\w+)"')


def at(value: Any, path: Path) -> Any:
    return reduce(getitem, path, value)


def put(value: Any, path: Path, new: Any) -> None:
    at(value, path[:-1])[path[-1]] = new


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    if not isinstance(value, (dict, list)):
        yield path
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(one, (*path, key))


def lists(value: Any) -> Iterator[list[Any]]:
    """Yield the lists of several entries."""
    if isinstance(value, list) and len(value) > 1 and isinstance(value[0], dict):
        yield value
    if isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from lists(one)


# The damages: each changes one table in place


def delete(value: Any, path: Path, _random: Random) -> None:
    holder = at(value, path[:-1])
    if isinstance(holder, dict):
        del holder[path[-1]]


def of_another_type(value: Any, path: Path, _random: Random) -> None:
    old = at(value, path)
    put(value, path, int(old) if isinstance(old, str) and old.isdigit() else str(old))


def replaced(value: Any, path: Path, random: Random) -> None:
    put(value, path, random.choice([None, "", "-1", -1, [], "None", "nan", "{{ x }}"]))


def misspelt(value: Any, path: Path, random: Random) -> None:
    old = at(value, path)
    if isinstance(old, str) and old:
        place = random.randrange(len(old))
        put(value, path, old[:place] + random.choice("0123456789oOl., ") + old[place + 1 :])


def decorated(value: Any, path: Path, random: Random) -> None:
    old = at(value, path)
    if isinstance(old, str):
        form = random.choice(["{}/24", "{}:16666", " {}", "{} ", "0{}", "{}.0", "{},", "rank{}", "{}\u3000"])
        put(value, path, form.format(old))


def full_width(value: Any, path: Path, _random: Random) -> None:
    old = at(value, path)
    if isinstance(old, str):
        put(value, path, "".join(chr(ord(one) + 0xFEE0) if one.isdigit() else one for one in old))


def upper_case(value: Any, path: Path, _random: Random) -> None:
    old = at(value, path)
    if isinstance(old, str):
        put(value, path, old.upper())


def exchanged(value: Any, path: Path, random: Random) -> None:
    old = at(value, path)
    other = random.choice([one for one in leaves(value) if type(at(value, one)) is type(old)])
    new = at(value, other)
    put(value, path, new)
    put(value, other, old)


def moved_down(value: Any, path: Path, _random: Random) -> None:
    places = [one for one in leaves(value) if one[-1] == path[-1]]
    values = [at(value, one) for one in places]
    for place, new in zip(places, [values[-1], *values[:-1]], strict=True):
        put(value, place, new)


def numbered_from_1(value: Any, _path: Path, random: Random) -> None:
    key = random.choice(["rank_id", "device_id"])
    for number, place in enumerate([one for one in leaves(value) if one[-1] == key], 1):
        put(value, place, type(at(value, place))(number))


def other_key(value: Any, path: Path, random: Random) -> None:
    holder, key = at(value, path[:-1]), path[-1]
    if isinstance(holder, dict) and isinstance(key, str):
        new = random.choice([key.replace("_", ""), key.upper(), key.replace("_", "-"), f"{key}s", key[:-1]])
        holder[new] = holder.pop(key)


def columns_exchanged(value: Any, path: Path, random: Random) -> None:
    other = random.choice(list(at(value, path[:-1]))) if isinstance(at(value, path[:-1]), dict) else None
    for place in [one for one in leaves(value) if one[-1] == path[-1]]:
        holder = at(value, place[:-1])
        if isinstance(holder, dict) and other in holder:
            holder[path[-1]], holder[other] = holder[other], holder[path[-1]]


def entry_lost(value: Any, _path: Path, random: Random) -> None:
    if found := list(lists(value)):
        del (chosen := random.choice(found))[random.randrange(len(chosen))]


def end_lost(value: Any, _path: Path, random: Random) -> None:
    if found := list(lists(value)):
        del (chosen := random.choice(found))[random.randrange(1, len(chosen)) :]


def entry_copied(value: Any, _path: Path, random: Random) -> None:
    if found := list(lists(value)):
        chosen = random.choice(found)
        chosen.insert(random.randrange(len(chosen) + 1), deepcopy(random.choice(chosen)))


def entry_overwritten(value: Any, _path: Path, random: Random) -> None:
    if found := list(lists(value)):
        chosen = random.choice(found)
        chosen[random.randrange(len(chosen))] = deepcopy(random.choice(chosen))


def entry_moved(value: Any, _path: Path, random: Random) -> None:
    if found := list(lists(value)):
        moved = random.choice(found).pop()
        random.choice(found).append(moved)


def sorted_as_text(value: Any, path: Path, _random: Random) -> None:
    places = [one for one in leaves(value) if one[-1] == path[-1]]
    for place, new in zip(places, sorted((at(value, one) for one in places), key=str), strict=True):
        put(value, place, new)


DAMAGES: list[Callable[[Any, Path, Random], None]] = [
    delete, of_another_type, replaced, misspelt, decorated, full_width, upper_case, exchanged, moved_down,
    numbered_from_1, other_key, columns_exchanged, entry_lost, end_lost, entry_copied, entry_overwritten,
    entry_moved, sorted_as_text,
]  # fmt: skip


# Remedies


def errors(value: Any, product: str) -> dict[tuple[str, str], Diagnostic]:
    report = validate(json.dumps(value).encode(), product=product, limit=None)
    return {(one.rule.id, one.pointer): one for one in report.findings if one.rule.severity == "error"}


def follow(value: Any, found: Diagnostic) -> bool:
    """Carry out the remedy of a finding if it states a value for its place; return whether it does."""
    hint, path = found.hint or "", found.path
    if two := _WRITE_TWO.fullmatch(hint):
        at(value, path[:-1]).update({two[1]: json.loads(two[2]), two[3]: json.loads(two[4])})
    elif renamed := _RENAME.fullmatch(hint):
        holder = at(value, path[:-1])
        holder[renamed[2]] = holder.pop(renamed[1])
    elif (written := _WRITE.fullmatch(hint)) and not found.at_key:
        key, new = written[1], json.loads(written[2])
        place = path if key is None or (path and path[-1] == key) else (*path, key)
        put(value, place, new)
    else:
        return False
    return True


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_a_remedy_that_states_a_value_makes_no_new_error(damage: Callable[[Any, Path, Random], None]) -> None:
    for seed in range(40):
        random = Random(seed)  # noqa: S311  (a repeatable damage)
        product, table_format, servers, devices, pods = TABLES[seed % len(TABLES)]
        value = table(table_format, servers, devices, pods)
        damage(value, random.choice(list(leaves(value))), random)
        before = errors(value, product)
        for rule in {rule for rule, _ in before}:
            remedied = deepcopy(value)
            followed = [follow(remedied, one) for (own, _), one in before.items() if own == rule]
            if not any(followed):
                continue
            after = errors(remedied, product)
            said = f"seed {seed}, {rule}: {[one.hint for (own, _), one in before.items() if own == rule][:2]}"
            assert after.keys() <= before.keys(), (
                said,
                {key: after[key].message for key in after.keys() - before},
            )
            assert len(after) < len(before), said
