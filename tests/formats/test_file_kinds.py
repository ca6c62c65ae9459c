from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.formats import MODULES, detect
from hccl_tools.formats.file_kinds import (
    ENDPOINTS,
    KINDS,
    LAB,
    ROOT_INFO,
    SERVICE_TABLE,
    VERSION_1_1,
    FileKind,
    form_of,
    kind_of,
)
from hccl_tools.rules.registry import all_rules
from hccl_tools.table.products import PRODUCTS
from tests.support.tables import table


@pytest.mark.parametrize(
    ("value", "file", "kind"),
    [
        ({"server_group_list": []}, None, SERVICE_TABLE),
        ({"server_group_list": [], "server_list": []}, None, None),
        ({"endpoint_list": []}, None, ENDPOINTS),
        ({"topo_file_path": "x"}, None, ROOT_INFO),
        ({"rank_list": [{"device_id": 0}]}, None, ROOT_INFO),
        ({"rank_list": [{"device_id": 0, "rank_id": 0}]}, None, None),
        ({}, "folder/ub_endpoint_npu_3.json", ENDPOINTS),
        ([], "hccl_rootinfo.json", ROOT_INFO),
        ({}, "hccl.json", None),
    ],
)
def test_a_file_is_recognised_by_its_content_else_by_its_name(
    value: Any, file: str | None, kind: FileKind | None
) -> None:
    found = kind_of(value, file)

    assert (None if found is None else found[0]) is kind


@pytest.mark.parametrize(
    ("value", "product", "kind"),
    [
        ({"version": "1.1"}, "a2", VERSION_1_1),
        ({"version": "1.1"}, "a5", None),
        (table("lab", 1, 8), "a2", LAB),
        (table("lab", 1, 8), "a5", None),
        (table("group_list", 1, 8), "a2", None),
    ],
)
def test_a_form_is_that_of_a_product(value: Any, product: str, kind: FileKind | None) -> None:
    assert form_of(value, detect(value), PRODUCTS[product]) is kind


def test_rules_are_on_known_kinds_only() -> None:
    named = {name for rule in all_rules().values() for name in rule.formats}

    assert named == {*MODULES, *KINDS}
