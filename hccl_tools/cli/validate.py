"""``hccl-tools validate``: check tables as HCCL does."""

from __future__ import annotations

import gc
import os
import re
import sys
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hccl_tools import load_part
from hccl_tools.cli import language, options, wait_option
from hccl_tools.diagnostics import kept, render
from hccl_tools.diagnostics.placing import ReportOptions
from hccl_tools.document.reading import is_stream
from hccl_tools.errors import InputError, UsageError
from hccl_tools.formats.endpoint_file import files_in
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import did_you_mean, operand
from hccl_tools.notation.printable import stdout_is_ascii, tell
from hccl_tools.programs.lookup import FAST
from hccl_tools.table.products import PRODUCT_VARIABLE, assumed_for
from hccl_tools.validation.checker import validate
from hccl_tools.validation.config_maps import check_all
from hccl_tools.variables.rows import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.validation.local_check import LocalCheck


#: The environment variables of the job, which HCCL reads before the table.
_ENV = "--env"
#: What follows ``--env`` as its value: an assignment, or a name without its value. Other words are files.
_ENV_VALUE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*|[A-Z_][A-Z0-9_]*", re.DOTALL)


class EnvCommand(click.Command):
    """A command whose ``--env`` may stand alone, also before a file: the variables of the shell."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; ``--env`` without a value becomes ``--env=``."""
        end = args.index("--") if "--" in args else len(args)
        alone = {
            place
            for place, word in enumerate(args[:end])
            if word == _ENV and (place + 1 >= end or _ENV_VALUE.fullmatch(args[place + 1]) is None)
        }
        return super().parse_args(
            ctx, [f"{word}=" if place in alone else word for place, word in enumerate(args)]
        )


def _read_env(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    if not values:
        return {}
    from_shell = {name: os.environ[name] for name in NAMES if name in os.environ} if "" in values else {}
    return from_shell | dict(map(_assignment, filter(None, values)))


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f'{_ENV} "{text}" has no value',
            hint=f'use {_ENV} "{name}=VALUE", or {_ENV} alone for the variables of this shell',
        )
    if name not in NAMES:
        raise UsageError(
            f"{_ENV}: HCCL accepts every value of {name}, or does not read it",
            hint=f"{did_you_mean(name, NAMES)} HCCL refuses values of: {', '.join(NAMES)}".lstrip(),
        )
    return name, value


env_option = click.option(
    _ENV,
    multiple=True,
    metavar="[NAME=VALUE]",
    callback=_read_env,
    help="A variable of HCCL in the job's environment; without a value, those of this shell.",
)


_EXAMPLES = """\
  hccl-tools validate hccl_8p_01234567_10.0.0.1.json       one table
  hccl-tools validate --product a2 'tables/**/*.json'      many tables, for Atlas A2 machines
  hccl-tools validate --only-hccl rank_table.json          only faults that stop HCCL
  hccl-tools validate --target mindie rank_table.json      also what MindIE requires of it
  hccl-tools validate --env rank_table.json                also HCCL's variables of this shell
  hccl-tools validate --local rank_table.json              compare it with this host and its devices
  hccl-tools validate /etc/hixlep /etc/hccl_rootinfo.json  the other files of an Ascend 950 host
  cat rank_table.json | hccl-tools validate -              from a pipe
  hccl-tools validate --fix rank_table.json                show what has one right correction; --write does it
  hccl-tools validate -f json rank_table.json              for programs; also junit, github, sarif
"""


_T = TypeVar("_T")
#: The number of ranks above which the faster parser of the [fast] extra is recommended.
_MANY_RANKS = 10_000


