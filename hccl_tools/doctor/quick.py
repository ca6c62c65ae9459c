"""The checks that ``launch`` runs before every start: they call no tool and take milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.findings import judge
from hccl_tools.host.settings import observe_settings
from hccl_tools.host.site_defaults import Site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def problems(
    devices: Sequence[int],
    environ: Mapping[str, str],
    addresses: Sequence[str] = (),
    product: str | None = None,
) -> Iterator[str]:
    """Yield what would stop a job on devices of this host, with these variables.

    Args:
        addresses: Names and addresses of this host in the table.
        product: The name of the product, if it is known.
    """
    seen = observe_settings(devices, environ, Site(environ), addresses)
    for one in judge("", Case(seen, product=product, devices=tuple(devices)), quick=True):
        if one.consequence == "stops":
            yield one.message
