"""Rules on a document of any kind: can HCCL load it, and is it a rank table at all?"""

from __future__ import annotations

import json
from itertools import repeat
from os.path import abspath, realpath
from typing import TYPE_CHECKING

from hccl_tools.formats.detection import detect
from hccl_tools.products import DEFAULT_FOR_FORMAT, PRODUCTS
from hccl_tools.rules import job_variables
from hccl_tools.rules.registry import COUNTED, Finding, Subject, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

#: hccl_common.h:83 STRING_MAX_LENGTH: what HCCL makes of the file, without blanks, may have 40 MiB.
LARGEST_TEXT = 40 * 1024 * 1024
_SUFFIX = ".json"


@rule(
    "HCC101", "broken-json", "refused", code="EI0004", stage="load", source="topoinfo_ranktableParser.cc:127"
)
def broken_json(subject: Subject) -> Iterator[Finding]:
    """The file holds no JSON that HCCL's parser takes.

    Comments, trailing commas, single quotes and NaN are no JSON, although guides print tables with them.
    HCCL stops with EI0004 and a sentence that names three causes at once: path, permission, format.

    Example: text {"version": "1.0",}
    Instead: text {"version": "1.0"}
    Hint: remove the comma
    """
    if subject.document is not None and (problem := subject.document.problem) is not None:
        yield Finding(problem.message, hint=problem.hint, offset=problem.offset)


@rule(
    "HCC102",
    "file-name",
    "refused",
    code="EI0004",
    stage="load",
    source="topoinfo_ranktableParser.cc:50-72, :155",
)
def file_name(subject: Subject) -> Iterator[Finding]:
    """The file's real name does not end in .json, or .json is in its path twice, or is the whole name.

    HCCL follows links first and then looks for the first ".json" in the whole path, folders included: it
    must be the end. A Kubernetes ConfigMap's link to a file without that ending is refused, and so are
    everything below a folder named "jobs.json.d", "table.json.json", and a file named just ".json". Ascend
    950 has no such rule.

    Example: file ranktable.txt
    Instead: file ranktable.json
    Hint: rename the file: HCCL asks for the ending .json
    """
    if subject.path is None or subject.product.loader != "legacy":
        return
    real = realpath(subject.path)
    folder, _, name = real.rpartition("/")
    if real.find(_SUFFIX) + len(_SUFFIX) == len(real) and name != _SUFFIX:
        return
    hint = "rename the file: HCCL asks for the ending .json"
    if not name.endswith(_SUFFIX):
        is_itself = real == abspath(subject.path)  # noqa: PTH100  (a name, links and all)
        what = f'"{subject.path}"' if is_itself else f'"{real}", which the file really is,'
        yield Finding(f"{what} does not end in .json", hint=hint)
    elif _SUFFIX in folder:
        first = folder.index(_SUFFIX)
        folder = real[: real.index("/", first)]
        yield Finding(f'".json" is part of the folder name "{folder}"', hint="move the table elsewhere")
    elif name == _SUFFIX:
        yield Finding('the file has no name before ".json"', hint="rename the file: table.json")
    else:
        yield Finding(f'".json" is in the name "{name}" twice', hint="rename the file: .json only at its end")


@rule(
    "HCC103",
    "too-large",
    "refused",
    code="EI0004",
    stage="load",
    source="param_check.cc:75, hccl_common.h:83",
)
def too_large(subject: Subject) -> Iterator[Finding]:
    """The table has more than 40 MiB of text, blanks not counted.

    Example: size 41943041
    Instead: size 41943040
    Hint: leave out keys that HCCL does not read, or split the job
    """
    if subject.product.loader != "legacy" or subject.document is None or subject.document.problem is not None:
        return
    if len(subject.document.data) <= LARGEST_TEXT:
        return
    size = len(json.dumps(subject.value, separators=(",", ":"), ensure_ascii=False).encode())
    if size > LARGEST_TEXT:
        yield Finding(
            f"the table has {size:,} bytes without blanks, HCCL takes {LARGEST_TEXT:,}",
            hint="leave out keys that HCCL does not read, or split the job",
        )


@rule("HCC104", "text-behind-the-table", "refused", stage="load", source="param_check_v2.cc:427")
def text_behind_the_table(subject: Subject) -> Iterator[Finding]:
    """Text follows the table's closing brace, which the loader of Ascend 950 refuses.

    Base: a5
    Example: text {"version": "2.0"} end
    Instead: text {"version": "2.0"}
    Hint: delete what follows the closing brace
    """
    if subject.product.loader != "legacy" and subject.document is not None:
        offset = subject.document.trailing
        # Its parser takes a NUL byte for the end of the file.
        if offset is not None and subject.document.data[offset] != 0:
            yield Finding(
                "text follows the table", hint="delete what follows the closing brace", offset=offset
            )


