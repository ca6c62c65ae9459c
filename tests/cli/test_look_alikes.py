"""Full-width signs and dashes of input methods and word processors, wherever a user types them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.notation.look_alikes import mistyped_option
from tests.support.commands import CommandLine, run_here

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path, capsys)


@pytest.mark.parametrize(
    ("typed", "said", "instead"),
    [
        ("gen \u2014device_num [0,8)", 'dash "\u2014" in "\u2014device_num" is not a hyphen', "--device_num"),
        ("gen \u2014\u2014device-num 0", 'dash "\u2014" in "\u2014\u2014device-num"', "--device-num"),
        ("gen \u2014device_num=0", "is not a hyphen", "--device_num=0"),
        ("launch \u2013rank-table t.json train.py", 'dash "\u2013" in "\u2013rank-table"', "--rank-table"),
        ("launch \u2014\u2014cpu train.py", "is not a hyphen", "--cpu"),
        ("launch \u2013n 4 train.py", 'dash "\u2013" in "\u2013n"', "-n"),
        ("launch \uff0d\uff0dcpu train.py", 'full-width hyphen "\uff0d"', "--cpu"),
        ("validate -\u2013strict t.json", "is not a hyphen", "--strict"),
        ("\u2013-version", "is not a hyphen", "--version"),
        ("scaling run \u2212\u2212help", "is not a hyphen", "--help"),
    ],
)
def test_a_dash_in_place_of_hyphens_is_named(call: CommandLine, typed: str, said: str, instead: str) -> None:
    done = call(*typed.split(" "))

    assert done.code == 2
    assert said in done.sentence
    assert f"help: type {instead}\n" in done.err


def test_the_command_line_of_the_original_script_too() -> None:
    done = run_here("\u2014device_num", "0")

    assert done.returncode == 2
    assert "type --device_num" in done.stderr


def test_a_file_with_such_a_name_is_a_file(call: CommandLine) -> None:
    done = call("validate", "\u2014\u8868.json")

    assert done.sentence == "no such file: \u2014\u8868.json"


def test_what_follows_two_hyphens_is_no_option(call: CommandLine) -> None:
    done = call("validate", "--", "\u2014strict")

    assert done.sentence == "no such file: \u2014strict"


@pytest.mark.parametrize("plain", ["--strict", "strict", "", "-", "\u8868"])
def test_other_arguments_have_no_dash(plain: str) -> None:
    assert mistyped_option(plain) is None


@pytest.mark.parametrize(
    ("typed", "said", "help_"),
    [
        ("gen --hosts 10.0.0.1\uff0c10.0.0.2", 'full-width comma "\uff0c"', 'type "10.0.0.1,10.0.0.2"'),
        ("gen --hosts 10.0.0.1\u300110.0.0.2", 'full-width comma "\u3001"', 'type "10.0.0.1,10.0.0.2"'),
        ("gen --hosts 10.0.0.\u30101-2\u3011", 'full-width bracket "\u3010"', 'type "10.0.0.[1-2]"'),
        ("gen --hosts 10.0.0.\u30101-2", 'full-width bracket "\u3010"', "write 10.0.0.1,10.0.0.2 or"),
        ("gen --simulate a2 --server_ip 10\u30020.0.1", 'full-width dot "\u3002"', 'type "10.0.0.1"'),
        ("launch --cpu --nproc-per-node \uff12\uff0c x.py", 'full-width digit "\uff12"', "use a number"),
        ("validate -f \uff4ason t.json", 'full-width character "\uff4a"', 'type "json"'),
        ("launch --timeout \uff19\uff10\uff53 x.py", 'full-width digit "\uff19"', 'type "90s"'),
    ],
)
def test_values_of_options(call: CommandLine, typed: str, said: str, help_: str) -> None:
    done = call(*typed.split(" "))

    assert done.code == 2
    assert said in done.sentence
    assert help_ in done.err


def test_a_full_width_sign_is_not_the_problem_of_a_value_that_is_wrong_without_it(call: CommandLine) -> None:
    done = call("validate", "-f", "\uff58ml", "t.json")

    assert done.sentence.endswith('"\uff58ml" is not one of text, concise, json, junit, github, sarif')


def test_the_line_of_a_hostfile_is_named(call: CommandLine) -> None:
    call.write("hosts", "10.0.0.1\n10.0.0.\uff12 slots=8\n")

    done = call("gen", "--hostfile", "hosts")

    assert done.sentence == 'hosts, line 2: full-width digit "\uff12" in "10.0.0.\uff12"'
    assert 'help: type "10.0.0.2"\n' in done.err


@pytest.mark.parametrize(
    ("typed", "instead"), [("\u2014version", "--version"), ("\u2014devices", "--devices"), ("\u2013h", "-h")]
)
def test_options_before_a_command(typed: str, instead: str) -> None:
    done = run_here(typed, "0")

    assert done.returncode == 2
    assert f"help: type {instead}\n" in done.stderr
