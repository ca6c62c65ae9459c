"""Declare, find and select rules.

A rule is a generator function with the decorator ``@rule``. It yields findings and never raises, prints,
sorts or reads configuration. Its docstring is its documentation page: a title, an explanation, and
``Example:`` and ``Instead:`` tables, which a test runs.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from hccl_tools.diagnostics.diagnostic import Consequence, Path, Related, RuleFacts
from hccl_tools.diagnostics.registry import Registry, Selection
from hccl_tools.formats import module
from hccl_tools.formats.file_kinds import (
    ENDPOINTS,
    KINDS,
    LAB,
    LOCAL,
    MIXTURE,
    NOT_FOR_TARGETS,
    RANK_TABLE,
    ROOT_INFO,
    SERVICE_TABLE,
    TARGETS,
    VERSION_1_1,
)
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hccl_tools.document.document import Document
    from hccl_tools.formats.file_kinds import FileKind
    from hccl_tools.formats.schema import Violations
    from hccl_tools.host.facts import HostState
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product
    from hccl_tools.table.service_table import Reader

#: The formats with ``server_list``, the formats of the legacy loader, and all formats.
SERVER_LIST = ("1.0", "1.2")
LEGACY = (*SERVER_LIST, "group_list")
_ALL = (*LEGACY, "2.0")
_T = TypeVar("_T")
_Key = TypeVar("_Key")
_Input = TypeVar("_Input", bound="Input")
#: The modules that declare the rules, with the formats of the rules; empty for documents of any kind.
FAMILIES: dict[str, tuple[str, ...]] = {
    "loading": (),
    "document": (),
    "places": (),
    "structure": _ALL,
    "legacy_formats": (LAB.name,),
    "version_1_1": (VERSION_1_1.name,),
    "servers": LEGACY,
    "groups": ("group_list",),
    "ranks": (*SERVER_LIST, "2.0"),
    "devices": _ALL,
    "addresses": LEGACY,
    "repeated_addresses": LEGACY,
    "address_families": LEGACY,
    "ports": (*SERVER_LIST, "2.0"),
    "backup_links": SERVER_LIST,
    "super_pods": ("1.2",),
    "super_devices": ("1.2",),
    "topology": LEGACY,
    "nics": LEGACY,
    "levels": ("2.0",),
    "level_addresses": ("2.0",),
    "rank_graph": ("2.0",),
    "level_guide": ("2.0",),
    "level_order": ("2.0",),
    "level_ports": ("2.0",),
    "product_guide": LEGACY,
    "late_failures": SERVER_LIST,
    "clusters": ("1.0",),
    "advice": _ALL,
    "hosts": SERVER_LIST,
    "container_addresses": SERVER_LIST,
    "unusual_values": LEGACY,
    "server_sizes": _ALL,
    "text_order": LEGACY,
    "spelling": _ALL,
    "endpoint_files": (ENDPOINTS.name,),
    "endpoint_peers": (ENDPOINTS.name,),
    "root_info": (ROOT_INFO.name,),
    "root_info_topology": (ROOT_INFO.name,),
    "host_files_local": (ENDPOINTS.name, ROOT_INFO.name),
    "service_structure": (SERVICE_TABLE.name,),
    "service_groups": (SERVICE_TABLE.name,),
    "service_devices": (SERVICE_TABLE.name,),
    "service_addresses": (SERVICE_TABLE.name,),
    "service_advice": (SERVICE_TABLE.name,),
    **{f"target_{name}": (name,) for name in TARGETS},
    "other_files": (NOT_FOR_TARGETS.name,),
    "xllm_mixture": (MIXTURE.name,),
    "local_servers": (LOCAL.name,),
    "local_devices": (LOCAL.name,),
}

#: When HCCL finds the fault: loading the file, parsing entries, comparing entries, checking the topology.
Stage = Literal["load", "structure", "parse", "check", "topology", "none"]
STAGES: tuple[Stage, ...] = ("load", "structure", "parse", "check", "topology", "none")


class Finding(NamedTuple):
    """A fault that a rule found; see ``Diagnostic`` for the fields."""

    message: str
    path: Path = ()
    hint: str | None = None
    related: tuple[Related, ...] = ()
    offset: int | None = None
    at_key: bool = False
    right: str | int | tuple[str, ...] | None = None
    alike: tuple[str, str] | None = None
    right_key: str | None = None
    devices: tuple[int, ...] = ()


if TYPE_CHECKING:
    #: A finding, or what makes it: a table may have a fault in every entry, and only the first are kept.
    Found = Finding | Callable[[], Finding]
    _Check = Callable[[_Input], Iterable[Found]]
#: A placeholder for each further fault that a rule only counts.
COUNTED = Finding("")


class InputFacts(NamedTuple):
    """What is known of the input of rules before a rule runs.

    Attributes:
        product: The product for which the input is checked.
        value: The parsed document.
        document: The source of ``value``; ``None`` if the caller passed a parsed value or a table.
        path: The name of the file; ``None`` for bytes and standard input.
        not_json: Why the value that the caller passed is not JSON.
        is_directory: Whether a directory has the name of a file that is not a table.
        env: The job's environment variables.
        kind: The kind of the file; ``RANK_TABLE`` for a document that is of no other kind.
        product_reason: Why the input is checked for this product.
        product_is_assumed: Whether the product is a default instead of the user's choice.
    """

    product: Product
    value: Any = None
    document: Document | None = None
    path: str | None = None
    not_json: Finding | None = None
    is_directory: bool = False
    env: Mapping[str, str] = {}
    kind: FileKind = RANK_TABLE
    product_reason: str = ""
    product_is_assumed: bool = False

    @property
    def is_json(self) -> bool:
        """Whether the input is valid JSON."""
        return self.not_json is None and (self.document is None or self.document.problem is None)


class Input:
    """The input of rules on documents. Its attributes are those of ``InputFacts``, and never change.

    Attributes:
        facts: All of them, from which another input is made.
        results: Results that several rules share, by the function that returns them; see ``shared``. Inputs
            that are made from another one have the same: a function that needs more of its input than these
            facts is not called before it is there.
    """

    def __init__(self, facts: InputFacts, results: dict[Any, Any] | None = None) -> None:
        self.facts: Final = facts
        self.results: Final = {} if results is None else results
        self.product: Final = facts.product
        self.value: Final = facts.value
        self.document: Final = facts.document
        self.path: Final = facts.path
        self.not_json: Final = facts.not_json
        self.is_directory: Final = facts.is_directory
        self.env: Final = facts.env
        self.kind: Final = facts.kind
        self.product_is_assumed: Final = facts.product_is_assumed

    @property
    def is_json(self) -> bool:
        """Whether the input is valid JSON."""
        return self.facts.is_json


class DamagedInput(Input):
    """A document that violates the schema of its format, with the violations."""

    def __init__(self, given: Input, violations: Violations) -> None:
        super().__init__(given.facts, given.results)
        self.violations: Final = violations


class MixtureInput(Input):
    """A mixture of xLLM, with the findings on the servers in its ``group_list``, which HCCL does not read."""

    def __init__(self, given: Input, in_groups: tuple[Finding, ...]) -> None:
        super().__init__(given.facts, given.results)
        self.in_groups: Final = in_groups


class HostFileInput(Input):
    """An endpoint file or a root info with the state of this host (``validate --local``)."""

    def __init__(self, given: Input, host: HostState) -> None:
        super().__init__(given.facts, given.results)
        self.host: Final = host


class ServiceInput(Input):
    """A service table with the program for which it was made."""

    def __init__(self, given: Input, reader: Reader) -> None:
        super().__init__(given.facts, given.results)
        self.reader: Final = reader


class Subject(Input):
    """The input of rules on tables: the table read from a document, or made in memory.

    Attributes:
        table: The table.
        damaged: The keys of the table whose values were replaced, because they violate the schema.
        is_version_1_1: Whether the table stands for one of version 1.1.
    """

    def __init__(
        self,
        given: Input,
        table: RankTable,
        damaged: frozenset[str] = frozenset(),
        *,
        is_version_1_1: bool = False,
    ) -> None:
        super().__init__(given.facts, given.results)
        self.table: Final = table
        self.damaged: Final = damaged
        self.is_version_1_1: Final = is_version_1_1

    def device_path(self, row: int, *keys: str) -> Path:
        """Return the path of a device, or of one of its keys."""
        return (*module(self.table.format).device_path(self.table, row), *keys)

    def server_path(self, index: int, *keys: str | int) -> Path:
        """Return the path of a server's entry, or of one of its keys."""
        return (*module(self.table.format).server_path(self.table, index), *keys)

    def rank_name(self, row: int) -> str:
        """Return the name of a device in messages: its rank."""
        rank = self.table.column("rank_id")[row]
        return f'rank "{rank}"' if isinstance(rank, str) else f"rank {rank}"


