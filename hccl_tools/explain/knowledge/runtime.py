"""The 50xxxx codes of the CANN runtime (``aclrtSynchronizeStream``, error code is 507048)."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_SOURCE = "the error codes of the CANN runtime (acl/error_codes/rt_error_codes.h)"
_LOOK = "look for the EI code beside it, and at the plog of this rank"
_WAITED = (
    "look for the rank that failed, hung or had more data than the others (EI0002 names it); if one was only"
    " slow, raise HCCL_EXEC_TIMEOUT"
)
#: Code -> its name, its meaning, what to do.
_CODES = {
    "207018": ("device-out-of-memory", "the device has no memory left", "stop other processes on the device (`npu-smi info`), or use a smaller batch"),
    "507000": ("internal-error", "the runtime has an internal error", _LOOK),
    "507001": ("ts-error", "the task scheduler of the device has an internal error", _LOOK),
    "507010": ("ts-heartbeat", "the device does not answer", "look at `npu-smi info` and `dmesg`; reset the device if it stays lost"),
    "507011": ("model-execute", "a model failed on the device", _LOOK),
    "507014": ("aicore-timeout", "a kernel ran too long on the AI Core", "look for the name of the kernel in the plog"),
    "507015": ("aicore-exception", "a kernel failed on the AI Core", "look for the name of the kernel in the plog; check the shapes and addresses that it got"),
    "507016": ("aicore-trap", "a kernel was aborted on the AI Core", "look for the name of the kernel in the plog"),
    "507017": ("aicpu-timeout", "a kernel ran too long on the AI CPU", _WAITED),
    "507018": ("aicpu-exception", "a kernel failed on the AI CPU", _LOOK),
    "507034": ("vector-core-timeout", "an operation ran too long on a vector core; in a job of many ranks it usually waited for another rank", _WAITED),
    "507035": ("vector-core-exception", "a kernel failed on a vector core", "look for the name of the kernel in the plog"),
    "507046": ("stream-sync-timeout", "waiting for a stream exceeded its time limit", _WAITED),
    "507048": ("fftsplus-timeout", "an operation of HCCL waited for another rank until the time limit", _WAITED),
    "507047": ("event-sync-timeout", "waiting for an event exceeded its time limit", _WAITED),
    "507053": ("memory-error", "the memory of the device has an error that cannot be corrected", "look at `npu-smi info -t health -i N`; replace the device if it repeats"),
    "507054": ("memory-ecc-error", "the memory of the device has more wrong bits than it can correct", "look at `npu-smi info -t ecc -i N`; replace the device if it repeats"),
    "507055": ("remote-memory-error", "the memory of another device may have an error", "look for the rank with 507053 or 507054"),
    "507056": ("link-error", "the link between two devices failed", "look for a rank that exited earlier, then check the link (`hccn_tool -i N -link -g`)"),
    "507057": ("remote-error", "the other device may have an error, or this one accessed memory that does not exist", "look at the log of the rank at the other end"),
    "507899": ("driver-internal", "the driver has an internal error", "look for [ERROR] DRV in the plog, and at `npu-smi info`"),
    "507901": ("hdc-disconnect", "the connection to the device was lost", "look for a process that was killed on this device, and at `dmesg`"),
}  # fmt: skip
#: Waits that HCCL_EXEC_TIMEOUT limits; a wait for a stream or an event has a limit of the runtime.
_OPERATIONS = {"507017", "507034", "507048"}
#: The hardware is at fault: nothing else need have failed before.
_FAULTS = {"507054"}
#: The device failed: an error of a rank, after which others lose it.
_ERRORS = {"507010"}
_TIMEOUTS = {"507017", "507034", "507046", "507047", "507048"}

MESSAGES = (
    *(
        Message(
            f"HCM{500 + number}",
            name,
            "timeout"
            if code in _TIMEOUTS
            else "cause"
            if code in _FAULTS
            else "error"
            if code in _ERRORS
            else "code",
            meaning,
            remedy,
            codes=(Code(code),),
            limit="operation" if code in _OPERATIONS else "",
            source=_SOURCE,
            example=f"AclrtSynchronizeDeviceWithTimeout, error code is {code}",
        )
        for number, (code, (name, meaning, remedy)) in enumerate(_CODES.items(), 1)
    ),
    Message(
        "HCM540",
        "fftsplus-task-timeout",
        "timeout",
        "an operation of HCCL waited for another rank until the time limit",
        _WAITED,
        anchor=b"fftsplus task timeout",
        pattern=rb"timeout(?:.*?timeout=(?P<timeout>\d+))?",
        codes=(Code("507048"), Code("EI0002")),
        limit="operation",
        source="published logs",
        example="[ERROR] RUNTIME(17528,python3): hccl fftsplus task timeout, device_id=0, timeout=1836s",
    ),
)
