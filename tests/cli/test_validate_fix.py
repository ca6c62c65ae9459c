"""``hccl-tools validate --fix``: a diff of what has one right correction; --write writes it."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.cli import validate_fix
from hccl_tools.document.document import Document
from hccl_tools.document.rewriting import parseable
from hccl_tools.errors import WriteError
from hccl_tools.validation import correction
from hccl_tools.validation.checker import validate
from hccl_tools.validation.correction import correct
from tests.support import strategies
from tests.support.commands import CommandLine
from tests.support.growth import least
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = json.dumps(table("1.0", 1, 8), indent=2)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path, capsys)


def written(call: CommandLine, data: bytes) -> bytes:
    """Write a file, correct it, and return what is then in it; a second call must find nothing to fix."""
    file = call.folder / "t.json"
    file.write_bytes(data)
    call("validate", "--fix", "--write", "t.json")
    fixed = file.read_bytes()
    again = call("validate", "--fix", "--write", "t.json")
    assert again.out == ""
    assert again.err.startswith(("t.json: nothing to fix; ", "t.json: no correction is certain; "))
    assert file.read_bytes() == fixed
    return fixed


def test_the_diff_is_shown_and_nothing_is_written(call: CommandLine) -> None:
    bad = GOOD.replace('"rank_id": "3"', '"rank_id": 3')
    call.write("t.json", bad)

    done = call("validate", "--fix", "t.json")

    assert done.code == 0
    assert done.out.startswith("--- t.json\n+++ t.json\n@@ ")
    assert [line.split() for line in done.out.splitlines()[2:] if line[0] in "-+"] == [
        ["-", '"rank_id":', "3"],
        ["+", '"rank_id":', '"3"'],
    ]
    assert "t.json: not written (add --write); with these corrections, no findings: HCCL accepts" in done.err
    assert (call.folder / "t.json").read_text() == bad


def test_patch_applies_the_diff(call: CommandLine) -> None:
    call.write(
        "t.json",
        GOOD.replace('"rank_id": "3"', '"rank_id": 3').replace('"server_count": "1"', '"server_count": "0"'),
    )
    call.write("t.diff", call("validate", "--fix", "t.json").out)

    subprocess.run(["patch", "-s", "t.json", "t.diff"], cwd=call.folder, check=True)

    assert (call.folder / "t.json").read_text() == GOOD


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: re.sub(r'"rank_id": "(\d)"', r'"rank_id": \1', text),
        lambda text: text.replace('"server_count": "1"', '"server_count": 1'),
        lambda text: text.replace('"server_count": "1"', '"server_count": "0"'),
        lambda text: text.replace('"version": "1.0"', '"version": 1.0'),
        lambda text: text.replace('"rank_id": "3"', '"rank_id": 03'),
        lambda text: text.replace('"rank_id": "3"', '"rank_id": "\uff13"'),
        lambda text: text.replace('"rank_id": "3"', '"rank_id": \uff13'),
        lambda text: text.replace('"192.168.0.103"', '"192.168.000.103"'),
        lambda text: text.replace('"192.168.0.103"', '"192\u3002168.0.103"'),
        lambda text: text.replace(": ", "\uff1a ").replace(",\n", "\uff0c\n"),
        lambda text: text.replace(": [", ": \u3010").replace("]", "\u3011"),
        lambda text: text.replace('"device_id"', "\u201cdevice_id\u201d"),
        lambda text: text.replace('"device_id"', "\u201edevice_id\u201c"),
        lambda text: text.replace('"device_id"', "\u2018device_id\u2019"),
        lambda text: text.replace('"device_id"', "\u00abdevice_id\u00bb"),
        lambda text: text.replace('"device"', '"devic"'),
        lambda text: text.replace('"server_list"', '"server_lst"'),
        lambda text: text.replace('"rank_id"', '"Rank_id"'),
        lambda text: text.replace('"rank_id"', '"rankId "'),
        lambda text: text.replace('"rank_id"', '"\uff52\uff41\uff4e\uff4b_id"'),
        lambda text: text.replace('"version"', '"verison"'),
        lambda text: text.replace('"192.168.0.103"', '" 192.168.0.103"'),
        lambda text: re.sub(r'"rank_id": "(\d)"', r'"rank_id": "\1",', text),
        lambda text: text.replace('"status": "completed"', '"status": "\uff43ompleted",'),
        lambda text: text.replace("  ", "\u3000", 1).replace("\u3000", "\u3000 "),
    ],
)
def test_each_kind_is_corrected_and_nothing_else_is_touched(
    call: CommandLine, damage: Callable[[str], str]
) -> None:
    damaged = damage(GOOD)
    assert damaged != GOOD

    assert "".join(written(call, damaged.encode()).decode().split()) == "".join(GOOD.split())


def test_line_ends_order_and_blanks_stay(call: CommandLine) -> None:
    odd = (
        '{ "status":"completed",\r\n\t"x" : [1,2 ],"server_list":[\r\n{"server_id" :"n1","device":[ '
        '{"rank_id":%s,"device_id":"0"}]}],"version":  "1.0"}'
    )

    assert written(call, (odd % "0").encode()) == (odd % '"0"').encode()


@pytest.mark.parametrize(
    ("codec", "name"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("utf-8-sig", "UTF-8 with a byte order mark"),
     ("gb18030", "GB18030"), ("utf-32", "UTF-32")],
)  # fmt: skip
def test_the_encoding_becomes_utf_8(call: CommandLine, codec: str, name: str) -> None:
    text = GOOD.replace("10.0.0.1", "\u8bad\u7ec3\u8282\u70b9\u4e00")
    (call.folder / "t.json").write_bytes(text.encode(codec))

    shown = call("validate", "--fix", "t.json")

    assert shown.out == f"--- t.json\t{name}\n+++ t.json\tUTF-8\n"
    assert shown.code == 0
    assert written(call, text.encode(codec)) == text.encode()


def test_what_fix_removes_is_reported(call: CommandLine) -> None:
    (call.folder / "t.json").write_text(GOOD, encoding="utf-8-sig")

    assert "warning[HCC660]: the file begins with a byte order mark" in call("validate", "t.json").out
    assert "HCC660" not in call("validate", "--fix", "--write", "t.json").out
    assert "byte order mark" not in call("validate", "t.json").out


def test_a_file_in_two_encodings_is_left(call: CommandLine) -> None:
    text = GOOD.replace("10.0.0.1", "\u8bad\u7ec3")
    data = text.encode("gb18030") + "\n\u8282\u70b9".encode()

    assert written(call, data) == data


@pytest.mark.parametrize(
    "damaged",
    [
        GOOD.replace('"rank_id": "3"', '"rank_id": null'),
        GOOD.replace('"rank_id": "3"', '"rank_id": "4"'),
        GOOD.replace('"rank_id": "3"', '"rank_id": 3.5'),
        GOOD.replace('"device_ip": "192.168.0.103"', '"device_ip": null'),
        GOOD.replace('"192.168.0.103"', '"192.168.0.103\u20135"'),
        GOOD.replace('"completed"', '"Completed"'),
        GOOD.replace('"server_count": "1"', '"server_count": "2"'),
        GOOD.replace('"rank_id": "3"', '"rank_id": \u20133'),
        GOOD[:-1],
        GOOD.replace('"rank_id"', '"rank_id', 1),
    ],
)
def test_what_has_several_answers_is_left(call: CommandLine, damaged: str) -> None:
    call.write("t.json", damaged)

    done = call("validate", "--fix", "--write", "t.json")

    assert done.out == ""
    assert done.code == 1
    assert "t.json: no correction is certain; " in done.err
    assert (call.folder / "t.json").read_text() == damaged


def test_what_hccl_accepts_and_no_message_corrects_is_left(call: CommandLine) -> None:
    damaged = GOOD.replace('"rank_id": "3"', '"rank_id": "3", "rank": 7')

    assert written(call, damaged.encode()) == damaged.encode()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"192.168.0.103"', '"192.168.0.103/24"'),
        ('"192.168.0.103"', '"http://192.168.0.103"'),
        ('"192.168.0.103"', '"192.168.0.103;"'),
        ('"rank_id": "3"', '"rank_id": 3.0'),
        ('"rank_id": "3"', '"rank_id": "03"'),
        ('"rank_id": "3"', '"rank_id": " 3"'),
        ('"rank_id": "3"', '"rank_id": 0x3'),
        ('"rank_id": "3"', "'rank_id': '3'"),
        ('"rank_id": "3"', 'rank_id: "3"'),
        ('"server_count"', '"serverCount"'),
        ('"server_list"', '"\u670d\u52a1\u5668\u5217\u8868"'),
        ('"rank_id": "3"', '"Rank ID": "3"'),
    ],
)
def test_the_value_that_the_message_states_is_written(call: CommandLine, right: str, wrong: str) -> None:
    damaged = GOOD.replace(right, wrong)
    assert damaged != GOOD

    assert json.loads(written(call, damaged.encode())) == json.loads(GOOD)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"super_device_id": "65537"', '"super_device_id": "65,537"'),
        ('"super_device_id": "65537"', '"super_device_id": "0x10001"'),
        ('"super_device_id": "65537"', '"super_device_id": 65537.0'),
    ],
)
def test_a_long_number_is_written_as_hccl_reads_it(call: CommandLine, right: str, wrong: str) -> None:
    value = table("1.2", 1, 2)
    value["server_list"][0]["device"][1]["super_device_id"] = "65537"
    good = json.dumps(value, indent=1)

    assert written(call, good.replace(right, wrong).encode()) == good.encode()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"net_layer": 0', '"net_layer": "L0"'),
        ('"rank_id": 1', '"rank_id": "rank1"'),
    ],
)
def test_a_number_of_a_2_0_table_is_written(call: CommandLine, right: str, wrong: str) -> None:
    good = json.dumps(table("2.0", 1, 2), indent=1)

    assert written(call, good.replace(right, wrong).encode()) == good.encode()


@pytest.mark.parametrize("eid", ["0x{}", "parts", "[{}]", " {}"])
def test_an_eid_is_written_with_its_digits_alone(call: CommandLine, eid: str) -> None:
    value = table("2.0", 1, 2)
    address = value["rank_list"][0]["level_list"][0]["rank_addr_list"][0]
    digits = "000000000000002000100000dfdf1001"
    address |= {"addr_type": "EID", "addr": digits}
    good = json.dumps(value, indent=1)
    wrong = f"{digits[:8]}:{digits[8:]}" if eid == "parts" else eid.replace("{}", digits)

    assert written(call, good.replace(digits, wrong).encode()) == good.encode()


def test_quotes_are_not_replaced_in_a_part_of_a_text(call: CommandLine) -> None:
    damaged = GOOD.replace('"', "'").replace("'3'", "None")

    assert written(call, damaged.encode()) == damaged.encode()


@pytest.mark.parametrize("text", ["{{ host }}", "${HOST}", "$HOST", "<host>", "YOUR_HOST", "%s"])
def test_a_template_that_is_not_filled_in_is_not_done(call: CommandLine, text: str) -> None:
    call.write("t.json", GOOD.replace("10.0.0.1", text).replace('"7"\n', '"7",\n'))

    done = call("validate", "--fix", "--write", "t.json")

    assert done.code == 1
    assert done.err.splitlines()[-1] == f"t.json: a placeholder of a template is not filled in: {text}"
    assert json.loads((call.folder / "t.json").read_text())


def test_a_key_that_begins_as_a_placeholder_is_none(call: CommandLine) -> None:
    call.write("t.json", GOOD.replace('"version"', '"$schema": "x", "version"'))

    assert call("validate", "--fix", "t.json").code == 0


def test_the_exit_code_is_that_of_the_corrected_file(call: CommandLine) -> None:
    both = GOOD.replace('"server_count": "1"', '"server_count": "one"').replace(
        '"rank_id": "3"', '"rank_id": "4"'
    )
    call.write("t.json", both)

    done = call("validate", "--fix", "t.json")

    assert done.code == 1
    assert '+  "server_count": "1",\n' in done.out
    assert "with these corrections, 1 error: HCCL refuses this table" in done.err
    assert done.err.endswith("next: hccl-tools validate --fix --write t.json\n")


def test_the_mode_and_a_link_stay(call: CommandLine) -> None:
    (call.folder / "real").mkdir()
    real = call.folder / "real" / "t.json"
    real.write_text(GOOD.replace('"rank_id": "3"', '"rank_id": 3'))
    real.chmod(0o604)
    (call.folder / "t.json").symlink_to("real/t.json")

    assert call("validate", "--fix", "--write", "t.json").code == 0

    assert (call.folder / "t.json").is_symlink()
    assert real.read_text() == GOOD
    assert stat.S_IMODE(real.stat().st_mode) == 0o604
    assert list((call.folder / "real").iterdir()) == [real]


def test_an_ignored_rule_corrects_nothing(call: CommandLine) -> None:
    call.write("t.json", GOOD.replace('"server_count": "1"', '"server_count": "0"'))

    assert call("validate", "--fix", "--ignore", "HCC501", "t.json").out == ""


def test_a_report_names_the_command_that_corrects_its_file(call: CommandLine) -> None:
    command = "`hccl-tools validate --fix {}` shows the corrections that are certain"
    damaged = {
        "type.json": GOOD.replace('"rank_id": "3"', '"rank_id": 3'),
        "comma.json": GOOD.replace('"7"\n', '"7",\n'),
        "a b.json": GOOD.replace('"device"', '"devic"'),
    }
    for name, text in damaged.items():
        call.write(name, text)
        shown = f"'{name}'" if " " in name else name

        assert call("validate", name).out.splitlines()[-1] == command.format(shown)
        assert "--fix" not in call("validate", "-f", "concise", name).out


def test_the_next_command_after_a_diff_writes_it(call: CommandLine) -> None:
    call.write("t.json", GOOD.replace('"rank_id": "3"', '"rank_id": 3'))

    assert call("validate", "--fix", "t.json").err.endswith(
        "next: hccl-tools validate --fix --write t.json\n"
    )
    assert "next:" not in call("validate", "--fix", "--write", "t.json").err


@pytest.mark.parametrize(
    "begin", ["// ring A, made by hand\n", "# ring A\n/* of two\nlines */\n", "<!-- ring A -->\n"]
)
def test_comments_and_trailing_commas_are_removed(call: CommandLine, begin: str) -> None:
    inside = GOOD.replace('"7"\n', '"7", // the last one\n')
    call.write("t.json", begin + inside)

    shown = call("validate", "--fix", "--write", "t.json")

    assert shown.code == 0, shown.err
    assert json.loads((call.folder / "t.json").read_text()) == json.loads(GOOD)


def test_many_comments_take_linear_time() -> None:
    def read(many: int) -> None:
        parseable(("[\n" + '{"rank_id": "0"}, // device\n' * many + '"x"]').encode())

    assert least(lambda: read(2000)) < 16 * least(lambda: read(500))


@pytest.mark.parametrize(
    "comment",
    [
        "// ... 6 more devices",
        "// ranks 1 to 7 as above",
        '// {"device_id": "9"}',
        "// TODO: write the real address",
        "// 10.0.0.9",
        "// 3",
        "/* open",
    ],
)
def test_a_comment_that_may_stand_for_something_stays(call: CommandLine, comment: str) -> None:
    text = GOOD.replace('"7"\n', f'"7" {comment}\n') + "// the end\n"
    call.write("t.json", text)

    done = call("validate", "--fix", "--write", "t.json")

    assert (done.code, done.out) == (1, "")
    assert (call.folder / "t.json").read_text() == text


def test_a_verdict_on_text_that_is_no_json_says_that_the_rest_was_not_checked(call: CommandLine) -> None:
    call.write("t.json", GOOD.replace('"rank_id": "3"', '"rank_id": 3').replace('"7"\n', '"7",\n'))

    line = "1 error so far, the rest was not checked; HCCL refuses this table"
    assert line in call("validate", "t.json").out.splitlines()


def test_a_probable_value_is_named_as_such(call: CommandLine) -> None:
    call.write("t.json", GOOD.replace('"rank_id": "5"', '"rank_id": "4"'))

    said = " ".join(call("validate", "--fix", "t.json").err.split())
    assert "has rank 5: this is probable, not certain" in said
    assert "line " in said.partition("this is probable")[0]


@pytest.mark.parametrize("text", [GOOD, GOOD[:-1], GOOD.replace('"rank_id": "3"', '"rank_id": "4"')])
def test_a_report_on_what_it_cannot_correct_names_no_command(call: CommandLine, text: str) -> None:
    call.write("t.json", text)

    assert "--fix" not in call("validate", "t.json").out


def test_a_table_in_a_config_map_is_taken_out_first(call: CommandLine) -> None:
    damaged = GOOD.replace('"server_count": "1"', '"server_count": "0"')
    meta = {"name": "rings", "namespace": "job"}
    call.write(
        "cm.json",
        json.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"hccl.json": damaged}}
        ),
    )

    command = "kubectl get configmap -n job rings -o jsonpath='{.data.hccl\\.json}' > hccl.json"
    assert call("validate", "cm.json").out.splitlines()[-2:] == [
        f"to correct the table, take it out: {command}",
        "`hccl-tools validate --fix` works on that file, not on the ConfigMap",
    ]


CONFIG_MAP = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"hccl.json": GOOD}})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--write t.json", "--write needs --fix"),
        ("--fix -", "--fix changes files, and standard input is not a file"),
        ("--fix cm.json", "--fix does not change Kubernetes objects such as cm.json"),
        ("--fix cm.json#hccl.json", "--fix does not change Kubernetes objects such as cm.json"),
        ("--fix -f json t.json", "--fix prints a diff, which has no other format"),
        ("--fix none.json", "no such file: none.json"),
    ],
)
def test_what_cannot_be_corrected_is_refused_with_a_sentence(
    call: CommandLine, arguments: str, sentence: str
) -> None:
    call.write("t.json", GOOD)
    call.write("cm.json", CONFIG_MAP)

    done = call("validate", *arguments.split())

    assert done.code == 2
    assert done.sentence == sentence
    assert (call.folder / "cm.json").read_text() == CONFIG_MAP


def test_nothing_from_the_file_reaches_the_terminal_raw(call: CommandLine) -> None:
    call.write("t.json", GOOD.replace('"rank_id": "3"', '"rank_id": 3, "x": "\x9b\u202e"'))

    out = call("validate", "--fix", "t.json").out

    assert all(char.isprintable() or char == "\n" for char in out)


def _with_wrong_type(text: str, number: int) -> str:
    found = list(re.finditer(r'"(?:rank_id|device_id|server_count)": ("?)(\d+)\1', text))
    if not found:  # Another damage is at the only one.
        return text
    one = found[number % len(found)]
    digits = one[2] if one[1] else f'"{one[2]}"'
    return text[: one.start(1)] + digits + text[one.end() :]


def _with_trailing_comma(text: str, number: int) -> str:
    found = list(re.finditer(r"(?<![,\uff0c])\n *[}\]]", text))
    one = found[number % len(found)]
    return f"{text[: one.start()]},{text[one.start() :]}"


def _with_full_width_sign(text: str, number: int) -> str:
    found = list(re.finditer(r"(?<=[\"}\]\d])[:,](?=[ \n])", text))
    one = found[number % len(found)]
    return text[: one.start()] + {":": "\uff1a", ",": "\uff0c"}[one[0]] + text[one.end() :]


def _with_wrong_count(text: str, number: int) -> str:
    return re.sub(r'"(server_count|group_count)": "\d+"', rf'"\1": "{"0" * (number % 3 + 1)}"', text)


_DAMAGES = (_with_wrong_type, _with_trailing_comma, _with_full_width_sign, _with_wrong_count)


@given(
    value=strategies.tables(),
    damages=st.lists(st.tuples(st.sampled_from(_DAMAGES), st.integers(0, 99)), min_size=1, max_size=4),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_a_damaged_table_gets_the_verdict_of_the_original(
    value: Any, damages: list[tuple[Callable[[str, int], str], int]], codec: str
) -> None:
    value.pop("comment", None)
    original = damaged = json.dumps(value, indent=1)
    for damage, number in damages:
        damaged = damage(damaged, number)

    corrected = correct(damaged.encode(codec), lambda data: validate(data, limit=None))
    again = correct(corrected.data, lambda data: validate(data, limit=None))

    assert json.loads(corrected.data) == json.loads(original)
    assert corrected.report.verdict == validate(original.encode()).verdict == "accepted"
    assert again.data == corrected.data


@given(value=strategies.damaged_tables())
def test_any_table_is_corrected_once(value: Any) -> None:
    data = json.dumps(value).encode()

    corrected = correct(data, lambda data: validate(data, limit=None))
    again = correct(corrected.data, lambda data: validate(data, limit=None))

    assert again.data == corrected.data
    assert not [one for one in corrected.report.findings if one.right is not None]


@given(st.lists(st.booleans(), max_size=60))
def test_the_hunks_are_those_of_difflib(changes: list[bool]) -> None:
    before = [f"line {number}\n" for number in range(len(changes))]
    after = [f"new {line}" if is_new else line for line, is_new in zip(before, changes, strict=True)]

    assert list(validate_fix._hunks(before, after)) == list(unified_diff(before, after))[2:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r'"rank_id": "(\d+)"', r"“rank_id”: 0\1"),
        (r'"(\n *\})', r'",\1'),
        (r'"device_id": "(\d+)"', '"device_id"\uff1a "\\1"'),
    ],
)
def test_a_fault_of_every_device_is_corrected_in_linear_time(right: str, wrong: str) -> None:
    def spent(servers: int) -> float:
        data = re.sub(right, wrong, json.dumps(table("1.0", servers, 8), indent=1)).encode()
        fixed = parseable(data)
        assert Document.parse(fixed, "").problem is None
        lines = [text.decode().splitlines(keepends=True) for text in (data, fixed)]
        return least(lambda: (parseable(data), list(validate_fix._hunks(*lines))))

    assert spent(400) < 8 * spent(100)  # the square would be 16


def test_a_file_that_is_exchanged_after_it_was_read_is_not_written(tmp_path: Path) -> None:
    """In a folder of another user, the name can be a link to a file of this user by then."""
    file, secret = tmp_path / "table.json", tmp_path / "secret.json"
    file.write_text('{"planted": 1,}\n')
    secret.write_text('{"password": "x",}\n')
    diff = validate_fix.diff_of(str(file), check=validate, judge=lambda _report, _left: None, write=True)
    assert next(diff).startswith("--- ")

    file.unlink()
    file.symlink_to(secret)

    with pytest.raises(WriteError, match="has changed since it was read"):
        list(diff)
    assert secret.read_text() == '{"password": "x",}\n'
    assert file.is_symlink()


@pytest.mark.parametrize("value", ["termin\u00e9", "complete", "ok"])
def test_a_misspelt_key_stays_if_its_value_would_be_wrong(call: CommandLine, value: str) -> None:
    damaged = GOOD.replace('"status": "completed"', f'"statut": "{value}"')

    assert written(call, damaged.encode()).decode() == damaged


def test_a_misspelt_key_with_a_right_value_is_renamed(call: CommandLine) -> None:
    assert written(call, GOOD.replace('"status"', '"statut"').encode()).decode() == GOOD


def test_strings_that_are_not_closed_take_linear_time() -> None:
    def read(many: int) -> None:
        assert correction.unfilled(b'"\\' * many) is None

    assert least(lambda: read(20_000)) < 8 * least(lambda: read(5000))  # the square would be 16


def test_a_file_of_comment_signs_has_a_diff(call: CommandLine) -> None:
    call.write("t.json", "//" * 5000)

    shown = call("validate", "--fix", "t.json")

    assert shown.code == 1
    assert "@@ -1 +0,0 @@\n-////" in shown.out
    assert "the file is empty" in shown.out + shown.err


def test_the_next_command_has_the_product_and_a_stated_value_is_named(call: CommandLine) -> None:
    value = table("1.0", 2, 8)
    del value["server_list"][1]["device"][3]["rank_id"]
    call.write("t.json", json.dumps(value))

    done = call("validate", "--product", "a2", "--fix", "t.json")

    assert done.err.endswith("next: hccl-tools validate --product a2 t.json\n")
    assert 'write "rank_id": "11", the number that no other device has: to be done by hand' in done.err
    assert "the file does not tell" not in done.err
