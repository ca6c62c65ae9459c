"""Dumps of flight recorders that are made to cost time and memory: small files, bounded answers."""

from __future__ import annotations

import gc
import gzip
import json
import pickle
import resource
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import plain_pickle, recorder, recorder_groups, recorder_traces
from hccl_tools.explain.recorder_traces import Call, Group, Trace
from hccl_tools.explain.sources import collect
from tests.support.jobs import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WORD = (1 << 64) - 1
#: The numbers of CPython's hash of a tuple.
_FIRST, _SECOND, _FIFTH = 11400714785074694791, 14029467366897019727, 2870177450012600261


def text(value: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value


def one_text_named_often(times: int) -> bytes:
    """Return a pickle with one text of 16 MiB that is named many times."""
    sizes = text(b"input_sizes") + b"](" + b"h\x01" * times + b"e"
    return (
        b"\x80\x02}("
        + text(b"pg_config") + b"N" + text(b"rank") + b"K\0"
        + text(b"big") + text(b"a" * (16 << 20)) + b"q\x01"
        + text(b"entries") + b"](" + b"}(" + text(b"collective_seq_id") + b"K\x01" + sizes + b"u" + b"e" + b"u."
    )  # fmt: skip


def one_dictionary_named_often(keys: int, times: int) -> bytes:
    """Return a pickle of a list that names one dictionary many times."""
    items = b"".join(b"J" + struct.pack("<i", key) + b"N" for key in range(keys))
    return b"\x80\x02](}q\x00(" + items + b"u" + b"h\x00" * times + b"e."


def turned(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _WORD


def keys_of_one_hash(number: int) -> bytes:
    """Return a pickle with a dictionary whose keys are pairs of numbers that all have the same hash."""
    first, second, pairs = pow(_FIRST, -1, 1 << 64), pow(_SECOND, -1, 1 << 64), list[tuple[int, int]]()
    one = 0
    while len(pairs) < number:
        one += 1
        begun = turned((_FIFTH + one * _SECOND) & _WORD, 31) * _FIRST & _WORD
        lane = (turned(12345 * first & _WORD, 33) - begun) * second & _WORD
        other = lane - (1 << 64) if lane >> 63 else lane
        if abs(other) < (1 << 61) - 1 and other != -1:
            pairs.append((one, other))
    assert len({hash(pair) for pair in pairs}) == 1
    keys = b"".join(
        b"".join(b"\x8a\x08" + part.to_bytes(8, "little", signed=True) for part in pair) + b"\x86N"
        for pair in pairs
    )
    return (
        b"\x80\x02}("
        + text(b"pg_config")
        + b"N"
        + text(b"entries")
        + b"]"
        + text(b"x")
        + b"}("
        + keys
        + b"uu."
    )


def key_of_many_levels(levels: int) -> bytes:
    begin = b"\x80\x02}(" + text(b"pg_config") + b"N" + text(b"entries") + b"]" + text(b"x")
    return begin + b"}" + b")" + b"\x85" * levels + b"Ns" + b"u."


def explained(folder: Path) -> tuple[subprocess.CompletedProcess[str], int]:
    """Explain a folder; return what it printed and its largest memory in MiB."""
    # Not ru_maxrss, which begins with the memory of the process that has started this one.
    code = (
        "import re, sys; from hccl_tools import cli; code = cli.run(cli.cli, sys.argv[1:], 'hccl-tools');"
        r" size = int(re.search(r'VmHWM:\s+(\d+) kB', open('/proc/self/status').read())[1]);"
        " print(size >> 10, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "explain", str(folder)], capture_output=True, text=True, check=False,
        timeout=LONG, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )  # fmt: skip
    return done, int(done.stderr.split()[-1])


def test_a_text_that_is_named_often_counts_each_time(tmp_path: Path) -> None:
    (tmp_path / "hccl_trace_rank_0.pkl.gz").write_bytes(gzip.compress(one_text_named_often(200)))

    done, size = explained(tmp_path)

    assert "it has more than 8,000,000 values" in done.stdout
    assert size < 256


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    (tmp_path / "hccl_trace_rank_0.pkl").write_bytes(one_text_named_often(5))

    found, _ = collect([str(tmp_path)])
    (trace,) = recorder_traces.read(found).traces

    assert len(trace.calls[0].sizes) < 2000


@pytest.mark.parametrize(
    "content", [keys_of_one_hash(4000), key_of_many_levels(200_000)], ids=["hash", "deep"]
)
def test_keys_that_are_tuples_are_refused_before_they_are_hashed(content: bytes) -> None:
    gc.disable()  # It would go through the objects of all tests before.
    try:
        began = time.process_time()
        with pytest.raises(plain_pickle.NotPlainError, match="key that is neither a text nor a small number"):
            plain_pickle.load(content)
        needed = time.process_time() - began
    finally:
        gc.enable()

    assert needed < 1


def test_the_process_survives_a_key_of_many_levels(tmp_path: Path) -> None:
    (tmp_path / "hccl_trace_rank_0").write_bytes(key_of_many_levels(200_000))
    (tmp_path / "rank_1.log").write_text("RuntimeError: one\n")

    done, _ = explained(tmp_path)

    assert "RuntimeError: one" in done.stdout
    assert "hccl_trace_rank_0 was not read: it is no pickle of plain values" in done.stdout


def dump_of_long_groups(rank: int) -> bytes:
    ranks = "[" + ",".join(str(100_000 + number % 4000) for number in range(149_790)) + "]"
    groups = {
        str(number): {"name": str(number), "desc": f"g{number}", "ranks": ranks} for number in range(60)
    }
    return json.dumps({"pg_config": groups, "rank": rank, "entries": [], "version": "2.4"}).encode()


def test_repeated_members_of_groups_are_one_list(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"dump_rank_{rank}.json.gz").write_bytes(gzip.compress(dump_of_long_groups(rank)))

    done, size = explained(tmp_path)

    assert done.returncode == 1
    assert size < 350


def test_all_members_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_traces, "_MOST_MEMBERS", 10)
    for rank in range(4):
        config = {"0": {"name": "0", "desc": "g", "ranks": [rank, 10, 11, 12]}}
        dump = {"pg_config": config, "rank": rank, "entries": []}
        (tmp_path / f"dump_rank_{rank}.json").write_text(json.dumps(dump))

    found, _ = collect([str(tmp_path)])
    dumps = recorder_traces.read(found)

    assert [len(trace.groups[0].ranks) for trace in dumps.traces] == [4, 4, 0, 0]
    assert dumps.notes == ["not all members of the groups were read: the dumps have more than 10"]


def test_all_compressed_dumps_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hccl_tools.explain import reader

    monkeypatch.setattr(reader, "_MOST_IN_ALL", 1 << 20)
    data = gzip.compress(json.dumps({"pg_config": {}, "entries": [], "x": " " * (1 << 20)}).encode())
    for rank in range(3):
        (tmp_path / f"dump_rank_{rank}.json.gz").write_bytes(data)

    found, _ = collect([str(tmp_path)])
    dumps = recorder_traces.read(found)

    assert "the compressed files before it unpack to too many bytes" in " ".join(dumps.notes)
    assert len(dumps.traces) < 3


def test_many_traces_of_one_group_are_compared_in_linear_time() -> None:
    """Each of them has a list of members of its own in a group of the same name."""
    number = 20_000
    traces = [
        Trace(rank, "x", (Group("g", "g", (rank, number)),), (Call("g", 1, "all_reduce"),))
        for rank in range(number)
    ]

    began = time.process_time()
    found = recorder_groups.found(traces)

    assert found is not None
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("instruction", "what"),
    [(b"}", "containers"), (b"]", "containers"), (b"(", "containers"), (b")\x85", "containers"),
     (b"N\x94", "numbered values")],
)  # fmt: skip
def test_of_what_takes_memory_a_pickle_has_a_number_of_its_own(instruction: bytes, what: str) -> None:
    with pytest.raises(plain_pickle.NotPlainError, match=f"more than 1,000,000 {what}"):
        plain_pickle.load(b"\x80\x04" + instruction * 1_000_010 + b".")


