"""``guide``: the pages of the documentation on the terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.guide.plain import links, plain
from hccl_tools.guide.topics import topic_name, topics
from hccl_tools.notation.screen import cells

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_a_topic_of_its_own(language: str) -> None:
    pages = {path.relative_to(DOCS / language) for path in (DOCS / language).rglob("*.md")} - {
        Path("README.md")
    }

    assert {topic.page for topic in topics(language).values()} == set(map(str, pages)), "add it to README.md"
    assert len(topics(language)) == len(pages), "two pages have one name"


def test_topics_are_listed_under_their_headings(command_line: CommandLine) -> None:
    done = command_line("guide")

    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[:2] == ["Begin", "  what-is-a-rank-table   What is a rank table, and do I need one?"]
    assert [line for line in lines if line[:1].isalpha()] == ["Begin", "How to", "Reference", "Explanation"]
    assert "  hangs                  A job that hangs" in lines


def test_the_list_in_chinese(command_line: CommandLine) -> None:
    out = command_line("guide", "--lang", "zh").out

    assert re.search(r"^  tutorial +教程", out, re.MULTILINE)


@pytest.mark.parametrize(
    "words", [["first-table"], ["First_table"], ["first", "table"], ["howto/first_table.md"]]
)
def test_a_page_is_shown_without_marks(command_line: CommandLine, words: list[str]) -> None:
    done = command_line("guide", *words)

    assert done.code == 0
    assert done.out.startswith(
        "# Make the first table\n\nOn a host with NPUs, here eight of an Atlas A2:\n\n    hccl-tools gen "
    )
    prose = re.sub(r"^    \| .*$", "", done.out, flags=re.MULTILINE)  # Without what commands print.
    assert re.search(r"```|<!--|\]\(|\|", prose) is None
    assert "\nhccl-tools guide: products, ascend-950," in done.out


def test_the_language_is_that_of_the_locale(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")

    assert command_line("guide", "tutorial").out.startswith("# 教程")
    assert command_line("guide", "tutorial", "--lang", "en").out.startswith("# Tutorial")


def test_a_topic_without_a_chinese_page_is_shown_in_english(command_line: CommandLine) -> None:
    assert command_line("guide", "--lang", "zh", "exit-codes").out.startswith("# Exit codes")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("first-tabel", 'did you mean "first-table"?'),
        ("hang", 'did you mean "hangs"?'),
        ("Spare hosts", 'did you mean "spares"?'),
        ("docker", "pages with this word: container, "),
        ("host", "pages with this word: "),
        ("kubernetes config maps", "pages about these words: kubernetes, "),
        ("why does my job hang", "pages about these words: hangs, "),
    ],
)
def test_an_unknown_topic_is_a_sentence(command_line: CommandLine, word: str, message: str) -> None:
    done = command_line("guide", word)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f'error: no topic "{word}"; {message}')
    assert done.err.endswith("  help: `hccl-tools guide` lists the topics\n")


def test_a_word_that_no_page_has(command_line: CommandLine) -> None:
    assert command_line("guide", "xyzzyplugh").err.startswith('error: no topic "xyzzyplugh"\n')


@pytest.mark.parametrize(
    ("word", "command"),
    [("validate", "validate --help"), ("EI0006", "rules EI0006"), ("hcc203", "rules hcc203")],
)
def test_a_command_and_a_code_have_their_own_pages(
    command_line: CommandLine, word: str, command: str
) -> None:
    assert f"  help: `hccl-tools {command}` explains the " in command_line("guide", word).err


def test_a_chinese_word_is_found(command_line: CommandLine) -> None:
    assert 'did you mean "start-a-job"?' in command_line("guide", "--lang", "zh", "启动作业").err


def test_an_empty_topic_is_the_list(command_line: CommandLine) -> None:
    assert command_line("guide", " ").out == command_line("guide").out


def test_help_names_it(command_line: CommandLine) -> None:
    assert "hccl-tools guide " in command_line("--help").out


@pytest.mark.parametrize("language", ["en", "zh"])
def test_prose_fits_the_screen(language: str) -> None:
    for topic in topics(language).values():
        prose = [line for line in plain(topic.text, 80).splitlines() if not line.startswith("    ")]
        without_code = [re.sub("`[^`]*`", "", line) for line in prose]  # which is never broken

        assert [line for line in without_code if cells(line) > 80] == [], topic.name


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "gbk", "utf-8"])
def test_no_encoding_stops_it(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "guide", "--lang", "zh", "tutorial"],
        env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith("# 教程".encode(encoding, "replace"))


@pytest.mark.slow
def test_a_terminal_gets_the_pager(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nread -r title\ncat > /dev/null\necho paged: $title\n")
    pager.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", "guide", "tutorial"],
        stdin=theirs, stdout=theirs, env={**os.environ, "PAGER": str(pager), "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    assert process.wait(60) == 0
    assert b"paged: # Tutorial: " in os.read(ours, 1000)
    os.close(ours)


PAGE = """# Title

<!-- folder: x -->

A [link](a.md#b) and **bold**
in two lines.

- one
  more
- two

```bash
| kept |
```

```text
printed
```

![Two servers](a.svg)

| a | b | c |
| --- | --- | --- |
| `x\\|y` | 1 | 2 |
"""
TEXT = """# Title

A link and bold in two lines.

- one more
- two

    | kept |

    | printed

(picture: Two servers)

  `x|y`
      b: 1
      c: 2
"""


def test_a_page_becomes_text() -> None:
    assert plain(PAGE, None) == TEXT
    assert links(PAGE) == ["a.md"]
    assert plain("重新\n启动 rank\n之后\n", None) == "重新启动 rank 之后\n"
    assert topic_name("A b_c.md") == "a-b-c"
