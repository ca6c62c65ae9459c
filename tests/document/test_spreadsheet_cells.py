"""Tables that a spreadsheet saved: the finding says so, and the command gives the table back."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import validate
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

TABLE: Any = table("1.0", 2, 8)
TEXT = json.dumps(TABLE, indent=4)
LINES = TEXT.splitlines()
#: A row for each server, with its devices as JSON in a cell.
ROWS = [
    ["server_id", "device"],
    *([one["server_id"], json.dumps(one["device"])] for one in TABLE["server_list"]),
]


def as_csv(rows: list[list[str]], separator: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue()


def found(text: str) -> tuple[str, str]:
    (one,) = validate(text.encode(), product="a2").findings
    assert one.rule.id in ("HCC101", "HCC110")
    return one.message, one.hint or ""


def carried_out(text: str, hint: str, folder: Path) -> Any:
    """Run the command of a hint on a file, and return the value that it writes."""
    command = hint[min(at for word in ("python3 -I -c", "sed -E") if (at := hint.find(word)) >= 0) :]
    (folder / "OLD").write_text(text)
    subprocess.run(command, shell=True, cwd=folder, check=True)  # noqa: S602  (the command of a hint)
    return json.loads((folder / "NEW").read_text())


def ended(end: str) -> str:
    return "\n".join(line + end for line in LINES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (as_csv([[line] for line in LINES]), "each line is a cell of a spreadsheet"),
        (as_csv([[line, "", ""] for line in LINES], ";"), "each line is a cell of a spreadsheet"),
        (as_csv([[TEXT]]), "the table is in one cell of a spreadsheet"),
        (as_csv([[json.dumps(TABLE)]]), "the table is in one cell of a spreadsheet"),
        (as_csv([["name", "table"], ["job", TEXT]]), "this is a file of columns; the table is in row 2"),
        (TEXT.replace('"', '""'), '""version"" has doubled quotes'),
        (ended(",,"), "each line ends with commas of empty cells"),
        (ended(";"), "each line ends with a semicolon of empty cells"),
        (as_csv(ROWS), "this is a file of columns, with the devices of each server as JSON in a cell"),
        (as_csv(ROWS, ";"), "this is a file of columns, with the devices of each server as JSON"),
        (as_csv(ROWS, "\t"), "this is a file of columns, with the devices of each server as JSON"),
    ],
)
def test_the_command_gives_the_table_back(text: str, message: str, tmp_path: Path) -> None:
    told, hint = found(text)

    assert told.removeprefix("not a rank table: ").startswith(message)
    made = carried_out(text, hint, tmp_path)
    assert {key: made[key] for key in ("version", "server_count", "status")} == {
        key: TABLE[key] for key in ("version", "server_count", "status")
    }
    assert [one["device"] for one in made["server_list"]] == [one["device"] for one in TABLE["server_list"]]


@pytest.mark.parametrize("quotes", ['""', '"""'])
def test_one_value_with_doubled_quotes_gets_the_value_alone(quotes: str) -> None:
    shown = f"{quotes}192.168.0.103{quotes}"
    text = TEXT.replace('"192.168.0.103"', shown)

    assert found(text) == (
        f"{shown} has doubled quotes, as a spreadsheet writes them in a cell",
        'write "192.168.0.103"',
    )


def test_empty_texts_stay_empty(tmp_path: Path) -> None:
    value = {**TABLE, "note": "", "server_count": "2"}
    text = json.dumps(value, indent=1).replace('"', '""')

    assert carried_out(text, found(text)[1], tmp_path) == value


def test_quoted_columns_of_devices_get_their_command() -> None:
    rows = [
        "server_id device_id device_ip rank_id",
        "10.0.0.1 0 192.168.0.100 0",
        "10.0.0.1 1 192.168.0.101 1",
    ]
    text = "".join(",".join(f'"{cell}"' for cell in row.split()) + "\n" for row in rows)

    message, hint = found(text)

    assert "this is a file of columns with commas between them" in message
    assert hint.startswith("make the table of its rows: ")


@pytest.mark.parametrize("old", ['"version": "1.0",', '"status": "completed"', "}"])
def test_other_faults_are_not_taken_for_cells(old: str) -> None:
    text = TEXT.replace(old, old[:-1]).replace('"reserve"', '""')

    assert "spreadsheet" not in found(text)[0]
