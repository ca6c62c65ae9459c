"""Find messages by id, name, code or rule; records of the user are added to those of the package."""

from __future__ import annotations

from functools import cache
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.explain.knowledge.message import Message

#: The modules of codes: a message of theirs stands for all of its codes.
_CODES = ("codes", "cann_codes", "runtime", "acl_codes", "results")
#: The modules with records; of two messages of a line the earlier one counts.
_MODULES = (
    "starting",
    "connecting",
    "running",
    "table_parser",
    "containers",
    "environment",
    "peers",
    "serving",
    "frameworks",
    "launchers",
    "processes",
    "states",
    *_CODES,
)


@cache
def messages() -> Mapping[str, Message]:
    """Return all messages by id, the more specific ones first."""
    found: dict[str, Message] = {}
    for name in _MODULES:
        for message in import_module(f"hccl_tools.explain.knowledge.{name}").MESSAGES:
            found[message.id] = message
    return found


@cache
def codes() -> Mapping[str, Message]:
    """Return the message of each code: EI0006, 11, 507048; what the code means if the line says no more."""
    found: dict[str, Message] = {}
    for name in _CODES:
        for message in import_module(f"hccl_tools.explain.knowledge.{name}").MESSAGES:
            for code in message.codes:
                found.setdefault(code.code, message)
    return dict(sorted(found.items(), key=lambda item: (item[0].isdigit(), len(item[0]), item[0])))


def hccl_codes() -> Mapping[str, Message]:
    """Return the messages of the codes that HCCL and its driver print on the screen: EI, EJ, EL."""
    return {code: message for code, message in codes().items() if not code.isdigit()}


def with_code(code: str) -> list[Message]:
    """Return the messages that have a code, other than the one that stands for the code itself."""
    own = codes().get(code)
    return [
        message
        for message in messages().values()
        if message is not own and any(code == one.code for one in message.codes)
    ]


def find(name: str) -> list[Message]:
    """Return the messages with an id, an id that begins so (HCM2), a name or a code; [] if there is none."""
    wanted = name.strip().upper()
    if wanted in codes():
        return [codes()[wanted]]
    if len(wanted) < 4:
        return [] if wanted != "HCM" else list(messages().values())
    return [
        message
        for message in messages().values()
        if message.id.startswith(wanted) or message.name.upper() == wanted
    ]


def search(words: str) -> list[Message]:
    """Return the messages whose id, name, codes or texts contain all words, in any case and order."""
    wanted = words.lower().split()
    return [message for message in messages().values() if all(word in _text(message) for word in wanted)]


@cache
def _text(message: Message) -> str:
    parts = (message.id, message.name, message.meaning, message.remedy, message.example, *message.causes)
    return " ".join((*parts, *(code.code for code in message.codes))).lower()
