"""A suggested command is complete, fits the file at hand, and works when it is typed."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.screens import on_terminal
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.fixture
def tables(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.delenv("RANK_TABLE_FILE", raising=False)
    assert command_line("gen", "--simulate", "910a", "--servers", "4", "-o", "four.json").code == 0
    command_line.write("train.py", "")
    return command_line


def suggested(text: str) -> list[str]:
    """Return the first command in backquotes."""
    found = re.search(r"`hccl-tools ([^`]*)`", text)
    assert found, text
    return shlex.split(found[1])


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("convert four.json group_list", "convert four.json --to group_list"),
        ("convert four.json", "convert four.json --to group_list"),
        ("subset four.json", "subset four.json --servers 192.0.2.1"),
        ("subset four.json 192.0.2.1", "subset four.json --servers 192.0.2.1"),
        ("subset four.json 0-3", "subset four.json --devices 0-3"),
        ("show four.json 3", "show four.json --rank 3"),
        ("env four.json mindspore", "env four.json --target mindspore"),
        ("show four.json two.json", "diff four.json two.json"),
        ("convert four.json out.json", "convert four.json --to 1.0 -o out.json"),
        ("convert four.json out.json group_list", "convert four.json --to group_list -o out.json"),
        ("subset four.json 0-3 out.json", "subset four.json --devices 0-3 -o out.json"),
        ("env --rank-table four.json --rank 0", "env four.json --target torch"),
        ("env --rank-table=four.json --target torch --rank=0", "env four.json --target torch"),
    ],
)
def test_the_suggestion_works_for_the_file_at_hand(tables: CommandLine, typed: str, words: str) -> None:
    tables("gen", "--simulate", "910a", "--servers", "2", "-o", "two.json")

    done = tables(*typed.split())

    assert done.code == 2
    assert suggested(done.err) == words.split()
    again = tables(*suggested(done.err))
    assert again.code in {0, 1}, again.err
    assert "no such option" not in again.err


@pytest.mark.parametrize(
    ("typed", "words"),
    [("validate --strict", "validate --strict four.json"), ("show", "show four.json")],
)
def test_the_table_of_the_folder_is_suggested(tables: CommandLine, typed: str, words: str) -> None:
    done = tables(*typed.split())

    assert suggested(done.err) == words.split()
    assert tables(*suggested(done.err)).code == 0


def test_two_values_of_replace_and_its_example(tables: CommandLine) -> None:
    tables("gen", "--simulate", "910a:5", "-o", "spare.json")

    done = tables("replace", "four.json", "192.0.2.3", "spare.json")

    assert suggested(done.err) == ["replace", "four.json", "--server", "192.0.2.3", "--with", "spare.json"]
    assert tables(*suggested(done.err)).code == 0
    assert suggested(tables("replace", "four.json").err)[:2] == ["replace", "four.json"]


def test_a_file_is_named_where_the_folder_has_none(command_line: CommandLine) -> None:
    done = command_line("validate", "--local")

    assert "`hccl-tools validate --local FILE`" in done.err


def test_options_behind_the_program_are_moved_in_front_of_it(tables: CommandLine) -> None:
    done = tables("launch", "train.py", "--cpu", "--nproc-per-node=4", "--grace", "5", "--epochs", "3")

    assert suggested(done.err) == (
        ["launch", "--cpu", "--nproc-per-node=4", "--grace", "5", "train.py", "--epochs", "3"]
    )


def test_a_table_as_program_is_rehearsed_on_this_host(tables: CommandLine) -> None:
    done = tables("launch", "--cpu", "four.json", "train.py")

    assert suggested(done.err) == (
        ["launch", "--cpu", "--rank-table", "four.json", "--all-here", "--max-ranks", "32", "train.py"]
    )
    assert "--all-here" not in tables("launch", "four.json", "train.py").err


def test_the_next_command_is_one_line_on_a_narrow_terminal(tables: CommandLine) -> None:
    shown = on_terminal("gen", "--simulate", "910b", "--force", columns=60)

    (line,) = [line for line in shown.lines if line.startswith("next: ")]
    assert line.endswith("--product a2 --cpu train.py")
    assert shown.lines[-1] == line


def test_fix_says_why_it_corrects_nothing_and_what_to_type(tables: CommandLine) -> None:
    text = (tables.folder / "four.json").read_text()
    tables.write("bad.json", text.replace('"rank_id": "9"', '"rank_id": "5"'))

    done = tables("validate", "--fix", "bad.json")

    finding = 'HCC203, line 62: rank id "5" is used by two devices: by the order of the others,'
    assert finding in done.err
    assert done.err.endswith("next: hccl-tools validate bad.json\n")
    assert "next:" not in tables("validate", "--fix", "four.json").err


def test_doctor_says_first_that_the_table_is_refused(tables: CommandLine) -> None:
    text = (tables.folder / "four.json").read_text()
    tables.write("bad.json", text.replace('"rank_id": "9"', '"rank_id": "5"'))

    done = tables("doctor", "--local", "--cpu", "bad.json")

    assert done.err.startswith("warning: HCCL refuses bad.json: HCC203")
    assert "HCCL refuses" not in tables("doctor", "--local", "--cpu", "four.json").err


def test_a_merge_of_two_products_is_warned_of(tables: CommandLine) -> None:
    tables("gen", "--simulate", "a2", "-o", "a2.json")
    tables("gen", "--simulate", "910a:2", "-o", "second.json")
    tables("gen", "--simulate", "910a:3", "-o", "third.json")

    mixed = tables("merge", "a2.json", "second.json", "-o", "mixed.json")
    same = tables("merge", "second.json", "third.json", "-o", "same.json")

    assert (
        "in 1 network (/24), those of 192.0.2.2 in 4 networks: check that both are the same product"
        in mixed.err
    )
    assert (mixed.code, same.code) == (0, 0)
    assert "warning" not in same.err


def test_a_machine_of_a_cluster_has_its_address_there(tables: CommandLine) -> None:
    tables("gen", "--simulate", "910a:3", "-o", "third.json")

    assert tables.read("third.json").servers[0].server_id == tables.read("four.json").servers[2].server_id


def test_a_plan_without_a_table_says_what_its_start_is(tables: CommandLine) -> None:
    done = tables("launch", "--dry-run", "--cpu", "-n", "2", "--start", "table", "train.py")

    assert "rank table:    none" in done.out
    assert "RANK_ID and the like are set, without the file" in re.sub(r"\s+", " ", done.out)
    program = tables("launch", "--dry-run", "--cpu", "-n", "2", "--no-python", "true")
    assert "has no MindSpore, torch or paddle (" not in program.out.replace("start:", "")
    assert Path("train.py").exists()


def test_the_rules_of_a_code_do_not_hide_its_answer_on_a_terminal(tables: CommandLine) -> None:
    shown = on_terminal("explain", "EI0014")

    assert len(shown.lines) <= 30
    assert "Rules of `validate` with this code: HCC108, HCC109" in shown.joined
    assert "HCC108  unknown-version" in tables("explain", "EI0014").out


@pytest.mark.parametrize(
    "typed",
    [
        "env --rank-table t.json",
        "subset --table t.json",
        "replace --rank-table t.json",
        "convert --rank-table t.json",
    ],
)
def test_a_table_typed_as_an_option_leads_to_a_complete_command(
    command_line: CommandLine, typed: str
) -> None:
    command_line.write("t.json", table("1.0", 2, 8))

    found = re.search(r"`hccl-tools ([^`]*)`", command_line(*typed.split()).err)
    assert found is not None
    again = command_line(*shlex.split(found[1]))
    assert "missing option" not in again.err
    assert "no such option" not in again.err


def test_a_misspelt_command_is_shown_with_its_arguments(command_line: CommandLine) -> None:
    done = command_line("lanuch", "--rank_table", "two.json", "--cpu", "my train.py")

    assert "help: type `hccl-tools launch --rank_table two.json --cpu 'my train.py'`" in done.err


def test_a_file_in_yaml_is_a_config_map(command_line: CommandLine) -> None:
    command_line.write("t.json", table("1.0", 1, 8))

    done = command_line("convert", "t.json", "-o", "two.yaml")

    assert "`hccl-tools convert t.json --to-configmap two -o two.yaml`" in done.err


def test_the_table_that_was_written_last_is_suggested(command_line: CommandLine) -> None:
    for age, name in enumerate(("b.json", "c.json", "a.json")):
        command_line.write(name, table("1.0", 1, 8))
        os.utime(command_line.folder / name, (1e9 - age, 1e9 - age))

    assert "`hccl-tools validate --local b.json`" in command_line("validate", "--local").err


def test_tables_with_invented_addresses_are_named_as_such(command_line: CommandLine) -> None:
    command_line("gen", "--simulate", "910a")
    command_line("gen", "--simulate", "910a", "--servers", "2", "-o", "two.json")

    done = command_line("merge", "hccl_8p_01234567_127.0.0.1.json", "two.json")

    assert "tables of `gen --simulate` have the same invented addresses" in " ".join(done.err.split())


def test_a_program_of_printed_commands_that_does_not_exist(command_line: CommandLine) -> None:
    said = command_line("launch", "-n", "2", "--cpu", "train.py").err

    assert "train.py stands for your own program: name yours" in " ".join(said.split())
    assert "stands for" not in command_line("launch", "-n", "2", "--cpu", "mine.py").err


def _as_of_real_hosts(run: CommandLine, name: str) -> None:
    """Replace the addresses that tell that the servers are simulated."""
    file = run.folder / name
    file.write_text(file.read_text().replace("192.0.2.", "10.1.0."))


def test_a_part_of_a_simulated_table_is_checked_for_its_product(command_line: CommandLine) -> None:
    command_line("gen", "--simulate", "a2", "--servers", "2", "-o", "two.json")

    done = command_line("subset", "two.json", "--devices", "0-3")

    assert done.code == 0
    assert "product a2 (by the addresses, which are those of simulated machines)" in done.err


@pytest.mark.parametrize(
    "typed",
    [
        "subset two.json --devices 0-3 -o part.json",
        "merge part.json third.json -o three.json",
    ],
)
def test_a_table_that_another_product_accepts_is_refused_with_the_complete_call(
    command_line: CommandLine, typed: str
) -> None:
    command_line("gen", "--simulate", "a2", "--servers", "2", "-o", "two.json")
    _as_of_real_hosts(command_line, "two.json")
    command_line("gen", "--simulate", "a2:3", "-o", "third.json")
    command_line("subset", "two.json", "--devices", "0-3", "-o", "part.json", "--product", "a2")
    if typed.startswith("subset"):
        (command_line.folder / "part.json").unlink()

    done = command_line(*typed.split())

    assert done.code == 1
    assert suggested(done.err) == [*typed.split(), "--product", "a2"]
    assert command_line(*suggested(done.err)).code == 0


@pytest.mark.parametrize(
    "typed", ["subset two.json --devices 0-3", "gen --simulate 910a --servers 2 --devices 0-3"]
)
def test_the_findings_on_a_table_that_is_not_written_fit_the_terminal(
    command_line: CommandLine, typed: str
) -> None:
    command_line("gen", "--simulate", "a2", "--servers", "2", "-o", "two.json")
    _as_of_real_hosts(command_line, "two.json")

    shown = on_terminal(*typed.split())

    assert "error[HCC308]" in shown.text
    assert [line for line in shown.wider_than(80) if "`" not in line] == []
