"""Check a rank table and report the findings.

The steps are: bytes, document, reader, rules. The schema is used only after the reader has refused a
document, to find the violations.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.diagnostic import HCCL_CONSEQUENCES, KEPT, Diagnostic, Report, Verdict
from hccl_tools.diagnostics.wording import no_rank_table
from hccl_tools.document.document import Document
from hccl_tools.document.parsed_value import NotJsonError, as_read
from hccl_tools.document.reading import shown_name
from hccl_tools.errors import TableError
from hccl_tools.formats import StructureError
from hccl_tools.formats.host_files import READERS
from hccl_tools.rules.findings import Findings
from hccl_tools.rules.other_shapes import other_shapes
from hccl_tools.rules.registry import BESIDE_HCCL, LOCAL, STAGES, Finding, Subject, rule_by_id, rules_for
from hccl_tools.rules.selection import chosen
from hccl_tools.rules.topology import device_sets
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.products import assume
from hccl_tools.validation import (
    host_files,
    non_table_documents,
    other_products,
    product_choice,
    target_check,
)
from hccl_tools.validation.product_choice import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hccl_tools.diagnostics.diagnostic import RuleFacts
    from hccl_tools.host.facts import HostState
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product

_LOAD_IDS = frozenset({"HCC101", "HCC102", "HCC103", "HCC104", "HCC116", "HCC117"})
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
        target: The framework that reads the table: also check what it requires (``registry.TARGETS``).
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
        subject, file = _subject(source, limit)
        found = (host_files.recognise(subject) or formats.detect(subject.value)) if subject.is_json else None
        here = on_this_host or host is not None
        table_format = found.format if found else None
        _set_product(
            subject, product_choice.choose(product, table_format, on_this_host=here, kind=subject.kind)
        )
        subject.env = env or {}
        _judge(subject, found, findings, host, begin)
        findings.drop_told_by_errors("HCC618")
        findings.drop_at_errors("HCC603", ("rank_id", "device_id"))
        findings.drop_at_errors("HCC617", ("status", "server_count", "rank_count", "group_count"))
        if host is not None and subject.table is not None:
            subject.host, subject.memo = host(subject.table), {}
            findings.run(rules_for(LOCAL[0]), subject)
        is_table = found is not None and not non_table_documents.is_one(subject, found)
        accepted = other_products.accepted_on(subject, findings) if findings.counts and is_table else ""
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
    subject = Subject(assume(table.format)[0], table=table, env=env or {})
    _set_product(subject, product_choice.choose(product, table.format))
    findings = Findings(KEPT, chosen((), ignore))
    _judge_table(subject, findings)
    found = formats.Detection(table.format, "it was made in this format")
    return _report(subject, findings, file="the table", found=found)


def product_of(table: RankTable, name: str | None = None) -> Product:
    """Return the product for which ``check_table`` checks a table; ``name`` is the user's choice."""
    subject = Subject(assume(table.format)[0], table=table)
    _set_product(subject, product_choice.choose(name, table.format))
    _refine_product(subject)
    return subject.product


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


def _subject(source: Any, limit: int | None) -> tuple[Subject, str]:
    unknown = assume(None)[0]
    if isinstance(source, (str, os.PathLike)):
        file = os.fspath(source)
        if host_files.is_directory(file):
            return Subject(unknown, path=file, is_directory=True), shown_name(file)
        source = Document.read(file, limit)
    if isinstance(source, Document):
        return Subject(unknown, source.value, source, source.path), source.name
    if isinstance(source, (bytes, bytearray)):
        document = Document.parse(bytes(source), "<bytes>", limit)
        return Subject(unknown, document.value, document), "<bytes>"
    return _subject_of_object(source), "<object>"


def _subject_of_object(source: Any) -> Subject:
    unknown = assume(None)[0]
    try:
        return Subject(unknown, as_read(source))
    except NotJsonError as error:
        return Subject(unknown, not_json=Finding(error.message, error.path, error.hint))


def _set_product(subject: Subject, choice: Choice) -> None:
    subject.product, subject.product_reason, subject.product_is_assumed = choice


def _refine_product(subject: Subject) -> None:
    def largest_server() -> int:
        return max((len(set(devices)) for devices in set(device_sets(subject).values())), default=0)

    now = Choice(subject.product, subject.product_reason, subject.product_is_assumed)
    _set_product(subject, product_choice.refined(now, subject.table, largest_server))


def _judge(
    subject: Subject,
    found: formats.Detection | None,
    findings: Findings,
    host: Callable[[RankTable], HostState] | None,
    begin: Callable[[RankTable], None] | None,
) -> None:
    if subject.kind == SERVICE:
        non_table_documents.check_service(subject, findings)
        return
    findings.run(rules_for(None), subject)
    if subject.kind is not None:
        host_files.check(subject, findings, host)
        return
    if found is not None and non_table_documents.is_one(subject, found):
        non_table_documents.check(subject, found, findings)
        return
    if found is None or found.format is None or found.format not in subject.product.formats:
        return
    _judge_format(subject, found.format, findings, begin)
    non_table_documents.check_mixture(subject, findings, _judge_format)


def _judge_format(
    subject: Subject,
    table_format: Format,
    findings: Findings,
    begin: Callable[[RankTable], None] | None = None,
) -> None:
    try:
        subject.table = formats.read(subject.value, table_format)
    except StructureError:
        _judge_damaged(subject, table_format, findings)
    else:
        if begin is not None:
            begin(subject.table)
        _judge_table(subject, findings)


def _judge_table(subject: Subject, findings: Findings) -> None:
    rules = rules_for(subject.table.format)
    _refine_product(subject)
    findings.run(rules, subject)


def _judge_damaged(subject: Subject, table_format: Format, findings: Findings) -> None:
    from hccl_tools.validation import repair  # noqa: PLC0415  (31 ms; the reader has refused the table)

    violations = repair.violations(subject.value, table_format, findings.limit)
    subject.memo["violations"] = violations
    findings.run((rule for rule in rules_for(table_format) if rule.stage == "structure"), subject)
    if other_shapes(subject):
        return  # Entries that are in the wrong list say nothing about the others.
    repaired = repair.without_damage(subject.value, violations, table_format)
    if repaired is not None:
        try:
            subject.table = formats.read(repaired.value, table_format)
        except StructureError:
            return
        subject.memo, subject.damaged = {}, repaired.damaged
        _judge_table(subject, findings)


def _report(subject: Subject, findings: Findings, *, file: str, found: formats.Detection | None) -> Report:
    findings.trim()
    kept = tuple(sorted(findings.kept, key=_order))
    reason = found.reason if found else "not valid JSON"
    stopping = [
        rule
        for rule in findings.counts
        if rule.consequence in HCCL_CONSEQUENCES and rule_by_id(rule.id).formats not in BESIDE_HCCL
    ]
    reader, noun = READERS.get(subject.kind or "", ("HCCL", "table"))
    if subject.kind == SERVICE:
        reader = non_table_documents.reader(subject)
    table_format = subject.kind or (found.format if found else None)
    return Report(
        file, table_format, reason, subject.product.name, subject.product_reason, kept,
        _verdict(stopping), subject.document, subject.table, findings.omitted,
        "hccl-tools" if {rule.id for rule in stopping} == _OWN_LIMITS else reader,
        tuple(sorted(rule.id for rule in stopping if not findings.chosen(rule))), asked=tuple(findings.asked),
        reader=reader, noun=noun, product_is_assumed=subject.product_is_assumed,
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
