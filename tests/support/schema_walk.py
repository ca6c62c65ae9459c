"""Find the violations of a schema by a walk without ``jsonschema``: a yardstick of ``schema.Violations``."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from hccl_tools.formats.schema import RULE_OF, load
from hccl_tools.formats.shapes import Violation
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Path

    Note = Callable[[Any, Path, str, str | None, "Node"], None]

_TYPES: dict[str, frozenset[type]] = {
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "string": frozenset({str}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
}


class Node(NamedTuple):
    """The part of a schema that describes one value.

    Attributes:
        types: The allowed types; ``None`` for any.
        const: The only allowed string, if any.
        least: The minimum number of list entries.
        most: The maximum number of list entries.
        required: The required keys of an object, with the rule and the hint for each.
        properties: The nodes of an object's keys; keys without constraints are omitted.
        items: The node of the list entries; ``None`` for any.
        rules: The rule of each other keyword.
        is_leaf: Whether only the type is constrained.
    """

    types: frozenset[type] | None
    const: str | None
    least: int
    most: float
    required: dict[str, tuple[str, str | None]]
    properties: dict[str, Node]
    items: Node | None
    rules: dict[str, str]
    hint: str | None
    is_leaf: bool


@cache
def compiled(table_format: str) -> Node:
    """Return a format's schema in the form that ``walk`` follows."""
    schema = load(table_format)
    return _node(schema, schema["$defs"], {**RULE_OF, **schema.get("x-defaults", {})})


def _node(part: dict[str, Any], definitions: dict[str, Any], defaults: dict[str, str]) -> Node:
    names = part.get("type", [])
    types = frozenset().union(*(_TYPES[name] for name in ([names] if type(names) is str else names)))
    parts = {key: _resolved(below, definitions) for key, below in part.get("properties", {}).items()}
    properties = {key: _node(below, definitions, defaults) for key, below in parts.items() if "type" in below}
    rules = part.get("x-rules", {})
    missing = rules.get("required", {})
    required = {
        key: (missing.get(key, defaults["required"]), parts[key].get("x-hint"))
        for key in part.get("required", ())
    }
    items = None
    if "items" in part:
        items = _node(_resolved(part["items"], definitions), definitions, defaults)
    const, least, most = part.get("const"), part.get("minItems", 0), part.get("maxItems", float("inf"))
    return Node(
        types or None, const, least, most, required, properties, items, {**defaults, **rules},
        part.get("x-hint"), types.isdisjoint({dict, list}) and const is None,
    )  # fmt: skip


def _resolved(part: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    return found


def walk(value: Any, node: Node, path: Path, holder: Any, note: Note) -> None:
    """Call ``note`` for each violation in a value, in the order of the document.

    Args:
        node: The part of the schema for the value.
        holder: The object or list that contains the value; ``None`` for the whole document.
        note: Called with the object or list that has the fault, the path of the violation, its keyword, the
            missing key (``required``), and the node.
    """
    kind = type(value)
    if node.types is not None and kind not in node.types:
        note(holder, path, "type", None, node)  # other violations of this value are only consequences
        return
    if node.const is not None and value != node.const:
        note(holder, path, "const", None, node)
    if kind is dict:
        for key in node.required:
            if key not in value:
                note(value, path, "required", key, node)
        properties = node.properties
        for key in tuple(value):  # `note` may change the object
            below = properties.get(key)
            if below is not None and not (below.is_leaf and type(value[key]) in below.types):  # type: ignore[operator]
                walk(value[key], below, (*path, key), value, note)
    elif kind is list:
        if len(value) < node.least:
            note(holder, path, "minItems", None, node)
        elif len(value) > node.most:
            note(holder, path, "maxItems", None, node)
        if (inner := node.items) is not None:
            for index, item in enumerate(value):
                if not (inner.is_leaf and type(item) in inner.types):  # type: ignore[operator]
                    walk(item, inner, (*path, index), value, note)


class Violations:
    """The violations in a document: all are counted, and the first ones of each rule are kept.

    Attributes:
        kept: The violations in document order.
        counts: The number of violations by rule id.
        table_format: The format whose schema is violated.
        keys: The keys with invalid or missing values; ``None`` for an index of a list.
    """

    def __init__(self, value: Any, table_format: str, limit: int | None = None) -> None:
        """Validate a document; keep at most ``limit`` violations of each rule."""
        self.table_format = table_format
        self.kept: list[Violation] = []
        self.keys: set[str | None] = set()
        most = float("inf") if limit is None else limit
        # Local names, as a megabyte can have a million violations.
        kept, keys, counts = self.kept, self.keys, dict[str, int]()

        def note(_holder: Any, path: Path, keyword: str, key: str | None, node: Node) -> None:
            if key is None:
                rule_id, hint = node.rules[keyword], node.hint
                faulty = path[-1] if path else None
                keys.add(faulty if type(faulty) is str else None)
            else:
                rule_id, hint = node.required[key]
                keys.add(key)
            number = counts[rule_id] = counts.get(rule_id, 0) + 1
            if number <= most:
                kept.append(Violation(path, keyword, rule_id, key, hint))

        walk(value, compiled(table_format), (), None, note)
        self.counts = Counter(counts)
