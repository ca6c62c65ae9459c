"""Rules on documents of any kind: whether the document is a rank table in a format that the product reads."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from hccl_tools.formats import xllm
from hccl_tools.formats.detection import detect, version_of_content
from hccl_tools.formats.file_kinds import RANK_TABLE
from hccl_tools.notation.number_list import fold
from hccl_tools.rules.registry import COUNTED, Finding, Input, rule
from hccl_tools.table.products import assumed_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from hccl_tools.document.document import Document
    from hccl_tools.document.syntax_problem import JsonProblem
    from hccl_tools.table.products import Product


@rule(
    "HCC109",
    "format-of-another-product",
    "refused",
    code="EI0014",
    source="config.cc:44-59, rank_table_info.cc:26",
)
def format_of_another_product(subject: Input) -> Iterator[Finding]:
    """The product does not read tables of this format.

    Ascend 950 reads only format 2.0, and no other product reads 2.0. The usual cause is a 1.0 table from an
    older machine.

    Base: 2.0 1x2 910a
    Example: /version = "2.0"
    Instead: product a5
    Hint: use --product a5 if the machine is an Ascend 950; otherwise make a new 1.0 table on its hosts, `hccl-tools gen --product 910a`: another version in this file is not enough
    """
    found = detect(subject.value).format if subject.kind is RANK_TABLE else None
    if found is not None and found not in subject.product.formats:
        other = assumed_for(found)
        path = ("version",) if "version" in subject.value else ()
        content = version_of_content(subject.value)
        if content is not None and path and content[0] != found and content[0] in subject.product.formats:
            yield Finding(
                f"{subject.product.title} does not read format {found}, and the content is that of version {content[0]}: "
                f"the file has {content[1]}",
                path,
                f'write "version": "{content[0]}"',
            )
            return
        yield Finding(
            f"{subject.product.title} does not read format {found}",
            path,
            f"{of_the_machine(other, found)}; otherwise {made_on_its_hosts(subject)}",
        )


def of_the_machine(other: Product, table_format: str) -> str:
    """Return what to do if the table is right and the product is not; several products read format 1.0."""
    own = f"use --product {other.name} if the machine is an {other.title}"
    return (
        f"{own}, or the --product of another older machine" if table_format in ("1.0", "group_list") else own
    )


def made_on_its_hosts(subject: Input) -> str:
    """Return how to make a table of the format of the product: the values of one are not in the other."""
    product = subject.product
    merged = ", and `hccl-tools merge` joins those of several hosts" if _servers(subject.value) > 1 else ""
    return (
        f"make a new {product.default_format} table on its hosts, `hccl-tools gen --product {product.name}`{merged}: another version in "
        "this file is not enough"
    )


def _servers(value: Any) -> int:
    """Return the number of servers of a table of any format, as far as its lists show it."""
    lists = [value.get(key) for key in ("server_list", "rank_list")] if isinstance(value, dict) else []
    entries = [one for found in lists if isinstance(found, list) for one in found if isinstance(one, dict)]
    return len({str(one.get("server_id", _node(one))) for one in entries})


def _node(rank: dict[str, Any]) -> Any:
    """Return the node of a rank of a 2.0 table; None if its first layer does not name it."""
    levels = rank.get("level_list")
    first = levels[0] if isinstance(levels, list) and levels else None
    return first.get("net_instance_id") if isinstance(first, dict) else None


@rule("HCC110", "not-a-rank-table", "refused", code="EI0017", source="config.cc:44-59")
def not_a_rank_table(subject: Input) -> Iterator[Finding]:
    """The document is not a rank table.

    Kubernetes objects, lists of hosts and prefill/decode device lists look similar, but HCCL does not read
    them. The rules HCC7 are for service tables (server_group_list).

    Example: text {"host_list": []}
    Instead: table
    Hint: specify a file with server_list, group_list or rank_list
    """
    if not subject.is_json or subject.kind is not RANK_TABLE:
        return
    found = detect(subject.value)
    status = subject.value.get("status") if isinstance(subject.value, dict) else None
    if found.format is None and status == "initializing" and subject.product.loader == "legacy":
        return  # HCC106 reports it: the table gets its list with its status.
    legacy_1_1 = found.heterogeneous and subject.product.loader == "legacy"
    if found.format is None and not legacy_1_1:
        yield _other_documents().finding(subject, found)


@rule(
    "HCC601",
    "duplicate-key",
    "advice",
    stage="load",
    source="topoinfo_ranktableParser.cc:127 (nlohmann::json)",
)
def duplicate_key(subject: Input) -> Iterator[Finding]:
    """An object contains the same key twice; HCCL silently uses the last value.

    Example: text {"version": "1.0", "version": "1.0"}
    Instead: text {"version": "1.0"}
    Hint: delete one of the two keys
    """
    if subject.document is None:
        return
    if subject.document.duplicates:
        yield from _other_documents().doubled_keys.findings(subject, subject.document)
    yield from repeat(COUNTED, subject.document.duplicate_count - len(subject.document.duplicates))


def _is_entry(subject: Input) -> bool:
    """Return whether the file has entries of a table alone, all of which HCC110 reports."""
    found = _other_documents().bare_entries.of_entries(subject.value, subject.document)
    return found is not None


@rule("HCC602", "ignored-text", "advice", stage="load", source="topoinfo_ranktableParser.cc:127 (operator>>)")
def ignored_text(subject: Input) -> Iterator[Finding]:
    """Text follows the closing brace of the table; HCCL ignores it.

    Example: text {"version": "1.0"} {"version": "1.0"}
    Instead: text {"version": "1.0"}
    Hint: delete the text
    """
    if subject.product.loader == "legacy" and subject.document is not None and type(subject.value) is dict:
        offset = subject.document.trailing
        if offset is not None and not _is_entry(subject):
            yield text_after(
                subject.document,
                subject.product,
                offset,
                "HCCL ignores the text after the table",
                "delete the text",
            )


@rule(
    "HCC660",
    "byte-order-mark",
    "advice",
    stage="load",
    source="nlohmann/json 3.11.2, lexer::skip_bom; Python's json.load",
)
def byte_order_mark(subject: Input) -> Iterator[Finding]:
    """The file begins with a byte order mark, which HCCL skips and Python's json module refuses.

    Editors of Windows and Out-File of PowerShell write it. A program that reads the table itself, as training scripts in
    Python do, stops with "Unexpected UTF-8 BOM".

    Example: marked
    Instead: table
    Hint: save it as UTF-8 without a byte order mark; `validate --fix` does
    """
    if subject.document is not None and subject.document.has_mark and type(subject.value) is dict:
        yield Finding(
            "the file begins with a byte order mark, which Python's json module refuses",
            hint="save it as UTF-8 without a byte order mark; `validate --fix` does",
            offset=0,
        )


def text_after(document: Document, product: Product, offset: int, message: str, hint: str) -> Finding:
    """Return the finding on text after the table; see ``other_documents.text_after``."""
    finding: Finding = _other_documents().text_after(document, product, offset, message, hint)
    return finding


def explained(document: Document) -> JsonProblem | None:
    """Return why a document is not valid JSON; see ``explanation.explained``."""
    problem: JsonProblem | None = _other_documents().explanation.explained(document)
    return problem


def _other_documents() -> ModuleType:
    """Load the module on documents that are not a table, and with it the explanation of broken JSON."""
    from hccl_tools.rules import other_documents  # noqa: PLC0415  (20 ms; only where something is wrong)

    return other_documents


@rule(
    "HCC661",
    "xllm-groups",
    "advice",
    source="xllm collective_communicator.cpp:57-130, npu_rank_table_env.cpp",
)
def xllm_groups(subject: Input) -> Iterator[Finding]:
    """A group of group_list has a server_list: xLLM finds the hosts of ranks there, but HCCL does not read it.

    xLLM searches server_list first, then the server_list of each group, and hands the same file to HCCL by
    RANK_TABLE_FILE. No HCCL format has both lists.

    Base: 1.0
    Example: /group_list = [{"server_list": [{"server_id": "10.0.0.2", "device": [{"device_id": "0", "rank_id": "2"}]}]}]
    Instead: table
    Hint: list all servers in server_list; `hccl-tools convert FILE --to 1.0` writes this table
    """
    if not isinstance(subject.value, dict) or "group_list" not in subject.value:
        return
    if xllm.is_mixture(subject.value):
        by_hccl, by_xllm = (
            f"ranks {fold(sorted(one))}" if one else "no rank" for one in xllm.ranks(subject.value)
        )
        yield Finding(
            f"xLLM finds {by_xllm} in server_list and group_list; HCCL reads {by_hccl}",
            ("group_list",),
            "list all servers in server_list; `hccl-tools convert FILE --to 1.0` writes this table",
        )
