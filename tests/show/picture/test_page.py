"""The page of a table: what is in the file."""

from __future__ import annotations

import gc
import json
import re
import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.tables import large_table
from hccl_tools import formats
from hccl_tools.show.picture.drawing import SCRIPTS, page
from hccl_tools.show.picture.marks import Mark
from hccl_tools.show.picture.page_data import source_lines
from hccl_tools.validation.checker import validate
from tests.support.clusters import tables
from tests.support.pictures import JSON, marked, subject
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.show.picture.subject import Subject

HOSTILE = st.one_of(
    st.sampled_from(
        ["</script>", "]]>", "<!--<script>", "\"'&<>", "\x00\x1b[31m", "\u2028", "${x}", "`", "\\"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=40),
)


class Elements(HTMLParser):
    """Collects the tags of a page and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts.append(data)


def data(one: Subject) -> JSON:
    found = re.search(r'id="data">(.*?)</script>', "".join(page(one)), re.DOTALL)
    assert found is not None
    value: JSON = json.loads(found[1])
    return value


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_name_becomes_markup_or_script(name: str, address: str, sentence: str) -> None:
    value = table("1.2", 2, 2, 2)
    value["server_list"][0]["server_id"] = name
    value["super_pod_list"][0]["super_pod_id"] = name
    value["server_list"][1]["device"][0]["device_ip"] = address
    one = marked(subject(value, name=name), [Mark("cause", name[:9], sentence, (0,), (1,), name, ((0, 1),))])
    harmless = Elements("".join(page(subject(table()))))
    hostile = Elements("".join(page(one)))

    assert hostile.tags == harmless.tags
    assert hostile.scripts[-1] == harmless.scripts[-1]
    assert set("<>&") & set(hostile.scripts[0]) == set()


def test_scripts_make_no_markup_of_text() -> None:
    text = "".join(page(subject(table())))

    assert "innerHTML" not in text
    assert "eval(" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert len(SCRIPTS) == 10


def test_the_columns_of_a_regular_table_are_short() -> None:
    found = data(subject(table("1.0", 4, 8)))

    assert found["ranks"] is None
    assert found["devices"] == list(range(8))
    assert found["sizes"] == 8
    assert found["links"]["across"] == ["7"]
    assert len(found["links"]["inner"]) == 1


def test_a_part_of_a_table_keeps_its_ranks_and_marks() -> None:
    one = subject(table("1.0", 3, 4))
    found = data(marked(one, [Mark("error", "HCC203", "wrong", (1, 9))])._replace(servers=[2]))

    assert found["servers"] == ["10.0.0.3"]
    assert found["ranks"] == [8, 9, 10, 11]
    assert found["notes"][0]["marks"][0]["rows"] == [1]


def test_devices_are_in_the_order_of_their_ids() -> None:
    value = table("1.0", 1, 4)
    value["server_list"][0]["device"].reverse()
    found = data(subject(value))

    assert found["devices"] == [0, 1, 2, 3]
    assert found["ranks"] is None
    assert found["addresses"][0] == "192.168.0.100"


@given(tables())
def test_lines_are_those_of_the_devices(made: Any) -> None:
    text = "".join(formats.write(made)).encode()
    report = validate(text)
    assert report.document is not None
    assert report.table is not None
    module = formats.module(report.table.format)
    found = source_lines(report.document, report.table)
    spans = report.document.spans([module.device_path(report.table, row) for row in range(len(report.table))])

    for line, span in zip(found, spans, strict=True):
        first, last = report.document.position(span.start).line, report.document.position(span.end - 1).line
        assert first <= line <= last


def test_lines_of_a_table_with_the_key_elsewhere_are_found_too() -> None:
    value = table("1.0", 1, 2)
    value["comment"] = {"device_id": "7"}
    report = validate(json.dumps(value, indent=1).encode())
    assert report.document is not None
    assert report.table is not None

    assert source_lines(report.document, report.table) == [8, 13]


def best_of_each(*several: Callable[[], object], times: int = 4) -> list[float]:
    """Run several things in turns and return the least CPU time of each, in seconds."""
    best = [float("inf")] * len(several)
    for _ in range(times):
        for place, run in enumerate(several):
            start = time.process_time()
            run()
            best[place] = min(best[place], time.process_time() - start)
    return best


@pytest.mark.slow
def test_the_page_of_65536_ranks_takes_three_times_validate() -> None:
    text = "".join(formats.write(large_table("1.0", 8192))).encode()
    gc.disable()  # as the command does
    try:
        checked, made = best_of_each(lambda: validate(text), lambda: "".join(page(whole(text))))
    finally:
        gc.enable()

    assert made <= 3 * checked


def whole(text: bytes) -> Subject:
    """Check a table and return it as a subject."""
    from hccl_tools.show.picture.subject import Subject

    report = validate(text)
    assert report.table is not None
    return Subject(report, report.table, range(len(report.table.servers)))
