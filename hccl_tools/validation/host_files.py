"""Check files of a host that are not rank tables: endpoint files and root infos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.formats.file_kinds import ROOT_INFO
from hccl_tools.rules.host_files_local import device_ids
from hccl_tools.rules.registry import HostFileInput, Input, InputFacts, Subject, rules_for
from hccl_tools.rules.root_info import seen_as_table
from hccl_tools.table.model import RankTable, Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.host.facts import HostState
    from hccl_tools.rules.findings import Findings
    from hccl_tools.table.format_names import Format

#: The format of the table that HCCL makes of a root info, and the rules on values that apply to it.
FORMAT: Format = "2.0"
_OF_TABLES = frozenset(
    {
        "HCC301", "HCC302", "HCC331", "HCC332", "HCC451", "HCC452", "HCC453", "HCC454", "HCC455", "HCC456",
        "HCC457", "HCC458", "HCC459", "HCC461", "HCC462", "HCC463", "HCC464", "HCC465",
    }
)  # fmt: skip


def check(subject: Input, findings: Findings, host: Callable[[RankTable], HostState] | None) -> None:
    """Collect the findings on such a file; values are checked only if the structure is right.

    Args:
        host: Returns the state of this host for the devices of a table, for the comparison with the file.
    """
    rules = rules_for(subject.kind.name)
    early = [one for one in rules if one.stage in ("load", "structure")]
    if findings.run(early, subject):
        return
    if host is not None:
        subject = HostFileInput(subject, host(_devices_as_table(subject)))
    findings.run((one for one in rules if one.stage not in ("load", "structure")), subject)
    if subject.kind is ROOT_INFO:
        _check_as_table(subject, findings)


def _devices_as_table(subject: Input) -> RankTable:
    """Return a table with only the device ids of the file, which is all that the comparison reads."""
    ids = device_ids(subject)
    return RankTable(FORMAT, [Server("", range(len(ids)))], {"device_id": list(ids)})


def _check_as_table(subject: Input, findings: Findings) -> None:
    """Collect the findings on the table that HCCL makes of a root info."""
    value = seen_as_table(subject.value)
    try:
        table = formats.read({**value, "rank_count": len(value["rank_list"])}, FORMAT)
    except formats.StructureError:
        return  # the schema of root infos found it
    seen_as = Subject(Input(InputFacts(subject.product, value, env=subject.env)), table)
    findings.run((rule for rule in rules_for(FORMAT) if rule.facts.id in _OF_TABLES), seen_as)
