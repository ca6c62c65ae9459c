"""Rules on what HCCL loads: the name, size and JSON of the file, and the job's environment variables."""

from __future__ import annotations

from os.path import abspath
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.document import links
from hccl_tools.notation import placeholders
from hccl_tools.rules import compact_size, job_variables, right_texts
from hccl_tools.rules.document import explained, text_after
from hccl_tools.rules.registry import Finding, Input, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.document.syntax_problem import JsonProblem

#: hccl_common.h:83 STRING_MAX_LENGTH: the limit on the table as HCCL serialises it, without blanks.
LARGEST_TEXT = 40 * 1024 * 1024
#: What to do about a table that its writer has not completed.
_WAITING = (
    "do not write it yourself: wait, for example with `hccl-tools validate --wait 600 FILE` where the program writes it, or fetch a copy again, and look at the job's pods with `kubectl get "
    'pods` and at the log of the program; only in a table that you wrote yourself, write "status": "completed"'
)
_UNFILLED = (
    "do not wait for it: fill in each placeholder with the value of its host, or make the table again with the program that fills in the "
    'template, and then write "status": "completed"'
)
_SUFFIX = ".json"
#: Levels of nesting that HCCL's parser survives, observed with a stack of 8 MiB.
_LEVELS = {"legacy": 87_000, "a5": 20_000}


@rule(
    "HCC101", "broken-json", "refused", code="EI0004", stage="load", source="topoinfo_ranktableParser.cc:127"
)
def broken_json(subject: Input) -> Iterator[Finding]:
    """The file is not JSON that HCCL's parser accepts.

    Comments, trailing commas, single quotes and NaN are not valid JSON, although some guides print tables
    with them. HCCL stops with EI0004 and a message that lists three possible causes: path, permission,
    format.

    Example: text {"version": "1.0",}
    Instead: text {"version": "1.0"}
    Hint: remove the comma
    """
    if subject.not_json is not None:
        yield subject.not_json
    problem = _problem(subject)
    if problem is not None and problem.kind != "nesting":
        yield Finding(problem.message, hint=problem.hint, offset=problem.offset)


def _problem(subject: Input) -> JsonProblem | None:
    """Return why a document is not valid JSON, in the words of an explanation; None for JSON."""
    if subject.document is None or subject.document.problem is None:
        return None
    return explained(subject.document)


@rule(
    "HCC102",
    "file-name",
    "refused",
    code="EI0004",
    stage="load",
    source="topoinfo_ranktableParser.cc:50-72, :155",
)
def file_name(subject: Input) -> Iterator[Finding]:
    """The real path of the file does not end in .json or contains .json twice, or the file name is ".json".

    HCCL resolves symbolic links and then requires that the first ".json" in the path, including folders, is at
    the end of the path. It refuses a link from a Kubernetes ConfigMap to a file without that ending, every file below a
    folder such as "jobs.json.d", "table.json.json", and a file named ".json". Ascend 950 does not check the
    name. Of a file that is not a table at all, such as a script, the name is not reported.

    Example: file ranktable.txt
    Instead: file ranktable.json
    Hint: rename the file: HCCL requires the ending .json
    """
    if subject.path is None or subject.product.loader != "legacy":
        return
    real = links.real_path(subject.path)
    folder, _, name = real.rpartition("/")
    if (real.find(_SUFFIX) + len(_SUFFIX) == len(real) and name != _SUFFIX) or _is_other_file(subject):
        return
    hint = "rename the file: HCCL requires the ending .json"
    if not name.endswith(_SUFFIX):
        is_itself = real == abspath(subject.path)  # noqa: PTH100  (do not resolve links)
        what = f'"{subject.path}"' if is_itself else f'"{real}", the target of the link,'
        yield Finding(f"{what} does not end in .json", hint=hint)
    elif _SUFFIX in folder:
        first = folder.index(_SUFFIX)
        folder = real[: real.index("/", first)]
        yield Finding(
            f'".json" is part of the folder name "{folder}"', hint="move the table to another folder"
        )
    elif name == _SUFFIX:
        yield Finding('the file has no name before ".json"', hint="rename the file: table.json")
    else:
        yield Finding(
            f'"{name}" contains ".json" twice', hint="rename the file so that .json is only at its end"
        )


def _is_other_file(subject: Input) -> bool:
    """Return whether the file is of another kind, such as a script, which has its own name for good reason."""
    problem = _problem(subject)
    return problem is not None and problem.kind in {"binary", "other file"}


