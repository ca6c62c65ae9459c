"""The manifests that hosts send to the rendezvous, and the differences between two manifests."""

from __future__ import annotations

import shlex
from itertools import takewhile
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.notation import masking
from hccl_tools.notation.phrases import and_more, time_span
from hccl_tools.notation.printable import one_line
from hccl_tools.processes import timing
from hccl_tools.programs.environment import in_pod
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.protocol.connection import Connection
    from hccl_tools.launch.protocol.messages import Refused

#: Subject of the rendezvous port. The discovery port connects hosts that differ only in this port.
PORT = "--start-port"
#: Subject of the program: its kind and name, ``script train.py``.
PROGRAM = "program"
#: Subject of the program's arguments: a digest of all of them, and their text, without secrets and shortened.
ARGUMENTS = "arguments"
#: Subject of the rehearsal on the CPU.
CPU = "--cpu"
#: Subject of the rank table.
TABLE = "fingerprint of the rank table"
#: Subject of the machines of the job, in any order.
MACHINES = "machines"
#: Characters of the arguments that are sent, and of a difference that is shown.
_LONGEST_TEXT = 4_000
_LONGEST_SHOWN = 120
#: What to do about pods that did not join.
_LATE_PODS = (
    "check the pods that are missing (`kubectl get pods -o wide`): for one without its image or table, "
    "--wait SECONDS waits longer; else check firewalls between the nodes"
)
#: What rank 0's pod answers to one with another table, if both look for the next one.
ANOTHER_TABLE = "another rank table"
_SAME_ON_ALL = "all hosts need the same files and options; --preflight none skips this check"


class RefusalError(LaunchError):
    """The job is not started, and the other hosts know the reason."""


class Timing(NamedTuple):
    """Times of the rendezvous, in seconds.

    Attributes:
        poll: Maximum wait in one poll of the server.
        notice: Until a message lists the missing hosts.
        again: Between two such messages.
        linger: During which the other hosts receive a refusal.
        retry: Between two attempts of a client to connect.
        connect: Timeout of one attempt.
        answer: For the server's first answer, and for its verdict after the time that it has named.
        discovery: Until a client tries the discovery port.
        discovery_retry: Between two attempts at the discovery port.
        table_retry: Until a client with another table tries again.
    """

    poll: float = 0.2
    notice: float = 2.0
    again: float = 30.0
    linger: float = 3.0
    retry: float = 0.2
    connect: float = 2.0
    answer: float = 10.0
    discovery: float = 1.0
    discovery_retry: float = 2.0
    table_retry: float = 2.0


TIMING = timing.from_environment("rendezvous", Timing())


class HostManifest(NamedTuple):
    """The manifest of one host.

    Attributes:
        server: The index of the host's server in the table.
        values: The values that must be equal on all hosts, by subject.
        run_dir: The run directory; its path may differ between hosts.
    """

    server: int
    host: str
    values: dict[str, str]
    run_dir: str = ""


class Membership(NamedTuple):
    """The result of a rendezvous, by server: this host's connections, and all run directories."""

    connections: dict[int, Connection]
    run_dirs: dict[int, str]


def differing(one: HostManifest, other: HostManifest) -> list[str]:
    """Return the subjects in which two hosts differ, sorted."""
    here, there = one.values, other.values
    return sorted(subject for subject in {*here, *there} if here.get(subject) != there.get(subject))


def difference(one: HostManifest, other: HostManifest) -> str:
    """Describe the first difference between two hosts; return "" if they agree."""
    if one.server == other.server:
        return f"two hosts claim to be server {one.host} of the job: distinguish them with --server"
    if one.values.get(PROGRAM) != other.values.get(PROGRAM):
        return one_line(_program_difference(one, other))
    for subject in differing(one, other):
        here, there = (each.values.get(subject) or "none" for each in (one, other))
        if subject == ARGUMENTS:
            here, there = _argument_difference(here, there)
        else:
            here, there = _excerpts(here, there)
        title = "arguments differ" if subject == ARGUMENTS else subject
        return one_line(f"{title}: {one.host} has {here}, {other.host} has {there}")
    return ""


def arguments_value(digest: str, argv: Sequence[str]) -> str:
    """Return the value of ``ARGUMENTS``: it differs if the digest does, and shows what the arguments are."""
    text = shlex.join(masking.arguments(argv)).encode(errors="backslashreplace").decode()
    return f"{digest} {text[:_LONGEST_TEXT]}"


