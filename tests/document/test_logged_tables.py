"""Tables with the prefix of a log on each line, and with full-width signs outside strings."""

from __future__ import annotations

import json
import re
import subprocess
from shlex import quote
from typing import TYPE_CHECKING

import pytest

from hccl_tools import validate
from hccl_tools.rules.findings import _hint
from tests.support.commands import run_here
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-03-01 10:22:31,{0} INFO gen.py:88 ",
        "[2026-03-01T10:22:{0}Z] [INFO] main ",
        "INFO:2026-03-01 10:22:{0}:root: ",
        "10:22:{0} INFO (job-1/a.b) | ",
        "[INFO] 2026/03/01 10:22:{0} hccl$ ",
    ],
)
def test_the_command_removes_the_prefix(prefix: str) -> None:
    text = json.dumps(table("1.0", 2, 8), indent=4)
    lines = [f"{prefix.format(100 + number)}{line}\n" for number, line in enumerate(text.split("\n"))]
    logged = "".join(lines).encode()

    report = validate(logged)

    (one,) = report.errors
    assert report.verdict == "refused"
    assert "prefix of a log" in one.message
    command = (one.hint or "").partition(": ")[2].removesuffix(" OLD > NEW")
    assert command.startswith("cut -b")
    done = subprocess.run(["sh", "-c", command], input=logged, capture_output=True, check=True)
    assert json.loads(done.stdout) == table("1.0", 2, 8)


def test_a_log_with_a_table_in_it_stays_a_log() -> None:
    logged = b'2026-03-01 10:22:31,114 INFO a.py:1 {\n2026-03-01 10:22:31 WARN other "server_list"\nend\n\n'
    (one,) = validate(logged).errors
    assert "this is a log" in one.message


def test_other_full_width_signs_are_counted() -> None:
    text = json.dumps(table("1.0", 1, 2), indent=4)
    one = text.replace('"status":', '"status"\uff1a')
    several = text.replace('": ', '"\uff1a ')
    in_strings = one.replace('"10.0.0.1"', '"10\uff0c1"')
    number = several.count("\uff1a") - 1

    hints = [validate(each.encode()).errors[0].hint for each in (one, several, in_strings)]

    assert hints[0] == hints[2] == "use ':'"
    assert f"{number} other full-width signs outside strings: `validate --fix` does" in str(hints[1])


def _with_prefix(prefix: str, *, before: str = "Hello, this is the table:\n\n", ending: str = "") -> bytes:
    text = json.dumps(table("1.0", 1, 2), indent=4)
    return (before + "".join(f"{prefix}{line}\n" for line in text.split("\n")) + ending).encode()


@pytest.mark.parametrize("before", ["", "Hello, this is the table:\n\n"])
@pytest.mark.parametrize(
    "prefix",
    [
        "> ",
        "C:\\x\\ ",
        r"a\/id>PWNED;\/e #",
        "a OLD > NEW b",
        "x;touch PWNED;",
        "$(touch PWNED)",
        "`id>PWNED`",
        "\u2502 ",
    ],
)
def test_the_command_for_a_prefix_has_no_text_of_the_file(tmp_path: Path, prefix: str, before: str) -> None:
    file = tmp_path / "x;touch PWNED;.json"
    file.write_bytes(_with_prefix(prefix, before=before, ending="Regards\n" if before else ""))

    done = run_here("validate", file.name, folder=tmp_path)

    (hint,) = [line for line in done.stdout.splitlines() if "= help:" in line]
    command = re.split(r"without it: |remove it: ", hint)[1]
    assert prefix.strip() not in command.partition("//p' " if before else "- ")[0]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "x;touch PWNED;.new.json").read_text()) == table("1.0", 1, 2)
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("prefix", ["10:00:0{0} INFO main: ", "INFO: {0} a/e b OLD > NEW ", "INFO:{0}:x:"])
def test_the_command_for_prefixes_of_several_lengths(prefix: str) -> None:
    lines = json.dumps(table("1.0", 1, 4), indent=4).split("\n")
    logged = "".join(f"{prefix.format(8 + number)}{line}\n" for number, line in enumerate(lines)).encode()

    hint = validate(logged).errors[0].hint or ""

    assert "a/e" not in hint
    if ": sed" not in hint:
        assert "of each line in an editor; it has 9 to 10 bytes" in hint
        return
    command = hint.partition(": ")[2].removesuffix(" OLD > NEW")
    done = subprocess.run(["sh", "-c", command], input=logged, capture_output=True, check=True)
    assert json.loads(done.stdout) == table("1.0", 1, 4)


def test_a_long_hint_is_cut_at_its_end_alone() -> None:
    # A command without its middle has a quote that ends elsewhere.
    command = "kubectl get " + quote("n" * 460 + "'" + "$(touch PWNED)" * 60) + " > x"

    assert _hint(command) == command[:1000] + " ..."


def test_a_text_of_a_table_in_a_config_map_is_not_changed_in_a_hint(tmp_path: Path) -> None:
    inner = _with_prefix("a line 3 b").decode()
    body = "".join(f"    {line}\n" for line in inner.splitlines())
    file = tmp_path / "y;id>PWNED;.yaml"
    file.write_text(f"kind: ConfigMap\nmetadata: {{name: x}}\ndata:\n  hccl.json: |\n{body}")

    done = run_here("validate", file.name, folder=tmp_path)

    helps = [line for line in done.stdout.splitlines() if "= help:" in line]
    assert helps
    assert not any("PWNED" in line for line in helps)
