"""Options that commands share."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from hccl_tools.cli import options, validate
from hccl_tools.diagnostics import FORMATS
from hccl_tools.errors import HcclToolsError, InputError
from hccl_tools.notation.printable import stdout_is_ascii
from hccl_tools.variables.rows import NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine


_FROM_STDIN = ["validate -", "show -", "convert - --to 1.0", "merge -", "subset - --devices 0"]


@options.command("probe", epilog="  probe --device_num 4\n", kind=validate.EnvCommand)
@click.option("--device_num", type=int)
@click.option("--log-dir")
@click.option("--to", type=click.Choice(["group_list", "1.0"]))
@options.select
@options.ignore
@validate.env_option
@options.color
@options.output_format
@options.product
def probe(**values: Any) -> None:
    """Say what was understood."""
    click.echo(repr(values))


def call(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(probe, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    values: dict[str, Any] = eval(result.output)  # noqa: S307  (what repr just wrote)
    return values


@pytest.mark.parametrize("name", ["--device_num", "--device-num"])
@pytest.mark.parametrize("other", ["--log_dir", "--log-dir"])
def test_both_spellings_are_taken(name: str, other: str) -> None:
    values = call(name, "4", f"{other}=some_dir-x")

    assert values["device_num"] == 4
    assert values["log_dir"] == "some_dir-x"


@pytest.mark.parametrize("name", ["group_list", "group-list"])
def test_choices_too(name: str) -> None:
    assert call("--to", name)["to"] == "group_list"


def test_rules_are_comma_lists_and_repeatable() -> None:
    values = call("--select", "HCC2, HCC301,", "--select", "duplicate-key", "--ignore", "HCC4")

    assert values["select"] == ("HCC2", "HCC301", "duplicate-key")
    assert values["ignore"] == ("HCC4",)


def test_variables() -> None:
    values = call("--env", "HCCL_OP_RETRY_ENABLE=L0:0, L1:0, L2:1", "--env", "HCCL_INTRA_ROCE_ENABLE=1")

    assert values["env"] == {"HCCL_OP_RETRY_ENABLE": "L0:0, L1:0, L2:1", "HCCL_INTRA_ROCE_ENABLE": "1"}


@pytest.mark.parametrize("following", [(), ("--color", "never"), ("--env", "HCCL_BUFFSIZE=400")])
def test_variables_of_the_shell(following: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HCCL_RDMA_TC", "132")
    monkeypatch.setenv("HCCL_OTHER", "1")
    typed = {"HCCL_BUFFSIZE": "400"} if "HCCL_BUFFSIZE=400" in following else {}

    assert call("--env", *following)["env"] == {"HCCL_RDMA_TC": "132", **typed}
    assert call(*following)["env"] == typed
    assert call("--env", "HCCL_RDMA_TC=8", "--env")["env"] == {"HCCL_RDMA_TC": "8"}


@pytest.mark.parametrize(
    ("text", "words"),
    [("HCCL_OP_RETRY_ENABLE", "has no value"), ("HCCL_OP_RETRY_ENABEL=1", "or does not read it")],
)
def test_variables_that_would_change_nothing(text: str, words: str) -> None:
    with pytest.raises(HcclToolsError, match=words) as caught:
        call("--env", text)

    assert caught.value.exit_code == 2
    assert "HCCL_OP_RETRY_ENABLE" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("arguments", "env", "expected"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "0"}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colors_without_a_terminal(
    arguments: list[str], env: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert call(*arguments)["color"] is expected


@pytest.mark.parametrize(("term", "expected"), [("xterm", True), ("dumb", False)])
def test_colors_on_a_terminal(term: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as terminal, os.fdopen(leader, "rb"):
        monkeypatch.setattr(sys, "stdout", terminal)

        assert options._color(None, None, "auto") is expected  # type: ignore[arg-type]


def test_the_formats_offered_are_those_that_there_are() -> None:
    (option,) = (one for one in probe.params if one.name == "output_format")

    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == list(FORMATS)


def test_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    for name in ("b.json", "a.json", "a/c.json", "d[1].json"):
        (tmp_path / name).touch()

    assert options.expand("[ab].json") == ["a.json", "b.json"]
    assert options.expand("**/*.json") == ["a.json", "a/c.json", "b.json", "d[1].json"]
    assert options.expand("d[1].json") == ["d[1].json"]
    assert options.expand("no.json") == ["no.json"]
    assert options.expand("-") == ["-"]
    with pytest.raises(InputError, match=r"no file matches x\*"):
        options.expand("x*")


def test_what_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    assert stdout_is_ascii()
    options.write(["设", "\ud800", "a\n"])

    assert raw.getvalue() == b"\\u8bbe\\ud800a\n"


@pytest.mark.parametrize("call", _FROM_STDIN)
def test_standard_input_is_called_so(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    command_line.write("broken.json", "{")
    with (command_line.folder / "broken.json").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        done = command_line(*call.split())

    assert done.code == 1
    assert " --> <stdin>:1:2" in done.out + done.err
    assert "<bytes>" not in done.out + done.err


@pytest.mark.parametrize("output_format", ["concise", "json", "junit", "github", "sarif"])
def test_machine_formats_call_standard_input_so(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, output_format: str
) -> None:
    command_line.write("broken.json", "{")
    with (command_line.folder / "broken.json").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        done = command_line("validate", "-f", output_format, "-")

    assert {"sarif": "%3Cstdin%3E", "junit": "&lt;stdin&gt;"}.get(output_format, "<stdin>") in done.out


@pytest.mark.parametrize("word", ["group_list", "group-list"])
def test_a_choice_is_taken_in_both_spellings_and_shown_in_one(command_line: CommandLine, word: str) -> None:
    assert command_line("gen", "--simulate", "910a", "--format", word, "-o", "-").code == 0
    assert "1.0, 1.2, 2.0, group_list" in command_line("gen", "--format", "x").err
