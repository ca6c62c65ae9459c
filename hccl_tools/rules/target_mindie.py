"""Rules on what MindIE requires of a table (``validate --target mindie``).

A job on several hosts reads the table before HCCL does, prints what is wrong, and ends. The messages quote
these words.

Source: MindIE-LLM 8b4871ad (2026-04-23), src/config_manager/ranktable_config.cpp and atb_llm env.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.commands import how
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.right_texts import address_in
from hccl_tools.rules.server_names import wrong_names
from hccl_tools.rules.table_file import mode_of, name_of
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = "MindIE-LLM ranktable_config.cpp"
_CONTAINER_IP = "add the address that MIES_CONTAINER_IP has on that server, that of MindIE's container"
_MODE = 0o640
_MOST_SERVERS, _MOST_DEVICES, _LAST_DEVICE, _LAST_RANK = 60, 32, 63, 511


@rule("HCC861", "mindie-file-mode", "refused", source=f"{_SOURCE}, constructor (FILE_MODE_640)")
def file_mode(subject: Subject) -> Iterator[Finding]:
    """The file can be read or written by others than MindIE accepts: its mode is not within 640.

    MINDIE_CHECK_INPUTFILES_PERMISSION=0 turns this check of MindIE off.

    Base: 1.0 2x2
    Example: mode 644
    Instead: mode 640
    Hint: chmod 640 table.json
    """
    mode = mode_of(subject)
    if mode is None or not mode & ~_MODE or subject.env.get("MINDIE_CHECK_INPUTFILES_PERMISSION") == "0":
        return
    yield Finding(f"the file has mode {mode:o}; MindIE requires 640", hint=f"chmod 640 {name_of(subject)}")


@rule(
    "HCC862",
    "mindie-format",
    "refused",
    source=f"{_SOURCE}, ReadRanktableData",
    words="Parameter server_list is invalid in ranktable file",
)
def no_server_list(subject: Subject) -> Iterator[Finding]:
    """The table has no server_list, the only form that MindIE reads.

    Base: group_list
    Example: table
    Instead: base 1.0 2x2
    Hint: convert it: `hccl-tools convert FILE --to 1.0 --target mindie`
    """
    table_format = subject.table.format
    if table_format not in SERVER_LIST:
        hint = "convert it: `hccl-tools convert FILE --to 1.0 --target mindie`"
        if table_format == "2.0":
            hint = "leave RANK_TABLE_FILE unset: MindIE has no form for an Ascend 950"
        yield Finding(f"a {table_format} table has no server_list, which MindIE reads", hint=hint)


@rule(
    "HCC863",
    "mindie-server-count",
    "refused",
    source=f"{_SOURCE}, CheckParam",
    words="Parameter server_count must be in range [2, 60], but got ...",
)
def server_count(subject: Subject) -> Iterator[Finding]:
    """The table has more than 60 servers.

    Base: 1.0 61x1
    Example: table
    Instead: base 1.0 60x1
    Hint: serve the model on at most 60 servers
    """
    servers = len(subject.table.servers)
    if servers > _MOST_SERVERS and subject.table.format in SERVER_LIST:
        yield Finding(
            f"{servers:,} servers; MindIE reads 2 to {_MOST_SERVERS}",
            ("server_list",),
            f"serve the model on at most {_MOST_SERVERS} servers",
        )


@rule(
    "HCC864",
    "mindie-container-ip",
    "refused",
    needs=("server_id",),
    source=f"{_SOURCE}, CheckParam",
    words="The containerIp in the server node is empty in ranktable file.",
)
def container_ip(subject: Subject) -> Iterator[Finding]:
    """A server has no container_ip, by which MindIE recognises its own server.

    Each host has this address in MIES_CONTAINER_IP.

    Base: 1.0 2x2
    Example: table
    Instead: /server_list/0/container_ip = "10.0.0.1"; /server_list/1/container_ip = "10.0.0.2"
    Hint: add the address that MIES_CONTAINER_IP has on that server, that of MindIE's container; if MindIE runs in the network of the host, `hccl-tools convert FILE --to 1.0 --target mindie` takes the server_id
    """
    others = next((one for one in subject.table.servers if one.has_own_container_ip), None)
    for index, server in enumerate(subject.table.servers):
        own = server.fields.get("container_ip")
        if (isinstance(own, str) and own) or subject.table.format not in SERVER_LIST:
            continue
        convert = f"`hccl-tools convert FILE --to {subject.table.format} --target mindie` takes the server_id"
        hint = f"{_CONTAINER_IP}; if MindIE runs in the network of the host, {convert}"
        if others is not None:
            hint = (
                f"{_CONTAINER_IP}: run `echo $MIES_CONTAINER_IP` or `hostname -i` in the container on that server; it is probably not the server_id: "
                f"server {quoted(others.server_id)} has {quoted(others.fields['container_ip'])}"
            )
        yield Finding(
            f'server "{server.server_id}" has no container_ip',
            subject.server_path(index),
            hint,
            alike=("these servers have no container_ip", hint.replace("that server", "each server")),
        )


@rule(
    "HCC865",
    "mindie-device-count",
    "refused",
    source=f"{_SOURCE}, CheckParam",
    words="The number of devices in every server node is ... which not equal in ranktable file",
)
def device_count(subject: Subject) -> Iterator[Finding]:
    """The servers differ in their number of devices, or have more than 32.

    Base: 1.0 2x2 a2
    Example: remove /server_list/1/device/1
    Instead: table
    Hint: give every server the same number of devices
    """
    first = len(subject.table.servers[0].rows) if subject.table.servers else 0
    for index, server in enumerate(subject.table.servers):
        if len(server.rows) != first:
            yield Finding(
                f"{len(server.rows)} devices, but {first} on the first server",
                subject.server_path(index),
                "give every server the same number of devices",
            )
        elif len(server.rows) > _MOST_DEVICES:
            yield Finding(
                f"{len(server.rows)} devices; MindIE reads 1 to {_MOST_DEVICES}",
                subject.server_path(index),
                f"use at most {_MOST_DEVICES} devices of a server",
            )


@rule(
    "HCC866",
    "mindie-number-range",
    "refused",
    needs=("rank_id",),
    source=f"{_SOURCE}, CheckDeviceId, CheckRankId",
    words="Parameter rankId in ranktable is ..., which is out of allow range [0, 511].",
)
def number_range(subject: Subject) -> Iterator[Finding]:
    """A rank_id is above 511.

    Base: 1.0 52x10 a2
    Example: table
    Instead: base 1.0 51x10
    Hint: serve the model on at most 512 devices
    """
    for row, rank in enumerate(subject.table.rank_numbers):
        if rank is not None and rank > _LAST_RANK and subject.table.format in SERVER_LIST:
            yield Finding(
                f"rank_id {rank} is above {_LAST_RANK}",
                subject.device_path(row, "rank_id"),
                f"serve the model on at most {_LAST_RANK + 1} devices",
            )


@rule(
    "HCC867",
    "mindie-device-ip",
    "refused",
    needs=("rank_id",),
    source=f"{_SOURCE}, CheckDeviceIp",
    words="Parameter device_ip is invalid in ranktable file.",
)
def device_ip(subject: Subject) -> Iterator[Finding]:
    """A device has no device_ip, or several; MindIE reads one address of every device, also on an A3.

    Base: 1.2 2x2 pods 1
    Example: remove /server_list/0/device/1/device_ip
    Instead: table
    Hint: write its address: `hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1
    """
    for row, address in enumerate(subject.table.device_ips):
        if subject.table.format not in SERVER_LIST or (isinstance(address, str) and packed(address)):
            continue
        what = "has no device_ip" if not address else f"has the device_ip {quoted(str(address))}"
        yield Finding(
            f"{subject.rank_name(row)} {what}; MindIE reads one address",
            subject.device_path(row),
            f"write its address: {how(subject, row)}",
        )


@rule(
    "HCC868",
    "mindie-server-id",
    "fails-later",
    needs=("server_id",),
    source="MindIE-LLM atb_llm env.py (server_id is an IP)",
)
def server_id(subject: Subject) -> Iterator[Finding]:
    """A server_id is not an IP address, as MindIE requires; HCCL accepts any text.

    MindIE takes the server_id of rank 0 as the address of the master.

    Base: 1.0 2x2
    Example: /server_list/0/server_id = "node1"
    Instead: table
    Hint: write the address of the server
    """
    for index, server in enumerate(subject.table.servers):
        if packed(server.server_id) is None and subject.table.format in SERVER_LIST:
            right = address_in(server.server_id)
            if right and (same := wrong_names(subject).get(index)) is not None:
                yield same  # HCC619 says what is wrong in it: one cause is one text.
                continue
            yield Finding(
                f"server_id {quoted(server.server_id)} is not an IP address",
                subject.server_path(index, "server_id"),
                f'write the address of the server, probably "{right}"'
                if right
                else "write the address of the server",
            )


@rule(
    "HCC869",
    "mindie-master",
    "fails-later",
    needs=("rank_id",),
    source=f"{_SOURCE}, FillServerEle (rankId == 0)",
)
def master(subject: Subject) -> Iterator[Finding]:
    """No rank_id is exactly "0", so that MindIE finds no master.

    HCCL reads "00" and "0 " as 0; MindIE compares the text.

    Base: 1.0 2x2
    Example: /server_list/0/device/0/rank_id = "00"
    Instead: table
    Hint: write "0"
    """
    ranks = subject.table.rank_ids
    if subject.table.format in SERVER_LIST and "0" not in ranks:
        row = next((row for row, rank in enumerate(subject.table.rank_numbers) if rank == 0), 0)
        found = quoted(str(ranks[row]))
        yield Finding(f'rank 0 is written {found}, not "0"', subject.device_path(row, "rank_id"), 'write "0"')


@rule("HCC681", "mindie-single-server", "advice", source="MindIE-LLM prefill_decode_mixed_deployment.md")
def single_server(subject: Subject) -> Iterator[Finding]:
    """The table has a single server: MindIE needs no table there, but ATB reads one that RANK_TABLE_FILE names.

    MindIE reads tables of 2 to 60 servers. A RANK_TABLE_FILE that is left over on a single server must name
    a right table, or be unset.

    Base: 1.0 1x2
    Example: table
    Instead: base 1.0 2x2
    Hint: a single server needs no table: unset RANK_TABLE_FILE; for a larger job list all of its servers
    """
    if len(subject.table.servers) == 1:
        hint = (
            "a single server needs no table: unset RANK_TABLE_FILE; for a larger job list all of its servers"
        )
        yield Finding("the table has one server; MindIE reads tables of 2 to 60", hint=hint)
