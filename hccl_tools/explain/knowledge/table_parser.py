"""Messages of HCCL's reader of rank tables; each leads to the rules of ``validate`` that find the fault."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_SOURCE = "the reader of rank tables in hcomm (topoinfo_ranktable*.cc) and the HCCL guide"
_LATER = ("HCM006", "HCM009", "HCM015", "HCM220", "HCM221", "HCM222", "HCM223", "HCM224", "HCM225")
_CHECK = "`hccl-tools validate FILE` reports line, reason and what to write instead"
_LOCAL = "`hccl-tools validate --local FILE` on that host reports both values"
_VALUE = (Code("EI0004", "8"), Code("EI0014", "9"))

MESSAGES = (
    Message(
        "HCM401", "table-not-found", "cause",
        "HCCL did not find the rank table on this host",
        "copy the table to the same path on every host; RANK_TABLE_FILE names it",
        anchor=b"real path error", pattern=rb"\[HcomLoadRanktableFile\]get file ?\[(?P<file>[^\]]*)\]",
        codes=(Code("EI0004"), Code("10")), explains=_LATER, source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [hcom.cc:1] [17528][HcomLoadRanktableFile]get file[/user/hccl.json] real path error",
    ),
    Message(
        "HCM402", "table-path-invalid", "cause",
        "HCCL did not find the rank table on this host",
        "copy the table to the same path on every host; RANK_TABLE_FILE names it",
        anchor=b"is not a valid real path", pattern=rb"path (?P<file>\S+) is not a valid real path",
        codes=(Code("EI0004"), Code("10")), explains=_LATER, source=_SOURCE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [sal.cc:1] [17528][InitGroupStage][RanktableConfig]path /user/hccl.json is not a valid real path",
    ),
    Message(
        "HCM403", "table-not-json", "cause",
        "the rank table is not valid JSON",
        _CHECK,
        anchor=b"to json fail", pattern=rb"load file ?\[(?P<file>[^\]]*)\] to json fail",
        codes=(Code("EI0004"),), explains=_LATER, rules=("HCC101", "HCC102"), source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [ranktable.cc:1] [17528][Read][File]errNo[0x0000000005000001] load file[/user/hccl.json] to json fail. please check json file!",
    ),
    Message(
        "HCM404", "device-id-differs", "cause",
        "the device of the rank table is not the device that the process uses",
        "let rank R of the program use the device of rank R in the table: with torchrun the order of ranks in the"
        " table must be that of the hosts and devices; ASCEND_RT_VISIBLE_DEVICES must not reorder them",
        anchor=b"local devId", pattern=rb"ranktable config devId ?\[(?P<configured>\d+)\],? ?but local devId ?\[(?P<device>\d+)\]",
        codes=_VALUE, explains=_LATER, rules=("HCC552",), source=_SOURCE,
        causes=("the ranks are started in another order than the table has", "physical and logical device ids are mixed",
                "two entries of the table name one device"),
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo.cc:1] [17528][InitGroupStage][RanktableCheck]ranktable config devId[1], but local devId[3]",
    ),
    Message(
        "HCM405", "device-id-inconsistent", "cause",
        "the device of the rank table is not the device that the process uses",
        "correct device_id of that rank in the table; " + _CHECK,
        anchor=b"devId is inconsistent with the local devId", codes=_VALUE, explains=_LATER,
        rules=("HCC301", "HCC552"), source="MindSpore's guide, CANN error cases",
        causes=("two entries of the table name one device", "the ranks are started in another order than the table has"),
        example="EI0004: The ranktable is invalid,Reason:[The ranktable config devId is inconsistent with the local devId.]. Please check the configured ranktable.",
    ),
    Message(
        "HCM406", "address-families", "cause",
        "the rank table mixes IPv4 and IPv6 addresses",
        "use one kind of address for all devices; " + _CHECK,
        anchor=b"device ip family", pattern=rb"rank ?\[(?P<rank>\d+)\] device ip family ?\[(?P<local>\d+)\] is not same as others ?\[(?P<remote>\d+)\]",
        codes=(Code("EI0001"), *_VALUE), explains=_LATER, source=_SOURCE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo.cc:1] [17528][InitGroupStage][RanktableCheck]rank[0] device ip family[2] is not same as others[10]",
    ),
    Message(
        "HCM407", "same-super-device", "cause",
        "two ranks of a super pod have the same super_device_id",
        "write the real SDID of each device (`npu-smi info -t spod-info -i N -c 0`); " + _CHECK,
        anchor=b"devices have same superDeviceId",
        pattern=rb"superDeviceId ?\[(?P<value>[^\]]*)\](?:.*?rankId ?\[(?P<rank>\d+)\].*?rankId ?\[(?P<peer>\d+)\])?",
        codes=_VALUE, explains=_LATER, source=_SOURCE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo.cc:1] [17528][InitGroupStage][RanktableCheck]devices have same superDeviceId[0x3000000] in superPod[0]. serverId[10.0.0.1], rankId[0]. Another device info: rankId[1]",
    ),
    Message(
        "HCM408", "super-device-id-invalid", "cause",
        "a super_device_id of the rank table is invalid",
        "write the real SDID of each device (`npu-smi info -t spod-info -i N -c 0`); " + _CHECK,
        anchor=b"super_device_id[", pattern=rb"super_device_id\[(?P<value>[^\]]*)\] is invalid",
        codes=_VALUE, explains=_LATER, source=_SOURCE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo.cc:1] [17528][InitGroupStage][RanktableConfig]super_device_id[] is invalid",
    ),
    Message(
        "HCM409", "value-invalid", "cause",
        "a value in the rank table is invalid",
        _CHECK,
        anchor=b"for ranktable variable", pattern=rb"Value \[?(?P<value>[^\] ]*)\]? for ranktable variable \[?(?P<variable>\w+)\]? is invalid",
        codes=(Code("EI0014", "9"),), explains=_LATER, source=_SOURCE,
        example="EI0014: Value [9] for ranktable variable [device_id] is invalid. Expected value: [0-7].",
    ),
    Message(
        "HCM410", "key-missing", "cause",
        "the rank table lacks a key, or its value is not a string",
        _CHECK,
        anchor=b"missing in the ranktable", pattern=rb"Config \[?(?P<variable>\w+)\]? is missing in the ranktable",
        codes=(Code("EI0017", "9"),), explains=_LATER, source=_SOURCE,
        example="EI0017: Config [rank_id] is missing in the ranktable file.",
    ),
    Message(
        "HCM411", "address-invalid", "cause",
        "an address in the rank table is invalid",
        "the device had no address when the table was made, often in a container without /etc/hccn.conf: write the"
        " table again with `hccl-tools gen`; " + _CHECK,
        anchor=b"device_ip", pattern=rb"device_ip (?:is invalid in|.{0,40}is invalid)",
        codes=_VALUE, explains=_LATER, rules=("HCC401",), source="published logs",
        example="[ERROR] HCCL(17528,python3): device_ip is invalid in ranktable file",
    ),
    Message(
        "HCM412", "address-placeholder", "cause",
        'the rank table has "-.-.-.-" for an address: its maker did not find the address of the device',
        "write the table again with `hccl-tools gen`, with hccn_tool or /etc/hccn.conf mounted in the container",
        anchor=b"-.-.-.-", codes=_VALUE, explains=_LATER, rules=("HCC401",), source="published logs",
        example='ERROR: "device_ip": "-.-.-.-"',
    ),
    Message(
        "HCM413", "not-an-address", "cause",
        "an address in the rank table is invalid",
        _CHECK,
        anchor=b"The ip in ranktable is not a valid ip address", codes=(Code("EI0004", "8"),), explains=_LATER,
        rules=("HCC401",), source="ascend-faultdiag, public rules",
        example="EI0004: The ranktable or rank is invalid,Reason:[The ip in ranktable is not a valid ip address]. Please check the configured ranktable.",
    ),
    Message(
        "HCM418", "rank-not-in-table", "cause",
        "the rank of the process is not in the rank table",
        "RANK_ID counts the ranks of the table from 0 and is not the number of a device: start as many processes as"
        " the table has ranks, or let `hccl-tools launch` do it",
        anchor=b"rank ID that exceeds the rank size", pattern=rb"rank ID that exceeds the rank size(?:.{0,300}?\[(?P<table>\{.{0,3800}\})\])?",
        codes=(Code("EI0004", "8"),), explains=_LATER, source="published logs",
        example="EI0004: The ranktable is invalid,Reason:[Use a rank ID that exceeds the rank size in the ranktable.]. Please check the configured ranktable. [table]",
    ),
    Message(
        "HCM414", "table-invalid", "cause",
        "HCCL refused the rank table",
        _CHECK,
        anchor=b"The ranktable", pattern=rb"The ranktable (?:or rank )?is invalid, ?Reason: ?\[(?P<reason>[^\]]*)\](?:.{0,300}?\[(?P<table>\{.{0,3800}\})\])?",
        codes=(Code("EI0004", "8"),), explains=_LATER, source="the HCCL guide, CANN 6 to 8",
        example="EI0004: The ranktable or rank is invalid,Reason:[The rank num is wrong]. Please check the configured ranktable. [table]",
    ),
    Message(
        "HCM415", "table-content", "cause",
        "HCCL refused the rank table",
        _CHECK,
        anchor=b"[Parse][ClusterInfo]", codes=_VALUE, explains=_LATER, source="ascend-faultdiag, public rules",
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topoinfo.cc:1] [17528][Parse][ClusterInfo]server num is wrong",
    ),
    Message(
        "HCM416", "nic-list", "cause",
        "the servers of the rank table have different sets of network addresses",
        _CHECK,
        anchor=b"nic list should be the same between servers", explains=_LATER, source=_SOURCE,
        example="[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [topo.cc:1] [17528]nic list should be the same between servers",
    ),
)  # fmt: skip
