"""Read the input tables of commands that make a new table.

``merge`` and similar commands validate their output. Their inputs are read strictly, but not validated: a
table of three devices may be a valid part of a cluster's table. Inputs that cannot be read or contradict
themselves are refused with the findings of ``validate``.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.diagnostic import pointer
from hccl_tools.diagnostics.wording import no_rank_table
from hccl_tools.document.document import Document
from hccl_tools.document.fast_parser import UNCLEAN, parse_clean
from hccl_tools.document.reading import STDIN, STDIN_SHOWN, is_stream, read_file, shown_name
from hccl_tools.errors import TableError
from hccl_tools.formats import StructureError, xllm
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.formats.kubernetes.tables import only_one, open_file, tables_in
from hccl_tools.table.hccl_numbers import read_uint
from hccl_tools.transform.merge_state import TableBatch
from hccl_tools.validation.checker import validate
from hccl_tools.validation.config_maps import check_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Path, Report
    from hccl_tools.formats.kubernetes.tables import TableText
    from hccl_tools.table.model import RankTable
    from hccl_tools.transform.merge_conflicts import ConflictLocation

#: The number of tables that are read together: enough to make the cost per table small, without much memory.
_BATCH = 256
#: Tables that HCCL accepts, and that no command changes or merges.
_LAB = 'it is a table of the old "lab" form (deploy_mode), and no command writes this form'
_LAB_HINT = "make the tables with `hccl-tools gen`; `validate`, `show`, `diff` and `launch` read the old form"
_UNCLEAR = "HCCL accepts it, but only a table without these findings can be changed or merged"
#: Keys of tables with more data than servers.
_NOT_PLAIN = frozenset({"super_pod_list", "rank_list", "group_list"})


class Inputs:
    """Reads tables by file name; standard input and pipes of the shell are read once and kept.

    The name of standard input is ``-``, or its name in messages. The name of a ConfigMap's file stands for
    the table in it, see ``hccl_tools.formats.kubernetes.config_maps.split``.
    """

    def __init__(self, *, product: str | None = None) -> None:
        self._product = product
        self._streams: dict[str, bytes] = {}
        self._in_config_maps: dict[str, TableText] = {}

    def data(self, name: str) -> bytes:
        """Return the bytes of a file; of the table in a ConfigMap's file that ``document`` has opened.

        Raises:
            InputError: The file cannot be read.
        """
        if name in self._in_config_maps:
            return self._in_config_maps[name].data
        return self._read(config_maps.split(name)[0])

    def _read(self, name: str) -> bytes:
        name = STDIN if name == STDIN_SHOWN else name
        if not is_stream(name):
            return read_file(name)
        if name not in self._streams:
            self._streams[name] = read_file(name)
        return self._streams[name]

    def document(self, name: str) -> Document:
        """Return the document in a file, which must be one JSON value without duplicate keys.

        Raises:
            InputError: The file cannot be read, or it is a ConfigMap with several tables.
            TableError: The file has no value or duplicate keys; the message has the findings.
        """
        document = Document.parse(self.data(name), shown_name(name))
        if (table := self._in_config_map(name, document)) is not None:
            document = Document.parse(table.data, table.name)
        if document.problem or document.duplicates or document.trailing is not None:
            raise self.refusal(name)
        if document.depth:
            deep = f"nested {document.depth:,} levels deep"
            message = f"{document.name} is {deep}; only `validate` reads such files"
            raise TableError(message, hint="remove the deeply nested key; HCCL does not read it")
        return document

    def _in_config_map(self, name: str, document: Document) -> TableText | None:
        """Return the table in a ConfigMap's file and keep it; ``None`` if there is none."""
        if name not in self._in_config_maps:
            file, wanted = config_maps.split(name)
            if wanted is None and not config_maps.is_wrapper(document):
                return None
            table = only_one(tables_in(open_file(document, shown_name(file)), wanted))
            if table is None:
                return None
            self._in_config_maps[name] = table
        return self._in_config_maps[name]

    def _value(self, name: str) -> Any:
        value = parse_clean(self.data(name))
        is_other = value is UNCLEAN or config_maps.is_object(value) or config_maps.MARK in name
        return self.document(name).value if is_other else value

    def table(self, name: str) -> RankTable:
        """Return the table in a file.

        Raises:
            InputError: The file cannot be read.
            TableError: The file is not a rank table, its counts are wrong, or its rank ids are not distinct
                numbers; the message has the findings.
        """
        return self._consistent(name, formats.read, self._value(name))

    def table_or_mixture(self, name: str) -> tuple[RankTable, bool]:
        """Return the table in a file, and whether it is xLLM's mixture, read as by xLLM; see ``table``."""
        value = self._value(name)
        if xllm.is_mixture(value):
            return self._consistent(name, xllm.read, value), True
        return self._consistent(name, formats.read, value), False

    def _consistent(self, name: str, read: Callable[[Any], RankTable], value: Any) -> RankTable:
        try:
            table = read(value)
        except StructureError:
            raise self.refusal(name) from None
        if not is_consistent(table):
            raise self.refusal(name)
        return table

    def batches(self, names: Iterable[str]) -> Iterator[TableBatch]:
        """Yield the tables of many files in order; tables that differ only in their servers are combined.

        Raises:
            InputError: A file cannot be read.
            TableError: See ``table``.
        """
        waiting: list[tuple[str, list[Any]]] = []
        head: dict[str, Any] = {}
        for name in map(shown_name, names):
            value = self._value(name)
            servers = _plain_servers(value)
            if waiting and (servers is None or value != head or len(waiting) == _BATCH):
                yield from self._read_as_one(waiting, head)
                waiting = []
            if servers is None:
                yield TableBatch.of(name, self.table(name))
            else:
                head = value
                waiting.append((name, servers))
        if waiting:
            yield from self._read_as_one(waiting, head)

    def _read_as_one(
        self, waiting: list[tuple[str, list[Any]]], head: dict[str, Any]
    ) -> Iterator[TableBatch]:
        lists = [servers for _, servers in waiting]
        try:
            table = formats.read({**head, "server_list": list(chain.from_iterable(lists))})
        except StructureError:
            table = None
        sizes = list(map(len, lists))
        if table is None or not _has_new_ranks(table, sizes):
            for name, _ in waiting:
                yield TableBatch.of(name, self.table(name))
            return
        yield TableBatch([name for name, _ in waiting], table, sizes)

    def refusal(self, name: str) -> TableError:
        """Return the error for a file that cannot be used, with the findings of ``validate``."""
        report = check_one(name, self._check)
        if other := no_rank_table(report):
            return TableError(f"{report.file} cannot be used: {other[0]}", hint=other[1])
        if report.ok and report.table is not None and "deploy_mode" in report.table.fields:
            return TableError(f"{report.file} cannot be used: {_LAB}", hint=_LAB_HINT)
        findings = "".join(render([report], "text")).rstrip().split("\n")
        why = f": {_UNCLEAR}" if report.ok else ""
        return TableError(f"{report.file} cannot be used{why}", lines=findings)

    def _check(self, source: Any) -> Report:
        if isinstance(source, str) and (source == STDIN_SHOWN or is_stream(source)):
            return validate(self._read(source), product=self._product)._replace(file=shown_name(source))
        return validate(source, product=self._product)

    def located(self, places: Sequence[ConflictLocation]) -> list[str]:
        """Return each location as ``file:line:column  (pointer)``."""
        return [self._located(place) for place in places]

    def _located(self, place: ConflictLocation) -> str:
        document = self.document(place.name)
        path = _path(formats.read(document.value), place)
        (span,) = document.spans([path])
        line, column = document.position(span.start)
        return f"{document.name}:{line}:{column}  ({pointer(path)})"


