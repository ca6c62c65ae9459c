"""The values of Kubernetes ConfigMaps in a parsed document, and how the user names one of them.

Source: Kubernetes API, core/v1 ConfigMap (``data`` and ``binaryData``) and List.
"""

from __future__ import annotations

import binascii
import os
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.document.reading import is_stream
from hccl_tools.notation.hint import file_here
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hccl_tools.document.document import Document

#: Separates the name of a file from the key of a ConfigMap in it: ``cm.json#hccl.json``.
MARK = "#"
#: How the names of ConfigMaps end that hccl-tools makes.
ENDING = ".configmap.json"
#: Base64 as Kubernetes reads it: without other characters, with its padding.
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_LISTS = frozenset({"List", "ConfigMapList"})


class Entry(NamedTuple):
    """A value of a ConfigMap.

    Attributes:
        namespace: The namespace of the ConfigMap, "" if the object does not state it.
        name: The name of the ConfigMap, "" if the object does not state it.
        key: Its key in ``data`` or ``binaryData``.
        path: Its path in the document: the last two parts are the field and the key.
        value: The parsed value, which Kubernetes requires to be a string.
    """

    namespace: str
    name: str
    key: str
    path: tuple[str | int, ...]
    value: Any

    @property
    def names(self) -> tuple[str, str, str]:
        """The namespace, the ConfigMap's name and the key."""
        return self.namespace, self.name, self.key

    def decoded(self) -> bytes | None:
        """Return the bytes that a pod sees in the file of this key; ``None`` if the value is not valid."""
        if not isinstance(self.value, str):
            return None
        if self.path[-2] == "data":
            return self.value.encode(errors="surrogatepass")
        text = "".join(self.value.split())
        return binascii.a2b_base64(text) if re.fullmatch(_BASE64, text) else None


#: The name, the namespace and a key of a ConfigMap in JSON or YAML; only the usual form is read. The blanks
#: around are those of one line: else each blank line would begin a search through all that follow it.
_NAME = re.compile(r'^[ \t]*"?name"?:[ \t]*"?([a-z0-9][a-z0-9.-]{0,252})"?,?[ \t]*\r?$', re.MULTILINE)
_NAMESPACE = re.compile(r'^[ \t]*"?namespace"?:[ \t]*"?([a-z0-9][a-z0-9-]{0,62})"?,?[ \t]*\r?$', re.MULTILINE)
_DATA = re.compile(
    r'^[ \t]*"?(?:data|binaryData)"?:(?:[ \t]*\{)?\s*"?([A-Za-z0-9][\w.-]{0,252})"?:', re.MULTILINE
)


def extraction(data: bytes) -> str:
    """Return the command that writes the table of a ConfigMap to a file, with the names in its text."""
    text = data.decode(errors="replace")
    name, space, key = (found[1] if (found := one.search(text)) else "" for one in (_NAME, _NAMESPACE, _DATA))
    key = key or "hccl.json"
    path = key.replace(".", "\\.")
    where = f" -n {space}" if space else ""
    command = f"kubectl get configmap{where} {name or 'NAME'} -o jsonpath='{{.data.{path}}}'"
    return f"{command} > {file_here(key, 'hccl.json')}"


def is_object(value: Any) -> bool:
    """Whether a document is a Kubernetes object."""
    return isinstance(value, dict) and "apiVersion" in value


def is_wrapper(document: Document) -> bool:
    """Whether a file is a Kubernetes object, in JSON or apparently in YAML, instead of a table."""
    if document.problem is not None:
        return document.problem.kind == "Kubernetes object"
    return is_object(document.value)


def kind_of(value: Any) -> str:
    """Return the kind of a Kubernetes object, "" if it has none."""
    kind = value.get("kind") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def entries(value: Any) -> list[Entry]:
    """Return the values of a ConfigMap, or of the ConfigMaps in a List, in file order."""
    return [entry for path, one in _config_maps(value) for entry in _entries_of(path, one)]


def _config_maps(value: Any) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    if not isinstance(value, dict):
        return
    kind = kind_of(value)
    if kind == "ConfigMap":
        yield (), value
    items = value.get("items") if kind in _LISTS else None
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if kind_of(item) == "ConfigMap" or (kind == "ConfigMapList" and isinstance(item, dict)):
            yield ("items", index), item


def _entries_of(path: tuple[str | int, ...], one: dict[str, Any]) -> Iterator[Entry]:
    metadata = one.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    for field in ("data", "binaryData"):
        values = one.get(field)
        for key, value in values.items() if isinstance(values, dict) else ():
            space, name = (str(names.get(part) or "") for part in ("namespace", "name"))
            yield Entry(space, name, key, (*path, field, key), value)


def split(argument: str) -> tuple[str, str | None]:
    """Return the file and the key that an argument names; the key is ``None`` if it names a file only.

    A file whose own name has a ``#`` is a file. The key may follow the name of its ConfigMap, and this its
    namespace: ``cm.json#training/rings-config-job/hccl.json``.
    """
    file, mark, wanted = argument.rpartition(MARK)
    if not mark or not file or not wanted or os.path.lexists(argument):
        return argument, None
    return (file, wanted) if is_stream(file) or os.path.lexists(file) else (argument, None)


def matching(found: Sequence[Entry], wanted: str) -> list[Entry]:
    """Return the entries that a key names, with or without its ConfigMap's name and namespace."""
    parts = tuple(wanted.split("/"))
    return [entry for entry in found if entry.names[-len(parts) :] == parts]


def labels(found: Sequence[Entry]) -> Callable[[Entry], str]:
    """Return a function that names entries of a file by ``KEY``, ``NAME/KEY`` or ``NAMESPACE/NAME/KEY``.

    The names are as short as they can be without mixing up two ConfigMaps of the file.
    """
    owners = {one.names[:2] for one in found}
    by_name = len({name for _, name in owners}) == len(owners)
    begin = 2 if len(owners) == 1 else 1 if by_name else 0
    return lambda entry: "/".join(entry.names[begin:])
