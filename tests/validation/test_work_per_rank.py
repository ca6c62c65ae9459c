"""What a sound table costs for each rank: rules that look for rare faults leave sound tables alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.tables import large_table
from hccl_tools import formats
from hccl_tools.validation.checker import validate
from tests.support.growth import steps

if TYPE_CHECKING:
    from hccl_tools.table.format_names import Format

#: Servers of tables that are large enough for orjson: it parses a rank in no line of Python.
FEW, MANY = 100, 132
#: The most lines of Python that are executed for a rank of a sound table.
MOST_LINES = {"1.0": 17.5, "1.2": 21, "2.0": 93, "group_list": 19}


@pytest.mark.slow
@pytest.mark.parametrize("table_format", MOST_LINES)
def test_a_rank_of_a_sound_table_takes_few_steps(table_format: Format) -> None:
    lines, ranks = [], []
    for servers in (FEW, MANY):
        table = large_table(table_format, servers)
        data = "".join(formats.write(table)).encode()
        assert not validate(data).findings
        lines.append(steps(lambda data=data: validate(data)))  # type: ignore[misc]
        ranks.append(len(table))
    assert (lines[1] - lines[0]) / (ranks[1] - ranks[0]) <= MOST_LINES[table_format]


#: The most lines for a rank whose address is none; with one match for each character of it there were 570.
MOST_LINES_OF_A_WRONG_RANK = 450


@pytest.mark.slow
def test_a_rank_with_a_wrong_address_takes_few_steps() -> None:
    lines, ranks = [], []
    for servers in (FEW, MANY):
        table = large_table("1.0", servers, wrong=True)
        data = "".join(formats.write(table)).encode()
        assert validate(data, limit=20).counts
        lines.append(steps(lambda data=data: validate(data, limit=20)))  # type: ignore[misc]
        ranks.append(len(table))
    assert (lines[1] - lines[0]) / (ranks[1] - ranks[0]) <= MOST_LINES_OF_A_WRONG_RANK
