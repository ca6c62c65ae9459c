"""Text in a table that is not part of it is named as what it is, and the remedy gives the table back."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import urllib.parse
from typing import TYPE_CHECKING

import pytest

from hccl_tools.document.document import Document
from hccl_tools.document.explanation import explained
from hccl_tools.document.foreign_text import without_comments
from hccl_tools.document.rewriting import is_correctable, parseable
from hccl_tools.notation import placeholders
from hccl_tools.validation.checker import validate
from tests.support.growth import least
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VALUE = table("1.0", 2, 4)
PRETTY = json.dumps(VALUE, indent=4) + "\n"
LINES = PRETTY.splitlines(keepends=True)


def told(text: str) -> tuple[str, str, int]:
    """Return message, hint and line about a text that is not a table."""
    document = Document.parse(text.encode(), "x")
    problem = explained(document)
    if problem is not None:
        return problem.message, problem.hint, document.position(problem.offset).line
    finding = next(one for one in validate(text.encode()).findings if one.rule.id == "HCC110")
    return finding.message, finding.hint or "", 1


def with_line(line: str, at: int = 10) -> str:
    return "".join([*LINES[: at - 1], f"{line}\n", *LINES[at - 1 :]])


def written_by(command: str, text: str, folder: Path) -> str:
    """Return what a command writes from OLD to NEW."""
    (folder / "OLD").write_text(text)
    command = command.replace("python3", sys.executable, 1)
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    return (folder / "NEW").read_text()


def diffed(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*(f" {line}" for line in lines[:9]), f"-{lines[9]}", *(f"+{line}" for line in lines[9:])])


_DRESSED: dict[str, tuple[Callable[[str], str], str]] = {
    "cat -n": (
        lambda text: "".join(f"{number:6}\t{line}" for number, line in enumerate(text.splitlines(True), 1)),
        "each line begins with its line number, as `cat -n` prints it",
    ),
    "grep -n": (
        lambda text: "".join(f"{number}:{line}" for number, line in enumerate(text.splitlines(True), 1)),
        "each line begins with its line number, as `grep -n` prints it",
    ),
    "grep -n of files": (
        lambda text: "".join(
            f"a-1.json:{number}:{line}" for number, line in enumerate(text.splitlines(True), 1)
        ),
        "each line begins with its file name and line number, as `grep -n` prints it",
    ),
    "bat": (
        lambda text: "".join(f"{number:4} | {line}" for number, line in enumerate(text.splitlines(True), 1)),
        "each line begins with its line number",
    ),
    "nl": (
        lambda text: "".join(f"{number:4} {line}" for number, line in enumerate(text.splitlines(True), 1)),
        "each line begins with its line number",
    ),
    "mail": (
        lambda text: "".join(f"> {line}" for line in text.splitlines(True)),
        'each line begins with ">", which is not part of the table',
    ),
    "comment": (
        lambda text: "".join(f"# {line}" for line in text.splitlines(True)),
        'each line begins with "#", which is not part of the table',
    ),
    "mpirun": (
        lambda text: "".join(f"[1,0]<stdout>:{line}" for line in text.splitlines(True)),
        'each line begins with "[1,0]<stdout>:", which is not part of the table',
    ),
    "colors": (
        lambda text: text.replace('"device_id":', '\x1b[34m"device_id":\x1b[0m'),
        "the text has the signs that set the colors of a terminal",
    ),
    "jq -C": (
        lambda text: "\x1b[1;39m" + re.sub(r'("[^"]*"|[\[\]{}])', "\x1b[34;1m\\1\x1b[0m\x1b[1;39m", text),
        "the text has the signs that set the colors of a terminal",
    ),
    "reply": (
        lambda text: "On Tue, Mar 4, 2025 at 9:12 AM Li Wei <li@a.com> wrote:\n"
        + "".join(f"> {line}" for line in text.splitlines(True))
        + "\n--\nLi Wei\n",
        'there is other text before the table, which begins on line 2, and there each line begins with ">"',
    ),
    "outlook": (
        lambda text: "\u53d1\u4ef6\u4eba: li@a.com\n\u4e3b\u9898: rank table\n\n"
        + "".join(f"| {line}" for line in text.splitlines(True)),
        'there is other text before the table, which begins on line 4, and there each line begins with "|"',
    ),
    "equals signs": (lambda text: text.replace('":', '" ='), "a key is not followed by a colon"),
    "semicolons": (lambda text: text.replace(",\n", ";\n"), "; in place of a comma"),
    "html": (html.escape, "the text is escaped for HTML: it has &quot; in place of"),
    "blanks of html": (
        lambda text: text.replace("    ", "&nbsp;&nbsp;"),
        "the text is escaped for HTML: it has &nbsp; in place of",
    ),
    "address": (urllib.parse.quote, "the text is escaped for a web address"),
    "diff": (diffed, "these are lines of a diff: line 10 begins with -"),
}  # fmt: skip


@pytest.mark.parametrize("name", _DRESSED)
def test_a_table_as_another_program_prints_it_gets_the_command_that_writes_it(
    tmp_path: Path, name: str
) -> None:
    dress, message = _DRESSED[name]
    text = dress(PRETTY)

    found, hint, _ = told(text)

    assert found.startswith(message)
    before = "places: " if "places: " in hint else ": "
    assert json.loads(written_by(hint[hint.index(before) + len(before) :], text, tmp_path)) == VALUE


def test_numbers_before_lines_are_no_second_table_for_an_ascend_950() -> None:
    text = _DRESSED["cat -n"][0](json.dumps(table("2.0", 1, 2), indent=1))

    report = validate(text.encode(), product="a5")

    assert report.verdict == "refused"
    assert {one.message for one in report.findings} == {
        "each line begins with its line number, as `cat -n` prints it"
    }


@pytest.mark.parametrize(
    "text", ["1\n2\n3\n4\n", "1 a\n2 b\n3 c\n4 d\n", "1:{\n", "1\t{\n3\t}\n4\t}\n7\t]\n"]
)
def test_other_numbers_are_not_line_numbers(text: str) -> None:
    assert "its line number" not in told(text)[0]


def test_a_hunk_of_a_diff_is_for_patch() -> None:
    hunk = "@@ -5,3 +5,3 @@\n" + "".join(f" {line}" for line in LINES[4:7])

    message, hint, _ = told(f"--- a.json\n+++ b.json\n{hunk}")

    assert message == "this is a diff, not a rank table"
    assert hint == "apply the diff to its table: patch TABLE.json < FILE"


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("Warning: Permanently added '10.0.0.2' (ED25519) to the list of known hosts.", False),
        ("[2026-11-27 06:00:01] collecting 10.0.0.2", False),
        ("2026-11-27 06:00:01,123 INFO done", False),
        ("ssh: connect to host 10.0.0.2 port 22: Connection refused", True),
        ("Connection to 10.0.0.2 closed.", False),
        ("root@node1:~# ", False),
        ("------ node 2 ------", False),
        ("Traceback (most recent call last):", False),
        ("hccn_tool: command not found", True),
        ('ssh: Could not resolve hostname "node2": Name or service not known', True),
        ("done", False),
    ],
)
@pytest.mark.parametrize("at", [10, 12, 14])
def test_a_line_of_another_program_is_deleted(line: str, at: int, lost: bool) -> None:
    message, hint, number = told(with_line(line, at))

    assert message.startswith(f"line {at} is not part of the table: {line[:30].strip()}")
    assert number == at
    assert hint.startswith("delete it")
    assert ("the part of this host is probably missing" in hint) == lost


def test_several_lines_of_other_programs_are_one_finding() -> None:
    text = with_line("Warning: remote host identification", 20)
    text = "".join([*text.splitlines(True)[:9], "INFO start of node\n", *text.splitlines(True)[9:]])

    message, hint, line = told(text)

    assert message == "lines 10, 21 are not part of the table: INFO start of node"
    assert (hint, line) == ("delete these lines", 10)


@pytest.mark.parametrize("foot", ["14 / 62", "14", "- 14 -", "Page 14 of 62"])
def test_the_head_of_a_page_is_named_before_another_fault_behind_it(foot: str) -> None:
    text = with_line(f"Handbook of site B, revision 3\n{foot}", 10).replace('"rank_id": "7"', '"rank_id": "7')

    message, hint, line = told(text)

    assert message.startswith(
        "lines 10, 11 are not part of the table: Handbook of site B, revision 3; in the table, on line "
    )
    assert hint.startswith("on line ")
    assert hint.endswith("; then delete the lines that are not part of the table")
    assert line == 10


@pytest.mark.parametrize("line", ["15", "\u7b2c 3 \u9875 \u5171 12 \u9875", "\x0cHandbook of site B"])
def test_the_number_of_a_page_is_not_a_key(line: str) -> None:
    assert told(with_line(line, 10))[0].startswith("line 10 is not part of the table: ")


def test_a_number_beside_another_fault_is_not_named() -> None:
    text = with_line("15", 10).replace('"rank_id": "7"', '"rank_id": "7')

    assert "not part of the table" not in told(text)[0]


def test_words_at_the_place_of_a_fault_are_not_named() -> None:
    text = with_line("Handbook of site B", 10)
    lines = text.splitlines(keepends=True)
    lines[10] = lines[10].replace(",", "").replace('":', '"')

    assert "not part of the table" not in told("".join(lines))[0]


@pytest.mark.parametrize(
    "line", ['"rank_id": "5"', "rank_id: 5", "},", '"status: "completed",', "status: completed"]
)
def test_a_line_of_a_table_is_not_taken_for_one_of_another_program(line: str) -> None:
    assert "not part of the table" not in told(with_line(line))[0]


@pytest.mark.parametrize(
    "text",
    [
        "{{ rank }}",
        "{{rank}}",
        "${RANK}",
        "$RANK",
        "<RANK>",
        "%s",
        "%(rank)s",
        "@RANK@",
        "{rank}",
    ],
)
def test_a_placeholder_that_was_not_filled_in_is_the_cause(text: str) -> None:
    message, hint, line = told(PRETTY.replace('"rank_id": "0"', f'"rank_id": {text}', 1))

    assert message == f"a placeholder of a template was not filled in: {text}"
    assert "the program that fills in the template" in hint
    assert line == 11


@pytest.mark.parametrize("text", ["10.0.0.1", "node-1", "fe80::1%eth0", "100%", "a$", "<", "{}x", "rank {"])
def test_what_is_not_a_placeholder(text: str) -> None:
    assert placeholders.find(text) is None or text == "{}x"


@pytest.mark.parametrize(
    "comment",
    [
        "// ... repeat for servers 10.0.0.3 - 10.0.0.8 ...", "/* same for devices 2 to 6 */",
        "# remaining servers",
        "// \u5176\u4ed6\u8282\u70b9\u540c\u4e0a", "<!-- other devices -->", "// devices 2-7", "// etc",
    ],
)  # fmt: skip
def test_a_comment_that_stands_for_entries_is_not_only_removed(comment: str) -> None:
    message, hint, line = told(with_line(f"    {comment}", 13))

    assert message == f"a comment stands for entries that were left out: {comment}"
    assert hint.startswith("write these entries in its place")
    assert line == 13


@pytest.mark.parametrize(
    "line",
    [
        "and so on",
        "etc.",
        "(6 more devices)",
        "the rest as above",
        "\uff08\u5176\u4f59\u8bbe\u5907\u540c\u4e0a\uff09",
    ],
)
def test_a_line_of_words_that_stands_for_entries_is_not_only_deleted(line: str) -> None:
    message, hint, number = told(with_line(f"    {line}", 13))

    assert message == f"line 13 stands for entries that were left out: {line}"
    assert hint.startswith("write these entries in its place")
    assert number == 13


@pytest.mark.parametrize(
    "mark",
    [
        "... (46 devices omitted)",
        "[46 devices omitted]",
        "<46 lines omitted>",
        "... 230 lines omitted ...",
        "... output truncated ...",
        "[truncated]",
        "(snip)",
        "<snip>",
        "--- snip ---",
        "8< ------ >8",
        '"..."',
        '"46 more devices"',
        "<...>",
        "+46 lines",
        "(+46 more)",
        "46 lines skipped",
        "[Message clipped]",
        "... (content hidden) ...",
        "-- 46 lines not shown --",
        "\u2026 +46 lines (ctrl+r to expand)",
        "[Show more]",
        "and 46 others",
        "\u22ee",
        ". . .",
        "\u3002\u3002\u3002",
        "\uff08\u7565\uff09",
        "(\u540e\u9762\u76f8\u540c)",
        "Ellipsis,",
        '"...": "...",',
        "and 40+ more like this",
    ],
)
def test_a_mark_of_left_out_entries_is_not_only_deleted(mark: str) -> None:
    message, hint, number = told(with_line(f"    {mark}", 13))

    assert message == f"line 13 stands for entries that were left out: {mark}"
    assert hint.startswith("write these entries in its place, or copy the complete table again")
    assert number == 13


@pytest.mark.parametrize("comment", ["// snip", "/* truncated */", "# 46 lines skipped", "// rest unchanged"])
def test_a_comment_about_left_out_entries_is_not_removed_by_fix(comment: str) -> None:
    message, _, _ = told(with_line(f"    {comment}", 13))

    assert message == f"a comment stands for entries that were left out: {comment}"
    assert without_comments(with_line(comment, 13), 0) is None


@pytest.mark.parametrize("line", ["[Object],", "[Object], [Object],", "[Array]"])
def test_what_a_console_prints_for_nested_objects_is_not_quoted(line: str) -> None:
    message, hint, _ = told(with_line(f"    {line}", 13))

    assert message.endswith("in place of what is nested there")
    assert "JSON.stringify" in hint


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-01 10:00:00 WARNING 3 lines skipped",
        "ssh: connect to host node7: connection refused, skipped",
        "Found 8 devices on this host",
    ],
)
def test_a_line_of_a_log_stands_for_no_entries(line: str) -> None:
    assert told(with_line(line, 13))[0].startswith("line 13 is not part of the table")


@pytest.mark.parametrize("comment", ["// the first device", "# made by hand", "/* v2 */"])
def test_another_comment_is_removed(comment: str) -> None:
    assert told(with_line(comment))[:2] == ("comments are not allowed in JSON", "remove the comment")
    both = with_line(f"{comment}\n{comment}")
    assert told(both)[:2] == (
        f"comments are not allowed in JSON: {comment}, and 1 other",
        "remove both comments",
    )


def test_of_several_comments_the_one_that_stands_for_entries_is_named() -> None:
    text = with_line("// the first device")

    message, _, line = told(text.replace("    ]", "    // and so on\n    ]"))

    assert message == "a comment stands for entries that were left out: // and so on"
    assert line > 20


def test_a_table_in_a_chat_is_told_with_its_own_fault() -> None:
    damaged = with_line("// ... more devices ...", 12)

    message, hint, _ = told(f"Here is the table:\n\n```json\n{damaged}```\nThat is all.\n")

    assert message == (
        "there is other text before the table, which begins on line 4; in the table, on line 15: "
        "a comment stands for entries that were left out: // ... more devices ..."
    )
    last = damaged.count("\n") + 3
    assert hint.startswith("on line 15, write these entries in its place")
    assert hint.endswith(f"; then delete lines 1 to 3, and everything after the last }} on line {last}")


def test_keys_without_quotes_in_a_chat_are_those_of_a_table() -> None:
    damaged = re.sub(r'"(\w+)":', r"\1:", PRETTY)

    message, hint, _ = told(f"Here is the corrected table:\n\n```json\n{damaged}```\n")

    assert message.startswith(
        "there is other text before the table, which begins on line 4; in the table, on line 5"
    )
    assert "keys are not in quotes" in message
    assert hint.startswith("delete lines 1 to 3") or "; then delete lines 1 to 3" in hint


def test_keys_without_quotes_are_one_finding_and_are_quoted() -> None:
    text = PRETTY
    for key in (
        "version",
        "server_list",
        "device",
        "rank_id",
        "device_id",
        "status",
        "server_id",
        "server_count",
    ):
        text = text.replace(f'"{key}":', f"{key}:")

    message, hint, _ = told(text)

    assert message == "keys are not in quotes: version, and 23 others"
    assert hint == 'write "version", and so on; `validate --fix` does'
    assert json.loads(parseable(text.encode())) == VALUE


def test_one_key_without_quotes_is_named_alone() -> None:
    text = PRETTY.replace('"version"', "version")

    assert told(text)[:2] == ("the key version is not in quotes", 'write "version"')
    assert json.loads(parseable(text.encode())) == VALUE


def test_keys_without_quotes_beside_another_fault_get_a_command(tmp_path: Path) -> None:
    text = (
        PRETTY.replace('"version":', "version:")
        .replace('"status":', "status:")
        .replace('"rank_id": "0"', "rank_id: x")
    )

    _, hint, _ = told(text)
    after = written_by(hint[hint.index(": ") + 2 :], text, tmp_path)

    assert after == text.replace("version:", '"version":').replace("status:", '"status":').replace(
        "rank_id: x", '"rank_id": x'
    )


def test_single_quotes_are_one_finding_and_are_replaced() -> None:
    text = PRETTY.replace('"', "'")

    message, hint, _ = told(text)

    assert message.startswith("single quotes around ")
    assert "`validate --fix` does" in hint
    assert json.loads(parseable(text.encode())) == VALUE
    assert not is_correctable(text.replace("'10.0.0.1'", "None").encode())


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        ("L0", "net_layer is L0, not a number", "write 0"),
        ("layer_0", "net_layer is layer_0, not a number", "write 0"),
        ("none", "net_layer is none, not a number", "write the number"),
        ("0x0", "0x0 is not a JSON number", "write 0"),
        ("+0", "+0 is not a JSON number", "write 0"),
        ("00", "00 is not a JSON number", "write 0"),
    ],
)
def test_a_number_that_is_not_in_quotes_gets_its_value(wrong: str, message: str, hint: str) -> None:
    text = json.dumps(table("2.0", 1, 2), indent=1).replace('"net_layer": 0', f'"net_layer": {wrong}', 1)

    assert told(text)[:2] == (message, hint)


def test_a_hexadecimal_number_is_written_as_the_table_wants_it() -> None:
    text = json.dumps(table("1.2", 1, 2), indent=1).replace(
        '"super_device_id": "1"', '"super_device_id": 0x01'
    )

    assert told(text)[1] == 'write "1"'
    assert '"super_device_id": 1' in parseable(text.encode()).decode()


@pytest.mark.parametrize("between", ["]\n[", "],\n[", "],\n\n   ["])
def test_a_list_in_two_halves_is_joined(between: str) -> None:
    at = PRETTY.index('        {\n            "server_id": "10.0.0.2"')
    head = PRETTY[:at].rstrip().rstrip(",")
    damaged = f"{head}\n{between}\n{PRETTY[at:]}"

    message, hint, line = told(damaged)

    assert "a list ends on line" in message
    assert hint.startswith("write one comma in place of the ] on line ")
    ends = damaged.index(between)
    mended = f"{damaged[:ends]},{damaged[ends + len(between) :]}"
    assert json.loads(mended) == VALUE
    assert line == damaged.count("\n", 0, ends) + 1


def test_a_comma_inside_the_quotes_is_written_after_them() -> None:
    message, hint, _ = told(PRETTY.replace('"device_id": "0",', '"device_id": "0,"', 1))

    assert message == 'the comma of "0," is inside the quotes'
    assert hint == 'write "0",'


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('"rank_id"', "rank_id"),
        lambda text: text.replace('"', "'"),
        lambda text: text.replace("},", "},\nINFO one more\n"),
        lambda text: text.replace('"', "&quot;"),
        lambda text: text.replace("},", "}, // x\n"),
    ],
)
def test_a_fault_of_every_entry_is_explained_in_linear_time(damage: Callable[[str], str]) -> None:
    def spent(servers: int) -> float:
        data = damage(json.dumps(table("1.0", servers, 8), indent=1)).encode()
        return least(lambda: explained(Document.parse(data, "x")))

    assert spent(400) < 8 * spent(100)  # the square would be 16


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PRETTY.replace("_", r"\_"), r"\_ in a string, as Markdown writes _"),
        (PRETTY.replace("\n", "\\\n"), "each line ends with a backslash"),
        (re.sub(r'("server_id": "[^"]*")', r"**\1**", PRETTY), "signs of Markdown: **"),
    ],
    ids=["escaped", "continued", "bold"],
)
def test_signs_of_markdown_and_of_shells_are_removed_by_the_command(
    text: str, words: str, tmp_path: Path
) -> None:
    message, hint, _ = told(text)

    assert words in message
    assert json.loads(written_by(hint[hint.index("sed ") :], text, tmp_path)) == VALUE


def test_an_escape_of_no_notation_keeps_its_message() -> None:
    message, hint, _ = told(PRETTY.replace("10.0.0.1", r"10.0.0.1\q"))

    assert (message, hint) == (r"unknown escape \q in a string", r"write a backslash as \\")


@pytest.mark.parametrize("by_row", [False, True])
def test_columns_of_pandas_become_a_table(tmp_path: Path, *, by_row: bool) -> None:
    rows = [
        {"server_id": server["server_id"], **device}
        for server in VALUE["server_list"]
        for device in server["device"]
    ]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    text = json.dumps(
        {key: dict(enumerate(column)) for key, column in columns.items()} if by_row else columns
    )

    message, hint, _ = told(text)

    assert (
        message
        == "not a rank table: it has the values of 8 devices in columns, as pandas writes a table of rows"
    )
    made = written_by(hint[hint.index("python3 ") :], text, tmp_path)
    assert not validate(made.encode(), product="a2").findings


def test_columns_without_servers_need_them() -> None:
    message, hint, _ = told(json.dumps({"device_id": ["0", "1"], "rank_id": ["0", "1"]}))

    assert "in columns" in message
    assert hint.startswith("add the server_id of each device as a column")


@pytest.mark.parametrize(
    "comment",
    [
        "# node3, replaced 05-12",
        "// replaced 2024-05-12",
        "// rack 4, slot 2-3",
        "# ranks 8-15",
        "/* node2, ranks 8 to 15 */",
    ],
)
def test_a_range_in_a_comment_behind_a_value_stands_for_nothing(comment: str) -> None:
    text = json.dumps(table("1.0", 2, 8), indent=4)

    (found,) = validate(text.replace('"10.0.0.2",', f'"10.0.0.2",  {comment}', 1).encode()).findings

    assert "stands for" not in found.message
    assert found.hint is not None
    assert "remove" in found.hint


def test_words_in_a_comment_behind_a_value_may_stand_for_entries() -> None:
    text = json.dumps(table("1.0", 2, 8), indent=4)

    (found,) = validate(text.replace('"10.0.0.2",', '"10.0.0.2",  # and 6 more', 1).encode()).findings

    assert found.message.startswith("a comment stands for entries that were left out")
