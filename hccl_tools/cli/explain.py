"""``hccl-tools explain``: from the logs of a failed job, or a code, to the cause and what to do."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import click

from hccl_tools import load_part
from hccl_tools.cli import language, options
from hccl_tools.cli.rules import print_found, print_page, with_number
from hccl_tools.cli.site_options import from_site
from hccl_tools.cli.values import Choice
from hccl_tools.document import links
from hccl_tools.errors import UsageError
from hccl_tools.explain import brief, explaining, remote_logs, sources
from hccl_tools.explain.answer import as_text
from hccl_tools.explain.as_json import as_json
from hccl_tools.explain.knowledge.loading import load
from hccl_tools.explain.reader import STDIN
from hccl_tools.explain.runs import read_parts
from hccl_tools.host.site_defaults import LOG_DIR, SSH
from hccl_tools.launch.planning import program_check
from hccl_tools.notation.phrases import count, operand, time_span
from hccl_tools.notation.printable import show_status, tell
from hccl_tools.processes import run_files
from hccl_tools.runs import files, index, names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.explain.answer import Answer
    from hccl_tools.explain.knowledge.message import Message
    from hccl_tools.explain.runs import RunLogs
    from hccl_tools.runs.index import Run

#: What looks like a code: EI0006, E19999, HCM207, HCC203, HCD301, 11, 507048.
_CODE = re.compile(r"(?:E[A-Z]\d{4}|E\d{5}|HCM\d{1,3}|HC[CD]\d{1,3}|\d{1,2}|\d{6})", re.IGNORECASE)
#: Entries of a folder among which a log directory is looked for.
_MOST_FOLDERS = 1000
_EXAMPLES = """\
  hccl-tools explain                         the latest run
  hccl-tools explain 20261121-101530         a run, as `jobs` lists it
  hccl-tools explain ~/ascend/log screen.txt plogs and what was on the screen
  hccl-tools explain logs/ --rank-table t.json  with the line of the table
  hccl-tools explain EI0006                  a code: EI0006, 11, 507048, HCC203
  hccl-tools explain "shared memory"         messages and rules with these words
  kubectl logs pod | hccl-tools explain -    standard input
