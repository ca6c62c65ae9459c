"""The picture of a table as SVG."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.show.picture import imported_findings
from hccl_tools.show.picture.marks import Mark, of_findings
from hccl_tools.show.picture.svg import picture
from tests.support.growth import steps
from tests.support.pictures import doctored, explained, marked, record, subject
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {SVG + tag for tag in ("svg", "title", "desc", "style", "rect", "text", "g", "path")}


#: The pictures of the documentation, from the folder of golden files.
DOCS = "../../../docs/pictures"


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314  (made here)


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in parsed(svg).iter(f"{SVG}text")]


def classes(svg: str, rank: int) -> str:
    """The classes of the box of a rank."""
    titles = [
        box for box in parsed(svg).iter(f"{SVG}rect")
        if (title := box.find(f"{SVG}title")) is not None and (title.text or "").startswith(f"rank {rank},")
    ]  # fmt: skip
    (box,) = titles
    return box.get("class", "")


def test_two_servers(golden: Callable[[str, str], None]) -> None:
    golden(f"{DOCS}/servers.svg", picture(subject(table("1.0", 2, 8), name="hccl_2s_16p.json")))


def test_a_cause_in_a_folded_picture(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    one = subject(table("1.0", 32, 8), name="hccl_32s_256p.json")
    lost = "Rank 42 (device 2 of 10.0.0.6): the link of the device was down before the job started (EJ0002)."
    cause = record(42, lost, message="HCM217")
    cause["at"]["file"] = "plog-42.log"
    text = "a rank waited for the connection of another rank until the time limit"
    waiting = [record(rank, text, message="HCM222") for rank in range(96) if rank != 42]
    waiting[17]["peer"] = {"rank": 42, "host": None, "device": None, "address": None}
    (tmp_path / "explain.json").write_text(json.dumps(explained([cause], waiting)))
    found = imported_findings.of_explain(str(tmp_path / "explain.json"), one.table)

    golden(f"{DOCS}/cause.svg", picture(marked(one, found)))


def test_super_pods_with_findings(golden: Callable[[str, str], None]) -> None:
    value = table("1.2", 4, 4, 2)
    value["server_list"][1]["device"][2]["rank_id"] = "3"
    one = subject(value)

    golden("picture-pods.svg", picture(marked(one, of_findings(one.report))))


@pytest.mark.parametrize("servers", [1, 2, 16, 128])
def test_every_picture_is_a_page_with_its_facts(servers: int) -> None:
    one = subject(table("1.0", servers, 8), name="cluster.json")
    svg = picture(one)

    root = parsed(svg)
    left, top, width, height = map(float, str(root.get("viewBox")).split())
    assert (left, top, width) == (0, 0, 1123)
    assert 200 < height <= 794
    assert {element.tag for element in root.iter()} <= TAGS
    (facts,) = [text for text in texts(svg) if text.startswith("format 1.0, product 910a")]
    assert f"{servers * 8:,} ranks, fingerprint " in facts
    assert facts.endswith("drawn 2026-01-02")
    assert "cluster.json" in texts(svg)
    assert any("Huawei cache coherence system" in text for text in texts(svg))


def test_126_of_128_servers_are_folded() -> None:
    svg = picture(subject(table("1.0", 128, 8)))

    assert "126 more like this" in texts(svg)
    assert "8-15" in texts(svg)  # the cell of a folded server


def test_a_finding_has_a_number_a_sentence_and_a_rule() -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][2]["rank_id"] = "3"
    one = subject(value)
    svg = picture(marked(one, of_findings(one.report)))

    assert 'HCC203, error: rank id "3" is used by two devices (job.json:' in "\n".join(texts(svg))
    assert svg.count("symbol error") == 3  # the two devices and the sentence


def test_findings_that_are_counted_only_are_not_kept_quiet() -> None:
    value = table("1.0", 200, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["device_ip"] = "10.0.0.300"
    one = subject(value)
    svg = picture(marked(one, of_findings(one.report)))

    (line,) = [text for text in texts(svg) if text.startswith("HCC403")]
    assert line.endswith(", and 1,599 more; only the first 1,000 are marked")


def test_a_cause_is_marked_above_its_consequences(tmp_path: Path) -> None:
    one = subject(table("1.0", 2, 8))
    peer = {"rank": 3, "host": None, "device": None, "address": None}
    cause = record(9, "Rank 9: its link is down.", peer=peer)
    (tmp_path / "explain.json").write_text(
        json.dumps(explained([cause], [record(rank, "waited") for rank in range(8)]))
    )
    svg = picture(marked(one, imported_findings.of_explain(str(tmp_path / "explain.json"), one.table)))

    assert classes(svg, 9) == "npu cause"
    assert classes(svg, 0) == "npu consequence"
    assert classes(svg, 12) == "npu silent"
    assert "HCM217, cause: Rank 9: its link is down. (plog.log:7)" in texts(svg)
    assert "grey: no error in the logs" in texts(svg)
    assert svg.count('class="failed cause"') == 1


def test_findings_on_a_name_that_all_servers_have_take_linear_time(tmp_path: Path) -> None:
    def taken(number: int) -> int:
        value = table("1.0", number, 1)
        for server in value["server_list"]:
            server["container_ip"] = "10.9.9.9"
        one, path = subject(value), tmp_path / "doctor.json"
        path.write_text(json.dumps(doctored(*[{"hosts": ["10.9.9.9"], "devices": [0]}] * number)))
        return steps(lambda: imported_findings.of_doctor(str(path), one.table))

    assert taken(800) < 2.5 * taken(400)


def test_findings_of_doctor_are_on_their_device_or_server(tmp_path: Path) -> None:
    one = subject(table("1.0", 2, 8))
    (tmp_path / "doctor.json").write_text(
        json.dumps(
            doctored(
                {"hosts": ["10.0.0.2"], "devices": [3]},
                {"check": "HCD301", "consequence": "may-stop", "message": "differs", "hosts": ["10.0.0.1"]},
                {"check": "HCD101", "not_examined": True, "message": "not run", "hosts": ["elsewhere"]},
            )
        )
    )
    svg = picture(marked(one, imported_findings.of_doctor(str(tmp_path / "doctor.json"), one.table)))

    assert classes(svg, 11) == "npu error"
    assert 'class="server warning"' in svg
    assert "HCD101, note: elsewhere: not run" in texts(svg)


HOSTILE = st.one_of(
    st.sampled_from(
        ["</script>", "]]>", "<!--", "\"'&<>", "\x00\x1b[31m", "\u202e", "\ud7ff\ufffe", "a" * 3000]
    ),
    st.text(st.characters(codec="utf-8"), max_size=40),
)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_name_becomes_markup(name: str, address: str, sentence: str) -> None:
    value = table("1.2", 2, 2, 2)
    value["server_list"][0]["server_id"] = name
    value["super_pod_list"][0]["super_pod_id"] = name
    value["server_list"][1]["device"][0]["device_ip"] = address
    one = subject(value, name=name)
    svg = picture(marked(one, [Mark("cause", name[:9], sentence, (0,), (1,), name, ((0, 1),))]))

    assert {element.tag for element in parsed(svg).iter()} <= TAGS
    assert all(text.isprintable() for text in texts(svg))
