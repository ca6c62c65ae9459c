"""Recognise the two files that an Ascend 950 host has beside rank tables: endpoint files and the root info.

* ``endpoints``: ``ub_endpoint_npu_N.json``, the endpoints of one device for hixl (local_comm_res 1.3).
* ``rootinfo``: ``hccl_rootinfo.json``, the devices of a host for jobs that HCCL starts without a table.

Service tables (``server_group_list``), which list the instances of a serving cluster, are recognised as well.

Source: hixl endpoint_generator.cc; vllm-ascend utils.py, setup_ascend_local_comm_res; hcomm
rank_info_detect_client.cc.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal

from hccl_tools.table.format_names import SERVICE

Kind = Literal["endpoints", "rootinfo", "server_group_list"]
#: The program that reads a file of a kind, and the name of such a file in messages.
READERS: dict[str, tuple[str, str]] = {
    "endpoints": ("hixl", "endpoint file"),
    "rootinfo": ("HCCL", "root info"),
    SERVICE: ("the service", "service table"),
}
#: The lists of entries of rank tables, which no service table has at its top.
_ENTRIES = frozenset({"rank_list", "server_list", "group_list", "node_list"})
#: The name of an endpoint file; the number is the device_id, as vllm-ascend looks it up.
ENDPOINT_NAME = re.compile(r"ub_endpoint_npu_([0-9]{1,4})\.json", re.ASCII)
ROOT_INFO_NAME = "hccl_rootinfo.json"
_ROOT_INFO_NAMES = r"(?a)hccl_rootinfo[\w.-]*\.json"


def kind_of(value: Any, file: str | None) -> tuple[Kind, str] | None:
    """Return the kind of a parsed document and the reason as a phrase, None for any other document.

    Args:
        file: The name of the file; it decides if the content does not.
    """
    if isinstance(value, dict):
        if SERVICE in value and _ENTRIES.isdisjoint(value):
            return SERVICE, f"it has {SERVICE}"
        if "endpoint_list" in value:
            return "endpoints", "it has endpoint_list"
        if _is_root_info(value):
            return "rootinfo", "it lists devices without rank_id"
    by_name = kind_of_name(file)
    return (by_name, "by its name") if by_name else None


def kind_of_name(file: str | None) -> Kind | None:
    """Return the kind of the file that readers look for under a name."""
    name = os.path.basename(file) if file is not None else ""  # noqa: PTH119  (no Path for each table)
    if ENDPOINT_NAME.fullmatch(name):
        return "endpoints"
    return "rootinfo" if re.fullmatch(_ROOT_INFO_NAMES, name) else None


def _is_root_info(value: dict[str, Any]) -> bool:
    ranks = value.get("rank_list")
    if not isinstance(ranks, list) or not ranks:
        return "topo_file_path" in value
    first = ranks[0]
    has_ranks = isinstance(first, dict) and "rank_id" in first
    return not has_ranks and ("topo_file_path" in value or "rank_count" not in value)
