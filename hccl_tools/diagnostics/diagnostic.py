"""Findings as data. Lines and columns are computed only when a finding is shown."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING, Literal

from hccl_tools.records import NamedTuple
from hccl_tools.table.format_names import SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.document.document import Document
    from hccl_tools.table.model import RankTable

#: A location in a document: object keys and array indices, outermost first.
Path = tuple[str | int, ...]
Consequence = Literal["refused", "hangs", "fails-later", "forbidden", "advice"]
Severity = Literal["error", "warning"]
Verdict = Literal["accepted", "refused", "hangs"]
#: The beginnings of example lines in a rule's docstring.
EXAMPLE_MARKS = ("Base: ", "Example: ", "Instead: ", "Hint: ")

#: The consequences by which HCCL itself stops a job (``--only-hccl``).
HCCL_CONSEQUENCES: frozenset[Consequence] = frozenset({"refused", "hangs"})
#: The number of findings per rule that a report keeps by default; all findings are counted.
KEPT = 1000


def pointer(path: Path) -> str:
    """Return the RFC 6901 JSON pointer of a path; the whole document is ``""``."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


class Related(NamedTuple):
    """A second location of a finding, with a phrase about it (``first used here``)."""

    path: Path
    message: str


class RuleFacts(NamedTuple):
    """The facts that all diagnostics of one rule share.

    Attributes:
        id: The identifier for users (``HCC203``).
        name: The name of the fault for users (``duplicate-rank-id``).
        consequence: What happens to a job with such a table.
        source: The document or source line that the rule enforces.
        hccl_code: The error code that HCCL shows (``EI0014``); ``None`` if HCCL only logs the fault.
        doc: The rule's docstring: a title, an explanation, and examples on lines that begin with one of
            ``EXAMPLE_MARKS``.
        reader: The program that reads the files to which the rule applies.
        noun: The name of such a file in messages.
        words: What that program prints about the fault, if it is not HCCL.
    """

    id: str
    name: str
    consequence: Consequence
    source: str
    hccl_code: str | None = None
    doc: str = ""
    reader: str = "HCCL"
    noun: str = "table"
    words: str = ""

    @property
    def title(self) -> str:
        """The first line of the docstring, without the full stop."""
        return self.doc.strip().partition("\n")[0].rstrip(".")

    @property
    def why(self) -> str:
        """The docstring without title and examples, with its line breaks."""
        lines = inspect.cleandoc(self.doc).splitlines()[1:]
        return "\n".join(line for line in lines if not line.startswith(EXAMPLE_MARKS)).strip()

    @property
    def severity(self) -> Severity:
        """``warning`` for advice, ``error`` for every other consequence."""
        return "warning" if self.consequence == "advice" else "error"


class Diagnostic(NamedTuple):
    """One finding at one location.

    Attributes:
        message: The fault, in lower case without a full stop.
        hint: What to do, as one imperative sentence.
        offset: The byte offset in the document, for locations without a path (broken JSON).
        at_key: Whether the fault is the key instead of its value (a duplicate or unknown key).
        right: The value to write at ``path``, if exactly one value is right (``validate --fix``).
        right_key: The key to write instead of the last one of ``path``, if exactly one is right.
        alike: Message and hint for several such findings together; without it, only equal findings are
            shown together.
        devices: The devices of this host that it is about, for rules that compare the table with a host.
    """

    rule: RuleFacts
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

    @property
    def pointer(self) -> str:
        """The RFC 6901 pointer of ``path``."""
        return pointer(self.path)


class Origin(NamedTuple):
    """The position of a table that is a part of another file.

    Attributes:
        file: The name of that file.
        line: The line in which the table begins, from 1.
        one_line: Whether the whole table is on that line, as a string with escaped line breaks; else the
            first line of the table is the line below it, and the other lines follow.
        extract: The command that writes the table to a file of its own.
        extracted: The file that this command writes, as a word of a command line.
        object_command: The command that fetches the object with the table again.
    """

    file: str
    line: int
    one_line: bool
    extract: str = ""
    extracted: str = ""
    object_command: str = ""

    def line_of(self, line: int) -> int:
        """Return the line in the file of a line of the table."""
        return self.line if self.one_line else self.line + line


class Report(NamedTuple):
    """The result of checking one document.

    Attributes:
        file: The name of the document.
        format: The table format, or the kind of another file that is checked (``endpoints``, ``rootinfo``,
            ``server_group_list``);
            ``None`` if the document is neither.
        format_reason: The reason for the detected format, as a phrase.
        product: The product for which the table was checked.
        product_reason: The reason for the product, as a phrase.
        findings: The findings in the order in which HCCL would find them; for each rule at most the ``limit``
            of ``validate``.
        verdict: What HCCL does with the table.
        table: The table; ``None`` if its structure is damaged or HCCL's loader refuses the file.
        omitted: The number of findings that are not in ``findings``, by rule.
        verdict_by: The origin of the verdict: the reader, or hccl-tools if HCCL has no limit and would crash.
        left_out: The rules behind the verdict that have no finding in ``findings``.
        left_out_as: Why those rules have no finding.
        asked: Returns the selected rules that were applied.
        reader: The program that reads such a file.
        noun: The name of such a file in messages.
        origin: The position of the document, if it is a part of another file.
        also_for: The framework of ``target``, if all its rules were applied.
        accepted_on: A product on which the table has no error, if ``product`` was only assumed; "" if none.
        product_is_assumed: Whether nothing says what the product is.
    """

    file: str
    format: str | None
    format_reason: str
    product: str
    product_reason: str
    findings: tuple[Diagnostic, ...]
    verdict: Verdict
    document: Document | None = None
    table: RankTable | None = None
    omitted: Mapping[RuleFacts, int] = {}
    verdict_by: str = "HCCL"
    left_out: tuple[str, ...] = ()
    left_out_as: Literal["ignored", "not selected"] = "ignored"
    asked: Callable[[], tuple[RuleFacts, ...]] = tuple
    reader: str = "HCCL"
    noun: str = "table"
    origin: Origin | None = None
    also_for: str = ""
    accepted_on: str = ""
    product_is_assumed: bool = False

    @property
    def counts(self) -> Counter[RuleFacts]:
        """The number of findings of each rule, including findings that are not kept."""
        found = Counter(one.rule for one in self.findings)
        found.update(self.omitted)
        return found

    @property
    def errors(self) -> Sequence[Diagnostic]:
        """The kept findings of severity ``error``; at least one if the table has an error."""
        return [finding for finding in self.findings if finding.rule.severity == "error"]

    @property
    def warnings(self) -> Sequence[Diagnostic]:
        """The kept findings of severity ``warning``."""
        return [finding for finding in self.findings if finding.rule.severity == "warning"]

    @property
    def is_service(self) -> bool:
        """Whether the document is a service table, which HCCL does not read."""
        return self.format == SERVICE

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not self.errors
