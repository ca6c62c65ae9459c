"""Compare a table with the files of hosts, and copy it to them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from hccl_tools.gathering import coordinator
from hccl_tools.gathering.table_copy import CopyRequest, pack, unpack
from hccl_tools.records import NamedTuple
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.failures import Failure
    from hccl_tools.gathering.messages import SurveyAnswer
    from hccl_tools.gathering.options import GatherOptions
    from hccl_tools.gathering.table_copy import FileState

#: ``same``: the same bytes. ``equal``: the same fingerprint. The last three are not files.
State = Literal["same", "equal", "other", "none", "link", "directory", "special"]
#: How much larger than the table the file of a host may be to be read as a table: a small answer may unpack
#: to MOST_BYTES, which take minutes and gigabytes to check.
_MOST_TIMES_LARGER, _MOST_MORE = 4, 1 << 20


class Copy(NamedTuple):
    """A table, and its path on every host; ``mode`` is that of the file, if a framework requires one."""

    data: bytes
    fingerprint: str
    path: str
    mode: int | None = None

    @property
    def request(self) -> CopyRequest:
        """What asks a host for the file, and changes nothing."""
        return CopyRequest(self.path, hashlib.sha256(self.data).hexdigest(), mode=self.mode)


class HostFile(NamedTuple):
    """The file of a host.

    Attributes:
        fingerprint: Of another table; empty if the file is not a table.
        mode: Its mode, if it is a file.
        written: Whether it was written, or its mode was set.
    """

    host: str
    state: State
    sha256: str = ""
    fingerprint: str = ""
    mode: int = 0
    written: bool = False

    def lacks_mode(self, copy: Copy) -> bool:
        """Return whether the file is there with another mode than the framework requires."""
        return copy.mode is not None and self.state == "same" and self.mode != copy.mode


class Compared(NamedTuple):
    """The files of the hosts that answered, in the order of the hosts, and why others did not."""

    files: tuple[HostFile, ...]
    failures: tuple[Failure, ...]


def compare(hosts: Sequence[str], copy: Copy, options: GatherOptions) -> Compared:
    """Return what each host has at the path.

    Raises:
        GatheringError: No host can be reached.
        UsageError: The engine is missing.
    """
    return _asked(hosts, copy, copy.request, options)


def write(files: Sequence[HostFile], copy: Copy, options: GatherOptions, *, force: bool = False) -> Compared:
    """Copy the table to the hosts that lack it; a different file is replaced with ``force`` only.

    Raises:
        GatheringError: No host can be reached.
        UsageError: The engine is missing, or the table is too large for it.
    """
    known = tuple(sorted({one.sha256 for one in files if one.state == "equal"}))
    request = copy.request._replace(content=pack(copy.data), write=True, replaceable=known, force=force)
    return _asked([one.host for one in files], copy, request, options)


def _asked(hosts: Sequence[str], copy: Copy, request: CopyRequest, options: GatherOptions) -> Compared:
    gathered = coordinator.observe_hosts(hosts, request, options)
    known: dict[str, str] = {}
    files = tuple(_judged(one, one.file, copy, known) for one in gathered.answers if one.file is not None)
    return Compared(files, tuple(gathered.left_out))


def _judged(answer: SurveyAnswer, seen: FileState, copy: Copy, known: dict[str, str]) -> HostFile:
    """Return the file of a host; ``known`` has the fingerprints of contents, by digest."""
    if seen.kind != "file":
        return HostFile(answer.host, seen.kind)
    if seen.sha256 == copy.request.sha256:
        return HostFile(answer.host, "same", seen.sha256, copy.fingerprint, seen.mode, seen.written)
    own = known.get(seen.sha256) or _fingerprint(seen, _MOST_TIMES_LARGER * len(copy.data) + _MOST_MORE)
    known[seen.sha256] = own
    state: State = "equal" if own == copy.fingerprint else "other"
    return HostFile(answer.host, state, seen.sha256, own, seen.mode)


def _fingerprint(seen: FileState, most: int) -> str:
    """Return the fingerprint of the table in a file; "" for one of more than ``most`` bytes."""
    try:
        data = unpack(seen.content, most) if seen.content else b""
    except ValueError:
        return ""
    # It is another one if it was cut off, and another host may have a file with this digest.
    if hashlib.sha256(data).hexdigest() != seen.sha256:
        return ""
    table = validate(data).table if data else None
    return "" if table is None or not table.servers else fingerprint(table)
