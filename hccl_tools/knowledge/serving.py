"""Messages of vLLM, xLLM and MindIE, which serve models."""

from __future__ import annotations

from hccl_tools.knowledge.message import Message

_MEMORY_OF_VLLM = (
    "lower --max-model-len, raise --gpu-memory-utilization, or divide the model among more devices"
    " (--tensor-parallel-size)"
)

MESSAGES = (
    Message(
        "HCM860", "vllm-cache-too-small", "cause",
        "the memory that is left on the device does not hold one request of the longest length (KV cache)",
        _MEMORY_OF_VLLM,
        anchor=b"larger than the available KV",
        pattern=rb"(?P<reason>[\d.]{1,24} Gi?B KV cache is ?needed, which is larger than the available KV [Cc]ache memory \(-?[\d.]{1,24} Gi?B\))",
        explains=("HCM810",), source="vLLM's sources",
        example="ValueError: To serve at least one request with the model's max seq len (32768), (2.00 GiB KV cache is needed, which is larger than the available KV cache memory (0.78 GiB).",
    ),
    Message(
        "HCM861", "vllm-no-cache", "cause",
        "the device has no memory left for the KV cache",
        _MEMORY_OF_VLLM,
        anchor=b"No available memory for the cache blocks", explains=("HCM810",), source="vLLM's sources",
        example="ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
    ),
    Message(
        "HCM862", "vllm-engine-failed", "code",
        "vLLM did not start, because a process of its engine failed",
        "look for the exception of the engine's process (EngineCore) above this line",
        anchor=b"ngine core initialization failed", source="vLLM's sources",
        example="RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    ),
    Message(
        "HCM863", "mindie-table", "cause",
        "MindIE refuses the rank table",
        "`hccl-tools validate --target mindie FILE` shows everything that MindIE refuses in it",
        anchor=b"ranktable",
        pattern=rb"(?P<reason>(?:Parameter \w{1,40}|Invalid server_count|The containerIp|The number of devices)[^\n]{0,160} in ranktable(?: file)?\b|Ranktable file (?:path )?is (?:not exist|invalid))",
        source="MindIE's sources (RanktableConfigManager)",
        example="The containerIp in the server node is empty in ranktable file.",
    ),
    Message(
        "HCM864", "xllm-table-file", "cause",
        "the file of the rank table is not one that xLLM takes",
        "give it the file itself: a file that Kubernetes mounts from a ConfigMap is a link, `readlink -f FILE` shows to what",
        anchor=b"rank_tablefile", pattern=rb"rank_tablefile (?P<reason>must not be a symlink|does not exist|is not readable)",
        explains=("HCM865",), source="xLLM's sources (npu_rank_table_env)",
        example="F20260318 10:33:52.113403 304 npu_rank_table_env.cpp:1] Check failed: !is_symlink(path) rank_tablefile must not be a symlink: /etc/ranktable/ranktable.json",
    ),
    Message(
        "HCM865", "check-failed", "error",
        "a check of the program failed, which ended it",
        "look at what the line compares; the lines below it have the stack",
        anchor=b"Check failed: ", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?F\d{4,8} \d\d:\d\d:\d\d.{0,200}\] Check failed: (?P<reason>[^\n]{0,300})",
        source="glog",
        example="F20260318 10:33:52.113403 304 worker.cpp:1] Check failed: size > 0 (0 vs. 0)",
    ),
)  # fmt: skip
