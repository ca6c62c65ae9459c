"""The cost of a table with a fault in every entry is linear in its size. Calls are counted, not timed."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import broken
from hccl_tools import formats, validate
from hccl_tools.diagnostics import FORMATS, limit, render
from hccl_tools.document.spans import find_spans
from hccl_tools.formats.column_checks import SparseColumn
from hccl_tools.rules import address_texts, commands
from hccl_tools.rules.key_names import READ_KEYS
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

#: Each test starts processes, or takes a second or more.
pytestmark = pytest.mark.slow

#: Read in place where it is at hand, never part of this repository.
SLOW = Path(__file__).parents[3] / "shared" / "corpus" / "slow"
#: More than 200 MB for each megabyte, and far less than the gigabytes that these tables once took.
MOST_MEMORY = 400 << 20
#: Twice the processor time that the slowest of these tables takes; a rule that is quadratic takes more.
MOST_SECONDS = 12
_PEAK = """
import re, sys
from hccl_tools.__main__ import main
try:
    main()
finally:
    # Not getrusage: that would tell the peak of the tests, from which this was forked, if theirs is higher.
    print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1] + "000", file=sys.stderr)
"""


def calls_of(function: Callable[[], object]) -> int:
    """Return how many calls of Python and C functions a function makes, items of generators included."""
    number = 0

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal number
        number += event.endswith("call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return number


def shown(data: bytes, output_format: str) -> str:
    report = validate(data, limit=limit(output_format))
    return "".join(render([report], output_format))


@pytest.mark.parametrize("name", broken.TABLES)
def test_twice_the_table_is_at_most_twice_the_work(name: str) -> None:
    small, large = (broken.text(name, size).encode() for size in (340_000, 380_000))
    if "long" not in name:
        small, large = (broken.text(name, size).encode() for size in (20_000, 40_000))
    shown(small, "text")  # what is loaded or compiled once

    less = calls_of(lambda: shown(small, "text"))
    more = calls_of(lambda: shown(large, "text"))

    assert more < 2.3 * less


@pytest.mark.parametrize("name", broken.TABLES)
def test_hints_are_written_for_kept_findings_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To find the host in a server_id, or the fault of an address, takes longer than the rest of it."""
    asked: list[str] = []
    corrected = address_texts.corrected

    def noted(text: str, accepts: Callable[[str], bool]) -> address_texts.Corrected | None:
        asked.append(text)
        return corrected(text, accepts)

    def host_of(text: str) -> str:
        asked.append(text)
        return text

    monkeypatch.setattr(commands, "host_of", host_of)
    monkeypatch.setattr(address_texts, "corrected", noted)

    def written(size: int) -> int:
        asked.clear()
        validate(broken.text(name, size).encode(), limit=3)
        return len(asked)

    small = 340_000 if "long" in name else 20_000
    assert written(small + 20_000) <= written(small) + 20


