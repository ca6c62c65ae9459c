"""Find the tables in a ConfigMap by their content: rank tables, service tables and root infos."""

from __future__ import annotations

import json
import re
from shlex import quote
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.diagnostics.diagnostic import Origin
from hccl_tools.document.document import Document
from hccl_tools.document.fast_parser import UNCLEAN, parse_clean
from hccl_tools.document.reading import STDIN_SHOWN, is_stream
from hccl_tools.document.syntax_problem import kubernetes_hint
from hccl_tools.errors import InputError
from hccl_tools.formats.file_kinds import kind_of
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.formats.kubernetes.yaml_reading import read_yaml
from hccl_tools.notation.hint import FILES, file_here, unused, with_places
from hccl_tools.notation.phrases import and_more, count, listed_parts, named, operand
from hccl_tools.notation.printable import escaped
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.formats.kubernetes.config_maps import Entry
    from hccl_tools.formats.kubernetes.yaml_reading import Place

#: A list of a rank table, in a text that may be broken JSON.
_LIST = re.compile(rb'"(server|group|rank|server_group)_list"')
#: Usual keys of rank tables: hccl.json, jobstart_hccl.json, ranktable.json, rank_table.json.
_USUAL = re.compile(r".*(hccl|rank_?table).*", re.IGNORECASE)
_SHOWN = 8
#: The keys of a ConfigMap itself with a text.
_OWN = ("apiVersion", "kind")


class Outer(NamedTuple):
    """A file with a Kubernetes object.

    Attributes:
        shown: Its name in messages.
        value: The object.
        document: Its text, if it is JSON.
        places: The positions of its values, if it is YAML.
    """

    shown: str
    value: Any
    document: Document | None
    places: Mapping[Path, Place]

    def origins(self, paths: Sequence[Path]) -> list[Origin]:
        """Return the positions of values of the ConfigMaps."""
        if self.document is not None:
            lines = [self.document.position(span.start).line for span in self.document.spans(paths)]
            return [Origin(self.shown, line, one_line=True) for line in lines]
        places = [self.places[path] for path in paths]
        return [Origin(self.shown, place.line, one_line=not place.is_literal) for place in places]


class TableText(NamedTuple):
    """The text of a table, its name in messages, and its position."""

    data: bytes
    name: str
    origin: Origin

    @property
    def argument(self) -> str:
        """The name for the command line."""
        file = self.origin.file
        # "-#hccl.json" would be an option.
        return f"/dev/fd/0{self.name.removeprefix(file)}" if file == STDIN_SHOWN else self.name


def open_file(document: Document, shown: str) -> Outer:
    """Return the Kubernetes object in a file.

    Args:
        document: The file, read as JSON.
        shown: The name of the file in messages.

    Raises:
        InputError: The file has no Kubernetes object, its YAML cannot be read, or text follows its JSON.
    """
    if not config_maps.is_wrapper(document):
        raise InputError(
            f"{shown} is not a Kubernetes ConfigMap; it has no keys to choose from",
            hint=f"specify the file without {config_maps.MARK} and a key",
        )
    if document.problem is not None:
        found = read_yaml(document.data, shown)
        return Outer(shown, found.value, None, found.places)
    if document.trailing is not None:
        line, column = document.position(document.trailing)
        raise InputError(
            f"{shown}:{line}:{column}: text follows the Kubernetes object",
            hint="for several ConfigMaps, use one List: kubectl get configmap NAME1 NAME2 -o json",
        )
    return Outer(shown, document.value, document, {})


