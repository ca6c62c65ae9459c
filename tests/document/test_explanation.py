"""A file that is not valid JSON is explained to a person who does not know JSON, and each remedy works."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.document.document import Document
from hccl_tools.document.explanation import edit_of, explained, of_rest
from hccl_tools.document.other_content import recognise
from hccl_tools.notation.hint import with_places
from tests.support.bulk import for_each
from tests.support.growth import least
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.document import one_edit

PRETTY = json.dumps(table("1.0", 2, 4), indent=4)
ONE_LINE = json.dumps(table("1.0", 2, 4), separators=(",", ":"))
LAYOUTS = [
    json.dumps(table(name, *size), **layout)
    for name, size in (("1.0", (2, 4)), ("1.2", (2, 2)), ("2.0", (1, 2)), ("group_list", (2, 2)))
    for layout in ({"indent": 4}, {"separators": (",", ":")}, {})
]


def told(text: str) -> tuple[str, str, int]:
    """Return message, hint and line about a text that is not valid JSON."""
    document = Document.parse(text.encode(), "x")
    problem = explained(document)
    assert problem is not None
    return problem.message, problem.hint, document.position(problem.offset).line


def edit_for(text: str) -> one_edit.Edit | None:
    """Return the edit that is named for a text, which may end before its end."""
    document = Document.parse(text.encode(), "x")
    if document.problem is None:
        return of_rest(document)
    return edit_of(document)


@pytest.mark.slow
@for_each(LAYOUTS, name=lambda text: text[:30])
def test_each_sign_that_is_missing_is_found_and_writing_it_gives_the_table_back(text: str) -> None:
    value = json.loads(text)
    for sign in re.finditer(r'[{}\[\],:"]', text):
        damaged = text[: sign.start()] + text[sign.end() :]
        edit = edit_for(damaged)

        assert edit is not None, f"{sign[0]} at {sign.start()}"
        assert json.loads(edit.applied(damaged)) == value, f"{sign[0]} at {sign.start()}: {edit.hint}"


@for_each(LAYOUTS, name=lambda text: text[:30])
def test_each_bracket_and_comma_too_many_is_found(text: str) -> None:
    value = json.loads(text)
    for sign in re.finditer(r"[{}\[\],]", text):
        damaged = text[: sign.end()] + sign[0] + text[sign.end() :]
        edit = edit_for(damaged)

        assert edit is not None, f"{sign[0]} at {sign.start()}"
        assert json.loads(edit.applied(damaged)) == value, f"{sign[0]} at {sign.start()}: {edit.hint}"


@pytest.mark.parametrize(
    ("right", "wrong", "message", "hint", "line"),
    [
        ('"rank_id": "0"\n                }', '"rank_id": "0"\n                ',
         'the entry of "device" that begins on line 8 is not closed: a } is missing',
         "write } at the end of line 11", 11),
        ("            ],\n", "", 'the list "device" that begins on line 7 is not closed: a ] is missing',
         "write ], at the end of line 27", 27),
        ('"rank_id": "3"\n                }\n            ],', '"rank_id": "3"',
         ('the entry of "device" that begins on line 23 is not closed: a } is missing; '
          'the list "device" that begins on line 7 is not closed: a ] is missing'),
         "write }], at the end of line 26", 26),
        ('"device": [', '"device": ', 'the [ of the list "device" is missing',
         'write [ before the { after "device": on line 8', 8),
        ('"device": [', '"device": {',
         'the object "device" that begins on line 7 is a list, but begins with {',
         "write [ instead of the { on line 7", 7),
        ("            ],", "            },",
         'the list "device" that begins on line 7 is closed by } instead of ]',
         "write ] instead of the } on line 28", 28),
        ("                },", "                },\n                },", "one } too many: the } on line 13",
         "remove the } on line 13 and its comma", 13),
        ('"rank_id": "0"', '"rank_id: "0"', 'a double quote is missing in "rank_id: "0"',
         'write "rank_id": "0"', 11),
        ('"device_id": "0",', '"device_id": "0,', 'a double quote is missing in "device_id": "0',
         'write "device_id": "0",', 9),
        ("},", "};", "; instead of a comma", "write , instead of the ; on line 12", 12),
        ('"device": [', '"device": (', "( instead of [", "write [ instead of the ( on line 7", 7),
    ],
)  # fmt: skip
def test_the_sentence_names_the_place(right: str, wrong: str, message: str, hint: str, line: int) -> None:
    assert told(PRETTY.replace(right, wrong, 1)) == (message, hint, line)


def test_a_missing_bracket_on_one_long_line_is_named_by_the_text_at_it() -> None:
    message, hint, _ = told(ONE_LINE.replace("},{", ",{", 1))

    assert message == (
        'the entry of "device" that begins with {"device_id":"0","device_ip":"... is not closed: '
        "a } is missing"
    )
    assert hint.startswith('write } before ,{"device_id":"1","device_ip":')


def test_a_file_that_was_cut_is_not_mended_with_brackets_alone() -> None:
    message, hint, line = told(PRETTY[: PRETTY.index('"device_ip"', 600) + 20])

    assert message.startswith("the end of the file is missing: it ends inside the entry of")
    assert "copy the complete file again, or make the table with `hccl-tools gen`" in hint
    assert line > 1


@pytest.mark.parametrize(
    ("end", "lacking"),
    [
        ('"rank_id": "7"', '"host_nic_ip" in the last entry of server_list, "status"'),
        (
            '"device_id": "3"',
            (
                '"host_nic_ip" in the last entry of server_list, "device_ip" in the last entry of device, '
                '"rank_id" in the last entry of device, "status"'
            ),
        ),
        ('"host_nic_ip": "reserve"', '1 entry of server_list, "status"'),
    ],
)
def test_brackets_are_not_offered_if_more_is_missing(end: str, lacking: str) -> None:
    at = PRETTY.index(end) if "host" in end else PRETTY.rindex(end)

    message, hint, _ = told(PRETTY[: at + len(end)])

    assert message.startswith("the end of the file is missing: it ends inside ")
    assert message.endswith(f"; the table then lacks {lacking}")
    assert hint == "copy the complete file again, or make the table with `hccl-tools gen`"


def test_brackets_are_offered_if_nothing_else_is_missing() -> None:
    assert told(PRETTY[:-1])[1] == "write } at the end of the file"


def test_of_two_faults_the_first_is_named_with_a_remedy_that_leads_to_the_second() -> None:
    damaged = PRETTY.replace('"rank_id": "0"', '"rank_id: "0"').replace('"rank_id": "2"', 'rank_id": "2"')

    edit = edit_for(damaged)
    assert edit is not None
    assert edit.hint == 'write "rank_id": "0"'
    assert told(edit.applied(damaged))[1] == 'write "rank_id": "2"'


OTHERS = [
    ("2026-11-26 20:01:00 INFO start\nmore\n", "a log", "hccl-tools explain FILE"),
    ("[ERROR] HCCL(1,python):2026-11-26 failed\n", "a log", "hccl-tools explain FILE"),
    ("Traceback (most recent call last):\n  File", "a log", "hccl-tools explain FILE"),
    ("import os\nprint(1)\n", "a Python script", "hccl-tools gen"),
    ('"""Make a table."""\n', "a Python script", "hccl-tools gen"),
    ("#!/bin/bash\nset -e\n", "a script for bash", "hccl-tools gen"),
    ("export HCCL_IF_IP=1\n", "a shell script", "hccl-tools gen"),
    ("lr: 0.1\nbatch: 2\n", "a YAML file", "hccl-tools gen"),
    ("# hosts\nnode1 slots=8\nnode2 slots=8\n", "a list of hosts (hostfile)", "gen --hostfile FILE"),
    ("10.0.0.1\n10.0.0.2\n", "a list of hosts (hostfile)", "gen --hostfile FILE"),
    ("10.0.0.1 node1\n", "a list of addresses and host names, such as /etc/hosts", "hccl-tools gen"),
    ("address_0=192.168.1.1\n", "an hccn.conf, the addresses of a host's devices", "gen --hccn-conf"),
    ("<!DOCTYPE html>\n<html>502</html>", "a web page (HTML)", "download the file itself"),
    ("<?xml version='1.0'?>\n<a/>", "an XML file", "hccl-tools gen"),
    ("rank,ip\n0,1\n1,2\n", "a file of columns with commas between them", "hccl-tools gen"),
    ("RANK_SIZE=8\nA=1\n", "a file of settings (NAME=VALUE)", "hccl-tools gen"),
    ("{{ ranktable }}\n", "a template: {{ stands for text that a program fills in", "program writes"),
    ("eyJ2ZXJzaW9uIjogIjEuMCIsICJzZXJ2ZXJfbGlzdCI6IFtdfQ==\n", "text in base64", "base64 -d"),
    ("some words\n", 'a text that begins with "some words"', "hccl-tools gen"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "hint"), OTHERS)
def test_a_file_that_is_no_table_is_called_what_it_is(text: str, what: str, hint: str) -> None:
    found = recognise(text)

    assert found is not None
    assert found.message == f"this is {what}, not a rank table"
    assert hint in found.hint


@pytest.mark.parametrize(
    "text", [PRETTY, ONE_LINE, f"[{PRETTY}]", f"// note\n{PRETTY}", '"version": "1.0"', "{a: 1}"]
)
def test_what_begins_as_a_table_does_is_not_called_another_file(text: str) -> None:
    assert recognise(text) is None


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        ("$ cat hccl.json\n", "", "begins on line 2", "delete line 1"),
        ("note\n\n", "", "begins on line 3", "delete lines 1 to 2"),
        ("rank_table = ", "", "begins on line 1", "delete everything before the { of line 1"),
        ("```json\n", "\n```\n", "begins on line 2",
         f"delete line 1, and everything after the last }} on line {PRETTY.count(chr(10)) + 2}"),
    ],
)  # fmt: skip
def test_text_around_a_table_is_told_from_a_file_without_one(
    before: str, after: str, message: str, hint: str
) -> None:
    assert told(f"{before}{PRETTY}{after}")[:2] == (
        f"there is other text before the table, which {message}",
        hint,
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (bytes(range(128, 256)) * 9, "the file is not text: it begins with the byte 0x80"),
        (b"\x1f\x8b\x08\x00", "compressed by gzip"),
        ("2026-11-26 \u8d85\u65f6\n".encode("gb18030"), "this is a log"),
    ],
)
def test_a_file_that_is_no_text_gets_the_command_that_makes_a_table(data: bytes, words: str) -> None:
    problem = explained(Document.parse(data, "x"))

    if problem is None:  # The year of a log is valid JSON.
        return
    assert words in problem.message
    assert "hccl-tools" in problem.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text.replace("},", "}", 1),
        lambda text: text.replace('"rank_id"', "rank_id"),
        lambda text: text.replace("{", "{ {"),
    ],
)
def test_a_broken_file_is_explained_in_linear_time(damage: Any) -> None:
    def spent(servers: int) -> float:
        data = damage(json.dumps(table("1.0", servers, 8), indent=1)).encode()
        return least(lambda: explained(Document.parse(data, "x")))

    assert spent(400) < 8 * spent(100)  # the square would be 16


def test_a_string_over_two_lines_is_joined() -> None:
    damaged = PRETTY.replace('"10.0.0.1"', '"10.0.0.1\n   "', 1)
    edit = edit_for(damaged)

    assert edit is not None
    assert json.loads(edit.applied(damaged)) == json.loads(PRETTY)
    assert told(damaged)[:2] == (
        'a line break is inside the string "10.0.0.1',
        "write the string on lines 6 and 7 on one line, without blanks between",
    )


@pytest.mark.parametrize(
    "text", [PRETTY.replace("\n", "\\n").replace('"', '\\"'), ONE_LINE.replace('"', '\\"')]
)
def test_a_table_out_of_a_string_gets_a_command_that_writes_it(tmp_path: Path, text: str) -> None:
    message, hint, _ = told(text)
    (tmp_path / "OLD").write_text(text)
    command = hint.partition(": ")[2].replace("python3", sys.executable, 1)

    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)

    assert message.startswith("the text was copied out of a string: it has ")
    assert json.loads((tmp_path / "NEW").read_text()) == json.loads(PRETTY)


def test_what_python_printed_gets_a_command_that_writes_it(tmp_path: Path) -> None:
    _, hint, _ = told(repr(table("1.0", 1, 8)))
    (tmp_path / "OLD").write_text(repr(table("1.0", 1, 8)))
    command = hint.partition("printed this: ")[2].replace("python3", sys.executable, 1)

    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)

    assert json.loads((tmp_path / "NEW").read_text()) == table("1.0", 1, 8)


def test_a_list_of_hosts_that_nearly_is_one_is_read_in_one_way() -> None:
    """Each number behind a colon was read as a part of the setting before it, or of the host."""
    line = "node1" + " slots=:1:1" * 60

    assert recognise(f"{line}\n") is not None
    assert "list of hosts" not in str(recognise(f"{line} !\n"))


# Web pages that show a table, prompts of a shell, and dots in place of entries


def page(text: str) -> str:
    return f"<!DOCTYPE html>\n<html><body>\n<pre>{html.escape(text)}</pre>\n</body></html>\n"


def test_a_page_that_shows_a_table_has_a_command_that_takes_it_out(tmp_path: Path) -> None:
    found = recognise(page(PRETTY))

    assert found is not None
    assert found.message == "this is a web page (HTML) that shows a rank table, not the table itself"
    assert found.hint.startswith("download the file itself, which the page links as Raw")
    (tmp_path / "OLD").write_text(page(PRETTY))
    command = with_places(found.hint).partition("out of the page: ")[2]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "NEW").read_text()) == json.loads(PRETTY)


@pytest.mark.parametrize(
    "text",
    [
        "<html><head><style>a{b:c}</style></head><body>&quot;server_list&quot;: [</body></html>",
        '<html><body><script>{"rawLines":["{","  \\"rank_list\\": ["]}</script></body></html>',
    ],
)
def test_a_page_from_which_no_table_can_be_taken_has_no_command(text: str) -> None:
    found = recognise(text)

    assert found is not None
    assert found.message.startswith("this is a web page (HTML) that shows a rank table")
    assert "python3" not in found.hint


@pytest.mark.parametrize("prompt", ["[root@node-1 hccl]# ", "root@node-1:~# ", "(base) me@n1:/$ "])
def test_the_prompts_around_a_table_are_deleted_together(prompt: str) -> None:
    message, hint, _ = told(f"{prompt}cat hccl.json\n{PRETTY}\n{prompt}\n")

    assert message == "there is other text before the table, which begins on line 2"
    assert hint.startswith("delete line 1, and everything after the last }")


def test_a_list_with_an_address_is_no_prompt() -> None:
    assert recognise('["root@node"]') is None


def test_dots_in_place_of_devices_say_which_devices_these_are() -> None:
    value = table("1.0", 1, 8)
    text = json.dumps(value, indent=4)
    start, end = (text.index(f'"device_id": "{number}"') for number in (2, 7))
    begin, last = text.rindex("{", 0, start), text.rindex("{", 0, end)

    _, hint, _ = told(f"{text[:begin]}...\n{text[last:]}")

    assert hint.startswith("write the entries of devices 2 to 6 in their place, with a rank_id each: ")
    assert "`hccn_tool -i 2 -ip -g` on 10.0.0.1" in hint


def test_dots_in_place_of_servers_name_no_devices() -> None:
    text = json.dumps(table("1.0", 3, 2), indent=4)
    begin, last = (text.rindex("{", 0, text.index(f'"10.0.0.{number}"')) for number in (2, 3))

    assert told(f"{text[:begin]}...\n{text[last:]}")[1].startswith("write all entries in their place")
