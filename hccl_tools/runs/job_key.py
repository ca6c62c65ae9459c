"""The job key: the secret by which the hosts of a job that is started by hand authenticate each other.

This module finds the key and creates its file. It is below the planner, which removes the variables of the
key from the environment of the ranks.
"""

from __future__ import annotations

import contextlib
import os

from hccl_tools.errors import InputError, UsageError, WriteError
from hccl_tools.programs.environment import KEY_VARIABLES
from hccl_tools.records import NamedTuple
from hccl_tools.runs import secret_file

TYPE_CHECKING = False  # A launcher without a key must not pay for typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The variables with the key and with the path of its file. The ranks must not inherit them.
VARIABLES = KEY_VARIABLES
_KEY, _KEY_FILE = VARIABLES
#: The value 1 refuses jobs without a key.
REQUIRE_VARIABLE = "HCCL_TOOLS_REQUIRE_KEY"
#: The size of a key in bytes. A file contains it as hexadecimal digits.
_SIZE = 32
_DIGITS = frozenset("0123456789abcdefABCDEF")
_FORMAT = f"a key is {2 * _SIZE} hexadecimal digits; `hccl-tools key create` makes one"


class JobKey(NamedTuple):
    """A key of 32 bytes, and where it was found, as shown in messages."""

    secret: bytes
    source: str

    def __repr__(self) -> str:
        """Return a text without the secret, for tracebacks and logs."""
        return f"JobKey(source={self.source!r})"


def find(environ: Mapping[str, str]) -> JobKey | None:
    """Return the key of this host, or ``None`` if it has none.

    The first source that exists is used: HCCL_TOOLS_JOB_KEY, the file that HCCL_TOOLS_JOB_KEY_FILE names, the
    default file. A source that exists but cannot be used is an error: the next one may have another key.

    Raises:
        UsageError: A variable does not contain a key.
        InputError: A file cannot be read, is not safe from other users, or does not contain a key.
    """
    if (text := environ.get(_KEY)) is not None:
        return JobKey(_decoded(text, _KEY, UsageError), _KEY)
    if (named := environ.get(_KEY_FILE)) is not None:
        if not named:
            raise UsageError(f"{_KEY_FILE} is empty", hint="set it to the path of a job key, or unset it")
        return JobKey(_read(named, may_be_roots=True), f"{named} ({_KEY_FILE})")
    default = _default(environ)
    if default is None or not _exists(default):
        return None
    return JobKey(_read(default), _shown(default, environ))


def is_required(environ: Mapping[str, str]) -> bool:
    """Return whether jobs without a key are refused: HCCL_TOOLS_REQUIRE_KEY is 1.

    Raises:
        UsageError: The value is not 0 or 1.
    """
    value = environ.get(REQUIRE_VARIABLE, "")
    if value not in {"", "0", "1"}:
        raise UsageError(f'{REQUIRE_VARIABLE} is "{value}", not 0 or 1', hint="set it to 1 to require a key")
    return value == "1"


def path(environ: Mapping[str, str]) -> str:
    """Return the path of the default file, which may not exist.

    Raises:
        UsageError: This user has no home directory.
    """
    found = _default(environ)
    if found is None:
        raise UsageError("this user has no home directory", hint="set HOME or XDG_CONFIG_HOME")
    return found


def create(path: str, *, force: bool) -> None:
    """Write a new random key to a file of mode 0600 in a directory of mode 0700.

    Args:
        path: The file. Missing directories are created.
        force: Replace an existing file. Without ``force``, only the first of several processes succeeds.

    Raises:
        WriteError: The file exists, or cannot be written; an existing file is unchanged.
    """
    try:
        secret_file.write(path, os.urandom(_SIZE).hex().encode() + b"\n", replace=force)
    except WriteError as error:
        hint = error.hint
        if not force and os.path.lexists(path):
            hint = "--force replaces it; all other hosts then need the new key"
        raise WriteError(f"no job key is created: {error.message}", hint=hint) from None


def _default(environ: Mapping[str, str]) -> str | None:
    config = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):  # The XDG specification: a relative path is ignored.
        if (above := home(environ)) is None:
            return None
        config = os.path.join(above, ".config")
    return os.path.join(config, "hccl-tools", "job-key")


def home(environ: Mapping[str, str]) -> str | None:
    """Return the home directory of this user, None without one."""
    found = environ.get("HOME", "")
    if not found:
        import pwd  # noqa: PLC0415  (few processes have no HOME)

        with contextlib.suppress(KeyError):
            found = pwd.getpwuid(os.geteuid()).pw_dir
    return found if os.path.isabs(found) else None


def _shown(path: str, environ: Mapping[str, str]) -> str:
    above = (home(environ) or "").rstrip("/")
    return f"~{path[len(above) :]}" if above and path.startswith(f"{above}/") else path


def _subject(path: str) -> str:
    return f"the job key {path}"


def _exists(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):  # The HOME of a service may be /dev/null.
        return False
    except OSError as error:
        raise secret_file.unreadable(path, _subject(path), error) from None
    return True


def _read(path: str, *, may_be_roots: bool = False) -> bytes:
    data = secret_file.read(path, _subject(path), may_be_roots=may_be_roots)
    return _decoded(data.decode("latin-1"), _subject(path), InputError)


def _decoded(text: str, subject: str, error: type[UsageError]) -> bytes:
    """Return the bytes of a key; a message describes a wrong text, but does not show it."""
    digits = text.removesuffix("\n").removesuffix("\r")
    if not digits:
        raise error(f"{subject} is empty", hint=_FORMAT)
    if not _DIGITS.issuperset(digits):
        raise error(f"{subject} has characters that are not hexadecimal digits", hint=_FORMAT)
    if len(digits) != 2 * _SIZE:
        raise error(f"{subject} has {len(digits)} digits, not {2 * _SIZE}", hint=_FORMAT)
    return bytes.fromhex(digits)
