"""``doctor --probe``: the health of this host for programs that ask often, also while a job runs."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import doctor_run
from hccl_tools.cli.options import together, write
from hccl_tools.cli.values import Seconds
from hccl_tools.doctor import registry, run_checks, table_comparison
from hccl_tools.doctor.report import render
from hccl_tools.errors import UsageError
from hccl_tools.notation.printable import stdout_is_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: What a running job causes: devices and ports in use.
BUSY = ("HCD106", "HCD301", "HCD302", "HCD303")
#: Options that ask other hosts, or take long.
_EXCLUDED = ("hosts", "hostfile", "full", "bandwidth", "emit_remedies", "code", "data", "start_port")
#: The exit code if the health is not known, as for node-problem-detector.
UNKNOWN = 2

_ADDED = together(
    click.option(
        "--timeout", type=Seconds(1, 3600), metavar="SECONDS",
        help="With --probe: the time limit for everything. Exit code 2 if it is exceeded.",
    ),
    click.option(
        "--probe", is_flag=True,
        help="For a probe: this host alone, one line for each finding that would stop a job, nothing else. "
        "Devices and ports in use by a job are not reported. Exit code 0: sound, 1: faulty, 2: not known.",
    ),
)  # fmt: skip


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--probe`` and ``--timeout`` to ``doctor``, which runs without either."""

    @wraps(function)
    def command(*, probe: bool, timeout: float | None, **settings: Any) -> Any:
        ctx = click.get_current_context()
        if probe or timeout is not None:
            ctx.exit(run(ctx.params))
        return function(**settings)

    return _ADDED(command)


class _Late(BaseException):
    """The time limit was exceeded; no handler of an Exception or OSError takes it for its own."""


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Exit with code 2 if the block takes longer."""

    def end(_number: int, _frame: Any) -> None:
        raise _Late

    if seconds is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _Late:
        click.echo(f"not known: the checks did not end within {seconds:g} s")
        raise SystemExit(UNKNOWN) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(settings: Mapping[str, Any]) -> int:
    """Look at this host, print the findings that count, a line each, and return the exit code.

    Raises:
        UsageError: Another option excludes the probe.
    """
    _check(settings)

    ignore = (*settings["ignore"], *BUSY)
    selection = registry.selection(settings["select"], ignore, table_comparison.rules())
    product, cpu, strict = settings["product"], settings["cpu"], settings["strict"]
    with _limited(settings["timeout"]):
        report = doctor_run.checked_table(settings["table"], product, settings["target"], quietly=True)
        job = run_checks.Job(report, product, settings["target"], cpu=cpu)
        seen, silent = doctor_run.observed(
            job, dict(settings), tool_timeout=settings["check_timeout"], local=True
        )
        result = run_checks.examine(seen, doctor_run.with_product_of(seen, job), selection, silent)
    if settings["output_format"] == "text":
        counted = (one for one in result.findings if one.counts(strict=strict))
        write(f"{one.check} {one.message}\n" for one in counted)
    else:
        looks: dict[str, Any] = {"color": False, "ascii_only": stdout_is_ascii(), "width": None}
        chinese = settings["chinese"]
        write(render(result, seen, settings["output_format"], strict=strict, chinese=chinese, **looks))
    return int(result.fails(strict=strict))


def _check(settings: Mapping[str, Any]) -> None:
    if not settings["probe"]:
        raise UsageError(
            "--timeout is for --probe", hint="add --probe; --gather-timeout limits the time of other hosts"
        )
    if given := next((name for name in _EXCLUDED if settings[name]), None):
        option_name = f"--{given.replace('_', '-')}"
        raise UsageError(f"--probe and {option_name} exclude each other", hint="leave one of them out")
    if settings["output_format"] == "matrix":
        raise UsageError("--probe and -f matrix exclude each other", hint="leave one of them out")
