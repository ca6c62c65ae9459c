"""Options whose default an administrator can set for a site, and the list of these defaults."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.host import site_defaults
from hccl_tools.notation.phrases import aligned
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Iterator


def from_site(variable: str) -> dict[str, Any]:
    """Return the attributes of an option that has its default from a variable of the site."""
    return {"envvar": variable, "callback": _state}


def is_from_site(name: str) -> bool:
    """Return whether a parameter of the current command has its value from the site, and was not typed."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.get_parameter_source(name) is click.core.ParameterSource.ENVIRONMENT


def _state(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Print a default of the site and where it is from; processes for other hosts print nothing."""
    internal = ctx.params.get("run_dir") or ctx.params.get("serve")
    if value is not None and not internal and _is_set_by_site(ctx, param):
        state(param.opts[0], str(value), str(param.envvar))
    return value


def state(option: str, value: str, variable: str) -> None:
    """Print a default of the site and where it is from."""
    tell(f"note: {option} {shlex.quote(value)} ({site_defaults.origin(variable, os.environ)})")


def _is_set_by_site(ctx: click.Context, param: click.Parameter) -> bool:
    return ctx.get_parameter_source(str(param.name)) is click.core.ParameterSource.ENVIRONMENT


def in_force() -> Iterator[str]:
    """Yield a line for each default of a site: its value and where it is from."""
    file = site_defaults.path(os.environ)
    rows = []
    for name, option in site_defaults.DEFAULTS.items():
        value = os.environ.get(name)
        source = file if site_defaults.is_from_file(name, os.environ) else "the environment"
        rows.append((name, option, value or "not set", source if value else ""))
    yield from aligned([("variable", "default of", "value", "from"), *rows])
    if not os.path.exists(file):  # noqa: PTH110  (pathlib would take time to load)
        yield f"{file} does not exist"