class _Run:
    def __init__(
        self, checks: dict[str, Any], *, strict: bool, only_hccl: bool, local: bool, wait: float | None
    ) -> None:
        self.checks, self.strict, self.only_hccl, self.local = checks, strict, only_hccl, local
        #: Whether a variable names the file, so that HCCL reads exactly it: then no ConfigMap is opened.
        self.is_of_job = False
        self.wait = wait
        self.unreadable, self.failed, self.recommended_orjson = False, False, False
        self.noted_product = self.quiet = False

    def reports(self, names: Iterable[str]) -> Iterator[Report]:
        """Yield the reports; a file that cannot be read is reported on stderr and skipped."""
        return self._each_file(names, self._reports_of)

    def diffs(self, names: Iterable[str], *, write: bool) -> Iterator[str]:
        """Yield the corrections of each file as a diff, and write them if ``write`` is set."""
        diff_of = load_part("cli.validate_fix").diff_of
        return self._each_file(
            names,
            lambda file: diff_of(
                file,
                check=self._check,
                judge=self._count_fixed,
                write=write,
                product=self.checks.get("product"),
            ),
        )

    def _count_fixed(self, report: Report, is_unfilled: bool) -> None:
        """Take the report on a corrected file into account; a template is not a table yet."""
        self._count(report)
        self.failed |= is_unfilled

    def _each_file(self, names: Iterable[str], results_of: Callable[[str], Iterable[_T]]) -> Iterator[_T]:
        for name in names:
            yield from self._results(name, results_of)

    def _results(self, name: str, results_of: Callable[[str], Iterable[_T]]) -> Iterator[_T]:
        try:
            for file in _files(name):
                wait_option.wait_for(file, self.wait)
                yield from results_of(file)
        except InputError as error:
            self.unreadable = True
            hint = f"\n  help: {error.hint}" if error.hint else ""
            tell(*f"error: {error.message}{hint}".split("\n"))

    def _reports_of(self, file: str) -> Iterator[Report]:
        for report in [self._check(file)] if self.is_of_job else check_all(file, self._check):
            self._report_host(report)
            self._note_target(report)
            self._note_product(report)
            self._recommend_orjson(report)
            self._count(report)
            if report.origin is not None and _is_given_as_table(file):
                self._refuse_file(report)
            yield report

    def _refuse_file(self, report: Report) -> None:
        """Take into account that a job cannot read a file that is given as a table, whatever is in it."""
        self.failed = True
        if not self.quiet:
            tell(
                "note: the exit code is 1, because a job cannot read the ConfigMap; "
                f"`hccl-tools validate {operand(report.file)}` checks the table alone"
            )

    def _count(self, report: Report) -> None:
        """Take a report into account for the exit code."""
        found = ReportOptions(only_hccl=self.only_hccl).counts(report)
        self.failed |= any(self.strict or rule.severity == "error" for rule in found)

    def _recommend_orjson(self, report: Report) -> None:
        if report.table is None or len(report.table) <= _MANY_RANKS or self.recommended_orjson:
            return
        if find_spec("orjson") is None:
            self.recommended_orjson = True
            tell(f"note: {len(report.table):,} ranks are checked faster with orjson: {FAST}")

    def _note_product(self, report: Report) -> None:
        """Say on a terminal, once, how to check a table for another product than the one assumed."""
        is_stated = self.checks["product"] is not None or bool(os.environ.get(PRODUCT_VARIABLE))
        if report.format != "1.0" or is_stated or self.noted_product or not sys.stdout.isatty():
            return
        if report.product_is_assumed and report.product == assumed_for("1.0").name:
            self.noted_product = True
            tell(
                f"note: a 1.0 table does not name its product, and is checked for the {report.product}; for"
                " another one add it: `--product a2`"
            )

    def _note_target(self, report: Report) -> None:
        """Say which rules of MindIE apply to its service tables: those of rank tables need an instance's."""
        if report.is_service and self.checks["target"] == "mindie" and report.reader == "MindIE-Motor":
            command = "`hccl-tools convert FILE --instance N --to 1.0 --target mindie`"
            tell(
                f"note: {report.file} is checked as MindIE-Motor reads it; MindIE reads the rank table of an "
                f"instance, which {command} checks and writes"
            )

    def _check(self, source: Any) -> Report:
        if self.local:
            return self._local_check.validate(source, **self.checks)
        return validate(source, **self.checks)

    def _report_host(self, report: Report) -> None:
        if self.local:
            tell(self._local_check.summary(report))

    @cached_property
    def _local_check(self) -> LocalCheck:
        made: LocalCheck = load_part("validation.local_check").LocalCheck()
        return made

    @property
    def exit_code(self) -> int:
        """2 if a file cannot be read, else 1 if a table has an error, else 0."""
        return 2 if self.unreadable else int(self.failed)


