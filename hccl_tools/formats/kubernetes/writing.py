"""Write a ConfigMap with a rank table, as JSON that ``kubectl apply -f`` takes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import InputError, TableError
from hccl_tools.notation.printable import escaped
from hccl_tools.programs.lookup import YAML
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.formats.kubernetes.names import ConfigMapName

#: The greatest size of all values in bytes. Source: Kubernetes, pkg/apis/core/types.go, MaxSecretSize.
DATA_LIMIT = 1_048_576
#: ``kubectl apply`` keeps a copy of the object in an annotation; this is the limit for all annotations in
#: bytes. Source: Kubernetes, apimachinery/pkg/api/validation/objectmeta.go, TotalAnnotationSizeLimitB.
_ANNOTATION_LIMIT = 262_144

#: So that no command is folded: kubectl reads a folded line, but a user cannot copy it.
_WIDTH = 1 << 20

#: What YAML takes for a line break as well: NEL, LS and PS.
_OTHER_BREAKS = frozenset("\x85\u2028\u2029")
#: What each reader takes for a text without quotes: kubectl reads 1e-5 and 0o17 as numbers, PyYAML does not.
_PLAIN = re.compile(r"(?a)(?:/|--)?[A-Za-z][A-Za-z0-9./_-]*")
#: Other words that a reader takes for a boolean, a number or nothing.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


class ConfigMapText(NamedTuple):
    """The text of a ConfigMap.

    Attributes:
        text: The JSON text.
        is_compact: Whether the table has no blanks, because it would be too large with them.
        needs_server_side: Whether it is too large for the annotation of ``kubectl apply``.
    """

    text: str
    is_compact: bool
    needs_server_side: bool

    @property
    def apply(self) -> str:
        """The command that creates or updates the ConfigMap, without the name of its file."""
        return f"kubectl apply{' --server-side' if self.needs_server_side else ''} -f"


def config_map_text(table: str, names: ConfigMapName) -> ConfigMapText:
    """Return a ConfigMap with the text of a table.

    Raises:
        TableError: The table is larger than Kubernetes accepts, even without blanks.
    """
    is_compact = len(table.encode()) > DATA_LIMIT
    if is_compact:
        table = json.dumps(json.loads(table), ensure_ascii=False, separators=(",", ":"))
        size = len(table.encode())
        if size > DATA_LIMIT:
            raise TableError(
                f"the table has {size:,} bytes without blanks; a ConfigMap has at most {DATA_LIMIT:,}",
                hint="put the table in a volume that the pods share: `hccl-tools convert --to FORMAT`",
            )
    metadata = {"name": names.name}
    if names.namespace is not None:
        metadata["namespace"] = names.namespace
    value: dict[str, Any] = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {names.key: table}
    }  # fmt: skip
    text = json.dumps(value, ensure_ascii=False, indent=4) + "\n"
    return ConfigMapText(text, is_compact, len(text.encode()) > _ANNOTATION_LIMIT)


def text(objects: Iterable[dict[str, Any]], comments: Sequence[str] = ()) -> str:
    """Return objects as the documents of one file, after comments.

    Raises:
        InputError: PyYAML is not installed.
    """
    try:
        import yaml  # noqa: PLC0415  (optional)
    except ImportError:
        raise InputError("YAML is written with PyYAML (the extra [yaml])", hint=YAML) from None

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
        """Indents the items of a list, as the samples of Kubernetes do, and writes no aliases."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002
            return super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    def string(dumper: Any, value: str) -> Any:
        style: str | None = "|" if "\n" in value else "'"
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            style = None
        if not _OTHER_BREAKS.isdisjoint(value):  # Other styles fold them into blanks or line feeds.
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, string)
    documents = (
        yaml.dump(one, Dumper=Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True) for one in objects
    )
    return "".join(f"# {escaped(line)}\n" for line in comments) + "---\n".join(documents)
