"""The messages and remedies of violations of a JSON Schema. This module declares no rules."""

from __future__ import annotations

import re
from functools import reduce
from itertools import repeat
from operator import getitem
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import as_json, quoted
from hccl_tools.document import explanation
from hccl_tools.formats import MODULES
from hccl_tools.formats.detection import version_of_content
from hccl_tools.formats.schema import Violations, compiled
from hccl_tools.notation import look_alikes
from hccl_tools.notation.likeness import likeness
from hccl_tools.notation.phrases import and_more
from hccl_tools.rules import entry_forms, key_shapes, missing_ids, right_texts
from hccl_tools.rules.document import made_on_its_hosts
from hccl_tools.rules.key_names import translated
from hccl_tools.rules.key_places import kinds_with, with_other_keys
from hccl_tools.rules.other_shapes import other_shapes
from hccl_tools.rules.registry import COUNTED, DamagedInput, Finding
from hccl_tools.table.products import assumed_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.formats.shapes import Violation

#: The minimum similarity of a misspelt key to the missing key, 0 to 1.
_ALIKE = 0.75
#: Keys of 1.x and group_list tables with a number in a string, and of 2.0 tables with a JSON number.
_NUMBERS_IN_TEXTS = frozenset(
    {
        "rank_id", "device_id", "server_count", "device_port", "host_port", "super_device_id",
        "group_count", "device_count", "instance_count",
    }
)  # fmt: skip
_NUMBERS_OF_2_0 = frozenset(
    {"rank_id", "local_id", "device_id", "rank_count", "device_port", "host_port", "net_layer"}
)
#: Keys of 2.0 tables with a list of strings.
_LISTS_OF_TEXTS = frozenset({"ports", "backup_addr"})
_PORTS = re.compile(r"[0-9]{1,3}/[0-9]{1,3}(?:,[0-9]{1,3}/[0-9]{1,3}){0,15}", re.ASCII)
_DIGITS = re.compile(r"0*[0-9]{1,9}", re.ASCII)
#: A text with one number in it, such as L0.
_ONE_NUMBER = re.compile(r"[^0-9]{0,20}([0-9]{1,9})(?:\.0*)?[^0-9]{0,20}", re.ASCII)
_KINDS = {int: "number", str: "string"}
#: The characters of a string that a message shows.
_LONGEST_SHOWN = 120


def findings(subject: DamagedInput, rule_id: str) -> Iterator[Finding]:
    """Yield the findings of a rule on violations of the schema, of which some are of the rule."""
    violations = subject.violations
    shapes = other_shapes(subject)
    rules = compiled(violations.table_format).rules
    yield from (shape.finding for shape in shapes if rules[shape.keyword] == rule_id)
    if shapes:  # They explain what is missing in their entries.
        violations = Violations(
            subject.value,
            violations.table_format,
            violations.limit,
            left_out=lambda one: any(shape.covers(one) for shape in shapes),
        )
    kept = [one for one in violations.kept if one.rule_id == rule_id]
    alike: dict[tuple[Any, ...], tuple[str, str]] = {}
    for violation in kept:
        yield _finding_on(subject, violation, alike)
    yield from repeat(COUNTED, violations.counts[rule_id] - len(kept))


def _finding_on(
    subject: DamagedInput, violation: Violation, alike: dict[tuple[Any, ...], tuple[str, str]]
) -> Finding:
    """Return the finding on a violation.

    Args:
        alike: Message and hint for several violations of one kind, which the first of them sets.
    """
    table_format = subject.violations.table_format
    if (other := _other_version(subject, violation, table_format)) is not None:
        said = f'"{violation.key}" is missing'
        return Finding(
            said, violation.path, other, alike=alike.setdefault(("version",), (_OF_ANOTHER_VERSION, other))
        )
    hint = _after_the_table(subject, violation)
    near = None if hint else near_key(subject.value, violation, subject.violations.known_keys)
    if near is not None:
        return _misspelt(subject, violation, near, alike)
    if hint is None and violation.keyword == "required":
        found = _by_shape(subject, violation, alike) or _elsewhere(subject, violation, table_format)
        if found is not None:
            return found
    if hint is None and (form := entry_forms.form_of(subject.value, violation, alike)) is not None:
        is_entry = type(violation.path[-1]) is int
        message = message_of(subject.value, violation) if is_entry else form[0]
        return Finding(message, violation.path, form[1], alike=form)
    hint = hint or _with_own_value(subject.value, violation, _own_id(subject, violation))
    finding = Finding(
        message_of(subject.value, violation), violation.path, hint,
        right=_right(subject.value, violation, table_format),
        alike=_alike(subject.value, violation, alike, _shown_right(subject.value, violation, table_format)),
    )  # fmt: skip
    if violation.keyword == "const":
        value, versions = reduce(getitem, violation.path, subject.value), list(MODULES)
        finding = right_texts.named(finding, value, versions.__contains__)
        if finding.right is None and type(value) is str and right_texts.as_digits(value) == table_format:
            finding = finding._replace(right=table_format)  # A letter in place of the digit, as in "1.O".
    elif violation.keyword in ("required", "type") and (all_ids := _all_ids(subject, violation)) is not None:
        finding = finding._replace(alike=all_ids)
    elif (shown := _shown_right(subject.value, violation, table_format)) is not None:
        finding = finding._replace(hint=f"write {shown}")
    return finding


