"""Random tables of all formats with random damage, and all that commands do with one; a seed repeats them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics import FORMATS, render
from hccl_tools.document.document import Document
from hccl_tools.errors import HcclToolsError
from hccl_tools.files import outputs
from hccl_tools.show import description, tree
from hccl_tools.table.difference import compare
from hccl_tools.table.products import PRODUCTS
from hccl_tools.transform.conversion import convert
from hccl_tools.transform.merging import merge
from hccl_tools.transform.replacement import replace_server
from hccl_tools.transform.subsetting import subset
from hccl_tools.validation.checker import validate
from hccl_tools.validation.correction import correct
from hccl_tools.validation.loading import load
from tests.support.mutations import mutated
from tests.support.tables import JSON, omni_service, super_pod_service, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable

#: Values of tables, spoiled in the ways of people and scripts.
_VALUES: tuple[Any, ...] = (
    "0", "1", "7", "8", "16", "64", "-1", "+1", "01", "1.0", "1.2", "2.0", "1.1", "1e3", " 1", "1 ", "", "x",
    "\uff11", "0x1", "4294967295", "4294967296", "9" * 400, "10.0.0.1", "10.0.0.256", "192.168.0.100/24",
    "192.168.0.100:16666", "192.168.000.100", "127.0.0.1", "0.0.0.0", "255.255.255.255", "::1",
    "fe80::1%eth0", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8:9", "completed", "initializing", "Completed",
    "reserve", "device", "host", "lab", "CLOS", "TOPO_FILE_DESC", "1DMESH", "IPV4", "IPV6", "EID",
    "000000000000002000100000dfdf0001", "0/4", "\u8bad\u7ec3", "${RANK}", "<device ip>", "\u200b1",
    "a" * 129, 0, 1, 8, -1, 1.5, 1e308, 2**64, 10**400, True, None, [], {}, [[]], [{}], [None], ["0"],
    {"": ""},
)  # fmt: skip
_KEYS = (
    "rank_id", "device_id", "device_ip", "server_id", "super_device_id", "device_port", "host_ip", "device",
    "devices", "rank_list", "level_list", "rank_addr_list", "super_pod_list", "group_list", "net_layer",
    "status", "version", "Rank_ID", "", "rank_id\n", "设备",
)  # fmt: skip
_ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"HCCL_OP_EXPANSION_MODE": "AI_CPU", "HCCL_OP_RETRY_ENABLE": "L0:0,L1:0,L2:1"},
    {"HCCL_INTRA_ROCE_ENABLE": "1"},
    {"HCCL_BUFFSIZE": "0", "HCCL_ALGO": "level0:foo"},
)


def bases() -> list[JSON]:
    """Return the sound tables that are damaged: all formats, one and several servers."""
    sizes = ((1, 1), (1, 2), (1, 8), (2, 2), (2, 8), (4, 4))
    of_formats = [
        table(name, servers, devices)
        for name in ("1.0", "1.2", "2.0", "group_list", "lab", "server_group_list")
        for servers, devices in sizes
    ]
    return [*of_formats, table("1.2", 4, 4, 2), super_pod_service(2, 4), omni_service(2, 4)]


def make(sound: list[JSON], random: Random) -> bytes:
    """Return the bytes of a table with up to four damages of its values, and sometimes of its text."""
    value: Any = random.choice(sound)
    if random.random() < 0.2:
        text = mutated(value, random)
    else:
        for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 4))):
            value = _damaged(value, random)
        text = json.dumps(value, ensure_ascii=random.random() < 0.5, indent=random.choice((None, 2)))
    data = text.encode(errors="surrogatepass")
    return _damaged_bytes(data, random) if random.random() < 0.2 else data


def _damaged(value: Any, random: Random) -> Any:
    """Return a value with one damage below it, at random depth."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if type(value) is list else []
    if not keys or random.random() < 0.15:
        return random.choice(_VALUES)
    key, copy = random.choice(keys), value.copy()
    if random.random() < 0.75 and isinstance(copy[key], (dict, list)):
        copy[key] = _damaged(copy[key], random)
    elif (way := random.random()) < 0.2:
        del copy[key]
    elif way < 0.35:
        copy = _with_one_more(copy, key, random)
    elif way < 0.5:
        copy[key] = copy[random.choice(keys)]
    elif way < 0.6 and isinstance(copy[key], str) and copy[key].isascii() and copy[key].isdigit():
        copy[key] = int(copy[key][:4000])
    else:
        copy[key] = random.choice(_VALUES)
    return copy


