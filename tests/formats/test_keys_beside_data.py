"""The keys of a ConfigMap that stand beside data are all named."""

from __future__ import annotations

import json

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def test_all_keys_that_moved_out_of_data_are_named() -> None:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "hccl.json": json.dumps(table("1.0", 1, 8))}

    (one,) = validate(json.dumps(value).encode()).findings
    assert 'its key "hccl.json" is beside "data"' in one.message
    (one,) = validate(json.dumps({**value, "version": "1"}).encode()).findings
    assert 'its keys "hccl.json" and "version" are beside "data"' in one.message
    assert 'move the keys into "data"' in (one.hint or "")
