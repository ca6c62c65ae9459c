"""The environment variables of a process: in a pod, and without the job key for helper programs.

Helper programs are those such as py-spy, npu-smi, ssh and ``--notify``. In a pod of Kubernetes, other advice
helps than on a host of the user.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The variables with the job key and with the path of its file; launchers alone need them.
KEY_FILE_VARIABLE = "HCCL_TOOLS_JOB_KEY_FILE"
KEY_VARIABLES = ("HCCL_TOOLS_JOB_KEY", KEY_FILE_VARIABLE)
#: The address of the API server, which kubelet gives to every container.
_API_SERVER = "KUBERNETES_SERVICE_HOST"


def without_key(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables without those of the job key: a program may print or pass on what it inherits."""
    return {name: value for name, value in environ.items() if name not in KEY_VARIABLES}


def in_pod(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the variables are those of a container of Kubernetes."""
    return _API_SERVER in environ
