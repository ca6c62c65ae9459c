"""Survey many hosts at once: start a process on each, collect the answers, report hosts without an answer."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.gathering import default_engine, failures
from hccl_tools.gathering.failures import Failure, Gathered, GatheringError
from hccl_tools.host.survey import SurveyRequest
from hccl_tools.notation import host_list, screen
from hccl_tools.notation.printable import show_status
from hccl_tools.remote.interruption import exit_on_signals
from hccl_tools.table.products import PRODUCT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hccl_tools.gathering.engine_run import EngineOutcome
    from hccl_tools.gathering.messages import SurveyAnswer
    from hccl_tools.gathering.options import GatherOptions
    from hccl_tools.gathering.table_copy import CopyRequest
    from hccl_tools.host.observation import ObservationRequest

#: So many hosts that have not answered are named.
_MOST_NAMED = 4


def survey_hosts(hosts: Sequence[str], request: SurveyRequest, options: GatherOptions) -> Gathered:
    """Survey every host.

    Raises:
        GatheringError: A host did not return facts and ``allow_missing`` is off, or no host returned facts.
        UsageError: The engine is missing, or the request can apply to one host only.
    """
    if request.server_ip is not None:
        raise UsageError(
            f"--server_ip {request.server_ip} cannot be the address of {len(hosts)} hosts",
            hint="omit --server_ip: each host uses its address in the host list, else its own address",
        )
    answers, causes = _ask(hosts, _for_all(request, options.environ), options)
    left_out = [causes[host] for host in hosts if host in causes]
    if left_out and (not options.allow_missing or not answers):
        raise failures.no_answer(left_out, len(hosts))
    return Gathered([answers[host] for host in hosts if host in answers], left_out)


def observe_hosts(
    hosts: Sequence[str], request: ObservationRequest | CopyRequest, options: GatherOptions
) -> Gathered:
    """Observe every host, or copy a table to it; those that do not answer are ``left_out``.

    Raises:
        GatheringError: The engine failed without naming a host.
        UsageError: The engine is missing.
    """
    answers, causes = _ask(hosts, request, options._replace(allow_missing=True))
    missing = Failure("", f"it did not answer within {options.seconds:g} s")
    left_out = [causes.get(host, missing._replace(host=host)) for host in hosts if host not in answers]
    return Gathered([answers[host] for host in hosts if host in answers], left_out)


def _ask(
    hosts: Sequence[str], request: SurveyRequest | ObservationRequest | CopyRequest, options: GatherOptions
) -> tuple[dict[str, SurveyAnswer], dict[str, Failure]]:
    """Return the answers and the failures by host, and count them on a terminal meanwhile."""
    with counted(hosts) as answered:
        return _asked(hosts, request, options._replace(answered=answered))


def _asked(
    hosts: Sequence[str], request: SurveyRequest | ObservationRequest | CopyRequest, options: GatherOptions
) -> tuple[dict[str, SurveyAnswer], dict[str, Failure]]:
    """Return the answers and the failures by host; hosts that were not reached in time are in neither."""
    engine = options.engine or default_engine.default(options.environ)[0]
    options = options._replace(engine=engine)
    survey = import_module(f"hccl_tools.gathering.{default_engine.transport(engine)}").survey
    deadline = time.monotonic() + options.seconds
    answers: dict[str, SurveyAnswer] = {}
    causes: dict[str, Failure] = {}
    while pending := [host for host in hosts if host not in answers and host not in causes]:
        places = {host: place for place, host in enumerate(hosts)}
        left = max(1.0, deadline - time.monotonic())
        with exit_on_signals():
            outcome: EngineOutcome = survey(pending, places, request, options, left)
        fitting = {host: _fitting(answer, request) for host, answer in outcome.answers.items()}
        answers |= {host: answer for host, answer in fitting.items() if not answer.has_failed}
        causes |= {cause.host: cause for cause in outcome.causes}
        causes |= {host: Failure.of_answer(answer) for host, answer in fitting.items() if answer.has_failed}
        if not outcome.answers and not outcome.causes:
            undone = "no table is written" if isinstance(request, SurveyRequest) else "no host was asked"
            raise GatheringError(f"{engine} failed", lines=outcome.output, undone=undone)
        if causes and not options.allow_missing:
            break
        if time.monotonic() > deadline:
            break
    return answers, causes


def _fitting(answer: SurveyAnswer, request: SurveyRequest | ObservationRequest | CopyRequest) -> SurveyAnswer:
    """Return an answer, or a failure for an answer to another question."""
    kinds = {"SurveyRequest": "facts", "ObservationRequest": "seen", "CopyRequest": "file"}
    wanted = kinds[type(request).__name__]
    given = [name for name in kinds.values() if getattr(answer, name) is not None]
    if answer.has_failed or given == [wanted]:
        return answer
    why = f'it has "{", ".join(given)}" and not "{wanted}"'
    message = f"the answer of {answer.host} cannot be read: {why}"
    return answer._replace(facts=None, seen=None, file=None, message=message)


def _for_all(request: SurveyRequest, environ: Mapping[str, str]) -> SurveyRequest:
    """Return the request with absolute paths and the product, so that it applies to every host."""
    site = request.site
    tool, conf, info = (
        None if path is None else os.path.abspath(path)  # noqa: PTH100
        for path in (site.hccn_tool, site.hccn_conf, site.rootinfo)
    )
    if request.simulate is None and request.product is None:
        request = request._replace(product=environ.get(PRODUCT_VARIABLE) or None)
    return request._replace(site=site._replace(hccn_tool=tool, hccn_conf=conf, rootinfo=info))


@contextmanager
def counted(hosts: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """Yield the function to call with each host that has answered; the line goes when all is done.

    There is a line only on a terminal, and only for several hosts. Threads may call the function.
    """
    if len(hosts) < 2 or not sys.stderr.isatty():
        yield lambda _host: None
        return
    pending = dict.fromkeys(hosts)
    began = time.monotonic()

    def show(host: str = "") -> None:
        pending.pop(host, None)
        text = line(list(pending), len(hosts), time.monotonic() - began)
        columns = (screen.width(2) or screen.STANDARD) - 1
        show_status(screen.cut(text, columns))

    show()
    try:
        yield show
    finally:
        show_status("")


def line(pending: Sequence[str], number: int, seconds: float) -> str:
    """Return the line: how many of ``number`` hosts have answered, and the last that have not.

    >>> line(["10.0.0.3", "10.0.0.4"], 16, 2.4)
    '14 of 16 hosts have answered, 2 s; waiting for 10.0.0.[3-4]'
    """
    text = f"{number - len(pending):,} of {number:,} hosts have answered, {seconds:.0f} s"
    return f"{text}; waiting for {host_list.fold(pending)}" if 0 < len(pending) <= _MOST_NAMED else text
