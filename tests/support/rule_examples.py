"""Runs the examples in the rules' docstrings.

``Base:`` names the table that is changed: format, servers x devices, product, ``pods N``, ``env A=B``. An
example is a list of steps: ``/pointer = JSON``, ``remove /pointer``, ``swap /a /b``, ``base 2x4``,
``product NAME``, ``text ...`` (the file's text), ``file NAME``, ``size N`` (bytes), or ``table`` (unchanged).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hccl_tools.products import DEFAULT_FOR_FORMAT, PRODUCTS
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.rules.registry import Rule

_FORMATS = ("1.0", "1.2", "2.0", "group_list", "lab")
_SIZES = {"1.0": (1, 2), "1.2": (1, 2), "2.0": (1, 2), "group_list": (1, 8), "lab": (1, 8)}


@dataclass
class Example:
    """What to validate, and for what."""

    value: Any
    product: str
    env: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    name: str = "table.json"

    def write(self, folder: Path) -> str:
        """Write the example as a file and return its name."""
        file = folder / self.name
        file.write_text(self.text if self.text is not None else json.dumps(self.value))
        return str(file)


def example(rule: Rule, which: str) -> Example:
    """Return the example of a docstring, ``Example`` or ``Instead``."""
    doc = rule.check.__doc__ or ""
    found = _base(rule, _line(doc, "Base") or "")
    steps = _line(doc, which)
    assert steps, f"{rule.facts.id} has no {which}:"
    if steps.startswith("text "):
        found.text = steps[5:]
        return found
    for step in steps.split("; "):
        _apply(found, step.strip(), rule)
    return found


def _line(doc: str, key: str) -> str | None:
    match = re.search(rf"^ *{key}: (.*)$", doc, re.MULTILINE)
    return match[1].strip() if match else None


def _base(rule: Rule, text: str) -> Example:
    words, _, variables = text.partition("env ")
    table_format = next((word for word in words.split() if word in _FORMATS), (rule.formats or ("1.0",))[0])
    product = next((word for word in words.split() if word in PRODUCTS), None)
    size = re.search(r"(\d+)x(\d+)", words)
    pods = re.search(r"pods (\d+)", words)
    servers, devices = (int(size[1]), int(size[2])) if size else _SIZES[table_format]
    value = table(table_format, servers, devices, int(pods[1]) if pods else 1)
    default = DEFAULT_FOR_FORMAT.get(table_format, "910a")
    env = dict(pair.split("=", 1) for pair in variables.split())
    return Example(value, product or default, env)


def _apply(found: Example, step: str, rule: Rule) -> None:
    verb, _, rest = step.partition(" ")
    if verb == "product":
        found.product = rest
    elif verb == "file":
        found.name = rest
    elif verb == "size":
        found.text = _of_size(found.value, int(rest))
    elif verb == "base":
        found.value = _base(rule, rest).value
    elif verb == "remove":
        holder, key = _holder(found.value, rest)
        if isinstance(holder, list) or key in holder:
            del holder[key]
    elif verb == "swap":
        (one, a), (other, b) = (_holder(found.value, pointer) for pointer in rest.split())
        one[a], other[b] = other[b], one[a]
    elif verb != "table":
        pointer, value = step.split(" = ", 1)
        holder, key = _holder(found.value, pointer)
        holder[key] = _json(value)


def _json(text: str) -> Any:
    if text.startswith("repeat "):
        _, letter, count = text.split()
        return json.loads(letter) * int(count)
    return json.loads(text)


def _holder(value: Any, pointer: str) -> tuple[Any, Any]:
    keys: list[Any] = [int(key) if key.isdecimal() else key for key in pointer.split("/")[1:]]
    for key in keys[:-1]:
        value = value[key]
    return value, keys[-1]


def _of_size(value: Any, size: int) -> str:
    empty = json.dumps({**value, "x": ""}, separators=(",", ":"))
    return json.dumps({**value, "x": "x" * (size - len(empty))}, separators=(",", ":"))
