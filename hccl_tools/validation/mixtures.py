"""Check the servers of xLLM's mixture that HCCL does not read, as a table that lists all servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.formats import xllm
from hccl_tools.formats.file_kinds import MIXTURE
from hccl_tools.rules.findings import Findings
from hccl_tools.rules.registry import Finding, Input, InputFacts, MixtureInput, Subject, rules_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.format_names import Format


def check(subject: Input, findings: Findings, judge: Callable[[Input, Format, Findings], Input]) -> None:
    """Collect the errors in ``group_list``, at their own places.

    Args:
        judge: Collects the findings on a table of a format.
    """
    listed = xllm.listed(subject.value)
    facts = InputFacts(
        subject.product, listed.value, env=subject.env, product_is_assumed=subject.product_is_assumed
    )
    found = Findings(findings.limit, lambda _rule: True)
    seen_as = judge(Input(facts), listed.value["version"], found)
    if isinstance(seen_as, Subject):
        found.run(rules_for("xllm"), seen_as)
    in_groups = (
        *(
            Finding("an entry of group_list is not an object", ("group_list", index), "remove it")
            for index, group in enumerate(subject.value["group_list"])
            if not isinstance(group, dict)
        ),
        *(
            Finding(f"{one.message} ({one.rule.id})", path, one.hint)
            for one in found.kept
            if one.rule.severity == "error" and _is_in_group(path := _place(listed, one.path))
        ),
    )
    findings.run(rules_for(MIXTURE.name), MixtureInput(subject, in_groups))


def _place(listed: xllm.Listed, path: Path) -> Path:
    """Return the path in the mixture; what concerns all servers is in ``group_list``."""
    return ("group_list",) if path == ("server_list",) else listed.path_in_mixture(path)


def _is_in_group(path: Path) -> bool:
    return path[:1] == ("group_list",)
