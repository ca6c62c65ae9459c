"""The exceptions of hccl-tools, each with the exit code of the command line."""

from __future__ import annotations


class HcclToolsError(Exception):
    """An error that the user can fix: ``message`` describes the fault, ``hint`` the remedy."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HcclToolsError):
    """The call is wrong, for example an unreadable range or conflicting options."""

    exit_code = 2


class InputError(UsageError):
    """A file cannot be read: it is absent, a directory, unreadable, or larger than the limit."""


class TableError(HcclToolsError):
    """A rank table cannot be made as requested, or has errors although it must be valid."""


class DiscoveryError(HcclToolsError):
    """The devices or addresses of this host cannot be determined."""


class WriteError(HcclToolsError):
    """A file could not be written; an existing file is unchanged."""


class LaunchError(HcclToolsError):
    """A job is refused before its first rank starts."""

    exit_code = 125
