"""``hccl-tools explain``: from the logs of a failed job, or a code, to the cause and what to do."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import options
from hccl_tools.cli.values import Choice
from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.explain.answer import Answer
    from hccl_tools.launch.runs.index import Run

#: What looks like a code: EI0006, HCM207, HCC203, 11, 507048.
_CODE = re.compile(r"(?:E[A-Z]\d{4}|HCM\d{1,3}|HCC\d{1,3}|\d{1,2}|\d{6})", re.IGNORECASE)
_EXAMPLES = """\
  hccl-tools explain                         the latest run
  hccl-tools explain 20261121-101530         a run, as `jobs` lists it
  hccl-tools explain ~/ascend/log screen.txt plogs and what was on the screen
  hccl-tools explain logs/ --rank-table hccl_2s_16p.json   with the line of the table
  hccl-tools explain EI0006                  a code: EI, EJ, "error code 11", 507048, HCC203
  kubectl logs pod | hccl-tools explain -    standard input
"""


@options.command("explain", epilog=_EXAMPLES)
@click.argument("what", nargs=-1, metavar="[RUN | PATH... | CODE | -]")
@click.option(
    "-f", "--format", "output", type=Choice(["text", "json"]), default="text", help="Output format."
)
@click.option(
    "--rank-table",
    metavar="FILE",
    help="The rank table of the job. Default: the run's own copy, else what the logs say.",
)
@click.option("--exit-code", "strict", is_flag=True, help="Return exit code 1 if a cause is found.")
@click.option("--log-dir", default="log", show_default=True, metavar="DIR", help="The log directory of runs.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    what: tuple[str, ...],
    output: str,
    rank_table: str | None,
    strict: bool,
    log_dir: str,
) -> None:
    """Explain why a job failed, from its logs: the cause, its rank and device, and what to do.

    The command reads a run of `launch`, files, folders (CANN's plogs, logs of ranks, MindSpore, torch and
    the launchers, text from the screen, gzip), standard input, or explains a code. A path that exists is
    read, also if its name is that of a code.
    """
    words = [word for word in what if word.strip()]
    if len(words) == 1 and not os.path.lexists(words[0]) and _CODE.fullmatch(words[0].strip()):
        _print_code(words[0].strip(), output)
        return
    answer = _answer(words, log_dir, rank_table)
    if output == "json":
        from hccl_tools.explain.as_json import as_json  # noqa: PLC0415

        options.write([json.dumps(as_json(answer), indent=2), "\n"])
    else:
        from hccl_tools.explain.answer import text  # noqa: PLC0415
        from hccl_tools.notation.printable import escaped  # noqa: PLC0415

        options.write(f"{escaped(line)}\n" for line in text(answer))
    found = bool(answer.causes)
    ctx.exit(int(found) if strict else int(not found))


def _print_code(code: str, output: str) -> None:
    from hccl_tools.cli.rules import print_page  # noqa: PLC0415

    if output == "json":
        raise UsageError("a code is explained as text only", hint="leave out --format json")
    print_page(code)


def _answer(words: list[str], log_dir: str, table: str | None) -> Answer:
    from hccl_tools.explain import explaining, sources  # noqa: PLC0415  (`--help` does not need them)
    from hccl_tools.explain.reader import STDIN  # noqa: PLC0415

    run = _run(words, log_dir)
    if run is not None:
        return explaining.explain([], run=run, run_name=words[0] if words else "latest", table=table)
    if STDIN in words and sys.stdin.isatty():
        click.echo("note: reading standard input, up to Ctrl-D", err=True)
    logs, notes = sources.collect(words)
    return explaining.explain(logs, notes=notes, table=table, progress=_progress())


def _run(words: list[str], log_dir: str) -> Run | None:
    """Return the run that the arguments name; None if they name files."""
    from hccl_tools.launch.runs import files, index  # noqa: PLC0415

    if not words:
        return index.resolve("latest", log_dir)
    if len(words) > 1 or words[0] == "-":
        return None
    if os.path.lexists(words[0]) and not files.is_run(words[0]):
        return None
    return index.resolve(words[0], log_dir)


def _progress() -> Callable[[int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        if total > 1:
            end = "\r" if done < total else "\r\033[K"
            sys.stderr.write(f"reading logs: {done:,} of {total:,}{end}")

    return show