def _all_ids(subject: DamagedInput, violation: Violation) -> tuple[str, str] | None:
    """Return message and hint on several entries without an id, or with null, if their ids follow from their places."""
    hint = missing_ids.hint_on_all(subject, violation, subject.violations.table_format)
    what = f'"{violation.key}" is missing' if violation.key is not None else f'"{violation.path[-1]}" is null'
    return None if hint is None else (what, hint)


def _shown_right(value: Any, violation: Violation, table_format: str) -> str | None:
    """Return the right form of a number with a decimal point, or of a number in a text; None for other values."""
    if violation.keyword != "type" or not violation.path:
        return None
    found, key = reduce(getitem, violation.path, value), violation.path[-1]
    if key not in (_NUMBERS_OF_2_0 if table_format == "2.0" else _NUMBERS_IN_TEXTS):
        return None
    number = found if type(found) is float and 0 <= found < 1e9 and found.is_integer() else None
    if table_format != "2.0":
        return None if number is None else f'"{int(number)}"'
    if (
        number is None
        and type(found) is str
        and not _DIGITS.fullmatch(found)
        and (digits := _ONE_NUMBER.fullmatch(found)) is not None
    ):
        number = int(digits[1])
    return None if number is None else str(int(number))


def right_number(key: str | int, value: Any, table_format: str) -> str | int | None:
    """Return a number as the format wants it, a string or a JSON number; None for other values.

    Args:
        key: The key of the value.
    """
    if type(value) is float and 0 <= value < 1e9 and value.is_integer():  # As a spreadsheet writes it.
        value = int(value)
        if table_format == "2.0":
            return value if key in _NUMBERS_OF_2_0 else None
    if table_format == "2.0":
        is_text = key in _NUMBERS_OF_2_0 and type(value) is str
        found = _ONE_NUMBER.fullmatch(value) if is_text else None
        return None if found is None else int(found[1])
    return str(value) if key in _NUMBERS_IN_TEXTS and type(value) is int and value >= 0 else None


def _right(value: Any, violation: Violation, table_format: str) -> str | int | tuple[str, ...] | None:
    """Return the only right value for a value of the wrong type, None if there is none."""
    if violation.keyword != "type" or not violation.path:
        return None
    found, key = reduce(getitem, violation.path, value), violation.path[-1]
    if key == "version" and type(found) is float and str(found) in MODULES:
        return str(found)
    if violation.wanted == ("array",) and key == "ports" and type(found) is str and _PORTS.fullmatch(found):
        return tuple(found.split(","))
    right = right_number(key, found, table_format)
    return right if _KINDS.get(type(right)) in violation.wanted else None


