"""The findings of ``doctor`` and their output formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hccl_tools.doctor.findings import Examination
    from hccl_tools.host.observation import Observation

#: Output format -> the module of this package that renders it, and its function.
_RENDERERS = {
    "text": ("as_text", "render"),
    "concise": ("for_programs", "concise"),
    "json": ("for_programs", "as_json"),
    "junit": ("for_programs", "junit"),
    "github": ("for_programs", "github"),
    "sarif": ("for_programs", "sarif"),
}


def render(
    result: Examination,
    seen: Mapping[str, Observation],
    output_format: str,
    *,
    color: bool = False,
    ascii_only: bool = False,
    strict: bool = False,
    width: int | None = None,
    chinese: Callable[[str], str] | None = None,
) -> Iterator[str]:
    """Yield the text of a result in a format of ``_RENDERERS``.

    Args:
        seen: The hosts that answered.
        color: Whether to use colours (text).
        ascii_only: Whether to escape characters that are not ASCII (text and concise; junit, json, sarif and
            github are safe for any encoding).
        width: The columns of the screen (text); ``None`` keeps long lines.
        chinese: Returns the Chinese line of a check by its id, "" if there is none (text).
        strict: Whether what counts with ``--strict`` fails its test case (junit).
    """
    options: dict[str, dict[str, Any]] = {
        "text": {"color": color, "ascii_only": ascii_only, "width": width, "chinese": chinese},
        "concise": {"ascii_only": ascii_only},
        "json": {"seen": seen},
        "junit": {"strict": strict},
    }
    module, function = _RENDERERS[output_format]
    renderer = getattr(import_module(f"hccl_tools.doctor.report.{module}"), function)
    yield from renderer(result, **options.get(output_format, {}))
