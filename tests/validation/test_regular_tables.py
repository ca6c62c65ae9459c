"""No rule finds anything in a table that is used without the rules, however near it is to a wrong one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.tables import large_table
from hccl_tools import formats
from hccl_tools.document.document import Document
from hccl_tools.table.model import SuperPod
from hccl_tools.validation import loading, regular_tables
from hccl_tools.validation.checker import check_table, validate
from tests.support.commands import run_here
from tests.support.strategies import damage

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable

_ROOT = Path(__file__).parents[2]
_FOLDERS = (_ROOT / "tests/data/corpus", _ROOT / "sample_tables")
_PRODUCTS = (None, "910a", "a2", "a3", "a3-server", "300i")
_FORMATS = st.sampled_from(["1.0", "1.0", "1.2", "1.2", "group_list"])
_SETS = ((0,), (5,), (0, 1), (0, 1, 2, 3), (4, 5, 6, 7), tuple(range(8)))
_STEPS = st.sampled_from([1, 1, 2, 8, 16, 256, 256, 257, 4096])
_CARD, _SERVER = 1 << 16, 1 << 22


@st.composite
def _tables(draw: st.DrawFn) -> dict[str, Any]:
    """Return a table whose addresses count on, of which many are regular."""
    made = draw(_of_server_list())
    if (table_format := draw(_FORMATS)) == "1.0":
        return made
    return draw((_in_super_pods if table_format == "1.2" else _as_group_list)(made))


@st.composite
def _in_super_pods(draw: st.DrawFn, made: dict[str, Any]) -> dict[str, Any]:
    """Return a table with its servers in super pods, and super_device_ids that count on."""
    servers = made["server_list"]
    of_server, of_card, first = (
        draw(st.sampled_from(one))
        for one in ((_SERVER, _SERVER, _CARD, 8), (_CARD, _CARD, 3 * _CARD, 1), (0, 0, 5))
    )
    for place, server in enumerate(servers):
        for device in server["device"]:
            number = int(device["device_id"])
            device["super_device_id"] = str(first + place * of_server + number * of_card + number)
    names = [{"server_id": server["server_id"]} for server in servers]
    size = draw(st.sampled_from([1, 2, 3, len(names), len(names)]))
    pods = [names[start : start + size] for start in range(0, len(names), size)]
    ids = draw(st.sampled_from([range(len(pods)), range(len(pods)), range(1, len(pods) + 1)]))
    entries = [
        {"super_pod_id": str(number), "server_list": own} for number, own in zip(ids, pods, strict=True)
    ]
    return {**made, "version": "1.2", "super_pod_list": entries}


@st.composite
def _as_group_list(draw: st.DrawFn, made: dict[str, Any]) -> dict[str, Any]:
    """Return a table as a group_list of one group, or of one for each server."""
    servers = made["server_list"]
    name = draw(st.sampled_from(["job", "", "worker-", "1"]))
    instances = [
        {
            "pod_name": f"{name}{place}",
            "server_id": server["server_id"],
            "devices": [
                {key: item for key, item in device.items() if key != "rank_id"} for device in server["device"]
            ],
        }
        for place, server in enumerate(servers)
    ]
    size = draw(st.sampled_from([1, len(instances), len(instances), len(instances)]))
    groups = [instances[start : start + size] for start in range(0, len(instances), size)]
    return {
        "status": "completed",
        "group_count": str(len(groups)),
        "group_list": [
            {
                "group_name": draw(st.sampled_from(["", "group", "0"])) + (str(place) if place else ""),
                "device_count": str(sum(len(one["devices"]) for one in own)),
                "instance_count": str(len(own)),
                "instance_list": own,
            }
            for place, own in enumerate(groups)
        ],
    }


@st.composite
def _of_server_list(draw: st.DrawFn) -> dict[str, Any]:
    servers = draw(st.sampled_from([1, 1, 2, 3, 9]))
    sets = _SETS if servers == 1 else (tuple(range(8)),)
    devices = draw(st.sampled_from((*sets, tuple(range(16)))))
    first, name = (draw(st.integers(0x0A000001, 0x0A03FFFF)) for _ in range(2))
    step, of_group, of_server, of_name = (draw(_STEPS) for _ in range(4))
    if draw(st.booleans()):
        of_group, of_server = 4 * step, len(devices) * step
    return {
        "version": "1.0",
        "server_count": str(servers),
        "server_list": [
            {
                "server_id": str(IPv4Address(name + server * of_name)),
                "device": [
                    {
                        "device_id": str(device),
                        "device_ip": str(
                            IPv4Address(first + server * of_server + place // 4 * of_group + place % 4 * step)
                        ),
                        "rank_id": str(server * len(devices) + place),
                    }
                    for place, device in enumerate(devices)
                ],
            }
            for server in range(servers)
        ],
        "status": "completed",
    }


def _of_rules_and_without(data: bytes, product: str | None) -> tuple[Report, bool]:
    """Return the report of the rules, and whether the table is regular; both must agree."""
    document = Document.parse(data, "table.json")
    document.path = "/tmp/table.json"
    report = validate(document, product=product, select=("HCC",))  # A selection runs the rules.
    without = validate(document, product=product)
    assert report.asked() == without.asked()
    assert report._replace(left_out_as="ignored", asked=tuple) == without._replace(asked=tuple)
    found = regular_tables.recognise(document, product, {}, on_this_host=False)
    if found is not None:
        table, choice = found
        assert report.findings == (), data
        assert report.verdict == "accepted"
        assert (report.product, report.product_reason) == (choice.product.name, choice.reason)
        assert report.table == table
        new = replace(table, declared={})
        assert check_table(new, product=product).findings == ()
        written = "".join(formats.write(new)).encode()
        assert validate(written, product=product, select=("HCC",)).findings == ()
    return report, found is not None


@given(st.data(), _tables(), st.sampled_from(_PRODUCTS))
@settings(max_examples=800, deadline=None)
def test_no_rule_finds_anything_in_a_regular_table(data: Any, value: Any, product: str | None) -> None:
    if data.draw(st.booleans()):
        damage(data.draw, value)

    _of_rules_and_without(json.dumps(value).encode(), product)


#: Addresses as numbers: of all kinds, netmasks, and the ends of networks.
_ADDRESSES = st.one_of(
    st.ip_addresses(v=4).map(int),
    st.integers(0, 32).map(lambda bits: (0xFFFFFFFF << bits) & 0xFFFFFFFF),
    st.tuples(st.integers(0, 0xFFFFFF), st.sampled_from([0, 1, 254, 255])).map(lambda of: of[0] << 8 | of[1]),
)


@given(_ADDRESSES, _ADDRESSES, st.sampled_from(_SETS), st.sampled_from([1, 1, 256]))
def test_no_rule_finds_anything_in_the_addresses_of_a_regular_table(
    first: int, server: int, devices: tuple[int, ...], step: int
) -> None:
    numbers = [min(first + place * step, 0xFFFFFFFF) for place in range(len(devices))]
    value = {
        "version": "1.0",
        "server_count": "1",
        "server_list": [
            {
                "server_id": str(IPv4Address(server)),
                "device": [
                    {"device_id": str(device), "device_ip": str(IPv4Address(number)), "rank_id": str(rank)}
                    for rank, (device, number) in enumerate(zip(devices, numbers, strict=True))
                ],
            }
        ],
        "status": "completed",
    }

    _of_rules_and_without(json.dumps(value).encode(), "a2")


@pytest.mark.parametrize(
    "address", ["255.255.255.0", "255.0.0.0", "255.255.255.252", "127.0.0.1", "0.0.0.1", "169.254.0.1"]
)
def test_an_address_of_no_device_is_not_regular(tmp_path: Path, address: str) -> None:
    data = _written(tmp_path).read_bytes()
    assert _of_rules_and_without(data, "a2")[1]

    assert not _of_rules_and_without(data.replace(b"10.1.0.1", address.encode()), "a2")[1]


@pytest.mark.parametrize("machines", ["910a", "a2"])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_what_gen_makes_is_regular(tmp_path: Path, machines: str, size: int) -> None:
    file = tmp_path / "table.json"
    done = run_here("gen", "--simulate", machines, "--device_num", f"[0,{size})", "-o", str(file))
    assert done.returncode == 0, done.stderr

    assert _of_rules_and_without(file.read_bytes(), machines)[1]


@pytest.mark.parametrize("machines", ["910a", "a2"])
def test_what_gen_makes_for_several_servers_is_regular(tmp_path: Path, machines: str) -> None:
    file = tmp_path / "table.json"
    options = ("--servers", "4", "--device_num", "[0,8)", "-o", str(file))
    done = run_here("gen", "--simulate", machines, *options)
    assert done.returncode == 0, done.stderr

    assert _of_rules_and_without(file.read_bytes(), machines)[1]


@pytest.mark.parametrize("servers", [33, 8192])
@pytest.mark.parametrize(
    ("table_format", "product"), [("1.0", "910a"), ("1.2", "a3"), ("group_list", "910a")]
)
def test_addresses_that_count_on_over_many_networks_are_regular(
    servers: int, table_format: Format, product: str
) -> None:
    """They have addresses that end in 0 and 255, which are those of no host in a network of 256 alone."""
    data = "".join(formats.write(large_table(table_format, servers))).encode()

    assert b'.0"' in data
    assert b'.255"' in data
    assert _of_rules_and_without(data, product)[1]


@pytest.mark.parametrize(
    "options",
    [
        ("--simulate", "a3", "--servers", "4", "--super-pods", "2"),
        ("--simulate", "a3", "--servers", "2"),
        ("--simulate", "910a", "--servers", "4", "--format", "group_list"),
    ],
    ids=" ".join,
)
def test_what_gen_makes_of_super_pods_and_groups_is_regular(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = tmp_path / "table.json"
    done = run_here("gen", *options, "-o", str(file))
    assert done.returncode == 0, done.stderr

    assert _of_rules_and_without(file.read_bytes(), None)[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda pods: pods[0]["server_list"][0].update(note="x"),
        lambda pods: pods.reverse(),
        lambda pods: pods[1].update(super_pod_id="0"),
        lambda pods: pods[1]["server_list"].pop(),
        lambda pods: pods[0].update(note="x"),
        lambda pods: pods[1].update(server_list={}),
        lambda pods: pods.append("2"),
    ],
)
def test_super_pods_that_the_rules_must_see(change: Callable[[Any], object]) -> None:
    table = large_table("1.2", 4)
    names = [server.server_id for server in table.servers]
    table.super_pods = [SuperPod("0", names[:2]), SuperPod("1", names[2:])]
    value = json.loads("".join(formats.write(table)))
    assert _of_rules_and_without(json.dumps(value).encode(), "a3")[1]

    change(value["super_pod_list"])

    assert not _of_rules_and_without(json.dumps(value).encode(), "a3")[1]


def test_a_regular_table_is_loaded_without_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    run_here("gen", "--simulate", "910a", "--device_num", "[0,8)", "-o", str(file))
    program = (
        "import sys; from hccl_tools.validation import loading; loading.load(sys.argv[1]); "
        "print(*sorted(name for name in sys.modules if name.startswith('hccl_tools.rules.')))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["hccl_tools.rules.job_variables"]


def test_no_rule_finds_anything_in_the_regular_ones_of_many_tables() -> None:
    files = [file for folder in _FOLDERS for file in sorted(folder.rglob("*.json"))]

    found = [
        _of_rules_and_without(file.read_bytes(), product)[1] for file in files for product in ("910a", "a2")
    ]

    assert any(found)


def _written(folder: Path, **changes: Any) -> Path:
    file = folder / "table.json"
    device = {"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"}
    server = {"server_id": "10.0.0.1", "device": [device]}
    value = {"version": "1.0", "server_count": "1", "server_list": [server], "status": "completed"}
    file.write_text(json.dumps({**value, **changes}))
    return file


def test_a_table_is_read_in_the_same_way_with_and_without_the_rules(tmp_path: Path) -> None:
    file = _written(tmp_path)
    begun: list[RankTable] = []

    quick = loading.load(file, begin=begun.append)
    slow = loading.load(file, begin=begun.append, ignore=["HCC6"])

    assert quick == slow
    assert begun == [quick.table, slow.table]


def test_warnings_of_a_table_that_is_not_regular(tmp_path: Path) -> None:
    found = loading.load(_written(tmp_path, statuss="1"), env={"HCCL_BUFFSIZE": "200"})

    assert len(found.warnings) == 1
    assert "statuss" in found.warnings[0]


@pytest.mark.parametrize(
    "variables", [{"HCCL_BUFFSIZE": "0"}, {"HCCL_INTRA_ROCE_ENABLE": "0"}], ids=lambda one: next(iter(one))
)
def test_a_variable_that_hccl_refuses(tmp_path: Path, variables: dict[str, str]) -> None:
    document = Document.read(_written(tmp_path))

    assert regular_tables.recognise(document, None, {}, on_this_host=False) is not None
    assert regular_tables.recognise(document, None, variables, on_this_host=False) is None


@pytest.mark.parametrize("name", ["table", "table.json.json", ".json"])
def test_a_file_name_that_hccl_refuses(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(_written(tmp_path).read_bytes())

    assert regular_tables.recognise(Document.read(file), None, {}, on_this_host=False) is None
