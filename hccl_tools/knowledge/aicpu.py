"""Lines of the device's own log about an operation of HCCL that the AI CPU runs."""

from __future__ import annotations

from hccl_tools.knowledge.message import Code, Message

_SOURCE = "ascend-faultdiag, public test logs"

MESSAGES = (
    Message(
        "HCM340", "aicpu-notify-wait", "timeout",
        "a collective operation waited for another rank until the time limit",
        "look for the rank that failed, hung or had more data than the others; if it was only slow, raise HCCL_EXEC_TIMEOUT on all ranks",
        limit="operation", anchor=b"base information is streamId:", pattern=rb"type: ?NOTIFY WAIT\b",
        codes=(Code("EI0002"),), source=_SOURCE,
        example="[ERROR] HCCL(4711,aicpu_scheduler):2026-03-18-10:33:52.113.403 [aicpu_communicator.cc:1] [4712][TaskException]base information is streamId:3, sqid:4, head:5, tail:6, type:NOTIFY WAIT, localRank:1, remoteRank:0, taskId:7, notifyId:8",
    ),
    Message(
        "HCM341", "aicpu-sdma", "error",
        "copying between devices failed",
        "look for a rank that exited earlier, then check the device (`npu-smi info -t health -i N`)",
        anchor=b"base information is streamId:", pattern=rb"type: ?SDMA\b",
        codes=(Code("EI0012", "9"),), explains=("HCM340", "HCM342", "HCM002", "HCM306", "HCM307", "HCM309"), source=_SOURCE,
        example="[ERROR] HCCL(4711,aicpu_scheduler):2026-03-18-10:33:52.113.403 [aicpu_communicator.cc:1] [4712][TaskException][AICPU]base information is streamId:3, sqid:4, head:5, tail:6, type:SDMA, localRank:1, remoteRank:2, taskId:7, notifyId:0",
    ),
    Message(
        "HCM342", "aicpu-task-failed", "code",
        "an operation of HCCL failed on the device",
        "look at the lines that follow it in the device's log: they name the kind of the task and the ranks",
        anchor=b"run failed of exception", pattern=rb"Task ?\{.{0,100}\} run failed of exception", source=_SOURCE,
        example="[ERROR] HCCL(4711,aicpu_scheduler):2026-03-18-10:33:52.113.403 [aicpu_hccl_sqcq.cc:1] [4712]Task {devId: 1 streamId: 3 sqId: 4 cqId: 5 type: 2} run failed of exception, idx:[0]",
    ),
)  # fmt: skip
