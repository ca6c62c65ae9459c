"""Messages of MindSpore and torch_npu."""

from __future__ import annotations

from hccl_tools.knowledge.message import AFTER_AN_END, Code, Message

_MINDSPORE = "ascend-faultdiag, public rules, and MindSpore's sources"
_TORCH = "torch_npu's sources (ProcessGroupHCCL.cpp, HCCLUtils.cpp)"
_CLUSTER = ("HCM606", "HCM607", "HCM006", "HCM015", "HCM224", "HCM225")

MESSAGES = (
    Message(
        "HCM601", "mindspore-no-table", "cause",
        "MindSpore was started with a rank table, but no variable names it",
        "`hccl-tools launch --rank-table FILE` sets RANK_TABLE_FILE, or start the job with msrun",
        anchor=b"Get hccl rank_table_file failed", explains=_CLUSTER, source=_MINDSPORE,
        example="RuntimeError: Get hccl rank_table_file failed, please export MINDSPORE_HCCL_CONFIG_PATH or RANK_TABLE_FILE.",
    ),
    Message(
        "HCM602", "mindspore-no-rank", "cause",
        "the process was started without a rank: RANK_ID is not set",
        "start the job with `hccl-tools launch`, msrun or mpirun",
        anchor=b"RANK_ID has not been exported", explains=_CLUSTER, source=_MINDSPORE,
        example="RuntimeError: Environment variables RANK_ID has not been exported, please export variables 'RANK_ID'.",
    ),
    Message(
        "HCM603", "mindspore-bind", "cause",
        "the port of MindSpore's scheduler is in use",
        "choose another port (`--master_port`, MS_SCHED_PORT), or stop the process that uses it (`ss -ltnp`)",
        anchor=b"Failed to call bind", explains=_CLUSTER, source=_MINDSPORE,
        example="[ERROR] DISTRIBUTED(17528,python):2026-03-18-10:33:52.113.403 [mindspore/ccsrc/distributed/rpc/tcp/socket_operation.cc:1] Failed to call bind, server: 10.0.0.1:8118, errno: 98",
    ),
    Message(
        "HCM604", "mindspore-listen", "cause",
        "the port of MindSpore's scheduler cannot be listened on",
        "choose another port (`--master_port`, MS_SCHED_PORT), or stop the process that uses it (`ss -ltnp`)",
        anchor=b"Failed to call listen", explains=_CLUSTER, source=_MINDSPORE,
        example="[ERROR] DISTRIBUTED(17528,python):2026-03-18-10:33:52.113.403 [mindspore/ccsrc/distributed/rpc/tcp/tcp_comm.cc:1] Failed to call listen, fd: 12",
    ),
    Message(
        "HCM605", "mindspore-card-held", "cause",
        "the device is still in use by another process",
        "stop the processes that `npu-smi info` shows on the device, wait 10 seconds and start again",
        anchor=b"may be other processes occupying this card", codes=(Code("EJ0001"),), explains=_CLUSTER, source=_MINDSPORE,
        example="RuntimeError: Malloc device memory failed. There may be other processes occupying this card, check as: ps -ef|grep python",
    ),
    Message(
        "HCM606", "mindspore-scheduler-unreachable", "timeout",
        "a worker could not reach MindSpore's scheduler",
        "check that the scheduler runs (MS_ROLE=MS_SCHED, `hccl-tools logs --scheduler`) and that MS_SCHED_HOST and"
        " MS_SCHED_PORT name it on every host",
        limit="cluster", anchor=b"Failed to connect to the meta server node url",
        pattern=rb"node url:? ?(?P<peer_address>[0-9A-Za-z_.:-]+)?", explains=("HCM607", "HCM611", "HCM612"),
        source=_MINDSPORE,
        example="[ERROR] DISTRIBUTED(17528,python):2026-03-18-10:33:52.113.403 [mindspore/ccsrc/distributed/cluster/topology/compute_graph_node.cc:1] Failed to connect to the meta server node url: 10.0.0.1:8118",
    ),
    Message(
        "HCM607", "mindspore-cluster-timeout", "timeout",
        "MindSpore's scheduler did not see all workers in time",
        "look for the worker that failed or was not started; the scheduler's log names those that registered",
        limit="cluster", anchor=b"luster", pattern=rb"[Cc]luster (?:building|initialization|networking).{0,40}(?:timed? ?out|time ?out|failed)|Timed out .{0,40}[Cc]luster",
        source=_MINDSPORE,
        example="[ERROR] DISTRIBUTED(17528,python):2026-03-18-10:33:52.113.403 [mindspore/ccsrc/distributed/cluster/cluster_context.cc:1] Cluster networking timed out for node MS_WORKER",
    ),
    Message(
        "HCM608", "mindspore-worker-count", "code",
        "MindSpore could not form its cluster; the number of workers may not be the one that was planned",
        "compare --worker_num and --local_worker_num of msrun on all hosts",
        anchor=b"Spawned worker process number is not as expected", explains=_CLUSTER, source=_MINDSPORE,
        example="RuntimeError: Spawned worker process number is not as expected, expected 8 but got 4",
    ),
    Message(
        "HCM609", "mindspore-device-count", "cause",
        "the number of devices of a host is not one that the mode allows",
        "use 1, 2, 4 or a multiple of 8 devices per host",
        anchor=b"devNum must be divisible by 8", explains=_CLUSTER, source=_MINDSPORE,
        example="devNum must be divisible by 8 or equal to 1, 2 or 4, but got 3",
    ),
    Message(
        "HCM610", "mindspore-node-lost", "error",
        "MindSpore's scheduler lost a worker",
        "look at the log of that worker: it failed or was killed",
        anchor=b"is timed out", pattern=rb"[Tt]he node:? ?(?P<identifier>\S+) is timed out", source=_MINDSPORE,
        example="[ERROR] DISTRIBUTED(17528,python):2026-03-18-10:33:52.113.403 [mindspore/ccsrc/distributed/cluster/topology/meta_server_node.cc:1] The node: 3 is timed out. It may exit with exception, please check this node's log.",
    ),
    Message(
        "HCM611", "mindspore-networking-failed", "timeout",
        "a process could not join MindSpore's cluster in time",
        "look for the worker that failed or was not started, and check MS_SCHED_HOST, MS_SCHED_PORT and"
        " MS_WORKER_NUM on every host",
        limit="cluster", anchor=b"Building networking for", source="MindSpore 2.10's output",
        example="[ERROR] DISTRIBUTED(17528,7ff07a3c2b80,python):2026-03-18-10:33:52.113.403 [mindspore/ccsrc/cluster/topology/cluster_context.cc:94] Initialize] Building networking for MS_SCHED failed.",
    ),
    Message(
        "HCM612", "mindspore-cluster-failed", "timeout",
        "a process could not join MindSpore's cluster in time",
        "look for the worker that failed or was not started, and check MS_SCHED_HOST, MS_SCHED_PORT and"
        " MS_WORKER_NUM on every host",
        limit="cluster", anchor=b"Failed to initialize distributed job cluster", source="MindSpore 2.10's output",
        example="RuntimeError: Failed to initialize distributed job cluster because some processes in the cluster are not successfully spawned.",
    ),
    Message(
        "HCM613", "minddata-failed", "error",
        "MindSpore's data pipeline failed",
        "the reason names the operation and the file: correct the data or the operation; `Python Call Stack` has the line of your program",
        anchor=b"Refer to 'Dataset Pipeline Error Message'",
        pattern=rb"\bMD\(\d{1,10},.{0,600}?(?P<reason>Exception thrown from .{0,60}Refer to 'Dataset Pipeline Error Message'.{0,300})", source="MindSpore's sources (minddata)",
        example="[ERROR] MD(17528,ffff,python):2026-03-18-10:33:52.113.403 [mindspore/ccsrc/minddata/dataset/util/task_manager.cc:1] InterruptMaster] Task is terminated with err msg: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'. ",
    ),
    Message(
        "HCM614", "minddata-operation", "error",
        "MindSpore's data pipeline failed",
        "correct the file that the line names (read it with the same library), or leave it out; without a file, correct the operation",
        anchor=b" operation: [", pattern=rb"(?P<reason>\w{1,40} operation: \[[^\]\n]{1,80}\] (?:failed|raised)[^\n]{0,600})", source="MindSpore's sources (minddata)",
        example="[ERROR] map operation: [Resize] failed. The corresponding data file is: /data/a.jpg. Resize: size of interpolation is zero.",
    ),
    Message(
        "HCM658", "torch-hccl-call-failed", "code",
        "a call of HCCL failed",
        "look at the code and the lines that follow it, and at the plog of this rank",
        anchor=b"call hccl api failed", source=_TORCH,
        example="RuntimeError: [ERROR] 2026-03-18-10:33:52 (PID:4711, Device:3, RankID:3) ERR02200 DIST call hccl api failed.",
    ),
    Message(
        "HCM659", "torch-npu-memory-held", "cause",
        "the device has no memory left, because another process holds a large part of it",
        "stop that process (`npu-smi info` lists those of a device, `ps -o user,lstart,args -p PID` says whose it is), or use another device;"
        " a smaller batch of this job is not the remedy",
        source="the numbers in torch_npu's message",
    ),
    Message(
        "HCM651", "torch-table-used", "fact",
        "torch_npu connected the ranks with the rank table",
        "nothing",
        anchor=b"Create global hccl comm with ranktable success", source=_TORCH,
        example="[INFO] PTA(17528,python3):2026-03-18-10:33:52 Create global hccl comm with ranktable success, take 120 milliseconds",
    ),
    Message(
        "HCM652", "torch-table-failed", "fact",
        "HCCL refused the rank table, and torch_npu connected the ranks without it",
        "`hccl-tools validate FILE` reports what HCCL refuses",
        anchor=b"Create global hccl comm with ranktable failed", source=_TORCH,
        example="[INFO] PTA(17528,python3):2026-03-18-10:33:52 Create global hccl comm with ranktable failed, switch to original interface.",
    ),
    Message(
        "HCM653", "torch-table-not-available", "fact",
        "torch_npu could not use the file of RANK_TABLE_FILE, and connected the ranks without it",
        "RANK_TABLE_FILE must be a regular file that its owner can read, not a symbolic link, on every host",
        anchor=b"The rank_table_file is not available", source=_TORCH,
        example="[INFO] PTA(17528,python3):2026-03-18-10:33:52 The rank_table_file is not available, switch to original interface.",
    ),
    Message(
        "HCM654", "torch-short-timeout", "fact",
        "HCCL_CONNECT_TIMEOUT is below the 300 s that torch_npu recommends with a rank table",
        "set HCCL_CONNECT_TIMEOUT=300 or more",
        anchor=b"HCCL_CONNECT_TIMEOUT", pattern=rb"recommended.{0,40}300", source=_TORCH,
        example="[WARNING] HCCL_CONNECT_TIMEOUT is 120, the recommended value is 300 seconds or more when a ranktable is used; a rank that times out fails",
    ),
    Message(
        "HCM655", "torch-store-timeout", "timeout",
        "a rank waited for torch's rendezvous store until the time limit",
        "check that rank 0 runs and that MASTER_ADDR and MASTER_PORT name an address that this host reaches",
        limit="store", anchor=b" socket ",
        pattern=rb"(?!.{0,600}(?:EADDRINUSE|ddress already in use))(?:server|client) socket (?:on|has|connect).{0,300}?(?:[\[(](?P<peer_address>[^\[\](), ]{1,64})(?:\](?::(?P<port>\d{1,5}))?|, ?\d{1,5}\))|timed out)(?:.{0,40}?\(errno: ?\d{1,3} ?- ?(?P<reason>[\w ]{1,60}))?",
        source="torch's sources (c10d)",
        causes=("rank 0 failed earlier or was not started", "MASTER_ADDR is an address that the host does not reach"),
        example="[W socket.cpp:601] [c10d] The client socket on [::ffff:198.18.0.1]:29500 has timed out after 60000ms while trying to connect: error",
    ),
    Message(
        "HCM690", "torch-watchdog", "timeout",
        "torch's watchdog saw a collective operation that did not end in time",
        "this rank waited: look for the rank whose operation has a lower number (SeqNum), or that has no such line",
        limit="watchdog", anchor=b"WorkHCCL(",
        pattern=rb"(?:\[(?:PG (?:ID )?(?P<process_group>\d{1,6})\b[^\]]{0,120}? )?Rank (?P<rank>\d+)\].{0,80}?)?WorkHCCL\(SeqNum=(?P<index>\d{1,12}), ?OpType=(?P<tag>\w{1,40})(?:, ?NumelIn=(?P<count>\d{1,18}))?(?:.{0,120}?Timeout\(ms\)=(?P<milliseconds>\d{1,12}))?",
        source=_TORCH,
        example="[rank3]:[E318 10:33:52.113403000 compiler_depend.ts:1] [Rank 3] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=4711, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800123 milliseconds before timing out.",
    ),
    Message(
        "HCM656", "torch-address-in-use", "cause",
        "the port of torch's rendezvous store is in use",
        "choose another MASTER_PORT, or stop the process that uses it (`ss -ltnp`)",
        anchor=b"ddress already in use", pattern=rb"^(?=.{0,1000}?(?:EADDRINUSE|(?:c10d|torch|TCPStore|server socket).{0,400}?ddress already in use))(?:.{0,600}?(?:\bport: ?|\]:)(?P<port>\d{2,5})\b)?",
        explains=("HCM655", "HCM015"), source="torch's sources (c10d)",
        example="RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
    ),
    Message(
        "HCM657", "torch-npu-out-of-memory", "cause",
        "the device has no memory left",
        "use a smaller batch, or stop other processes on the device (`npu-smi info`)",
        anchor=b"NPU out of memory", codes=(Code("EI0011", "9"),),
        explains=("HCM002", "HCM006", "HCM009", "HCM013", "HCM025", "HCM306"), source="torch_npu's sources",
        example="RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)",
    ),
    Message(
        "HCM980", "paddle-without-plug-in", "cause",
        "the Paddle of the ranks knows no NPU: the plug-in for NPUs is missing or not loaded",
        "install paddle-custom-npu for the Python that starts the ranks, beside the paddlepaddle of the same version; without NPUs,"
        " `--cpu` (`spawn`: cpu=True) rehearses on the CPU",
        anchor=b"environment variable FLAGS_selected_s is needed", explains=("HCM844",), source="Paddle's sources (init_parallel_env)",
        example="ValueError: paddle.distributed initialize error, environment variable FLAGS_selected_s is needed, but not set.",
    ),
    Message(
        "HCM981", "paddle-without-endpoints", "cause",
        "a variable is not set with which Paddle's ranks find each other",
        "start the ranks with `hccl-tools launch`; leave out `--start`, or use `--start torch`",
        anchor=b"initialize error, environment variable PADDLE_", pattern=rb"environment variable (?P<variable>PADDLE_(?:CURRENT_ENDPOINT|TRAINER_ID|TRAINERS_NUM)) is needed",
        source="Paddle's sources (init_parallel_env)",
        example="ValueError: paddle.distributed initialize error, environment variable PADDLE_CURRENT_ENDPOINT is needed, but not set.",
    ),
    Message(
        "HCM982", "paddle-without-list-of-endpoints", "cause",
        "a variable is not set with which Paddle's ranks find each other",
        "start the ranks with `hccl-tools launch`, which sets it, or names a file with it in PADDLE_BACKUP_ENV_PATH",
        anchor=b"PADDLE_TRAINER_ENDPOINTS", pattern=rb"environment variable '(?P<variable>PADDLE_TRAINER_ENDPOINTS)' cannot be found",
        source="Paddle's sources (store_utils.cc)",
        example="RuntimeError: (NotFound) The environment variable 'PADDLE_TRAINER_ENDPOINTS' cannot be found.",
    ),
    Message(
        "HCM971", "ray-out-of-memory", "cause",
        "Ray ended processes, because the host had almost no memory left",
        "use less memory per process or fewer processes on the host (`ray logs raylet.out -ip ADDRESS` lists the largest ones), or"
        " raise RAY_memory_usage_threshold",
        anchor=b"emory",
        pattern=rb"\b[1-9]\d{0,5} Workers \(tasks / actors\) killed due to memory pressure \(OOM\)(?:[^\n]{0,200}?\bIP: (?P<server>[0-9a-fA-F.:]{2,45}))?"
        rb"|Memory on the node \(IP: [0-9a-fA-F.:]{2,45}[^\n]{0,400}?exceeds the memory usage threshold[^\n]{0,60}?Ray killed this worker",
        explains=("HCM723", "HCM810", "HCM898", *AFTER_AN_END), source="Ray's sources (node_manager.cc), and published logs (EasyR1#185)",
        example="(raylet) [2026-03-18 10:33:52,113 E 911 911] (raylet) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 351e40, IP: 10.0.0.2) over the last time period.",
    ),
    Message(
        "HCM972", "ray-worker-died", "error",
        "a process of Ray ended without a message of its own",
        "look at the log of that process (`ray logs worker-ID*`), and at the `dmesg` of its host: a signal ended it",
        anchor=b"Worker exit type: SYSTEM_ERROR", pattern=rb"Worker exit type: SYSTEM_ERROR",
        explains=("HCM723",), source="Ray's sources (ActorDiedError)",
        example="The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
    ),
)  # fmt: skip