def _with_one_more(copy: Any, key: Any, random: Random) -> Any:
    if isinstance(copy, dict):
        copy[random.choice(_KEYS)] = copy[key]
    else:
        copy[key:key] = [copy[key]] * random.choice((1, 1, 1, 40))
    return copy


def _damaged_bytes(data: bytes, random: Random) -> bytes:
    """Return the bytes as an editor, a download or a script could have left them."""
    at, text = random.randrange(len(data) + 1), data.decode(errors="replace")
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: b"\xef\xbb\xbf" + data,
        lambda: text.encode("utf-16"),
        lambda: text.encode("gb18030", errors="replace"),
        lambda: data[:at],
        lambda: data + data,
        lambda: data + random.choice((b"\n", b"\0", b"x", b"]", b"}", b"// end")),
        lambda: data[:at] + random.randbytes(random.choice((1, 4))) + data[at:],
        lambda: data[:at] + random.choice((b",", b"//x\n", b"/*", b"...", b"NaN", b"'", b'"')) + data[at:],
        lambda: data[:at] + b"[" * random.choice((10, 600, 5000)) + data[at:],
        lambda: data.replace(b'"', "“".encode()),
        lambda: data.replace(b"}", b",}"),
        lambda: data.replace(b'"', b"'"),
        lambda: data.replace(b":", "\uff1a".encode(), random.choice((1, -1))),
        lambda: data.replace(b'"rank_id"', b'"device_id"', random.choice((1, -1))),
        lambda: data.replace(b"e", b"\\u0065", random.choice((1, -1))),
        lambda: b"data: |\n  " + data.replace(b"\n", b"\n  "),
    )
    return random.choice(ways)()


def judge(data: bytes, random: Random) -> str:
    """Do with a table what commands do, and return its verdict; only faults of hccl-tools raise errors."""
    product, env = random.choice((None, *PRODUCTS)), random.choice(_ENVIRONMENTS)
    report = validate(data, product=product, env=env, target=random.choice((None, None, "mindie", "torch")))
    "".join(render([report], random.choice(list(FORMATS)), ascii_only=random.random() < 0.5, width=80))
    if not report.ok and random.random() < 0.2:
        correct(data, lambda text: validate(text, product=product, env=env, limit=None))
    if report.table is not None:
        _show(report.table)
    try:
        loaded = load(data, product=product, env=env).table
    except HcclToolsError:
        return report.verdict
    _transform(loaded, data, random)
    return report.verdict


def _show(read: RankTable) -> None:
    style = tree.Style(group_size=4, width=80)
    list(tree.lines(description.servers(read), style))


def _transform(read: RankTable, data: bytes, random: Random) -> None:
    """Try the commands that make a table of a sound one."""
    to: Format = random.choice(("1.0", "1.2", "group_list"))
    server = read.servers[-1].server_id
    ways: tuple[Callable[[], Any], ...] = (
        lambda: outputs.table_text(convert(read, to=to)),
        lambda: outputs.table_text(merge([("a", read)]).table),
        lambda: merge([("a", read), ("b", read)]),
        lambda: outputs.table_text(subset(read, servers=[server], devices=[0])),
        lambda: compare(read, read),
        lambda: replace_server(Document.parse(data, "table.json"), server, read),
    )
    with suppress(HcclToolsError):
        random.choice(ways)()
