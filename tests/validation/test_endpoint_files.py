"""Endpoint files of Ascend 950: the right finding for each damage, and the files of public generators."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from hccl_tools.cli import cli
from hccl_tools.errors import UsageError
from hccl_tools.validation.checker import validate
from tests.support.host_files import endpoint_file, write_endpoint_files, write_root_info

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

FOREIGN = "000000000000002000100000dfdf1001"


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, [*args])


def found(path: Path) -> list[str]:
    return sorted({one.rule.id for one in validate(path).findings})


def first(value: Any) -> Any:
    return value["endpoint_list"][0]


#: A change of the file of device 0, and the rules that find it.
DAMAGES: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "left-over 1.0": (lambda v: v.update(version="1.0"), ["HCC802"]),
    "left-over 1.2": (lambda v: v.update(version="1.2"), ["HCC802"]),
    "a number as version": (lambda v: v.update(version=1.3), ["HCC803"]),
    "no version": (lambda v: v.pop("version"), ["HCC803"]),
    "no network instance": (lambda v: v.pop("net_instance_id"), ["HCC803"]),
    "null as network instance": (lambda v: v.update(net_instance_id=None), ["HCC803"]),
    "an empty list": (lambda v: v.update(endpoint_list=[]), ["HCC803"]),
    "no list": (lambda v: v.pop("endpoint_list"), ["HCC803"]),
    "a text in the list": (lambda v: v["endpoint_list"].append("x"), ["HCC803"]),
    "no comm_id": (lambda v: first(v).pop("comm_id"), ["HCC803"]),
    "a number as plane": (lambda v: v["endpoint_list"][-1].update(plane=1), ["HCC803"]),
    "an unknown protocol": (lambda v: first(v).update(protocol="UB_CTP"), ["HCC804"]),
    "an unknown placement": (lambda v: first(v).update(placement="npu"), ["HCC805"]),
    "uboe on the host": (
        lambda v: first(v).update(protocol="uboe", comm_id="10.0.0.1", placement="host"), ["HCC805"]
    ),
    "an EID with colons": (lambda v: first(v).update(comm_id="0000:" * 7 + "0001"), ["HCC806"]),
    "a short EID": (lambda v: first(v).update(comm_id="df"), ["HCC806"]),
    "no address": (lambda v: first(v).update(protocol="roce", comm_id="eth0"), ["HCC806"]),
    "None as peer": (lambda v: first(v).update(dst_eid="None"), ["HCC807"]),
    "its own EID as peer": (lambda v: first(v).update(dst_eid=first(v)["comm_id"]), ["HCC808"]),
    "the EID of another port": (
        lambda v: first(v).update(dst_eid=v["endpoint_list"][1]["dst_eid"]), ["HCC672", "HCC808"]
    ),
    "a peer in upper case": (lambda v: first(v).update(dst_eid=first(v)["dst_eid"].upper()), ["HCC808"]),
    "a peer on no host": (lambda v: first(v).update(dst_eid=FOREIGN), ["HCC674"]),
    "no peers": (lambda v: [one.pop("dst_eid", 0) for one in v["endpoint_list"]], ["HCC672"]),
    "an old protocol": (lambda v: v["endpoint_list"][-1].update(protocol="ub_tp"), ["HCC671"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_has_its_finding(name: str, tmp_path: Path) -> None:
    path = write_endpoint_files(tmp_path)[0]
    change, rules = DAMAGES[name]
    value = endpoint_file()
    change(value)
    path.write_text(json.dumps(value))

    assert found(path) == rules


def test_the_files_of_a_host_have_no_findings(tmp_path: Path) -> None:
    write_endpoint_files(tmp_path)
    write_root_info(tmp_path)

    result = run("validate", str(tmp_path))

    assert result.exit_code == 0
    assert result.output.count("no findings: hixl accepts this endpoint file") == 8


def test_the_peer_of_a_damaged_file_shows_it_as_well(tmp_path: Path) -> None:
    paths = write_endpoint_files(tmp_path)
    value = endpoint_file(1)
    del first(value)["dst_eid"]
    paths[1].write_text(json.dumps(value))

    result = run("validate", "-f", "concise", str(paths[0]))

    assert result.exit_code == 1
    assert "HCC808 ub_endpoint_npu_1.json has this EID, but it has no dst_eid" in result.output


def test_a_copied_file_is_found(tmp_path: Path) -> None:
    paths = write_endpoint_files(tmp_path)
    paths[3].write_bytes(paths[0].read_bytes())

    result = run("validate", "-f", "concise", "--select", "HCC809", str(paths[0]))

    assert "HCC809 ub_endpoint_npu_3.json has the same EID, and 8 more of this file" in result.output


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ub_endpoint_npu_0.json"
    path.mkdir()

    result = run("validate", str(path))

    assert result.exit_code == 1
    assert "error[HCC801]: this is a directory, not a file" in result.output
    assert "hixl refuses this endpoint file" in result.output


def test_any_other_directory_is_an_error_of_usage(tmp_path: Path) -> None:
    assert run("validate", str(tmp_path)).exit_code == 2


def test_a_left_over_table_under_the_name_of_an_endpoint_file(tmp_path: Path) -> None:
    path = tmp_path / "ub_endpoint_npu_0.json"
    path.write_text('{"version": "1.0", "server_count": "1", "server_list": []}')

    assert found(path) == ["HCC802", "HCC803"]


def test_a_version_alone_is_allowed_but_said(tmp_path: Path) -> None:
    path = tmp_path / "ub_endpoint_npu_0.json"
    path.write_text('{"version": "1.3"}')

    assert found(path) == ["HCC673"]


def test_a_bare_list_of_broken_entries_costs_little(tmp_path: Path) -> None:
    path = tmp_path / "ub_endpoint_npu_0.json"
    path.write_text(json.dumps({**endpoint_file(), "endpoint_list": [{}] * 50_000}))

    report = validate(path, limit=10)

    assert sum(report.counts.values()) == 150_000
    assert len(report.findings) == 10


def test_standard_input_has_no_files_beside_it() -> None:
    result = CliRunner().invoke(cli, ["validate", "-"], input=json.dumps(endpoint_file()))

    assert result.exit_code == 0


class TestPublicGenerators:
    """The structures of the three public generators, and where they contradict each other."""

    def test_host_endpoints_first_and_the_instance_of_layer_0(self, tmp_path: Path) -> None:
        value = endpoint_file()
        host = {"protocol": "ub_ctp", "comm_id": FOREIGN, "placement": "host", "plane": "0"}
        value.update(net_instance_id="127.0.0.1", endpoint_list=[host, *value["endpoint_list"]])
        paths = write_endpoint_files(tmp_path)
        paths[0].write_text(json.dumps(value))

        assert found(paths[0]) == []

    def test_the_instance_of_layer_1_or_null(self, tmp_path: Path) -> None:
        path = write_endpoint_files(tmp_path)[0]
        assert found(path) == []

        path.write_text(json.dumps({**endpoint_file(), "net_instance_id": None}))
        assert found(path) == ["HCC803"]

    def test_files_named_after_the_local_id(self, tmp_path: Path) -> None:
        path = write_endpoint_files(tmp_path, [0])[0]
        write_root_info(tmp_path)
        named = path.rename(tmp_path / "ub_endpoint_npu_32.json")

        (one,) = validate(named).findings

        assert one.rule.id == "HCC810"
        assert "numbered 32, but its EIDs are those of device_id 0" in one.message


def test_show_names_the_peers(tmp_path: Path) -> None:
    path = write_endpoint_files(tmp_path)[2]

    result = run("show", str(path))

    lines = result.output.splitlines()
    assert lines[0].endswith("endpoint file of device 2, version 1.3, network instance 0, 9 endpoints")
    assert "(ub_endpoint_npu_0.json)" in lines[1]
    assert lines[-1].endswith("plane 1")


def test_show_as_json(tmp_path: Path) -> None:
    path = write_endpoint_files(tmp_path)[2]

    shown = json.loads(run("show", str(path), "-f", "json").output)

    assert shown["format"] == "endpoints"
    assert shown["device_id"] == 2
    assert shown["endpoints"][0]["peer_file"] == "ub_endpoint_npu_0.json"
    assert shown["endpoints"][-1]["plane"] == "1"


def test_show_refuses_what_only_tables_have(tmp_path: Path) -> None:
    path = write_endpoint_files(tmp_path)[0]

    with pytest.raises(UsageError, match=r"--rank does not apply to .*: it is not a rank table"):
        CliRunner().invoke(cli, ["show", str(path), "--rank", "0"], catch_exceptions=False)
