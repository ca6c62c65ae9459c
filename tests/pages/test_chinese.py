"""The Chinese pages use one word for each thing, that of the glossary, and the signs of Chinese."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from hccl_tools.zh.lines import glossary

ROOT = Path(__file__).parents[2]
#: Made of texts that have tests of their own, and of English ones.
MADE = ("troubleshooting.md", "codes.md")
PAGES = [
    ROOT / "README.zh-CN.md",
    *(path for path in (ROOT / "docs" / "zh").rglob("*.md") if path.name not in MADE),
]
_CHINESE = "\u4e00-\u9fff"
#: Blocks, code, comments and the targets of links are not Chinese text.
_OTHER = re.compile(r"^```.*?^```$|`[^`]*`|<!--.*?-->|(?<=\])\([^)]*\)", re.MULTILINE | re.DOTALL)
_UNSPACED = re.compile(rf"[{_CHINESE}][A-Za-z0-9]|[A-Za-z0-9][{_CHINESE}]")
#: Between two lines of a paragraph a browser shows a blank.
_BROKEN = re.compile(rf"[{_CHINESE}]\n[{_CHINESE}]")
_ASCII_SIGN = re.compile(rf"[{_CHINESE}][,;:!?]|[,;:!?][{_CHINESE}]")


def second_words(text: str) -> list[str]:
    """Return the words of a page that are not those of the glossary, with the right one."""
    prose = _OTHER.sub("", text)
    return [
        f"{other}: write {word}"
        for word, others in glossary().items()
        for other in others
        if re.search(re.escape(other), prose)
    ]


def unlike_chinese(text: str) -> list[str]:
    """Return where a Latin word has no blank beside it, a sign is one of ASCII, or a line breaks one."""
    prose = _OTHER.sub("", text)
    return _UNSPACED.findall(prose) + _ASCII_SIGN.findall(prose) + _BROKEN.findall(prose)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_written_as_chinese_is(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert second_words(text) == []
    assert unlike_chinese(text) == []


def test_a_second_word_is_found() -> None:
    assert second_words("作业挂死，看`卡住`。") == ["挂死: write 卡死"]
    assert unlike_chinese("用launch启动,然后") == ["用l", "h启", "动,"]


def test_the_page_on_terms_has_every_word_of_the_glossary() -> None:
    page = (ROOT / "docs" / "zh" / "glossary.md").read_text(encoding="utf-8")

    text = (files("hccl_tools") / "zh" / "glossary.txt").read_text(encoding="utf-8")
    rows = [line.rpartition(" | ")[0] for line in text.splitlines() if not line.startswith("#")]

    assert len(rows) > 50
    assert [row for row in rows if f"\n| {row} | " not in page] == []
