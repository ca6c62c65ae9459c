"""How a rule is declared, and how rules are found, chosen and run.

A rule is a generator function under ``@rule``: it yields what is wrong and never raises, prints, sorts or
reads configuration. Its docstring is its page: a title, why it matters, ``Example:`` and ``Instead:`` tables
that a test runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hccl_tools.diagnostics.diagnostic import Consequence, Path, Related, RuleFacts
from hccl_tools.errors import UsageError
from hccl_tools.formats import module
from hccl_tools.notation.phrases import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hccl_tools.discover.facts import HostState
    from hccl_tools.document.document import Document
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

_SERVER_LIST = ("1.0", "1.2")
_LEGACY = (*_SERVER_LIST, "group_list")
_ALL = (*_LEGACY, "2.0")
#: What the rules bear for formats that hold a table of any format against the host it is checked on.
LOCAL = ("local",)
#: The modules whose import declares the rules, and their formats; empty for rules on documents of any kind.
FAMILIES: dict[str, tuple[str, ...]] = {
    "loading": (),
    "document": (),
    "structure": _ALL,
    "legacy_formats": ("lab",),
    "version_1_1": ("1.1",),
    "servers": _LEGACY,
    "groups": ("group_list",),
    "ranks": (*_SERVER_LIST, "2.0"),
    "devices": _ALL,
    "addresses": _LEGACY,
    "address_families": _LEGACY,
    "ports": (*_SERVER_LIST, "2.0"),
    "backup_links": _SERVER_LIST,
    "super_pods": ("1.2",),
    "super_devices": ("1.2",),
    "topology": _LEGACY,
    "nics": _LEGACY,
    "levels": ("2.0",),
    "level_addresses": ("2.0",),
    "level_guide": ("2.0",),
    "product_guide": _LEGACY,
    "late_failures": _SERVER_LIST,
    "clusters": ("1.0",),
    "advice": _LEGACY,
    "spelling": _LEGACY,
    "local_servers": LOCAL,
    "local_devices": LOCAL,
}

#: When HCCL meets the fault: while it loads the file, reads entry by entry, compares entries, or at the topology.
Stage = Literal["load", "structure", "parse", "check", "topology", "none"]
STAGES: tuple[Stage, ...] = ("load", "structure", "parse", "check", "topology", "none")


class Finding(NamedTuple):
    """What a rule yields: see ``Diagnostic`` for the fields."""

    message: str
    path: Path = ()
    hint: str | None = None
    related: tuple[Related, ...] = ()
    offset: int | None = None
    at_key: bool = False


#: What a rule yields for each fault that was counted before it, beyond those of which it knows the place.
COUNTED = Finding("")


@dataclass
class Subject:
    """What rules look at: the document as parsed, the table read from it, and for what it is judged.

    ``table`` is set only for rules on tables; ``path`` is the file's name, ``None`` for bytes and stdin.
    ``env`` holds the variables that change HCCL's verdict. ``memo`` keeps what several rules work out.
    ``host`` is the host that the table is held against, set only for the rules of ``LOCAL``.
    ``not_json`` says why there is no ``value`` where one was handed over parsed.
    ``product_reason`` says why it is this product, ``product_is_assumed`` that nobody has named one.
    """

    product: Product
    value: Any = None
    document: Document | None = None
    path: str | None = None
    not_json: Finding | None = None
    table: RankTable = field(default=None)  # type: ignore[assignment]
    env: Mapping[str, str] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)
    host: HostState = field(default=None)  # type: ignore[assignment]
    product_reason: str = ""
    product_is_assumed: bool = False

    @property
    def is_json(self) -> bool:
        """Whether there is a value to look at."""
        return self.not_json is None and (self.document is None or self.document.problem is None)

    def device_path(self, row: int, *keys: str) -> Path:
        """Return where a device (or a key of it) stands in the document."""
        return (*module(self.table.format).device_path(self.table, row), *keys)

    def server_path(self, index: int, *keys: str | int) -> Path:
        """Return where a server's entry (or a key of it) stands in the document."""
        return (*module(self.table.format).server_path(self.table, index), *keys)

    def rank_name(self, row: int) -> str:
        """Return how a message speaks of a device: by its rank where it has one."""
        rank = self.table.column("rank_id")[row]
        return f'rank "{rank}"' if isinstance(rank, str) else f"rank {rank}"


