"""What a user sees who types an option of another tool: what to type here, and not only where the help is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from hccl_tools import cli
from hccl_tools.cli import foreign_options

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.mark.parametrize(
    ("call", "options", "word"),
    [
        ("logs", "--tail --timestamps --since --previous --all-containers -c -v -q", ""),
        ("logs", "--tail --last", "-n 50"),
        ("logs", "-w --watch", "-f"),
        ("stop", "--force -9 --signal -y --run-id --time", ""),
        ("stop", "--force -9 --signal", "--now"),
        ("jobs", "--watch --state --json -o -n -u -v", ""),
        ("stacks", "--pid --rank --json -v", ""),
        ("show t.json", "--svg --png --json --tree --topo --verbose -i", ""),
        ("show t.json", "--svg --png --html", "-o FILE.svg"),
        ("validate t.json", "--exit-zero --statistics --diff --output-format --werror --exclude -o -v", ""),
        ("diff a.json b.json", "-u --unified --stat -q -y --json", ""),
        ("merge a.json b.json", "--sort --sort-by -v -q --dry-run", ""),
        ("convert t.json", "-t --type --as --in-place -v", ""),
        ("convert t.json", "-t --type --as", "--to 1.2"),
        ("replace t.json", "--old --new --by -v", ""),
        ("subset t.json", "--nodes --hosts -w --npus -v", ""),
        ("distribute t.json", "-n --dry-run --port --identity -v", ""),
        ("env t.json", "--shell --framework -v", ""),
        ("gen", "-N --nodelist --gres -q --ip --stdout -v --debug", ""),
        ("launch", "-d --detach --volume --rm -it --job-name -J --time --gres -A --account", ""),
        ("launch", "-x", "--env NAME=VALUE"),
        ("launch", "-f --oversubscribe --allow-run-as-root --map-by --partition --requeue --tty", ""),
        ("launch", "-machinefile -machinefile=hosts --machinefile -H", "--hosts"),
        ("launch", "-mca --mca", "--env OMPI_MCA_NAME=VALUE"),
        ("launch", "-wdir --wdir", "cd DIR"),
        ("launch", "-bind-to --bind-to --map-by -map-by", "without --bind no rank is bound"),
        ("launch", "-oversubscribe --allow-run-as-root", "not needed"),
        ("launch", "-npernode --npernode", "--nproc-per-node"),
        ("launch", "--ntasks-per-node --gpus-per-node -ppn", "--nproc-per-node"),
        ("doctor", "--fix --quick --skip --only -v -q --json", ""),
        ("explain", "--run --logs --code --search --json -v", ""),
        ("rules", "--list --json --search -v", ""),
        ("schema", "-o --list -v", ""),
    ],
)
def test_an_option_of_another_tool_is_answered(
    command_line: CommandLine, call: str, options: str, word: str
) -> None:
    for option in options.split():
        done = command_line(*call.split(), option)

        assert done.code == 2, (option, done.err)
        assert "no such option" in done.err, (option, done.err)
        assert "help: see `hccl-tools" not in done.err, (option, done.err)
        assert word in done.err, (option, done.err)


def test_answers_name_options_that_the_commands_have() -> None:
    context = click.Context(cli.cli, info_name="hccl-tools")
    for one in foreign_options.ANSWERS:
        for command in one.commands:
            found = cli.cli.get_command(context, command)
            assert found is not None, command
            named = re.findall(r"`(--?[a-z][\w-]*)", one.text)
            own = {"--help", *(option for param in found.params for option in param.opts)}
            assert {name.replace("_", "-") for name in named} <= {o.replace("_", "-") for o in own}, one


def test_a_misspelt_option_is_still_corrected(command_line: CommandLine) -> None:
    assert "did you mean --follow?" in command_line("logs", "--folow").err


def test_quiet_validation_tells_by_its_exit_code(command_line: CommandLine) -> None:
    command_line.write("good.json", command_line("gen", "--simulate", "910a", "-o", "-").out)
    command_line.write("bad.json", '{"version": "1.0"}')

    good, bad = command_line("validate", "-q", "good.json"), command_line("validate", "--quiet", "bad.json")
    absent = command_line("validate", "-q", "absent.json")

    assert (good.code, good.out, good.err) == (0, "", "")
    assert (bad.code, bad.out, bad.err) == (1, "", "")
    assert (absent.code, absent.out) == (2, "")
    assert "absent.json" in absent.err


def test_a_number_of_nodes_of_gen_is_one_of_simulated_servers(command_line: CommandLine) -> None:
    number = command_line("gen", "--simulate", "a2", "--nodes", "4")
    names = command_line("gen", "--nodes", "node1,node2")

    assert "did you mean --servers, the number of servers of --simulate?" in number.err
    assert "did you mean --hosts?" in names.err


@pytest.mark.parametrize(
    "words",
    [("-nnodes", "1"), ("-nnodes=1",), ("-master_port", "12000"), ("-timeout", "9"), ("-standalone",)],
)
def test_long_options_may_have_one_dash(command_line: CommandLine, words: tuple[str, ...]) -> None:
    command_line.write("train.py", "")

    done = command_line("launch", "--cpu", "-n", "2", *words, "--dry-run", "train.py")

    assert done.code == 0, done.err


def test_letters_of_short_options_stay_letters(command_line: CommandLine) -> None:
    done = command_line("launch", "--cpu", "--no-table", "-mn2", "--dry-run", "json.tool")

    assert done.code == 0, done.err
    assert "2 ranks" in done.out
