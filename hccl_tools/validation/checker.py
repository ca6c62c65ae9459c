"""Check a rank table and report the findings.

The steps are: bytes, document, reader, rules. The schema is used only after the reader has refused a
document, to find the violations.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hccl_tools import formats, load_part
from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.diagnostic import HCCL_CONSEQUENCES, KEPT, Diagnostic, Report, Verdict
from hccl_tools.diagnostics.wording import no_rank_table
from hccl_tools.document.document import Document
from hccl_tools.document.parsed_value import NotJsonError, as_read
from hccl_tools.document.reading import shown_name
from hccl_tools.errors import TableError
from hccl_tools.formats import StructureError
from hccl_tools.formats.file_kinds import LOCAL, RANK_TABLE, SERVICE_TABLE, form_of, is_directory_of, kind_of
from hccl_tools.formats.xllm import is_mixture
from hccl_tools.rules.findings import Findings
from hccl_tools.rules.registry import (
    STAGES,
    DamagedInput,
    Finding,
    Input,
    InputFacts,
    LocalSubject,
    ServiceInput,
    Subject,
    chosen,
    rule_by_id,
    rules_for,
    shared_each,
)
from hccl_tools.table.products import assume
from hccl_tools.validation import (
    mixtures,
    other_products,
    product_choice,
    regular_tables,
    target_check,
)
from hccl_tools.validation.product_choice import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hccl_tools.diagnostics.diagnostic import RuleFacts
    from hccl_tools.formats.file_kinds import FileKind
    from hccl_tools.formats.schema import Violations
    from hccl_tools.host.facts import HostState
    from hccl_tools.rules.registry import Rule
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

_LOAD_IDS = frozenset({"HCC101", "HCC102", "HCC103", "HCC104", "HCC116", "HCC117"})
#: The rules on documents that are HCCL's alone: file name, size, variables, format, and text after the table.
_FOR_HCCL = frozenset(
    {"HCC102", "HCC103", "HCC109", "HCC110", "HCC116", "HCC602", "HCC617", "HCC618", "HCC660"}
)
#: The rules on limits of hccl-tools, which HCCL does not have.
_OWN_LIMITS = frozenset({"HCC117"})


def validate(
    source: str | os.PathLike[str] | bytes | dict[str, Any] | list[Any] | Document,
    *,
    product: str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    host: Callable[[RankTable], HostState] | None = None,
    on_this_host: bool = False,
    target: str | None = None,
    limit: int | None = KEPT,
    begin: Callable[[RankTable], None] | None = None,
) -> Report:
    """Check one rank table.

    Args:
        source: A path (``-`` for standard input), the bytes of a file, a parsed JSON object or list, or a
            document that was read from a file.
        product: A name in ``hccl_tools.table.products.PRODUCTS``; by default the product assumed for
            the table.
        select: Report only these rules: ids, prefixes (``HCC2``) or names.
        ignore: Ignore these rules.
        env: The job's environment variables. With an invalid value of one in
            ``hccl_tools.variables.rows.NAMES`` HCCL refuses every job, whatever the table (HCC116). Valid
            values of four change its verdict on a table: HCCL_INTRA_ROCE_ENABLE, HCCL_INTRA_PCIE_ENABLE,
            HCCL_OP_EXPANSION_MODE, HCCL_OP_RETRY_ENABLE. Other variables have no effect. By default no
            variables are set; the environment of this process is not read.
        target: The framework that reads the table: also check what it requires (``file_kinds.TARGETS``).
        host: Returns the state of this host, for the comparison with a table (``local_check``).
        on_this_host: Whether the table is for a job on this host, whose NPUs then decide the product.
        limit: The number of findings per rule to keep; ``None`` keeps all. Verdict, ``ok`` and ``counts``
            cover all findings.
        begin: Called with the table before it is judged, to begin what takes time.

    Returns:
        The report. Its ``verdict`` is HCCL's verdict on the table alone, regardless of the selection; ``ok``
        depends on the reported findings.

    Raises:
        InputError: The file cannot be read.
        UsageError: The product or a rule is unknown.
    """
    select = tuple(select)
    findings = Findings(limit, chosen(select, ignore))
    with _collector_paused():
        facts, file = _facts(source, limit)
        kind, found = _recognised(facts)
        here = on_this_host or host is not None
        table_format = found.format if found else None
        choice = product_choice.choose(product, table_format, on_this_host=here, kind=kind)
        given = Input(_for_product(facts._replace(kind=kind, env=env or {}), choice))
        # A selection always runs the rules, which tests hold against what is regular.
        is_plain = not select and target is None and host is None
        regular = _regular(given, found, findings) if is_plain else None
        if regular is not None and begin is not None:
            begin(regular.table)
        subject = regular or _judge(given, found, findings, host, begin)
        findings.drop_told_by_errors("HCC618")
        findings.drop_at_errors("HCC603", ("rank_id", "device_id"))
        findings.drop_at_errors("HCC617", ("status", "server_count", "rank_count", "group_count"))
        if host is not None and isinstance(subject, Subject):
            findings.run(rules_for(LOCAL.name), LocalSubject(subject, host(subject.table)))
        accepted = ""
        if findings.counts and isinstance(subject, Subject) and _form(given, found) is RANK_TABLE:
            accepted = other_products.accepted_on(subject, findings)
        also_for = "" if target is None else target_check.check(target, subject, findings)
        report = _report(subject, findings, file=file, found=found)._replace(
            also_for=also_for, accepted_on=accepted
        )
        return report._replace(left_out_as="not selected") if select else report


def check_table(
    table: RankTable,
    *,
    product: str | None = None,
    ignore: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
) -> Report:
    """Check a table in memory; see ``validate``."""
    findings = Findings(KEPT, chosen((), ignore))
    size = regular_tables.devices_of_each(table)
    subject = _with_refined_product(_in_memory(table, product, env or {}), size)
    if regular_tables.is_regular(table, size, subject.product, subject.env, is_new=True):
        findings.find_nothing(lambda: rules_for(table.format))
    else:
        subject = _judge_table(subject, findings)
    found = formats.Detection(table.format, "it was made in this format")
    return _report(subject, findings, file="the table", found=found)


def product_of(table: RankTable, name: str | None = None) -> Product:
    """Return the product for which ``check_table`` checks a table; ``name`` is the user's choice."""
    return _with_refined_product(_in_memory(table, name, {})).product


