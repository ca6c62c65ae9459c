"""The checks that ``launch`` runs before every start: they call no tool and take milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.findings import judge
from hccl_tools.host.settings import observe_settings
from hccl_tools.host.site_defaults import Site
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Quick(NamedTuple):
    """What would stop a job, and what could not be looked at."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]


def look(
    devices: Sequence[int],
    environ: Mapping[str, str],
    addresses: Sequence[str] = (),
    product: str | None = None,
) -> Quick:
    """Return what would stop a job on devices of this host, with these variables.

    Args:
        addresses: Names and addresses of this host in the table.
        product: The name of the product, if it is known.
    """
    seen = observe_settings(devices, environ, Site(environ), addresses)
    found = judge("", Case(seen, product=product, devices=tuple(devices)), quick=True)
    return Quick(
        tuple(one.message for one in found if one.consequence == "stops"),
        tuple(f"not looked at: {one.topic}: {one.reason}" for one in seen.unknown),
    )
