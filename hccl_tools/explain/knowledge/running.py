"""Lines of HCCL while the job runs: operations that wait, transfers that fail, the heartbeat, run facts, the AI CPU."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_GUIDE = "the HCCL guide, fault diagnosis, CANN 8.x and 9.x"
#: The device's own log about an operation that the AI CPU runs.
_DEVICE_LOG = "ascend-faultdiag, public test logs"
_LATER = ("HCM002", "HCM305", "HCM306", "HCM307", "HCM309", "HCM012", "HCM013", "HCM018")
_WAIT = (
    "look for the rank that failed, hung or had more data than the others; if it was only slow, raise"
    " HCCL_EXEC_TIMEOUT on all ranks"
)
_LINK = "look for a rank that exited earlier, then check the link of both devices (`hccn_tool -i N -link_stat -g`)"
_AFTER_A_LINK = ("HCM002", "HCM306", "HCM307", "HCM309")
#: The numbers are those of the driver (hns_roce): 0x15 is "transport retry exceeded", 0x16 "RNR retry exceeded".
_RDMA = "the HCCL guide (EI0013), the hns_roce driver's and CANN's sources (hns_roce_lite)"
#: A line about the network port of a device, which it names before or after the number of the event.
_OF_PORT = rb"^(?:(?=[^\n]{0,600}?\bdev(?:ice)?(?:[ _]?id)?[ :=\[(]{1,3}(?P<device>\d{1,5})\b))?[^\n]{0,600}?"

#: The two numbers that are mistaken: that of the variable, and that of the program.
_VISIBLE = (
    "the variable takes the devices of this host or container, counted from 0 (in a container with four devices 0,1,2,3, whatever their"
    " numbers on the host; `npu-smi info -m`), and the program counts those in the variable from 0: correct the one that differs, or unset"
    " the variable"
)

MESSAGES = (
    Message(
        "HCM343", "heartbeat-lost", "verdict",
        "HCCL's heartbeat lost the process: it has ended, or its host or network is gone",
        "look at the end of its log and at its host: `dmesg`, `last -x` (restarts), `hccn_tool -i N -link_stat -g`",
        anchor=b"Cluster Exception Location",
        pattern=rb"Location\[IP/ID\]: ?\[(?P<peer_server>[^\]/]+)/(?P<peer_device>\d+)\](?:, ?Arrival Time: ?\[(?P<moment>[^\]]{1,40})\], ?Discoverer: ?\[(?P<finder>[^\]/]{1,64})/\d{1,5}\])?.*?ExceptionType: ?\[(?P<reason>[^\]]*Lost[^\]]*)\]",
        explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(835695,python3):2026-03-18-10:33:52.113.403 [task_exception_handler.cc:1] [835695][TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[10.0.0.2/1], Arrival Time:[Wed Mar 18 10:33:20 2026], Discoverer:[10.0.0.1/0], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited, 2. Network Disconnected",
    ),
    Message(
        "HCM970", "hosts-apart", "verdict",
        "the network between two hosts failed",
        "look at the switch and the cables between them, and at the ports of their devices"
        " (`hccn_tool -i N -link_stat -g`, `hccn_tool -i N -net_health -g`)",
        explains=_LATER, source="lost heartbeats of both hosts",
    ),
    Message(
        "HCM301", "cluster-exception", "verdict",
        "HCCL's heartbeat reports the rank of the device: it is late, hangs or has failed",
        "look at the log of that rank: it may work longer than the time limit, or wait for a file, a lock or another program;"
        " `py-spy dump --pid PID` shows what a process does, `dmesg` what its host reports",
        anchor=b"Cluster Exception Location",
        pattern=rb"Location\[IP/ID\]: ?\[(?P<peer_server>[^\]/]+)/(?P<peer_device>\d+)\](?:, ?Arrival Time: ?\[(?P<moment>[^\]]{1,40})\], ?Discoverer: ?\[(?P<finder>[^\]/]{1,64})/\d{1,5}\])?(?:.*?ExceptionType: ?\[(?P<reason>[^\]]*)\])?",
        causes=("the process of that rank exited or was killed", "it hangs", "its network failed"),
        explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(835695,all_reduce_test):2025-10-23-17:28:06.049.385 [task_exception_handler.cc:610] [835695][TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[127.10.0.1/1], Arrival Time:[Thu Oct 23 17:27:36 2025], Discoverer:[127.10.0.1/0], ExceptionType:[Stuck Occurred], Possible Reason:1. The process hangs",
    ),
    Message(
        "HCM302", "abnormal-device", "verdict",
        "HCCL's heartbeat reports the rank of the device: it is late, hangs or has failed",
        "look at the log of that rank: it may work longer than the time limit, or wait for a file, a lock or another program;"
        " `py-spy dump --pid PID` shows what a process does, `dmesg` what its host reports",
        anchor=b"abnormal device(s)",
        pattern=rb"serverId\[(?P<peer_server>[^\]]+)\], ?deviceId\[(?P<peer_device>\d+)\],? ?(?P<reason>[\w ]*)",
        explains=_LATER, source="MindSpore's guide, CANN error cases",
        example="there are(is) 1 abnormal device(s): serverId[10.0.0.1], deviceId[0], Heartbeat Lost Occurred",
    ),
    Message(
        "HCM303", "heartbeat-event", "error",
        "a rank's heartbeat was lost, stuck or broken",
        "look at the log of the device that the line calls crimer rank",
        anchor=b"crimer rank",
        pattern=rb"local rank \[(?P<server>[^\]/]+)/(?P<device>\d+)\]: ?crimer rank \[(?P<peer_server>[^\]/]+)/(?P<peer_device>\d+)\] ?status\[(?P<reason>[^\]]*)\]",
        explains=_LATER, source=_GUIDE,
        example="[INFO] HCCL(686,python):2025-10-23-07:52:59.191.363 [heartbeat.cc:951] [8970][TaskExecStage][HeartbeatAbnormal]local rank [127.10.0.1/1]: crimer rank [127.10.0.2/2] status[LOST] by informer rank [127.10.0.3/3]",
    ),
    Message(
        "HCM304", "error-cqe", "error",
        "the network between two devices failed",
        _LINK,
        anchor=b"cqe err",
        pattern=rb"cqe err(?:or)? status ?\[?(?P<status>\d+)?\]?(?:.*?localInfo ?\{ ?server\[(?P<server>[^\]]*)\], ?deviceId\[(?P<device>\d+)\], ?deviceIp\[(?P<address>[^\]]*)\] ?\}.*?remoteI(?:P|nfo) ?\{ ?server\[(?P<peer_server>[^\]]*)\], ?deviceId\[(?P<peer_device>\d+)\], ?deviceIp\[(?P<peer_address>[^\]]*)\])?",
        codes=(Code("EI0013", "9"), Code("EI0002", "8"), Code("21")),
        causes=("the other rank exited earlier", "the link or the switch lost packets"),
        explains=_AFTER_A_LINK, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [heartbeat.cc:1] [17528][TaskExecStage][HeartbeatAbnormal]cqe error status[12], time[], localInfo{server[10.0.0.1],deviceId[3],deviceIp[192.168.100.3]}, remoteIP{server[10.0.0.2],deviceId[3],deviceIp[192.168.101.3]}",
    ),
    Message(
        "HCM305", "error-cqe-both-ends", "error",
        "the network between two devices failed",
        _LINK,
        anchor=b": server ",
        pattern=rb"Local(?: information)?: server (?P<server>[^,]{1,255}), device ID (?P<device>\d+), device IP (?P<address>[0-9a-fA-F.:]{0,45}[0-9a-fA-F]).{0,300}?Peer(?: information)?: server (?P<peer_server>[^,]{1,255}), device ID (?P<peer_device>\d+), device IP (?P<peer_address>[0-9a-fA-F.:]{0,45}[0-9a-fA-F])",
        codes=(Code("EI0013", "9"), Code("EI0018", "9")),
        causes=("the other rank exited earlier", "the link or the switch lost packets"),
        explains=_AFTER_A_LINK, source=_GUIDE,
        example="EI0013: An error CQE occurred during operator execution. Local: server 10.0.0.1, device ID 3, device IP 192.168.100.3. Peer: server 10.0.0.2, device ID 3, device IP 192.168.101.3.",
    ),
    Message(
        "HCM938", "rdma-retries-exceeded", "error",
        "the RDMA connection between two devices failed: the other end did not acknowledge a packet",
        _LINK,
        anchor=b"error cqe status",
        pattern=rb"error cqe status(?:: (?P<status>0x15)\b| ?\[12\](?:.{0,300}?\bremote ?[Rr]ank ?\[(?P<peer>\d{1,7})\])?)",
        causes=("the other rank exited earlier", "the link or the switch lost packets"),
        explains=_AFTER_A_LINK, source=_RDMA,
        example="[ERROR] ROCE(17528,python3):2026-03-18-10:33:52.113.403 [hns_roce_lite.c:630]hns_roce_lite_handle_error_cqe(630) : error cqe status: 0x15",
    ),
    Message(
        "HCM939", "rdma-receiver-not-ready", "error",
        "the RDMA connection between two devices failed: the other end was not ready to receive",
        "look at the rank at the other end: it exited, hangs, or is late; then check the link of both devices"
        " (`hccn_tool -i N -link_stat -g`)",
        anchor=b"error cqe status",
        pattern=rb"error cqe status(?:: (?P<status>0x16)\b| ?\[13\](?:.{0,300}?\bremote ?[Rr]ank ?\[(?P<peer>\d{1,7})\])?)",
        causes=("the other rank exited earlier or hangs",),
        explains=_AFTER_A_LINK, source=_RDMA,
        example="[ERROR] ROCE(17528,python3):2026-03-18-10:33:52.113.403 [hns_roce_lite.c:630]hns_roce_lite_handle_error_cqe(630) : error cqe status: 0x16",
    ),
    Message(
        "HCM966", "rdma-operation-failed", "error",
        "an RDMA operation between two devices ended with an error",
        "look at the logs of both ranks for an earlier error: with status 0x12 to 0x14 and 0x22 the other end refused the operation, with 0x1 to"
        " 0x6, 0x10 and 0x11 this end did",
        anchor=b"error cqe status",
        pattern=rb"error cqe status: (?P<status>0x(?!1[56]\b)[0-9a-f]{1,4})\b",
        explains=_AFTER_A_LINK, source=_RDMA,
        example="[ERROR] ROCE(17528,python3):2026-03-18-10:33:52.113.403 [hns_roce_lite.c:630]hns_roce_lite_handle_error_cqe(630) : error cqe status: 0x13",
    ),
    Message(
        "HCM967", "rdma-completion-failed", "error",
        "the RDMA connection between two devices failed",
        _LINK,
        anchor=b"failed CQE status[", pattern=rb"failed CQE status\[(?P<status>1[23])\]",
        causes=("the other rank exited earlier", "the link or the switch lost packets"),
        explains=_AFTER_A_LINK, source=_GUIDE,
        example="[ERROR] HCCP(17528,python3):2026-03-18-10:33:52.113.403 [ra_hdc_lite.c:794]tid:17530,ra_hdc_lite_period_poll_cqe : [create][ra_hdc_period_poll]failed CQE status[12], wr[0]",
    ),
    Message(
        "HCM306", "notify-wait", "timeout",
        "a collective operation waited for another rank until the time limit",
        _WAIT,
        limit="operation", anchor=b"taskType[Notify Wait]",
        pattern=rb"taskType\[Notify Wait\](?:.*?tag\[(?P<tag>[^\]]*)\](?:.{0,200}?\bindex ?\[(?P<index>\d{1,12})\])?)?",
        codes=(Code("EI0002"),), source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [task_exception_handler.cc:1] [17528][TaskExecStage][Timeout]Task run failed, base information is streamID:[5], taskID[3], taskType[Notify Wait], tag[AllReduce_group_1]",
    ),
    Message(
        "HCM310", "sdma-failed", "error",
        "copying between devices failed",
        "look for a rank that exited earlier, then check the device (`npu-smi info -t health -i N`)",
        anchor=b"taskType[", pattern=rb"taskType\[(?:Memcpy|Reduce Inline)\]",
        codes=(Code("EI0012", "9"),), source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [task_exception_handler.cc:1] [17528]Task run failed, base information is streamID:[5], taskID[3], taskType[Memcpy]",
    ),
    Message(
        "HCM973", "sdma-error", "error",
        "copying between devices failed (SDMA)",
        "look for memory that was freed, or a communicator that was destroyed, before its operations had ended: wait for the"
        " stream (torch.npu.synchronize()) first; then for a rank that exited earlier, and at the link of the devices",
        anchor=b"sdma ", pattern=rb"(?:err_type=\d{1,4}\[fftsplus sdma error\]|there is an? (?:fftsplus )?sdma error|reason=\[sdma copy error\])",
        codes=(Code("EI0012", "9"), Code("507013")), explains=("HCM307", "HCM310", "HCM012"),
        source="the HCCL guide, fault diagnosis (SDMA ERROR), and CANN's sources (runtime)",
        example="[ERROR] RUNTIME(4711,python3):2026-03-18-10:33:52.113.403 [task_info.cc:1]4712 PrintSdmaErrorInfoForFftsPlusTask:fftsplus task execute failed, dev_id=0, stream_id=5, task_id=2, context_id=1, thread_id=0, err_type=4[fftsplus sdma error]",
    ),
    Message(
        "HCM307", "task-failed", "timeout",
        "an operation of HCCL failed on the device, usually because another rank did not take part",
        _WAIT,
        limit="operation", anchor=b"Task run failed",
        pattern=rb"base information is stream(?:.*?tag\[(?P<tag>[^\]]*)\](?:.{0,200}?\bindex ?\[(?P<index>\d{1,12})\])?)?",
        codes=(Code("EI0002"),), source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [task_exception_handler.cc:1] [17528][TaskExecStage][Timeout]Task run failed, base information is streamID:[5], taskID[3], tag[AllReduce_group_1], AlgType(level 0-1-2):[fullmesh-ring-ring].",
    ),
    Message(
        "HCM308", "group-rank", "fact",
        "the rank in the communicator of a failed operation",
        "nothing",
        anchor=b"groupRank information",
        pattern=rb"group:?\[(?P<identifier>[^\]]*)\].*?rankSize\[(?P<size>\d+)\], ?rankId\[(?P<rank>\d+)\]",
        source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [task_exception_handler.cc:1] [17528][TaskExecStage][Timeout]groupRank information is group:[hccl_world_group], user define information[], rankSize[4], rankId[2]",
    ),
    Message(
        "HCM390", "operation-data", "fact",
        "the operation that failed: its number and its number of elements",
        "nothing",
        anchor=b"opData information", pattern=rb"\bindex ?\[(?P<index>\d{1,12})\](?:.{0,80}?\bcount ?\[(?P<count>\d{1,20})\])?",
        source="published logs",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [task_exception_handler.cc:1] [17528]Task run failed, opData information is deviceId[3], index[42], count[1024], reduceType[sum], src[0xfff0], dst[0xfff8], dataType[float32].",
    ),
    Message(
        "HCM309", "notify-peer", "timeout",
        "a collective operation waited for another rank until the time limit",
        _WAIT,
        limit="operation", anchor=b"emote rank",
        pattern=rb"(?:[Nn]otify|remote rank:).*?remote rank ?:? ?\[(?:(?P<peer>\d+)|(?P<self>local))\]",
        codes=(Code("EI0002"),), source="published logs",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [task_exception_handler.cc:1] [17528]Task para information is Notify Wait, notify id:[0x12], stage:[1], remote rank:[3]",
    ),
    Message(
        "HCM917", "visible-device-missing", "cause",
        "ASCEND_RT_VISIBLE_DEVICES names a device that this host or container does not have",
        _VISIBLE,
        anchor=b"Set visible device failed", pattern=rb"invalid device=(?P<device>0), (?P<reason>input visible devices:\S+)",
        source="published logs (gpustack#3352)",
        example="[ERROR] RUNTIME(42,python3): Set visible device failed, invalid device=0, input visible devices:4",
    ),
    Message(
        "HCM311", "device-number", "cause",
        "a device number does not fit ASCEND_RT_VISIBLE_DEVICES",
        _VISIBLE,
        anchor=b"Set visible device failed", pattern=rb"invalid device=(?P<device>\d+), (?P<reason>input visible devices:\S+)",
        source="published logs",
        example="[ERROR] RUNTIME(17528,python3): Set visible device failed, invalid device=1, input visible devices:1",
    ),
    Message(
        "HCM312", "physical-id-unknown", "cause",
        "a physical device id is used where the runtime sees a subset of the devices",
        "set ASCEND_RT_VISIBLE_DEVICES and the device ids of the program so that both count in the same way",
        anchor=b"rtGetDeviceIndexByPhyId execute failed", source="published logs",
        example="[ERROR] RUNTIME(17528,python3): rtGetDeviceIndexByPhyId execute failed, reason=[the argument is invalid]",
    ),
    Message(
        "HCM391", "port-link-up", "fact",
        "the network port of the device came up again",
        "nothing",
        anchor=b"0x81078603", pattern=_OF_PORT + rb"0x81078603.{0,200}?(?:[Ll]ink ?[Uu]p|[Rr]ecover|[Dd]eassert)",
        source="ascend-faultdiag, public rules",
        example="[EVENT] DEVDRV: event id 0x81078603, port link up, dev 2",
    ),
    Message(
        "HCM313", "port-link-down", "cause",
        "the network port of the device went down",
        "check the cable, the optics and the switch (`hccn_tool -i N -link_stat -g`, `hccn_tool -i N -optical -g`)",
        anchor=b"0x81078603", pattern=_OF_PORT + rb"0x81078603", explains=_LATER, source="ascend-faultdiag, public rules",
        example="[EVENT] DEVDRV: event id 0x81078603, port link down",
    ),
    Message(
        "HCM320", "root-info", "fact",
        "a rank entered the initialisation of a communicator",
        "nothing",
        anchor=b"Entry-HcclCommInitRootInfo",
        pattern=rb"ranks\[(?P<size>\d+)\], ?rank\[(?P<rank>\d+)\], ?rootinfo: ?host ip\[(?P<peer_address>[^\]]*)\] port\[(?P<port>\d+)\].*?identifier\[(?P<identifier>[^\]]*)\], ?deviceLogicId\[(?P<logical>\d+)\]",
        source=_GUIDE,
        example="[INFO] HCCL(17528,python3):2026-03-18-10:31:52.113.403 [op_base.cc:1] [17528]Entry-HcclCommInitRootInfoInner:ranks[4], rank[3], rootinfo: host ip[127.10.0.1] port[60000] nicDeploy[1] identifier[127.10.0.1%eth0_60000_0_1712529353144389], deviceLogicId[3]",
    ),
    Message(
        "HCM321", "setup-agent", "fact",
        "rank, host and device of a process",
        "nothing",
        anchor=b"SetupAgent rankNum[",
        pattern=rb"rankNum\[(?P<size>\d+)\], ?rank\[(?P<rank>\d+)\], ?rootInfo identifier\[(?P<identifier>[^\]]*)\], ?server\[(?P<server>[^\]%]*)[^\]]*\].*?logicDevId\[(?P<logical>\d+)\], ?phydevId\[(?P<device>\d+)\], ?deviceIp\[(?P<address>[^\]]*)\]",
        source=_GUIDE,
        example="[INFO] HCCL(69402,python3):2024-04-07-18:35:53.395.735 [topoinfo_detect.cc:208] [69402][HCCL_TRACE]SetupAgent rankNum[16], rank[10], rootInfo identifier[51.38.67.143%enp189s0f0_60000_0_1712529353144389], server[51.38.67.143%enp189s0f0], serverPort[60000]deviceType[2], logicDevId[2], phydevId[2], deviceIp[192.168.100.212]",
    ),
    Message(
        "HCM322", "local-rank", "fact",
        "rank, host and device of a process",
        "nothing",
        anchor=b"[LocalRank Key Info]",
        pattern=rb"userRank\[(?P<rank>\d+)\] ?hostIp\[[^\]]*\] ?devicePhyId\[(?P<device>\d+)\] ?server\[(?P<server>[^\]%]*)[^\]]*\] ?deviceIp\[(?P<address>[^\]]*)\] ?superPodId\[(?P<value>[^\]]*)\] ?useSuperPodMode\[(?P<local>\d+)\]",
        source=_GUIDE,
        example="[INFO] HCCL(858941,all_reduce_test):2025-12-10-19:53:28.131.357 [hccl_communicator_attrs.cc:330] [858941][LocalRank Key Info]userRank[6] hostIp[127.0.0.1] devicePhyId[6] server[127.0.0.1] deviceIp[0.0.0.0] superPodId[0] useSuperPodMode[0] isStandardCard[0]",
    ),
    Message(
        "HCM323", "communicator", "fact",
        "the size of a communicator",
        "nothing",
        anchor=b"[Communicator Key Info]",
        pattern=rb"identifier\[(?P<identifier>[^\]]*)\] ?rankSize\[(?P<size>\d+)\](?: ?serverNum\[(?P<value>\d+)\])?",
        source=_GUIDE,
        example="[INFO] HCCL(858941,all_reduce_test):2025-12-10-19:53:28.131.340 [hccl_communicator_attrs.cc:329] [858941][Communicator Key Info]identifier[127.0.0.1%eth0_60000_0_1] rankSize[8] serverNum[1] moduleNum[1]",
    ),
    Message(
        "HCM327", "tls-switch", "fact",
        "the TLS switch of the device",
        "it must be the same on all devices of the job: `hccn_tool -i N -tls -g`",
        anchor=b"TLS SWITCH", pattern=rb"(?:phy_id ?\(\d+\) )?TLS SWITCH ?\((?P<tls>[01])\)", source=_GUIDE,
        example="[INFO] HCCP(17528,python3):2026-03-18-10:31:52.113.403 [ra_host.c:1] [17528]TLS SWITCH (1)",
    ),
    Message(
        "HCM328", "communicator-joined", "fact",
        "the rank of a process",
        "nothing",
        anchor=b"HcclCommInit", pattern=rb"HcclCommInit\w{1,30} success\b.{0,200}?rankNum\[(?P<size>\d+)\], ?rank\[(?P<rank>\d+)\](?:.{0,80}?identifier\[(?P<identifier>[^\]]*)\])?", source=_GUIDE,
        example="[INFO] HCCL(17528,python3):2026-03-18-10:32:52.113.403 [op_base.cc:1] [17528]HcclCommInitClusterInfo success, take time [2832416]us, rankNum[64], rank[32], deviceLogicId[0]",
    ),
    Message(
        "HCM326", "init-failed", "code",
        "HCCL could not initialise a communicator",
        "the line does not say why: look for the first EI code or [ERROR] line of the rank's plog",
        anchor=b"HcclCommInit", pattern=rb"(?<!Entry-)HcclCommInit(?:\w{0,40}V2|.{0,120}(?:fail|rror))", source=_GUIDE,
        example="frame #3: HcclCommInitRootInfoConfigV2 + 0x1c4 (0xffff80 in libhccl.so)",
    ),
    Message(
        "HCM324", "connect-timeout-setting", "fact",
        "the time limit for connections that is in force",
        "nothing",
        anchor=b"HCCL_CONNECT_TIMEOUT set by", pattern=rb"\[(?P<timeout>\d+)\] ?s", source=_GUIDE,
        example="[INFO] HCCL(17528,python3):2026-03-18-10:31:52.113.403 [env.cc:1] [17528][HCCL_ENV] HCCL_CONNECT_TIMEOUT set by default to [120]s",
    ),
    Message(
        "HCM325", "exec-timeout-setting", "fact",
        "the time limit for operations that is in force",
        "nothing",
        anchor=b"HCCL_EXEC_TIMEOUT set by", pattern=rb"\[(?P<timeout>\d+)\] ?s", source=_GUIDE,
        example="[INFO] HCCL(17528,python3):2026-03-18-10:31:52.113.403 [env.cc:1] [17528][HCCL_ENV] HCCL_EXEC_TIMEOUT set by default to [1836]s",
    ),
    Message(
        "HCM927", "kernel-address", "error",
        "a kernel used an address outside its data",
        "compare the indices that the program gives the kernel with the size of their table: a token beyond the vocabulary, a label"
        " beyond the classes, a position beyond the longest sequence; ASCEND_LAUNCH_BLOCKING=1 shows the call in the program",
        anchor=b"address of the MTE instruction is out of range", explains=("HCM593", "HCM810"),
        codes=(Code("507015"), Code("507035")), source="CANN's sources (runtime), and published logs (vllm-ascend#4296)",
        example="The extend info: errcode:(0x800000, 0, 0) errorStr: The DDR address of the MTE instruction is out of range. fixp_error0 info: 0x30498f0",
    ),
    Message(
        "HCM593", "kernel-failed", "error",
        "a kernel failed on the device",
        "the lines around it say how (errorStr): 'out of range' is often an index that the program has computed, such as a token"
        " beyond the embedding; ASCEND_LAUNCH_BLOCKING=1 shows the call in the program",
        anchor=b"fault kernel_name", pattern=rb"fault (?P<reason>kernel_name ?= ?[\w.]{1,200})",
        codes=(Code("507015"), Code("507035")), source="CANN's sources (runtime)",
        example="Aicore kernel execute failed, device_id=2, stream_id=2, report_stream_id=2, task_id=8812, flip_num=1, fault kernel_name=GatherV2_4711, fault kernel info ext=none",
    ),
    Message(
        "HCM993", "core-error", "error",
        "a kernel failed on the device",
        "the name of the kernel is in the lines around it (kernel_name): check the shapes and addresses that it got;"
        " ASCEND_LAUNCH_BLOCKING=1 shows the call in the program",
        anchor=b"he error from device(",
        pattern=rb"he error from device\([cC]hip ?[iI]d:(?P<logical>\d{1,3})[^\n]{0,200}?there is an? (?P<reason>[\w ]{0,40}\bai(?:core|vec|vector|cpu| ?core| ?cpu)[\w ]{0,40})",
        codes=(Code("507015"), Code("507035")), source="CANN's sources (runtime)",
        example="[ERROR] RUNTIME(4711,python3):2026-03-18-10:33:52.113.403 [device_error_proc.cc:290] [4711]ProcessCoreErrorInfo:report error module_type=5, module_name=EZ9999, The error from device(chipId:6, dieId:0), serial number is 17, there is an exception of fftsplus aicore error, core id is 3",
    ),
    Message(
        "HCM340", "aicpu-notify-wait", "timeout",
        "a collective operation waited for another rank until the time limit",
        _WAIT,
        limit="operation", anchor=b"base information is streamId:", pattern=rb"type: ?NOTIFY WAIT\b",
        codes=(Code("EI0002"),), source=_DEVICE_LOG,
        example="[ERROR] HCCL(4711,aicpu_scheduler):2026-03-18-10:33:52.113.403 [aicpu_communicator.cc:1] [4712][TaskException]base information is streamId:3, sqid:4, head:5, tail:6, type:NOTIFY WAIT, localRank:1, remoteRank:0, taskId:7, notifyId:8",
    ),
    Message(
        "HCM341", "aicpu-sdma", "error",
        "copying between devices failed",
        "look for a rank that exited earlier, then check the device (`npu-smi info -t health -i N`)",
        anchor=b"base information is streamId:", pattern=rb"type: ?SDMA\b",
        codes=(Code("EI0012", "9"),), explains=("HCM340", "HCM342", "HCM002", "HCM306", "HCM307", "HCM309"), source=_DEVICE_LOG,
        example="[ERROR] HCCL(4711,aicpu_scheduler):2026-03-18-10:33:52.113.403 [aicpu_communicator.cc:1] [4712][TaskException][AICPU]base information is streamId:3, sqid:4, head:5, tail:6, type:SDMA, localRank:1, remoteRank:2, taskId:7, notifyId:0",
    ),
    Message(
        "HCM342", "aicpu-task-failed", "code",
        "an operation of HCCL failed on the device",
        "look at the lines that follow it in the device's log: they name the kind of the task and the ranks",
        anchor=b"run failed of exception", pattern=rb"Task ?\{.{0,100}\} run failed of exception", source=_DEVICE_LOG,
        example="[ERROR] HCCL(4711,aicpu_scheduler):2026-03-18-10:33:52.113.403 [aicpu_hccl_sqcq.cc:1] [4712]Task {devId: 1 streamId: 3 sqId: 4 cqId: 5 type: 2} run failed of exception, idx:[0]",
    ),
)  # fmt: skip
