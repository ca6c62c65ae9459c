"""Give the ranks of lost hosts to spare hosts, over all restarts of a job."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.document.document import Document
from hccl_tools.errors import LaunchError, TableError
from hccl_tools.launch.model.request import JobTable
from hccl_tools.launch.planning import table_source
from hccl_tools.launch.render import plan_output
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, names
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.transform.replacement import replace_server
from hccl_tools.transform.subsetting import subset
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.request import LaunchRequest, SpareHost
    from hccl_tools.launch.planning.planner import PreparedLaunch
    from hccl_tools.table.model import RankTable

#: Keys of a server with an address or name of its host.
_NAMES = ("container_ip", "pod_ip", "pod_name", "server_ip")


class Replaced(NamedTuple):
    """The plan after a replacement, with facts for the report and lines for the user."""

    prepared: PreparedLaunch
    facts: tuple[Mapping[str, Any], ...]
    news: tuple[str, ...]


class Spares:
    """The spares of a job that are left.

    Attributes:
        left: In the order in which they are used.
    """

    def __init__(self, request: LaunchRequest, product: str | None) -> None:
        """``product`` is the one for which the job's table was checked."""
        self.left, self._request, self._product = list(request.spares), request, product

    def replace(
        self, data: bytes, index: int, host: str, news: list[str]
    ) -> tuple[bytes, SpareHost, dict[str, Any]]:
        """Return a table in which the first spare that fits has a server's ranks, the spare, and the change.

        Why another spare does not fit is appended to ``news``.

        Raises:
            LaunchError: No spare fits.
        """
        document = Document.parse(data, names.TABLE)
        table = formats.read(document.value)
        old = table.servers[index].server_id
        for spare in self.left:
            try:
                own = spare.table or table_of(spare.name, table, index)
                done = replace_server(document, old, own)
                self._check(done.data)
            except TableError as error:
                news.append(f"spare {spare.label} is passed over: {error.message}")
                continue
            self.left.remove(spare)
            new = done.table.servers[index].server_id
            news += (change for change in done.changes if change.startswith("warning: "))
            ranks = sorted(
                rank for row in table.servers[index].rows if (rank := table.rank_numbers[row]) is not None
            )
            changed = {
                "host": host,
                "spare": spare.name,
                "ranks": ranks,
                "server_id": old,
                "spare_server_id": new,
            }
            if spare.way != spare.name:
                changed["spare_asked"] = spare.way
            changed |= {"table_before": fingerprint(table), "table_after": fingerprint(done.table)}
            return done.data, spare, changed
        raise LaunchError("; ".join([f"{host} must be replaced, and no spare fits its place", *news]))

    def too_few(self, hosts: Sequence[str]) -> LaunchError:
        """Return the error for hosts of which not each can be replaced."""
        left = count(len(self.left), "spare") if self.left else "no spare"
        verb = "is" if len(self.left) < 2 else "are"
        return LaunchError(f"{and_more(hosts, 4)} must be replaced, and {left} {verb} left")

    def _check(self, data: bytes) -> None:
        """Judge a table as that of the job was judged."""
        variables = table_source.checked_in(self._request, os.environ)
        report = validate(data, product=self._product, ignore=self._request.table.ignore, env=variables)
        if not report.ok:
            raise TableError(f"the table would not be valid: {report.errors[0].message}")


class HostReplacement:
    """The spares of a job that are left, and its current plan.

    Attributes:
        prepared: The plan, and the table for the ranks.
        has_replaced: Whether a spare has taken the place of a host.
    """

    def __init__(
        self,
        prepared: PreparedLaunch,
        request: LaunchRequest,
        prepare: Callable[[LaunchRequest], PreparedLaunch],
    ) -> None:
        """``prepare`` makes the plan of a request."""
        self.prepared, self._request, self._prepare = prepared, request, prepare
        self._spares, self.has_replaced = Spares(request, prepared.plan.product), False

    def replace(self, outcome: Outcome, restart: int) -> Replaced:
        """Give the servers of an outcome's lost hosts to spares, and write the new plan and table.

        Raises:
            LaunchError: Too few spares are left that fit.
        """
        before = self.prepared.table_data or b""
        lost = [(index, self._host(index)) for index in outcome.lost_servers]
        if len(lost) > len(self._spares.left):
            raise self._spares.too_few([host for _, host in lost])
        data, facts, news = before, list[dict[str, Any]](), list(outcome.unusable)
        reached = dict(self.prepared.plan.reached)
        for index, host in lost:
            data, spare, changed = self._spares.replace(data, index, host, news)
            add_way(reached, host, spare)
            facts.append({"restart": restart, **changed})
            news.append(line(facts[-1]))
        self._adopt(data, restart, reached)
        self.has_replaced = True
        return Replaced(self.prepared, tuple(facts), tuple(news))

    def _host(self, index: int) -> str:
        return next(each.host for each in self.prepared.plan.ranks if each.server_index == index)

    def _adopt(self, data: bytes, restart: int, reached: Mapping[str, str]) -> None:
        run_dir, before = self.prepared.plan.run_dir, self.prepared.table_data or b""
        table = formats.read(Document.parse(data, names.TABLE).value)
        product = self.prepared.plan.product or ""
        made = JobTable("", table, data, product, "that of the table before", reached=reached)
        request = self._request._replace(
            table=self._request.table._replace(made=made, file=None),
            logs=self._request.logs._replace(run_dir=run_dir),
        )
        self.prepared = prepared = self._prepare(request)
        directory.write(run_dir, names.table_before(restart), before)
        directory.write(run_dir, names.TABLE, data)
        plan_output.write(prepared.plan, prepared.environment)


def add_way(reached: dict[str, str], host: str, spare: SpareHost) -> None:
    """Replace the way to a host by that to the spare in its place."""
    reached.pop(host, None)
    if spare.way != spare.name:
        reached[spare.name] = spare.way


def line(facts: Mapping[str, Any]) -> str:
    """Return the replacement of a host as a line for the user."""
    asked = facts.get("spare_asked")
    spare = f"{asked} (server_id {facts['spare']})" if asked else facts["spare"]
    return (
        f"{spare} takes the place of {facts['host']} ({rank_list(facts['ranks'])}); "
        f"the table's fingerprint {facts['table_before']} becomes {facts['table_after']}"
    )


def table_of(host: str, table: RankTable, index: int) -> RankTable:
    """Return a table of a host that has the devices, with their addresses, of a server in a table.

    Raises:
        TableError: The format has no server ids.
    """
    if table.format == "2.0":
        raise TableError("in a rehearsal a 2.0 table has no spares: it has no server ids")
    old = table.servers[index]
    one = subset(table, servers=[old.server_id])
    server = one.servers[0]
    fields: dict[str, Any] = {key: host if key in _NAMES else value for key, value in server.fields.items()}
    renamed = replace(server, server_id=host, host_ip=host if server.host_ip else None, fields=fields)
    pods = [replace(pod, server_ids=[host]) for pod in one.super_pods] if one.super_pods else None
    return replace(one, servers=[renamed], super_pods=pods)
