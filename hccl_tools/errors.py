"""The exceptions of hccl-tools, each with the exit code of the command line."""

from __future__ import annotations

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Sequence


class HcclToolsError(Exception):
    """An error that the user can fix.

    Attributes:
        message: The fault; ``lines`` are part of it.
        head: The first line of the message. A line break in it comes from a name or a text of others.
        lines: Further lines, such as findings.
        hint: The remedy.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, lines: Sequence[str] = ()) -> None:
        self.message = "\n".join([message, *lines])
        super().__init__(self.message)
        self.head, self.lines = message, tuple(lines)
        self.hint = hint


class UsageError(HcclToolsError):
    """The call is wrong, for example an unreadable range or conflicting options."""

    exit_code = 2


class InputError(UsageError):
    """A file cannot be read: it is absent, a directory, unreadable, or larger than the limit."""


class AbsentFileError(InputError):
    """A file or folder does not exist."""


class TableError(HcclToolsError):
    """A rank table cannot be made as requested, or has errors although it must be valid."""


class DiscoveryError(HcclToolsError):
    """The devices or addresses of this host cannot be determined."""


class WriteError(HcclToolsError):
    """A file could not be written; an existing file is unchanged."""


class LaunchError(HcclToolsError):
    """A job is refused before its first rank starts."""

    exit_code = 125
