"""The exceptions of hccl-tools; each knows the exit code the command line ends with."""

from __future__ import annotations


class HcclToolsError(Exception):
    """Something the user can act on: what is wrong, and (``hint``) what to do about it."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HcclToolsError):
    """The call itself is wrong: an unreadable range, options that exclude each other."""

    exit_code = 2


class InputError(UsageError):
    """A file cannot be read at all: absent, a directory, no permission, above the size limit."""


class TableError(HcclToolsError):
    """A rank table cannot be what was asked for, or has errors where none may be."""


class DiscoveryError(HcclToolsError):
    """This host's devices or addresses cannot be found out."""


class WriteError(HcclToolsError):
    """A file could not be written; what was there before is still there."""


class LaunchError(HcclToolsError):
    """A job is refused before its first rank starts."""

    exit_code = 125