def _is_given_as_table(argument: str) -> bool:
    """Return whether a user names a file as HCCL requires it of a table, and no key of a ConfigMap in it."""
    file, key = config_maps.split(argument)
    is_table = file.endswith(".json") and not file.endswith(config_maps.ENDING)
    return key is None and is_table and not is_stream(file)


def _of_shell() -> str:
    """Return the table that a variable of the shell names."""
    named: str = load_part("cli.chosen_table").from_environment()
    return named


def _files(name: str) -> list[str]:
    """Return the files that an argument names; a directory with endpoint files stands for all of them."""
    if os.path.isdir(name) and (in_directory := files_in(name)):  # noqa: PTH112
        return in_directory
    return options.expand(name)


@options.command("validate", epilog=_EXAMPLES, kind=EnvCommand)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@options.product
@options.select
@options.ignore
@wait_option.option
@click.option(
    "--target",
    type=options.TARGET,
    help="Also check what this framework requires of the table and its file.",
)
@click.option("--local", is_flag=True, help="Also compare the tables with this host and its devices.")
@click.option("--strict", is_flag=True, help="Count warnings as errors for the exit code.")
@click.option(
    "--only-hccl", is_flag=True, help="Show and count only faults that make HCCL refuse the table or wait."
)
@click.option(
    "--fix",
    is_flag=True,
    help="Show, as a diff, the corrections that are certain: types of numbers, counts, full-width signs, "
    "trailing commas, quotes, keys, the encoding. The exit code is that of the corrected file, and 1 while a "
    "placeholder of a template is left.",
)
@click.option("--write", is_flag=True, help="Write the corrections of --fix to the file.")
@click.option("-q", "--quiet", is_flag=True, help="Print no findings: the exit code tells.")
@click.option("--all", "show_all", is_flag=True, help="Show all findings of each rule.")
@options.output_format
@env_option
@options.color
@language.lang
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    local: bool,
    wait: float | None,
    strict: bool,
    only_hccl: bool,
    fix: bool,
    write: bool,
    quiet: bool,
    show_all: bool,
    output_format: str,
    color: bool,
    chinese: language.Chinese,
    **checks: Any,
) -> None:
    """Check rank tables: report what HCCL refuses, where, and how to fix it.

    FILE is a table of any format, a root info or endpoint file of Ascend 950 or a directory of endpoint
    files, a pattern in quotes, or - for standard input; without FILE, the table of RANK_TABLE_FILE is
    checked. FILE can also be the output of `kubectl get configmap -o json`, which HCCL itself does not read:
    every table in it is checked, or only that of FILE#KEY.

    The exit code is 0 if no table has an error, 1 if a table has an error, 2 if a file cannot be read or the
    usage is wrong. A ConfigMap in a .json file is refused by HCCL and `launch`: the exit code is 1, and that
    of FILE#KEY, a .configmap.json or .yaml file or standard input is that of the table. With --local each
    file is also compared with this host: its server, the devices present, and their addresses.
    """
    if only_hccl and checks["target"] is not None:
        raise UsageError(
            "--only-hccl and --target exclude each other: the framework refuses what HCCL accepts",
            hint="omit one of them",
        )
    if write and not fix:
        raise UsageError("--write needs --fix", hint="add --fix, and look at its diff first")
    if fix and ctx.get_parameter_source("output_format") is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--fix prints a diff, which has no other format", hint="omit -f")
    # A large table has half a million objects, but no cycles: collecting takes longer than checking.
    gc.disable()
    checks["limit"] = None if fix else kept(output_format, show_all=show_all)
    run = _Run(checks, strict=strict, only_hccl=only_hccl, local=local, wait=wait)
    run.quiet = run.noted_product = run.recommended_orjson = (
        quiet  # They are advice, and the exit code is asked for.
    )
    names, run.is_of_job = files or [_of_shell()], not files
    if fix:
        options.write(run.diffs(names, write=write))
        ctx.exit(run.exit_code)
    shown: dict[str, Any] = {"show_all": show_all, "only_hccl": only_hccl, "color": color, "strict": strict}
    shown |= {"ascii_only": stdout_is_ascii(), "width": screen.width(), "chinese": chinese}
    if quiet:
        for _ in run.reports(names):
            pass
        ctx.exit(run.exit_code)
    options.write(render(run.reports(names), output_format, **shown))
    ctx.exit(run.exit_code)
