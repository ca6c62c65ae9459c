"""The rules on the name and the size of a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools import validate
from hccl_tools.document.document import Document
from hccl_tools.rules import compact_size
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("table.json", None),
        ("json.json", None),
        (".json", 'the file has no name before ".json"'),
        ("table.json.json", '"table.json.json" contains ".json" twice'),
        ("a.jsonx.json", '"a.jsonx.json" contains ".json" twice'),
        (".json.json", '".json.json" contains ".json" twice'),
        ("table.json.bak", 'table.json.bak" does not end in .json'),
        ("d.json/table.json", '".json" is part of the folder name "{}/d.json"'),
        ("d.json.d/e/.json", '".json" is part of the folder name "{}/d.json.d"'),
    ],
)
def test_file_name(tmp_path: Path, name: str, message: str | None) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(table("1.0")))
    report = validate(file)

    assert report.verdict == ("refused" if message else "accepted")
    assert len(report.findings) == bool(message)
    for finding in report.findings:
        assert finding.rule.id == "HCC102"
        assert message is not None
        assert message.format(tmp_path) in finding.message


@pytest.mark.parametrize(
    ("name", "content", "rules"),
    [
        ("train.py", b"import os\nprint(os.environ)\n", ["HCC101"]),
        ("run.sh", b"#!/bin/sh\necho hello\n", ["HCC101"]),
        ("model.ckpt", b"PK\x03\x04" + b"\x80\xff" * 500, ["HCC101"]),
        ("table.txt", b'{"version": "1.0",}', ["HCC101", "HCC102"]),
        ("table.txt", b'a line\n{"version": "1.0", "server_list": []}', ["HCC101", "HCC102"]),
        ("table.txt", b"", ["HCC101", "HCC102"]),
    ],
)
def test_a_file_that_is_not_a_table_is_not_to_be_renamed(
    tmp_path: Path, name: str, content: bytes, rules: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)

    assert [finding.rule.id for finding in validate(tmp_path / name).findings] == rules


def test_ascend_950_takes_any_name(tmp_path: Path) -> None:
    (tmp_path / ".json").write_text(json.dumps(table("2.0")))

    assert validate(tmp_path / ".json").verdict == "accepted"


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("1e5", "100000.0"),
        ("1E14", "100000000000000.0"),
        ("1e15", "1e+15"),
        ("-1e15", "-1e+15"),
        ("1234567890123456.0", "1.234567890123456e+15"),
        ("1234567890123456", "1234567890123456"),
        ("1e16", "1e+16"),
        ("1.50", "1.5"),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("0.0001", "0.0001"),
        ("1e-5", "1e-05"),
        ("18446744073709551616", "1.8446744073709552e+19"),
    ],
)
def test_numbers_are_as_long_as_hccl_s_library_writes_them(number: str, written: str) -> None:
    document = Document.parse(f'{{"a":[{number}]}}'.encode(), "x")

    assert compact_size.of(document.value) == len(f'{{"a":[{written}]}}')


@pytest.mark.slow
def test_numbers_grow_when_hccl_writes_them() -> None:
    text = json.dumps({**table("1.0", 1, 2), "x": "@"}).replace('"@"', "[" + "1e14," * 2_330_500 + "1]")
    report = validate(text.encode())

    assert len(text) < 12_000_000
    assert [finding.rule.id for finding in report.findings] == ["HCC103"]
    assert "the table has 41,949," in report.findings[0].message


def test_a_text_is_measured_only_where_it_may_be_too_long() -> None:
    numbers = b"[" + b"1e14," * 50_000 + b"1]"
    texts = b'["' + b"x" * 1_000_000 + b'"]'

    assert not compact_size.may_exceed(numbers, len(numbers) + 50_001 * 13)
    assert compact_size.may_exceed(numbers, len(numbers) + 50_001 * 13 - 1)
    assert compact_size.may_exceed(texts, len(texts) + 12)
    assert not compact_size.may_exceed(texts, len(texts) + 13)
    assert compact_size.may_exceed(texts, len(texts) - 1)
