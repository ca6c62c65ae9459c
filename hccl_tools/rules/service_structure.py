"""Rules on the structure of service tables (``server_group_list``): violations of their JSON Schema.

The service's loader refuses such a file whole. Source: MindIE-Motor 5dfb024e, RankTableLoader.cpp.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.formats import service
from hccl_tools.rules.registry import Finding, Input, rule, shared
from hccl_tools.rules.structure import violated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.table.service_table import ServiceTable

_rule = partial(rule, consequence="refused", stage="structure")


@shared
def service_table(subject: Input) -> ServiceTable:
    """Return the service table in the document of a subject."""
    return service.read(subject.value)


@_rule("HCC701", "service-missing-key", source="RankTableLoader.cpp:472-566, :581-641; get_group_id.py:36")
def missing_key(subject: Input) -> Iterator[Finding]:
    """A key that every reader of a service table requires is missing.

    The status and server_group_list of the table, the group_id and server_list of a group, the server_ip of
    a server, and the device_id, device_ip and rank_id of a device are required.

    Example: remove /server_group_list/2/server_list/0/device/0/rank_id
    Instead: /server_group_list/2/server_list/0/device/0/rank_id = "0"
    Hint: write "rank_id": "0", the number that no other device of the group has
    """
    yield from violated(subject, "HCC701")


@_rule("HCC702", "service-wrong-type", source="RankTableLoader.cpp:472-566 (get<std::string>)")
def wrong_type(subject: Input) -> Iterator[Finding]:
    """A value has the wrong JSON type: in service tables, every number is a string ("0").

    Only server_count may be a number: omni-infer writes it so.

    Example: /server_group_list/2/server_list/0/device/0/rank_id = 0
    Instead: /server_group_list/2/server_list/0/device/0/rank_id = "0"
    Hint: write it as a string: "rank_id": "0"
    """
    yield from violated(subject, "HCC702")


@_rule("HCC703", "service-list-size", source="RankTableLoader.cpp:548 (1 to 128 devices), :766")
def list_size(subject: Input) -> Iterator[Finding]:
    """A table has no groups, or the device list of a server is empty or has more than 128 entries.

    Example: /server_group_list/2/server_list/0/device = []
    Instead: table
    Hint: list 1 to 128 devices under "device"
    """
    yield from violated(subject, "HCC703")


@_rule("HCC704", "service-text-after", source="nlohmann::json::parse, json.loads")
def text_after(subject: Input) -> Iterator[Finding]:
    """Text follows the closing brace of a service table, so that its readers refuse the file.

    Example: text {"status": "completed", "server_group_list": []} {}
    Instead: table
    Hint: delete the text
    """
    offset = subject.document.trailing if subject.document is not None else None
    if offset is not None:
        yield Finding("text follows the table", hint="delete the text", offset=offset)
