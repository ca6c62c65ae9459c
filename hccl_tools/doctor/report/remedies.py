"""``doctor --emit-remedies``: a shell script per host with the commands for its findings; nothing is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import WriteError
from hccl_tools.notation.file_part import file_part
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.findings import Examination, HostFinding

#: Shellcheck's remarks on quoted values that look like expressions, and are meant as they are.
_HEAD = """\
#!/bin/sh
# shellcheck disable=SC1003,SC1112,SC2016,SC2088
# Remedies for {host}, by `hccl-tools doctor`. Nothing was run. Read each command before you run it there;
# most need root. A finding without a command is a comment.
"""
_MODE = 0o755


def scripts(result: Examination) -> dict[str, str]:
    """Return the script of each host that has findings."""
    found: dict[str, list[HostFinding]] = {}
    for one in result.findings:
        for host in one.hosts:
            found.setdefault(host, []).append(one)
    return {host: script(host, found[host]) for host in result.hosts if host in found}


def script(host: str, findings: list[HostFinding]) -> str:
    """Return the script of one host."""
    return _HEAD.format(host=escaped(host, ascii_only=True)) + "".join(
        line + "\n" for one in findings for line in _lines(one)
    )


def write(folder: str, found: dict[str, str]) -> list[str]:
    """Write each script to ``remedies-HOST.sh`` in a folder, which is made if needed; return the files.

    Raises:
        WriteError: The folder or a file cannot be written.
    """
    try:
        os.close(links.make_folders(folder))
    except links.ForeignLinkError as error:
        raise WriteError(
            f"--emit-remedies {folder}: {error.clause}", hint="name a folder of your own"
        ) from None
    except OSError as error:
        raise WriteError(
            f"--emit-remedies {folder}: {(error.strerror or str(error)).lower()}", hint="name a folder"
        ) from None
    # Most commands need root: who owned an older file of the name must not own the script.
    return [
        write_atomically(Path(folder, file_name(host)), [text], mode=_MODE, keep_owner=False)
        for host, text in found.items()
    ]


def file_name(host: str) -> str:
    """Return the name of the script of a host; characters such as a slash are percent-encoded."""
    return f"remedies-{file_part(host)}.sh"


def _lines(one: HostFinding) -> Iterator[str]:
    yield ""
    place = f" ({one.place})" if one.place else ""
    yield f"# {one.consequence}[{one.check}] {escaped(one.message + place, ascii_only=True)}"
    if one.remedy:
        yield f"#   help: {escaped(one.remedy, ascii_only=True)}"
    for command in one.commands:
        # A control character of a quoted value would act on the terminal that shows the script.
        yield command if command.isprintable() else f"#   not shown as a command: {escaped(command)}"
