"""Phrases that several output formats share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import pointer
from hccl_tools.diagnostics.hint_files import with_files
from hccl_tools.notation.phrases import operand, with_article

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Consequence, Diagnostic, Related, Report
    from hccl_tools.diagnostics.placing import SourceRange

_VERDICTS = {
    "refused": "{} refuses this {}",
    "hangs": "{} waits 30 minutes for this {} and then fails",
}
#: Problems of a text that is none of a table in JSON, of which nothing is left to check.
_NO_JSON = frozenset(
    {"empty file", "binary", "utf-16", "bad utf-8", "other file", "cut off", "Kubernetes object"}
)
#: Why a service table is no input of a command that needs a rank table, and what to do.
_NOT_FOR_HCCL = "it is a service table (server_group_list), which HCCL does not read"
_INSTANCE_HINT = "`hccl-tools convert FILE --instance N --to 1.0` writes the rank table of an instance"
_OTHER_FORM_HINT = "make the table with `hccl-tools gen`, or give it to the framework itself"
#: What forbids a table that HCCL accepts, if the rule names no other guide.
PRODUCT_GUIDE = "the product's guide"
#: Characters of a value that a message quotes; enough for a server_id (64 bytes) or several addresses.
_LONGEST_QUOTE = 200
#: From worst to mildest.
SEVEREST_FIRST: tuple[Consequence, ...] = ("refused", "hangs", "fails-later", "forbidden", "advice")


def reaction(finding: Diagnostic) -> str:
    """Return the reaction of the file's reader, usually HCCL, to a finding, regardless of other findings."""
    return f"{finding.rule.reader}: {_reaction(finding)}"


def _reaction(finding: Diagnostic) -> str:
    code = finding.rule.hccl_code
    consequence = finding.rule.consequence
    if consequence == "refused":
        refuses = f"refuses the {finding.rule.noun}"
        if finding.rule.reader != "HCCL":
            return f'{refuses} with "{finding.rule.words}"' if finding.rule.words else refuses
        return f"{refuses} with {code}" if code else f"{refuses}, with a message only in its log"
    if consequence == "hangs":
        return f"waits 30 minutes and then fails{f' with {code}' if code else ''}"
    if consequence == "fails-later":
        code = f'"{finding.rule.words}"' if finding.rule.words else code
        return f"accepts this; the job fails later{f' with {code}' if code else ''}"
    if consequence == "forbidden":
        return f"accepts this, but {finding.rule.words or PRODUCT_GUIDE} forbids it"
    return "accepts this"


def no_rank_table(report: Report) -> tuple[str, str] | None:
    """Return why a file is no input of a command that needs a rank table, and what to do, as phrases.

    The result is None for a rank table, and for a file that ``validate`` does not know. A table of version
    1.1 is checked, but it is not read into the servers and ranks that other commands use.
    """
    if report.is_service:
        return _NOT_FOR_HCCL, _INSTANCE_HINT
    if report.noun != "table":
        return (
            f"it is {with_article(report.noun)}, not a rank table",
            "`hccl-tools show` and `validate` read it",
        )
    if report.table is None and report.verdict == "accepted":
        return f"{report.format_reason}, which of all commands only `validate` reads", _OTHER_FORM_HINT
    return None


def verdict(report: Report) -> str:
    """Return the sentence about the whole table."""
    return f"{_verdict(report)}; HCCL does not read it" if report.is_service else _verdict(report)