def _alike(
    value: Any, violation: Violation, known: dict[tuple[Any, ...], tuple[str, str]], shown: str | None
) -> tuple[str, str] | None:
    """Return message and hint for several values of one key that all have the same wrong type.

    Args:
        known: What the first value of each kind has set.
        shown: The right form of the value, if it follows from it.
    """
    found = reduce(getitem, violation.path, value)
    if violation.keyword != "type" or not violation.path:
        return None
    kind, key = _KINDS.get(type(found)), violation.path[-1]
    if type(key) is int and "object" in violation.wanted:
        return None  # An entry is not a number or a string itself, and has no name.
    said: tuple[str, str] | None = None
    if violation.wanted == ("array",):
        if kind == "string" and key in _LISTS_OF_TEXTS:
            said = f'"{key}" is a string', f"write each as a list of strings: {_as_list(found)}"
        elif _is_keyed(found):
            said = f'"{key}" is an object with entries under keys, not a list', _as_entries(key, found)
        elif shorter := _as_whole_entries(key, found):
            said = f'"{key}" is an object with entries under keys, not a list', shorter
    elif shown is not None and kind is None:
        form = (
            "as a string without the decimal point" if shown.startswith('"') else "without the decimal point"
        )
        said = (
            f'"{key}" is a decimal number, as spreadsheets write it',
            f"write each {form}: {found} as {shown}",
        )
    elif kind == "string":
        example = "" if shown is None else f': "{found[:40]}" as {shown}'
        said = f'"{key}" is a string', f"write each as a number, without quotes{example}"
    elif kind is not None:
        said = f'"{key}" is a {kind}', "write each as a string, in double quotes"
    return None if said is None else known.setdefault((key, said[0]), said)


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[,;|\s\[\]'\"]+", text[:1000]) if part]


def _as_list(text: str) -> str:
    """Return a text with several values as a JSON list of them."""
    parts = _parts(text)
    several = f', and "{parts[0][:40]},..." as ["{parts[0][:40]}", ...]' if len(parts) == 1 else ""
    return f"{quoted(text[:40])} as {as_json(parts[:8])}{several}"


#: What the keys of an object stand for that is in the place of a list, by the key of the list.
_ID_OF_ENTRY = {
    "server_list": "server_id", "device": "device_id", "devices": "device_id", "rank_list": "rank_id",
    "instance_list": "pod_name", "group_list": "group_name", "super_pod_list": "super_pod_id", "level_list": "net_layer",
}  # fmt: skip


def _as_entries(key: str | int, found: dict[str, Any]) -> str:
    """Return the hint on an object with entries under keys: the keys are the ids of entries without one."""
    first, entry = next(iter(found.items()))
    own = _ID_OF_ENTRY.get(str(key))
    is_number = own in _NUMBERS_OF_2_0
    is_id = own is not None and own not in entry and (not is_number or first.isdecimal())
    if not is_id:
        return f'write [ ] in place of its {{ }}, and remove the key and colon before each entry ("{first[:40]}": and so on)'
    quote = "" if key in ("rank_list", "level_list") else '"'
    return (
        f'write [ ] in place of its {{ }}, and make the key of each entry its {own}: in place of "{first[:40]}": {{ write '
        f'{{ "{own}": {quote}{first[:40]}{quote},'
    )


def _as_whole_entries(key: str | int, found: Any) -> str:
    """Return the hint on an object whose keys and values are parts of entries; "" for another one.

    Generators write ``{"10.0.0.1": [devices]}`` for servers, and ``{"0": "192.168.1.8"}`` for devices.
    """
    if type(found) is not dict or not found:
        return ""
    first, value = next(iter(found.items()))
    if key == "server_list" and all(type(one) is list for one in found.values()):
        own = f'"{first[:40]}": [ write {{ "server_id": "{first[:40]}", "device": ['
        return f"write [ ] in place of its {{ }}, and in place of {own}, with a }} behind its ]; so for each server"
    is_plain = all(type(one) is str and name.isdecimal() for name, one in found.items())
    if key == "device" and is_plain and not _parts(value)[1:]:
        own = f'"{first}": "{value[:40]}" write {{ "device_id": "{first}", "device_ip": "{value[:40]}", "rank_id": "N" }}'
        return f"write [ ] in place of its {{ }}, and in place of {own}, with its rank in place of N; so for each device"
    return ""


#: The message on all keys that a table lacks because its version is that of other lists.
_OF_ANOTHER_VERSION = '"rank_count" and "rank_list" are missing'


def _other_version(subject: DamagedInput, violation: Violation, table_format: str) -> str | None:
    """Return the hint on a table that has the list of another version: its version, or a new table for the product."""
    value = subject.value
    if violation.key is None or violation.path or violation.key in value:
        return None
    if (
        violation.key == "server_list"
        and isinstance(value.get("group_list"), list)
        and "rank_list" not in value
    ):
        return 'this is a table without a version (it has group_list): delete "version"'
    wanted = "rank_list" if table_format == "2.0" else "server_list"
    own = "server_list" if table_format == "2.0" else "rank_list"
    if wanted in value or not isinstance(value.get(own), list) or violation.key not in (wanted, "rank_count"):
        return None
    content = version_of_content(value)
    version = content[0] if content is not None else "2.0" if own == "rank_list" else "1.0"
    what = f"this is a table of version {version} (it has {own})"
    if version in subject.product.formats:
        return f'{what}: write "version": "{version}"'
    right = assumed_for(version)
    if subject.product_is_assumed:
        return (
            f'{what}: write "version": "{version}"; only if the machine is an {subject.product.title}, which does not read it, '
            f"{made_on_its_hosts(subject)}"
        )
    return (
        f"{what}, which {subject.product.title} does not read: {made_on_its_hosts(subject)}; only if the machine is an {right.title}, or "
        f'another one that reads {version}, write "version": "{version}" and check it with --product {right.name}'
    )


def _after_the_table(subject: DamagedInput, violation: Violation) -> str | None:
    """Return the hint to remove the bracket that closes the table before a key that is in the file."""
    document = subject.document
    if violation.key is None or violation.path or document is None or document.trailing is None:
        return None
    if f'"{violation.key}"'.encode() not in document.data[document.trailing :]:
        return None
    edit = explanation.of_rest(document)
    if edit is None:
        line = document.position(document.trailing).line
        return (
            f'the table ends too early: "{violation.key}" is behind its end, on or after line {line}, because a }} or ] before it is '
            "too much, or the beginning of an entry is missing; correct that first"
        )
    return f'{edit.hint}: it closes the table before "{violation.key}"'


def _misspelt(
    subject: DamagedInput, violation: Violation, key: str, alike: dict[tuple[Any, ...], tuple[str, str]]
) -> Finding:
    """Return the finding on a required key that is missing, because it is misspelt."""
    message, hint = f'"{violation.key}" is missing, and "{key}" looks like it', rename(key, violation.key)
    entries = reduce(getitem, violation.path, subject.value)[key]
    right_key: str | None = violation.key
    if violation.key == "status" and entries not in ("completed", "initializing") and type(entries) is str:
        hint = f'write "status": "completed" in place of "{key}": "{entries[:40]}"'
        right_key = None  # The other key alone would leave a value that HCCL waits for.
    elif not violation.path and (others := _other_keys(subject, key)):
        hint += (
            f", and the other keys with such names, too ({others}); `validate --fix` shows all of them, and "
            "`validate --fix --write` renames them"
        )
    elif violation.key == "device" and _lack_ranks(entries):
        hint += f', and give its entries the "rank_id" that they lack: {missing_ids.lacking_ranks(subject)} in the order of the file'
    said = alike.setdefault((violation.key, key), (message, hint))
    return Finding(
        message, (*violation.path, key), hint, at_key=True, right_key=right_key,
        alike=said if violation.path else None,
    )  # fmt: skip


def _by_shape(
    subject: DamagedInput, violation: Violation, known: dict[tuple[Any, ...], tuple[str, str]]
) -> Finding | None:
    """Return the finding on a required key that is missing, if the value under another key is what it stands for."""
    names, right = key_shapes.other_names(subject), violation.key or ""
    key = names.get(right)
    if key is None or key not in reduce(getitem, violation.path, subject.value):
        return None
    message = f'"{right}" is missing, and "{key}" has what belongs there'
    hint = ", ".join(f'"{own}" to "{one}"' for one, own in names.items())
    said = known.setdefault((right, key), (message, f"rename {hint}"))
    return Finding(
        message, (*violation.path, key), said[1], at_key=True, alike=said if violation.path else None
    )


def _elsewhere(subject: DamagedInput, violation: Violation, table_format: str) -> Finding | None:
    """Return the finding on a key that the table itself lacks, if it is in one other object, where HCCL ignores it."""
    key = violation.key
    if violation.path or key is None:
        return None
    holders = [
        one for one in with_other_keys(subject, table_format, {key}.__contains__)
        if key in one.value and key not in one.kind.keys
    ]  # fmt: skip
    if len(holders) != 1:
        return None
    return Finding(
        f'"{key}" is missing in the table itself: it is in {holders[0].kind.name}, where HCCL does not read it',
        (*holders[0].path, key),
        f"move it to {kinds_with(key, table_format)[0].name}",
        at_key=True,
    )


def _lack_ranks(entries: Any) -> bool:
    """Return whether a list has entries, and none of them has a key that stands for its rank."""
    if not isinstance(entries, list) or not entries:
        return False
    keys = {_folded(key) for one in entries if isinstance(one, dict) for key in one}
    return all(isinstance(one, dict) for one in entries) and not any("rank" in key for key in keys)


def _other_keys(subject: DamagedInput, misspelt: str) -> str:
    """Return other keys of the table that are known ones in another spelling, as a phrase; "" if there are few."""
    known = subject.violations.known_keys
    plain = {key.replace("_", "") for key in known}
    found, values = dict[str, None](), [subject.value]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            found.update(dict.fromkeys(key for key in value if key not in known))
        inner = value.values() if isinstance(value, dict) else value
        values += [one for one in inner if isinstance(one, (dict, list))]
    found.pop(misspelt, None)
    others = [key for key in sorted(found) if _folded(key).replace("_", "") in plain]
    return and_more(others, 4) if others else ""


def rename(key: str, right: str | None) -> str:
    """Return the hint to rename a key."""
    return f'rename "{key}" to "{right}"'


def near_key(value: Any, violation: Violation, known: frozenset[str]) -> str | None:
    """Return the only key of an object that looks like the missing key and is not a key of a table itself."""
    if violation.key is None:
        return None
    keys = reduce(getitem, violation.path, value)
    similar = [key for key in keys if key not in known and likeness(_folded(key), violation.key, _ALIKE)]
    if len(similar) > 1:  # deviceId is more like device_id than deviceIp.
        plain = violation.key.replace("_", "")
        similar = [key for key in similar if _folded(key).replace("_", "") == plain]
    return similar[0] if len(similar) == 1 else None


def _folded(key: str) -> str:
    """Return a key without what is often added to it: capitals, blanks, quotes, other forms of its signs."""
    if (meant := translated(key)) is not None:
        return meant
    plain = key if key.isascii() else look_alikes.plain(key)
    return plain.strip(" \t\"'\u201c\u201d").lower().replace("-", "_").replace(" ", "_")


def _own_id(subject: DamagedInput, violation: Violation) -> str | None:
    return missing_ids.hint_on(subject, violation, subject.violations.table_format)


def _with_own_value(value: Any, violation: Violation, otherwise: str | None) -> str | None:
    """Return the schema's hint, with the value in the document instead of the example value."""
    hint = violation.hint or ""
    advice, example, _ = hint.partition(f', for example "{violation.path[-1] if violation.path else ""}": ')
    found = reduce(getitem, violation.path, value) if example and violation.keyword == "type" else None
    return (
        f'{advice}: "{violation.path[-1]}": "{found}"'
        if type(found) is int and found >= 0
        else otherwise or _in_place(violation, reduce(getitem, violation.path, value))
    )


def _in_place(violation: Violation, found: Any) -> str | None:
    """Return the schema's hint for a value that is there, which is changed and not added."""
    hint = violation.hint
    if hint is not None and violation.key is not None and hint.startswith("list at most"):
        return f'add "{violation.key}", a list: `hccl-tools gen` on the host of this rank prints the entry'
    if hint is None or violation.keyword != "type":
        return hint
    if violation.wanted == ("array",) and type(found) is str and violation.path[-1] in _LISTS_OF_TEXTS:
        parts = _parts(found)
        return f"write a list of strings: {as_json(parts[:8])}" if parts else hint
    if violation.wanted == ("array",) and _is_keyed(found):
        return _as_entries(violation.path[-1], found)
    if violation.wanted == ("array",) and (shorter := _as_whole_entries(violation.path[-1], found)):
        return shorter
    if violation.wanted == ("array",) and type(found) is dict:
        return f"write [ before its {{ and ] after its }}: {hint}"
    return f"write {hint.removeprefix('add ')}" if hint.startswith("add ") else hint


def _is_keyed(found: Any) -> bool:
    """Return whether a value is an object that has the entries of a list as its values."""
    return type(found) is dict and bool(found) and all(type(one) is dict for one in found.values())


def message_of(value: Any, violation: Violation) -> str:
    """Return the message about a violation in a document."""
    if violation.keyword == "required":
        return f'"{violation.key}" is missing'
    last = violation.path[-1] if violation.path else "the document"
    name = f'"{last}"' if isinstance(last, str) else f"entry {last + 1} of {violation.path[-2]}"
    found = reduce(getitem, violation.path, value)
    if violation.keyword == "const":
        return f'{name} is "{found}"'
    if violation.keyword == "minItems":
        return f"{name} is empty"
    if violation.keyword == "maxItems":
        return f"{name} has too many entries ({len(found)})"
    return f"{name} is {_described(found)}"


def _described(found: Any) -> str:
    if found is None:
        return "null"
    if isinstance(found, bool):
        return f"the boolean {str(found).lower()}"
    if isinstance(found, (int, float)):
        return f"the number {found}"
    if isinstance(found, str):
        return f'the string "{found if len(found) <= _LONGEST_SHOWN else found[:_LONGEST_SHOWN] + "..."}"'
    if _is_keyed(found):
        return f"an object with {'entry' if len(found) == 1 else 'entries'} under keys, not a list"
    return "a list" if isinstance(found, list) else "an object"
