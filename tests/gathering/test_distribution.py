"""What is made of the files that hosts send."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hccl_tools.gathering import distribution
from hccl_tools.gathering.distribution import Copy
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.gathering.table_copy import FileState, pack
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.validation.checker import validate

TABLE = next((Path(__file__).parents[2] / "sample_tables").glob("hccl_8p_*.json")).read_bytes()


@pytest.mark.parametrize(("more", "state"), [(1 << 19, "equal"), (1 << 25, "other")])
def test_a_small_answer_that_unpacks_to_a_huge_file_is_not_read_as_a_table(more: int, state: str) -> None:
    table = validate(TABLE).table
    assert table is not None
    copy = Copy(TABLE, fingerprint(table), "/t.json")
    file = TABLE + b" " * more
    content = pack(file)
    seen = FileState("file", hashlib.sha256(file).hexdigest(), 0o644, content)

    judged = distribution._judged(SurveyAnswer("h1", file=seen), seen, copy, {})

    assert len(content) < 1 << 20
    assert judged.state == state
    assert judged.fingerprint == (copy.fingerprint if state == "equal" else "")
