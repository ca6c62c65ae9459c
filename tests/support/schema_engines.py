"""What general validators find in a document: the yardsticks of ``schema.Violations``."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from hccl_tools.formats import schema
from hccl_tools.formats.shapes import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path

ENGINES = ("jsonschema", "jsonschema-rs")


def violations(value: Any, table_format: str, engine: str) -> list[Violation]:
    """Return what an engine finds, in the order of the places."""
    loaded = schema.load(table_format)
    found: dict[tuple[Path, str | None], Violation] = {}
    for path, keyword in _rust(value, loaded) if engine == "jsonschema-rs" else _python(value, loaded):
        for violation in _named(loaded, value, path, keyword):
            known = found.get((path, violation.key))
            if known is None or keyword == "type":  # a wrong type says all: drop what follows from it
                found[path, violation.key] = violation
    return in_order(found.values())


def in_order(found: Iterable[Violation]) -> list[Violation]:
    """Return violations by place: indices by number, keys by name; of one place by the missing key."""

    def place(violation: Violation) -> Any:
        keys = [(0, key, "") if isinstance(key, int) else (1, 0, key) for key in violation.path]
        return keys, violation.key or ""

    return sorted(found, key=place)


def _rust(value: Any, loaded: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    import jsonschema_rs

    for error in jsonschema_rs.validator_for(loaded).iter_errors(value):
        yield tuple(error.instance_path), str(error.schema_path[-1])


def _python(value: Any, loaded: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(loaded).iter_errors(value):
        yield tuple(error.absolute_path), str(error.validator)


def _named(loaded: dict[str, Any], value: Any, path: Path, keyword: str) -> Iterator[Violation]:
    fragment = _fragment_at(loaded, path)
    rules = fragment.get("x-rules", {})
    if keyword != "required":
        rule_id = rules.get(keyword, schema.RULE_OF[keyword])
        yield Violation(path, keyword, rule_id, None, fragment.get("x-hint"))
        return
    instance = reduce(getitem, path, value)
    for key in fragment["required"]:
        if key not in instance:
            rule_id = rules.get("required", {}).get(key, schema.RULE_OF["required"])
            hint = _fragment_at(loaded, (*path, key)).get("x-hint")
            yield Violation(path, keyword, rule_id, key, hint)


def _fragment_at(loaded: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the part of a schema that describes the values at a path; empty where none does."""
    fragment = loaded
    for key in path:
        below = fragment.get("items") if isinstance(key, int) else fragment.get("properties", {}).get(key)
        if below is None:
            return {}
        fragment = loaded["$defs"][below["$ref"].rpartition("/")[2]] if "$ref" in below else below
    return fragment
