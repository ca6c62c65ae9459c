"""Waiting for a table that an operator or platform has not completed yet.

Volcano, ModelArts and the Ascend operator write the table first with status ``initializing`` or with an empty
group and fill it in as pods start. Kubernetes shows a ConfigMap through a symbolic link, ``..data``, that is
swapped under the reader; ``read_file`` looks again, and here a file that is not there yet is waited for.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.document.document import Document
from hccl_tools.document.reading import is_stream, read_file
from hccl_tools.errors import InputError, TableError
from hccl_tools.notation.phrases import and_more
from hccl_tools.table.model import read_uint

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY = 1.0
#: Seconds after which the same state is told again.
_TELL_AGAIN = 60.0
#: A file that is being written in place looks like one of these for a moment.
_HALF_WRITTEN = frozenset({"cut off", "empty file"})
_NUMBERED = re.compile(r"(.*?)(\d+)")
_SHOWN = 8


class State(NamedTuple):
    """Whether a table is ready, and if not, why and who is missing, as a phrase."""

    ready: bool
    why: str = ""


def wait(path: str, *, seconds: float, tell: Callable[[str], None]) -> None:
    """Return when the table is ready, or is wrong in a way that waiting does not mend.

    Args:
        path: The file; it need not be there yet. Standard input (``-``) and pipes are not waited for.
        seconds: How long at most.
        tell: Called with one line when what is missing changes, and once a minute.

    Raises:
        TableError: The time is over; the message says what is missing.
    """
    if is_stream(path):
        return
    began = time.monotonic()
    told, told_at = "", began
    while not (state := look(path)).ready:
        now = time.monotonic()
        if now - began >= seconds:
            raise TableError(
                f"{path} is not ready after {seconds:g} s: {state.why}",
                hint="look at what writes it: pods may still be pending (`kubectl get pods`); or wait longer",
            )
        if state.why != told or now - told_at >= _TELL_AGAIN:
            tell(f"waiting for {path}: {state.why}")
            told, told_at = state.why, now
        time.sleep(min(_EVERY, max(0.01, began + seconds - now)))


def look(path: str) -> State:
    """Return whether the table in a file is ready now."""
    try:
        document = Document.parse(read_file(path), path)
    except InputError as error:
        if error.message.startswith("no such file"):
            return State(ready=False, why="there is no such file yet")
        return State(ready=True)  # reading it again will say why not
    if document.problem is not None:
        half = document.problem.kind in _HALF_WRITTEN
        return (
            State(ready=False, why=f"it is not written to its end ({document.problem.message})")
            if half
            else State(ready=True)
        )
    return state_of(document.value)


def state_of(value: Any) -> State:
    """Return whether a parsed table is ready: completed, and no list of it still empty."""
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
    """Whether the table has a place for devices and none in it: ModelArts writes such tables first."""
    lists = [value[key] for key in ("group_list", "server_list", "rank_list") if key in value]
    lists += [group.get("instance_list") for group in _objects(value.get("group_list"))]
    return any(entries in ([], None) for entries in lists)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _missing(value: dict[str, Any]) -> str:
    """Return how many of the declared entries are there, and who is missing as far as that is known."""
    parts = []
    for group in _objects(value.get("group_list")):
        present = [str(entry.get("pod_name")) for entry in _objects(group.get("instance_list"))]
        parts.append(_of(_count(group.get("instance_count")), present, "instance"))
    if _is_list(value.get("server_list")):
        present = [str(entry.get("server_id")) for entry in _objects(value["server_list"])]
        parts.append(_of(_count(value.get("server_count")), present, "server"))
    if _is_list(value.get("rank_list")):
        parts.append(_ranks(_count(value.get("rank_count")), _objects(value["rank_list"])))
    return "; ".join(part for part in parts if part)


def _objects(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if _is_list(entries) else []


def _count(told: Any) -> int | None:
    return read_uint(told) if isinstance(told, str) else told if isinstance(told, int) else None


def _of(count: int | None, present: list[str], what: str) -> str:
    if count is None or count <= len(present):
        return "" if present else f"no {what} is there yet"
    there = f"{len(present)} of {count} {what}s are there"
    if present:
        there += f" ({and_more(present, _SHOWN)})"
    absent = _absent(count, present) if what == "instance" else []
    missing = f"missing: {and_more(absent, _SHOWN)}" if absent else f"{count - len(present)} missing"
    return f"{there}, {missing}"


def _ranks(count: int | None, entries: list[dict[str, Any]]) -> str:
    if count is None or not 0 < count <= 1 << 16:
        return "" if entries else "no rank is there yet"
    absent = sorted(set(range(count)) - {entry.get("rank_id") for entry in entries if _is_rank(entry)})
    return f"ranks missing: {and_more([str(rank) for rank in absent], _SHOWN)}" if absent else ""


def _is_rank(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("rank_id"), int)


def _absent(count: int, present: list[str]) -> list[str]:
    """Return the names that are missing where names are numbered from 0: ``job-worker-3``."""
    parts = [_NUMBERED.fullmatch(name) for name in present]
    stems = {part[1] for part in parts if part}
    if not all(parts) or len(stems) != 1:
        return []
    expected = [f"{stem}{number}" for stem in stems for number in range(count)]
    return [name for name in expected if name not in present] if set(present) <= set(expected) else []
