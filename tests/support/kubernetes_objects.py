"""Objects of Kubernetes in tests: the documents of a YAML file, and the schemas of two custom resources."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

_FOLDER = Path(__file__).parents[1] / "data" / "kubernetes"
_SCHEMAS = {"vcjob": "volcano_job.schema.json", "acjob": "ascendjob.schema.json"}


def documents(text: str) -> list[dict[str, Any]]:
    """Return the documents of a YAML file."""
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(text))


def violations(kind: str, value: dict[str, Any]) -> list[str]:
    """Return what the API server would refuse in an object, or would drop without a word."""
    return [f"{error.json_path}: {error.message}" for error in _validator(kind).iter_errors(value)]


@cache
def _validator(kind: str) -> Any:
    schema = json.loads((_FOLDER / _SCHEMAS[kind]).read_text(encoding="utf-8"))
    _close(schema)
    schema["properties"]["metadata"] = True  # The API server knows it without the schema.
    return jsonschema.Draft202012Validator(schema)


def _close(schema: Any) -> None:
    """Refuse the fields that the API server drops: those that an object of the schema does not have."""
    if isinstance(schema, list):
        for one in schema:
            _close(one)
    if not isinstance(schema, dict):
        return
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema.setdefault("additionalProperties", False)
    for one in schema.get("properties", {}).values():
        _close(one)
    for key in ("items", "additionalProperties", "anyOf", "allOf"):
        _close(schema.get(key))
