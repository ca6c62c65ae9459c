"""What is checked: tables, other files, and tables that are compared with a host or read by a framework.

A rule names the kinds to which it applies. Three of them are files that are not rank tables:

* ``endpoints``: ``ub_endpoint_npu_N.json``, the endpoints of one device for hixl (local_comm_res 1.3).
* ``rootinfo``: ``hccl_rootinfo.json``, the devices of a host for jobs that HCCL starts without a table.
* ``server_group_list``: service tables, which list the instances of a serving cluster.

Source: hixl endpoint_generator.cc; vllm-ascend utils.py, setup_ascend_local_comm_res; hcomm
rank_info_detect_client.cc.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.table.format_names import SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.formats.detection import Detection
    from hccl_tools.table.products import Product

#: The lists of entries of rank tables, which no service table has at its top.
_ENTRIES = frozenset({"rank_list", "server_list", "group_list", "node_list"})
#: The name of an endpoint file; the number is the device_id, as vllm-ascend looks it up.
ENDPOINT_NAME = re.compile(r"ub_endpoint_npu_([0-9]{1,4})\.json", re.ASCII)
ROOT_INFO_NAME = "hccl_rootinfo.json"


class FileKind(NamedTuple):
    """A kind of file, or of comparison of a table, for which there are rules.

    Attributes:
        name: Its name in reports, in the names of schemas, and in the declarations of rules.
        reader: The program that reads it.
        noun: The name of such a file in messages.
        is_judged: Whether the rules decide the verdict on the file; others say what is wrong beside that.
        tables: To which tables its rules apply, for the pages of rules, if the name does not say it.
        recognise: Returns the reason, as a phrase, for which an object is of the kind, or ``None``.
        file_name: The names under which readers look for such a file: a regular expression.
        is_of_host: Whether it describes the devices of an Ascend 950 host.
    """

    name: str
    reader: str = "HCCL"
    noun: str = "table"
    is_judged: bool = True
    tables: str = ""
    recognise: Callable[[dict[str, Any]], str | None] | None = None
    file_name: str = ""
    is_of_host: bool = False


def _has_groups_of_servers(value: dict[str, Any]) -> str | None:
    return f"it has {SERVICE}" if SERVICE in value and _ENTRIES.isdisjoint(value) else None


def _has_endpoints(value: dict[str, Any]) -> str | None:
    return "it has endpoint_list" if "endpoint_list" in value else None


def _lists_devices(value: dict[str, Any]) -> str | None:
    ranks = value.get("rank_list")
    if not isinstance(ranks, list) or not ranks:
        is_one = "topo_file_path" in value
    else:
        has_ranks = isinstance(ranks[0], dict) and "rank_id" in ranks[0]
        is_one = not has_ranks and ("topo_file_path" in value or "rank_count" not in value)
    return "it lists devices without rank_id" if is_one else None


#: What is none of the other kinds is checked as a table, and may be of any format.
RANK_TABLE = FileKind("")
#: Forms that HCCL reads and from which it derives a table.
VERSION_1_1, LAB = FileKind("1.1"), FileKind("lab")
SERVICE_TABLE = FileKind(
    SERVICE,
    "the service",
    "service table",
    recognise=_has_groups_of_servers,
)
ENDPOINTS = FileKind(
    "endpoints",
    "hixl",
    "endpoint file",
    recognise=_has_endpoints,
    file_name=ENDPOINT_NAME.pattern,
    is_of_host=True,
)
ROOT_INFO = FileKind(
    "rootinfo",
    "HCCL",
    "root info",
    recognise=_lists_devices,
    file_name=r"hccl_rootinfo[\w.-]*\.json",
    is_of_host=True,
)
#: The files that are not rank tables, by name.
OTHER_FILES = {kind.name: kind for kind in (SERVICE_TABLE, ENDPOINTS, ROOT_INFO)}
#: A table of any format that is compared with this host.
LOCAL = FileKind("local", is_judged=False, tables="all, compared with the host by `validate --local`")
#: The servers of xLLM's mixture that HCCL does not read.
MIXTURE = FileKind("mixture", "xLLM", is_judged=False, tables="1.0, 1.2, with a server_list in group_list")
#: The frameworks that read tables beside HCCL, with their names in messages. Each has rules of its own.
TARGETS = {"mindspore": "MindSpore", "torch": "torch_npu", "mindie": "MindIE", "xllm": "xLLM"}
#: Files that none of these frameworks reads.
NOT_FOR_TARGETS = FileKind(
    "not-for-targets",
    "the framework",
    "file",
    is_judged=False,
    tables="none; other files, with `validate --target`",
)
#: All kinds for which there are rules, by name, beside the formats of rank tables.
KINDS = {
    kind.name: kind
    for kind in (
        VERSION_1_1,
        LAB,
        *OTHER_FILES.values(),
        LOCAL,
        MIXTURE,
        NOT_FOR_TARGETS,
        *(FileKind(name, title, is_judged=False) for name, title in TARGETS.items()),
    )
}


def kind_of(value: Any, file: str | None) -> tuple[FileKind, str] | None:
    """Return the kind of a document that is not a rank table, and the reason as a phrase; None for others.

    Args:
        file: The name of the file; it decides if the content does not.
    """
    if isinstance(value, dict):
        for kind in OTHER_FILES.values():
            if kind.recognise is not None and (reason := kind.recognise(value)) is not None:
                return kind, reason
    by_name = kind_of_name(file)
    return (by_name, "by its name") if by_name else None


def kind_of_name(file: str | None) -> FileKind | None:
    """Return the kind of the file that readers look for under a name."""
    name = os.path.basename(file) if file is not None else ""  # noqa: PTH119  (no Path for each table)
    named = (kind for kind in OTHER_FILES.values() if kind.file_name)
    return next((kind for kind in named if re.fullmatch(kind.file_name, name, re.ASCII)), None)


def is_directory_of(file: str) -> bool:
    """Return whether a directory has the name of a file that readers look for."""
    return kind_of_name(file) is not None and os.path.isdir(file)  # noqa: PTH112


def form_of(value: Any, found: Detection, product: Product) -> FileKind | None:
    """Return the form of a document from which HCCL makes a table on a product; None for others."""
    if found.heterogeneous and product.loader == "legacy":
        return VERSION_1_1
    is_lab = found.format == "group_list" and "deploy_mode" in value
    return LAB if is_lab and found.format in product.formats else None
