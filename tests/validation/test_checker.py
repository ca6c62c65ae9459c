from __future__ import annotations

import copy
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from hccl_tools import formats, validate
from hccl_tools.document import fast_parser
from hccl_tools.errors import InputError, TableError, UsageError
from hccl_tools.validation.checker import check_table, usable
from hccl_tools.validation.loading import load
from tests.support.host_files import topology
from tests.support.strategies import damaged_tables
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools import Report


def ids(report: Report) -> list[str]:
    return [finding.rule.id for finding in report.findings]


@given(damaged_tables())
def test_no_damage_raises_and_the_limit_changes_no_count(value: Any) -> None:
    before = copy.deepcopy(value)
    whole = validate(value, limit=None)
    short = validate(value, limit=1)

    assert short.counts == whole.counts == Counter(one.rule for one in whole.findings)
    assert max(Counter(one.rule for one in short.findings).values(), default=0) <= 1
    assert (short.verdict, short.ok) == (whole.verdict, whole.ok)
    assert value == before


@given(damaged_tables())
def test_fast_and_slow_parser_give_one_verdict(value: Any) -> None:
    data = json.dumps(value).encode()
    fast = validate(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_parser, "import_module", _refuse_import)
        slow = validate(data)

    assert fast.findings == slow.findings
    assert fast.verdict == slow.verdict


def _refuse_import(name: str) -> Any:
    raise ImportError(name)


@pytest.mark.parametrize("table_format", ["1.0", "1.2", "2.0", "group_list"])
def test_sources_are_alike(table_format: str, tmp_path: Path) -> None:
    value = table(table_format)
    file = tmp_path / "table.json"
    file.write_text(json.dumps(value))

    for source in (value, json.dumps(value).encode(), file, str(file)):
        report = validate(source, product=None)
        assert (report.verdict, report.format) == ("accepted", table_format)


def test_what_is_checked_is_said() -> None:
    report = validate(table("1.2"))

    assert (report.format, report.format_reason) == ("1.2", 'version is "1.2"')
    assert (report.product, report.product_reason) == ("a3", "assumed for format 1.2")


def test_product_as_told_or_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_TOOLS_PRODUCT", "a2")

    assert validate(table("1.0")).product == "a2"
    assert validate(table("1.0"), product="300i").product == "300i"


def test_an_unknown_product() -> None:
    with pytest.raises(UsageError, match='unknown product "910x"'):
        validate(table("1.0"), product="910x")


@pytest.mark.parametrize("servers", [1, 2])
def test_servers_of_sixteen_devices_are_judged_as_the_product_that_has_them(servers: int) -> None:
    report = validate(table("1.0", servers=servers, devices=16))

    assert (report.verdict, report.ok, report.product) == ("accepted", True, "a3-server")
    assert "a server has 16 devices, too many for a 910a" in report.product_reason
    assert "an a2 or a 300i, specify it with --product" in report.product_reason


def test_a_product_that_is_named_stays() -> None:
    report = validate(table("1.0", devices=16), product="910a")

    assert (report.product, report.verdict) == ("910a", "refused")


@pytest.mark.parametrize("devices", [9, 12, 17])
def test_no_product_is_guessed_for_a_part_of_a_server(devices: int) -> None:
    assert validate(table("1.0", devices=devices)).product == "910a"


def test_one_wrong_device_id_does_not_change_the_product() -> None:
    value = table("1.0", devices=8)
    value["server_list"][0]["device"][7]["device_id"] = "15"
    report = validate(value)

    assert report.product == "910a"
    assert [finding.rule.id for finding in report.errors] == ["HCC302"]


def test_a_duplicate_does_not_make_a_server_larger() -> None:
    value = table("1.0", devices=8)
    value["server_list"][0]["device"] *= 2

    assert validate(value).product == "910a"


def test_all_faults_are_found_at_once() -> None:
    value = table("1.0", 1, 4)
    devices = value["server_list"][0]["device"]
    devices[0]["rank_id"] = 0
    devices[1]["device_ip"] = "10.0.0.300"
    devices[2]["device_id"] = "3"
    value["server_count"] = "7"

    assert set(ids(validate(value))) >= {"HCC112", "HCC403", "HCC303", "HCC501"}


def test_a_damaged_rank_id_hides_no_gap_of_its_own() -> None:
    value = table("1.0", 1, 4)
    value["server_list"][0]["device"][0]["rank_id"] = 0

    assert ids(validate(value)) == ["HCC112"]


