"""Rules on documents of any kind: whether the document is a rank table in a format that the product reads."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from hccl_tools.formats import xllm
from hccl_tools.formats.detection import detect, version_of_content
from hccl_tools.formats.file_kinds import RANK_TABLE
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import MERGE, and_more
from hccl_tools.rules import bare_entries, flat_lists
from hccl_tools.rules.registry import COUNTED, Finding, Input, rule
from hccl_tools.table.products import assumed_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.document.document import Document
    from hccl_tools.formats.detection import Detection
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
        if isinstance(subject.value, dict) and "apiVersion" in subject.value:
            from hccl_tools.formats.kubernetes.tables import explain  # noqa: PLC0415  (3 ms; only where something is wrong)

            reason, path, hint = explain(subject.value, is_yaml=subject.document is None)
            yield Finding(f"not a rank table: {reason}", path, hint)
            return
        yield _other_document(subject, found)


def _other_document(subject: Input, found: Detection) -> Finding:
    """Return the finding on a document that is not an object: a file of another kind, or tables in a list or string."""
    from hccl_tools.document import explanation  # noqa: PLC0415  (18 ms; only where something is wrong)

    value, document = subject.value, subject.document
    if isinstance(value, dict) and (key := _key_of_table(value)) is not None:
        return Finding(
            f'not a rank table: the table is the value of "{key}"',
            (key,),
            f'remove {{ "{key}": before it, and the last }}',
        )
    if isinstance(value, dict) and value and not any(key.isascii() for key in value):
        hint = "HCCL reads English keys: copy the table from a page that the browser has not translated"
        return Finding(f"not a rank table: its keys are translated; {found.reason}", hint=hint)
    if (bare := bare_entries.of_entries(value, document)) is not None:
        return Finding(f"not a rank table: {bare.message}", hint=bare.hint)
    if (wrapped := bare_entries.of_wrapped(value)) is not None:
        return Finding(f"not a rank table: {wrapped[1].message}", wrapped[0], wrapped[1].hint)
    if isinstance(value, dict) or document is None:
        return Finding(f"not a rank table: {found.reason}", hint=found.hint)
    if isinstance(value, str) and explanation.is_headless(document):
        return Finding(
            "not a rank table: the beginning of the file is missing",
            hint="copy the complete file again, or make the table with `hccl-tools gen`",
        )
    if (counted := explanation.of_numbered(document)) is not None:
        return Finding(counted.message, hint=counted.hint)
    if (edit := explanation.of_rest(document)) is not None:
        return Finding(
            f"not a rank table: {edit.message}", hint=edit.hint, offset=document.byte_at(edit.place)
        )
    if (other := explanation.of_scalar(document)) is not None:
        return Finding(other.message, hint=other.hint)
    if isinstance(value, list) and value and all(detect(one).format for one in value):
        if len(value) == 1:
            return Finding(
                "not a rank table: it is a list with a table in it", hint="remove the outer [ and ]"
            )
        return Finding(
            f"not a rank table: it is a list of {len(value)} tables",
            hint=f"save each table in a file of its own; `hccl-tools merge {_file_names(len(value))}` joins them",
        )
    if isinstance(value, str) and value.lstrip().startswith("{"):
        program = "import json, sys; print(json.load(sys.stdin))"
        return Finding(
            "not a rank table: it is a table in a string",
            hint=f"take it out: python3 -c '{program}' < OLD > NEW",
        )
    return _other_value(value, found)


def _other_value(value: Any, found: Detection) -> Finding:
    """Return the finding on a value that has no table in it."""
    if (flat := flat_lists.of_devices(value)) is not None:
        return Finding(flat.message, hint=flat.hint)
    return Finding(f"not a rank table: {found.reason}", hint=found.hint)


def _key_of_table(value: dict[str, Any]) -> str | None:
    """Return the only key of an object, if its value is a table."""
    if len(value) != 1:
        return None
    ((key, inner),) = value.items()
    return key if isinstance(inner, dict) and detect(inner).format is not None else None


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
        from hccl_tools.rules import doubled_keys  # noqa: PLC0415  (8 ms; only for a key that an object has twice)

        yield from doubled_keys.findings(subject, subject.document)
    yield from repeat(COUNTED, subject.document.duplicate_count - len(subject.document.duplicates))


#: Lists that only tables have, and the number of bytes of the ignored text in which they are searched.
_LISTS, _BEGINNING = (b'"server_list"', b'"rank_list"', b'"group_list"'), 4096


def _is_entry(subject: Input) -> bool:
    """Return whether the file has entries of a table alone, all of which HCC110 reports."""
    return bare_entries.of_entries(subject.value, subject.document) is not None


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
    """Return the finding on text after the table: a second table, a part of the first, or other text."""
    from hccl_tools.document import explanation, places_in_text  # noqa: PLC0415  (17 ms; only where something is wrong)

    if document.data[offset] == 0:
        wide = places_in_text.wide_part(document.data.decode("latin-1"), offset)
        said, remedy = wide or ("there are zero bytes", "delete them: tr -d '\\000' < OLD > NEW")
        return Finding(f"{message}: {said}", hint=remedy, offset=offset)
    if (counted := explanation.of_numbered(document)) is not None:
        return Finding(counted.message, hint=counted.hint)
    beginning = document.data[offset : offset + _BEGINNING].lstrip(b", \t\r\n")
    if beginning.startswith(b"{") and any(key in beginning for key in _LISTS):
        return _several_tables(document, product, document.data.index(b"{", offset))
    if (edit := explanation.of_rest(document)) is not None:
        at = document.byte_at(edit.place)
        return Finding(f"{message}: {edit.message}", hint=edit.hint, offset=at)
    return Finding(message, hint=hint, offset=offset)


#: The most tables of a file that are searched for, and the names of as many files in a command.
_MOST_TABLES, _FILES = 64, "ABCDEFGH"


def _several_tables(document: Document, product: Product, start: int) -> Finding:
    """Return the finding on a file with tables one after the other; the second begins at an offset."""
    starts = _starts(document, start)
    number = len(starts) + 1
    lines = [document.position(at) for at in starts]
    places = [str(one.line) if one.column == 1 else f"{one.line}, character {one.column}" for one in lines]
    if number == 2:
        are, others, begin = "two", "the second", f"which begins on line {places[0]}"
    else:
        are, others = str(number), "the others"
        begin = f"which begin on lines {and_more(places, 8)}"
    reads = f"starts only the ranks of the first, and ignores {others}"
    if product.loader != "legacy":
        reads = f"refuses {others}"
    files = _file_names(number)
    each = (
        f"save each of the {are} tables in a file of its own"
        if number > 2
        else "save each table in a file of its own"
    )
    return Finding(
        f"there are {are} tables in this file: HCCL {reads}, {begin}",
        hint=f"{each}; {MERGE.format(files)}",
        offset=start,
    )


def _file_names(number: int) -> str:
    """Return as many names of files as a hint shows."""
    return " ".join(_FILES[:number]) + (" ..." if number > len(_FILES) else "")


def _starts(document: Document, start: int) -> list[int]:
    """Return the offsets of the objects that follow each other from one offset on."""
    from hccl_tools.document import strict_parser, syntax_problem  # noqa: PLC0415  (3 ms; a second table follows)

    text = document.text
    if text is None:
        return [start]
    found, at = [start], document.character_at(start)
    rest = text[at:]
    while len(found) < _MOST_TABLES:
        reader = strict_parser.Reader(rest, 0)
        try:
            reader.read()
        except syntax_problem.JsonError:
            break
        after = rest[reader.end :].lstrip(", \t\r\n")
        if not after.startswith("{"):
            break
        at += len(rest) - len(after)
        rest = after
        found.append(document.byte_at(at))
    return found


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
