"""The findings on a table that was not written, with the sources of its values instead of file positions."""

from __future__ import annotations

from shlex import join
from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.diagnostics.wording import reaction
from hccl_tools.errors import TableError
from hccl_tools.notation.phrases import count, with_article
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import each_fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.diagnostics.diagnostic import Path, Report
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.table.model import RankTable

#: The name of the table in messages.
NAME = "the new table"
#: The number of findings to show; further findings usually have the same cause.
_SHOWN = 20


def refusal(report: Report, call: Sequence[str] = ()) -> TableError:
    """Return the error that follows the printed findings.

    Args:
        call: The call as it was typed, to which the product of a table that it accepts is added.
    """
    hint = None
    if report.accepted_on and call:
        typed = join([*call, "--product", report.accepted_on])
        hint = f"for {with_article(report.accepted_on)}: `{typed}`"
    return TableError(f"no table is written: it has {count(len(report.errors), 'error')}", hint=hint)


def findings_text(report: Report, facts: Sequence[HostFacts], width: int | None = None) -> str:
    """Return the errors of a table made from host facts, with the source of each value."""
    origins = _origins(report.table, facts) if report.table is not None else {}
    lines = each_fitted(map(escaped, _lines(report, origins)), width)
    return "".join(f"{line}\n" for line in lines)


def _lines(report: Report, origins: Mapping[Path, str]) -> Iterator[str]:
    for finding in report.errors[:_SHOWN]:
        yield f"error[{finding.rule.id}]: {finding.message}"
        yield f" --> {_origin(finding.path, origins)}"
        for related in finding.related:
            yield f"  = {related.message.removesuffix(' here')}: {_origin(related.path, origins)}"
        yield f"  = {reaction(finding)}"
        if finding.hint:
            yield f"  = help: {finding.hint}"
    if more := len(report.errors[_SHOWN:]):
        yield f"... and {count(more, 'more error')}"


def _origin(path: Path, origins: Mapping[Path, str]) -> str:
    """Return the source of the innermost server or device that contains a path."""
    around = (path[:length] for length in range(len(path), 0, -1))
    return next((origins[part] for part in around if part in origins), "the table")


def _origins(table: RankTable, facts: Sequence[HostFacts]) -> dict[Path, str]:
    module, hosts = formats.module(table.format), {host.server_id: host for host in facts}
    origins: dict[Path, str] = {}
    for index, server in enumerate(table.servers):
        host = hosts.get(server.server_id)
        if host is None:
            continue
        if table.format != "2.0":  # a 2.0 table has no entries for servers
            origins[module.server_path(table, index)] = f"server {host.server_id} ({host.server_id_source})"
        devices = {str(device.device_id): device for device in host.devices}
        for row in server.rows:
            if (device := devices.get(str(table.device_ids[row]))) is not None:
                of_host = f" of {host.server_id}" if len(facts) > 1 else ""
                where = f"{','.join(device.ips) or 'no address'} ({device.place or device.source})"
                origins[module.device_path(table, row)] = f"device {device.device_id}{of_host}: {where}"
    return origins
