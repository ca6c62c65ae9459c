"""Lines of HCCL while a rank starts: network interfaces, settings, ports, devices, and what ranks must agree on."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_GUIDE = "the HCCL guide, fault diagnosis, CANN 8.x and 9.x"
_HOST_PORT = (
    "stop the other process (`ss -ltnp` shows it), or give each job of the host its own HCCL_IF_BASE_PORT"
)
_NPU_PORT = (
    "if processes share the NPU on purpose, set HCCL_NPU_SOCKET_PORT_RANGE=auto for all of them, else stop"
    " the other process (`npu-smi info` shows it)"
)
_LATER = ("HCM006", "HCM009", "HCM015", "HCM220", "HCM221", "HCM222", "HCM223", "HCM224", "HCM225")

MESSAGES = (
    Message(
        "HCM201", "host-ip-not-found", "cause",
        "HCCL_IF_IP is not an address of this host",
        "set HCCL_IF_IP to an address that `ip address` shows on this host, or unset it",
        anchor=b"is not found in the nic list",
        pattern=rb"\[Find\]\[LocalHostIP\]ip ?\[(?P<value>[^\]]*)\]",
        codes=(Code("EI0001"),), explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [sal.cc:88] [17528][Find][LocalHostIP]ip [10.0.0.9] of [eth0] is not found in the nic list",
    ),
    Message(
        "HCM202", "interface-not-found", "cause",
        "HCCL_SOCKET_IFNAME names no network interface of this host",
        "set HCCL_SOCKET_IFNAME to an interface that `ip address` shows on every host, or to a common prefix",
        anchor=b"[Get][LocalServerId]get host ip fail by socket Ifname",
        pattern=rb"Ifname.*?(?:name ?\[(?P<value>[^\]]*)\])?$",
        codes=(Code("EI0001"),), explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [sal.cc:99] [17528][Get][LocalServerId]get host ip fail by socket Ifname. name [abc], ip [10.0.0.1]",
    ),
    Message(
        "HCM203", "interface-not-in-environment", "cause",
        "HCCL_SOCKET_IFNAME names no network interface of this host",
        "set HCCL_SOCKET_IFNAME to an interface that `ip address` shows on every host, or to a common prefix",
        anchor=b"by HCCL_SOCKET_IFNAME, but not found in the environment",
        pattern=rb"set ifname to \[(?P<value>[^\]]*)\]",
        codes=(Code("EI0001"),), explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [sal.cc:99] [17528][InitGroupStage][EnvConfig]set ifname to [abc] by HCCL_SOCKET_IFNAME, but not found in the environment, ifnames in the environment is as follows",
    ),
    Message(
        "HCM204", "environment-variable", "cause",
        "an environment variable of HCCL has an invalid value",
        "set the variable that the line names to a value that it allows",
        anchor=b"[Init][EnvVarParam]",
        pattern=rb"\[Init\]\[EnvVarParam\](?:.*?(?P<variable>HCCL_\w+))?",
        codes=(Code("EI0001"),), explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [externalinput.cc:99] [17528][Init][EnvVarParam]errNo[0x0000000005000001] In init environtment variable param, parse HCCL_CONNECT_TIMEOUT failed.",
    ),
    Message(
        "HCM205", "host-port-in-use", "cause",
        "another process listens on the port of the host that HCCL needs",
        _HOST_PORT,
        anchor=b"host nic listen start failed", pattern=rb"port\[(?P<port>\d+)\]",
        codes=(Code("EJ0003", "8"), Code("EI0019", "9")),
        causes=("another job of this host uses the port", "a process of an earlier job still runs"),
        explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [network.cc:9] [17528]host nic listen start failed, port[60000], return[11]",
    ),
    Message(
        "HCM206", "host-listen-failed", "cause",
        "another process listens on the port of the host that HCCL needs",
        _HOST_PORT,
        anchor=b"ra socket listen start fail", pattern=rb"listen start fail.{0,300}?(?:port ?\[(?P<port>\d+)\].{0,300}?)?return ?\[",
        codes=(Code("EJ0003", "8"), Code("EI0019", "9")),
        causes=("another job of this host uses the port", "a process of an earlier job still runs"),
        explains=_LATER, source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [adapter_hccp.cc:9] [17528]errNo[0x000000000500000b] ra socket listen start fail. return[228200]",
    ),
    Message(
        "HCM207", "npu-port-in-use", "cause",
        "another process listens on the port of the NPU that HCCL needs",
        _NPU_PORT,
        anchor=b"and specific port",
        pattern=rb"socket type ?\[[01]\],? ?listen on ip ?\[(?P<address>[^\]]*)\] and specific port ?\[(?P<port>\d+)\] fail",
        codes=(Code("EJ0003", "8"), Code("EI0020", "9"), Code("EI0019", "9")),
        causes=("several processes share the NPU, for example a trainer and a server",
                "a process of an earlier job still runs"),
        explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [hccl_socket.cc:9] [17528][InitGroupStage][Resource]socket type[0], listen on ip[192.2.2.195] and specific port[16666] fail. Please check the port status and whether the port is being used by other process.",
    ),
    Message(
        "HCM208", "host-port-in-use-9", "cause",
        "another process listens on the port of the host that HCCL needs",
        _HOST_PORT,
        anchor=b"and specific port",
        pattern=rb"socket type ?\[2\],? ?listen on ip ?\[(?P<address>[^\]]*)\] and specific port ?\[(?P<port>\d+)\] fail",
        codes=(Code("EJ0003", "8"), Code("EI0019", "9")),
        causes=("another job of this host uses the port", "a process of an earlier job still runs"),
        explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [hccl_socket.cc:9] [17528][InitGroupStage][Resource]socket type[2], listen on ip[10.0.0.1] and specific port[60000] fail. Please check the port status and whether the port is being used by other process.",
    ),
    Message(
        "HCM209", "bind-failed", "cause",
        "a port that HCCL wants to listen on is in use",
        "stop the process that uses the port, or give each job its own HCCL_IF_BASE_PORT (host) or"
        " HCCL_NPU_SOCKET_PORT_RANGE=auto (NPU, port 16666)",
        anchor=b"bind fail",
        pattern=rb"bind fail.*?(?:ip ?\[(?P<address>[^\]]*)\].*?)?(?:port ?\[(?P<port>\d+)\])?",
        codes=(Code("EJ0003", "8"), Code("EI0019", "9"), Code("EI0020", "9")),
        explains=_LATER, source="ascend-faultdiag, public rules",
        example="[ERROR] HCCP(17528,python3):2026-03-18-10:33:52.113.403 [rs_socket.c:9] bind fail! ip[10.0.0.1] port[60000], errno:98",
    ),
    Message(
        "HCM248", "bind-failed-name", "cause",
        "a port that HCCL wants to listen on is in use",
        "if several programs share the NPUs on purpose, set HCCL_HOST_SOCKET_PORT_RANGE=auto and"
        " HCCL_NPU_SOCKET_PORT_RANGE=auto for all of them, else stop the process that uses the port",
        anchor=b"Bind_Failed", codes=(Code("EJ0003", "8"), Code("EI0019", "9"), Code("EI0020", "9")),
        explains=_LATER, source="published logs",
        example="RuntimeError: HCCL function error: Bind_Failed",
    ),
    Message(
        "HCM210", "bound-already", "cause",
        "a port that HCCL wants to listen on is in use",
        "if another job of this host uses the port, give each job its own HCCL_IF_BASE_PORT (host), if"
        " processes share the NPU, set HCCL_NPU_SOCKET_PORT_RANGE=auto, else stop the process that an earlier"
        " job left",
        anchor=b"have been bound already", pattern=rb"[Ff]ailed to bind the IP port",
        codes=(Code("EJ0003", "8"), Code("EI0019", "9"), Code("EI0020", "9")),
        causes=("another job of this host uses the port", "several processes share the NPU",
                "a process of an earlier job still runs"),
        explains=_LATER, source="published logs",
        example="EJ0003: Failed to bind the IP port. Reason: The IP address and port have been bound already.",
    ),
    Message(
        "HCM211", "device-address-differs", "cause",
        "a device_ip of the rank table is not the address of the device",
        "write the table again (`hccl-tools gen`); `hccl-tools validate --local FILE` shows both addresses",
        anchor=b"in the ranktable is inconsistent with the IP",
        pattern=rb"the IP address ?\((?P<configured>[^)]*)\) in the ranktable is inconsistent with the IP ?\((?P<address>[^)]*)\)",
        codes=(Code("EJ0004", "8"), Code("EI0014", "9")),
        causes=("the table is that of another host", "the address of the device has changed since the table was made"),
        explains=(*_LATER, "HCM212"), rules=("HCC642",), source=_GUIDE,
        example="[ERROR] HCCP(24,hccp_service.bin):2026-03-18-10:33:52.113.403 [ra_host.c:480] tid:24,ra_rdev_init_check_ip(480) : [check][ip]fail, ret(-16) the IP address(29.4.84.36) in the ranktable is inconsistent with the IP(29.4.76.85)address of the network adapter",
    ),
    Message(
        "HCM212", "rdma-init-failed", "error",
        "the RDMA network of the device could not be initialised",
        "check the link of the device (`hccn_tool -i N -link -g`) and its address against the rank table"
        " (`hccl-tools validate --local FILE`)",
        anchor=b"rdma init fail",
        causes=("a device_ip of the rank table is wrong", "the link of the device is down"),
        explains=_LATER, source="ascend-faultdiag, public rules",
        example="[ERROR] HCCP(24,hccp_service.bin):2026-03-18-10:33:52.113.403 [ra_rdma.c:12] rdma init fail ret(-19)",
    ),
    Message(
        "HCM213", "device-held", "cause",
        "the device is still in use by an earlier process",
        "stop the processes that `npu-smi info` shows on the device, wait 10 seconds and start again",
        anchor=b"Open TsdClient failed", codes=(Code("EJ0001"),), explains=_LATER,
        source="ascend-faultdiag, public rules",
        example="[ERROR] TSD(17528,python3):2026-03-18-10:33:52.113.403 [Open][Tsd]Open TsdClient failed, tdt error code : 31, error device_id : 0",
    ),
    Message(
        "HCM214", "last-process-running", "cause",
        "the device is still in use by an earlier process",
        "stop the processes that `npu-smi info` shows on the device, wait 10 seconds and start again",
        anchor=b"Maybe the last training process is running", codes=(Code("EJ0001"),), explains=_LATER,
        source="published logs",
        example="EJ0001: Failed to initialize the HCCP process. Reason: Maybe the last training process is running.",
    ),
    Message(
        "HCM215", "tls-differs", "cause",
        "the TLS switch is not the same on all devices",
        "show it with `hccn_tool -i N -tls -g` on every device, and set one value everywhere with"
        " `hccn_tool -i N -tls -s enable 0`",
        anchor=b"tlsStatus are inconsistent",
        codes=(Code("EI0006", "8"), Code("EI0016", "9")), explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo.cc:9] [17528][InitGroupStage][RanktableCheck]Some ranks tlsStatus are inconsistent",
    ),
    Message(
        "HCM216", "tls-lists", "cause",
        "the TLS switch is not the same on all devices",
        "show it with `hccn_tool -i N -tls -g` on every device, and set one value everywhere with"
        " `hccn_tool -i N -tls -s enable 0`",
        anchor=b"rankList for enabled tls",
        pattern=rb"rankList for enabled tls: ?\[(?P<on>[^\]]*)\].*?disabled(?: tls)?: ?\[(?P<off>[^\]]*)\]",
        codes=(Code("EI0006", "8"), Code("EI0016", "9")), explains=_LATER, source=_GUIDE,
        example="EI0016: Value [1] for config [tls] is invalid. rankList for enabled tls:[10.0.0.1/0]; rankList for disabled tls:[10.0.0.2/0];",
    ),
    Message(
        "HCM217", "link-down-at-start", "cause",
        "the link of the device was down before the job started",
        "check it with `hccn_tool -i N -link -g`, and the optics with `hccn_tool -i N -optical -g`",
        anchor=b"ra hdc message process failed ret(-67)", codes=(Code("EJ0002"),), explains=_LATER,
        source="ascend-faultdiag, public rules",
        example="[ERROR] HCCP(17528,python3):2026-03-18-10:33:52.113.403 [ra_hdc.c:55] ra hdc message process failed ret(-67)",
    ),
    Message(
        "HCM250", "version-check", "cause",
        "the hosts have different versions of CANN",
        "install the same CANN (Toolkit and ops) on all hosts; the line has both versions",
        anchor=b"ersion check fail", pattern=rb"ersion check fail\w{0,2}[.,:]? ?local ?[\[(](?P<local>[^\])]{1,60})[\])],? ?remote ?[\[(](?P<remote>[^\])]{1,60})[\])]",
        codes=(Code("EI0008"),), explains=_LATER, source="HCCL's sources (rank_consistentcy_checker)",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [rank_consistent.cc:1] [17528][RankConsistentImpl][CompareFrame]version check fail, local[8.1.RC1], remote[8.2.RC1], remote rank[3]",
    ),
    Message(
        "HCM218", "consistency-check", "cause",
        "the rank tables, CANN versions or operations of two ranks differ",
        "compare the fingerprint of the table on all hosts (`hccl-tools show --fingerprint FILE`), the version"
        " of CANN, the script and its data",
        anchor=b"[RankConsistentImpl][CompareFrame]", codes=(Code("EI0005"), Code("EI0008")), explains=_LATER,
        source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [rank_consistent.cc:1] [17528][RankConsistentImpl][CompareFrame]rankTable crc check fail. local[123], remote[456]",
    ),
    Message(
        "HCM249", "versions-differ", "cause",
        "the hosts have different versions of CANN",
        "install the same CANN (Toolkit and ops) on all hosts; the line has both versions",
        anchor=b"Inconsistent Toolkit",
        pattern=rb"Inconsistent Toolkit.{0,80}?[Ll]ocal.{0,60}?version is (?P<local>[\w.]{1,30}).{0,120}?remote.{0,60}?version is (?P<remote>[\w.]{1,30})",
        codes=(Code("EI0008"),), explains=_LATER, source="HCCL's sources (rank_consistentcy_checker)",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [rank_consistentcy_checker.cc:1] [17528][VersionConflict] Inconsistent Toolkit (cann-hcomm) and ops (cann-hccl) Versions. The local Toolkit (cann-hcomm) version is 9.1.0 and ops (cann-hccl) version is 9.1.0, while the remote Toolkit (cann-hcomm) version is 9.2.0",
    ),
    Message(
        "HCM219", "command-differs", "cause",
        "two ranks called operations that do not fit together",
        "make all ranks run the same script with data of the same shape; the line has both values",
        anchor=b" check fail", pattern=rb"(?:CMD information )?(?P<item>\w{1,64}) check fail\.? local ?\[(?P<local>[^\]]*)\], ?remote ?\[(?P<remote>[^\]]*)\]",
        codes=(Code("EI0005"),), explains=_LATER, source=_GUIDE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [rank_consistent.cc:1] [17528][InitChannelStage][ParameterConflict]CMD information tag check fail. local[AllReduce_group_1], remote[Broadcast_group_1]",
    ),
)  # fmt: skip
