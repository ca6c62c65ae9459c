"""Tables with their numbers as differences."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.launch.protocol.differences import decoded, encoded
from hccl_tools.launch.protocol.messages import Table

PLACES = st.sampled_from(["", ".", " ", '{"rank_id": "', "ä", "\x00", "x" * 60])
NUMBERS = st.integers(0, 1 << 70).map(str) | st.sampled_from(["0", "00", "007", "9" * 15, "9" * 16, "1"])


@given(st.lists(PLACES | NUMBERS).map("".join).map(str.encode) | st.binary())
def test_all_bytes_come_back(data: bytes) -> None:
    assert decoded(encoded(data)) == data


def test_ranks_and_addresses_that_count_upwards_become_equal() -> None:
    ranks = [
        {
            "device_ip": f"10.0.{rank // 200}.{rank % 200}",
            "rank_id": str(rank),
            "super_device_id": str(rank << 16),
        }
        for rank in range(8000)
    ]
    data = json.dumps(ranks, indent=1).encode()

    assert len(zlib.compress(encoded(data), 9)) < len(zlib.compress(data, 9)) / 8
    assert Table.of(data).data() == data


@pytest.mark.parametrize("data", [b"a1", b"1" * 40, b"a2 3a1 3"])
def test_a_number_below_zero_or_too_large_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="b'"):
        decoded(data)