def _in_memory(table: RankTable, product: str | None, env: Mapping[str, str]) -> Subject:
    """Return a table that was not read from a document; ``product`` is the user's choice."""
    choice = product_choice.choose(product, table.format)
    return Subject(Input(_for_product(InputFacts(choice.product, env=env), choice)), table)


def usable(report: Report) -> RankTable:
    """Return the table of a report without errors.

    Raises:
        TableError: The table has an error; the message has the findings.
    """
    if other := no_rank_table(report):
        raise TableError(f"{report.file} cannot be used: {other[0]}", hint=other[1])
    if not report.ok:
        text = "".join(render([report], "text", show_all=False, color=False)).rstrip()
        raise TableError(f"{report.file} cannot be used", lines=text.split("\n"))
    if report.table is None:
        raise TableError(f"{report.file} cannot be used: {report.format_reason}")
    return report.table


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Disable the cyclic garbage collector.

    A large table has hundreds of thousands of objects without cycles; scanning them repeatedly during parsing
    takes as long as the parsing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _facts(source: Any, limit: int | None) -> tuple[InputFacts, str]:
    """Return what is known of a source before its kind and product are, and the name of the file."""
    unknown = assume(None)[0]
    if isinstance(source, (str, os.PathLike)):
        file = os.fspath(source)
        if is_directory_of(file):
            return InputFacts(unknown, path=file, is_directory=True), shown_name(file)
        source = Document.read(file, limit)
    if isinstance(source, Document):
        return InputFacts(unknown, source.value, source, source.path), source.name
    if isinstance(source, (bytes, bytearray)):
        document = Document.parse(bytes(source), "<bytes>", limit)
        return InputFacts(unknown, document.value, document), "<bytes>"
    try:
        return InputFacts(unknown, as_read(source)), "<object>"
    except NotJsonError as error:
        not_json = Finding(error.message, error.path, error.hint)
        return InputFacts(unknown, not_json=not_json), "<object>"


