"""Each variable is read as HCCL's own reader does (externalinput.cc, env_config.cc; env_func.cc)."""

from __future__ import annotations

import pytest

from hccl_tools.table.products import PRODUCTS
from hccl_tools.variables.rows import DEVICES, NEWER, OLDER, ROWS, refused_values
from tests.support import reference_pages


def refused_on(name: str, text: str, **others: str) -> set[str]:
    """Return the device types that refuse a value."""
    env = {name: text, **others}
    return {one for one in DEVICES if any(p.message.startswith(f"{name}=") for p in refused_values(env, one))}


#: Values that HCCL's own reader refused on an A2.
RECORDED = (
    "HCCL_BUFFSIZE=0",
    "HCCL_ALGO=level0:foo",
    "HCCL_CONNECT_TIMEOUT=119",
    "HCCL_EXEC_TIMEOUT=x",
    "HCCL_IF_BASE_PORT=1",
    "HCCL_IF_IP=x",
    "HCCL_SOCKET_FAMILY=inet",
    "HCCL_RDMA_TC=3",
    "HCCL_RDMA_SL=8",
    "HCCL_RDMA_TIMEOUT=99",
    "HCCL_RDMA_RETRY_CNT=0",
    "HCCL_DETERMINISTIC=yes",
    "HCCL_DIAGNOSE_ENABLE=2",
    "HCCL_ENTRY_LOG_ENABLE=2",
    "HCCL_INTER_HCCS_DISABLE=1",
    "HCCL_RDMA_QPS_PER_CONNECTION=0",
    "HCCL_MULTI_QP_THRESHOLD=0",
    "HCCL_OP_RETRY_PARAMS=x",
    "HCCL_DEBUG_CONFIG=x",
    "HCCL_HOST_SOCKET_PORT_RANGE=x",
    "HCCL_NPU_SOCKET_PORT_RANGE=x",
    "HCCL_DFS_CONFIG=connection_fault_detection_time:5",
)


@pytest.mark.parametrize("setting", RECORDED)
def test_recorded_values_that_hccl_refused(setting: str) -> None:
    name, _, text = setting.partition("=")
    (problem,) = refused_values({name: text}, "910B")

    assert problem.message.startswith(f'{name}="{text}": HCCL accepts ')
    assert problem.hint.startswith("set it to ")
    assert problem.hint.endswith(", or unset it")


@pytest.mark.parametrize(
    "env",
    [
        {"HCCL_WHITELIST_FILE": "none"},
        {"HCCL_WHITELIST_FILE": ""},
        {"HCCL_LOGIC_SUPERPOD_ID": "x" * 128},
        {"PROFILING_MODE": "x"},
        {"HCCL_DFS_CONFIG": "x"},
    ],
    ids=str,
)
def test_recorded_values_that_hccl_accepted(env: dict[str, str]) -> None:
    assert list(refused_values(env, "910B")) == []


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        (
            "HCCL_BUFFSIZE",
            ["1", "01", "4294967295"],
            ["0", "4294967296", "", " 1", "1 ", "+1", "1.0", "00000000001"],
        ),
        ("HCCL_RDMA_TC", ["0", "-0", "252"], ["2", "253", "256", "-4", "\uff14"]),
        ("HCCL_CONNECT_TIMEOUT", ["120", "7200"], ["119", "7201", "120s"]),
        ("HCCL_WHITELIST_DISABLE", ["0", "1", " 1", "+1", "1x"], ["2", "x", "", "-1", "1xxxxxxxxxx"]),
        ("HCCL_EXEC_TIMEOUT", ["0", "2147483647", "1.5", "1.25"], ["1.255", "1.", ".5", "2147483648", "-1"]),
        ("HCCL_SOCKET_FAMILY", ["AF_INET", "AF_INET6"], ["af_inet", "AF_INET ", ""]),
        ("HCCL_INTER_HCCS_DISABLE", ["true", "FALSE"], ["1", "", "true "]),
        ("HCCL_DETERMINISTIC", ["Strict", "true"], ["\u017ftrict", "strict,"]),
        ("HCCL_ENTRY_LOG_ENABLE", ["0", "1"], ["01", "2", ""]),
        (
            "HCCL_IF_IP",
            ["10.0.0.1", "fe80::1%eth0", "10.0.0.1%eth0"],
            ["", "10.0.0", "10.0.0.1%", "%eth0", "host"],
        ),
        ("HCCL_SOCKET_IFNAME", ["eth", "^=eth0,eth1", "=eth0"], ["", "^", "^=", "eth0,", ",eth0", "a,,b"]),
        (
            "HCCL_DEBUG_CONFIG",
            ["", "^alg,Task", "RESOURCE,", "^"],
            ["ALG,x", "ALG TASK", "A^LG", "EmptyString"],
        ),
        (
            "HCCL_NPU_SOCKET_PORT_RANGE",
            ["auto", "", " ", "1", "65535", "60000-60015, 60020", "2-2,1"],
            ["0", "65536", "2-1", "1-5,5", "1-", "-1", "1,", "1-2-3", " auto", "9" * 5000],
        ),
        ("HCCL_OP_RETRY_ENABLE", ["", "L0:0, L1:1"], ["L1:2", "L1:0,L1:0", "L1"]),
        (
            "HCCL_OP_RETRY_PARAMS",
            ["MaxCnt:1,HoldTime:0,IntervalTime:0", "MaxCnt:10, HoldTime:60000, IntervalTime:60000ms"],
            ["MaxCnt:0,HoldTime:0,IntervalTime:0", "MaxCnt:11,HoldTime:0,IntervalTime:0",
             "MaxCnt:1,HoldTime:60001,IntervalTime:0", "MaxCnt:1", "",
             f"MaxCnt:{'9' * 5000},HoldTime:0,IntervalTime:0"],
        ),
        (
            "HCCL_DFS_CONFIG",
            ["", "connection_fault_detection_time:0", "Connection_Fault_Detection_Time:20",
             "task_monitor_interval:7200000"],
            ["connection_fault_detection_time:7201", "task_monitor_interval:7200001",
             "task_monitor_interval:x,a"],
        ),
        (
            "HCCL_ALGO",
            ["", "level0:NA;level1:H-D_R", "allreduce=level0:ring/allgather=level1:NHR", "level0:null"],
            ["level4:NA", "level0:NA;", "level0:NA;level0:NA", "allreduce=level0:null", "others=level0:NA",
             "allreduce=",
             "level0:NA/level1:NA", "level0:NA/allreduce=level0:NA"],
        ),
        ("HCCL_LOGIC_SUPERPOD_ID", ["", "x" * 128], ["x" * 129, "\u00e9" * 65]),
        ("HCCL_RDMA_QP_PORT_CONFIG_PATH", ["/", "x" * 4095], ["", "x" * 4096]),
    ],
)  # fmt: skip
def test_boundaries_on_an_a2(name: str, accepted: list[str], refused: list[str]) -> None:
    assert [text for text in accepted if "910B" in refused_on(name, text)] == []
    assert [text for text in refused if "910B" not in refused_on(name, text)] == []


