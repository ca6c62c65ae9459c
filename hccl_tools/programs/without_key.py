"""The variables of helper programs, such as py-spy, npu-smi, ssh and ``--notify``, which need no job key."""

from __future__ import annotations

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The variables with the job key and with the path of its file; launchers alone need them.
KEY_FILE_VARIABLE = "HCCL_TOOLS_JOB_KEY_FILE"
KEY_VARIABLES = ("HCCL_TOOLS_JOB_KEY", KEY_FILE_VARIABLE)


def without_key(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables without those of the job key: a program may print or pass on what it inherits."""
    return {name: value for name, value in environ.items() if name not in KEY_VARIABLES}
