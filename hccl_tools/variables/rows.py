"""The variables of HCCL that refuse some values: one row for each variable and way of reading.

Each row has the function of HCCL that reads it. Ascend 950 has a reader of its own. With a value that it
refuses, HCCL refuses every job.

Sources: hcomm src/legacy/ascend910: platform/common/externalinput.cc, algorithm/impl/alg_env_config.cc,
framework/common/src/config/env_config.cc; src/legacy/ascend950/framework/env_config: base_config_legacy.h,
env_func.cc.
"""

from __future__ import annotations

from hccl_tools.records import NamedTuple
from hccl_tools.variables.readings import (
    Address,
    Algorithms,
    Flags,
    Interfaces,
    Numbered,
    Pairs,
    Ports,
    Searched,
    Seconds,
    Text,
    Whole,
    Words,
    leading_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Protocol

    class Reading(Protocol):
        """How HCCL reads a variable."""

        @property
        def accepts(self) -> str:
            """What HCCL accepts, as a phrase."""

        def refuses(self, text: str) -> bool:
            """Return whether HCCL refuses the text."""


#: The device types of the older reader, that of the newer reader, and all.
OLDER, NEWER = ("910", "310P", "910B", "910_93"), ("950",)
DEVICES = (*OLDER, *NEWER)
_A2_AND_A3, _OTHER_OLDER, _WITHOUT_310P = ("910B", "910_93"), ("910", "310P"), ("910", "910B", "910_93")


#: What HCCL's readers of variables return for one that is not set.
NOT_SET = "EmptyString"


class Row(NamedTuple):
    """One variable as HCCL reads it.

    Attributes:
        name: The variable.
        reading: How HCCL reads it.
        source: The function of HCCL.
        devices: The device types that read it so.
        only_with: A variable and the number that it must have; else HCCL does not read this one.
        not_set: The text that HCCL takes as not set, if there is one.
    """

    name: str
    reading: Reading
    source: str
    devices: tuple[str, ...] = OLDER
    only_with: tuple[str, int] | None = None
    not_set: str | None = NOT_SET


ROCE, PCIE = "HCCL_INTRA_ROCE_ENABLE", "HCCL_INTRA_PCIE_ENABLE"
EXPANSION, RETRY = "HCCL_OP_EXPANSION_MODE", "HCCL_OP_RETRY_ENABLE"
CONNECT_TIMEOUT, EXEC_TIMEOUT = "HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT"
BASE_PORT, WHITE_LIST = "HCCL_IF_BASE_PORT", "HCCL_WHITELIST_DISABLE"
HOST_RANGE, LOGIC_SUPER_POD = "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_LOGIC_SUPERPOD_ID"
#: The variable with the address of its host that HCCL uses.
OWN_ADDRESS = "HCCL_IF_IP"

SWITCH = Whole(0, 1)
CONNECT_SECONDS = Whole(120, 7200, unit="seconds")
#: The first of 16 ports.
FIRST_PORT = Whole(1024, 65520)
_LONG_WAIT, _SHORT_WAIT = 2_147_483_647, 255 * 68
EXEC_SECONDS = Seconds(_LONG_WAIT, takes_zero=True)
_LAST_U32 = 0xFFFFFFFF
_TRUE_FALSE = Words(("true", "false"), any_case=True)
_TRUE_FALSE_STRICT = Words(("true", "false", "strict"), any_case=True)
_ON_OFF = ("on", "off")
_ZERO_ONE = Words(("0", "1"))
_FAMILY = Words(("AF_INET", "AF_INET6"))
_PATH = Text("a path", 1, 4095)
_ALGORITHMS = (
    "null", "ring", "pipeline", "fullmesh", "H-D_R", "pairwise", "NHR", "NHR_V1", "AHC", "AHC_BROKE", "NB",
    "NA",
)  # fmt: skip
_OPERATIONS = (
    "broadcast", "allreduce", "reduce", "send", "receive", "allgather", "reducescatter", "alltoall", "gather",
    "scatter", "sendrecv",
)  # fmt: skip
_LEVELS = Pairs({f"level{number}": _ALGORITHMS for number in range(4)}, ";", "level0:NA;level1:H-D_R")
RETRY_LEVELS = Pairs(dict.fromkeys(("L0", "L1", "L2"), ("0", "1")), ",", "L1:0,L2:1")
_TRACED = Flags(("ALG", "TASK", "RESOURCE", "AIV_OPS_EXC"))
_TRACE = {"task_monitor_interval": (1, 7_200_000), "connection_fault_detection_time": (20, 7200)}
_TRACE_950 = {
    "task_exception": _ON_OFF,
    "cluster_heartbeat": _ON_OFF,
    "inconsistent_check": ("off", "first", "on"),
}


def _digits(first: int, last: int, step: int = 1, unit: str = "") -> Whole:
    """Return a number as Ascend 950 reads it: digits only."""
    return Whole(first, last, step, unit, takes_minus=False)


#: HCCL accepts every value of PROFILING_MODE and PROFILING_OPTIONS. Whether a file exists depends on the host
#: and is not in this table.
ROWS: tuple[Row, ...] = (
    Row(CONNECT_TIMEOUT, CONNECT_SECONDS, "ParseLinkConnTimeOut"),
    Row(CONNECT_TIMEOUT, _digits(120, 7200, unit="seconds"), "EnvSocketConfig::linkTimeOut", NEWER),
    Row(EXEC_TIMEOUT, Seconds(_SHORT_WAIT, takes_zero=False), "SetHccLExecTimeOut", _OTHER_OLDER),
    Row(EXEC_TIMEOUT, EXEC_SECONDS, "SetHccLExecTimeOut", _A2_AND_A3),
    Row(EXEC_TIMEOUT, Seconds(_LONG_WAIT, takes_zero=True, longest=None), "CheckExecTimeOut", NEWER),
    Row(PCIE, SWITCH, "ParseIntraLinkType"),
    Row(ROCE, SWITCH, "ParseIntraLinkType"),
    Row(WHITE_LIST, Whole(0, 1, may_have_more=True), "ParseHcclWhitelistSwitch"),
    Row(WHITE_LIST, _ZERO_ONE, "CastBin2Bool", NEWER),
    Row("HCCL_WHITELIST_FILE", _PATH, "ParseHcclWhitelistFilePath", OLDER, (WHITE_LIST, 0)),
    Row("HCCL_WHITELIST_FILE", _PATH, "CheckFilePath", NEWER, (WHITE_LIST, 0)),
    Row(OWN_ADDRESS, Address(), "ParseHcclIfIp"),
    Row(OWN_ADDRESS, Address(takes_interface=False), "IpAddress::InitBinaryAddr", NEWER),
    Row("HCCL_SOCKET_IFNAME", Interfaces(), "ParseHcclSocketIfName"),
    Row("HCCL_SOCKET_IFNAME", Interfaces(may_have_gaps=True), "CastSocketIfName", NEWER),
    Row("HCCL_SOCKET_FAMILY", _FAMILY, "ParseHcclSocketFamily, CastSocketFamily", DEVICES),
    Row(BASE_PORT, FIRST_PORT, "ParseHcclIfBasePort"),
    Row(BASE_PORT, _digits(1024, 65520), "EnvHostNicConfig::hcclIfBasePort", NEWER),
    Row(HOST_RANGE, Ports(), "ParseHostSocketPortRange", (*_WITHOUT_310P, *NEWER)),
    Row("HCCL_NPU_SOCKET_PORT_RANGE", Ports(), "ParseNpuSocketPortRange", (*_WITHOUT_310P, *NEWER)),
    Row("HCCL_RDMA_TC", Whole(0, 255, step=4), "ParseRDMATrafficClass"),
    Row("HCCL_RDMA_TC", _digits(0, 255, step=4), "CheckRDMATrafficClass", NEWER),
    Row("HCCL_RDMA_SL", Whole(0, 7), "ParseRDMAServerLevel"),
    Row("HCCL_RDMA_SL", _digits(0, 7), "EnvRdmaConfig::rdmaServerLevel", NEWER),
    Row("HCCL_RDMA_TIMEOUT", Whole(5, 24), "ParseRDMATimeOut", _OTHER_OLDER),
    Row("HCCL_RDMA_TIMEOUT", Whole(5, 20), "ParseRDMATimeOut", _A2_AND_A3),
    Row("HCCL_RDMA_TIMEOUT", _digits(0, 9_999_999_999), "CheckRdmaTimeout", NEWER),
    Row("HCCL_RDMA_RETRY_CNT", Whole(1, 7), "ParseRDMARetryCnt"),
    Row("HCCL_RDMA_RETRY_CNT", _digits(1, 7), "EnvRdmaConfig::rdmaRetryCnt", NEWER),
    Row("HCCL_RDMA_QPS_PER_CONNECTION", Whole(1, 32), "ParseRdmaQpsPerConnection"),
    Row("HCCL_RDMA_QPS_PER_CONNECTION", _digits(1, 32), "EnvRdmaConfig::queueNum", NEWER),
    Row("HCCL_MULTI_QP_THRESHOLD", Whole(1, 8192, unit="KB"), "ParseMultiQpThreshold"),
    Row("HCCL_MULTI_QP_THRESHOLD", _digits(1, 8192, unit="KB"), "EnvRdmaConfig::multiQpThreshold", NEWER),
    Row("HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", _TRUE_FALSE, "ParseRdmaFastPost"),
    Row("HCCL_RDMA_QP_PORT_CONFIG_PATH", _PATH, "ParseMultiQpSrcPortConfigPath, CheckFilePath", DEVICES),
    Row("HCCL_BUFFSIZE", Whole(1, _LAST_U32, unit="MB"), "ParseCclBufferSize"),
    Row("HCCL_BUFFSIZE", _digits(1, 9_999_999_999, unit="MB"), "EnvAlgoConfig::bufferSize", NEWER),
    Row("HCCL_DETERMINISTIC", _TRUE_FALSE, "ParseDeterministic", _OTHER_OLDER),
    Row("HCCL_DETERMINISTIC", _TRUE_FALSE_STRICT, "ParseDeterministic", _A2_AND_A3),
    Row("HCCL_DIAGNOSE_ENABLE", SWITCH, "ParseTaskExceptionSwitch"),
    Row("HCCL_ENTRY_LOG_ENABLE", _ZERO_ONE, "ParseEntryLogEnable, CastBin2Bool", DEVICES),
    Row("HCCL_INTER_HCCS_DISABLE", _TRUE_FALSE, "ParseInterLinkType"),
    Row(EXPANSION, Words(("AI_CPU", "AICPU_CacheDisable", "AIV", "HOST", "HOST_TS")), "ParseOpExpansion"),
    Row(
        EXPANSION,
        Words(("AI_CPU", "AICPU_TS", "AICPU_CacheDisable", "AIV", "CCU_MS", "CCU_SCHED")),
        "CastHcclAccelerator",
        NEWER,
    ),
    Row(RETRY, RETRY_LEVELS, "ParseRetryEnable"),
    Row(
        "HCCL_OP_RETRY_PARAMS",
        Numbered({"MaxCnt": (1, 10), "HoldTime": (0, 60_000), "IntervalTime": (0, 60_000)}),
        "ParseRetryParams",
    ),
    Row(LOGIC_SUPER_POD, Text("a text", 0, 128), "ParseLogicSuperPodId"),
    Row("HCCL_DEBUG_CONFIG", _TRACED, "ParseDebugConfig", OLDER, None, None),
    Row("HCCL_DFS_CONFIG", Searched(_TRACE), "ParseDFSConfig"),
    Row("HCCL_DFS_CONFIG", Pairs(_TRACE_950, ",", "task_exception:on", once=False), "CastDfsConfig", NEWER),
    Row("HCCL_ALGO", Algorithms(_LEVELS, _OPERATIONS, "level0", "null"), "SetHcclAlgoConfig"),
    Row("HCCL_DETOUR", Words(("detour:0", "detour:1")), "CastDetourType", NEWER),
)  # fmt: skip

#: The names of all variables, in the order of the table.
NAMES = tuple(dict.fromkeys(row.name for row in ROWS))


#: The most characters of a value in a message, and of what HCCL accepts in a hint.
_SHOWN = 80


class Problem(NamedTuple):
    """A setting that makes HCCL refuse every job: the message, and what to do."""

    message: str
    hint: str


def refused_values(env: Mapping[str, str], device: str | None) -> Iterator[Problem]:
    """Yield a problem for each variable whose value HCCL refuses.

    Args:
        env: The variables; only those of HCCL are read.
        device: The device type (``Product.device_type``). If it is not known (``None``), only what HCCL
            refuses on every type is reported.
    """
    devices = DEVICES if device is None else (device,)
    refusing: dict[str, dict[str, Row]] = {}
    for row in ROWS:
        for one in devices if row.name in env else ():
            if one in row.devices and _refuses(row, env, one):
                refusing.setdefault(row.name, {})[one] = row
    for name, rows in refusing.items():
        if len(rows) == len(devices):
            accepts = rows[devices[0]].reading.accepts
            message = f'{name}="{_shortened(env[name])}": HCCL accepts {accepts}'
            value = accepts if len(accepts) <= _SHOWN else "such a value"
            yield Problem(message, f"set it to {value}, or unset it")


def contradictions(env: Mapping[str, str], device: str | None) -> Iterator[Problem]:
    """Yield a problem for each pair of variables that HCCL refuses together.

    Ascend 950 does not read these variables; a ``device`` that is not known is taken as one of 910 to A3.
    """
    if device in NEWER:
        return
    texts = {name: env[name] for name in (PCIE, ROCE) if env.get(name, NOT_SET) != NOT_SET}
    numbers = {name: SWITCH.value(text) for name, text in texts.items()}
    if list(numbers.values()) == [0]:
        name, other = (ROCE, PCIE) if ROCE in numbers else (PCIE, ROCE)
        yield Problem(f"{name} is 0 and {other} is not set", f"set {other}=1, or unset {name}")
    elif list(numbers.values()) == [1, 1]:
        yield Problem(f"{ROCE} and {PCIE} are both 1", f"unset one of them, or set {PCIE}=0")


def _refuses(row: Row, env: Mapping[str, str], device: str) -> bool:
    text = env.get(row.name)
    if text is None or text == row.not_set or (device in NEWER and not text):
        return False
    if row.only_with is not None:
        switch, wanted = row.only_with
        if leading_number(env.get(switch, "")) != wanted:
            return False
    return row.reading.refuses(text)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
