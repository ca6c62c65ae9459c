"""Tables that a program printed in its own notation, parts before a whole table, statements of templates.

The commands of the remedies are run.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import OrderedDict, defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

TABLE = table("1.0", 2, 8)
TEXT = json.dumps(TABLE, indent=2)


def said(text: str) -> tuple[str, str]:
    """Return message and hint of the only finding."""
    (found,) = validate(text.encode()).findings
    assert found.rule.id == "HCC101"
    return found.message, found.hint or ""


def run(hint: str, text: str) -> str:
    """Return what the last command of a remedy makes of a file."""
    start = max(hint.rfind(name) for name in ("python3 -I -c", "sed ", "tail "))
    command = hint[start:].removesuffix(" OLD > NEW").removesuffix(" <").replace("python3", sys.executable)
    done = subprocess.run(shlex.split(command), input=text, capture_output=True, text=True, check=True)
    return done.stdout


def with_calls(value: Any) -> Any:
    return OrderedDict((key, [OrderedDict(one) for one in inner] if type(inner) is list else inner)
                       for key, inner in value.items())  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        repr(with_calls(TABLE)),
        "OrderedDict(["
        + ", ".join(f"({key!r}, {value!r})" for key, value in TABLE.items())
        + "])",  # as Python before 3.12 prints it
        repr(defaultdict(list, TABLE)),
        repr(SimpleNamespace(**TABLE)),
        f"RANK_TABLE = {TABLE!r}",
        repr(TABLE).replace("'server_count': '2'", "'server_count': str_('2')"),
        repr(TABLE).replace("'10.0.0.1'", "IPv4Address('10.0.0.1')"),
    ],
)
def test_a_table_that_python_printed_is_converted_by_the_command_of_the_remedy(text: str) -> None:
    message, hint = said(text)

    assert message == "this is a rank table as Python prints it; HCCL reads only JSON"
    assert json.loads(run(hint, text)) == TABLE


@pytest.mark.parametrize(("table_format", "how"), [("1.0", "str(int(...))"), ("2.0", "int(...)")])
def test_numbers_of_numpy_become_what_the_version_wants(table_format: str, how: str) -> None:
    value = table(table_format, 2, 8)
    text = re.sub(r"'rank_id': '?(\d+)'?", r"'rank_id': np.int64(\1)", repr(value))

    message, hint = said(text)

    assert "as Python prints it, with numbers of numpy (np.int64(...))" in message
    assert f"each of these numbers as {how};" in hint
    assert json.loads(run(hint, text)) == value


def as_java(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={as_java(one)}" for key, one in value.items()) + "}"
    return f"[{', '.join(map(as_java, value))}]" if isinstance(value, list) else str(value)


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (as_java(TABLE), "Java"),
        (json.dumps(TABLE).replace(": ", "=>"), "Ruby"),
        (TEXT.replace(": ", " => "), "Ruby"),
    ],
)
def test_other_notations_are_converted_by_the_command_of_the_remedy(text: str, program: str) -> None:
    message, hint = said(text)

    assert message.startswith(f"this is a rank table as {program} prints it")
    assert json.loads(run(hint, text)) == TABLE


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("map[server_list:[map[device:[map[device_id:0]]]] version:1.0]", "as Go prints it", "json.Marshal"),
        ("@{version=1.0; server_list=System.Object[]}", "as PowerShell prints it", "ConvertTo-Json"),
        ("$VAR1 = {\n 'version' => '1.0',\n 'server_list' => []\n};", "as Perl prints it", "encode_json"),
        ("array(\n  'version' => '1.0',\n  'server_list' => array()\n)", "as PHP prints it", "json_encode"),
        ('version = "1.0"\n[[server_list]]\nserver_id = "10.0.0.1"\n', "in TOML", "tomllib"),
        ('version = "1.0"\nserver_list = [{\n  server_id = "10.0.0.1"\n}]\n', "in HCL", "jsonencode"),
        ("{\n version = '1.0',\n server_list = { }\n}", "in Lua or a like notation", "a JSON library"),
    ],
)
def test_other_notations_are_named(text: str, what: str, remedy: str) -> None:
    message, hint = said(text)

    assert message.startswith(f"this is a rank table {what}")
    assert remedy in hint


@pytest.mark.parametrize("text", ['f({"a": 1}', "x = {'a': 1}", "OrderedDict([('a', 1)])", "{a=1}"])
def test_other_texts_are_no_tables(text: str) -> None:
    assert "rank table as" not in said(text)[0]


@pytest.mark.parametrize("size", [30, 100, 333, len(TEXT) // 2, len(TEXT) - 3])
def test_a_part_of_a_table_before_the_whole_one_is_deleted_by_the_command_of_the_remedy(size: int) -> None:
    text = TEXT[:size] + TEXT

    message, hint = said(text)

    line = text.count("\n", 0, size) + 1
    assert message.startswith(f"the table breaks off on line {line}, and begins again there")
    assert json.loads(run(hint, text)) == TABLE


def test_a_part_of_a_table_before_another_part_does_not_begin_again() -> None:
    assert "begins again" not in said(TEXT[:300] + TEXT[:900])[0]


@pytest.mark.parametrize(
    "statement",
    [
        "{% if not loop.last %},{% endif %}",
        "{%- endfor -%}",
        "{{- end }}",
        "{# the last device #}",
        "<% end %>",
    ],
)
def test_a_statement_of_a_template_is_deleted_whole(statement: str) -> None:
    text = TEXT.replace('"rank_id": "7"\n        }', f'"rank_id": "7"\n        }}\n        {statement}', 1)

    message, hint = said(text)

    assert message == f"a statement of a template was left in the file: {statement}"
    assert hint.startswith(f"delete {statement}; or make the file again")


@pytest.mark.parametrize(
    "loop", ["{% for d in devices %}", "{{- range .devices }}", "<% devices.each do |d| %>"]
)
def test_a_loop_of_a_template_stands_for_several_entries(loop: str) -> None:
    text = TEXT.replace('"device": [', f'"device": [\n {loop}', 1)

    message, hint = said(text)

    assert message == f"a statement of a template was left in the file: {loop}"
    assert hint.endswith("its loop stands for several entries")


def test_the_comma_before_a_statement_is_deleted_if_its_entry_is_the_last() -> None:
    rest = "{% if more %},{% endif %}"
    text = TEXT.replace('"rank_id": "7"\n        }', f'"rank_id": "7"\n        }},\n        {rest}', 1)

    assert said(text)[1].startswith(f"delete {rest}, and the comma before it; or make the file again")


def test_a_value_of_a_template_stays_a_placeholder() -> None:
    assert (
        said(TEXT.replace('"10.0.0.1"', "{{ host }}"))[0]
        == "a placeholder of a template was not filled in: {{ host }}"
    )


def test_the_line_of_a_pager_is_deleted() -> None:
    lines = TEXT.split("\n")

    assert said("\n".join([*lines[:20], "--More--", *lines[20:]])) == (
        "line 21 has text of a pager that is not part of the table: --More--",
        "delete the line",
    )


def test_a_pointer_of_git_lfs_is_named() -> None:
    message, hint = said("version https://git-lfs.github.com/spec/v1\noid sha256:0a1b\nsize 2918\n")

    assert message == "this is a pointer of Git LFS, not a rank table"
    assert hint == "fetch the file itself from its repository"


@pytest.mark.parametrize("item", ["*a", "[*a, *a]", "{x: *a}"])
def test_a_table_with_aliases_gets_no_command(item: str) -> None:
    """Aliases of aliases stand for a text without an end."""
    yaml = f"server_count: '1'\nserver_list:\n- &a {{server_id: h}}\n- {item}\n"
    usual = "server_count: '1'\nserver_list:\n- {server_id: 'a*b'}\n"

    message, hint = said(yaml)

    assert message == "this is a rank table in YAML; HCCL reads only JSON"
    assert hint == "convert it to JSON, with the values in the places of its aliases (*NAME)"
    assert "yaml.load" in (said(usual)[1] or "")
