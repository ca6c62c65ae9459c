"""The findings on a table that is not written: no file can be cited, the sources of its values can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.diagnostics.wording import reaction
from hccl_tools.errors import TableError
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.diagnostics.diagnostic import Path, Report
    from hccl_tools.discover.facts import HostFacts
    from hccl_tools.table.model import RankTable

#: What messages call it.
NAME = "the new table"
#: As many findings are shown; the cause of the others is the same as a rule.
_SHOWN = 20


def refusal(report: Report) -> TableError:
    """Return the error to end with once the findings were shown."""
    return TableError(f"no table is written: it has {count(len(report.errors), 'error')}")


def shown(report: Report, facts: Sequence[HostFacts]) -> str:
    """Return the errors of a table that was made of what hosts say, with where each value is from."""
    origins = _origins(report.table, facts) if report.table is not None else {}
    return "".join(f"{escaped(line)}\n" for line in _lines(report, origins))


def _lines(report: Report, origins: Mapping[Path, str]) -> Iterator[str]:
    for finding in report.errors[:_SHOWN]:
        yield f"error[{finding.rule.id}]: {finding.message}"
        yield f" --> {_origin(finding.path, origins)}"
        for related in finding.related:
            yield f"  = {related.message.removesuffix(' here')}: {_origin(related.path, origins)}"
        yield f"  = HCCL: {reaction(finding)}"
        if finding.hint:
            yield f"  = help: {finding.hint}"
    if more := len(report.errors[_SHOWN:]):
        yield f"... and {count(more, 'more error')}"


def _origin(path: Path, origins: Mapping[Path, str]) -> str:
    """Return what the nearest entry around a place was made of."""
    around = (path[:length] for length in range(len(path), 0, -1))
    return next((origins[part] for part in around if part in origins), "the table")


def _origins(table: RankTable, facts: Sequence[HostFacts]) -> dict[Path, str]:
    """Return for each server and device of a table where it is from, by its path."""
    module, hosts = formats.module(table.format), {host.server_id: host for host in facts}
    origins: dict[Path, str] = {}
    for index, server in enumerate(table.servers):
        host = hosts.get(server.server_id)
        if host is None:
            continue
        if table.format != "2.0":  # its servers have no entries of their own
            origins[module.server_path(table, index)] = f"server {host.server_id} ({host.server_id_source})"
        devices = {str(device.device_id): device for device in host.devices}
        for row in server.rows:
            if (device := devices.get(str(table.device_ids[row]))) is not None:
                of_host = f" of {host.server_id}" if len(facts) > 1 else ""
                where = f"{','.join(device.ips) or 'no address'} ({device.place or device.source})"
                origins[module.device_path(table, row)] = f"device {device.device_id}{of_host}: {where}"
    return origins
