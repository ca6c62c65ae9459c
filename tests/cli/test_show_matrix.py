"""``hccl-tools show -f matrix``: how the devices communicate, held against matrices worked out by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def matrices(run: CommandLine, *args: str) -> list[list[str]]:
    """Return the words of each line before the legend, without empty lines."""
    done = run("show", *args, "-f", "matrix")
    assert done.code == 0
    body, _, legend = done.out.partition("\n\nLegend:\n")
    assert legend
    return [line.split() for line in body.splitlines() if line]


def expected(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


PAIRS_OF_DIES = expected(
    "\n".join(
        [" ".join(f"NPU{device}" for device in range(16))]
        + [
            " ".join(
                [f"NPU{device}"]
                + ["X" if peer == device else "SIO" if peer == device ^ 1 else "HCCS" for peer in range(16)]
            )
            for device in range(16)
        ]
    )
)

SIMULATED = {
    "910a": expected(
        """
             NPU0 NPU1 NPU2 NPU3 NPU4 NPU5 NPU6 NPU7
        NPU0 X    HCCS HCCS HCCS ?    ?    ?    ?
        NPU1 HCCS X    HCCS HCCS ?    ?    ?    ?
        NPU2 HCCS HCCS X    HCCS ?    ?    ?    ?
        NPU3 HCCS HCCS HCCS X    ?    ?    ?    ?
        NPU4 ?    ?    ?    ?    X    HCCS HCCS HCCS
        NPU5 ?    ?    ?    ?    HCCS X    HCCS HCCS
        NPU6 ?    ?    ?    ?    HCCS HCCS X    HCCS
        NPU7 ?    ?    ?    ?    HCCS HCCS HCCS X
        """
    ),
    "a2": expected(
        """
             NPU0 NPU1 NPU2 NPU3 NPU4 NPU5 NPU6 NPU7
        NPU0 X    HCCS HCCS HCCS HCCS HCCS HCCS HCCS
        NPU1 HCCS X    HCCS HCCS HCCS HCCS HCCS HCCS
        NPU2 HCCS HCCS X    HCCS HCCS HCCS HCCS HCCS
        NPU3 HCCS HCCS HCCS X    HCCS HCCS HCCS HCCS
        NPU4 HCCS HCCS HCCS HCCS X    HCCS HCCS HCCS
        NPU5 HCCS HCCS HCCS HCCS HCCS X    HCCS HCCS
        NPU6 HCCS HCCS HCCS HCCS HCCS HCCS X    HCCS
        NPU7 HCCS HCCS HCCS HCCS HCCS HCCS HCCS X
        """
    ),
    "a3": PAIRS_OF_DIES,
    "a5": expected(
        """
             NPU0 NPU1 NPU2 NPU3 NPU4 NPU5 NPU6 NPU7
        NPU0 X    UB   UB   UB   UB   UB   UB   UB
        NPU1 UB   X    UB   UB   UB   UB   UB   UB
        NPU2 UB   UB   X    UB   UB   UB   UB   UB
        NPU3 UB   UB   UB   X    UB   UB   UB   UB
        NPU4 UB   UB   UB   UB   X    UB   UB   UB
        NPU5 UB   UB   UB   UB   UB   X    UB   UB
        NPU6 UB   UB   UB   UB   UB   UB   X    UB
        NPU7 UB   UB   UB   UB   UB   UB   UB   X
        """
    ),
}


@pytest.mark.parametrize("product", SIMULATED)
def test_simulated_machines(product: str, command_line: CommandLine) -> None:
    assert command_line("gen", "--simulate", product, "-o", "made.json").code == 0

    assert matrices(command_line, "made.json", "--product", product) == SIMULATED[product]


def test_one_server_has_the_shape_of_npu_smi_and_a_legend(command_line: CommandLine) -> None:
    command_line.write("t.json", json.dumps(table("1.0", 1, 2)))

    lines = command_line("show", "t.json", "-f", "matrix").out.split("\n")

    assert lines[:5] == [
        "\t   NPU0       NPU1",
        "NPU0       X          HCCS",
        "NPU1       HCCS       X",
        "",
        "Legend:",
    ]
    assert [line.split()[0] for line in lines[5:14]] == [
        "X", "HCCS", "SIO", "UB", "PIX", "PHB", "SYS", "RoCE", "?",
    ]  # fmt: skip
    assert lines[-3] == "  product: 910a, assumed for format 1.0"
    assert lines[-2].startswith("  table: t.json, fingerprint ")


def test_equal_servers_have_one_matrix_and_the_servers_have_another(command_line: CommandLine) -> None:
    command_line.write("t.json", json.dumps(table("1.0", 2, 2)))

    assert matrices(command_line, "t.json") == [
        ["10.0.0.1", "and", "1", "more", "server"],
        ["NPU0", "NPU1"],
        ["NPU0", "X", "HCCS"],
        ["NPU1", "HCCS", "X"],
        ["between", "servers"],
        ["S0", "S1", "Server"],
        ["S0", "X", "RoCE", "10.0.0.1,", "ranks", "0-1"],
        ["S1", "RoCE", "X", "10.0.0.2,", "ranks", "2-3"],
    ]


def test_super_pods(command_line: CommandLine) -> None:
    command_line.write("t.json", json.dumps(table("1.2", 4, 2, pods=2)))

    found = matrices(command_line, "t.json")

    assert found[1:4] == expected("NPU0 NPU1\nNPU0 X SIO\nNPU1 SIO X")
    assert [row[:5] for row in found[6:]] == expected(
        """
        S0 X    HCCS RoCE RoCE
        S1 HCCS X    RoCE RoCE
        S2 RoCE RoCE X    HCCS
        S3 RoCE RoCE HCCS X
        """
    )
    outside = matrices(command_line, "t.json", "--product", "a3-server")
    assert outside[6][:5] == ["S0", "X", "RoCE", "RoCE", "RoCE"]


def test_an_address_that_is_missing_leaves_the_link_open(command_line: CommandLine) -> None:
    value = table("1.2", 2, 2, pods=2)
    for server in value["server_list"]:
        for device in server["device"]:
            del device["device_ip"]
    command_line.write("t.json", json.dumps(value))

    assert matrices(command_line, "t.json")[6][:3] == ["S0", "X", "?"]


def test_many_servers_with_equal_links_are_one_row(command_line: CommandLine) -> None:
    command_line.write("t.json", json.dumps(table("1.2", 18, 2, pods=2)))

    assert matrices(command_line, "t.json")[5:] == [
        ["S0-8", "S9-17", "Server"],
        ["S0-8", "HCCS", "RoCE", "10.0.0.1", "and", "8", "more,", "ranks", "0-17"],
        ["S9-17", "RoCE", "HCCS", "10.0.0.10", "and", "8", "more,", "ranks", "18-35"],
    ]


def test_levels_of_an_ascend_950(command_line: CommandLine) -> None:
    value = table("2.0", 3, 2)
    for entry in value["rank_list"]:
        server = entry["rank_id"] // 2
        first = entry["level_list"][0]
        first["rank_addr_list"][0] |= {"addr_type": "EID", "addr": f"{entry['rank_id']:032x}"}
        pod = {**first, "net_layer": 1, "net_instance_id": f"pod{server // 2}", "net_type": "CLOS"}
        every = {**pod, "net_layer": 2, "net_instance_id": "cluster"}
        every["rank_addr_list"] = [
            {"addr_type": "IPV4", "addr": f"10.0.0.{entry['rank_id'] + 1}", "ports": ["0/9"]}
        ]
        entry["level_list"] += [pod, every]
    command_line.write("t.json", json.dumps(value))

    found = matrices(command_line, "t.json")

    assert found[1:4] == expected("NPU0 NPU1\nNPU0 X UB\nNPU1 UB X")
    assert [row[:4] for row in found[6:]] == expected("S0 X UB RoCE\nS1 UB X RoCE\nS2 RoCE RoCE X")


def test_one_server_of_a_cluster(command_line: CommandLine) -> None:
    command_line.write("t.json", json.dumps(table("1.0", 2, 2)))

    found = matrices(command_line, "t.json", "--server", "10.0.0.2")

    assert found == expected("NPU0 NPU1\nNPU0 X HCCS\nNPU1 HCCS X")


def test_a_rank_has_no_matrix(command_line: CommandLine) -> None:
    command_line.write("t.json", json.dumps(table("1.0", 1, 2)))

    done = command_line("show", "t.json", "--rank", "1", "-f", "matrix")

    assert (done.code, done.out) == (2, "")
    assert "--rank has no matrix" in done.err


def test_a_server_with_too_many_devices_is_refused(command_line: CommandLine) -> None:
    command_line.write("t.json", json.dumps(table("1.0", 1, 129)))

    done = command_line("show", "t.json", "-f", "matrix")

    assert (done.code, done.out) == (1, "")
    assert "server 10.0.0.1 has 129 devices, too many for a matrix" in done.err


def test_names_are_escaped(command_line: CommandLine) -> None:
    value = table("1.0", 2, 1)
    value["server_list"][0]["server_id"] = "\x1b[31mred\n"
    command_line.write("t.json", json.dumps(value))

    out = command_line("show", "t.json", "-f", "matrix").out

    assert "\x1b" not in out
    assert "\\u001b[31mred\\u000a, ranks 0" in out
