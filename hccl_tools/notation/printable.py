"""Escape text from tables, tools, other hosts and other users before it is printed on a terminal."""

from __future__ import annotations

import os
import re
import sys

from hccl_tools.notation import screen

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from typing import Any

#: What a terminal may interpret and JSON leaves as it is: control characters above those of ASCII, characters
#: that change the direction of text or have no width, halves of surrogate pairs.
_TERMINAL_CONTROL = "[\x7f-\x9f\u200b-\u200f\u061c\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"

#: What a GitHub runner takes for a command: the first at the beginning of a line, the second anywhere in it.
_WORKFLOW_COMMAND, _OLD_WORKFLOW_COMMAND = "::", "##["


def escaped(text: str, *, keep: str = "", ascii_only: bool = False) -> str:
    r"""Return a text without control sequences: characters that are not printable become ``\u001b``.

    In a GitHub workflow, a text is not a command for the runner either.

    Args:
        keep: Characters that are not escaped, such as a newline.

    >>> escaped("\x1b[31mred")
    '\\u001b[31mred'
    """
    if (_WORKFLOW_COMMAND in text or _OLD_WORKFLOW_COMMAND in text) and is_in_workflow():
        text = "\n".join(map(not_a_command, text.split("\n")))
    if text.isprintable() and (not ascii_only or text.isascii()):
        return text
    return "".join(
        char if char in keep or (char.isprintable() and (not ascii_only or char.isascii())) else _escape(char)
        for char in text
    )


def is_in_workflow() -> bool:
    """Return whether a GitHub runner reads the output of this process."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def not_a_command(line: str) -> str:
    r"""Return a line that a GitHub runner only prints, whatever file or host is named in it.

    >>> not_a_command(" ::error::a ##[group]b")
    ' \\u003a:error::a ##\\u005bgroup]b'
    """
    text = line.lstrip()
    # No command begins with a digit, but the IPv6 address of a host does: ::1.
    if text.startswith(_WORKFLOW_COMMAND) and not text[2:3].isdecimal():
        line = line[: -len(text)] + _escape(text[0]) + text[1:]
    return line.replace(
        _OLD_WORKFLOW_COMMAND, _OLD_WORKFLOW_COMMAND[:-1] + _escape(_OLD_WORKFLOW_COMMAND[-1])
    )


def one_line(text: str) -> str:
    r"""Return a text of another host without line breaks, after which it could pass for one of this host.

    >>> one_line("2 problems\n  - no NPU\n  - no table")
    '2 problems; no NPU; no table'
    """
    first, *rest = text.strip("\n").split("\n")
    return "; ".join([first, *(line.strip().removeprefix("- ") for line in rest if line.strip())])


def one_line_each(value: Any) -> Any:
    """Return a record of another host with each of its texts on one line."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, (list, tuple)):
        items = [one_line_each(item) for item in value]
        return items if isinstance(value, list) else getattr(type(value), "_make", tuple)(items)
    return value


def tell(*lines: str) -> None:
    """Print lines on standard error: notes, warnings and progress, with text of others in them, escaped.

    On a terminal, long lines are broken between words.
    """
    shown = screen.each_fitted(map(escaped, lines), screen.width(2))
    sys.stderr.write("".join(f"{line}\n" for line in shown))
    sys.stderr.flush()


def show_status(text: str) -> None:
    """Show a line of progress on the terminal of standard error, in place of the last one; "" removes it.

    The other lines on standard error go through ``tell``, whose stream escapes what moves the cursor.
    """
    sys.stderr.flush()
    try:
        os.write(2, f"\r\x1b[K{escaped(text)}".encode())
    except OSError:  # The terminal is gone.
        return


def json_escaped(text: str) -> str:
    r"""Return JSON without characters that a terminal interprets; it means the same.

    >>> json_escaped('"a\x9bb"')
    '"a\\u009bb"'
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_TERMINAL_CONTROL, lambda match: _escape(match[0]), text)


def on_stdout(text: str) -> str:
    """Return a text for standard output: as ``json_escaped`` on a terminal, else as it is."""
    return json_escaped(text) if sys.stdout is not None and sys.stdout.isatty() else text


def stdout_is_ascii() -> bool:
    """Return whether standard output may accept only ASCII."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("_", "-")
    return encoding not in {"utf-8", "utf8"}


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
