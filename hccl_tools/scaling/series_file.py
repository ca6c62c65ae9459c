"""The file of a series: its settings and one row per finished run. ``scaling report`` reads it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from hccl_tools.codec import DecodeError, decode, parse
from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import InputError, UsageError
from hccl_tools.notation import bounded_file
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.records import Count

SCHEMA_VERSION = 1
#: Bytes.
_LARGEST = 64 << 20


class _Row(NamedTuple):
    """What identifies a run of a series; a row has its figures as well."""

    machines: Count | None
    devices: Count
    repeat: Count
    failed: str | None = None


class _Series(NamedTuple):
    runs: tuple[_Row, ...]


class SeriesFile:
    """The rows of a series, written after every run.

    Attributes:
        rows: The finished runs, in their order.
    """

    def __init__(self, path: str, settings: dict[str, Any]) -> None:
        self.path, self._settings = path, settings
        self.rows: list[dict[str, Any]] = []
        self._is_new = False

    def open(self, *, resume: bool, force: bool) -> None:
        """Read the finished runs of an interrupted series, or check that a new file may be written.

        Raises:
            UsageError: The file exists and is not to be continued or replaced, or has another series.
            InputError: The file cannot be read.
        """
        if resume:
            self.rows = [row for row in self._read() if not row.get("failed")]
        elif os.path.lexists(self.path) and not force:
            raise UsageError(f"{self.path} exists", hint="--resume continues it, --force replaces it")
        self._is_new = not resume and not force

    def _read(self) -> list[dict[str, Any]]:
        try:
            found = parse(bounded_file.read(self.path, _LARGEST))
            decode(_Series, found, strict=False)
            rows: list[dict[str, Any]] = found.pop("runs")
        except OSError as error:
            reason = (error.strerror or "").lower()
            raise InputError(f"--resume: {self.path} cannot be read: {reason}",
                             hint="leave --resume out to begin") from None  # fmt: skip
        except DecodeError as error:
            raise InputError(
                f"--resume: {self.path} is not a file of `scaling run`: {error.message}"
            ) from None
        for key, value in self._document().items():
            if key != "runs" and found.get(key) != value:
                old, new = json.dumps(found.get(key)), json.dumps(value)
                raise UsageError(
                    f"--resume: {self.path} has another {key}: {old}, not {new}",
                    hint="repeat the options of the interrupted series, or write to another file with -o",
                )
        return rows

    def done(self, machines: int | None, devices: int, repeat: int) -> bool:
        """Return whether a run has finished."""
        return any(
            (row["machines"], row["devices"], row["repeat"]) == (machines, devices, repeat)
            for row in self.rows
        )

    def add(self, row: dict[str, Any]) -> None:
        """Add a run and write the file."""
        self.rows.append(row)
        self.write()

    def write(self) -> None:
        """Write the file completely.

        Raises:
            WriteError: The file cannot be written; an older file is unchanged.
        """
        write_atomically(self.path, [self.text()], create=self._is_new)
        self._is_new = False

    def text(self) -> str:
        """Return the content of the file: JSON with a line per setting and per run."""
        head = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in self._document().items()]
        runs = ",\n".join("    " + json.dumps(row) for row in self.rows)
        return "{\n" + ",\n".join(head) + ',\n  "runs": [' + (f"\n{runs}\n  " if runs else "") + "]\n}\n"

    def _document(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, **self._settings}
