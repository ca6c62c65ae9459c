"""The findings of ``doctor`` and their output formats."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hccl_tools.doctor.report.as_json import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hccl_tools.doctor.findings import Examination
    from hccl_tools.host.observation import Observation

#: Output format -> the module of this package that renders it.
_MODULES = {"text": "as_text", "concise": "as_lines", "junit": "as_junit", "github": "as_annotations",
            "sarif": "as_sarif"}  # fmt: skip


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
    """Yield the text of a result in ``json``, or in a format of ``_MODULES``.

    Args:
        seen: The hosts that answered.
        color: Whether to use colours (text).
        ascii_only: Whether to escape characters that are not ASCII (text and concise; junit, json, sarif and
            github are safe for any encoding).
        width: The columns of the screen (text); ``None`` keeps long lines.
        chinese: Returns the Chinese line of a check by its id, "" if there is none (text).
        strict: Whether what counts with ``--strict`` fails its test case (junit).
    """
    if output_format == "json":
        yield json.dumps(as_json(result, seen), indent=1) + "\n"
        return
    options: dict[str, dict[str, Any]] = {
        "text": {"color": color, "ascii_only": ascii_only, "width": width, "chinese": chinese},
        "concise": {"ascii_only": ascii_only},
        "junit": {"strict": strict},
    }
    renderer = import_module(f"hccl_tools.doctor.report.{_MODULES[output_format]}")
    yield from renderer.render(result, **options.get(output_format, {}))
