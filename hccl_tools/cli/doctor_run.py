"""What ``hccl-tools doctor`` asks, and how it prints the answers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from hccl_tools.doctor import as_json, as_text, examining
from hccl_tools.inspection.observing import observe
from hccl_tools.notation.printable import stdout_is_ascii
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.doctor.findings import Examination
    from hccl_tools.inspection.observation import Observation


def checked_table(table: str | None, product: str | None) -> Report | None:
    """Return the report on the table of the job, if there is one; say so if it is that of a variable.

    Raises:
        InputError: The file cannot be read.
    """
    from hccl_tools.launch.planning import table_source  # noqa: PLC0415

    if table is None and (variable := table_source.naming_variable(os.environ)):
        table = table_source.usual_file(os.environ[variable])
        click.echo(f"note: no TABLE given: using {variable}={os.environ[variable]}", err=True)
    if table is None:
        return None
    from hccl_tools.validation.checker import validate  # noqa: PLC0415

    return validate(table, product=product)


def observed_here(job: examining.Job, tool_timeout: float) -> dict[str, Observation]:
    """Return this host, as observed, by its name.

    Raises:
        InputError: A tool or file that the user specified cannot be used.
    """
    from hccl_tools.discover.site import Site  # noqa: PLC0415

    return {os.uname().nodename: observe(job.request(tool_timeout), Site())}


def with_product_of(seen: Mapping[str, Observation], job: examining.Job) -> examining.Job:
    """Return the job with its table checked for the product of the hosts, unless a product was stated."""
    found = {one.product for one in seen.values() if one.product is not None}
    if job.report is None or job.product or os.environ.get(PRODUCT_VARIABLE) or len(found) != 1:
        return job
    (product,) = found
    if product == job.report.product or job.report.format not in PRODUCTS[product].formats:
        return job
    return job._replace(report=checked_table(job.report.file, product))


def rendered(
    result: Examination, seen: Mapping[str, Observation], output_format: str, *, color: bool
) -> Iterator[str]:
    """Yield the result in an output format."""
    if output_format == "json":
        yield json.dumps(as_json.as_json(result, seen), indent=1) + "\n"
    else:
        yield from as_text.render(result, color=color, ascii_only=stdout_is_ascii())
