"""Launchers that ask their master over HTTP, and a proxy that gets these requests instead."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Case, Cause
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place

if TYPE_CHECKING:
    from hccl_tools.explain.events import Seen

#: Settings of a proxy that are looked at.
_MOST_PROXIES = 16
_NOT_READY, _PROXY, _NO_PROXY, _MASTER, _CAUSE = "HCM736", "HCM737", "HCM738", "HCM739", "HCM740"


def causes(case: Case) -> list[Cause]:
    """Return the cause if a launcher did not reach its master, and a proxy of its host gets the requests."""
    waits = [one for one in case.events if one.event.message.id == _NOT_READY]
    if len(waits) < 2:
        return []
    found = (one for one in case.cluster.seen if one.event.message.id == _PROXY)
    for proxy in islice(found, _MOST_PROXIES):
        same = [one for one in waits if _folder(case, one) == _folder(case, proxy)]
        master = _field(case, proxy, _MASTER, "address")
        if not same or _is_excepted(master, _field(case, proxy, _NO_PROXY, "value")):
            continue
        host = case.cluster.sources[proxy.event.file].host or os.path.basename(_folder(case, proxy))
        name = master or "the master"
        reason = f"a proxy is set there, no_proxy does not name {name}, and the launcher did not reach it"
        places = (Place(None, host),) if host else ()
        return [Cause(messages()[_CAUSE], "compared", places, proxy, reason, (), same[0])]
    return []


def _folder(case: Case, one: Seen) -> str:
    return os.path.dirname(case.cluster.sources[one.event.file].path)


def _field(case: Case, beside: Seen, message: str, name: str) -> str:
    """Return a field of a message in the folder of another one, "" if none is there."""
    folder = _folder(case, beside)
    found = (
        one for one in case.cluster.seen if one.event.message.id == message and _folder(case, one) == folder
    )
    return next((one.event.fields.get(name, "") for one in found), "")


def _is_excepted(master: str, no_proxy: str) -> bool:
    """Whether a list of addresses without a proxy may contain the master."""
    names = [one.lstrip("*.") for one in re.split(r"[,; ]", no_proxy.strip("\"'")) if one]
    if not master:
        return False
    is_range = any("/" in name for name in names)  # Which programs read ranges differs.
    return is_range or any(name in {"", master} or master.endswith(f".{name}") for name in names)
