"""Detect the format of a parsed document, with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.table.format_names import Format

#: Keys that identify a format if ``version`` does not, and the format.
_LISTS: tuple[tuple[str, Format], ...] = (
    ("rank_list", "2.0"),
    ("super_pod_list", "1.2"),
    ("server_list", "1.0"),
    ("group_list", "group_list"),
    ("group_count", "group_list"),
    ("rank_count", "2.0"),
    ("server_count", "1.0"),
)
_VERSIONS: dict[str, Format] = {"1.0": "1.0", "1.2": "1.2", "2.0": "2.0", "Standard": "group_list"}

#: The lists of entries, one of which each rank table has.
_ENTRIES = frozenset({"rank_list", "super_pod_list", "server_list", "group_list"})
_HINT = "specify a file with server_list, group_list or rank_list"


class _Other(NamedTuple):
    """A file that is often confused with rank tables: a key that only such a file has, and what to do."""

    key: str
    what: str
    hint: str = _HINT


_OF_PREFILL = (
    "a prefill/decode device list; HCCL does not read it",
    "vllm-ascend up to 0.11 reads it (DISAGGREGATED_PREFILL_RANK_TABLE_PATH); later releases need none",
)
_OTHERS = (
    _Other("server_group_list", "a MindIE service table (server_group_list); HCCL does not read it"),
    _Other("prefill_device_list", *_OF_PREFILL),
    _Other("decode_device_list", *_OF_PREFILL),
    _Other(
        "edge_list",
        "the topology file of an Ascend 950 host",
        "check it with the root info that names it: `hccl-tools validate hccl_rootinfo.json`",
    ),
    _Other("apiVersion", "a Kubernetes object"),
    _Other("Servers", "an HCCL role table, not a rank table"),
    _Other("host_list", "a list of hosts, not a rank table"),
    _Other("nodes", "a description of nodes, not a rank table"),
)


class Detection(NamedTuple):
    """The format of a document, ``None`` if it is not a rank table, and the reason as a phrase.

    ``hint`` is what to do with another file.
    """

    format: Format | None
    reason: str
    #: Whether the version is 1.1, a separate format that no training job uses.
    heterogeneous: bool = False
    hint: str = _HINT


def detect(value: Any) -> Detection:
    """Return the format of a parsed document as HCCL detects it: by ``version``, else by its lists."""
    if not isinstance(value, dict):
        return Detection(None, f"it is {_kind(value)}, not an object")
    version = value.get("version")
    if version == "1.1":
        return Detection(None, 'version is "1.1", the heterogeneous format', heterogeneous=True)
    if _ENTRIES.isdisjoint(value):
        for other in _OTHERS:
            if other.key in value:
                return Detection(None, f"it is {other.what}", hint=other.hint)
    if isinstance(version, str) and version in _VERSIONS:
        return Detection(_VERSIONS[version], f'version is "{version}"')
    if "version" not in value and isinstance(value.get("group_list"), list):
        return Detection("group_list", "the file has group_list and no version")
    for key, table_format in _LISTS:
        if key in value:
            return Detection(table_format, f"{_version_text(value)}, but the file has {key}")
    keys = ", ".join(f'"{key}"' for key in list(value)[:4])
    has = f"it has {keys}{' ...' if len(value) > 4 else ''}" if value else "it is empty"
    return Detection(None, f"{has}, and none of server_list, group_list, rank_list")


def version_of_content(value: Any) -> tuple[Format, str] | None:
    """Return the format of the lists of a table, with the list that shows it; None if they show none.

    Only one of rank_list and server_list may be there.
    """
    if not isinstance(value, dict):
        return None
    lists = [key for key in ("rank_list", "server_list", "group_list") if isinstance(value.get(key), list)]
    if lists == ["rank_list"]:
        return "2.0", "rank_list"
    if lists == ["server_list"]:
        return ("1.2", "super_pod_list") if "super_pod_list" in value else ("1.0", "server_list")
    return None


def _version_text(value: dict[str, Any]) -> str:
    if "version" not in value:
        return "no version"
    version = value["version"]
    return f'version is "{version[:20]}"' if isinstance(version, str) else "version is not a string"


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "a string"
    if value is None:
        return "null"
    return "true or false" if isinstance(value, bool) else "a number"
