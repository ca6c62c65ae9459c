"""The options of ``convert`` that write a ConfigMap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import table_output
from hccl_tools.cli.options import together
from hccl_tools.errors import UsageError
from hccl_tools.files import outputs
from hccl_tools.formats.kubernetes.names import checked
from hccl_tools.formats.kubernetes.writing import config_map_text
from hccl_tools.notation.phrases import operand
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.formats.kubernetes.names import ConfigMapName
    from hccl_tools.table.model import RankTable

_DEFAULT_KEY = "hccl.json"

options = together(
    click.option("--key", metavar="KEY", help=f"Its key, the file name in a pod. Default: {_DEFAULT_KEY}."),
    click.option("--namespace", metavar="NAME", help="Its namespace. Default: that of the kubectl command."),
    click.option("--to-configmap", metavar="NAME", help="Write a Kubernetes ConfigMap with this name."),
)


def read(settings: dict[str, Any]) -> ConfigMapName | None:
    """Remove the options from the settings of a command, and return the names of the ConfigMap, if any.

    Raises:
        UsageError: Kubernetes refuses a name, or an option lacks ``--to-configmap``.
    """
    name, namespace, key = (settings.pop(option) for option in ("to_configmap", "namespace", "key"))
    if name is None:
        for option, value in (("--namespace", namespace), ("--key", key)):
            if value is not None:
                raise UsageError(
                    f"{option} is for --to-configmap", hint="add --to-configmap NAME, or omit it"
                )
        return None
    return checked(name, key=_DEFAULT_KEY if key is None else key, namespace=namespace)


def deliver(
    table: RankTable,
    names: ConfigMapName,
    *,
    output: str | None,
    force: bool,
    mode: str | None,
    product: str | None,
    ignore: Sequence[str],
) -> None:
    """Check a table and write a ConfigMap with it; see ``table_output.deliver``.

    Raises:
        TableError: The table has an error or is too large, or the file has other contents.
    """
    digits = outputs.parse_mode(mode) if mode is not None else None
    to_stdout = output == outputs.STDOUT
    table_output.require_valid(table, to_stdout=to_stdout, product=product, ignore=ignore)
    made = config_map_text(outputs.table_text(table), names)
    if made.is_compact:
        tell("note: the table is written without blanks, so that the ConfigMap is not too large")
    if to_stdout:
        if made.needs_server_side:
            tell(f"note: this ConfigMap needs `{made.apply} -`")
        outputs.print_text(made.text)
        return
    path = outputs.config_map_target(output, names)
    tell(*outputs.save_config_map(made.text, path, force=force, mode=digits).split("\n"))
    tell(f"next: {made.apply} {operand(path)}")
