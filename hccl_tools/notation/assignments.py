"""Read assignments of variables, ``NAME=VALUE``, from a command line or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation import bounded_file

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Bytes.
_LARGEST = 1 << 20


def parse_assignments(texts: Iterable[str], *, where: str) -> dict[str, str]:
    """Read ``K=V`` texts from a command line or a file.

    Raises:
        UsageError: A text has no ``=`` or no name before it.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or any(letter.isspace() for letter in name.strip()):
            raise UsageError(
                f'{where}: "{text}" is not NAME=VALUE', hint="write a variable as NAME=VALUE: --env GLOG_v=2"
            )
        found[name.strip()] = value
    return found


def read_environment_file(path: str) -> dict[str, str]:
    """Read a file of ``NAME=VALUE`` lines; blank lines, ``#`` lines and ``export`` are ignored.

    Outer quotes and blanks around the ``=`` are not part of the value.

    Raises:
        UsageError: The file cannot be read, or a line is not an assignment; the message names the line.
    """
    try:
        # Windows writes a byte order mark.
        lines = bounded_file.read(path, _LARGEST).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"--env-file {path}: {reason}", hint=bounded_file.hint(error)) from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        assignment = text.removeprefix("export ").strip()
        for name, value in parse_assignments([assignment], where=f"{path}:{number}").items():
            inner = value.strip()
            quoted = len(inner) >= 2 and inner[0] == inner[-1] and inner[0] in "\"'"
            found[name] = inner[1:-1] if quoted else inner
    return found
