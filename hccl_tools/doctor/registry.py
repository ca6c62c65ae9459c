"""Declare, find and select checks.

A check is a generator function with the decorator ``@check``. It reads a :class:`Case` and yields findings;
it never asks the host, raises, prints or sorts. Its docstring says what is asked and why.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hccl_tools.diagnostics.registry import Registry, Selection
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


#: What a finding means for a job, the worst first.
Consequence = Literal["stops", "may-stop", "slows", "note"]
CONSEQUENCES: tuple[Consequence, ...] = ("stops", "may-stop", "slows", "note")
#: The id of facts that could not be determined.
NOT_EXAMINED = "HCD001"
_MODULES = (
    "table_file_checks",
    "device_checks",
    "network_checks",
    "device_network_checks",
    "port_checks",
    "setting_checks",
    "variable_checks",
    "job_variable_checks",
    "container_checks",
    "cross_host_checks",
    "reach_checks",
    "surroundings_checks",
    "leader_checks",
    "rail_checks",
    "ping_checks",
    "bandwidth_checks",
)
#: The modules with the checks that ``launch`` runs before every start.
_QUICK_MODULES = ("table_file_checks", "device_checks", "port_checks", "setting_checks")
_Find = TypeVar("_Find", bound="Callable[[Any], Iterator[Finding]]")


class Example(NamedTuple):
    """Something on a host that a check reports.

    Attributes:
        kind: ``tool`` (a command line and what it prints), ``file`` and ``folder`` (a path of the host),
            ``env`` (a variable), ``observed`` (a field of ``Observation`` and its value as JSON).
    """

    kind: Literal["tool", "file", "folder", "env", "observed"]
    name: str
    text: str = ""


class Finding(NamedTuple):
    """Something that a check found on a host.

    Attributes:
        message: The fault, in lower case without a full stop.
        devices: The physical ids concerned.
        remedy: What to do, if it differs from the remedy of the check.
        consequence: The consequence in this case, if it is less than that of the check.
        hosts: The hosts concerned, for a check that compares hosts.
        commands: The remedy as argument lists, if it differs from the commands of the check.
    """

    message: str
    devices: tuple[int, ...] = ()
    remedy: str | None = None
    consequence: Consequence | None = None
    hosts: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] | None = None


class Check(NamedTuple):
    """A declared check.

    Attributes:
        id: ``HCD``, family digit, two digits; never reused.
        name: The name of the fault for users.
        remedy: What to do, with commands in backticks; ``{device}`` is the first device of a finding.
        source: The document that requires it.
        products: The products to which the check applies; empty for all.
        example: What the check reports on a host.
        quick: Whether ``launch`` runs it before every start; such a check needs no tool.
        between: Whether it compares hosts: it then reads the cases of all hosts by name.
        commands: The commands of ``remedy`` that can be run as they are, for ``--emit-remedies``; those with
            ``{device}`` are run for each device of a finding.
        of_npus: Whether it is about NPUs and HCCL, which a rehearsal on the CPU does not use.
        explains: The ids of the findings that are consequences of this one, if they are on the same host.
    """

    id: str
    name: str
    consequence: Consequence
    remedy: str
    source: str
    find: Callable[[Any], Iterable[Finding]]
    products: tuple[str, ...] = ()
    example: Example | None = None
    quick: bool = False
    between: bool = False
    commands: tuple[str, ...] = ()
    of_npus: bool = False
    explains: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is asked: the first line of the docstring, without the full stop."""
        return (self.find.__doc__ or "").strip().partition("\n")[0].rstrip(".")

    @property
    def why(self) -> str:
        """The rest of the docstring."""
        return inspect.cleandoc(self.find.__doc__ or "").partition("\n")[2].strip()


_CHECKS = Registry[Check]("hccl_tools.doctor")


def check(
    check_id: str,
    name: str,
    consequence: Consequence,
    *,
    remedy: str,
    source: str,
    products: tuple[str, ...] = (),
    example: Example | None = None,
    quick: bool = False,
    between: bool = False,
    commands: tuple[str, ...] = (),
    of_npus: bool = False,
    explains: tuple[str, ...] = (),
) -> Callable[[_Find], _Find]:
    """Declare a check; see :class:`Check`."""

    def declare(find: _Find) -> _Find:
        declared = Check(
            check_id, name, consequence, remedy, source, find, products, example, quick, between, commands,
            of_npus, explains,
        )  # fmt: skip
        _CHECKS.declare(check_id, name, declared)
        return find

    return declare


def all_checks() -> dict[str, Check]:
    """Return every check by id, in the order of the ids."""
    return _CHECKS.of(_MODULES)


def quick_checks() -> dict[str, Check]:
    """Return the checks before every start, by id, without loading the others."""
    return {check_id: one for check_id, one in _CHECKS.of(_QUICK_MODULES).items() if one.quick}


def selection(select: Sequence[str], ignore: Sequence[str], rules: Iterable[tuple[str, str]]) -> Selection:
    """Return the selection of checks.

    Args:
        rules: Id and name of the rules of ``validate`` that doctor applies.

    Raises:
        UsageError: A selector matches nothing.
    """
    found = Selection(tuple(select), tuple(ignore))
    if select or ignore:
        known = [*((one.id, one.name) for one in all_checks().values()), *rules]
        found.require_known(known, "check", "`hccl-tools doctor --list` lists all")
    return found
