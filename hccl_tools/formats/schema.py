"""Find the violations of a format's JSON Schema in a document that the reader refused."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import UsageError
from hccl_tools.formats import MODULES
from hccl_tools.formats.shapes import Compiled
from hccl_tools.table.format_names import SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.shapes import Refused, Violation

#: The rule of a violated keyword, unless the schema's ``x-defaults`` or ``x-rules`` lists another rule.
RULE_OF = {
    "required": "HCC111",
    "type": "HCC112",
    "minItems": "HCC113",
    "maxItems": "HCC113",
    "const": "HCC108",
}
#: Schemas that are not those of a table: name -> the file's name.
OTHERS = {
    name: name
    for name in (
        "endpoints", "rootinfo", SERVICE, "validate", "doctor", "explain", "plan", "report", "knowledge",
        "scaling",
    )
}  # fmt: skip


def schema_text(table_format: str) -> str:
    """Return the text of a format's schema file, or of another published schema.

    Raises:
        UsageError: The format is unknown.
    """
    known = {**MODULES, **OTHERS}
    name = known.get(table_format)
    if name is None:
        raise UsageError(f'unknown format "{table_format}"', hint=f"formats: {', '.join(known)}")
    return (files("hccl_tools") / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")


@cache
def load(table_format: str) -> dict[str, Any]:
    """Return a format's schema, parsed."""
    schema: dict[str, Any] = json.loads(schema_text(table_format))
    return schema


@cache
def keys_of(table_format: str) -> frozenset[str]:
    """Return all keys that a format's schema describes."""
    found, parts = set[str](), list[Any]([load(table_format)])
    while parts:
        part = parts.pop()
        if type(part) is dict:
            found |= part.get("properties", {}).keys()
            parts += part.values()
        elif type(part) is list:
            parts += part
    return frozenset(found)


@cache
def compiled(table_format: str) -> Compiled:
    """Return a format's schema in the form that judges documents."""
    schema = load(table_format)
    return Compiled(schema, {**RULE_OF, **schema.get("x-defaults", {})})


class Violations:
    """The violations in a document: all are counted, and the first ones of each rule are kept.

    Attributes:
        kept: The violations in document order.
        counts: The number of violations by rule id.
        table_format: The format whose schema is violated.
        keys: The keys with invalid or missing values; ``None`` for an index of a list.
    """

    def __init__(
        self,
        value: Any,
        table_format: str,
        limit: int | None = None,
        *,
        left_out: Callable[[Violation], bool] | None = None,
    ) -> None:
        """Validate a document; keep at most ``limit`` violations of each rule.

        Violations for which ``left_out`` is true do not count.
        """
        self.table_format, self.limit = table_format, limit
        self.kept: list[Violation] = []
        self.keys: set[str | None] = set()
        most = float("inf") if limit is None else limit
        # Local names, as a megabyte can have a million violations.
        kept, keys, counts = self.kept, self.keys, dict[str, int]()

        def note(path: Path, refused: Refused) -> None:
            if not refused.keys <= keys:
                keys.update(refused.keys)
            if refused.is_itself:
                keys.add(path[-1] if path and type(path[-1]) is str else None)
            has_room = False
            for rule_id, number in refused.rules:
                before = counts.get(rule_id, 0)
                counts[rule_id] = before + number
                has_room = has_room or before < most
            if has_room:
                numbers = {rule_id: counts[rule_id] - number for rule_id, number in refused.rules}
                for one in refused.violations:
                    numbers[one.rule_id] += 1
                    if numbers[one.rule_id] <= most:
                        kept.append(one._replace(path=(*path, *one.path)))

        def note_others(path: Path, refused: Refused) -> None:
            for one in refused.violations:
                violation = one._replace(path=(*path, *one.path))
                if left_out is None or left_out(violation):
                    continue
                counts[one.rule_id] = counts.get(one.rule_id, 0) + 1
                if counts[one.rule_id] <= most:
                    kept.append(violation)

        compiled(table_format).judge(value, note if left_out is None else note_others)
        self.counts = Counter(counts)

    @property
    def known_keys(self) -> frozenset[str]:
        """All keys that the schema describes."""
        return keys_of(self.table_format)