class Rule(NamedTuple):
    """A rule and everything declared beside it.

    ``formats`` is empty for rules on any document. ``needs`` names the device and server keys that must be
    sound for the rule to make sense: damage in them silences it. ``guide_only`` rules enforce what a guide
    says and HCCL does not.
    """

    facts: RuleFacts
    check: Callable[[Subject], Iterable[Finding]]
    formats: tuple[str, ...]
    stage: Stage
    needs: tuple[str, ...]

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return self.facts.title


_RULES: dict[str, Rule] = {}


def rule(
    rule_id: str,
    name: str,
    consequence: Consequence,
    *,
    source: str,
    code: str | None = None,
    formats: tuple[str, ...] = (),
    stage: Stage = "parse",
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[[Subject], Iterable[Finding]]], Callable[[Subject], Iterable[Finding]]]:
    """Declare a rule.

    Args:
        rule_id: ``HCC``, family digit, two digits; never reused.
        name: Completes "allow ...".
        consequence: What becomes of a job with such a table.
        source: The guide's section, or the file and line of HCCL's source.
        code: The error code that HCCL shows; ``None`` where it only logs.
        formats: The table formats it is for; empty for documents of any kind.
        stage: When HCCL meets the fault.
        needs: Keys whose damage silences the rule.
    """

    def declare(check: Callable[[Subject], Iterable[Finding]]) -> Callable[[Subject], Iterable[Finding]]:
        if rule_id in _RULES:
            raise ValueError(f"{rule_id} is both {_RULES[rule_id].facts.name} and {name}")
        facts = RuleFacts(rule_id, name, consequence, source, code, check.__doc__ or "")
        _RULES[rule_id] = Rule(facts, check, formats, stage, needs)
        return check

    return declare


def all_rules() -> dict[str, Rule]:
    """Return every rule by id, in the order of the ids."""
    for family in FAMILIES:
        import_module(f"hccl_tools.rules.{family}")
    return dict(sorted(_RULES.items()))


def document_rules() -> list[Rule]:
    """Return the rules for documents of any kind."""
    for family, formats in FAMILIES.items():
        if not formats:
            import_module(f"hccl_tools.rules.{family}")
    return [found for found in _RULES.values() if not found.formats]


def table_rules(table_format: str) -> list[Rule]:
    """Return the rules for tables of a format; only the families that it needs are loaded."""
    for family, formats in FAMILIES.items():
        if table_format in formats:
            import_module(f"hccl_tools.rules.{family}")
    return [found for found in _RULES.values() if table_format in found.formats]


def rule_by_id(rule_id: str) -> Rule:
    """Return a rule that has been loaded."""
    return _RULES[rule_id]


def chosen(select: Iterable[str], ignore: Iterable[str]) -> Callable[[RuleFacts], bool]:
    """Return whether a rule was chosen by ids, prefixes (``HCC2``) or names.

    Raises:
        UsageError: A selector fits no rule.
    """
    select, ignore = tuple(select), tuple(ignore)
    if not select and not ignore:
        return lambda _facts: True
    everything = [found.facts for found in all_rules().values()]
    for selector in (*select, *ignore):
        if not any(_fits(facts, selector) for facts in everything):
            known = (name for facts in everything for name in (facts.name, facts.id))
            hint = f"{did_you_mean(selector, known)} `hccl-tools rules` lists them".lstrip()
            raise UsageError(f'no rule is called "{selector}"', hint=hint)

    def keep(facts: RuleFacts) -> bool:
        wanted = not select or any(_fits(facts, selector) for selector in select)
        return wanted and not any(_fits(facts, selector) for selector in ignore)

    return keep


def _fits(facts: RuleFacts, selector: str) -> bool:
    return facts.name == selector or facts.id.startswith(selector.upper())
