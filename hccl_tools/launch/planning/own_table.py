"""Make the table of devices of this host at launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.files import outputs
from hccl_tools.host.selection import Wanted
from hccl_tools.host.site_defaults import Site
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.launch.model.request import JobTable
from hccl_tools.notation import number_list
from hccl_tools.transform import generation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.request import TableChoice


def make_table(
    devices: Sequence[int], choice: TableChoice, environ: Mapping[str, str], path: str
) -> JobTable:
    """Make the table of this host's devices (physical ids, in rank order), as ``hccl-tools gen`` does.

    Raises:
        DiscoveryError: The addresses cannot be determined.
        LaunchError: HCCL would refuse the table, or the table does not follow the product's guide.
    """
    # The ids are already physical: the ASCEND_* variables must not be applied a second time.
    kept = {name: text for name, text in environ.items() if not name.startswith("ASCEND_")}
    wanted = Wanted(devices=",".join(map(str, devices)))
    facts = survey(SurveyRequest(wanted=wanted, product=choice.product, site=Site(kept)))
    table = generation.table([facts], table_format=facts.table_format)
    report = outputs.check(table, product=facts.product, ignore=choice.ignore)
    if not report.ok:
        first = report.errors[0]
        raise LaunchError(f"no table can be made for these devices: {first.message}", hint=first.hint)
    listed = f"device{'' if len(devices) == 1 else 's'} {number_list.fold(devices)}"
    notes = (f"no table given: one was made from {listed} of this host", *facts.warnings)
    return JobTable(
        path, table, outputs.table_text(table).encode(), facts.product, facts.product_source, notes
    )
