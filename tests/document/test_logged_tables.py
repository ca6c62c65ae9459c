"""Tables with the prefix of a log on each line, and with full-width signs outside strings."""

from __future__ import annotations

import json
import subprocess

import pytest

from hccl_tools import validate
from tests.support.tables import table


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
    assert command.startswith("sed -E ")
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
