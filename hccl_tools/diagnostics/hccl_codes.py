"""HCCL's error codes with their meanings and remedies.

Source: the error table of hcomm (``error_code.cc``), the HCCL guide (CANN 8.x and 9.x) and, for the EJ codes
of the driver, published logs. The rules name the codes that a table can cause.
"""

from __future__ import annotations

from hccl_tools.records import NamedTuple


class HcclCode(NamedTuple):
    """An error code: its name in HCCL, its meaning, and a remedy."""

    name: str
    meaning: str
    remedy: str

    @property
    def sentence(self) -> str:
        """Meaning and remedy in one sentence, as in the hint for a failed rank."""
        return f"{self.meaning}: {self.remedy}"


CODES = {
    "EI0001": HcclCode(
        "Config_Error_Invalid_Environment_Variable",
        "an environment variable of HCCL has an invalid value",
        "set the variable that the message names to a value that it allows",
    ),
    "EI0002": HcclCode(
        "Communication_Error_Timeout",
        "a collective operation waited longer than HCCL_EXEC_TIMEOUT for another rank",
        "look for the rank that failed, hung or had more data than the others, then for lost packets"
        " (`error cqe` in the plog)",
    ),
    "EI0003": HcclCode(
        "Invalid_Argument_Collective_Communication_Operator",
        "a collective operation was called with an invalid argument, or RANK_ID is wrong",
        "compare the argument that the message names on all ranks, then RANK_ID with the rank table",
    ),
    "EI0004": HcclCode(
        "File_Operation_Error_Parse",
        "HCCL cannot read the rank table; in CANN 8 and older, a value in it may also be wrong",
        "`hccl-tools validate` reports where and why",
    ),
    "EI0005": HcclCode(
        "Invalid_Argument",
        "the ranks called different operations, or have different tables or HCCL settings",
        "use the same script, data, table and HCCL_BUFFSIZE on all hosts; the message names two ranks that"
        " differ",
    ),
    "EI0006": HcclCode(
        "Communication_Error_Get_Socket",
        "a rank waited longer than HCCL_CONNECT_TIMEOUT (120 s) to connect to another rank",
        "check the rank that the message names; if it started late, raise HCCL_CONNECT_TIMEOUT, else check"
        " the link and the TLS switch (`hccn_tool -i N -tls -g`), which must be the same on all devices",
    ),
    "EI0007": HcclCode(
        "Resource_Error",
        "memory, queue pairs or notify registers are exhausted",
        "use fewer communicators, or a smaller HCCL_BUFFSIZE",
    ),
    "EI0008": HcclCode(
        "Package_Error_Incorrect_HCCL_Version",
        "the hosts have different HCCL versions",
        "install the same CANN everywhere",
    ),
    "EI0009": HcclCode(
        "Communication_Error_Initialize_Transport",
        "two devices could not be linked",
        "check the link between the two devices that the message names (`hccn_tool -i N -link -g`, `-ip -g`,"
        " `-lldp -g`)",
    ),
    "EI0010": HcclCode(
        "Communication_Error_P2P",
        "devices of one server cannot reach each other directly",
        "check them with `npu-smi info`, or set HCCL_INTRA_ROCE_ENABLE=1",
    ),
    "EI0011": HcclCode(
        "Resource_Error_Insufficient_Device_Memory",
        "the device has no memory left",
        "stop the other processes on the device (`npu-smi info`), or use a smaller batch",
    ),
    "EI0012": HcclCode(
        "Execution_Error_SDMA",
        "copying between devices failed",
        "look for a rank that exited earlier, then check the link",
    ),
    "EI0013": HcclCode(
        "Execution_Error_ROCE_CQE",
        "the network between two devices failed",
        "look for a rank that exited earlier, then check the link (`hccn_tool -i N -link_stat -g`)",
    ),
    "EI0014": HcclCode(
        "Config_Error_Ranktable",
        "a value in the rank table is invalid, or contradicts another value or this host's devices",
        "`hccl-tools validate --local` reports where",
    ),
    "EI0015": HcclCode(
        "Communication_Error_Ranktable_Detect",
        "the ranks did not find each other through rank 0's host",
        "check that all ranks were started, that HCCL_SOCKET_IFNAME or HCCL_IF_IP is correct, and that the"
        " hosts reach each other",
    ),
    "EI0016": HcclCode(
        "Config_Error",
        "a setting, often the TLS switch, differs between the devices",
        "use one setting on all devices (`hccn_tool -i N -tls -g` shows the switch); the message lists them",
    ),
    "EI0017": HcclCode(
        "Config_Error_Ranktable",
        "the rank table lacks a key, or the value of a key is not a string",
        "`hccl-tools validate` reports the key",
    ),
    "EI0018": HcclCode(
        "Execution_Error_UB_CQE",
        "the UB link between two devices failed (Ascend 950)",
        "look for a rank that exited earlier, then check the link between the devices that the message names",
    ),
    "EI0019": HcclCode(
        "Communication_Error_Bind_IP_Port",
        "a port of this host that HCCL wants to listen on is in use",
        "look for another job, or a process of an earlier job, on this host; give each job its own"
        " HCCL_IF_BASE_PORT",
    ),
    "EI0020": HcclCode(
        "Communication_Error_Bind_IP_Port",
        "a port of the NPU (16666) that HCCL wants to listen on is in use",
        "if processes share the device, set HCCL_NPU_SOCKET_PORT_RANGE=auto, else stop the other process",
    ),
    "EJ0001": HcclCode(
        "HCCP_Process_Initialization_Failure",
        "the device is still in use by an earlier process",
        "stop the processes that `npu-smi info` shows on the device, wait 10 seconds and start again",
    ),
    "EJ0002": HcclCode("", "the device's network port is down", "check it with `hccn_tool -i N -link -g`"),
    "EJ0003": HcclCode(
        "",
        "a port that HCCL wants to listen on is in use, 60000 to 60015 on the host or 16666 on the device",
        "if another job of this host uses the port, give each job its own HCCL_IF_BASE_PORT, else stop the"
        " process that an earlier job left",
    ),
    "EJ0004": HcclCode(
        "",
        "a device_ip of the rank table is not the address of the device",
        "`hccl-tools validate --local` shows both addresses",
    ),
}