@pytest.mark.parametrize("name", broken.TABLES)
def test_no_finding_looks_at_the_whole_table(name: str) -> None:
    """No count of calls shows what is quadratic within one, such as the comparison of two long tuples."""
    data = broken.text(name, 200_000).encode()

    def stop(*_: object) -> None:
        pytest.fail(f"more than {MOST_SECONDS} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        validate(data, limit=None)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("name", broken.TABLES)
def test_all_is_counted_and_the_first_of_each_rule_kept(name: str) -> None:
    data = broken.text(name, 5_000).encode()

    whole, short = validate(data, limit=None), validate(data, limit=3)

    assert short.counts == whole.counts == Counter(one.rule for one in whole.findings)
    assert (short.verdict, short.ok) == (whole.verdict, whole.ok)
    assert all(number <= 3 for number in Counter(one.rule for one in short.findings).values())
    assert {one.rule for one in short.findings} == set(whole.counts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["empty ranks", "a long server_id, same devices", "equal addresses"])
@pytest.mark.parametrize("output_format", FORMATS)
def test_memory_and_output_stay_small(name: str, output_format: str, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_text(broken.text(name, 1_000_000))

    output = output_within_memory(file, output_format)

    assert len(output) < 3_000_000


def output_within_memory(file: Path, output_format: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, "validate", "-f", output_format, str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 1}
    assert int(done.stderr.splitlines()[-1]) < MOST_MEMORY
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not SLOW.is_dir(), reason="the corpus of slow tables is not at hand")
@pytest.mark.parametrize("output_format", ["text", "json", "sarif"])  # the others do a part of what text does
@pytest.mark.rotates("output_format")
def test_tables_that_were_slow(output_format: str, tmp_path: Path) -> None:
    for packed in sorted(SLOW.glob("*.json.gz")):
        file = tmp_path / packed.name.removesuffix(".gz")
        file.write_bytes(gzip.decompress(packed.read_bytes()))

        assert len(output_within_memory(file, output_format)) < 5_000_000, packed.name


def test_a_table_broken_in_every_entry_says_how_often() -> None:
    data = broken.text("empty ranks", 3_000).encode()
    number = data.count(b"{}")

    text = shown(data, "text")
    file = json.loads(shown(data, "json"))["files"][0]

    assert f"... and {4 * number - 20:,} more HCC111 missing-key (`--all`)" in text
    assert f"{4 * number:,} errors: HCCL refuses this table" in text
    assert file["counts"] == {"HCC111": 4 * number}
    assert len(file["findings"]) == 1000


def test_empty_parts_of_an_address_are_one_finding() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][0]["device_ip"] = "10.0.0.1" + "," * 5000

    (found,) = [one for one in validate(value).findings if one.rule.id == "HCC403"]

    assert found.message.endswith(',..." has an empty part')
    assert len(found.message) < 300


def test_messages_quote_long_values_in_short() -> None:
    value = table("1.0")
    value["server_list"][0]["server_id"] = "s" * 100_000
    value["server_list"][0]["device"][1]["device_id"] = "0"
    value["server_list"][0]["device"][0]["rank_id"] = "r" * 100_000

    report = validate(value)

    assert {"HCC303", "HCC201", "HCC502"} <= {one.rule.id for one in report.findings}
    assert max(len(one.message) for one in report.findings) < 1100


def test_keys_of_single_devices_fill_no_columns() -> None:
    value = table("1.0", 40, 8)
    for number, device in enumerate(device for server in value["server_list"] for device in server["device"]):
        device[f"key{number}"] = number

    read = formats.read(value)

    own = [read.columns[f"key{number}"] for number in range(320)]
    assert all(isinstance(column, SparseColumn) for column in own)
    assert [column[row] for row, column in enumerate(own)] == list(range(320))
    assert json.loads("".join(formats.write(read))) == value


def test_a_sparse_column_reads_like_a_list() -> None:
    column = SparseColumn(5)
    column.values[3] = "x"

    assert list(column) == [None, None, None, "x", None]
    assert column == [None, None, None, "x", None]
    assert (len(column), column[3], column[-2], column[2:4]) == (5, "x", "x", [None, "x"])
    with pytest.raises(IndexError):
        column[5]


def test_nothing_is_looked_at_behind_the_last_place() -> None:
    text = '{"a": [{"b": 1}, {"b": 22}], !!! this is never read'

    (found,) = find_spans(text, [("a", 1, "b")], unique=True)

    assert text[found.start : found.end] == "22"


def test_a_list_is_passed_behind_its_last_place() -> None:
    text = '{"a": [1, {"b": 2}, {}, [ ], "x", true, -1.5e3, {"c": 3}], "d": 4}'

    spans = find_spans(text, [("a",), ("a", 1, "b"), ("d",)])

    assert [text[span.start : span.end] for span in spans] == [text[6:-9], "2", "4"]


@pytest.mark.parametrize("key", sorted(READ_KEYS))
def test_misspelt_keys_are_recognised(key: str) -> None:
    value = table("1.0")
    swapped = key[:2] + key[3] + key[2] + key[4:]
    for misspelt in {key.upper(), key.replace("_", "-") + " ", *([swapped] if len(key) > 6 else [])}:
        if misspelt == key or misspelt in READ_KEYS:
            continue
        value["server_list"][0]["device"][0][misspelt] = "1"

        hints = [one.hint for one in validate(value).findings if one.rule.id == "HCC604"]

        del value["server_list"][0]["device"][0][misspelt]
        assert len(hints) == 1, misspelt
        assert str(hints[0]).startswith((f'did you mean "{key}"?', f'"{key}" is there, too')), misspelt
