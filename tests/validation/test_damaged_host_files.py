"""Any value at any place of a root info, topology file or endpoint file is a finding, not a crash."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.diagnostics import render
from hccl_tools.show import host_files as drawing
from hccl_tools.validation.checker import validate
from tests.support.host_files import endpoint_file, root_info, topology, write_endpoint_files, write_root_info

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES = st.sampled_from(
    [
        None, True, 0, -1, 2**70, 1.5, "", "x", "\ud800", "1.3", "-", "/dev/zero", "/dev/stdin", [], {},
        [None], ["0/0"], {"a": 1}, "00" * 16,
    ]
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


#: Documents are made once; their places are the same in every example.
KINDS = {
    "endpoints": endpoint_file(),
    "peer": endpoint_file(1),
    "rootinfo": root_info(),
    "topology": topology(),
}
PLACES = [(kind, place) for kind, value in KINDS.items() for place in places(value)]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.none() | VALUES), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_any_damage_is_reported(changes: list[tuple[tuple[str, tuple[Any, ...]], Any]]) -> None:
    made = json.loads(json.dumps(KINDS))
    for (kind, place), new in changes:
        change(made[kind], place, new)

    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = [
            write_root_info(folder, made["rootinfo"], made["topology"]),
            *write_endpoint_files(folder, [0, 1]),
        ]
        paths[1].write_text(json.dumps(made["endpoints"]))
        paths[2].write_text(json.dumps(made["peer"]))
        for path in paths:
            report = validate(path, limit=5)
            assert "".join(render([report], "text"))
            assert report.format in ("rootinfo", "endpoints") or [one.rule.id for one in report.findings] == [
                "HCC101"
            ]
            if report.document is not None and isinstance(report.document.value, dict):
                assert drawing.lines(report, report.document.value, str(path))
                json.loads(drawing.as_json(report, report.document.value, str(path)))


def change(value: Any, place: tuple[Any, ...], new: Any) -> None:
    """Replace or remove a part of a document, unless an earlier change removed it."""
    for key in place[:-1]:
        if not has(value, key):
            return
        value = value[key]
    if has(value, place[-1]) and new is None:
        del value[place[-1]]
    elif has(value, place[-1]):
        value[place[-1]] = new


def has(value: Any, key: Any) -> bool:
    """Whether an object has a key, or a list an index."""
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(value)
