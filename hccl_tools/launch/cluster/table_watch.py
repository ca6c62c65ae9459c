"""Look whether the table changes while a pod waits for the others; see ``planning.moved_pod``."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.files import waiting
from hccl_tools.launch.planning import table_source
from hccl_tools.launch.planning.moved_pod import POLL_SECONDS, TableChangedError
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest


#: Seconds until a pod sees a new table: kubelet updates a ConfigMap once a minute, from a cache.
_NEW_TABLE_SECONDS = 120.0


def is_replaced(request: LaunchRequest, data: bytes | None) -> bool:
    """Wait for a table other than ``data``, and return whether there is one; at most as ``--wait`` says."""
    seconds = min(request.table.wait or 0.0, _NEW_TABLE_SECONDS)
    end = time.monotonic() + seconds
    watch = TableWatch(request, data, end)
    tell(f"hccl-tools: this may be the table of an earlier run: waiting for another, at most {seconds:g} s")
    try:
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(POLL_SECONDS, left))
            watch.look()
    except TableChangedError:
        tell("hccl-tools: the table has changed: this host checks the new one")
        return True
    return False


class TableWatch:
    """Looks from time to time whether the table is still the one with which a launch was prepared."""

    def __init__(self, request: LaunchRequest, data: bytes | None, until: float) -> None:
        self._request, self._data, self._until = request, data, until
        self._seen: tuple[int, ...] = ()
        self._next = time.monotonic() + POLL_SECONDS

    def look(self) -> None:
        """Look, if the last look was some seconds ago.

        Raises:
            TableChangedError: The table is another one, or is being written again.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + POLL_SECONDS
        if self._has_changed():
            raise TableChangedError(self._until)

    def _has_changed(self) -> bool:
        located = table_source.locate(self._request.table, os.environ)
        if located is None:
            return False
        seen = _state(located[0])
        if seen == self._seen:
            return False
        self._seen = seen
        if not waiting.look(located[0]).ready:
            return True
        variables = table_source.checked_in(self._request, os.environ)
        try:
            found = table_source.load_file(located[0], self._request.table, variables)
        except HcclToolsError:
            return True  # The next plan will report the error.
        return found.data != self._data


def _state(path: str) -> tuple[int, ...]:
    """Return what differs once a file has been written or replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
