"""What ``launch`` prints instead of starting a job: a plan, a script, or the objects of a cluster manager."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import launch_kubernetes
from hccl_tools.cli.launch_options import CLUSTER_MANAGERS
from hccl_tools.cli.site_options import is_from_site
from hccl_tools.errors import UsageError
from hccl_tools.launch import preview
from hccl_tools.launch.render import scripts
from hccl_tools.notation.printable import on_stdout, tell

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest


def show(request: LaunchRequest, options: dict[str, Any], own_names: set[str]) -> None:
    """Print what ``--emit`` or ``--dry-run`` asks for.

    Args:
        own_names: The options on the command line, by their canonical names.

    Raises:
        UsageError: An option does not go with it.
        LaunchError: The launch would be refused.
    """
    if options["emit"] in CLUSTER_MANAGERS:
        text, notes = launch_kubernetes.text(request, options, own_names)
        tell(*(f"note: {note}" for note in notes))
        print_text(text)
    elif options["emit"]:
        text, note = _emitted(request, options, own_names)
        if note is not None:
            tell(f"note: {note}")
        print_text(text)
    else:
        shown = preview.dry_run(request, form=options["dry_run"])
        click.echo(shown.encode(errors="backslashreplace"), nl=False)


def print_text(text: str) -> None:
    """Print a script or YAML as it is; on a terminal it must not have what the terminal interprets.

    Raises:
        UsageError: It has such characters, from the table or from the command line.
    """
    if sys.stdout.isatty() and any(character < " " and character not in "\n\t" for character in text):
        raise UsageError(
            "the text has control characters, which the terminal would interpret",
            hint="look for them in the table and in what you typed, or write it to a file: `... > job.sh`",
        )
    click.echo(os.fsencode(on_stdout(text)), nl=False)


def _emitted(request: LaunchRequest, options: dict[str, Any], own_names: set[str]) -> tuple[str, str | None]:
    scripts.check_options(own_names, options["emit"])
    kept = {"--log-dir": "log_dir", "--grace": "grace", "--max-restarts": "max_restarts"}
    given = {name: options[name] for option, name in kept.items() if option in own_names}
    if is_from_site("log_dir"):
        given["log_dir"] = options["log_dir"]
    for_one = options["server"] is not None or options["node_rank"] is not None
    chosen = scripts.ScriptOptions(request.variables.assigned, **given, this_host_only=for_one)
    return preview.emit(request, options["emit"], chosen)
