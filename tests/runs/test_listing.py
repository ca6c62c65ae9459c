"""The list of runs fits the screen, whatever its rows are."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.notation.screen import cells
from hccl_tools.runs import listing
from hccl_tools.runs.ends import REASONS
from hccl_tools.runs.index import Run

_DAY_S = 86400.0
_NUMBERS = st.one_of(st.integers(0, 300), st.sampled_from([65536, 10**30]))
_RUNS = st.builds(
    lambda number, age, **known: Run(
        f"/tmp/jobs/log/20261129-0443{number:02}-4f2d0123456789abcdef0123456789ab",
        started=time.time() - age,
        **known,
    ),
    number=st.integers(0, 59),
    age=st.sampled_from([0.0, 59.0, 119 * 60.0, 47 * 3600.0, 300 * _DAY_S, 20_000 * _DAY_S]),
    state=st.sampled_from(["running", "ended", "killed", "elsewhere"]),
    ranks=_NUMBERS,
    hosts=_NUMBERS,
    exit_code=st.one_of(st.none(), _NUMBERS),
    reason=st.sampled_from([*REASONS, "", "a reason that another user has made up", "\u8bad\u7ec3" * 20]),
    command=st.sampled_from(
        [("true",), ("sh", "-c", "echo up; exit 3 # " + "x" * 90), ("\u8bad\u7ec3" * 50,)]
    ),
    user=st.sampled_from(["", "", "root", "nobody", "a-user-with-a-long-name-of-32-xx"]),
    left=st.integers(0, 3),
)


@pytest.fixture(autouse=True)
def own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def table(runs: list[Run]) -> list[str]:
    """Return the header and the rows, without the notes below them."""
    return listing.as_text(runs).splitlines()[: len(runs) + 1]


@given(st.lists(_RUNS, min_size=1, max_size=4, unique_by=lambda run: run.path))
def test_all_rows_fit_80_columns(runs: list[Run]) -> None:
    header, *rows = table(runs)

    assert [line for line in (header, *rows) if cells(line) > 80] == []
    assert header.split()[0] == "run"
    assert "state" in header.split()
    for run, row in zip(runs, rows, strict=True):
        assert run.path.rpartition("/")[2].startswith(row.split()[0])


def run(**known: object) -> Run:
    usual = {"state": "ended", "reason": "failed", "ranks": 2, "exit_code": 3, "started": time.time()}
    path = "/tmp/jobs/log/20261129-044337-4f2d0123456789abcdef0123456789ab"
    return Run(path, **{**usual, "command": ("sh", "-c", "x" * 90), **known})  # type: ignore[arg-type]


def test_columns_are_left_out_one_after_the_other() -> None:
    assert table([run()])[0].split() == ["run", "state", "ranks", "age", "exit", "program"]
    assert table([run(hosts=3)])[0].split() == ["run", "state", "ranks", "hosts", "age", "exit", "program"]
    wide = {"hosts": 3, "user": "a-user-with-a-long-name", "started": time.time() - 119 * 60}
    assert table([run(**wide)])[0].split() == [
        "run",
        "user",
        "state",
        "ranks",
        "hosts",
        "age",
        "exit",
        "program",
    ]
    killed = run(**wide, state="killed", exit_code=None)
    assert table([killed])[0].split() == ["run", "user", "state", "age", "exit", "program"]
    assert table([killed])[1].split()[1:5] == ["a-use...", "launcher", "killed", "119"]


def test_a_narrow_screen_has_whole_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")

    header, row = table([run(hosts=3, user="nobody")])
    assert header.split() == ["run", "state", "program"]
    assert row.split() == ["20261129-044337-4f2d", "failed", "sh", "-c", "x..."]


def test_a_wide_screen_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = run(hosts=3, user="a-user-with-a-long-name", state="killed")

    assert "a-user-with-a-long-name" in table([shown])[1]
    assert "x" * 90 in table([shown])[1]
