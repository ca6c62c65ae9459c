"""The envelope of SARIF 2.1.0: results one per line, then the rules that they name.

Source: OASIS "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hccl_tools.records import NamedTuple
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Rule(NamedTuple):
    """A rule of the log; ``level`` is SARIF's ``error``, ``warning`` or ``note``."""

    id: str
    name: str
    title: str
    why: str
    source: str
    level: str
    properties: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the rule as a ``reportingDescriptor``."""
        return {
            "id": self.id,
            "name": self.name,
            "shortDescription": {"text": self.title or self.name.replace("-", " ")},
            **({"fullDescription": {"text": self.why}} if self.why else {}),
            # No helpUri: the pages of the rules have no public address.
            "help": {"text": f"`hccl-tools rules {self.id}` explains this rule. Source: {self.source}"},
            "defaultConfiguration": {"level": self.level},
            "properties": dict(self.properties),
        }


class Result(NamedTuple):
    """A result: ``fields`` has what follows its rule and level."""

    rule: Rule
    level: str
    text: str
    fields: Mapping[str, Any]


def log(results: Iterable[Result], properties: Mapping[str, Any]) -> Iterator[str]:
    """Yield the log piece by piece; ``properties`` are those of the run, read after the last result."""
    encode = json.JSONEncoder().encode
    rules: dict[str, tuple[int, Rule]] = {}
    head = {"$schema": _SCHEMA, "version": "2.1.0"}
    yield f'{encode(head)[:-1]}, "runs": [{{"columnKind": "unicodeCodePoints", "results": ['
    separator = "\n  "
    for one in results:
        index, _ = rules.setdefault(one.rule.id, (len(rules), one.rule))
        begin = {
            "ruleId": one.rule.id, "ruleIndex": index, "level": one.level, "message": {"text": one.text}
        }  # fmt: skip
        yield separator + encode({**begin, **one.fields})
        separator = ",\n  "
    described = [rule.as_json() for _, rule in rules.values()]
    tool = {"driver": {"name": "hccl-tools", "version": __version__, "rules": described}}
    more = f', "properties": {encode(dict(properties))}' if any(properties.values()) else ""
    yield f'\n], "tool": {encode(tool)}{more}}}]}}\n'


def uri(file: str) -> str:
    """Return a file name as a relative reference, or as a ``file:`` URI if it is absolute."""
    try:
        quoted = quote(os.fsencode(file))
    except UnicodeEncodeError:  # not a file name on this machine
        quoted = quote(file.encode(errors="replace"))
    return f"file://{quoted}" if file.startswith("/") else quoted
