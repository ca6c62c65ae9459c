"""The Chinese texts: one for each id, short, in one word for each term."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from hccl_tools.doctor.registry import all_checks
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.notation.screen import cells
from hccl_tools.rules.registry import all_rules
from hccl_tools.zh.lines import FILES, Text, glossary, has_all, line_of, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Columns of a title and of a remedy: two for a Chinese character.
WIDEST_TITLE = 64
WIDEST_REMEDY = 104
_CHINESE = "\u4e00-\u9fff"
_UNSPACED = re.compile(rf"[{_CHINESE}][A-Za-z0-9`]|[A-Za-z0-9`][{_CHINESE}]")
_ASCII_SIGN = re.compile(rf"[{_CHINESE}][,;:!?()]|[,;:!?()][{_CHINESE}]")
_VARIABLE = re.compile(r"\b[A-Z0-9]+(?:_[A-Z0-9]+)+\b")


def lines_of(name: str) -> list[str]:
    text = (files("hccl_tools") / "zh" / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def known() -> dict[str, list[str]]:
    return {"rules": list(all_rules()), "checks": list(all_checks()), "messages": list(messages())}


def second_words(found: Mapping[str, Text]) -> list[str]:
    """Return the uses of other words than those of the glossary, with their ids."""
    return [
        f"{identifier}: {other}, write {word}"
        for identifier, text in found.items()
        for word, others in glossary().items()
        for other in others
        if other in text.line
    ]


def english() -> str:
    """All English texts of rules, checks and messages."""
    of_rules = [rule.facts.doc for rule in all_rules().values()]
    of_checks = [f"{check.find.__doc__} {check.remedy} {check.example}" for check in all_checks().values()]
    of_messages = [" ".join(map(str, message)) for message in messages().values()]
    return "\n".join((*of_rules, *of_checks, *of_messages))


@pytest.mark.parametrize("name", FILES)
def test_each_id_has_a_text_and_each_text_an_id(name: str) -> None:
    written = [line.partition(" ")[0] for line in lines_of(name)]

    assert sorted(set(known()[name]) - set(written)) == [], "without a text in Chinese"
    assert sorted(set(written) - set(known()[name])) == [], "without a rule, check or message"
    assert [one for one, number in Counter(written).items() if number > 1] == []


def test_only_what_is_no_fault_has_no_remedy() -> None:
    without = {identifier for identifier, text in texts().items() if not text.remedy}

    no_fault = {"nothing", "nothing is wrong with this call"}
    assert without == {one.id for one in messages().values() if one.remedy in no_fault}


def test_texts_are_short() -> None:
    found = texts().items()

    assert [one for one, text in found if cells(text.title) > WIDEST_TITLE] == []
    assert [one for one, text in found if cells(text.remedy) > WIDEST_REMEDY] == []


def test_texts_are_written_as_chinese_is() -> None:
    """A blank beside a word in Latin letters, Chinese signs beside Chinese words, one sentence each."""
    found = {one: f"{text.title}|{text.remedy}" for one, text in texts().items()}

    assert [one for one, text in found.items() if _UNSPACED.search(text)] == []
    assert [one for one, text in found.items() if _ASCII_SIGN.search(text)] == []
    assert [one for one, text in found.items() if "。" in text or text.count("`") % 2] == []
    assert [one for one, text in found.items() if not re.search(f"[{_CHINESE}]", text)] == []


def test_gbk_has_all_characters() -> None:
    for text in (*texts().values(), *(Text(word) for word in glossary())):
        text.line.encode("gbk")


def test_the_variables_are_those_of_the_english_texts() -> None:
    source = english()
    named = {(one, name) for one, text in texts().items() for name in _VARIABLE.findall(text.line)}

    assert len(named) > 100
    assert sorted((one, name) for one, name in named if name not in source) == []


def test_there_is_one_word_for_each_term() -> None:
    assert second_words(texts()) == []


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        (Text("两个设备建链超时", "检查通讯域"), "通信域"),
        (Text("rank 挂死"), "卡死"),
        (Text("结点没有响应", "检查主机"), "节点"),
    ],
)
def test_a_second_word_is_found(planted: Text, word: str) -> None:
    (found,) = second_words({**texts(), "HCC999": planted})

    assert found.startswith("HCC999: ")
    assert found.endswith(f", write {word}")


def test_each_word_of_the_glossary_is_used_and_is_no_second_word() -> None:
    words = glossary()
    used = " ".join(text.line for text in texts().values())
    others = {other for several in words.values() for other in several}

    assert len(words) == len(lines_of("glossary"))
    assert [word for word in words if word not in used] == []
    assert set(words) & others == set()


def test_a_line_has_title_and_remedy() -> None:
    assert line_of("HCC501").startswith("server_count 与服务器数量不符。处理: 补上缺少的服务器")
    assert line_of("HCM391") == "设备的网口恢复 UP。"
    assert line_of("HCM9999") == ""
    assert has_all("HCM220", ["建链", "hccl_connect_timeout"])
    assert not has_all("HCM220", ["建链", "心跳"])
    assert not has_all("HCM9999", [])
