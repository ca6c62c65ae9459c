"""Find the first value that does not fit a published schema, in JSON that a user hands over."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from hccl_tools.codec import shown
from hccl_tools.formats.schema import RULE_OF, load
from hccl_tools.formats.shapes import Compiled
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.shapes import Refused, Violation

_NOUNS = {
    "array": "a list", "boolean": "true or false", "integer": "a whole number", "number": "a number",
    "object": "an object", "string": "text",
}  # fmt: skip
_COMPARED = {
    "minimum": "less than", "maximum": "more than", "exclusiveMinimum": "not more than",
    "exclusiveMaximum": "not less than",
}  # fmt: skip


class Misfit(NamedTuple):
    """A value that does not fit: its place, a clause about it, and what the schema advises."""

    path: Path
    clause: str
    hint: str | None

    @property
    def sentence(self) -> str:
        """The place and the clause: ``causes[0].rank: "x" is not a whole number``."""
        where = "".join(f"[{_key(key)}]" if _is_index(key) else f".{key}" for key in self.path).lstrip(".")
        return f"{where}: {self.clause}" if where else self.clause


def first(value: Any, name: str, *, of_any_release: bool = False) -> Misfit | None:
    """Return the first value that does not fit a published schema, ``None`` if all do.

    Args:
        name: The name of the schema.
        of_any_release: Whether keys may be missing or unknown, as in what another release wrote.
    """
    found: list[Misfit] = []

    def note(path: Path, refused: Refused) -> None:
        if not found:
            violation = refused.violations[0]
            path = (*path, *violation.path)
            found.append(Misfit(path, _clause(value, path, violation), violation.hint))

    try:
        _compiled(name, of_any_release).judge(value, note)
    except RecursionError:
        return Misfit((), "this is nested too deeply", None)
    return found[0] if found else None


@cache
def _compiled(name: str, of_any_release: bool) -> Compiled:
    schema = load(name)
    return Compiled(_open(schema) if of_any_release else schema, RULE_OF)


def _open(part: Any) -> Any:
    """Return a schema that neither requires keys nor refuses unknown ones."""
    if isinstance(part, list):
        return [_open(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    return {
        # The names of keys and definitions are not keywords.
        key: {name: _open(below) for name, below in inner.items()}
        if key in {"properties", "$defs"}
        else _open(inner)
        for key, inner in part.items()
        if key != "required" and not (key == "additionalProperties" and inner is False)
    }


def _clause(document: Any, path: Path, violation: Violation) -> str:
    value: Any = document
    for key in path:
        value = value[key]
    keyword, wanted = violation.keyword, violation.wanted
    if keyword == "required":
        return f"{violation.key} is missing"
    if keyword == "type":
        return f"{shown(value)} is not {' or '.join(_NOUNS[name] for name in wanted if name != 'null')}"
    if keyword == "enum":
        return f"{shown(value)} is none of {', '.join(map(str, wanted))}"
    if keyword == "const":
        return f"{shown(value)} is not {shown(wanted)}"
    if keyword in _COMPARED:
        return f"{shown(value)} is {_COMPARED[keyword]} {wanted}"
    if keyword == "pattern":
        return f"{shown(value)} does not match {wanted}"
    if keyword == "additionalProperties" and wanted:
        return f"{shown(wanted[0])} is not a known key"
    if keyword == "minItems":
        return "the list is empty" if not value else f"the list has {len(value)} values, fewer than {wanted}"
    if keyword == "maxItems":
        return f"the list has {len(value):,} values, more than {wanted:,}"
    return f'{shown(value)} does not fit the schema ("{keyword}")'


def _is_index(key: str | int) -> bool:
    return isinstance(key, int) or not key.isidentifier()


def _key(key: str | int) -> str:
    return str(key) if isinstance(key, int) else shown(key)
