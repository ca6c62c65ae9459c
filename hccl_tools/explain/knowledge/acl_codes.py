"""Numbers of the calls of CANN besides those of ``runtime``: 107001, 500001, 561000, 103900."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hccl_tools.explain.knowledge.message import Kind

_RUNTIME = "the error codes of the CANN runtime (acl/error_codes/rt_error_codes.h)"
_ACL = "the error codes of CANN's calls (acl_base.h)"
_ACLNN = "CANN's documents, return codes of aclnn"
_HIXL = "HIXL's documents (error codes), and adxl_types.h"
_LOOK = "look for the EI code beside it, and at the plog of this rank"
_KERNEL = "look for the name of the kernel in the plog; check the shapes and addresses that it got"
_OPERATOR = (
    "the number says which step failed, not why: look for the first [ERROR] line of the rank's plog; if the"
    " operation communicates, look for EI0006 and a rank that failed"
)
_DEVICE = (
    "start as many ranks per host as it has devices; in a container, pass in every device (/dev/davinciN). A process counts the"
    " devices that it sees from 0, also in ASCEND_RT_VISIBLE_DEVICES"
)
_ABORTED = "look for what failed before: another process, or the recovery of the job, ended the tasks"
#: Id, code, name, kind, meaning, what to do, source.
_CODES: tuple[tuple[str, str, str, Kind, str, str, str], ...] = (
    ("HCM550", "107000", "parameter-invalid", "code", "a call of the CANN runtime got a wrong argument", _LOOK, _RUNTIME),
    ("HCM551", "107001", "device-id-invalid", "error", "the process has no device with this number", _DEVICE, _RUNTIME),
    ("HCM552", "107002", "context-null", "code", "a call of the CANN runtime came before a device was set", "look for an earlier error of this rank: setting the device failed", _RUNTIME),
    ("HCM553", "107003", "stream-context", "code", "a stream belongs to another context", "look at the program: streams are used by the thread and device that made them", _RUNTIME),
    ("HCM554", "107019", "wait-timeout", "timeout", "a wait exceeded its time limit", "look for the rank that failed, hung or came late", _RUNTIME),
    ("HCM555", "107020", "task-timeout", "timeout", "a task on the device exceeded its time limit; in a job of many ranks it usually waited for another rank", "look for the rank that failed, hung or had more data than the others (EI0002 names it)", _RUNTIME),
    ("HCM556", "107022", "device-task-abort", "code", "the tasks of the device were aborted", _ABORTED, _RUNTIME),
    ("HCM557", "107023", "stream-abort", "code", "the tasks of a stream were aborted", _ABORTED, _RUNTIME),
    ("HCM558", "207001", "memory-allocation", "code", "memory could not be allocated", "look at `npu-smi info`; use a smaller batch, or stop other processes on the device", _RUNTIME),
    ("HCM559", "207004", "no-device", "error", "the process sees no device", "check /dev/davinciN and ASCEND_RT_VISIBLE_DEVICES in the container; `npu-smi info` must list the devices there", _RUNTIME),
    ("HCM560", "207005", "resource-allocation", "code", "a resource of the device could not be allocated", "use fewer communicators and streams, and stop other processes on the device", _RUNTIME),
    ("HCM561", "207006", "no-permission", "code", "the process has no permission for the call", "check user and group of /dev/davinciN (HwHiAiUser), and the privileges of the container", _RUNTIME),
    ("HCM562", "500000", "acl-internal-error", "code", "a call of CANN failed internally", _LOOK, _ACL),
    ("HCM563", "500001", "acl-failure", "code", "a call of CANN failed internally; at the start of a program often a part of CANN or a Python package is missing", "look for E19999 or EH9999 and the lines below it; source CANN's set_env.sh, and install the Python packages that CANN's installation guide lists", _ACL),
    ("HCM564", "500002", "graph-engine-failure", "code", "CANN's graph engine failed", _LOOK, _ACL),
    ("HCM565", "500003", "acl-runtime-failure", "code", "the CANN runtime failed", _LOOK, _ACL),
    ("HCM566", "500004", "acl-driver-failure", "code", "the driver failed", "look for [ERROR] DRV in the plog, and at `npu-smi info`", _ACL),
    ("HCM567", "507033", "device-setup", "error", "the device could not be started", "look at `npu-smi info` (another process on the device, health) and `dmesg`; the plog has the driver's own reason", _RUNTIME),
    ("HCM568", "507036", "vector-core-trap", "code", "a kernel was aborted on a vector core", _KERNEL, _RUNTIME),
    ("HCM569", "507042", "aicore-read-overflow", "code", "a kernel on the AI Core read outside of its memory", _KERNEL, _RUNTIME),
    ("HCM570", "507043", "aicore-write-overflow", "code", "a kernel on the AI Core wrote outside of its memory", _KERNEL, _RUNTIME),
    ("HCM571", "507044", "vector-core-read-overflow", "code", "a kernel on a vector core read outside of its memory", _KERNEL, _RUNTIME),
    ("HCM572", "507045", "vector-core-write-overflow", "code", "a kernel on a vector core wrote outside of its memory", _KERNEL, _RUNTIME),
    ("HCM573", "507049", "fftsplus-exception", "code", "an operation of HCCL or a fused kernel failed on the device", _LOOK, _RUNTIME),
    ("HCM574", "507050", "fftsplus-trap", "code", "an operation of HCCL or a fused kernel was aborted on the device", _LOOK, _RUNTIME),
    ("HCM575", "507051", "hdc-send", "code", "a message could not be sent to the device", "look for a process that was killed on this device, and at `dmesg`", _RUNTIME),
    ("HCM576", "507052", "copy-data", "code", "copying data between host and device failed", _LOOK, _RUNTIME),
    ("HCM577", "507900", "aicpu-internal", "code", "the AI CPU has an internal error", _LOOK, _RUNTIME),
    ("HCM578", "507904", "hccl-retry-failed", "error", "HCCL repeated an operation and failed again", "check the links of the devices; EI0013 names both ends", _RUNTIME),
    ("HCM579", "161001", "aclnn-null-pointer", "code", "an operator got a null pointer", _OPERATOR, _ACLNN),
    ("HCM580", "161002", "aclnn-parameter", "code", "an operator refused a parameter, for example a data type or a shape", _OPERATOR, _ACLNN),
    ("HCM581", "361001", "aclnn-runtime", "code", "an operator failed in a call of the CANN runtime", _OPERATOR, _ACLNN),
    ("HCM582", "561000", "aclnn-inner", "code", "an operator failed internally", _OPERATOR, _ACLNN),
    ("HCM583", "561001", "aclnn-shape", "code", "an operator could not determine the shape of its result", _OPERATOR, _ACLNN),
    ("HCM584", "561002", "aclnn-tiling", "code", "an operator could not divide its data for the device", _OPERATOR, _ACLNN),
    ("HCM585", "561003", "aclnn-no-kernel", "code", "an operator has no kernel for this device", "install the kernels (Ascend-cann-kernels) of the same version as CANN", _ACLNN),
    ("HCM586", "561103", "aclnn-inner-null", "code", "an operator met a null pointer internally", _OPERATOR, _ACLNN),
    ("HCM587", "561107", "aclnn-no-opp-path", "code", "ASCEND_OPP_PATH is not set", "source CANN's set_env.sh in the shell that starts the job", _ACLNN),
    ("HCM588", "103900", "hixl-parameter", "code", "the transfer engine (HIXL, adxl) refused a parameter, such as the description of its devices", "look at its plog; check local_comm_res or the table that the program makes: one server_id for all devices of a host, device_ip and server_count", _HIXL),
    ("HCM589", "103901", "hixl-timeout", "timeout", "a transfer or a connection of the transfer engine (HIXL, adxl) exceeded its time limit", "look at the log of the other end", _HIXL),
    ("HCM590", "103902", "hixl-not-connected", "code", "the transfer engine (HIXL, adxl) has no connection to the other end", "look for the connection that failed before, and at the log of the other end", _HIXL),
    ("HCM591", "503900", "hixl-failed", "code", "the transfer engine (HIXL, adxl) failed", _LOOK, _HIXL),
    ("HCM592", "203900", "hixl-resources", "code", "the transfer engine (HIXL, adxl) has no resources left", "look at `npu-smi info`; use fewer connections or smaller buffers", _HIXL),
)  # fmt: skip

MESSAGES = tuple(
    Message(
        id_,
        name,
        kind,
        meaning,
        remedy,
        codes=(Code(code),),
        source=source,
        example=f"open device 0 failed, runtime result = {code}",
    )
    for id_, code, name, kind, meaning, remedy, source in _CODES
)
