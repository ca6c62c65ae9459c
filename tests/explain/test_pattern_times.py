"""No line of a log takes long: patterns, times and compressed data are bounded for every input."""

from __future__ import annotations

import ast
import gzip
import re
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hccl_tools.explain import events, reader, scanner, scanning, screens, sources
from hccl_tools.explain.events import LastTime
from hccl_tools.explain.knowledge.registry import codes, messages
from hccl_tools.explain.reader import LogReader
from hccl_tools.explain.scanner import Scanner
from hccl_tools.explain.tracebacks import TRACEBACK
from tests.support import adversarial_lines
from tests.support.growth import least
from tests.support.import_graph import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType


#: Seconds of CPU for a line of 4 KiB.
MOST_SECONDS = 0.05
#: Lines of this size are tried; the slowest are repeated with the largest size that is matched.
TRIED, LARGEST = 512, 4096


class Used(NamedTuple):
    """A pattern, and the methods by which it is used: a pattern of ``fullmatch`` begins at one place only."""

    pattern: re.Pattern[Any]
    methods: frozenset[str] = frozenset({"search"})


def of_modules() -> dict[str, Used]:
    """Return the patterns that modules of the package have as values, or in a collection."""
    found: dict[str, Used] = {}
    for path, module in loaded():
        for name, value in vars(module).items():
            inside = value.values() if isinstance(value, dict) else value
            many = inside if isinstance(value, (dict, list, tuple, set, frozenset)) else [value]
            for number, pattern in enumerate(many):
                if isinstance(pattern, re.Pattern):
                    used = methods_of(name, path.read_text(encoding="utf-8"))
                    found[f"{module.__name__.removeprefix('hccl_tools.')}.{name} {number}"] = Used(
                        pattern, used
                    )
        found.update(
            {
                f"{module.__name__.removeprefix('hccl_tools.')}.{name}": used
                for name, used in texts_of(path, module)
            }
        )
    return found


def texts_of(path: Path, module: ModuleType) -> Iterator[tuple[str, Used]]:
    """Yield the patterns of a module that `re` compiles at their first use, by the functions that get them."""
    methods: dict[str, set[str]] = {}
    compiled: dict[ast.expr, str] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):  # A call comes before its parts.
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        compiled[node.func.value] = node.func.attr  # `re.compile(_NAME).match(text, start)` is a match.
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re":
            for inside in ast.walk(node.args[0]):
                if isinstance(inside, ast.Name) and isinstance(vars(module).get(inside.id), (str, bytes)):
                    methods.setdefault(inside.id, set()).add(compiled.get(node, node.func.attr))
    for name, used in methods.items():
        is_whole = used <= {"match", "fullmatch"}
        yield name, Used(re.compile(vars(module)[name]), frozenset(used if is_whole else {"search"}))


def loaded() -> Iterator[tuple[Path, ModuleType]]:
    for name, path in MODULES.items():
        if not name.endswith("__main__"):
            yield path, import_module(name)


def methods_of(name: str, source: str) -> frozenset[str]:
    """Return how a module uses a pattern; a use that is not seen counts as a search."""
    used = frozenset(re.findall(rf"\b{name}\.(\w+)\b", source))
    seen = len(re.findall(rf"\b{name}\b", source)) - 1
    calls = len(re.findall(rf"\b{name}\.\w+\b", source))
    is_whole = calls == seen and used and used <= {"match", "fullmatch"}
    return used if is_whole else frozenset({"search"})


PATTERNS = {
    **{message.id: message.pattern for message in messages().values() if message.pattern},
    **{f"prefix {number}": prefix.pattern for number, prefix in enumerate(screens._PREFIXES)},
}


def seconds(used: Used, line: bytes, tries: int = 1) -> float:
    text: Any = line if isinstance(used.pattern.pattern, bytes) else line.decode(errors="replace")
    return max(least(partial(getattr(used.pattern, one), text), tries) for one in used.methods)


def slowest(given: bytes | Used, size: int = LARGEST) -> float:
    """Return the CPU time of the slowest line of a size that is found."""
    compiled = Used(re.compile(given)) if isinstance(given, bytes) else given
    pattern, flags = compiled.pattern.pattern, compiled.pattern.flags
    tried = enumerate(adversarial_lines.lines(pattern, TRIED, flags))
    places = {
        number for _, number in sorted((-seconds(compiled, line), number) for number, line in tried)[:4]
    }
    large = adversarial_lines.lines(pattern, size, flags)
    worst = [line for number, line in enumerate(large) if number in places]
    return max((seconds(compiled, line, 3) for line in worst), default=0.0)


@pytest.mark.slow
def test_no_pattern_takes_long_on_any_line() -> None:
    tried: dict[str, bytes | Used] = {**PATTERNS, **of_modules()}
    taken = {name: slowest(pattern) for name, pattern in tried.items()}

    assert {name: spent for name, spent in taken.items() if spent > MOST_SECONDS} == {}


@pytest.mark.slow
def test_a_slow_pattern_is_found() -> None:
    assert slowest(rb"(?:\S{1,64}@(?:\S{1,255}): )?denied") > MOST_SECONDS


def test_the_patterns_of_all_modules_are_tried() -> None:
    found = of_modules()

    assert {
        "explain.tracebacks._TITLE 0",
        "explain.sources._RANK 0",
        "explain.finished._COMPLETE 0",
        "rules.address_texts._DOTTED",
        "notation.placeholders._PLACEHOLDER",
    } <= found.keys()