def _recognised(facts: InputFacts) -> tuple[FileKind, formats.Detection | None]:
    """Return the kind of a source, and what was detected; ``None`` if it is not valid JSON."""
    if not facts.is_json:
        return RANK_TABLE, None
    if (found := kind_of(facts.value, facts.path)) is not None:
        return found[0], formats.Detection(None, found[1])
    return RANK_TABLE, formats.detect(facts.value)


def _for_product(facts: InputFacts, choice: Choice) -> InputFacts:
    return facts._replace(
        product=choice.product, product_reason=choice.reason, product_is_assumed=choice.is_assumed
    )


def _with_refined_product(subject: Subject, size: int = 0) -> Subject:
    """Return a table with the product that its addresses and servers show, if its product is only assumed.

    ``size`` is the number of devices of each server, if it is known.
    """

    def largest_server() -> int:
        from hccl_tools.rules.topology import device_sets  # noqa: PLC0415  (3 ms; not for a regular table)

        return size or max((len(set(devices)) for devices in set(device_sets(subject).values())), default=0)

    facts = subject.facts
    now = Choice(facts.product, facts.product_reason, facts.product_is_assumed)
    if (choice := product_choice.refined(now, subject.table, largest_server)) == now:
        return subject
    return Subject(Input(_for_product(facts, choice), subject.results), subject.table, subject.damaged)


def _judge(
    given: Input,
    found: formats.Detection | None,
    findings: Findings,
    host: Callable[[RankTable], HostState] | None,
    begin: Callable[[RankTable], None] | None,
) -> Input:
    """Collect the findings, and return the input as a ``Subject`` if there is a table."""
    findings.run(_rules_on_documents(given.kind), given)
    if (form := _form(given, found)) is not RANK_TABLE:
        judged: Input = load_part("validation.non_table_documents").check(
            form, given, findings, host, violations=_violations
        )
        return judged
    if found is None or found.format is None or found.format not in given.product.formats:
        return given
    subject = _judge_format(given, found.format, findings, begin)
    if is_mixture(given.value):
        mixtures.check(subject, findings, _judge_format)
    return subject


def _rules_on_documents(kind: FileKind) -> list[Rule]:
    """Return the rules on documents that apply to files of a kind."""
    rules = rules_for(None)
    return [one for one in rules if one.facts.id not in _FOR_HCCL] if kind is SERVICE_TABLE else rules


def _form(given: Input, found: formats.Detection | None) -> FileKind:
    """Return the kind of an input, or the form from which HCCL makes the table that is checked."""
    if given.kind is not RANK_TABLE or found is None:
        return given.kind
    return form_of(given.value, found, given.product) or RANK_TABLE


@shared_each
def _table(given: Input, table_format: Format) -> RankTable:
    return formats.read(given.value, table_format)


def _regular(given: Input, found: formats.Detection | None, findings: Findings) -> Subject | None:
    """Return a table in which no rule finds anything, as can be seen without them; ``None`` for any other.

    The rules take ten times as long.
    """
    if _form(given, found) is not RANK_TABLE or found is None or not found.format:
        return None
    if not regular_tables.may_be_regular(given.document):
        return None
    try:
        table = _table(given, found.format)
    except StructureError:
        return None
    if not (size := regular_tables.devices_of_each(table)):
        return None
    subject = _with_refined_product(Subject(given, table), size)
    if not regular_tables.is_regular(table, size, subject.product, subject.env):
        return None
    findings.find_nothing(lambda: (*_rules_on_documents(given.kind), *rules_for(subject.table.format)))
    return subject