class LocalSubject(Subject):
    """A table with the state of this host (``validate --local``)."""

    def __init__(self, subject: Subject, host: HostState) -> None:
        super().__init__(subject, subject.table, subject.damaged)
        self.host: Final = host


def shared(compute: Callable[[_Input], _T]) -> Callable[[_Input], _T]:
    """Cache the result of a function for each subject, so that several rules can use it."""

    @wraps(compute)
    def once(subject: _Input) -> _T:
        if compute not in subject.results:
            subject.results[compute] = compute(subject)
        result: _T = subject.results[compute]
        return result

    return once


def shared_each(compute: Callable[[_Input, _Key], _T]) -> Callable[[_Input, _Key], _T]:
    """Cache the result of a function for each subject and second argument; see ``shared``."""

    @wraps(compute)
    def once(subject: _Input, key: _Key) -> _T:
        known = subject.results.setdefault(compute, {})
        if key not in known:
            known[key] = compute(subject, key)
        result: _T = known[key]
        return result

    return once


class Rule(NamedTuple):
    """A declared rule.

    ``formats`` is empty for rules on documents of any kind. ``needs`` names the device and server keys that
    the rule reads: if one of them is damaged, the rule does not run. ``kind`` is that of what the rule is on.
    """

    facts: RuleFacts
    check: Callable[[Any], Iterable[Found]]
    formats: tuple[str, ...]
    stage: Stage
    needs: tuple[str, ...]
    kind: FileKind


