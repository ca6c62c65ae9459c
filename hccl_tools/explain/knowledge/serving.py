"""Messages of vLLM, xLLM and MindIE, which serve models."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Message

_MEMORY_OF_VLLM = (
    "lower --max-model-len, raise --gpu-memory-utilization, or divide the model among more devices"
    " (--tensor-parallel-size)"
)
_REFUSED = "MindIE refuses its configuration"
_CONFIG = (
    "correct config.json: worldSize is the number of devices in each list of npuDeviceIds, and modelInstanceNumber the number of these"
    " lists; the line names the value that MindIE refuses"
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
        "HCM920", "mindie-config", "cause",
        _REFUSED,
        _CONFIG,
        anchor=b"npuDeviceI", pattern=rb"(?P<reason>(?:The size of )?npuDeviceI\w{1,8} [^\n]{0,120}?\b(?:does not|do not|must|should|is not|cannot|exceeds?)\b[^\n]{0,160})",
        explains=("HCM921", "HCM922", "HCM923"), source="MindIE's sources (BackendConfigManager)",
        example="The size of npuDeviceIds does not equal to modelInstanceNumber",
    ),
    Message(
        "HCM921", "mindie-config-manager", "cause",
        _REFUSED,
        _CONFIG,
        anchor=b"onfig_manager.cpp", pattern=rb"\[(?:ERROR|CRITICAL)\] \[\w{0,60}onfig_manager\.cpp:\d{1,6}\] ?: ?(?P<reason>[^\n]{1,300})",
        source="MindIE's sources", example="[2026-03-18 10:33:52.113403+08:00] [41] [41] [server] [ERROR] [config_manager.cpp:1] : Failed to initialize ServerConfig from JSON",
    ),
    Message(
        "HCM922", "mindie-parameter", "cause",
        _REFUSED,
        _CONFIG,
        anchor=b"param_checker.cpp", pattern=rb"\[(?:ERROR|CRITICAL)\] \[param_checker\.cpp:\d{1,6}\] ?: ?(?P<reason>[^\n]{1,300})",
        source="MindIE's sources", example="[2026-03-18 10:33:52.113403+08:00] [41] [41] [server] [ERROR] [param_checker.cpp:1] : maxSeqLen must be in [1, 4294967295]",
    ),
    Message(
        "HCM923", "mindie-config-failed", "cause",
        _REFUSED,
        _CONFIG,
        anchor=b"onfigManager init exception", source="MindIE's sources",
        example="[2026-03-18 10:33:52.113403+08:00] [41] [41] [server] [ERROR] [llm_daemon.cpp:1] : ConfigManager init exception",
    ),
    Message(
        "HCM977", "mindie-coded-error", "error",
        "MindIE reports an error",
        "the line says what MindIE refuses or could not do: correct config.json, or free what the line names; its log (mindie/log) has more",
        anchor=b"[MIE", pattern=rb"\[(?:ERROR|CRITICAL)\] \[[\w.]{1,80}:\d{1,6}\] ?: ?\[MIE\w{6,16}\] (?P<reason>[^\n]{1,300})",
        source="published logs (gpustack#3894)",
        example="[2026-03-18 10:33:52.113+08:00] [41] [41] [server] [ERROR] [http_server.cpp:163] : [MIE04E02041C] [endpoint] Failed to listen 172.17.0.3:40032, please check if business ip and port are legal.",
    ),
    Message(
        "HCM934", "local-rank-argument", "cause",
        "the program needs --local_rank, which torch.distributed.launch adds and torchrun and `launch` do not",
        "read it from the environment, `int(os.environ['LOCAL_RANK'])`, and make the argument optional; `hccl-tools launch` sets LOCAL_RANK"
        " with `--start torch`",
        anchor=b": error: the following arguments are required: ",
        pattern=rb"^[\w./-]{1,120}: error: the following arguments are required: [^\n]{0,200}?--local[_-]rank\b",
        source="Python (argparse)",
        example="train.py: error: the following arguments are required: --local_rank",
    ),
    Message(
        "HCM924", "argument-refused", "cause",
        "a program refuses its arguments",
        "correct the command line: `--help` of the program lists its arguments",
        anchor=b": error: ",
        pattern=rb"^(?P<program>[\w./-]{1,120}(?: [a-z][\w-]{0,20})?): error: (?P<reason>(?:argument |unrecognized arguments|the following arguments are required(?!: [^\n]{0,200}?--local[_-]rank\b)|ambiguous option|expected (?:one|at least))[^\n]{0,300})",
        source="Python (argparse)",
        example="api_server.py: error: unrecognized arguments: --tensor-paralel-size 8",
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