def test_what_hccl_meets_first_comes_first() -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["device"][1]["device_id"] = "4"
    value["server_list"][0]["device"][1]["rank_id"] = "5"

    assert ids(validate(value)) == ["HCC202", "HCC309"]


def test_verdict_is_hccls_whatever_is_selected() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][1]["rank_id"] = "0"

    report = validate(value, ignore=["HCC203"])

    assert (report.ok, report.verdict, ids(report)) == (True, "refused", [])


def test_status_hangs_before_anything_else_is_refused() -> None:
    value = table("1.0")
    value["status"] = "initializing"
    value["server_list"][0]["device"][1]["rank_id"] = "0"

    assert validate(value).verdict == "hangs"


def test_forbidden_is_an_error_and_accepted() -> None:
    value = table("1.0")
    value["server_list"][0]["device"][1]["device_id"] = "4"

    report = validate(value)

    assert (report.ok, report.verdict) == (False, "accepted")
    assert validate(value, product="a2").ok


def test_check_table_needs_no_document() -> None:
    good = formats.read(table("1.0"))
    bad = formats.read(table("1.0", 1, 3))

    assert check_table(good).findings == ()
    assert ids(check_table(bad)) == ["HCC304"]


def test_load_returns_the_table(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_text(json.dumps(table("1.0", 2, 8)))

    report = validate(file)
    read = usable(report)

    assert len(read) == 16
    assert report.ok


def test_load_refuses_with_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    value = table("1.0")
    value["server_list"][0]["device"][1]["rank_id"] = "0"
    file.write_text(json.dumps(value))

    with pytest.raises(TableError, match="HCC203"):
        load(file)


def test_load_refuses_what_is_no_table(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    file.write_text('{"host_list": []}')

    with pytest.raises(TableError, match="HCC110"):
        load(file)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (topology(), "the topology file of an Ascend 950 host"),
        ({"version": "1.2", "server_count": "2", "prefill_device_list": []}, "a prefill/decode device list"),
        ({"version": "1.2", "server_count": "2", "decode_device_list": []}, "a prefill/decode device list"),
    ],
    ids=["topology", "prefill", "decode"],
)
def test_other_files_with_version_and_counts_are_known(value: dict[str, Any], what: str) -> None:
    (found,) = validate(value).findings

    assert found.rule.id == "HCC110"
    assert found.message.startswith(f"not a rank table: it is {what}")


def test_a_table_with_a_key_of_another_file_is_a_table() -> None:
    assert not validate({**table("1.0"), "nodes": [], "edge_list": []}, product="a2").errors


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        validate(tmp_path / "nothing.json")


def test_sound_tables_need_no_schema_library() -> None:
    import subprocess
    import sys

    code = (
        "import sys, json; from hccl_tools import validate; "
        f"assert validate(json.loads({json.dumps(json.dumps(table('1.0')))})).ok; "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "assert not {'jsonschema', 'jsonschema_rs', 'referencing', 'rpds', 'attr'} & loaded; "
        "assert 'hccl_tools.formats.schema' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("product", ["910a", "a2", "a3-server", "300i"])
def test_one_missing_address_on_a_single_server_is_a_warning(product: str) -> None:
    value = table("1.0", devices=4)
    del value["server_list"][0]["device"][1]["device_ip"]
    report = validate(value, product=product)

    assert (report.verdict, report.ok) == ("accepted", True)
    assert [finding.message for finding in report.warnings] == [
        "device 1 has no device_ip, but other devices of its server have a device_ip"
    ]


def test_a_single_server_without_addresses_is_as_good_as_one_with_all() -> None:
    value = table("1.0", devices=4)
    for device in value["server_list"][0]["device"]:
        del device["device_ip"]

    assert validate(value).findings == ()


def test_entries_in_the_wrong_list_leave_the_counts_as_they_are() -> None:
    def device(server: int, number: int) -> dict[str, str]:
        return {
            "device_id": str(number),
            "device_ip": f"192.168.{server}.{100 + number}",
            "rank_id": str(8 * server + number),
        }

    first = {"server_id": "10.0.0.1", "device": [device(0, number) for number in range(8)]}
    second = {"device": [first, *(device(1, number) for number in range(1, 8))]}
    value = {
        "version": "1.0", "server_count": "2", "server_list": [first, second], "status": "completed",
    }  # fmt: skip

    assert validate(value, limit=1).counts == validate(value, limit=None).counts
