"""Read messages of the user's own from a JSON file (``explain --knowledge FILE``)."""

from __future__ import annotations

import json
import re
from typing import Any

from hccl_tools.errors import InputError, TableError
from hccl_tools.knowledge import patterns, registry
from hccl_tools.knowledge.message import FIELDS, KINDS, Code, Message
from hccl_tools.notation import bounded_file

#: Bytes of a file, and records in it.
_LARGEST = 1 << 20
_MOST_RECORDS = 1000
_ID = re.compile(r"[A-Z]{2,6}[0-9]{3}")
_SHORTEST_ANCHOR = 4
_TEXTS = ("id", "name", "kind", "meaning", "remedy", "anchor", "example")
_OPTIONAL = ("pattern", "source")
_LISTS = ("codes", "causes", "explains", "rules")


class KnowledgeError(TableError):
    """A file with messages is wrong; the message names the record and the fault."""

    exit_code = 2


def load(path: str) -> list[Message]:
    """Return the messages in a file: ``{"messages": [{"id": "SITE001", ...}]}``.

    Raises:
        InputError: The file cannot be read.
        KnowledgeError: It is not as described; a pattern that may take forever is such a fault.
    """
    try:
        value = json.loads(bounded_file.read(path, _LARGEST))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise KnowledgeError(f"{path} is not JSON: {error}") from error
    records = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(records, list) or len(records) > _MOST_RECORDS:
        raise KnowledgeError(
            f"{path} has no list of at most {_MOST_RECORDS:,} messages",
            hint='the form is {"messages": [{"id": "SITE001", ...}]}; see docs/explain.md',
        )
    found: dict[str, Message] = {}
    for number, record in enumerate(records, 1):
        message = _message(record, f"{path}: message {number}")
        if message.id in found or message.id in registry.messages():
            raise KnowledgeError(f"{path}: message {number}: the id {message.id} is used already")
        found[message.id] = message
    return list(found.values())


def _message(record: Any, where: str) -> Message:
    """Return one record as a message."""
    if not isinstance(record, dict):
        raise KnowledgeError(f"{where} is not an object")
    known = {*_TEXTS, *_OPTIONAL, *_LISTS}
    if unknown := sorted(record.keys() - known):
        raise KnowledgeError(f'{where} has an unknown key "{unknown[0]}"', hint=f"keys: {', '.join(known)}")
    for key in (*_TEXTS, *_OPTIONAL):
        if not isinstance(record.get(key, "" if key in _OPTIONAL else None), str):
            raise KnowledgeError(f"{where} has no text for {key}")
    for key in _LISTS:
        if not isinstance(record.get(key, []), list) or not all(
            isinstance(one, str) for one in record.get(key, [])
        ):
            raise KnowledgeError(f"{where}: {key} is not a list of texts")
    message = Message(
        record["id"], record["name"], record["kind"], record["meaning"], record["remedy"],
        record["anchor"].encode(), record.get("pattern", "").encode(),
        tuple(Code(code) for code in record.get("codes", [])),
        tuple(record.get("causes", [])), tuple(record.get("explains", [])), tuple(record.get("rules", [])),
        source=record.get("source", ""), example=record["example"],
    )  # fmt: skip
    if fault := _fault(message):
        raise KnowledgeError(f"{where}: {fault}")
    return message


def _fault(message: Message) -> str:
    """Return what is wrong with a record, "" if nothing is."""
    if not _ID.fullmatch(message.id):
        return f'the id "{message.id}" is not 2 to 6 capital letters and 3 digits'
    if message.kind not in KINDS:
        return f'the kind "{message.kind}" is none of {", ".join(KINDS)}'
    if len(message.anchor) < _SHORTEST_ANCHOR:
        return f"the anchor has fewer than {_SHORTEST_ANCHOR} bytes"
    if problem := patterns.problem(message.pattern, most_repetitions=patterns.MOST_OF_USERS):
        return f"the pattern cannot be used: {problem}"
    groups = re.compile(message.pattern).groupindex
    if unknown := sorted(groups.keys() - FIELDS.keys()):
        return f'the pattern names a field "{unknown[0]}"; the fields are {", ".join(FIELDS)}'
    if message.anchor not in message.example.encode():
        return "the example does not contain the anchor"
    return ""