@rule(
    "HCC106",
    "status-not-completed",
    "hangs",
    code="EI0004",
    stage="load",
    source="topoinfo_ranktableParser.cc:178",
)
def status_not_completed(subject: Subject) -> Iterator[Finding]:
    """The status is not "completed", so HCCL waits.

    HCCL reads the file anew every second, for 30 minutes, and then gives up with a time-out. That is meant
    for cluster managers that fill the table in ("initializing"), but a misspelt "Completed" waits as well.

    Example: /status = "Completed"
    Instead: /status = "completed"
    Hint: write "status": "completed"
    """
    value = subject.value
    if subject.product.loader != "legacy" or not isinstance(value, dict):
        return
    status = value.get("status")
    if isinstance(status, str) and status != "completed":
        waiting = status == "initializing"
        yield Finding(
            f'status is "{status}", so HCCL waits 30 minutes for "completed"',
            ("status",),
            "wait for the cluster manager to complete the table; `--wait 600` does"
            if waiting
            else 'write "status": "completed"',
        )


@rule(
    "HCC109",
    "format-of-another-product",
    "refused",
    code="EI0014",
    source="config.cc:44-59, rank_table_info.cc:26",
)
def format_of_another_product(subject: Subject) -> Iterator[Finding]:
    """The product does not take tables of this format.

    Ascend 950 takes 2.0 only, and no other product takes 2.0. A 1.0 table left over from an older machine
    is the usual cause.

    Base: 2.0 1x2 910a
    Example: /version = "2.0"
    Instead: product a5
    Hint: use --product a5 if the machine is an Ascend 950; otherwise make a 1.0 table
    """
    found = detect(subject.value).format
    if found is not None and found not in subject.product.formats:
        other = PRODUCTS[DEFAULT_FOR_FORMAT[found]]
        path = ("version",) if "version" in subject.value else ()
        yield Finding(
            f"{subject.product.title} does not take format {found}",
            path,
            f"use --product {other.name} if the machine is an {other.title}; "
            f"otherwise make a {subject.product.default_format} table",
        )


@rule("HCC110", "not-a-rank-table", "refused", code="EI0017", source="config.cc:44-59")
def not_a_rank_table(subject: Subject) -> Iterator[Finding]:
    """The document is something else than a rank table.

    Service tables of MindIE, Kubernetes objects, lists of hosts and prefill/decode device lists look alike
    and are no rank tables for HCCL.

    Example: text {"server_group_list": []}
    Instead: table
    Hint: give the file with server_list, group_list or rank_list
    """
    if subject.document is not None and subject.document.problem is not None:
        return
    found = detect(subject.value)
    legacy_1_1 = found.heterogeneous and subject.product.loader == "legacy"
    if found.format is None and not legacy_1_1:
        is_wrapped = isinstance(subject.value, dict) and "apiVersion" in subject.value
        from hccl_tools.json_problem import KUBERNETES_HINT  # noqa: PLC0415  (only where something is wrong)

        hint = KUBERNETES_HINT if is_wrapped else "give the file with server_list, group_list or rank_list"
        yield Finding(f"not a rank table: {found.reason}", hint=hint)


@rule(
    "HCC116",
    "job-variable",
    "refused",
    code="EI0001",
    stage="load",
    source="externalinput.cc, ParseIntraLinkType, ParseOpExpansion, ParseRetryEnable",
)
def job_variable(subject: Subject) -> Iterator[Finding]:
    """One of HCCL's environment variables has a value with which HCCL refuses every job.

    HCCL reads its variables before the table. HCCL_INTRA_ROCE_ENABLE=0 needs HCCL_INTRA_PCIE_ENABLE=1 beside
    it, and an empty variable is refused, not ignored (only HCCL_OP_RETRY_ENABLE may be empty).

    Example: env HCCL_INTRA_ROCE_ENABLE=0
    Instead: env HCCL_INTRA_ROCE_ENABLE=1
    Hint: set HCCL_INTRA_PCIE_ENABLE=1, or unset HCCL_INTRA_ROCE_ENABLE
    """
    if subject.product.loader == "legacy":
        for problem in job_variables.problems(subject.env):
            yield Finding(f"{problem.message}: HCCL refuses every job", hint=problem.hint)


@rule("HCC601", "duplicate-key", "advice", source="topoinfo_ranktableParser.cc:127 (nlohmann::json)")
def duplicate_key(subject: Subject) -> Iterator[Finding]:
    """A key stands twice in one object; HCCL takes the last without a word.

    Example: text {"version": "1.0", "version": "1.0"}
    Instead: text {"version": "1.0"}
    Hint: delete one of the two
    """
    if subject.document is None:
        return
    for duplicate in subject.document.duplicates:
        key = duplicate.path[-1]
        yield Finding(
            f'key "{key}" stands twice in one object; the last counts',
            duplicate.path,
            "delete one of the two",
            at_key=True,
        )
    yield from repeat(COUNTED, subject.document.duplicate_count - len(subject.document.duplicates))


@rule("HCC602", "ignored-text", "advice", source="topoinfo_ranktableParser.cc:127 (operator>>)")
def ignored_text(subject: Subject) -> Iterator[Finding]:
    """Text follows the table's closing brace; HCCL ignores it.

    Example: text {"version": "1.0"} {"version": "1.0"}
    Instead: text {"version": "1.0"}
    Hint: delete it
    """
    if subject.product.loader == "legacy" and subject.document is not None:
        offset = subject.document.trailing
        if offset is not None:
            yield Finding("HCCL ignores what follows the table", hint="delete it", offset=offset)