def test_the_last_time_is_found_in_parts_as_in_the_whole() -> None:
    data = b"2026-03-18 10:00:05.113 a\nb\n" + b"-" * 100 + b" 2026-03-18 10:00:06 c\n" + b"d" * 300
    for step in (1, 2, 5, 13, 40, 200):
        last = LastTime(data, 150)
        for place in range(0, len(data), step):
            before = [
                found for found in events._TIME.finditer(data, 0, place) if found.start() >= place - 150
            ]
            assert last.before(place) == (events.time_in(before[-1][0]) if before else None), (step, place)


@pytest.mark.slow
def test_lines_that_only_have_a_code_are_read_in_linear_time(tmp_path: Path) -> None:
    def spent(lines: int) -> float:
        log = tmp_path / f"{lines}.log"
        log.write_bytes(b"2026-03-18 10:00:05 start\n" + b"EI0006\n" * lines)
        scan = Scanner().scan(str(log), 0)
        assert len(scan.events) == 20
        assert all(event.time is None and event.after == scan.first_time for event in scan.events)
        return least(lambda: Scanner().scan(str(log), 0))

    assert spent(8000) < 6 * spent(2000)


def anchors() -> list[bytes]:
    """Return the texts by which lines are found: those of the messages, codes, and what stands before codes."""
    found = {one.anchor for one in messages().values() if one.anchor} | {code.encode() for code in codes()}
    return sorted(found.union(scanner._BEFORE_CODES, scanner._LEVELS, [TRACEBACK]))


def test_a_line_full_of_anchors_is_searched_once() -> None:
    sieve = Scanner()._sieve
    texts = anchors()
    mixed = b" ".join(texts)
    lines = {text: b"[ERROR] HCCL " + (text + b" ") * (reader.LONGEST_LINE // len(text)) for text in texts}
    lines[mixed] = mixed * (reader.LONGEST_LINE // len(mixed))

    def spent(text: bytes, tries: int) -> float:
        return least(lambda: sieve.hits(lines[text]), tries)

    # A busy machine makes one try slow; a line that is searched for each of its anchors makes all tries slow.
    slow = (text for text in lines if spent(text, 1) > MOST_SECONDS and spent(text, 3) > MOST_SECONDS)
    assert next(slow, None) is None


@pytest.mark.parametrize("line", [b"EI0006\r", b"rror code\r", b"step 507046\r", b"EI0006 of rank\n"])
def test_short_lines_with_anchors_are_found_in_linear_time(line: bytes) -> None:
    def spent(count: int) -> float:
        data = line * count
        return least(lambda: Scanner()._sieve.hits(data))

    assert spent(40_000) < 8 * spent(10_000)


def test_a_small_file_is_not_unpacked_to_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "rank_0.log.gz"
    monkeypatch.setattr(reader, "MOST_UNPACKED", 3 << 20)
    log.write_bytes(gzip.compress(b"[ERROR] nothing\n" * (1 << 18)))

    found = LogReader(str(log))

    assert sum(len(block.data) for block in found.blocks()) == 3 << 20
    assert found.note == f"{log} unpacks to more than 3 MiB: only these were read"


def test_binary_data_does_not_hide_that_only_a_part_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "rank_0.log.gz"
    monkeypatch.setattr(reader, "MOST_UNPACKED", 1 << 20)
    log.write_bytes(gzip.compress(bytes(4 << 20)))

    found = LogReader(str(log))

    assert sum(len(block.data) for block in found.blocks()) <= 1 << 20
    assert found.note == f"{log} unpacks to more than 1 MiB: only these were read"


def test_compressed_logs_have_a_limit_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MOST_IN_ALL", 5 << 20)
    for number in range(9):
        (tmp_path / f"rank_{number}.log.gz").write_bytes(gzip.compress(b"a line\n" * (1 << 18)))
    logs, _ = sources.collect([str(tmp_path)])

    found = list(scanning.scans(logs, (), None))

    read = sum(one.lines for one in found)
    packed = sum(path.stat().st_size for path in tmp_path.iterdir())
    # A piece of half a MiB is counted when it is unpacked.
    assert 5 << 20 <= read * len("a line\n") <= (5 << 20) + reader.MOST_PER_BYTE * packed + (1 << 19)
    assert [one.note.rpartition(" was ")[2] for one in found if one.note][-1] == (
        "not unpacked to its end: the compressed logs unpack to more than 5 MiB and 30 times their size"
    )
    assert next(scanning.scans(logs[:1], (), None)).note == ""  # each command counts from 0 on
    monkeypatch.undo()
    reader.begin_unpacking()


def test_lines_are_compared_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_MOST_LINES", 1000)
    log = tmp_path / "rank_0.log"
    fault = b"[ERROR] host nic listen start failed, port[60000]\n"
    other = [b"ERROR of kind %s\n" % (b"x" * number) for number in range(1000)]
    log.write_bytes(b"".join(other[1:]) + fault)
    scan = Scanner().scan(str(log), 0)
    assert ([event.line for event in scan.events], scan.note) == ([1000], "")

    log.write_bytes(b"".join(other) + fault)
    scan = Scanner().scan(str(log), 0)
    assert scan.events == []
    assert scan.note == (f"{log} has more than 1,000 lines that may name a fault: only these were read")


def test_several_archives_in_one_file_are_read_whole(tmp_path: Path) -> None:
    log = tmp_path / "rank_0.log.gz"
    log.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n") + gzip.compress(b""))

    found = LogReader(str(log))

    assert b"".join(block.data for block in found.blocks()) == b"one\ntwo\n"
    assert found.note == ""