@pytest.mark.parametrize(
    ("name", "text", "devices"),
    [
        ("HCCL_EXEC_TIMEOUT", "0", {"910", "310P"}),
        ("HCCL_EXEC_TIMEOUT", "17340", set()),
        ("HCCL_EXEC_TIMEOUT", "17341", {"910", "310P"}),
        ("HCCL_EXEC_TIMEOUT", "00000000001", set(OLDER)),
        ("HCCL_EXEC_TIMEOUT", "2147483648", set(DEVICES)),
        ("HCCL_RDMA_TIMEOUT", "20", set()),
        ("HCCL_RDMA_TIMEOUT", "21", {"910B", "910_93"}),
        ("HCCL_RDMA_TIMEOUT", "25", set(OLDER)),
        ("HCCL_DETERMINISTIC", "strict", {"910", "310P"}),
        ("HCCL_NPU_SOCKET_PORT_RANGE", "0", set(DEVICES) - {"310P"}),
        ("HCCL_RDMA_SL", "-0", set(NEWER)),
        ("HCCL_RDMA_SL", "", set(OLDER)),
        ("HCCL_RDMA_SL", "EmptyString", set()),
        ("HCCL_IF_IP", "fe80::1%eth0", set(NEWER)),
        ("HCCL_SOCKET_IFNAME", "eth0,", set(OLDER)),
        ("HCCL_BUFFSIZE", "4294967296", set(OLDER)),
        ("HCCL_DFS_CONFIG", "task_exception:on", set()),
        ("HCCL_DFS_CONFIG", "task_exception:yes", set(NEWER)),
        ("HCCL_DFS_CONFIG", "stuck_detection:on", set(NEWER)),
        ("HCCL_DETOUR", "1", set(NEWER)),
        ("HCCL_ALGO", "x", set(OLDER)),
    ],
)
def test_readers_differ(name: str, text: str, devices: set[str]) -> None:
    assert refused_on(name, text) == devices


def test_the_white_list_is_read_only_when_it_is_on() -> None:
    assert refused_on("HCCL_WHITELIST_FILE", "x" * 4096) == set()
    assert refused_on("HCCL_WHITELIST_FILE", "x" * 4096, HCCL_WHITELIST_DISABLE="1") == set()
    assert refused_on("HCCL_WHITELIST_FILE", "x" * 4096, HCCL_WHITELIST_DISABLE="0") == set(DEVICES)
    assert refused_on("HCCL_WHITELIST_FILE", "x" * 4096, HCCL_WHITELIST_DISABLE="EmptyString") == set()
    assert "910B" in refused_on("HCCL_WHITELIST_FILE", "", HCCL_WHITELIST_DISABLE=" 0")


def test_without_a_product_only_what_each_reader_refuses() -> None:
    def refused(name: str, text: str) -> bool:
        return bool(list(refused_values({name: text}, None)))

    assert refused("HCCL_RDMA_RETRY_CNT", "8")
    assert not refused("HCCL_RDMA_TIMEOUT", "25")
    assert not refused("HCCL_NPU_SOCKET_PORT_RANGE", "0")


def test_a_long_value_is_shortened() -> None:
    (problem,) = refused_values({"HCCL_ALGO": "x" * 100_000}, "910B")

    assert '="' + "x" * 80 + '...": ' in problem.message
    assert len(problem.message) < 400


def test_the_page_is_that_of_the_table() -> None:
    page = (reference_pages.DOCS / "en" / "reference" / "hccl_variables.md").read_text(encoding="utf-8")

    assert page == reference_pages.variables(), "run: python -m tests.support.reference_pages"


def test_each_device_type_is_of_a_product_and_has_one_row_for_each_variable() -> None:
    assert {product.device_type for product in PRODUCTS.values()} == set(DEVICES)
    for device in DEVICES:
        names = [row.name for row in ROWS if device in row.devices]
        assert len(names) == len(set(names))
