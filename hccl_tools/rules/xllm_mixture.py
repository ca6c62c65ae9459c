"""The rule on the servers that only xLLM reads: those of ``group_list`` in xLLM's mixture.

Source: xLLM 87e8d6ed, collective_communicator.cpp:44-136.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.rules.registry import Finding, MixtureInput, rule

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(
    "HCC876",
    "xllm-server-of-group",
    "fails-later",
    source="xLLM collective_communicator.cpp, get_rank_table_server_host",
)
def server_of_group(subject: MixtureInput) -> Iterator[Finding]:
    """A server in group_list has a fault for which the table of all servers would be refused.

    xLLM skips an entry that it cannot read, and takes the first of several entries with one rank; a rank that
    it does not find is on its own host. The message names the rule that the entry would violate in a
    server_list.

    Base: 1.0
    Example: /group_list = [{"server_list": [{"server_id": "10.0.0.2"}]}]
    Instead: table
    Hint: list the devices under "device"
    """
    yield from subject.in_groups
