"""Entries that are copies of others but for the rank: one cause, and the missing device is named."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def copied(table_format: str, servers: int) -> Any:
    """Return a table whose last server has the entry of its device 5 in place of that of device 6."""
    value = table(table_format, servers, 8)
    if table_format == "2.0":
        entries = value["rank_list"]
    elif table_format == "group_list":
        entries = value["group_list"][0]["instance_list"][-1]["devices"]
    else:
        entries = value["server_list"][-1]["device"]
    own = {"rank_id": entries[-2]["rank_id"]} if "rank_id" in entries[-2] else {}
    entries[-2] = {**deepcopy(entries[-3]), **own}
    return value


@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize("table_format", ["1.0", "1.2", "group_list", "2.0"])
def test_each_error_names_the_copy_and_the_missing_device(table_format: str, servers: int) -> None:
    found = validate(copied(table_format, servers)).errors

    assert [one.rule.id for one in found] == {
        "1.0": ["HCC404"],
        "1.2": ["HCC404", "HCC528"],
        "group_list": ["HCC404"],
        "2.0": ["HCC334"],
    }[table_format]
    assert all("device 6" in one.message + (one.hint or "") for one in found)
    assert all(one.related for one in found)


def test_a_copied_entry_of_2_0_names_its_ids_and_what_its_removal_changes() -> None:
    (found,) = validate(copied("2.0", 2)).errors

    assert found.path == ("rank_list", 14, "device_id")
    assert found.message == (
        "rank 14 is a copy of rank 13 with another rank_id: device_id, local_id and addresses are the same "
        'in node "node1", and no rank of the node has device 6'
    )
    assert (found.hint or "").endswith(
        'remove its entry, write "rank_count": 15, and number the ranks without a gap'
    )


def test_the_sdid_of_the_missing_device_is_asked_for() -> None:
    found = validate(copied("1.2", 2)).errors[1]

    assert found.message.endswith("the whole entry is a copy of the first one (HCC404)")
    assert "`npu-smi info -t spod-info -i 3 -c 0` on 10.0.0.2 shows the SDID of device 6" in (
        found.hint or ""
    )
