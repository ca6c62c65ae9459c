"""What the pages of the documentation tell readers to type works, and shows what the pages show."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.pages import Block, blocks, is_shown, typed

ROOT = Path(__file__).parents[2]
#: The pages in English, and those in Chinese that have their blocks.
PAGES = {"docs/en/tutorial.md": "docs/zh/tutorial.md"}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_of_a_page_work_one_after_the_other(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "tutorial"
    folder.mkdir()
    program = tmp_path / "bin" / "hccl-tools"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hccl_tools "$@"\n')
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    seen = []
    for block in blocks((ROOT / name).read_text(encoding="utf-8")):
        if block.why_not:
            continue
        code, text = typed(block, folder, environ)
        assert code == block.code, f"{name}:{block.line}: exit code {code}\n{text}"
        assert block.seen is None or is_shown(block.seen, text), (
            f"{name}:{block.line} shows\n{block.seen}\nnot\n{text}"
        )
        seen.append(block.typed)
    assert len(seen) >= 9


@pytest.mark.parametrize("pair", PAGES.items())
def test_the_chinese_page_has_the_commands_of_the_english_one(pair: tuple[str, str]) -> None:
    english, chinese = (list(blocks((ROOT / name).read_text(encoding="utf-8"))) for name in pair)

    assert [(one.typed, one.seen, one.code) for one in chinese] == [
        (one.typed, one.seen, one.code) for one in english
    ]


def test_links_of_the_pages_lead_to_files() -> None:
    for name in ("README.zh-CN.md", *PAGES, *PAGES.values()):
        page = ROOT / name
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert "://" in target or (page.parent / target).exists(), f"{name}: {target}"


def test_a_page_is_read() -> None:
    page = "Do this:\n\n<!-- exit code: 3 -->\n```bash\nfalse\n```\n\n```text\none\n```\n\n```bash\ncd\n```\n"

    first, second = blocks(page)

    assert first == Block(4, "false\n", "one\n", code=3)
    assert second.seen is None


@pytest.mark.parametrize("page", ["```python\n1\n```\n", "<!-- skip: no time -->\n```bash\n:\n```\n"])
def test_a_block_of_another_kind_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="block"):
        list(blocks(page))


@pytest.mark.parametrize(
    ("page", "seen", "shown"),
    [
        ("wrote a\n", "wrote a\n", True),
        ("wrote a\n", "wrote b\n", False),
        ("wrote a\n", "wrote a\nmore\n", False),
        ("a\n...\nb\n", "a\nb\n", True),
        ("a\n...\nb\n", "a\nx\ny\nb\n", True),
        ("a\n...\nb\n", "x\nb\n", False),
        ("log/20261127-114353-ec4f\n", "log/20261128-000000-0000\n", True),
        ("after 0.07 s (pid 4)\n", "after 12 s (pid 77)\n", True),
        ("rank 1\n", "rank 2\n", False),
    ],
)
def test_what_is_seen_is_compared(page: str, seen: str, shown: bool) -> None:
    assert is_shown(page, seen) is shown
