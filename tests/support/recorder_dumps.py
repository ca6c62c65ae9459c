"""Dumps of flight recorders as torch 2.13 and torch_npu write them, of jobs that hang in a chosen way."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Nanoseconds since the epoch, in March 2026.
_BEGIN = 1_773_800_000_000_000_000
_C10D = "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


class Recorder:
    """The recorder of one rank; each call has ended unless ``done`` is false."""

    def __init__(
        self, rank: int, groups: Mapping[str, Sequence[int]], *, backend: str = "gloo", config: bool = True
    ) -> None:
        """``groups`` has the members of each group by its description; the first one has all ranks."""
        self.rank, self._backend, self._has_config = rank, backend, config
        self._groups = {
            title: (str(number), ranks)
            for number, (title, ranks) in enumerate(groups.items())
            if rank in ranks
        }
        self._entries: list[dict[str, Any]] = []
        self._last = dict.fromkeys(groups, 0)
        self._ended = dict.fromkeys(groups, 0)

    def call(
        self,
        name: str = "all_reduce",
        group: str = "default_pg",
        *,
        size: Sequence[int] = (16,),
        done: bool = True,
        after: float = 0.0,
        number: int | None = None,
        state: str = "",
        dtype: str = "Float",
    ) -> Recorder:
        """Issue a collective, ``after`` seconds later than its place in the order says.

        ``state`` is what the device tells, which torch records on request only.
        """
        self._last[group] = number if number is not None else self._last[group] + 1
        if done:
            self._ended[group] = self._last[group]
        index, _ = self._groups[group]
        is_npu = self._backend == "hccl"
        entry = {
            "record_id": len(self._entries),
            "pg_id": int(index),
            "process_group": [f"group_name_{index}" if is_npu else index, group],
            "collective_seq_id": self._last[group],
            "p2p_seq_id": 0,
            "op_id": self._last[group],
            "profiling_name": "" if is_npu else f"{self._backend}:{name}",
            "time_created_ns": _BEGIN + round((self._last[group] + after) * 1e9),
            "input_sizes": [list(size)],
            "input_dtypes": [dtype],
            "output_sizes": [list(size)],
            "output_dtypes": ["Float"],
            "state": state or ("scheduled" if not done or self._backend == "gloo" else "completed"),
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None,
            "retired": done,
            "timeout_ms": 1800000,
            "is_p2p": False,
        }
        if is_npu:
            entry["frames"] = [
                {"name": name, "filename": _C10D, "line": 3},
                {"name": "step", "filename": "/home/me/train.py", "line": 21},
            ]
        self._entries.append(entry)
        return self

    def calls(self, count: int, **about: Any) -> Recorder:
        """Issue a collective so often."""
        for _ in range(count):
            self.call(**about)
        return self

    def transfer(
        self,
        kind: str,
        peer: int,
        group: str = "default_pg",
        *,
        done: bool = True,
        size: Sequence[int] = (16,),
    ) -> Recorder:
        """Send to another rank of the group, or receive from it (``recv``)."""
        arrow = "->" if kind == "send" else "<-"
        ranks = list(self._groups[group][1])
        name = f"{kind} {ranks.index(self.rank)}{arrow}{ranks.index(peer)}"
        number = self._last[group]
        self.call(name, group, done=done, number=number, size=size)
        self._entries[-1] |= {"is_p2p": True, "p2p_seq_id": len(self._entries)}
        return self

    def dump(self) -> dict[str, Any]:
        """Return the dump in the form of its backend."""
        is_npu = self._backend == "hccl"
        config = {
            (f"group_name_{index}" if is_npu else index): {
                "name": f"group_name_{index}" if is_npu else index,
                "desc": title,
                "ranks": str(list(ranks)),
            }
            for title, (index, ranks) in self._groups.items()
        }
        status = {
            index: {
                "last_enqueued_collective": self._last[title],
                "last_started_collective": -1,
                "last_completed_collective": self._ended[title],
            }
            for title, (index, _) in self._groups.items()
            if self._last[title]
        }
        return {
            "version": "2.4" if is_npu else "2.10",
            "pg_config": config if self._has_config else {"": {"name": "", "desc": "", "ranks": "[]"}},
            "pg_status": status,
            "entries": self._entries,
        }

    def write(self, folder: Path, name: str = "trace_{rank}.json") -> None:
        """Write the dump: JSON, or a pickle where the name has no ``.json``."""
        path = folder / name.format(rank=self.rank)
        if path.suffix == ".json":
            path.write_text(json.dumps(self.dump()))
        else:
            path.write_bytes(pickle.dumps(self.dump(), 2))
