"""The codes of CANN's other parts on the screen: the runtime (EE), the driver (EL), internal errors (E19999)."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_RUNTIME = "CANN's runtime documents (error_code_ref, error-code-guide) and published logs"
_DRIVER = "published logs (Ascend/pytorch#67, vllm-ascend#8186, #8360)"
_TRACEBACK = "the lines below it (TraceBack) name the call that failed"
#: The parts of CANN, each with a code for "internal error": E19999, EE9999, ...
_PARTS = (*"123456789", *"ACDEFGHIJKLNOZ")

MESSAGES = (
    Message(
        "HCM040", "Runtime_Invalid_Argument", "code",
        "a call of the CANN runtime got a wrong argument, or one without a device before it",
        f"{_TRACEBACK}; if it sets or opens a device, look for its own reason (ASCEND_RT_VISIBLE_DEVICES, 507033, 107001)",
        codes=(Code("EE1001"),),
        causes=("a device could not be opened, and the calls after it have none", "a device number is not one of those that the process sees"),
        source=_RUNTIME,
        example="Invalid_Argument(EE1001): The argument is invalid.Reason: rtGetDevMsg execution failed, the context is a null pointer.",
    ),
    Message(
        "HCM041", "Stream_Synchronize_Timeout", "timeout",
        "waiting for a stream exceeded its time limit",
        "look for the rank that failed, hung or came late; the limit is that of the call, not HCCL_EXEC_TIMEOUT",
        codes=(Code("EE1002"),), source=_RUNTIME,
        example="EE1002: [PID: 4711] 2026-03-18-10:33:52.113.403 Stream synchronize timeout",
    ),
    Message(
        "HCM042", "Device_Absent", "code",
        "the driver does not find the device, or the device does not answer",
        "look at `npu-smi info` and `dmesg`; in a container, check that /dev/davinciN is passed to it",
        codes=(Code("EL0001"),), source=_DRIVER,
        example="Device_Absent/Abnormal(EL0001): Device not found or invalid.",
    ),
    Message(
        "HCM043", "Driver_Invalid_Argument", "code",
        "the driver refused a call",
        f"{_TRACEBACK}: often a device could not be opened (`npu-smi info`, then 507033 and the plog of this rank)",
        codes=(Code("EL0003"),), source=_DRIVER,
        example="EL0003: [PID: 4711] 2026-03-18-10:33:52.113.403 The argument is invalid.",
    ),
    Message(
        "HCM044", "Resource_Busy", "error",
        "the driver says that the device is busy",
        "stop the processes and containers that use the device (`npu-smi info` on the host), or wait until its reset has ended",
        codes=(Code("EL0005"),),
        causes=("another process or container uses the device", "the device is being reset", "the driver has not started yet"),
        source="published logs",
        example="Resource_Busy(EL0005): The resources are busy.",
    ),
    Message(
        "HCM045", "Operators_Not_Verified", "code",
        "CANN could not start its programs on the device, because the operator packages (OPP) do not fit",
        "install the kernels (Ascend-cann-kernels) of the same version as CANN, and source its set_env.sh",
        codes=(Code("E30006"),), source="published logs (vllm-ascend#4284)",
        example="E30006: 2026-03-18-10:33:52.113.403 Failed to verify the OPP",
    ),
    Message(
        "HCM046", "Inner_Error", "code",
        "a part of CANN failed internally",
        f"{_TRACEBACK}; look for the first [ERROR] line of the rank's plog",
        codes=tuple(Code(f"E{part}9999") for part in _PARTS),
        source="CANN's documents, maintenance reference, internal errors",
        example="E19999: Inner Error!",
    ),
)  # fmt: skip
