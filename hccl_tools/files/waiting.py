"""Wait for a table that an operator or platform has not completed yet.

Volcano, ModelArts and the Ascend operator first write the table with status ``initializing`` or with an empty
group, and complete it as pods start. ``read_file`` handles the change of a ConfigMap's symbolic link
``..data``; this module also waits for a file that does not exist yet.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from hccl_tools.document.document import Document
from hccl_tools.document.reading import is_stream, read_file
from hccl_tools.errors import AbsentFileError, InputError, TableError
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.notation.phrases import and_more
from hccl_tools.records import NamedTuple
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds between two reads.
_POLL_SECONDS = 1.0
#: Seconds after which an unchanged state is reported again.
_REPEAT_SECONDS = 60.0
#: The problems of a file that is being written in place.
_HALF_WRITTEN = frozenset({"cut off", "empty file"})
_NUMBERED = re.compile(r"(|.*[^\d\n])(\d+)")
#: Names, and groups that are not complete, in a line; and characters of a name.
_SHOWN, _LONGEST_NAME = 8, 256
#: The highest number of entries whose names are compared; HCCL has no larger job.
_MOST_NAMED = 1 << 16


class State(NamedTuple):
    """Whether a table is ready, else the reason and the missing entries as a phrase."""

    ready: bool
    why: str = ""


def wait(path: str, *, seconds: float, report: Callable[[str], None]) -> None:
    """Wait until the table is ready, or has a fault that waiting cannot fix.

    Args:
        path: The file, which need not exist yet. Standard input (``-``), pipes, and what kubectl printed are
            ready at once.
            A copy of a ConfigMap whose table is not complete does not change: this is reported.
        seconds: The time limit.
        report: Called with one line when the state changes, and once a minute.

    Raises:
        TableError: The table is not ready after the time limit; the message lists the missing entries.
    """
    path, _ = config_maps.split(path)
    if is_stream(path):
        return
    if _is_unfinished_copy(path):
        report(
            f"note: {path} is a copy of a ConfigMap and does not change: `--wait` is for the file "
            "of the table in a pod"
        )
        return
    began = time.monotonic()
    reported, reported_at = "", began
    while not (state := look(path)).ready:
        now = time.monotonic()
        if now - began >= seconds:
            raise TableError(
                f"{path} is not ready after {seconds:g} s: {state.why}",
                hint="check the pods that are missing (`kubectl get pods`) and the log of what writes the "
                "table, such as ascend-operator; or wait longer",
            )
        if state.why != reported or now - reported_at >= _REPEAT_SECONDS:
            report(f"waiting for {path}: {state.why}")
            reported, reported_at = state.why, now
        time.sleep(min(_POLL_SECONDS, max(0.01, began + seconds - now)))


def _is_unfinished_copy(path: str) -> bool:
    """Return whether a file is what kubectl printed, with a table in it that is not ready."""
    try:
        document = Document.parse(read_file(path), path)
    except InputError:
        return False
    if not config_maps.is_wrapper(document):
        return False
    if document.problem is not None:
        return b"initializing" in document.data  # YAML
    tables = [data for entry in config_maps.entries(document.value) if (data := entry.decoded()) is not None]
    return not all(state_of(Document.parse(data, path).value).ready for data in tables)


def look(path: str) -> State:
    """Return whether the table in a file is ready now."""
    try:
        document = Document.parse(read_file(path), path)
    except AbsentFileError:
        return State(ready=False, why="the file does not exist yet")
    except InputError:
        return State(ready=True)  # reading it again will report the error
    if document.problem is not None:
        if document.problem.kind in _HALF_WRITTEN:
            return State(ready=False, why=f"it is incomplete ({document.problem.message})")
        return State(ready=True)
    return state_of(document.value)


def state_of(value: Any) -> State:
    """Return whether a parsed table is ready: its status is completed and no list is empty."""
    if not isinstance(value, dict):
        return State(ready=True)
    status = value.get("status")
    missing = _missing(value)
    if status == "initializing":
        return State(ready=False, why=f'its status is "initializing"{"; " + missing if missing else ""}')
    if status in ("completed", None) and _is_empty(value):
        return State(ready=False, why=missing or "it lists no devices yet")
    return State(ready=True)


def _is_empty(value: dict[str, Any]) -> bool:
    """Whether a list of servers or devices is empty, as in the first table that ModelArts writes."""
    lists = [value[key] for key in ("group_list", "server_list", "rank_list") if key in value]
    lists += [group.get("instance_list") for group in _objects(value.get("group_list"))]
    return any(entries in ([], None) for entries in lists)


def _missing(value: dict[str, Any]) -> str:
    """Return how many of the declared entries exist, and which are missing if that is known."""
    parts: list[str] = []
    for group in _objects(value.get("group_list")):
        present = [_name(entry, "pod_name") for entry in _objects(group.get("instance_list"))]
        parts += filter(None, [_progress(_count(group.get("instance_count")), present, "instance")])
        if len(parts) >= _SHOWN:
            break
    if isinstance(value.get("server_list"), list):
        present = [_name(entry, "server_id") for entry in _objects(value["server_list"])]
        parts.append(_progress(_count(value.get("server_count")), present, "server"))
    if isinstance(value.get("rank_list"), list):
        parts.append(_ranks(_count(value.get("rank_count")), _objects(value["rank_list"])))
    return "; ".join(part for part in parts if part)


def _objects(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _name(entry: dict[str, Any], key: str) -> str:
    return str(entry.get(key))[:_LONGEST_NAME]


def _count(stated: Any) -> int | None:
    return read_uint(stated) if isinstance(stated, str) else stated if isinstance(stated, int) else None


def _progress(count: int | None, present: list[str], what: str) -> str:
    if count is None or count <= len(present):
        return "" if present else f"there is no {what} yet"
    listed = f"{len(present)} of {count} {what}s are listed"
    if present:
        listed += f" ({and_more(present, _SHOWN)})"
    absent = _absent(count, present) if what == "instance" else []
    missing = f"missing: {and_more(absent, _SHOWN)}" if absent else f"{count - len(present)} missing"
    return f"{listed}, {missing}"


def _ranks(count: int | None, entries: list[dict[str, Any]]) -> str:
    if count is None or not 0 < count <= _MOST_NAMED:
        return "" if entries else "there is no rank yet"
    numbers = (entry.get("rank_id") for entry in entries)
    # Other numbers could be chosen so that a set of them takes long.
    present = {rank for rank in numbers if isinstance(rank, int) and 0 <= rank < count}
    absent = sorted(set(range(count)) - present)
    return f"ranks missing: {and_more([str(rank) for rank in absent], _SHOWN)}" if absent else ""


def _absent(count: int, present: list[str]) -> list[str]:
    """Return the missing names if all names are numbered from 0: ``job-worker-3``."""
    parts = [_NUMBERED.fullmatch(name) for name in present]
    stems = {part[1] for part in parts if part}
    if not all(parts) or len(stems) != 1 or count > _MOST_NAMED:
        return []
    expected = [f"{stem}{number}" for stem in stems for number in range(count)]
    known = frozenset(present)
    return [name for name in expected if name not in known] if known <= set(expected) else []