"""


@options.command("explain", epilog=_EXAMPLES)
@click.argument("what", nargs=-1, metavar="[RUN | PATH... | CODE | WORD... | -]")
@click.option(
    "-f", "--format", "output", type=Choice(["text", "json"]), default="text", help="Output format."
)
@click.option(
    "--rank-table",
    metavar="FILE",
    help="The rank table of the job. Default: the run's own copy, else what the logs say.",
)
@click.option("--knowledge", metavar="FILE", help="JSON with messages of your own, which come first.")
@click.option(
    "--bundle",
    metavar="FILE.tar.gz",
    help="Also pack logs, table, plan, answer and versions for a bug report; secrets are masked.",
)
@click.option("--anonymise", is_flag=True, help="Replace the names and addresses of hosts in the bundle.")
@click.option("--exit-code", "strict", is_flag=True, help="Return exit code 1 if a cause is found.")
@click.option(
    "--log-dir", default="log", show_default=True, metavar="DIR", help="The log directory of runs.",
    show_envvar=True, **from_site(LOG_DIR),
)  # fmt: skip
@click.option(
    "--ssh",
    "typed_ssh",
    metavar="SSH",
    show_envvar=True,
    **from_site(SSH),
    help="The ssh for the other hosts of a run. Default: Open MPI's setting, else ssh.",
)
@options.color
@language.lang
@click.option("--serve", is_flag=True, hidden=True)  # Set for other hosts.
@click.pass_context
def command(
    ctx: click.Context,
    *,
    what: tuple[str, ...],
    output: str,
    rank_table: str | None,
    knowledge: str | None,
    bundle: str | None,
    anonymise: bool,
    strict: bool,
    log_dir: str,
    typed_ssh: str | None,
    color: bool,
    chinese: language.Chinese,
    serve: bool,
) -> None:
    """Explain why a job failed, from its logs: the cause, its rank and device, and what to do.

    The command reads a run of `launch`, files, folders (CANN's plogs, logs of ranks, MindSpore, torch and
    the launchers, text from the screen, gzip), standard input, or explains a code, or lists the messages
    that have the words. A path that exists is read, also if its name is that of a code.
    """
    if serve:
        remote_logs.serve(what[0])
        return
    if anonymise and bundle is None:
        raise UsageError("--anonymise needs --bundle", hint="add --bundle FILE.tar.gz")
    if bundle is not None and os.path.lexists(bundle):
        raise UsageError(f"{bundle} exists already", hint="choose another name")
    words = [word for word in what if word.strip()]
    if len(words) == 1 and not os.path.lexists(words[0]) and _CODE.fullmatch(words[0].strip()):
        _print_code(words[0].strip(), output, chinese)
        return
    if len(words) > 1 and all(map(_CODE.fullmatch, words)) and not any(map(os.path.lexists, words)):
        raise UsageError("one code at a time is explained", hint=f"type `hccl-tools explain {words[0]}`")
    if _are_words(words, log_dir) and _print_found(words, output, chinese):
        return
    answer = _answer(words, log_dir, rank_table, knowledge, typed_ssh)
    if len(words) == 1 and not answer.causes and not answer.run_dir:
        _name_the_run(words[0])

    ctx.call_on_close(run_files.release_logs)
    if output == "json":
        options.write([json.dumps(as_json(answer), indent=2), "\n"])
    else:
        options.write(as_text(answer, color=color, chinese=chinese))
    if bundle is not None:
        _pack(bundle, answer, rank_table, words, anonymise=anonymise)
    found = bool(answer.causes)
    ctx.exit(int(found) if strict else int(not found))


def _print_code(code: str, output: str, chinese: language.Chinese) -> None:
    if output == "json":
        raise UsageError("a code is explained as text only", hint="leave out --format json")
    print_page(code, chinese)


def _are_words(words: list[str], log_dir: str) -> bool:
    """Return whether the arguments name neither a file, nor standard input, nor a run."""
    if not words or any(word == "-" or os.path.lexists(word) or _looks_like_a_path(word) for word in words):
        return False
    try:
        index.resolve(words[0], log_dir)
    except index.NoSuchRunError:
        return True
    return len(words) > 1


def _looks_like_a_path(word: str) -> bool:
    return os.sep in word and not any(letter.isspace() for letter in word)


def _print_found(words: list[str], output: str, chinese: language.Chinese) -> bool:
    """Print the messages and rules that have all words; return whether there are any."""
    if output == "json" or not print_found(" ".join(words), chinese):
        return False
    shown = " ".join(words)
    tell(f'note: "{shown}" is neither a file nor a run; these messages and rules have its words')
    return True


def _answer(
    words: list[str], log_dir: str, table: str | None, knowledge: str | None, typed_ssh: str | None
) -> Answer:
    words = _of_one_job(words)
    run = _run(words, log_dir)
    extra = _own(knowledge)
    if run is not None:
        answer = explaining.explain(
            [],
            run=run.path,
            run_name=words[0] if words else "latest",
            table=table,
            extra=extra,
            fetch=partial(remote_logs.fetch, run, typed_ssh=typed_ssh),
        )
        return answer._replace(unfinished=_unfinished(run))
    if STDIN in words and sys.stdin.isatty():
        tell("note: reading standard input, up to Ctrl-D")
    if len(words) == 1:
        _refuse_other_file(words[0])
    if len(words) > 1:
        _refuse_runs(words[0], log_dir)
    typed_runs = [word for word in words if _is_run(word)]
    of_one_job = _parts(typed_runs, log_dir)
    logs, notes = sources.collect(word for word in words if of_one_job is None or word not in typed_runs)
    return explaining.explain(
        logs, notes=notes, parts=of_one_job, table=table, extra=extra, progress=_progress()
    )


def _parts(typed: list[str], log_dir: str) -> RunLogs | None:
    """Return the logs of run directories; None if there is none, or if they are not those of one job."""
    # Each path means the directory that was found from now on: another user may exchange a folder above it.
    found = [index.resolve(os.path.join(word, ""), log_dir) for word in typed]  # noqa: PTH118
    by_path = {run.path: run for run in found}  # `log/latest` can be one of the others.
    for run in by_path.values():
        if run.user:
            tell(f"run {run.called}:")
    return read_parts(list(by_path)) if by_path else None


def _is_run(path: str) -> bool:
    return files.is_run(links.real_path(path))


def _refuse_runs(word: str, log_dir: str) -> None:
    """Refuse the name of a run in front of other names: runs are explained one by one.

    Raises:
        UsageError: The name is that of a run.
    """
    if os.path.lexists(word) or word == "-":
        return
    try:
        index.resolve(word, log_dir)
    except index.NoSuchRunError:
        return
    raise UsageError("one run at a time is explained", hint=f"type `hccl-tools explain {operand(word)}`")


def _name_the_run(path: str) -> None:
    """Say which run a log without a cause is of: its report tells how the rank ended."""
    run = os.path.dirname(links.real_path(path))  # noqa: PTH120  (not loaded for it)
    if not os.path.isdir(path) and files.is_run(run):  # noqa: PTH112  (not loaded for it)
        command = f"`hccl-tools explain {operand(names.shown(run))}`"
        tell(f"note: {operand(path)} is a log of a run: {command} reads all of it")


def _refuse_other_file(word: str) -> None:
    """Refuse a rank table or a program alone: it has no messages of a job.

    Raises:
        UsageError: The file is one of these.
    """
    if program_check.is_table(word):
        checks = f"`hccl-tools validate {operand(word)}` checks it"
        raise UsageError(f"{word} is a rank table, not a log", hint=checks)
    if word.endswith(".py") and os.path.isfile(word):  # noqa: PTH113  (not loaded for it)
        raise UsageError(
            f"{word} is a program, not a log", hint="`hccl-tools explain` explains the latest run"
        )


def _pack(path: str, answer: Answer, table: str | None, typed: list[str], *, anonymise: bool) -> None:
    run = answer.run_dir
    folders = [] if run else [one for one in typed if os.path.isdir(one)]  # noqa: PTH112  (not loaded for it)
    packed = load_part("explain.bundle").write(
        path, answer, run=run, table=table, folders=folders, anonymise=anonymise
    )
    tell(f"{path}: {len(packed.files)} files; look through it before you pass it on")
    for name, size in packed.files:
        tell(f"  {size:>11,}  {name}")
    if packed.left_out:
        tell("left out:")
    for line in packed.left_out:
        tell(f"  {line}")


def _own(knowledge: str | None) -> list[Message]:
    if knowledge is None:
        return []

    return load(knowledge)


def _run(words: list[str], log_dir: str) -> Run | None:
    """Return the run that the arguments name; None if they name files."""
    if not words or (words[0] in names.NEWEST and len(words) == 1 and not os.path.lexists(words[0])):
        latest = index.resolve(names.LATEST, log_dir)
        if sys.stderr.isatty() or latest.user:
            tell(f"run {latest.called}:")
        return latest
    if len(words) > 1 or words[0] == "-":
        return None
    if os.path.lexists(words[0]) and not _is_run(words[0]):
        return None
    try:
        found = index.resolve(words[0], log_dir)
    except index.NoSuchRunError as error:
        what = f'"{words[0]}" is not a file, a code or a run in {log_dir}'
        if words[0].isdecimal() and (ids := with_number(words[0])):
            hint = f"with this number: {', '.join(ids)}; type `hccl-tools explain {ids[0]}`"
            raise UsageError(what, hint=hint) from error
        raise UsageError(what, hint=f"check the name; {error.hint}") from error
    if found.user:
        tell(f"run {found.called}:")
    return found


def _of_one_job(words: list[str]) -> list[str]:
    """Return the paths with the latest run of a log directory in place of all its runs, which are other jobs.

    Only a log directory has the link to its latest run: in another folder, someone may have collected the
    runs that one job has on several hosts.
    """
    folders = [os.path.dirname(word.rstrip(os.sep)) or "." for word in words]  # noqa: PTH120  (not loaded for it)
    runs = [
        folder for word, folder in zip(words, folders, strict=True) if _is_run(word) and _has_latest(folder)
    ]
    several = {folder for folder, number in Counter(runs).items() if number > 1}
    kept = [word for word, folder in zip(words, folders, strict=True) if folder not in several]
    return [*map(_latest_of, sorted(several)), *(path for word in kept for path in _without_other_runs(word))]


def _without_other_runs(word: str) -> list[str]:
    """Return the latest run of a log directory, or of those in a folder with its other logs, else a path."""
    if not os.path.isdir(word) or _is_run(word):  # noqa: PTH112  (not loaded for it)
        return [word]
    if _has_latest(word):
        return [_latest_of(word)]
    try:
        with os.scandir(word) as entries:
            folders = [one.path for one in islice(entries, _MOST_FOLDERS) if one.is_dir()]
    except OSError:
        return [word]
    inside = [one for one in folders if _has_latest(one)]
    if not inside:
        return [word]
    # The names of runs begin with their time.
    newest = max(inside, key=_name_of_latest)
    return [*_other_logs(word, inside), _latest_of(newest.removeprefix("./"))]


def _other_logs(folder: str, log_directories: list[str]) -> list[str]:
    """Return the entries of a folder with logs that are in none of its log directories."""
    found, _ = sources.collect([folder])
    entries = dict.fromkeys(os.path.relpath(one.path, folder).partition(os.sep)[0] for one in found)
    paths = [os.path.join(folder, entry) for entry in entries]  # noqa: PTH118
    return [path for path in paths if path not in log_directories and os.path.lexists(path)]


def _has_latest(folder: str) -> bool:
    return _is_run(os.path.join(folder, names.LATEST))  # noqa: PTH118


def _name_of_latest(folder: str) -> str:
    return links.real_path(os.path.join(folder, names.LATEST)).rpartition(os.sep)[2]  # noqa: PTH118


def _latest_of(folder: str) -> str:
    """Return the latest run of a log directory, and say so."""
    run = index.newest(folder)
    what = f"{operand(folder)} has the runs of `launch`: the latest one is explained, {run.called}"
    tell(f"note: {what}; `hccl-tools jobs --log-dir {operand(folder)}` lists them")
    return names.shown(run.path)


def _unfinished(run: Run) -> str:
    """Return the sentence on a run that has not ended; "" for one that has."""
    if run.state != "running":
        return ""

    if not index.is_held(run.path):  # It ended while its logs were read.
        return ""
    size = f"{count(run.ranks, 'rank')}, for {time_span(run.age)}"
    stacks = f"`hccl-tools stacks {operand(brief.typed(run.path))}`"
    return f"The run {run.name} is still running ({size}): {stacks} shows what its ranks do"


def _progress() -> Callable[[int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        if total > 1:
            show_status(f"reading logs: {done:,} of {total:,}" if done < total else "")

    return show
