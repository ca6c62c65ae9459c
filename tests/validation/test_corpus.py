"""HCCL's own verdicts on 2,899 rows are ours."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hccl_tools.errors import InputError
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.diagnostics.diagnostic import Verdict

HERE = Path(__file__).parent.parent / "data" / "corpus"
#: Other people's files: read in place where they are at hand, never part of this repository.
ELSEWHERE = Path(__file__).parents[3] / "shared" / "corpus"
VERDICTS: dict[str, Verdict] = {"ACCEPT": "accepted", "REJECT": "refused", "HANG": "hangs"}
ENVIRONMENTS = {
    "": {},
    "backup": {"HCCL_OP_EXPANSION_MODE": "AI_CPU", "HCCL_OP_RETRY_ENABLE": "L0:0,L1:0,L2:1"},
    "roce": {"HCCL_INTRA_ROCE_ENABLE": "1"},
}
#: Rows that no verdict on a table can answer, with the reason.
SKIPPED = {"path_missing": "there is no such file: that is an InputError, not a finding"}


class Row(NamedTuple):
    name: str
    source: Any
    product: str
    verdict: str
    error: str
    env: Mapping[str, str] = MappingProxyType({})


def rows_of(table: Path, folder: Path) -> list[Row]:
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        Row(
            row.get("case", row["file"]),
            folder / row["file"],
            row["product"],
            row["verdict"],
            row["hccl_error"],
        )
        for row in rows
    ]


def found_rows() -> list[Row]:
    """Small tables on which we once differed from HCCL, with the environment variables of the job."""
    folder = HERE / "found"
    with (folder / "found.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        Row(
            row["file"],
            folder / row["file"],
            row["product"],
            row["verdict"],
            row["hccl"],
            dict(pair.split("=", 1) for pair in row["environment"].split()),
        )
        for row in rows
    ]


def disagreements(rows: list[Row]) -> list[str]:
    found = []
    for row in rows:
        product, _, environment = row.product.partition("+")
        report = validate(row.source, product=product, env={**ENVIRONMENTS[environment], **row.env})
        # The verdict on a service table is that of its reader: HCCL refuses all of them.
        verdict = "refused" if report.is_service else report.verdict
        if verdict != VERDICTS[row.verdict]:
            ours = [f"{one.rule.id} {one.message} at {one.pointer}" for one in report.findings[:3]]
            found.append(
                f"{row.name} on {row.product}: HCCL {row.verdict} ({row.error}), ours {report.verdict} {ours}"
            )
    return found


def test_hand_made_cases() -> None:
    rows = [row for row in rows_of(HERE / "cases.tsv", HERE / "cases") if not row.name.startswith("doc_")]
    judged = [row for row in rows if row.name not in SKIPPED]

    assert len(judged) > 700
    assert disagreements(judged) == []


def test_the_skipped_rows_cannot_be_read() -> None:
    for row in rows_of(HERE / "cases.tsv", HERE / "cases"):
        if row.name in SKIPPED:
            with pytest.raises(InputError):
                validate(row.source, product=row.product)


@pytest.mark.slow
def test_random_damage() -> None:
    with (HERE / "random.jsonl").open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    rows = [Row(one["case"], one["table"], one["product"], one["verdict"], one["error"]) for one in lines]

    assert len(rows) == 1998
    assert disagreements(rows) == []


@pytest.mark.parametrize("row", found_rows(), ids=lambda row: row.name.removesuffix(".json"))
def test_former_disagreements(row: Row) -> None:
    assert disagreements([row]) == []


@pytest.mark.skipif(not ELSEWHERE.is_dir(), reason="the corpus of other people's files is not at hand")
def test_tables_found_in_the_wild() -> None:
    rows = rows_of(ELSEWHERE / "wild.tsv", ELSEWHERE / "wild")

    assert len(rows) == 170
    assert disagreements(rows) == []


@pytest.mark.skipif(not ELSEWHERE.is_dir(), reason="the corpus of other people's files is not at hand")
def test_tables_printed_in_guides() -> None:
    rows = [
        row for row in rows_of(ELSEWHERE / "cases.tsv", ELSEWHERE / "cases") if row.name.startswith("doc_")
    ]

    assert rows
    assert disagreements(rows) == []


def test_first_findings_stay_where_they_were_checked_by_hand(golden: Callable[[str, str], None]) -> None:
    lines = []
    for row in rows_of(HERE / "cases.tsv", HERE / "cases"):
        if row.verdict == "ACCEPT" or row.name in SKIPPED or row.name.startswith("doc_"):
            continue
        product, _, environment = row.product.partition("+")
        first = validate(row.source, product=product, env=ENVIRONMENTS[environment]).findings[0]
        place = first.pointer or (f"byte {first.offset}" if first.offset is not None else "the document")
        lines.append(f"{row.name}\t{row.product}\t{first.rule.id}\t{place}\n")

    golden("first_findings.tsv", "".join(lines))
