"""The output for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools import __version__
from hccl_tools.diagnostics import FORMATS, render
from hccl_tools.diagnostics.diagnostic import Diagnostic
from hccl_tools.diagnostics.placing import place
from hccl_tools.diagnostics.text import snippet
from hccl_tools.errors import UsageError
from hccl_tools.validation.checker import validate
from tests.support import reports
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("output_format", sorted(FORMATS))
def test_golden(golden: Callable[[str, str], None], output_format: str) -> None:
    shown = [reports.table(), reports.sound(), reports.broken(), reports.parsed()]

    text = "".join(render(shown, output_format))

    golden(f"{output_format}.txt", text.replace(f'"version": "{__version__}"', '"version": "X.Y.Z"'))


def test_golden_with_colors(golden: Callable[[str, str], None]) -> None:
    golden("text-colors.txt", "".join(render([reports.table(), reports.sound()], color=True)))


def test_the_block_of_the_design() -> None:
    block = """\
error[HCC203]: rank id "0" is used by two devices
 --> table.json:8:67  (/server_list/0/device/1/rank_id)
  |
8 |         {"device_id": "1", "device_ip": "192.168.1.2", "rank_id": "0"}
  |                                                                   ^^^
  = first used at table.json:7:67
  = HCCL: refuses the table with EI0014
  = help: give every device its own rank id, 0 to N-1