@rule(
    "HCC103",
    "too-large",
    "refused",
    code="EI0004",
    stage="load",
    source="param_check.cc:75, hccl_common.h:83",
)
def too_large(subject: Input) -> Iterator[Finding]:
    """The table is larger than 40 MiB as HCCL serialises it: without blanks, and 1e5 as 100000.0.

    Example: size 41943041
    Instead: size 41943040
    Hint: leave out keys that HCCL does not read, or split the job
    """
    document = subject.document
    if subject.product.loader != "legacy" or document is None or document.problem is not None:
        return
    if not compact_size.may_exceed(document.data, LARGEST_TEXT):
        return
    size = compact_size.of(subject.value)
    if size > LARGEST_TEXT:
        yield Finding(
            f"the table has {size:,} bytes as HCCL serialises it; the limit is {LARGEST_TEXT:,}",
            hint="leave out keys that HCCL does not read, or split the job",
        )


@rule(
    "HCC117",
    "nested-too-deep",
    "refused",
    stage="load",
    source="observed: crash of the parser with a stack of 8 MiB",
)
def nested_too_deep(subject: Input) -> Iterator[Finding]:
    """Objects and lists are nested so deeply that HCCL's parser overflows its stack.

    With the usual stack of 8 MiB, the parser reads about 87,000 levels (20,000 on Ascend 950). HCCL has
    no limit of its own, so the report attributes the verdict to hccl-tools.

    Base: 1.0
    Example: levels 87001
    Instead: levels 87000
    Hint: specify a rank table; rank tables have at most 8 levels
    """
    document = subject.document
    if document is None:
        return
    if document.problem is not None and document.problem.kind == "nesting":
        yield Finding(document.problem.message, hint=document.problem.hint, offset=document.problem.offset)
    elif document.depth > (levels := _LEVELS[subject.product.loader]):
        yield Finding(
            f"nested {document.depth:,} levels deep; HCCL reads about {levels:,}, depending on its stack",
            hint="specify a rank table; rank tables have at most 8 levels",
        )


@rule("HCC104", "text-behind-the-table", "refused", stage="load", source="param_check_v2.cc:427")
def text_behind_the_table(subject: Input) -> Iterator[Finding]:
    """Text follows the closing brace of the table, which the loader of Ascend 950 refuses.

    Base: a5
    Example: text {"version": "2.0"} end
    Instead: text {"version": "2.0"}
    Hint: delete the text after the closing brace
    """
    if subject.product.loader != "legacy" and subject.document is not None:
        offset = subject.document.trailing
        # The parser of Ascend 950 treats a NUL byte as the end of the file.
        if offset is not None and subject.document.data[offset] != 0:
            hint = "delete the text after the closing brace"
            yield text_after(subject.document, subject.product, offset, "text follows the table", hint)


@rule(
    "HCC106",
    "status-not-completed",
    "hangs",
    code="EI0004",
    stage="load",
    source="topoinfo_ranktableParser.cc:178",
)
def status_not_completed(subject: Input) -> Iterator[Finding]:
    """The status is not "completed", so HCCL waits.

    HCCL reads the file again every second and times out after 30 minutes. This is for cluster managers that
    complete the table later ("initializing"), but HCCL also waits for a misspelt "Completed".

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
        finding = Finding(
            f'status is "{status}", so HCCL waits 30 minutes for "completed"',
            ("status",),
            _WAITING if waiting else 'write "status": "completed"',
        )
        if waiting and (unfilled := placeholders.first_in(subject.value)) is not None:
            finding = finding._replace(
                message=f'status is "{status}", and the file has placeholders of a template such as {quoted(unfilled)}: no program completes '
                'it, and HCCL waits 30 minutes for "completed"',
                hint=_UNFILLED,
            )
        elif waiting:
            finding = finding._replace(
                message='status is "initializing": the table is not complete, because the program that writes it '
                "(hccl-controller or ascend-operator) still waits for pods; HCCL waits 30 minutes for "
                '"completed"'
            )
        yield right_texts.named(finding, status, "completed".__eq__)


@rule(
    "HCC116",
    "job-variable",
    "refused",
    code="EI0001",
    stage="load",
    source="externalinput.cc, env_config.cc, alg_env_config.cc; for Ascend 950 base_config_legacy.h, env_func.cc",
)
def job_variable(subject: Input) -> Iterator[Finding]:
    """An environment variable of HCCL has an invalid value, so HCCL refuses every job.

    HCCL reads its variables before the table. HCCL_INTRA_ROCE_ENABLE=0 also needs HCCL_INTRA_PCIE_ENABLE=1.
    HCCL refuses most variables if they are empty; Ascend 950 reads an empty variable as not set.

    Example: env HCCL_INTRA_ROCE_ENABLE=0
    Instead: env HCCL_INTRA_ROCE_ENABLE=1
    Hint: set HCCL_INTRA_PCIE_ENABLE=1, or unset HCCL_INTRA_ROCE_ENABLE
    """
    for problem in job_variables.problems(subject.env, subject.product) if subject.env else ():
        yield Finding(f"{problem.message}; HCCL refuses every job", hint=problem.hint)