def tables_in(outer: Outer, wanted: str | None = None) -> list[TableText]:
    """Return the tables of the ConfigMaps in a file, in file order.

    Args:
        wanted: The key of the table, see ``config_maps.split``; ``None`` chooses the tables by their content.

    Raises:
        InputError: No value has the wanted key, or it is not text.
    """
    entries = config_maps.entries(outer.value)
    chosen = _tables(entries) if wanted is None else _wanted(outer.shown, entries, wanted)
    label = config_maps.labels(entries)
    found = []
    for entry, origin in zip(chosen, outer.origins([entry.path for entry in chosen]), strict=True):
        name = f"{outer.shown}{config_maps.MARK}{escaped(label(entry))}"
        data = entry.decoded()
        if data is None:
            raise InputError(f"{name}: {_damage(entry)}", hint=_DAMAGE_HINT)
        found.append(
            TableText(
                data,
                name,
                origin._replace(
                    extract=_extract_command(entry),
                    extracted=_extracted(entry),
                    object_command=_fetch_command(entry, outer),
                ),
            )
        )
    return found


def only_one(tables: Sequence[TableText]) -> TableText | None:
    """Return the only table of a file, or ``None`` if it has none.

    Raises:
        InputError: There are several; the message lists them.
    """
    if len(tables) > 1:
        file = tables[0].origin.file
        names = [table.argument for table in tables]
        raise InputError(
            f"{file} has {count(len(tables), 'rank table')}: {and_more(names, _SHOWN)}",
            hint=f"specify one of them, such as '{names[0]}'",
        )
    return tables[0] if tables else None


