"""Write the dump of torch's flight recorder on a signal, in a thread of the rank (``--flight-recorder``).

The main thread may be blocked in a collective of C++. ``faulthandler`` handles the signal there in C and
wakes the thread through a pipe. The rank's Python may be 3.7 and may not have torch, which is not imported.
"""

from __future__ import annotations

import _thread
import faulthandler
import os
import signal
import sys
import time

TYPE_CHECKING = False  # The rank may not import typing.
if TYPE_CHECKING:
    from typing import Any

#: The entries, from the last one on, that keep their stack frames, and the frames of each, from its inside.
_WITH_FRAMES, _MOST_FRAMES = 64, 12
#: The functions that return the trace as a pickle, by module; the first with entries counts.
_SOURCES = (
    ("torch_npu._C._distributed_c10d", "_dump_hccl_trace"),
    ("torch._C._distributed_c10d", "_dump_nccl_trace"),
    ("torch._C._distributed_c10d", "_dump_fr_trace"),
)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def begin(number: int) -> None:
    """Write a dump for each signal of this number from now on.

    Raises:
        OSError: The run directory cannot be opened.
    """
    folder = os.open(os.environ["HCCL_TOOLS_RUN_DIR"], _DIRECTORY)
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)  # The handler must not wait for this thread.
    restart = os.environ.get("HCCL_TOOLS_RESTART", "0")
    end = "" if restart == "0" else f".restart_{restart}"
    name = f"recorder_rank_{os.environ['RANK_ID']}{end}.json"
    _thread.start_new_thread(_serve, (receiver, folder, name))
    signal.signal(number, signal.SIG_IGN)  # As for the stacks: it stays when faulthandler has ended.
    # The number of a pipe is kept as it is: a file object would be closed at the end of this function.
    faulthandler.register(number, file=sender, all_threads=False)


def _serve(receiver: int, folder: int, name: str) -> None:
    while os.read(receiver, 1 << 16):
        _answer(folder, name)


def _answer(folder: int, name: str) -> None:
    # The frames of torch_npu's dumps have the names of the operations. They come later: torch reads the
    # symbols of its libraries first, for a second or two.
    for with_frames in (False, True):
        try:
            dump = _dump(with_frames)
        except Exception as error:  # noqa: BLE001  (the rank must go on)
            dump = {"problem": f"{type(error).__name__}: {error}"}
        is_named = any(one.get("profiling_name") for one in dump.get("entries", ()))
        is_final = with_frames or is_named or "problem" in dump
        try:
            _write(folder, name, {**dump, "is_final": True} if is_final else dump)
        except (OSError, TypeError, ValueError):
            return  # A full disk loses this dump only.
        if is_final:
            return


def _dump(with_frames: bool) -> dict[str, Any]:
    """Return the trace in torch's form, with the groups' ranks, which gloo's does not have."""
    trace: dict[str, Any] = {}
    for module, function in _SOURCES:
        call = getattr(sys.modules.get(module), function, None)
        if call is not None and not trace.get("entries"):
            import pickle  # noqa: PLC0415  (at a dump only)

            data = call(includeStackTraces=with_frames)
            trace = pickle.loads(data)  # noqa: S301  # nosec B301  (it comes from this process)
    if not trace:
        has_torch = "torch" in sys.modules
        return {"problem": "its torch has no flight recorder" if has_torch else "it has not loaded torch"}
    for index, entry in enumerate(reversed(trace.get("entries") or [])):
        frames = entry.pop("frames", None)
        if frames and index < _WITH_FRAMES:
            entry["frames"] = frames[:_MOST_FRAMES]
    config = dict(trace.get("pg_config") or {})
    config.pop("", None)
    trace["pg_config"] = {**_groups(), **config}
    trace["rank"] = int(os.environ["RANK_ID"])
    trace["taken_ns"] = time.time_ns()
    return trace


def _groups() -> dict[str, dict[str, str]]:
    """Return the process groups of this rank in the form of ``pg_config``."""
    found: dict[str, dict[str, str]] = {}
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    try:
        for group, ranks in list(world.pg_group_ranks.items()):  # type: ignore[union-attr]
            name = world.pg_names[group]  # type: ignore[union-attr]
            about = {"name": name, "desc": getattr(group, "group_desc", ""), "ranks": str(sorted(ranks))}
            found[name] = about
    except Exception:  # noqa: BLE001  (private names of torch, which may change)
        return found
    return found


def _write(folder: int, name: str, dump: dict[str, Any]) -> None:
    import json  # noqa: PLC0415  (at a dump only)

    data = json.dumps(dump).encode()
    mode = os.fstat(folder).st_mode & 0o666
    temporary = f"{name}.{os.urandom(8).hex()}.part"
    target = os.open(temporary, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        with open(target, "wb") as file:
            os.fchmod(target, mode)
            file.write(data)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