def test_a_pickle_numbers_its_values_from_0() -> None:
    """A dictionary compares each of 100,000 numbers with one hash with all before it."""
    numbered = b"".join(b"Np%d\n" % (number * sys.hash_info.modulus) for number in range(1, 9))

    with pytest.raises(plain_pickle.NotPlainError, match="more than 1,000,000 numbered values"):
        plain_pickle.load(b"\x80\x02" + numbered + b".")


def test_the_calls_of_a_dump_are_looked_at_once() -> None:
    """Not once for each group of the job."""

    class Calls(tuple[Call, ...]):
        __slots__ = ()
        looks = 0

        def __iter__(self) -> Iterator[Call]:
            Calls.looks += 1
            return super().__iter__()

    groups = tuple(Group(f"g{number}", f"g{number}") for number in range(100))
    traces = [Trace(rank, f"trace_{rank}", groups, Calls()) for rank in range(2)]

    assert recorder.find_straggler(traces) is None
    assert Calls.looks == len(traces)


def test_a_plain_pickle_of_each_protocol_is_read() -> None:
    shared = ("0", "default_pg")
    value = {
        "version": "2.4", "pg_config": {"0": {"ranks": "[0, 1]"}}, 3: [True, False, None, 1.5, -1, 1 << 40, ()],
        "entries": [{"process_group": shared, "sizes": [[4]], "frames": [{}]}, {"process_group": shared}],
    }  # fmt: skip

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert plain_pickle.load(pickle.dumps(value, protocol)) == value


def test_what_is_named_often_is_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, times, inside, steps = 3000, 5000, plain_pickle._inside, list[int]()

    def counted(value: object) -> object:
        found = inside(value)
        steps.append(len(found))
        return found

    monkeypatch.setattr(plain_pickle, "_inside", counted)
    with pytest.raises(plain_pickle.NotPlainError, match="more than 8,000,000 values"):
        plain_pickle.load(one_dictionary_named_often(keys, times))

    assert sum(steps) <= 4 * (keys + times)
