"""Check that hosts are consistent: one product, one format, no host twice; and sort them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.gathering.failures import GatheringError
from hccl_tools.notation.host_list import fold
from hccl_tools.table.model import Server, address_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.gathering.messages import SurveyAnswer
    from hccl_tools.host.facts import HostFacts


def check(answers: Sequence[SurveyAnswer]) -> list[HostFacts]:
    """Return the facts of the hosts, in the order given, if one table can contain them.

    Raises:
        GatheringError: The hosts differ in product or format, or two entries are the same host.
    """
    facts = [answer.facts for answer in answers if answer.facts is not None]
    refuse_twice(answers)
    _refuse_different(
        answers, "products", lambda one: f"{one.product} ({one.product_source})", lambda one: one.product
    )
    _refuse_different(answers, "formats", lambda one: one.table_format, lambda one: one.table_format)
    return facts


def by_address(facts: Sequence[HostFacts]) -> list[HostFacts]:
    """Return hosts in the numeric order of their addresses; hosts without an address are last."""
    keyed = [(address_key(Server(host.server_id, range(0))), host) for host in facts]
    return [host for key, host in sorted(keyed, key=lambda pair: (pair[0] is None, pair[0] or (0, b"")))]


def refuse_twice(answers: Sequence[SurveyAnswer]) -> None:
    """Refuse two entries of a list that are the same host.

    Raises:
        GatheringError: Two answers came from one host, or have one address.
    """
    machines: dict[str, SurveyAnswer] = {}
    for answer in answers:
        first = machines.setdefault(answer.machine, answer) if answer.machine else answer
        if first is not answer:
            alike = first.host == answer.host
            problem = (
                f"two processes are on {first.host}"
                if alike
                else f"{first.host} and {answer.host} are the same host"
            )
            raise GatheringError(problem, hint="list the host once; with mpirun: --map-by ppr:1:node")
    addresses: dict[str, SurveyAnswer] = {}
    for answer in answers:
        own = answer.facts.server_id if answer.facts is not None else ""
        if (first := addresses.setdefault(own, answer)) is not answer:
            raise GatheringError(
                f"{first.host} and {answer.host} both use the address {own}",
                hint="list the hosts by addresses that other hosts can reach, or set HOST_IP on each host",
            )


def _refuse_different(
    answers: Sequence[SurveyAnswer],
    what: str,
    shown: Callable[[HostFacts], str],
    key: Callable[[HostFacts], str],
) -> None:
    kinds: dict[str, list[SurveyAnswer]] = {}
    for answer in answers:
        if answer.facts is not None:
            kinds.setdefault(key(answer.facts), []).append(answer)
    if len(kinds) < 2:
        return
    most = max(len(own) for own in kinds.values())
    lines = []
    for own in sorted(kinds.values(), key=len):
        facts = own[0].facts
        if facts is not None:
            lines.append(f"  {fold(answer.host for answer in own)}: {shown(facts)}")
    few = [answer.host for own in kinds.values() if len(own) < most for answer in own]
    odd = f", leave {fold(few)} out" if few else ""
    raise GatheringError(
        f"the hosts have different {what}",
        lines=lines,
        hint=f"HCCL needs one kind of machine{odd}; or specify their common product: --product NAME"
        if what == "products"
        else "specify one: --format NAME",
    )