_RULES = Registry[Rule]("hccl_tools.rules")


def rule(
    rule_id: str,
    name: str,
    consequence: Consequence,
    *,
    source: str,
    code: str | None = None,
    formats: tuple[str, ...] | None = None,
    stage: Stage | None = None,
    needs: tuple[str, ...] = (),
    words: str = "",
) -> Callable[[_Check[_Input]], _Check[_Input]]:
    """Declare a rule.

    Args:
        rule_id: ``HCC``, family digit, two digits; never reused.
        name: The name of the fault for users (``duplicate-rank-id``).
        source: The guide's section, or the file and line of HCCL's source.
        code: The error code that HCCL shows; ``None`` if HCCL only logs the fault.
        formats: The table formats or kinds of files to which the rule applies; by default those of its family.
        stage: When HCCL finds the fault; HCCL never finds a fault reported as advice.
        needs: The keys that must not be damaged for the rule to run.
        words: What the reader of the file prints, if it is not HCCL; for a forbidden table, whose guide it is
            that forbids it, if it is not the product's.
    """

    def declare(check: _Check[_Input]) -> _Check[_Input]:
        own = FAMILIES.get(check.__module__.rpartition(".")[2], ()) if formats is None else formats
        kind = KINDS.get(own[0], RANK_TABLE) if own else RANK_TABLE
        doc = check.__doc__ or ""
        facts = RuleFacts(rule_id, name, consequence, source, code, doc, kind.reader, kind.noun, words)
        when = stage or ("none" if consequence == "advice" else "parse")
        _RULES.declare(rule_id, name, Rule(facts, check, own, when, needs, kind))
        return check

    return declare


def all_rules() -> dict[str, Rule]:
    """Return every rule by id, in the order of the ids."""
    return _RULES.of(FAMILIES)


@cache
def rules_for(table_format: str | None) -> list[Rule]:
    """Return the rules for tables of a format, or for documents of any kind; no other family is imported."""

    def fits(formats: tuple[str, ...]) -> bool:
        return table_format in formats if table_format else not formats

    _RULES.load(family for family, formats in FAMILIES.items() if fits(formats))
    return [found for found in _RULES.declared.values() if fits(found.formats)]


def rule_by_id(rule_id: str) -> Rule:
    """Return a rule that has been loaded."""
    return _RULES.declared[rule_id]


def chosen(select: Iterable[str], ignore: Iterable[str]) -> Callable[[RuleFacts], bool]:
    """Return a function that checks whether ids, prefixes (``HCC2``) or names select a rule.

    Raises:
        UsageError: A selector matches no rule.
    """
    found = Selection(tuple(select), tuple(ignore))
    if not found.select and not found.ignore:
        return lambda _facts: True
    known = ((one.facts.id, one.facts.name) for one in all_rules().values())
    found.require_known(known, "rule", "`hccl-tools rules` lists all rules")
    return lambda facts: found.keeps(facts.id, facts.name)
