"""Write objects of Kubernetes as YAML, with PyYAML (the extra ``yaml``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.errors import InputError
from hccl_tools.programs.lookup import YAML

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: So that no command is folded: kubectl reads a folded line, but a user cannot copy it.
_WIDTH = 1 << 20


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
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, string)
    documents = (
        yaml.dump(one, Dumper=Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True) for one in objects
    )
    return "".join(f"# {line}\n" for line in comments) + "---\n".join(documents)
