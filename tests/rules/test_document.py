"""Whether HCCL loads a file at all: its name, its size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("table.json", None),
        ("json.json", None),
        (".json", 'the file has no name before ".json"'),
        ("table.json.json", '".json" is in the name "table.json.json" twice'),
        ("a.jsonx.json", '".json" is in the name "a.jsonx.json" twice'),
        (".json.json", '".json" is in the name ".json.json" twice'),
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


def test_ascend_950_takes_any_name(tmp_path: Path) -> None:
    (tmp_path / ".json").write_text(json.dumps(table("2.0")))

    assert validate(tmp_path / ".json").verdict == "accepted"
