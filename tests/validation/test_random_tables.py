"""No table ends a command with a traceback, however it is damaged.

``benchmarks/random_tables.py`` tries more of the same.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support import random_tables
from tests.support.tables import table

_SEED = 20261201
_TURNS = 3000
#: CPU seconds for a table of at most 200 KB, on a machine that does other work.
_MOST_SECONDS = 3.0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_damage_ends_in_a_verdict(part: int) -> None:
    sound, verdicts = random_tables.bases(), set()
    for turn in range(part, _TURNS, 4):
        random = Random(f"{_SEED}/{turn}")  # noqa: S311  (repeatable)
        data = random_tables.make(sound, random)
        began = time.process_time()
        verdicts.add(random_tables.judge(data, random))

        assert time.process_time() - began < _MOST_SECONDS, data[:2000]
    assert verdicts == {"accepted", "refused", "hangs"}


@pytest.mark.parametrize("product", ["910a", "a2", "a3-server", "300i"])
@pytest.mark.parametrize("number", ["x", "", 10**19, None, -1])
def test_the_one_device_more_of_a_server_has_no_readable_number(product: str, number: Any) -> None:
    value = table("1.0", 2, 2)
    value["server_list"][1]["device"].append(
        {"device_id": number, "device_ip": "192.168.1.9", "rank_id": "4"}
    )

    assert validate(value, product=product).verdict == "refused"


@pytest.mark.parametrize("target", [None, "mindie", "xllm", "torch", "mindspore"])
@pytest.mark.parametrize("product", ["910a", "a2", "a3", "a5"])
def test_a_table_of_nothing(product: str, target: str | None) -> None:
    empty = {"version": "2.0", "status": "completed", "rank_count": 8, "rank_list": []}
    tables = (empty, {**table("1.0"), "server_list": []}, {**table("group_list"), "group_list": []})

    for value in tables:
        assert not validate(value, product=product, target=target).ok
