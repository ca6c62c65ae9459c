"""Lines of HCCL while the ranks find each other and connect: the root, root information, links."""

from __future__ import annotations

from hccl_tools.knowledge.message import Code, Message

_GUIDE = "the HCCL guide, fault diagnosis, CANN 8.x and 9.x"
_LATER = ("HCM006", "HCM009", "HCM015", "HCM220", "HCM221", "HCM222", "HCM223", "HCM224", "HCM225")
_LINK = (
    "look at the log of the other rank first; if both only wait, check the link and the TLS switch of both"
    " devices (`hccn_tool -i N -link -g`, `hccn_tool -i N -tls -g`); if one starts late, raise"
    " HCCL_CONNECT_TIMEOUT"
)
_START = (
    "check that every rank was started and reaches the root's address; HCCL_SOCKET_IFNAME or HCCL_IF_IP"
    " selects the network interface, HCCL_CONNECT_TIMEOUT the time limit"
)

MESSAGES = (
    Message(
        "HCM220", "link-table", "timeout",
        "two devices did not connect in time",
        _LINK,
        anchor=b"time out",
        pattern=rb"\| *(?P<peer_address>[0-9a-fA-F.:]+)\((?P<peer>\d+)\) *\| *(?P<port>\d+) *\| *(?P<address>[0-9a-fA-F.:]+)\((?P<rank>\d+)\) *\| *\d+ *\| *\w+ *\| *time out(?: *\| *(?P<value>ENABLE|DISABLE))?",
        codes=(Code("EI0006"),), source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.646 [hccl_socket_manager.cc:623] [18744]|  192.168.100.212(10)  |  16666  |  192.168.100.202(2)  |  2882681339  |  server  | time out |  DISABLE  |",
    ),
    Message(
        "HCM221", "transport-timeout", "timeout",
        "two devices did not connect in time",
        _LINK,
        anchor=b"createLink para:rank",
        pattern=rb"createLink para: ?rank\[\d+\]-localUserrank\[(?P<rank>\d+)\]-localIpAddr\[(?P<server>[^\]/]+)(?:/(?P<device>\d+))?\], ?(?:dst_rank|remoteRank)\[\d+\]-remoteUserrank\[(?P<peer>\d+)\]-(?:remote_ip_addr|remoteIpAddr)\[(?P<peer_server>[^\]/]+)(?:/(?P<peer_device>\d+))?\](?:.*?tag\[(?P<tag>[^\]]*)\])?",
        codes=(Code("EI0006"), Code("EI0009")), source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:34:43.142.013 [transport_manager.cc:1325] [18744][InitChannelStage][Timeout]Transport init error! createLink para:rank[1]-localUserrank[1]-localIpAddr[192.168.200.100/1], remoteRank[0]-remoteUserrank[0]-remoteIpAddr[192.168.200.100/0], machineType[1], linkMode[1], isUsedRdma[0], tag[HcomAllReduce_6629421139219749105_0]",
    ),
    Message(
        "HCM222", "socket-timeout", "timeout",
        "a rank waited for the connection of another rank until the time limit",
        _LINK,
        anchor=b"wait socket establish timeout",
        pattern=rb"role ?\[\d+\] rank ?\[(?P<rank>\d+)\] timeout ?\[(?P<timeout>\d+)",
        codes=(Code("EI0006"),), source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [hccl_socket_manager.cc:797] [18744][Wait][LinkEstablish]wait socket establish timeout, role[1] rank[1] timeout[120 s]",
    ),
    Message(
        "HCM223", "first-broken-pair", "timeout",
        "HCCL found a pair of devices that did not connect",
        "look at the log of the second device first: if it has another error, that is the cause; if it has none,"
        " its process hangs or is gone; if both only wait, check the network between the two",
        anchor=b"detects that srcRank",
        pattern=rb"srcRank \(server (?P<server>[^,]+), device ID \[?(?P<device>\d+)\]?\) fails to connect to dstRank \(server (?P<peer_server>[^,]+), device ID \[?(?P<peer_device>\d+)",
        codes=(Code("EI0006", "9"),), source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:34:43.141.966 [detect_connect_anomalies.cc:132] [18744]This node (server 192.168.200.100, device ID 1) detects that srcRank (server 192.168.200.100, device ID 1) fails to connect to dstRank (server 192.168.200.100, device ID 0). Continue to analyze the fault based on the logs of srcRank and dstRank.",
    ),
    Message(
        "HCM224", "root-timeout", "timeout",
        "the root waited for ranks that did not report",
        _START,
        anchor=b"topo exchange server get socket timeout",
        pattern=rb"socket timeout!?(?: timeout\[(?P<timeout>\d+))?",
        codes=(Code("EI0006", "8"), Code("EI0015", "9")),
        causes=("a rank was not started or failed earlier", "a rank does not reach the root's address",
                "the limit of open files (`ulimit -n`) or the backlog is too small for a large job"),
        source=_GUIDE,
        example="[ERROR] HCCL(1041081,all_reduce_test):2025-11-21-01:20:01.625.090 [topoinfo_exchange_server.cc:314] [1041362][InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]",
    ),
    Message(
        "HCM225", "agent-timeout", "timeout",
        "a rank could not reach the root",
        _START,
        anchor=b"topo exchange agent get socket timeout", pattern=rb"socket timeout!?(?: timeout\[(?P<timeout>\d+))?",
        codes=(Code("EI0006", "8"), Code("EI0015", "9")), source=_GUIDE,
        example="[ERROR] HCCL(1041081,all_reduce_test):2025-11-21-01:20:01.625.090 [topoinfo_exchange_agent.cc:214] [1041362][Get][Connection]topo exchange agent get socket timeout! timeout[120]",
    ),
    Message(
        "HCM226", "root-gave-up", "timeout",
        "the root gave up waiting for other ranks",
        "look at the log of the root, rank 0, which says who is missing",
        anchor=b"receive", pattern=rb"receive (?:msg length )?from fdhandle failed",
        codes=(Code("EI0006", "8"), Code("EI0015", "9")), source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo_exchange_agent.cc:1] [17528][Recv][ClusterInfoMsg]receive msg length from fdhandle failed, ret[-1]",
    ),
    Message(
        "HCM227", "missing-agents", "timeout",
        "the root names the ranks that did not report",
        _START,
        anchor=b"TopoDetect ERROR occur",
        pattern=rb"agent ?\[(?P<missing>[0-9, ]+)\]",
        codes=(Code("EI0015", "9"),), source=_GUIDE,
        example='[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo_detect.cc:1] [17528]TopoDetect ERROR occur !!! fault_type[1], fault_info["Failed to connect agent[1,3,5,7,]"]',
    ),
    Message(
        "HCM228", "connected-ranks", "fact",
        "the root lists the ranks that did report",
        "the ranks that are not in the list are missing: look there",
        anchor=b"connected rankinfo[LINE",
        pattern=rb"rankinfo\[LINE \d+\]: ?(?P<connected>[0-9\[\], ]+)",
        source=_GUIDE,
        example="[ERROR] HCCL(1041081,all_reduce_test):2025-11-21-01:20:01.625.120 [topoinfo_exchange_server.cc:512] [1041362][InitGroupStage][DisplayConnectionedRank]connected rankinfo[LINE 0]: [0000000000000000],[0000000000000002];",
    ),
    Message(
        "HCM229", "needed-ranks", "fact",
        "the root says how many ranks it needs",
        "the ranks that did not report are missing",
        anchor=b"need connect rankNum is", pattern=rb"rankNum is ?\[(?P<size>\d+)\]", source=_GUIDE,
        example="[ERROR] HCCL(1041081,all_reduce_test):2025-11-21-01:20:01.625.112 [topoinfo_exchange_server.cc:503] [1041362][InitGroupStage][DisplayConnectionedRank]need connect rankNum is [8]",
    ),
    Message(
        "HCM230", "unconnected-ranks", "timeout",
        "the root names the ranks that did not report",
        _START,
        anchor=b"nconnected rank",
        pattern=rb"[Uu]nconnected rank[^\[]{0,40}\[(?P<missing>[0-9, ]+)\]",
        codes=(Code("EI0015", "9"),), source=_GUIDE,
        example="EI0015: Failed to collect cluster information of the communicator based on rootInfo detection. Reason: timeout, unconnected ranks: [1,].",
    ),
    Message(
        "HCM231", "root-unreachable", "error",
        "a rank could not connect to the root",
        "check that rank 0 runs and that this host reaches its address; HCCL_SOCKET_IFNAME or HCCL_IF_IP selects"
        " the network interface",
        anchor=b"connect server[",
        pattern=rb"connect server\[(?P<peer_address>[^\] ]+) ?: ?(?P<port>\d+)\] failed",
        codes=(Code("EI0006", "8"), Code("EI0015", "9"), Code("11")), source=_GUIDE,
        causes=("rank 0 failed earlier", "the address belongs to a network that the host does not reach",
                "a firewall blocks the port"),
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo_exchange_agent.cc:1] [17528][InitGroupStage][RanktableDetect]connect server[127.10.0.1 : 60000] failed",
    ),
    Message(
        "HCM232", "rank-count-differs", "cause",
        "the number of ranks that were started is not the number that the program passed to HCCL",
        "start as many ranks as the program's world size",
        anchor=b"number of ranks",
        pattern=rb"number of ranks ?\[(?P<size>\d+)\] passed.*?does not match ?\[(?P<value>\d+)\]",
        codes=(Code("EI0015", "9"),), explains=_LATER, source=_GUIDE,
        example="EI0015: Failed to collect cluster information. Reason: the number of ranks[8] passed by the program does not match [4] obtained.",
    ),
    Message(
        "HCM233", "same-device-twice", "cause",
        "two ranks use the same device",
        "give each rank its own device: check the script's device id, ASCEND_RT_VISIBLE_DEVICES and LOCAL_RANK",
        anchor=b"same ", pattern=rb"Rank (?P<rank>\d+) of node (?P<server>\S+) has the same physical device ID (?P<device>\d+) as the rank (?P<peer>\d+)",
        codes=(Code("EI0015", "9"),), explains=_LATER, source=_GUIDE,
        example="EI0015: Failed to collect cluster information. Reason: Rank 3 of node 10.0.0.1 has the same physical device ID 2 as the rank 2.",
    ),
    Message(
        "HCM234", "same-address-twice", "cause",
        "two ranks have the same device address",
        "give each device its own address (`hccn_tool -i N -ip -g` shows it)",
        anchor=b"The device IP address",
        pattern=rb"address (?P<address>\S+) of rank (?P<rank>\d+) on node (?P<server>\S+) is the same as .*?rank (?P<peer>\d+) on node (?P<peer_server>[^\s.]+)",
        codes=(Code("EI0015", "9"),), explains=_LATER, source=_GUIDE,
        example="EI0015: Failed to collect cluster information. Reason: The device IP address 192.168.1.3 of rank 3 on node 10.0.0.1 is the same as that of rank 2 on node hostb.",
    ),
    Message(
        "HCM235", "same-rank-twice", "cause",
        "two processes have the same rank",
        "give each process its own rank: check RANK_ID, RANK or the launcher's options on each host",
        anchor=b"is the same as", pattern=rb"Rank ID (?P<rank>\d+) of device (?P<device>\d+) on node (?P<server>\S+) is the same as",
        codes=(Code("EI0015", "9"),), explains=_LATER, source=_GUIDE,
        example="EI0015: Failed to collect cluster information. Reason: Rank ID 3 of device 3 on node 10.0.0.2 is the same as that of device 3 on node 10.0.0.1.",
    ),
    Message(
        "HCM236", "super-pod-setting", "cause",
        "HCCL_LOGIC_SUPERPOD_ID does not fit the physical super pods",
        "unset HCCL_LOGIC_SUPERPOD_ID, or set one value for all hosts of one physical super pod",
        anchor=b"logicSuperPodId[", pattern=rb"logicSuperPodId\[(?P<local>[^\]]*)\], ?phySuperPodId\[(?P<remote>[^\]]*)\]",
        explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [x.cc:1] [17528]local rank information: nicType[VNIC_TYPE], logicSuperPodId[logic_1], phySuperPodId[0]. Note: Do not configure the same logic super pod for different physical super pods",
    ),
    Message(
        "HCM237", "p2p-timeout", "timeout",
        "a rank waited for the direct connection to another device of its host",
        "look at the log of the other rank: it failed earlier or never initialised HCCL",
        anchor=b"[Wait][P2PConnected]connected p2p timeout",
        pattern=rb"timeout(?:.*?(?:local)?[rR]ank ?\[(?P<rank>\d+)\].*?remote ?[rR]ank ?\[(?P<peer>\d+)\])?",
        source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [p2p_mgmt.cc:1] [17528][Wait][P2PConnected]connected p2p timeout, timeout:120 s. local logicDevid:0, remote physic id:1",
    ),
    Message(
        "HCM238", "device-link-failed", "timeout",
        "two devices did not connect in time",
        _LINK,
        anchor=b"target device", pattern=rb"the connection failure between this device and(?: the)? target device ?\[?(?P<peer_device>\d*)",
        codes=(Code("EI0006", "8"),), source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [socket.cc:1] [17528]the connection failure between this device and target device[3] may be due to the peer's exit",
    ),
    Message(
        "HCM239", "links-failed", "timeout",
        "a rank did not get all its connections in time",
        _LINK,
        anchor=b"Wait links establish completed failed", codes=(Code("EI0006"),),
        source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [socket.cc:1] [17528]Wait links establish completed failed, local role is client. ret[9]",
    ),
    Message(
        "HCM240", "peer-closed", "error",
        "the other end closed the connection",
        "look for a rank that exited earlier",
        anchor=b"[Recv][RaSocket]", source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [adapter.cc:1] [17528][Recv][RaSocket]recv fail, recLen[0], the remote has closed the socket",
    ),
    Message(
        "HCM241", "qp-create-failed", "error",
        "a queue pair could not be created",
        "stop other jobs on the device, or use fewer communicators",
        anchor=b"ra qp create fail", codes=(Code("EI0007"),), source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [adapter.cc:1] [17528]ra qp create fail. return[128301]",
    ),
    Message(
        "HCM242", "qp-timeout", "timeout",
        "a queue pair of two devices did not connect in time",
        _LINK,
        anchor=b"get qp status timeout", pattern=rb"timeout_?=?(?P<timeout>\d+)?",
        codes=(Code("EI0006"), Code("EI0009")), source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [qp.cc:1] [17528][Connect][Qp]get qp status timeout_=120 s",
    ),
    Message(
        "HCM243", "no-notify-left", "cause",
        "the device has no notify registers left",
        "use fewer communicators, and stop other processes on the device",
        anchor=b"Notify create failed", codes=(Code("EI0007"),), source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [notify.cc:1] [17528]Notify create failed, ret[207005]",
    ),
    Message(
        "HCM244", "device-socket-lost", "error",
        "the driver lost the connection to the device",
        "look for a process that was killed on this device (`npu-smi info`), and at `dmesg` on the host",
        anchor=b"HDC recv msg err ret(", pattern=rb"HDC recv msg err ret\((?:16|25)\)",
        source="ascend-faultdiag, public rules",
        example="[ERROR] HCCP(17528,python3):2026-03-18-10:33:52.113.403 [ra_hdc.c:1] HDC recv msg err ret(25) session close",
    ),
    Message(
        "HCM245", "no-abnormal-period", "timeout",
        "HCCL found no failed device: the ranks probably run different steps",
        "compare the order of the operations on all ranks: the same script, options and amount of data",
        anchor=b"No abnormal periods were discovered", codes=(Code("EI0006"),), source="published logs",
        example="EI0006: Getting socket times out. Reason: No abnormal periods were discovered. please prioritize investigating the consistency of cluster script behaviors.",
    ),
    Message(
        "HCM246", "peer-did-not-send", "timeout",
        "another rank did not send its data in time",
        "look for a rank that failed, hangs or is in another step; if one is slow, raise HCCL_CONNECT_TIMEOUT on"
        " all ranks",
        anchor=b"did not send the data in time", codes=(Code("EI0006", "8"),), source="published logs",
        example="EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for the rank being stuck",
    ),
    Message(
        "HCM247", "no-hccn-conf", "cause",
        "the container does not have /etc/hccn.conf, from which the addresses of the devices come",
        "mount it from the host (`-v /etc/hccn.conf:/etc/hccn.conf`)",
        anchor=b"an't open conf", explains=_LATER, source="published logs",
        example="[ERROR] can't open conf: /etc/hccn.conf",
    ),
)  # fmt: skip
