"""Make the pages on troubleshooting: the commonest rules, checks and messages, in English and Chinese.

``tests.support.reference_pages`` writes docs/en/troubleshooting.md, docs/zh/troubleshooting.md and docs/zh/codes.md,
which has all rules, checks and messages in Chinese.
"""

from __future__ import annotations

from typing import NamedTuple

from hccl_tools.doctor.registry import all_checks
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.rules.registry import all_rules
from hccl_tools.zh.lines import texts


class Stage(NamedTuple):
    """A part of the pages: its titles, the command that shows these findings, and their ids."""

    english: str
    chinese: str
    command: str
    ids: str


STAGES = (
    Stage("The table is refused", "rank table 被拒绝", "`hccl-tools validate FILE`", """
        HCC101 HCC102 HCC106 HCC107 HCC108 HCC109 HCC110 HCC111 HCC112 HCC202 HCC203 HCC205 HCC303 HCC304 HCC305
        HCC306 HCC309 HCC401 HCC403 HCC404 HCC501 HCC503 HCC606 HCC610 HCC614 HCC619"""),
    Stage("Before the start", "启动之前", "`hccl-tools doctor rank_table.json`", """
        HCD101 HCD102 HCD106 HCD107 HCD202 HCD203 HCD204 HCD208 HCD301 HCD304 HCD305 HCD402 HCD501 HCD502 HCD503
        HCD507 HCD512 HCD601"""),
    Stage("The job does not start", "作业无法启动", "`hccl-tools explain`", """
        HCM840 HCM841 HCM843 HCM845 HCM837 HCM849 HCM980 HCM401 HCM418 HCM211 HCM213 HCM215 HCM205 HCM207 HCM201
        HCM202 HCM220 HCM224 HCM225 HCM606 HCM607 HCM655 HCM656 HCM734"""),
    Stage("The job fails or hangs", "作业中途失败或卡死", "`hccl-tools explain`", """
        HCM306 HCM304 HCM313 HCM219 HCM218 HCM894 HCM895 HCM501 HCM657 HCM506 HCM507 HCM517 HCM852 HCM802 HCM822
        HCM750 HCM711 HCM805 HCM823 HCM831"""),
)  # fmt: skip
_ENGLISH = """# Troubleshooting

<!-- made from the rules, checks and messages by `python -m tests.support.reference_pages` -->

`hccl-tools rules ID` prints a page on each. All of them: [rules](../rules/README.md), [checks](../checks.md), [messages](../messages.md).
"""
_CHINESE = """# 常见问题

<!-- made from the rules, checks and messages by `python -m tests.support.reference_pages` -->

`hccl-tools rules 编号` 显示详细说明。命令加 `--lang zh`（或设置
`HCCL_TOOLS_LANG=zh`）时，输出中也有本页的原因和处理方法。全部编号见[规则、检查项和日志报错一览](codes.md)。
"""
_CODES = """# 规则、检查项和日志报错一览

<!-- made from the rules, checks and messages by `python -m tests.support.reference_pages` -->

列出 `validate` 的规则、`doctor` 的检查项和 `explain` 识别的日志报错。`hccl-tools rules 编号`
显示详细说明，`hccl-tools rules 超时 --lang zh` 按中文查找。
"""


def english() -> str:
    """Return the text of docs/en/troubleshooting.md."""
    parts = [_ENGLISH]
    for stage in STAGES:
        parts.append(f"\n## {stage.english}\n\n{stage.command} shows:\n\n")
        parts.append("| id | what | what to do |\n| --- | --- | --- |\n")
        parts += [_row(identifier, *_english(identifier)) for identifier in stage.ids.split()]
    return "".join(parts)


def chinese() -> str:
    """Return the text of docs/zh/troubleshooting.md."""
    known = texts()
    parts = [_CHINESE]
    for stage in STAGES:
        parts.append(f"\n## {stage.chinese}\n\n{stage.command} 显示：\n\n")
        parts.append("| 编号 | 现象 | 原因 | 处理 |\n| --- | --- | --- | --- |\n")
        for identifier in stage.ids.split():
            what, text = _english(identifier)[0], known[identifier]
            parts.append(_row(identifier, what, text.title, text.remedy))
    return "".join(parts)


def chinese_codes() -> str:
    """Return the text of docs/zh/codes.md."""
    of_hccl = {rule: known.facts.hccl_code or "" for rule, known in all_rules().items()}
    in_logs = {
        name: ", ".join(dict.fromkeys(one.code for one in known.codes)) for name, known in messages().items()
    }
    parts = [_CODES]
    for heading, ids in (
        ("规则", of_hccl),
        ("检查项", dict.fromkeys(all_checks(), "")),
        ("日志报错", in_logs),
    ):
        parts.append(f"\n## {heading}\n\n| 编号 | 错误码 | 说明 | 处理 |\n| --- | --- | --- | --- |\n")
        parts += [_row(name, code, texts()[name].title, texts()[name].remedy) for name, code in ids.items()]
    return "".join(parts)


def _english(identifier: str) -> tuple[str, str]:
    """Return what a finding says, with HCCL's code, and what to do."""
    if identifier.startswith("HCC"):
        facts = all_rules()[identifier].facts
        return _with_codes(
            facts.title.rstrip("."), facts.hccl_code or ""
        ), f"[{identifier}](../rules/{identifier}.md)"
    if identifier.startswith("HCD"):
        check = all_checks()[identifier]
        return f"{check.name}: {check.title}", check.remedy.replace("{device}", "N")
    message = messages()[identifier]
    return _with_codes(
        message.meaning, ", ".join(dict.fromkeys(one.code for one in message.codes))
    ), message.remedy


def _with_codes(text: str, codes: str) -> str:
    return f"{text} ({codes})" if codes else text


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
