"""Read messages of the user's own from a JSON file (``explain --knowledge FILE``)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import InputError, TableError
from hccl_tools.explain.knowledge import patterns, registry
from hccl_tools.explain.knowledge.message import FIELDS, Code, Message
from hccl_tools.formats import misfits
from hccl_tools.notation import bounded_file

if TYPE_CHECKING:
    from hccl_tools.formats.misfits import Misfit

#: Bytes of a file.
_LARGEST = 1 << 20
_ID = re.compile(r"[A-Z]{2,6}[0-9]{3}")
_SHORTEST_ANCHOR = 4


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
        json.dumps(value, ensure_ascii=False).encode()  # Half of a surrogate pair is not text.
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", hint=bounded_file.hint(error)) from error
    except (ValueError, RecursionError) as error:
        raise KnowledgeError(f"{path} is not JSON: {error}") from error
    if misfit := misfits.first(value, "knowledge"):
        raise KnowledgeError(_where(path, misfit), hint=misfit.hint or "see `hccl-tools schema knowledge`")
    found: dict[str, Message] = {}
    for number, record in enumerate(value["messages"], 1):
        message = _message(record, f"{path}: message {number}")
        if message.id in found or message.id in registry.messages():
            raise KnowledgeError(f"{path}: message {number}: the id {message.id} is used already")
        found[message.id] = message
    return list(found.values())


def _where(path: str, misfit: Misfit) -> str:
    """Return the message about a misfit, with the number of its record."""
    if len(misfit.path) < 2:
        return f"{path}: {misfit.sentence}"
    return f"{path}: message {int(misfit.path[1]) + 1}: {misfit._replace(path=misfit.path[2:]).sentence}"


def _message(record: dict[str, Any], where: str) -> Message:
    """Return one record as a message."""
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
