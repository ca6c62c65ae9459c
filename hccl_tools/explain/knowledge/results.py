"""HcclResult, the number that HCCL's functions return: "error code is 11", ``ret[9]``, ``errNo[0x...0b]``."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_SOURCE = "hccl_types.h of the HCCL interface"
_NO_REASON = (
    "the number alone does not say more: look for the first EI code or [ERROR] line of the rank's plog"
)
#: Number -> its name in HCCL, its meaning, what to do.
_RESULTS = {
    0: ("HCCL_SUCCESS", "the call succeeded", "nothing is wrong with this call"),
    1: ("HCCL_E_PARA", "HCCL refused an argument, a setting or a value of the rank table", "look for EI0001, EI0003, EI0004, EI0014 or EI0017 in the rank's plog; `hccl-tools validate` checks a rank table"),
    2: ("HCCL_E_PTR", "HCCL met a null pointer, usually because an earlier call failed or the device is not supported", _NO_REASON),
    3: ("HCCL_E_MEMORY", "HCCL could not allocate or copy memory", "look at `npu-smi info`; use a smaller batch or HCCL_BUFFSIZE"),
    4: ("HCCL_E_INTERNAL", "an internal step of HCCL failed", _NO_REASON),
    5: ("HCCL_E_NOT_SUPPORT", "HCCL does not support the call on this product, driver or version of CANN", "compare the versions of CANN and of the driver (`npu-smi info`) with the framework's table of versions"),
    6: ("HCCL_E_NOT_FOUND", "HCCL did not find a rank, a device, a network interface or a file", "look for the name in the rank's plog; check HCCL_SOCKET_IFNAME and the rank table"),
    7: ("HCCL_E_UNAVAIL", "a resource is taken: usually a port is in use or the device is busy", "look for another job on this host, or a process of an earlier job (`npu-smi info`, `ss -ltnp`)"),
    8: ("HCCL_E_SYSCALL", "a call of the operating system failed", "look for the name of the call in the rank's plog; check `ulimit -n` and the free memory"),
    9: ("HCCL_E_TIMEOUT", "a wait for other ranks exceeded its time limit", "look for the rank that failed first or is silent"),
    10: ("HCCL_E_OPEN_FILE_FAILURE", "HCCL could not open a file, usually the rank table", "check that RANK_TABLE_FILE exists on this host and is readable"),
    11: ("HCCL_E_TCP_CONNECT", "HCCL could not open a TCP connection to another rank or to the root", "check that the root rank runs, that the hosts reach each other and that HCCL_SOCKET_IFNAME or HCCL_IF_IP is right"),
    12: ("HCCL_E_ROCE_CONNECT", "HCCL could not connect two devices over RoCE", "check the link and the address of both devices (`hccn_tool -i N -link -g`, `-ip -g`)"),
    13: ("HCCL_E_TCP_TRANSFER", "a TCP connection failed while data was sent", "look for a rank that exited earlier"),
    14: ("HCCL_E_ROCE_TRANSFER", "a RoCE transfer failed", "look for a rank that exited earlier, then at `hccn_tool -i N -link_stat -g`"),
    15: ("HCCL_E_RUNTIME", "a call of the CANN runtime failed", "look for the 50xxxx code beside it, and for [ERROR] RUNTIME in the rank's plog"),
    16: ("HCCL_E_DRV", "a call of the driver failed", "look for [ERROR] DRV in the rank's plog; `npu-smi info` shows whether the device is healthy"),
    17: ("HCCL_E_PROFILING", "the profiler failed", "switch profiling off"),
    18: ("HCCL_E_CCE", "a call of the CCE interface failed", _NO_REASON),
    19: ("HCCL_E_NETWORK", "the network of a device failed", "check the link and the address of the device (`hccn_tool -i N -link -g`, `-ip -g`)"),
    20: ("HCCL_E_AGAIN", "the call must be repeated", _NO_REASON),
    21: ("HCCL_E_REMOTE", "the other end failed: its error arrived as an error CQE", "look for a rank that exited earlier"),
    22: ("HCCL_E_SUSPENDING", "the communicator is suspended, for a recovery", "wait for the recovery, or restart the job"),
    23: ("HCCL_E_OPRETRY_FAIL", "HCCL repeated an operation and failed again", "check the links of the devices; EI0013 names both ends"),
    24: ("HCCL_E_OOM", "the device has no memory left", "stop other processes on the device (`npu-smi info`), or use a smaller batch"),
}  # fmt: skip


MESSAGES = tuple(
    Message(
        f"HCM{100 + number}",
        name,
        "code" if number else "fact",
        meaning,
        remedy,
        codes=(Code(str(number)),),
        source=_SOURCE,
        example=f"HcclAllReduce, error code is {number}",
    )
    for number, (name, meaning, remedy) in _RESULTS.items()
)
