"""Lines of untrusted output: escaped, each with the name of its source, and up to a limit.

An escape sequence, a line that looks like one of the launcher's, or output without end must not reach the
terminal.
"""

from __future__ import annotations

from hccl_tools.notation.printable import escaped

#: Bytes of a host without a rank that is shown, of an engine, and of ssh about a host.
MOST_SAID = 1 << 16
#: The beginning of a line of the launcher.
OURS = b"hccl-tools: "
_LEFT_OUT = b"the rest of its output is left out"


class NamedLines:
    """What one source writes: a host, or an engine.

    Attributes:
        is_cut: Whether something was left out.
    """

    def __init__(self, name: str, most: int = MOST_SAID) -> None:
        """``most`` is the limit on all lines, in bytes."""
        self._name, self._room = name, most
        self._rest = b""
        self.is_cut = False

    def take(self, data: bytes) -> bytes:
        """Return the lines to show that are complete with this data, which is empty at the end."""
        if self.is_cut:
            return b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data or len(self._rest) > self._room:
            lines, self._rest = [*lines, self._rest], b""
        shown = b"".join(self._named(line) for line in lines if line)
        if len(shown) > self._room:
            self.is_cut = True
            shown = _fitting(shown, self._room) + self._named(_LEFT_OUT)
        self._room -= len(shown)
        return shown

    def _named(self, line: bytes) -> bytes:
        text = escaped(line.removesuffix(b"\r").decode(errors="replace")).encode(errors="replace")
        own = beginning(self._name)
        return own + text.removeprefix(OURS).removeprefix(own.removeprefix(OURS)) + b"\n"


def beginning(name: str) -> bytes:
    """Return how the lines of a source begin."""
    return OURS + name.encode(errors="replace") + b": "


def _fitting(lines: bytes, most: int) -> bytes:
    """Return the lines that fit, and of a first line that does not fit its beginning."""
    kept = lines[:most]
    whole = kept[: kept.rfind(b"\n") + 1]
    return whole or kept.decode(errors="ignore").encode() + b"\n"