def _verdict(report: Report) -> str:
    if report.accepted_on:
        return _verdict_on_assumption(report)
    if report.verdict_by == "hccl-tools":
        return f"{report.verdict_by} refuses this table; HCCL has no limit here, but may crash"
    if report.verdict in _VERDICTS:
        return _VERDICTS[report.verdict].format(report.reader, report.noun)
    accepts = f"{report.reader} accepts this {report.noun}"
    others = dict.fromkeys(
        one.rule.reader
        for one in report.errors
        if one.rule.reader != report.reader and not (report.is_service and one.rule.noun == report.noun)
    )
    if others and all(
        one.rule.consequence == "forbidden" for one in report.errors if one.rule.reader in others
    ):
        readers = " and ".join([report.reader, *others])
        return f"{readers} accept this {report.noun}, but {' and '.join(_guides(report))} forbids it"
    if others:  # by a rule of `validate --target`
        return f"{accepts}, but {' and '.join(others)} {'does' if len(others) == 1 else 'do'} not"
    consequences = {finding.rule.consequence for finding in report.errors}
    if "refused" in consequences:  # by a rule of `validate --local`: the verdict is on the table alone
        return f"{accepts}, but not on this host"
    if "fails-later" in consequences:
        return f"{accepts}, but the job fails later"
    if consequences:
        guides = _guides(report)
        return f"{accepts}, but {' and '.join(guides)} {'forbids' if len(guides) == 1 else 'forbid'} it"
    if report.origin is not None and report.origin.extract:
        return f"{report.reader} accepts the {report.noun} in this file, but refuses the file itself"
    return f"{report.reader} and {report.also_for} accept this {report.noun}" if report.also_for else accepts


def _verdict_on_assumption(report: Report) -> str:
    """Return the sentence about a table with errors that depend on the product, which is only assumed."""
    assumed, other = with_article(report.product), with_article(report.accepted_on)
    if report.verdict in _VERDICTS:
        first = "refused"
    elif any(finding.rule.consequence == "fails-later" for finding in report.errors):
        first = "accepted, but the job fails later,"
    else:
        first = f"forbidden by {' and '.join(_guides(report))}"
    return f"{first} on {assumed} (assumed), accepted on {other}: name the machine with --product"


def _guides(report: Report) -> list[str]:
    """Return what forbids a table that HCCL accepts."""
    return sorted({one.rule.words or f"the guide for {report.product}" for one in report.errors})


def conclusion(report: Report, counted: str) -> str:
    """Return the last line of a report: the counts, the verdict, and the hidden rules behind the verdict."""
    if counted and _is_half_checked(report):
        return f"{counted} so far, the rest was not checked; {verdict(report)}"
    if not report.left_out:
        return f"{counted or 'no findings'}: {verdict(report)}"
    is_or_are = "is" if len(report.left_out) == 1 else "are"
    rules = f"{', '.join(report.left_out)} {is_or_are} {report.left_out_as}"
    return f"{counted or 'nothing shown'} ({rules}), but {verdict(report)}"


def _is_half_checked(report: Report) -> bool:
    """Whether the text of a table ends the check before its values are seen."""
    problem = report.document.problem if report.document is not None else None
    return problem is not None and problem.kind not in _NO_JSON


def next_step(report: Report) -> str:
    """Return what to do about a table with errors of which only the first is shown.

    ``validate`` opens a ConfigMap, which a job cannot read, and so may find no error in it.
    """
    first = report.errors[0]
    if first.rule.name == "not-a-rank-table" and first.hint:
        return with_files(first.hint, report)
    if report.accepted_on:
        return f"it is {_verdict_on_assumption(report)}"
    return f"see `hccl-tools validate {operand(report.file)}`"


def quoted(text: str) -> str:
    """Return a value of a table in quotes, cut if it is long."""
    shown = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
    return f'"{without_marks(shown)}"'


def as_json(value: Any) -> str:
    """Return a value of a table on one line of JSON, for a message or hint."""
    return without_marks(json.dumps(value, ensure_ascii=False))


def without_marks(text: str) -> str:
    """Return a text with JSON's form of the marks of commands: it could begin or end a command."""
    return text.replace("`", r"\u0060")


def reference(related: Related, file: str, place: SourceRange | None) -> str:
    """Return a related location on one line: ``first used at table.json:7:67``."""
    where = f"{file}:{place.start.line}:{place.start.column}" if place else pointer(related.path) or "/"
    return f"{related.message.removesuffix(' here')} at {where}"
