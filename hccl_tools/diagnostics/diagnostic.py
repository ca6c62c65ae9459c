"""A diagnostic is data: what, where, how grave, what to do. Lines and columns come when it is shown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.document.document import Document
    from hccl_tools.table.model import RankTable

#: Where in a document: object keys and array indices, outermost first.
Path = tuple[str | int, ...]
Consequence = Literal["refused", "hangs", "fails-later", "forbidden", "advice"]
Severity = Literal["error", "warning"]
Verdict = Literal["accepted", "refused", "hangs"]
#: How the lines of examples begin in a rule's docstring.
EXAMPLE_MARKS = ("Base: ", "Example: ", "Instead: ", "Hint: ")

#: The consequences by which HCCL itself stops a job (``--only-hccl``).
HCCL_CONSEQUENCES: frozenset[Consequence] = frozenset({"refused", "hangs"})
#: Findings of one rule that a report keeps, unless it is asked for another number; all are counted.
KEPT = 1000


def pointer(path: Path) -> str:
    """Return the RFC 6901 JSON pointer of a path; the whole document is ``""``."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


class Related(NamedTuple):
    """A second place that a finding is about, with a phrase for it (``first used here``)."""

    path: Path
    message: str


class RuleFacts(NamedTuple):
    """What every diagnostic of one rule shares.

    ``id`` is what people quote (``HCC203``), ``name`` completes "allow ..." (``duplicate-rank-id``),
    ``source`` names the document or source line that the rule enforces, ``hccl_code`` the error code
    that HCCL shows (``EI0014``), or ``None`` where it only logs. ``doc`` is the rule's docstring: a title,
    why it matters, then the lines of the examples, which begin with one of ``EXAMPLE_MARKS``.
    """

    id: str
    name: str
    consequence: Consequence
    source: str
    hccl_code: str | None = None
    doc: str = ""

    @property
    def title(self) -> str:
        """The first line of the docstring, without its full stop."""
        return self.doc.strip().partition("\n")[0].rstrip(".")

    @property
    def why(self) -> str:
        """What the docstring says besides title and examples, its lines as they stand."""
        from inspect import cleandoc  # noqa: PLC0415  (few outputs want it)

        lines = cleandoc(self.doc).splitlines()[1:]
        return "\n".join(line for line in lines if not line.startswith(EXAMPLE_MARKS)).strip()

    @property
    def severity(self) -> Severity:
        """``warning`` for advice, ``error`` for everything that stops or breaks a job or is forbidden."""
        return "warning" if self.consequence == "advice" else "error"


class Diagnostic(NamedTuple):
    """One thing that is wrong at one place.

    ``message`` is lower case without a full stop and says what is wrong; ``hint`` is one imperative
    sentence that says what to do. ``offset`` is set only where no path leads to the place (broken JSON):
    a byte offset into the document.
    """

    rule: RuleFacts
    message: str
    path: Path = ()
    hint: str | None = None
    related: tuple[Related, ...] = ()
    offset: int | None = None
    #: Show the key of the place rather than its value (a key that is repeated or unknown).
    at_key: bool = False

    @property
    def pointer(self) -> str:
        """The RFC 6901 pointer of ``path``."""
        return pointer(self.path)


class Report(NamedTuple):
    """Everything found out about one document.

    ``findings`` are ordered worst consequence first where HCCL would stop, then by place. Of each rule they
    are the first ``limit`` of ``validate``; ``omitted`` says for each rule with more how many more there are.
    ``format_reason`` and ``product_reason`` are the sentences that say why that format and product.
    """

    file: str
    format: str | None
    format_reason: str
    product: str
    product_reason: str
    findings: tuple[Diagnostic, ...]
    verdict: Verdict
    document: Document | None = None
    #: The table as read; None where its structure is damaged or HCCL's loader never gets so far.
    table: RankTable | None = None
    omitted: Mapping[RuleFacts, int] = {}
    #: Who gives the verdict: hccl-tools where HCCL has no limit of its own and crashes sooner or later.
    verdict_by: Literal["HCCL", "hccl-tools"] = "HCCL"
    #: The rules behind the verdict of which ``findings`` has none, and why it has none.
    left_out: tuple[str, ...] = ()
    left_out_as: Literal["ignored", "not selected"] = "ignored"

    @property
    def counts(self) -> Counter[RuleFacts]:
        """The number of findings of each rule, those included that are not kept."""
        return Counter(one.rule for one in self.findings) + Counter(self.omitted)

    @property
    def errors(self) -> Sequence[Diagnostic]:
        """The findings of severity ``error`` that are kept; there is one if the table has an error."""
        return [finding for finding in self.findings if finding.rule.severity == "error"]

    @property
    def warnings(self) -> Sequence[Diagnostic]:
        """The findings of severity ``warning`` that are kept."""
        return [finding for finding in self.findings if finding.rule.severity == "warning"]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not self.errors