def _judge_format(
    given: Input,
    table_format: Format,
    findings: Findings,
    begin: Callable[[RankTable], None] | None = None,
) -> Input:
    try:
        table = _table(given, table_format)
    except StructureError:
        return _judge_damaged(given, table_format, findings)
    if begin is not None:
        begin(table)
    return _judge_table(Subject(given, table), findings)


def _judge_table(subject: Subject, findings: Findings) -> Subject:
    rules = rules_for(subject.table.format)
    subject = _with_refined_product(subject)
    findings.run(rules, subject)
    return subject


def _violations(value: Any, table_format: str, limit: int | None) -> Violations:
    found: Violations = load_part("validation.repair").violations(value, table_format, limit)
    return found


def _judge_damaged(given: Input, table_format: Format, findings: Findings) -> Input:
    violations, repair = (
        _violations(given.value, table_format, findings.limit),
        load_part("validation.repair"),
    )
    damaged = DamagedInput(given, violations)
    findings.run((rule for rule in rules_for(table_format) if rule.stage == "structure"), damaged)
    if repair.has_other_shape(damaged):
        return given  # Entries that are in the wrong list say nothing about the others.
    repaired = repair.without_damage(given.value, violations, table_format)
    if repaired is None:
        return given
    try:
        table = formats.read(repaired.value, table_format)
    except StructureError:
        return given
    return _judge_table(Subject(given, table, repaired.damaged), findings)


def _report(subject: Input, findings: Findings, *, file: str, found: formats.Detection | None) -> Report:
    findings.trim()
    kept = tuple(sorted(findings.kept, key=_order))
    reason = found.reason if found else "not valid JSON"
    stopping = [
        rule
        for rule in findings.counts
        if rule.consequence in HCCL_CONSEQUENCES and rule_by_id(rule.id).kind.is_judged
    ]
    kind = subject.kind
    reader = subject.reader if isinstance(subject, ServiceInput) else kind.reader
    table_format = kind.name or (found.format if found else None)
    table = subject.table if isinstance(subject, Subject) else None
    return Report(
        file, table_format, reason, subject.product.name, subject.facts.product_reason, kept,
        _verdict(stopping), subject.document, table, findings.omitted,
        "hccl-tools" if {rule.id for rule in stopping} == _OWN_LIMITS else reader,
        tuple(sorted(rule.id for rule in stopping if not findings.chosen(rule))), asked=findings.asked,
        reader=reader, noun=kind.noun, product_is_assumed=subject.product_is_assumed,
    )  # fmt: skip


def _verdict(stopping: list[RuleFacts]) -> Verdict:
    """Return HCCL's verdict: a file that cannot be loaded is refused before HCCL waits for its status."""
    consequences = {rule.consequence for rule in stopping}
    if any(rule.id in _LOAD_IDS for rule in stopping):
        return "refused"
    if "hangs" in consequences:
        return "hangs"
    return "refused" if "refused" in consequences else "accepted"


def _order(diagnostic: Diagnostic) -> tuple[bool, int, int, list[tuple[int, int | str]], str]:
    """Return the sort key of a finding, in the order in which HCCL finds faults: by stage, then by path."""
    rule = rule_by_id(diagnostic.rule.id)
    place: list[tuple[int, int | str]] = [
        (0, key) if isinstance(key, int) else (1, key) for key in diagnostic.path
    ]
    stopping = diagnostic.rule.consequence in HCCL_CONSEQUENCES
    return (
        not stopping,
        diagnostic.rule.severity == "warning",
        STAGES.index(rule.stage),
        place,
        diagnostic.rule.id,
    )
