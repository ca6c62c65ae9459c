"""Rules on what xLLM requires of a table (``validate --target xllm``).

xLLM passes the file to torch_npu, and looks up the host of a rank in it.

Source: xLLM 87e8d6ed (2026-07-02), npu_rank_table_env.cpp and collective_communicator.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.table_file import link, unreadable
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = "xLLM npu_rank_table_env.cpp"
_HOSTS = "xLLM collective_communicator.cpp, get_rank_table_server_host"


@rule("HCC871", "xllm-file-is-a-link", "refused", source=_FILE, words="rank_tablefile must not be a symlink")
def file_is_a_link(subject: Subject) -> Iterator[Finding]:
    """The file is a symbolic link, as in a mounted ConfigMap.

    Base: 1.0 2x2
    Example: link
    Instead: table
    Hint: name the file itself, or copy it: `cp -L table.json FILE`
    """
    yield from link(subject)


@rule("HCC872", "xllm-server-id", "fails-later", needs=("server_id",), source=_HOSTS)
def server_id(subject: Subject) -> Iterator[Finding]:
    """A server_id of a table with several servers is no address that the other hosts reach.

    xLLM connects to the server_id of a rank. A name may differ from host to host, and a loopback address is
    that of each host itself.

    Base: 1.0 2x2
    Example: /server_list/0/server_id = "node1"
    Instead: table
    Hint: write the address of the server in the network of the hosts
    """
    several = len(subject.table.servers) > 1 and subject.table.format in SERVER_LIST
    for index, server in enumerate(subject.table.servers if several else ()):
        if is_loopback(server.server_id) or not any(packed(server.server_id) or b""):
            yield Finding(
                f"server_id {quoted(server.server_id)} is no address that other hosts reach",
                subject.server_path(index, "server_id"),
                "write the address of the server in the network of the hosts",
            )


@rule("HCC873", "xllm-rank-id", "fails-later", needs=("rank_id",), source=_HOSTS)
def rank_id(subject: Subject) -> Iterator[Finding]:
    """A rank_id is written with zeros or blanks; xLLM compares the text.

    It then takes its own host for that of the rank. HCCL reads "01" and "1 " as 1.

    Base: 1.0 2x2
    Example: /server_list/1/device/0/rank_id = "02"
    Instead: table
    Hint: write "2"
    """
    if subject.table.format not in SERVER_LIST:
        return
    for row, (text, number) in enumerate(
        zip(subject.table.rank_ids, subject.table.rank_numbers, strict=True)
    ):
        if number is not None and text != str(number):
            path = subject.device_path(row, "rank_id")
            yield Finding(f"rank {number} is written {quoted(str(text))}", path, f'write "{number}"')


@rule("HCC874", "xllm-format", "fails-later", source=_HOSTS)
def no_server_list(subject: Subject) -> Iterator[Finding]:
    """The table has no server_list, where xLLM looks up the host of a rank.

    xLLM then takes its own host for that of every rank.

    Base: group_list
    Example: table
    Instead: base 1.0 2x2
    Hint: convert it: `hccl-tools convert FILE --to 1.0 --target xllm`
    """
    if subject.table.format not in SERVER_LIST:
        hint = "convert it: `hccl-tools convert FILE --to 1.0 --target xllm`"
        if subject.table.format == "2.0":
            hint = "start the job on one host: xLLM has no form for an Ascend 950"
        yield Finding(f"a {subject.table.format} table has no server_list, which xLLM reads", hint=hint)


@rule("HCC875", "xllm-file-unreadable", "refused", source=_FILE, words="rank_tablefile is not readable")
def file_unreadable(subject: Subject) -> Iterator[Finding]:
    """The owner of the file may not read it.

    Base: 1.0 2x2
    Example: mode 200
    Instead: table
    Hint: chmod u+r table.json
    """
    yield from unreadable(subject)
