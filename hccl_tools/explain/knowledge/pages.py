"""The page of a message, for ``hccl-tools explain CODE`` and ``hccl-tools rules CODE``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain.knowledge.message import KINDS
from hccl_tools.explain.knowledge.registry import codes, messages, with_code

if TYPE_CHECKING:
    from hccl_tools.explain.knowledge.message import Message


def title(message: Message) -> str:
    """Return the code of a message, or its id, and its name."""
    own = next((code.code for code in message.codes if codes().get(code.code) is message), None)
    number = f"HcclResult {own}" if own is not None and own.isdigit() and len(own) < 3 else own
    return f"{number or message.id} {message.name}"


def page(message: Message, chinese: str = "") -> str:
    """Return the page of a message in Markdown, without the rules of ``validate``.

    Its Chinese line, if it is given, stands below the meaning.
    """
    own = next((code.code for code in message.codes if codes().get(code.code) is message), None)
    lines = [f"# {title(message)}", "", f"{_sentence(message.meaning)}"]
    lines += [f"= 中文: {chinese}", ""] if chinese else [""]
    if message.causes:
        lines += ["Causes, the most likely first:", "", *(f"* {cause}" for cause in message.causes), ""]
    lines += [f"What to do: {message.remedy}.", ""]
    lines += [f"* Id: {message.id}", f"* As evidence: {KINDS[message.kind]}"]
    lines += [f"* Codes: {_codes(message)}"] if own is None and message.codes else []
    if own is not None and (lead := with_code(own)):
        lines += [f"* Messages with this code: {', '.join(f'{one.id} {one.name}' for one in lead)}"]
    if message.explains:
        known = [messages()[one] for one in message.explains if one in messages()]
        lines += [f"* Explains: {', '.join(title(one).split()[0] for one in known)}"]
    lines += [f"* Source: {message.source}"]
    if message.example:
        lines += ["", "Example:", "", f"    {message.example}"]
    return "\n".join(lines)


def row(message: Message, width: int) -> tuple[str, str]:
    """Return the line of a message in a list: id, name, kind and codes, and the meaning."""
    shown = ",".join(dict.fromkeys(code.code for code in message.codes)) or "-"
    return f"{message.id}  {message.name:<{width}}  {message.kind:<7}  {shown:<20}", message.meaning


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _codes(message: Message) -> str:
    by_version: dict[str, list[str]] = {}
    for code in message.codes:
        by_version.setdefault(code.cann, []).append(code.code)
    texts = [
        ", ".join(found) + (f" (CANN {version}{' and older' if version == '8' else ''})" if version else "")
        for version, found in by_version.items()
    ]
    return "; ".join(texts)