def _argument_difference(here: str, there: str) -> tuple[str, str]:
    """Return the words in which two lists of arguments differ, with the option before a differing value."""
    digests, texts = zip(*(value.partition(" ")[::2] for value in (here, there)), strict=True)
    if texts[0] == texts[1]:
        return f"SHA-256 {digests[0]}", f"SHA-256 {digests[1]}"
    one, other = (_words(text) for text in texts)
    first = _equal(one, other)
    if first and one[first - 1].startswith("-") and "=" not in one[first - 1]:
        first -= 1
    one, other = one[first:], other[first:]
    last = _equal(one[:0:-1], other[:0:-1])
    return _shown(one[: len(one) - last]), _shown(other[: len(other) - last])


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal words at the beginning of two lists."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # Cut within quotes.
        return text.split()


def _shown(words: Sequence[str]) -> str:
    if not words:
        return "none"
    return f"`{_cut(shlex.join(words))}`"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 4]} ..."


def _excerpts(here: str, there: str) -> tuple[str, str]:
    """Return two different texts from shortly before the place where they differ, if they are long."""
    if max(len(here), len(there)) <= _LONGEST_SHOWN:
        return here, there
    pairs = enumerate(zip(here, there, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(here), len(there)))
    start = max(0, here.rfind(" ", 0, max(0, same - 20)) + 1)
    begin = "..." if start else ""
    shown = (
        f"{begin}{text[start : start + _LONGEST_SHOWN]}{'...' if len(text) > start + _LONGEST_SHOWN else ''}"
        for text in (here, there)
    )
    first, second = shown
    return first, second


def _program_difference(one: HostManifest, other: HostManifest) -> str:
    here, there = (each.values.get(PROGRAM, "none") for each in (one, other))
    kind, _, name = here.partition(" ")
    other_kind, _, other_name = there.partition(" ")
    if kind != other_kind:
        return f"the hosts start different programs: {here} on {one.host}, {there} on {other.host}"
    return f"the hosts start different {kind}s: {name} on {one.host}, {other_name} on {other.host}"


def refusal(message: Refused, host: str) -> RefusalError:
    """Return the error for a refusal; ``host`` has refused, if a single host has."""
    hint = _SAME_ON_ALL if message.number < 0 else f"see the output of hccl-tools on {host}"
    return RefusalError(one_line(message.why), hint=hint)


def waiting(whom: str, own: HostManifest, seconds: float, *, is_first: bool, also: str = "") -> str:
    """Return the message while hosts are missing: the first one says what to do, the others what is left.

    Args:
        whom: The hosts, with what they have to do.
        own: This host; a simulated table can have its address by accident.
        seconds: How long this host waits in all; in further messages, how much of it is left.
        also: What was heard from other programs.
    """
    span = time_span(seconds).removesuffix(" 0 s")
    if not is_first:
        return f"still waiting for {whom}, {span} left{also}"
    if in_pod():
        return f"waiting for {whom}{also}, at most {span}; this host is {own.host}"
    return (
        f"waiting for {whom}{also}; this host is {own.host}; run the same command on each host of the job "
        f"within {span}; to rehearse all ranks on this host, add `{_rehearsal(own)}`"
    )


def _rehearsal(own: HostManifest) -> str:
    """Return the options that are missing for a rehearsal of all ranks on this host."""
    return "--all-here" if own.values.get(CPU) == "yes" else "--cpu --all-here"


def with_another_table(hosts: Sequence[str]) -> str:
    """Return which hosts have come with another table, "" if none has."""
    verb = "has" if len(hosts) == 1 else "have"
    return f"{and_more(hosts)} {verb} {ANOTHER_TABLE} than this host" if hosts else ""


def missing_hosts_error(
    hosts: Sequence[str], own: HostManifest, wait: float, strangers: str = ""
) -> RefusalError:
    """Return the error of host ``own`` for hosts that did not join within ``wait`` seconds."""
    also = f"; {strangers}" if strangers else ""
    return RefusalError(
        f"host{'' if len(hosts) == 1 else 's'} {and_more(hosts)} did not join within {wait:g} s{also}",
        hint=_LATE_PODS
        if in_pod()
        else "run the same command, with the same --start-port, on every host; check for errors and "
        f"firewalls; --preflight none skips this check; `{_rehearsal(own)}` rehearses all ranks on this host",
    )
