"""The output of ``all_reduce_test``, as recorded in CANN's guide and sources, whole and damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.programs.hccl_test import Reading, read_output

OLD = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"
NEW = "data_size(Bytes): | avg_time(us): | alg_bandwidth(GB/s): | check_result:"
ROW = "67108864          | 1000.00        | 67.10886             | success"
BEFORE = [
    "the minbytes is 67108864, maxbytes is 67108864, iters is 20, warmup_iters is 10",
    "[WARN] a line | with a bar",
]


@pytest.mark.parametrize("header", [OLD, NEW])
@pytest.mark.parametrize("verdict", ["success", "failed", "NULL"])
def test_a_result(header: str, verdict: str) -> None:
    row = ROW.replace("success", verdict)

    assert read_output([*BEFORE, f"{header}\n", f"{row}\n", "", "a last line"]) == (
        Reading(67.10886, verdict),
        "",
    )


def test_a_line_of_another_process_between_header_and_result() -> None:
    assert read_output([OLD, "[INFO] rank 1 is done", ROW])[0] == Reading(67.10886, "success")


def test_a_wrong_sum_of_the_second_process() -> None:
    """Rank 0 prints the table: its own sum is right."""
    other = "local rank_id 1, check result failed, 67108864          | 1000.00 | 67.10886 | failed"

    assert read_output([other, OLD, ROW])[0] == Reading(67.10886, "failed")
    assert read_output([OLD, ROW, other])[0] == Reading(67.10886, "failed")


def test_two_results_are_two_processes_that_ran_alone() -> None:
    found, why = read_output([OLD, ROW, OLD, ROW])

    assert found is None
    assert "built with another MPI" in why


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "all_reduce_test printed nothing"),
        (["", "-----"], "all_reduce_test printed nothing"),
        ([*BEFORE, OLD], "check_result:"),
        ([OLD, ROW[:40]], "67108864"),
        ([ROW], "success"),
        ([OLD, ROW.replace("67.10886", "inf")], "inf"),
        ([OLD, ROW.replace("67.10886", "0.00000")], "0.00000"),
        ([OLD, ROW.replace("67.10886", "1" * 5000 + ".0")], "1111"),
        ([OLD, ROW.replace("success", "maybe")], "maybe"),
        (
            [*BEFORE, "hccl interface return err ./common/src/hccl_test_common.cc:538, retcode: 7", "bye"],
            "retcode: 7",
        ),
        (["env: '/x/all_reduce_test': No such file or directory", "-" * 60, "mpirun exits"], "No such file"),
        (["\x1b[31mError\x00"], "\\u001b[31mError\\u0000"),
    ],
)
def test_no_result(lines: list[str], why: str) -> None:
    found, text = read_output(lines)

    assert found is None
    assert why in text
    assert len(text) < 300


@given(st.lists(st.one_of(st.sampled_from([OLD, NEW, ROW]), st.text(), st.text("|. 0123456789:"))))
def test_any_text(lines: list[str]) -> None:
    found, why = read_output(lines)

    assert (found is None) == bool(why)
    assert why.isprintable()
