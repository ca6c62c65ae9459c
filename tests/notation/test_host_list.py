"""Lists of hosts: their expansion, and the messages for mistakes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.errors import InputError, UsageError
from hccl_tools.notation import host_list
from hccl_tools.notation.host_list import fold, parse, read_hostfile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("10.0.0.1", ["10.0.0.1"]),
        ("10.0.0.2,10.0.0.1", ["10.0.0.2", "10.0.0.1"]),
        ("a b,\tc\n", ["a", "b", "c"]),
        ("10.0.0.[9-11]", ["10.0.0.9", "10.0.0.10", "10.0.0.11"]),
        ("node[01-03,7]", ["node01", "node02", "node03", "node7"]),
        ("node[098-101]", ["node098", "node099", "node100", "node101"]),
        ("r[1-2]n[1-2].site", ["r1n1.site", "r1n2.site", "r2n1.site", "r2n2.site"]),
        ("gpu[1,3],login-1", ["gpu1", "gpu3", "login-1"]),
        ("n[ 1, 2 ]", ["n1", "n2"]),
    ],
)
def test_a_list_means_these_hosts_in_this_order(text: str, hosts: list[str]) -> None:
    assert list(parse(text)) == hosts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no host"),
        (" , ", "has no host"),
        ("a,b,a", "has a twice"),
        ("n[1-3],n2", "has n2 twice"),
        ("n[1-3", 'a "]" is missing'),
        ("n1-3]", 'unexpected "]"'),
        ("n[1[2]]", 'unexpected "["'),
        ("n[3-1]", '"3-1" is in descending order'),
        ("n[]", '"" in brackets is not a number or a range'),
        ("n[a-b]", '"a-b" in brackets is not a number or a range'),
        ("n[1-99999999]", "more than 16,384 hosts"),
        ("n[1-1000][1-1000]", "expands to more than 16,384 hosts"),
        ("10.0.0.1-16", '"10.0.0.1-16" is not a host'),
        ("root@10.0.0.1", "names a user"),
        ("fe80::1", "has a colon"),
        ("-oProxyCommand=x", "is not a host name"),
        ("a;b", "is not a host name"),
    ],
)
def test_a_wrong_list_is_refused_with_the_part_that_is_wrong(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as refused:
        parse(text)

    assert refused.value.hint


@pytest.mark.parametrize("numbers", ["0-16383", "0,1-16383"])
def test_a_list_has_up_to_16384_hosts(numbers: str) -> None:
    assert len(parse(f"n[{numbers}]")) == 16384
    longer = numbers.replace("16383", "16384")
    with pytest.raises(UsageError, match=re.escape('-16384" expands to more than 16,384 hosts')):
        parse(f"n[{longer}]")


def test_a_range_without_brackets_is_shown_with_them() -> None:
    with pytest.raises(UsageError) as refused:
        parse("10.0.0.1-16")

    assert refused.value.hint == "for a range write 10.0.0.[1-16]"


NAMES = st.from_regex(r"[a-z]{1,3}(-[a-z])?[0-9]{0,3}", fullmatch=True)


@given(st.lists(NAMES, min_size=1, unique=True))
def test_what_is_folded_unfolds_to_the_same(hosts: list[str]) -> None:
    assert list(parse(fold(hosts))) == hosts


@given(st.integers(1, 200), st.integers(1, 300))
def test_a_run_of_addresses_folds_to_one_range(first: int, count: int) -> None:
    hosts = [f"10.0.0.{number}" for number in range(first, first + count)]

    assert list(parse(fold(hosts))) == hosts
    assert len(fold(hosts)) < 20


def test_a_hostfile_of_open_mpi_and_one_of_mpich(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(
        "# two racks\n\nnode1 slots=8 max_slots=8\nnode2:8   # MPICH\nnode[03-04]\nnode1 slots=4\n", "utf-8"
    )

    assert read_hostfile(str(file)) == ("node1", "node2", "node03", "node04")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no host"),
        ("# nothing\n", "has no host"),
        ("ok\nn[1\n", 'line 2: "n[1": a "]" is missing'),
    ],
)
def test_a_wrong_hostfile_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "hosts"
    file.write_text(text)

    with pytest.raises(UsageError, match=re.escape(words)):
        read_hostfile(str(file))


def test_a_hostfile_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_hostfile(str(tmp_path / "none"))


def test_many_ranges_count_together(tmp_path: Path) -> None:
    ranges = ",".join(["0-9999"] * 50)
    with pytest.raises(UsageError, match="expands to more than 16,384 hosts"):
        parse(f"a[{ranges}]")
    with pytest.raises(UsageError, match="it has more than 16,384 hosts"):
        parse(",".join(f"a{number}x[0-9999]" for number in range(50)))
    file = tmp_path / "hosts"
    file.write_text("".join(f"a{number}x[0-9999]\n" for number in range(50)))
    with pytest.raises(UsageError, match="line 2: this is more than 16,384 hosts"):
        read_hostfile(str(file))


def test_brackets_are_counted_before_they_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, calls = host_list._numbers, list[str]()

    def counted(inside: str, text: str, option: str) -> list[str]:
        calls.append(inside)
        return numbers(inside, text, option)

    monkeypatch.setattr(host_list, "_numbers", counted)
    with pytest.raises(UsageError, match="expands to more than 16,384 hosts") as refused:
        parse("n" + "[1-999]" * 500)

    assert len(calls) == 2
    assert len(refused.value.message) < 300


def test_a_hostfile_repeats_names_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("n[1-16384]\n" * 16)
    assert len(read_hostfile(str(file))) == 16384

    file.write_text("n[1-16384]\n" * 300)
    with pytest.raises(UsageError, match="line 66: more than 1,048,576 names of the file are repeated"):
        read_hostfile(str(file))


@pytest.mark.parametrize("text", ["n" * 5000, "n,n,n" + " " * 5000, "[" + "0" * 5000 + "]", "a@" * 5000])
def test_a_message_does_not_repeat_a_long_text(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)

    assert len(refused.value.message) < 300