def _path(table: RankTable, place: ConflictLocation) -> Path:
    module = formats.module(table.format)
    path: Path = ()
    if place.server is not None and place.device is not None:
        path = module.device_path(table, table.servers[place.server].rows[place.device])
    elif place.server is not None:
        path = module.server_path(table, place.server)
    return path if place.key is None else (*path, place.key)


def _plain_servers(value: Any) -> list[Any] | None:
    """Remove and return the servers of a plain server_list table; ``None`` for another document.

    The rest of ``value`` is equal for tables of the same kind.
    """
    if type(value) is not dict or not _NOT_PLAIN.isdisjoint(value):
        return None
    servers, count = value.get("server_list"), value.get("server_count")
    if type(servers) is not list or not servers or count != str(len(servers)):
        return None
    del value["server_list"], value["server_count"]
    return servers


def _has_new_ranks(table: RankTable, sizes: Sequence[int]) -> bool:
    """Whether the ranks of each table in a batch are 0 to N-1 in file order."""
    expected: list[str] = []
    servers, texts = iter(table.servers), list(map(str, range(len(table))))
    for size in sizes:
        expected += texts[: sum(len(server.rows) for server in islice(servers, size))]
    return table.rank_ids == expected


def is_consistent(table: RankTable) -> bool:
    """Whether a table has devices, its counts are correct, and its rank ids are distinct numbers."""
    numbers = table.rank_numbers
    if not numbers or None in numbers or len(set(numbers)) != len(numbers):
        return False
    declared = table.declared
    counts: list[tuple[Any, int]] = [
        (declared.get("server_count"), len(table.servers)),
        (declared.get("rank_count"), len(numbers)),
        (declared.get("group_count"), len(table.groups or ())),
    ]
    for index, group in enumerate(table.groups or ()):
        devices = sum(len(table.servers[server].rows) for server in group.servers)
        counts += [
            (declared["instance_count"][index], len(group.servers)),
            (declared["device_count"][index], devices),
        ]
    if "super_pod_list" in declared:  # the reader could not read it
        return False
    return all(stated is None or _number(stated) == count for stated, count in counts)


def _number(stated: Any) -> int | None:
    return read_uint(stated) if isinstance(stated, str) else int(stated)