"""

    assert block in "".join(render([reports.table()]))


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UsageError, match='unknown output format "xml"'):
        render([], "xml")


@pytest.mark.slow
def test_many_findings_of_a_rule_are_folded() -> None:
    text = "".join(render([reports.many(1000)]))
    whole = "".join(render([reports.many(1000)], show_all=True))

    assert text.count("error[HCC203]") == 20
    assert "... and 980 more HCC203 duplicate-rank-id (`--all`)\n" in text
    assert "1,000 errors: HCCL refuses this table\n" in text
    assert whole.count("error[HCC203]") == 1000
    assert "more HCC203" not in whole


def test_a_long_line_is_shown_as_a_window() -> None:
    text = "".join(render([reports.many(1000)], show_all=True))

    lines = text.splitlines()
    assert max(map(len, lines)) < 140
    at = lines.index("error[HCC203]: device 500 is wrong")
    source, marker = lines[at + 3 : at + 5]
    assert source.startswith("1 | ...")
    assert source.endswith("...")
    assert source[marker.index("^") : marker.rindex("^") + 1] == '"00500"'


def test_only_hccl_leaves_out_what_hccl_takes() -> None:
    text = "".join(render([reports.table()], only_hccl=True))

    assert "HCC203" in text
    assert "HCC106" in text
    assert not any(rule in text for rule in ("HCC401", "HCC309", "HCC601"))
    assert "3 errors: HCCL refuses this table" in text


@pytest.mark.parametrize("output_format", ["text", "concise", "github", "json", "sarif"])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_nothing_from_a_table_reaches_the_terminal_raw(output_format: str, ascii_only: bool) -> None:
    nasty = "\x1b[31m\u202e\ud800\r\n\x9b::error::\u200b"
    finding = Diagnostic(reports.DUPLICATE_RANK, nasty, (nasty,), nasty)
    report = reports.table(f"a{nasty}.json", text='{"\x7f\u202e\x9b\u200b": 1}', findings=(finding,))
    report = report._replace(format_reason=nasty, product_reason=nasty)

    text = "".join(render([report], output_format, ascii_only=ascii_only))

    assert all(char.isprintable() or char == "\n" for char in text)
    assert text.encode()
    assert not any(line.lstrip().startswith("::error::") for line in text.splitlines())
    assert text.isascii() or not ascii_only


def test_chinese_text_keeps_the_caret_in_its_column() -> None:
    report = reports.table(
        text='{"设备": "x", "a": "b"}', findings=(Diagnostic(reports.ADVICE, "x", ("a",)),)
    )
    assert report.document is not None
    (placed,) = place(report, report.findings)
    assert placed.place is not None

    source, marker = snippet(report.document, placed.place) or ("", "")
    escaped, below = snippet(report.document, placed.place, ascii_only=True) or ("", "")

    assert source == '{"设备": "x", "a": "b"}'
    assert marker == " " * 19 + "^^^"
    assert escaped == '{"\\u8bbe\\u5907": "x", "a": "b"}'
    assert below == " " * escaped.index('"b"') + "^^^"


@pytest.mark.parametrize("data", [b"", b" \n \n", '{"a": 1}'.encode("utf-16"), b"\0" * 100, b"\x7fELF\0\0\0"])
def test_a_file_without_text_has_no_source_line(data: bytes) -> None:
    text = "".join(render([reports.broken(data)]))

    assert " | " not in text
    assert " --> broken.json:1:1\n" in text


def test_a_cut_off_file_points_at_its_end() -> None:
    text = "".join(render([reports.broken(b'{\n  "version": "1.0"\n\n')]))

    assert '2 |   "version": "1.0"\n  |                   ^\n' in text


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ((), "no findings: HCCL accepts this table"),
        ((Diagnostic(reports.ADVICE, "x"),), "1 warning: HCCL accepts this table"),
        ((Diagnostic(reports.LATER, "x"),), "1 error: HCCL accepts this table, but the job fails later"),
        (
            (Diagnostic(reports.FORBIDDEN, "x"),),
            "1 error: HCCL accepts this table, but the guide for 910a forbids it",
        ),
    ],
)
def test_the_closing_line_gives_the_verdict(findings: tuple[Diagnostic, ...], words: str) -> None:
    report = reports.table(findings=findings)._replace(verdict="accepted")

    assert "".join(render([report])).endswith(f"{words}\n")


def test_equal_findings_are_one_block_with_their_places() -> None:
    value = table("1.0", 4, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["rank_id"] = int(device["rank_id"])
    report = validate(json.dumps(value, indent=1).encode())

    text = "".join(render([report]))
    whole = "".join(render([report], show_all=True))
    listed = json.loads("".join(render([report], "json")))["files"][0]["findings"]

    assert text.count("error[HCC112]") == whole.count("error[HCC112]") == 1
    assert 'error[HCC112]: "rank_id" is a number\n' in text
    assert "  = in 32 places: " in text
    assert "and 12 more (`--all`)" in text
    assert "= help: write each as a string, in double quotes\n" in text
    assert "more HCC112" not in text
    assert "(`--all`)" not in whole
    assert len([one for one in listed if one["rule"] == "HCC112"]) == 32
    assert "32 errors: HCCL refuses this table\n" in text


def test_a_finding_that_is_alone_keeps_its_own_words() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][3]["rank_id"] = 3

    text = "".join(render([validate(json.dumps(value, indent=1).encode())]))

    assert 'error[HCC112]: "rank_id" is the number 3\n' in text
    assert '= help: write it as a string: "rank_id": "3"\n' in text
    assert " places: " not in text


def test_findings_with_the_same_words_at_two_places_are_one_block() -> None:
    same = [Diagnostic(reports.FORBIDDEN, "no", reports.rank(device), "do otherwise") for device in (0, 1)]
    other = Diagnostic(reports.FORBIDDEN, "no", ("status",), "do it in a third way")

    text = "".join(render([reports.table(findings=(same[0], other, same[1]))]))

    assert text.count("error[HCC309]: no\n") == 2
    assert "= in 2 places: 7:67, 8:67\n" in text


def test_a_rule_that_says_the_same_as_another_is_one_line() -> None:
    value = table("1.2", 2, 8)
    for server in value["server_list"]:
        for device in server["device"]:
            device["super_device_id"] = f"0x{int(device['super_device_id']):x}"
    report = validate(json.dumps(value, indent=1).encode())

    text = "".join(render([report]))

    assert text.count("super_device_ids are hexadecimal, and HCCL reads each as 0") == 1
    assert "\nHCC603 says the same as HCC528, of 16 places\n" in text


def test_the_limit_counts_the_blocks() -> None:
    findings = tuple(
        Diagnostic(reports.FORBIDDEN, f"fault {number // 2}", reports.rank(number % 2))
        for number in range(60)
    )

    text = "".join(render([reports.table(findings=findings)]))

    assert text.count("error[HCC309]") == 20
    assert "... and 20 more HCC309 crossed-groups (`--all`)\n" in text
