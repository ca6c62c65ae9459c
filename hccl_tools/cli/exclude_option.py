"""``--exclude``: hosts, or devices of hosts, that are left out of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.messages import SurveyAnswer
    from hccl_tools.notation.exclusion import Exclusion

_LIST = "the list of hosts"


def _parsed(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[Exclusion, ...]:
    if not values:
        return ()
    from hccl_tools.notation import exclusion  # noqa: PLC0415  (few commands leave hosts out)

    return exclusion.parse(values)


#: The attributes of the option; its value is a tuple of exclusions.
ATTRIBUTES: dict[str, Any] = {
    "multiple": True,
    "metavar": "HOST[:DEVICES]",
    "callback": _parsed,
    "help": "Leave out hosts, or devices of a host: node7, 10.0.0.[3-5], node7:0,1, [fd00::3]:0, or several "
    "joined with @. Repeatable.",
}
option = click.option("--exclude", **ATTRIBUTES)


def hosts_left(hosts: Sequence[str], exclusions: Sequence[Exclusion]) -> tuple[str, ...]:
    """Return the hosts of a list without those that are excluded as a whole; they are not asked.

    Raises:
        UsageError: An excluded host is not in the list, or none is left.
    """
    if not exclusions:
        return tuple(hosts)
    from hccl_tools.notation import exclusion  # noqa: PLC0415  (few commands leave hosts out)

    found = exclusion.matched(exclusions, [(host,) for host in hosts], where=_LIST, what="host")
    left = tuple(host for index, host in enumerate(hosts) if found.get(index, ()) is not None)
    if not left:
        raise exclusion.nothing_left(_LIST)
    tell(f"left out by --exclude: {', '.join(map(str, exclusions))}")
    return left


def answers_left(answers: Sequence[SurveyAnswer], exclusions: Sequence[Exclusion]) -> list[SurveyAnswer]:
    """Return the answers of hosts without the devices that are excluded.

    Raises:
        UsageError: A host does not have an excluded device, or nothing is left.
    """
    if not any(one.devices is not None for one in exclusions):
        return list(answers)
    from hccl_tools.notation import exclusion  # noqa: PLC0415  (few commands leave devices out)

    of_host: dict[str, frozenset[int]] = {}
    for one in exclusions:
        of_host[one.host] = frozenset({*of_host.get(one.host, ()), *(one.devices or ())})
    left = []
    for answer in answers:
        if answer.facts is None or not (excluded := of_host.get(answer.host)):
            left.append(answer)
            continue
        devices = answer.facts.devices
        exclusion.refuse_absent_devices(answer.host, excluded, [one.device_id for one in devices])
        if kept := tuple(one for one in devices if one.device_id not in excluded):
            left.append(answer._replace(facts=answer.facts._replace(devices=kept)))
    if not left:
        raise exclusion.nothing_left("the hosts")
    return left
