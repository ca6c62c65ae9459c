"""A document against its format's JSON Schema: what the reader refuses, said place by place.

``jsonschema`` is the engine; ``jsonschema-rs`` takes over where it is installed. Both give the same
violations: only their pointer and keyword are used, never their texts.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path

#: Format -> file name in ``hccl_tools/schemas`` without its ending.
NAMES = {"1.0": "v1_0", "1.2": "v1_2", "2.0": "v2_0", "group_list": "group_list"}
#: The rule of a violated keyword, where the schema's ``x-rules`` names no other.
_RULE_OF = {
    "required": "HCC111",
    "type": "HCC112",
    "minItems": "HCC113",
    "maxItems": "HCC113",
    "const": "HCC108",
}


class Violation(NamedTuple):
    """One violated constraint: where, which rule, the missing key (``required``), and the schema's hint."""

    path: Path
    keyword: str
    rule_id: str
    key: str | None
    hint: str | None


def text(table_format: str) -> str:
    """Return a format's schema as its file stands.

    Raises:
        UsageError: There is no such format.
    """
    name = NAMES.get(table_format)
    if name is None:
        raise UsageError(f'there is no format "{table_format}"', hint=f"formats: {', '.join(NAMES)}")
    return (files("hccl_tools.schemas") / f"{name}.schema.json").read_text(encoding="utf-8")


@cache
def load(table_format: str) -> dict[str, Any]:
    """Return a format's schema, parsed."""
    schema: dict[str, Any] = json.loads(text(table_format))
    return schema


def violations(value: Any, table_format: str, *, engine: str | None = None) -> list[Violation]:
    """Return what a document violates, in the order of its places.

    Args:
        value: The parsed document.
        table_format: The format it is held against.
        engine: ``jsonschema`` or ``jsonschema-rs``; by default the faster that is installed.
    """
    run = _rust if engine == "jsonschema-rs" or (engine is None and has_fast_engine()) else _python
    schema = load(table_format)
    found: dict[tuple[Path, str | None], Violation] = {}
    for path, keyword in run(value, schema):
        for violation in _named(schema, value, path, keyword):
            known = found.get((path, violation.key))
            if known is None or keyword == "type":  # a wrong type says all: drop what follows from it
                found[path, violation.key] = violation
    return sorted(found.values(), key=lambda violation: _place(violation.path))


@cache
def has_fast_engine() -> bool:
    """Whether ``jsonschema-rs`` is installed (the ``[fast]`` extra)."""
    from importlib.util import find_spec  # noqa: PLC0415

    return find_spec("jsonschema_rs") is not None


def _rust(value: Any, schema: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    import jsonschema_rs  # noqa: PLC0415

    for error in jsonschema_rs.validator_for(schema).iter_errors(value):
        yield tuple(error.instance_path), str(error.schema_path[-1])


def _python(value: Any, schema: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    for error in Draft202012Validator(schema).iter_errors(value):
        yield tuple(error.absolute_path), str(error.validator)


def _named(schema: dict[str, Any], value: Any, path: Path, keyword: str) -> Iterator[Violation]:
    fragment = fragment_at(schema, path)
    rules = fragment.get("x-rules", {})
    if keyword != "required":
        yield Violation(path, keyword, rules.get(keyword, _RULE_OF[keyword]), None, fragment.get("x-hint"))
        return
    instance = value_at(value, path)
    for key in fragment["required"]:
        if key not in instance:
            rule_id = rules.get("required", {}).get(key, _RULE_OF["required"])
            yield Violation(path, keyword, rule_id, key, fragment_at(schema, (*path, key)).get("x-hint"))


def fragment_at(schema: dict[str, Any], path: Iterable[str | int]) -> dict[str, Any]:
    """Return the part of a schema that describes the values at a path; empty where none does."""
    fragment = schema
    for key in path:
        below = fragment.get("items") if isinstance(key, int) else fragment.get("properties", {}).get(key)
        if below is None:
            return {}
        fragment = schema["$defs"][below["$ref"].rpartition("/")[2]] if "$ref" in below else below
    return fragment


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """Return the value at a path of a parsed document."""
    for key in path:
        value = value[key]
    return value


def _place(path: Path) -> list[tuple[int, str | int]]:
    """Return a key that sorts paths: indices by number, keys by name."""
    return [(0, key) if isinstance(key, int) else (1, key) for key in path]