def _tables(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that are rank tables, or else those whose key is the usual key of one."""
    found = [entry for entry in entries if (data := entry.decoded()) is not None and _is_table(data)]
    return found or [
        entry for entry in entries if _USUAL.fullmatch(entry.key) and entry.decoded() not in (None, b"")
    ]


def _is_table(data: bytes) -> bool:
    if not data.lstrip().startswith((b"{", b"\xef\xbb\xbf")):
        return False
    value = parse_clean(data)
    if value is UNCLEAN:
        if _LIST.search(data):
            return True
        value = Document.parse(data, "").value
    if kind_of(value, None) is not None:
        return True
    found = formats.detect(value)
    return found.format is not None or found.heterogeneous


def _wanted(shown: str, entries: Sequence[Entry], wanted: str) -> list[Entry]:
    found = config_maps.matching(entries, wanted)
    if not found:
        raise InputError(
            f'{shown} has no key "{wanted}" in a ConfigMap',
            hint=f"its keys: {_keys(entries)}" if entries else "it has no ConfigMap with data",
        )
    return found


def _keys(entries: Sequence[Entry]) -> str:
    return and_more([f'"{label}"' for label in map(config_maps.labels(entries), entries)], _SHOWN)


#: The name of the file of a table whose key is not a file name for the current folder.
_USUAL_FILE = "hccl.json"
_KINDS = {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}
#: A key that YAML reads without quotes.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_DAMAGE_HINT = "`kubectl create configmap NAME --from-file=hccl.json` stores the text of a table correctly"


def _damage(entry: Entry) -> str:
    if isinstance(entry.value, str):
        return "the value in binaryData is not valid base64"
    what = _KINDS.get(type(entry.value), "a number")
    return f"the value is {what}, not a string; Kubernetes refuses this ConfigMap"


class Explanation(NamedTuple):
    """Why a Kubernetes object is not a rank table, where, and what to do."""

    message: str
    path: Path
    hint: str


def explain(value: Any, *, is_yaml: bool = False) -> Explanation:
    """Explain why HCCL does not read a Kubernetes object as a rank table.

    Args:
        is_yaml: Whether the file is YAML.
    """
    entries = config_maps.entries(value)
    kind = config_maps.kind_of(value)
    if not entries:
        if kind == "ConfigMap":
            if beside := [
                key for key, one in value.items() if isinstance(one, str) and _USUAL.fullmatch(key)
            ]:
                return _beside_data(value, beside[0])
            return Explanation("it is a Kubernetes ConfigMap without data", (), kubernetes_hint())
        what = f'a Kubernetes object of kind "{kind[:40]}"' if kind else "a Kubernetes object"
        message = f"it is {what} without a ConfigMap that has data"
        return Explanation(message, (), kubernetes_hint())
    tables = _tables(entries)
    if tables:
        message = f"it is a Kubernetes ConfigMap; the rank table is the value of its key {_keys(tables)}"
        return Explanation(message, (), _extract(tables[0]))
    for entry in entries:
        is_table = isinstance(entry.value, dict) and formats.detect(entry.value).format is not None
        if entry.decoded() is None and (is_table or _USUAL.fullmatch(entry.key)):
            hint = _as_text(entry, is_yaml=is_yaml) if is_table else _DAMAGE_HINT
            missing = ', because the "|" behind the key is missing' if is_table and is_yaml else ""
            return Explanation(f'"{entry.key}": {_damage(entry)}{missing}', entry.path, hint)
    message = f"it is a Kubernetes ConfigMap, and none of its keys has a rank table: {_keys(entries)}"
    return Explanation(message, (), "specify a ConfigMap with a rank table")


def _beside_data(value: dict[str, Any], table: str) -> Explanation:
    """Explain that keys of data are beside it; all that moved with the table belong there."""
    moved = [
        table,
        *(key for key, one in value.items() if isinstance(one, str) and key not in {*_OWN, table}),
    ]
    keys = listed_parts([f'"{escaped(key)}"' for key in moved])
    is_one = len(moved) == 1
    noun, verb, them = ("key", "is", "it") if is_one else ("keys", "are", "them")
    return Explanation(
        f'it is a Kubernetes ConfigMap without data: its {noun} {keys} {verb} beside "data"',
        (table,),
        f'move the {noun} into "data": in YAML, indent {them} below data:',
    )


def _as_text(entry: Entry, *, is_yaml: bool) -> str:
    """Return how to make text of a table that is an object in a ConfigMap; all else stays as it is."""
    if is_yaml:
        key = entry.key if _PLAIN.fullmatch(entry.key) else json.dumps(entry.key)
        return (
            f'write "|" behind the key, `{key}: |`, and the table as JSON in the lines below it, '
            "indented: YAML then reads it as text"
        )
    keys = [json.dumps(part) for part in entry.path]  # A key may hold what ends a text in quotes.
    value = f"o[{']['.join(keys)}]"
    program = (
        f"import json, sys; o = json.load(sys.stdin); {value} = json.dumps({value}, indent=2); "
        "print(json.dumps(o, indent=2))"
    )
    return with_places(
        "make the table the text of its key, with all else as it is: "
        f"python3 -I -c {quote(program)} < {FILES}; then apply the new file with `kubectl apply -f`"
    )


def _fetch_command(entry: Entry, outer: Outer) -> str:
    """Return the command that fetches the ConfigMap of an entry again."""
    space = _namespace(entry)
    form = "yaml" if outer.document is None else "json"
    new = f"configmap.{form}" if outer.shown.startswith("<") or is_stream(outer.shown) else outer.shown
    return f"kubectl get configmap{space} {named(entry.name, 'NAME')} -o {form} > {operand(unused(new))}"


def _extract(entry: Entry) -> str:
    return f"extract the table: {_extract_command(entry)}"


def _extract_command(entry: Entry) -> str:
    """Return the command that writes the table of a ConfigMap to a file of its own."""
    decode = " | base64 -d" if entry.path[-2] == "binaryData" else ""
    space = _namespace(entry)
    path = ".".join(("", str(entry.path[-2]), entry.key.replace(".", "\\.")))
    command = f"kubectl get configmap{space} {named(entry.name, 'NAME')} -o jsonpath={quote(f'{{{path}}}')}"
    return f"{command}{decode} > {_extracted(entry)}"


def _extracted(entry: Entry) -> str:
    return file_here(entry.key, _USUAL_FILE)


def _namespace(entry: Entry) -> str:
    return f" -n {named(entry.namespace, 'NAMESPACE')}" if entry.namespace else ""
