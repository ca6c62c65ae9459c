"""What ``--exclude`` leaves of a table in a file, as the bytes of a new table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.files import outputs
from hccl_tools.files.inputs import Inputs
from hccl_tools.notation.phrases import count
from hccl_tools.transform.subsetting import without

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.notation.exclusion import Exclusion


def of_file(path: str, exclusions: Sequence[Exclusion], *, product: str | None) -> tuple[bytes, str]:
    """Return the table that is left, which is not checked yet, and a sentence about it.

    Raises:
        InputError: The file cannot be read.
        TableError: The file is not a rank table.
        UsageError: A host or device does not exist, or nothing is left.
    """
    before = Inputs(product=product).table(path)
    after = without(before, exclusions)
    servers, ranks = count(len(before.servers), "server"), count(len(before), "rank")
    kept = f"{len(after.servers)} of {servers}, {len(after)} of {ranks}"
    shown = ", ".join(map(str, exclusions))
    return outputs.table_text(after).encode(), f"--exclude {shown} leaves {kept}, which are renumbered from 0"
