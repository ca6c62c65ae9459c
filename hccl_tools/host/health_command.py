"""Run the user's own health check on this host (``launch --preflight-command``)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from typing import Any

from hccl_tools.programs.environment import without_key

#: The exit code of a command that was killed because it did not end in time, as for ``timeout``.
LATE = 124
#: Bytes of each stream that are read, from the end; characters of what is reported.
_MOST_READ, _MOST_SAID = 1 << 20, 500


def run(command: str, seconds: float) -> tuple[int, str]:
    """Run a command with the shell; return its exit code and why it failed, "" if it did not say.

    Its process group is killed after the time limit. The reason is that of ``doctor -f json`` if it prints
    that, else its last line.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            ["sh", "-c", command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
            env=without_key(os.environ),
        )  # fmt: skip
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = LATE
        finally:
            with suppress(ProcessLookupError):  # also what it has left behind
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if code == LATE:
            return code, f"it did not end within {seconds:g} s"
        printed, said = _end_of(output), _end_of(errors)
    if code == 0:
        return 0, ""
    reason = _of_doctor(printed) or _last_line(said) or _last_line(printed)
    return code, reason[:_MOST_SAID]


def _end_of(file: Any) -> str:
    size = os.fstat(file.fileno()).st_size
    data = os.pread(file.fileno(), _MOST_READ, max(0, size - _MOST_READ))
    return data.decode("utf-8", "replace")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _of_doctor(text: str) -> str:
    """Return what would stop the job in the JSON of ``doctor``, "" for another text."""
    try:
        findings = json.loads(text)["findings"]
        return "; ".join(
            "{}: {}".format(one["check"], one["message"]) for one in findings if one["consequence"] == "stops"
        )
    except (ValueError, KeyError, TypeError):
        return ""
