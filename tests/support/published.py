"""Check real files and answers against the published schemas, and read them."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from hccl_tools.formats.schema import load

if TYPE_CHECKING:
    from pathlib import Path


def read(name: str, path: Path) -> dict[str, Any]:
    """Return the JSON of a file for which ``hccl-tools schema NAME`` holds."""
    found: dict[str, Any] = checked(name, json.loads(path.read_text(encoding="utf-8")))
    return found


def checked(name: str, value: Any) -> Any:
    """Return a value for which a schema holds, and each key of which the schema describes."""
    assert faults(name, value) == []
    return value


def faults(name: str, value: Any) -> list[str]:
    """Return what does not fit a schema, or is not described in it: the place, and the reason."""
    return [f"{error.json_path}: {error.message}" for error in _validator(name).iter_errors(value)]


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = closed(load(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def closed(part: Any) -> Any:
    """Return a schema that allows described keys only: the schemas allow keys of new releases."""
    if isinstance(part, list):
        return [closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    # The names of keys and definitions are not keywords.
    inner = {
        key: {name: closed(below) for name, below in value.items()}
        if key in {"properties", "$defs"}
        else closed(value)
        for key, value in part.items()
    }
    return {"additionalProperties": False, **inner} if "properties" in part else inner
