"""Whether this process is in a pod of Kubernetes, where other advice helps than on a host of the user."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The address of the API server, which kubelet gives to every container.
_VARIABLE = "KUBERNETES_SERVICE_HOST"


def in_pod(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the variables are those of a container of Kubernetes."""
    return _VARIABLE in environ
