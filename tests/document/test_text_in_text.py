"""JSON that was put into a string as it is: the quotes inside it are not escaped."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest

from hccl_tools.errors import InputError
from hccl_tools.formats.kubernetes.yaml_reading import read_yaml
from hccl_tools.validation.checker import validate
from tests.support.tables import table

LINE = json.dumps(table("1.0", 2, 2))
LINES = json.dumps(table("1.0", 2, 2), indent=2)
MARK = "@@"
CONFIG_MAP = json.dumps(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rings"}, "data": {"hccl.json": MARK}},
    indent=4,
)
NOT_ESCAPED = 'the quotes inside the text of "{}" are not escaped'


def said(text: str) -> tuple[str, str, Any]:
    (found,) = validate(text.encode()).findings
    return found.message, found.hint or "", found


def after_command(text: str, hint: str) -> Any:
    """Return what the command of a hint writes."""
    command = hint.partition("python3 -I -c ")[2].partition(" < ")[0]
    program = shlex.split(command)[0]
    done = subprocess.run(
        ["python3", "-I", "-c", program], input=text, capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("inner", [LINE, LINES])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_table_in_a_config_map_is_escaped_by_the_command(inner: str, quote: str) -> None:
    text = CONFIG_MAP.replace(f'"{MARK}"', f"{quote}{inner}{quote}")

    message, hint, found = said(text)

    expected = NOT_ESCAPED.format("hccl.json")
    if quote == "'":
        expected = (
            'the text of "hccl.json" is in single quotes; JSON uses double quotes, '
            'and \\" for those inside the text'
        )
    assert message == expected
    assert found.offset == text.index(f'"hccl.json": {quote}') + len('"hccl.json": ')
    assert ("\\n for each line break" in hint) == (inner == LINES)
    assert hint.endswith("; or fetch it again with kubectl get configmap NAME -o json")
    written = after_command(text, hint)
    assert json.loads(written["data"]["hccl.json"]) == json.loads(inner)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (json.dumps({"data": {"jobstart_hccl.json": MARK}}), "jobstart_hccl.json"),
        (json.dumps({"RANK_TABLE": MARK}), "RANK_TABLE"),
        (json.dumps([{"name": "T", "value": MARK}], indent=1), "value"),
        (json.dumps({"env": {"RANK_TABLE": f" [{MARK}]"}}), "RANK_TABLE"),
    ],
)
def test_other_texts_of_json_are_named_by_their_key(text: str, key: str) -> None:
    text = text.replace(MARK, LINE)

    message, hint, _ = said(text)

    assert message == NOT_ESCAPED.format(key)
    after_command(text, hint)
    assert "kubectl" not in hint


def test_a_text_whose_json_has_a_fault_gets_no_command() -> None:
    message, hint, _ = said(CONFIG_MAP.replace(MARK, LINE.replace(",", " ", 1)))

    assert message == NOT_ESCAPED.format("hccl.json")
    assert hint == (
        'write \\" for each double quote inside it; or fetch it again with kubectl get configmap NAME -o json'
    )


def test_a_text_without_its_last_bracket_is_still_named() -> None:
    message, hint, _ = said(CONFIG_MAP.replace(MARK, LINE[:-1]))

    assert message == NOT_ESCAPED.format("hccl.json")
    assert "python3" not in hint


def test_doubled_quotes_are_named() -> None:
    message, hint, _ = said(CONFIG_MAP.replace(MARK, LINE.replace('"', '""')))

    assert message == 'the quotes inside the text of "hccl.json" are doubled, as in CSV; in JSON each is \\"'
    assert hint.startswith('write \\" for each "" inside it; or')


@pytest.mark.parametrize(
    "damage", [('\\"completed\\"', '"completed\\"'), ('\\"completed\\"', '\\"completed"')]
)
def test_one_quote_without_its_backslash_is_the_place(damage: tuple[str, str]) -> None:
    text = CONFIG_MAP.replace(f'"{MARK}"', json.dumps(LINE)).replace(*damage)

    message, hint, found = said(text)

    assert message == 'a quote inside the text of "hccl.json" is not escaped'
    assert text[found.offset] == '"'
    assert text[found.offset - 1] != "\\"
    assert hint.startswith('write \\" for this " on line 8')


@pytest.mark.parametrize("key", ["server_list", "device"])
def test_a_list_of_the_table_is_no_text(key: str) -> None:
    value = table("1.0", 1, 2)
    inner = json.dumps(value["server_list"] if key == "server_list" else value["server_list"][0]["device"])
    text = json.dumps(value).replace(inner, f'"{inner}"', 1)

    message, hint, _ = said(text)

    assert message == f'"{key}" is a list in quotes, as if it were text'
    assert hint == 'remove the " before its [ and the " after its ]'


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize("inner", [LINE, LINES])
def test_a_table_between_quotes_loses_them(inner: str, quote: str) -> None:
    message, hint, _ = said(f"{quote}{inner}{quote}\n")

    assert message.endswith("the whole file is in quotes, as if it were text")
    assert hint == f"remove the {quote} before the table and the {quote} after it"


def test_a_text_that_is_complete_is_not_blamed_for_what_follows() -> None:
    text = CONFIG_MAP.replace(f'"{MARK}"', f'{json.dumps(LINE)} "binaryData": 1')

    assert said(text)[0] == "a comma is missing between two values"


def test_one_quote_too_many_before_the_json_is_not_taken_for_a_text() -> None:
    message, _, _ = said(LINE.replace('"server_list": [', '"server_list": "['))

    assert "not escaped" not in message
    assert "in quotes, as if" not in message


@pytest.mark.parametrize("inner", [LINE, LINES.replace("\n", "\n    ")])
def test_yaml_needs_other_quotes_around_the_text(inner: str) -> None:
    pytest.importorskip("yaml")
    head = "apiVersion: v1\nkind: ConfigMap\ndata:\n  hccl.json: "

    with pytest.raises(InputError) as caught:
        read_yaml(f'{head}"{inner}"\n'.encode(), "cm.yaml")

    assert caught.value.message == f"cm.yaml:4: not valid YAML: {NOT_ESCAPED.format('hccl.json')}"
    assert (caught.value.hint or "").startswith("write ' in place of the \" before its first bracket")
    read = read_yaml(f"{head}'{inner}'\n".encode(), "cm.yaml").value
    assert json.loads(read["data"]["hccl.json"]) == json.loads(inner)


def test_the_command_reads_a_file_with_a_byte_order_mark() -> None:
    text = "\ufeff" + CONFIG_MAP.replace(MARK, LINE)

    _, hint, _ = said(text)

    assert json.loads(after_command(text, hint)["data"]["hccl.json"]) == json.loads(LINE)
