"""Rules on structure: violations of the format's JSON Schema.

The schema names the rule of each constraint; ``hccl_tools.validation.checker`` puts the violations into the
``DamagedInput`` after a reader has refused the document. ``rules.violations`` has their messages.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.rules.registry import DamagedInput, Finding, Input, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_rule = partial(rule, consequence="refused", stage="structure")


@_rule("HCC105", "no-status", code="EI0017", source="topoinfo_ranktableParser.cc:310")
def no_status(subject: Input) -> Iterator[Finding]:
    """The status is missing or not a string.

    Example: remove /status
    Instead: /status = "completed"
    Hint: add "status": "completed"
    """
    yield from violated(subject, "HCC105")


@_rule("HCC107", "no-version", code="EI0017", source="topoinfo_ranktableParser.cc:296-340")
def no_version(subject: Input) -> Iterator[Finding]:
    """The version is missing or not a string.

    Without a version HCCL reads the table as a group_list and reports that group_count is missing. It reports
    the number 1.0, instead of the string "1.0", as a missing version.

    Example: /version = 1.0
    Instead: /version = "1.0"
    Hint: write "version": "1.0"
    """
    yield from violated(subject, "HCC107")


@_rule("HCC108", "unknown-version", code="EI0014", source="config.cc:44-59")
def unknown_version(subject: Input) -> Iterator[Finding]:
    """The version is unknown to HCCL, or does not match the kind of table.

    Example: /version = "1.00"
    Instead: /version = "1.0"
    Hint: write "version": "1.0"
    """
    yield from violated(subject, "HCC108")


@_rule("HCC111", "missing-key", code="EI0017", source="topoinfo_ranktableParser.cc:336-470")
def missing_key(subject: Input) -> Iterator[Finding]:
    """A required key is missing.

    Example: remove /server_list/0/device/0/rank_id
    Instead: /server_list/0/device/0/rank_id = "0"
    Hint: write "rank_id": "0", the number that no other device has
    """
    return violated(subject, "HCC111")  # A megabyte can have a million.


@_rule("HCC112", "wrong-type", code="EI0017", source="topoinfo_ranktableParser.cc:336-470")
def wrong_type(subject: Input) -> Iterator[Finding]:
    """A value has the wrong JSON type.

    In 1.x and group_list tables every number is a string ("0"); in 2.0 tables numbers are JSON numbers. HCCL
    reports a number instead of a string as missing (EI0017), which is its most misleading message.

    Example: /server_list/0/device/0/rank_id = 0
    Instead: /server_list/0/device/0/rank_id = "0"
    Hint: write it as a string: "rank_id": "0"
    """
    return violated(subject, "HCC112")


@_rule("HCC113", "list-size", source="topoinfo_ranktableParser.cc:363, :457; new_rank_info.cc:77")
def list_size(subject: Input) -> Iterator[Finding]:
    """A list has too few or too many entries.

    Example: /server_list/0/device = []
    Instead: /server_list/0/device = [{"device_id": "0", "rank_id": "0"}]
    Hint: list the devices under "device"
    """
    waits = isinstance(subject.value, dict) and subject.value.get("status") == "initializing"
    if not (
        waits and subject.product.loader == "legacy"
    ):  # HCC106 reports it: the program fills in the list.
        yield from violated(subject, "HCC113")


def violated(subject: Input, rule_id: str) -> Iterator[Finding]:
    """Return the violations of the schema that belong to a rule."""
    if not isinstance(subject, DamagedInput) or not subject.violations.counts[rule_id]:
        return iter(())
    from hccl_tools.rules import violations  # noqa: PLC0415  (33 ms; only after a reader has refused the table)

    return violations.findings(subject, rule_id)
