"""``hccl-tools guide``: show a page of the documentation, or list the pages."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import COMMANDS, language
from hccl_tools.errors import UsageError
from hccl_tools.guide.plain import links, plain
from hccl_tools.guide.topics import topic_name, topics
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.guide.topics import Topic

#: Ids of rules, checks and messages, and error codes of HCCL.
_CODE = re.compile(r"(HC[CDM]|E[A-Z])\d{3,4}", re.IGNORECASE)
#: Words that say nothing about a page.
_EVERYWHERE = re.compile(
    r"an?|and|are|can|do|does|for|from|get|have|how|i|if|in|is|it|my|of|on|or|that|the|there|this|to|use|what|"
    r"when|where|which|why|with|without|not|no"
)
_SHORTEST_PLURAL = 3
#: The weights of a page that has a word: anywhere, in its title, in its first characters.
_PRESENT, _IN_TITLE, _AT_BEGIN = 0.5, 0.5, 0.5
_BEGIN = 600
#: Names of pages that other projects have.
_OTHER_NAMES = {
    **dict.fromkeys(("quickstart", "quick-start", "getting-started", "start", "intro"), "tutorial"),
    **dict.fromkeys(("install", "setup"), "installation"),
    **dict.fromkeys(("faq", "trouble", "problems"), "troubleshooting"),
}
#: Topics that are proposed for a word that is not one.
_MOST = 5


@click.command("guide")
@click.argument("words", nargs=-1, metavar="[TOPIC]")
@language.of_pages
def command(words: tuple[str, ...], pages: str) -> None:
    """Show a page of the documentation, or list the pages.

    \b
    hccl-tools guide                   the topics
    hccl-tools guide tutorial          15 minutes without an NPU
    hccl-tools guide first-table       make the first table
    hccl-tools guide failures          when a job fails
    hccl-tools guide --lang zh         the pages in Chinese

    On a terminal, a page is shown in the pager (PAGER, else less).
    """  # noqa: D301  (click's mark: keep the lines)
    typed = " ".join(words).strip()
    if words[-1:] == ("zh",):
        call = shlex.join(["hccl-tools", "guide", *words[:-1], "--lang", "zh"])
        raise UsageError(f'no topic "{typed}"', hint=f"type `{call}`")
    typed = "" if typed == "list" else typed
    shown = "\n".join(_page(typed, pages) if typed else _list(pages))
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    click.echo_via_pager(shown.encode(encoding, "replace").decode(encoding) + "\n")


def _list(pages: str) -> Iterator[str]:
    known = topics(pages)
    widest = max(map(len, known))
    heading = ""
    for topic in known.values():
        if topic.heading != heading:
            yield from ((topic.heading,) if not heading else ("", topic.heading))
            heading = topic.heading
        row = f"  {topic.name:<{widest}}  {topic.title}"
        yield from screen.wrapped(row, screen.width(), " " * (widest + 4))
    yield ""
    if pages == "zh":
        yield "`hccl-tools guide 主题` 显示一页。`hccl-tools guide --lang en` 列出全部页面。"
    else:
        yield "`hccl-tools guide TOPIC` shows a page; `--lang zh` those in Chinese"


def _page(typed: str, pages: str) -> Iterator[str]:
    topic = _found(typed, pages)
    yield plain(topic.text, screen.width())
    known = topics(topic.language)
    linked = dict.fromkeys(name for link in links(topic.text) if (name := topic_name(link)) in known)
    if others := [name for name in linked if name != topic.name]:
        yield from screen.wrapped(f"hccl-tools guide: {', '.join(others)}", screen.width(), "  ")


def _found(typed: str, pages: str) -> Topic:
    """Return the topic that is typed; the English page, if there is none in Chinese.

    Raises:
        UsageError: There is no such topic.
    """
    known = {**topics("en"), **topics(pages)}
    typed = _OTHER_NAMES.get(topic_name(typed), typed)
    if topic := known.get(topic_name(typed)):
        return topic
    raise UsageError(f'no topic "{typed}"; {_meant(typed, known)}'.removesuffix("; "), hint=_hint(typed))


def _meant(typed: str, known: dict[str, Topic]) -> str:
    """Return which topics may be meant: by name or title, by the pages with the word, else by likeness."""
    word, name = typed.lower(), topic_name(typed)
    named = [one.name for one in known.values() if name in one.name or word in one.title.lower()]
    if len(named) == 1 and word not in COMMANDS:
        return f'did you mean "{named[0]}"?'
    words = _words(word)
    # The name of a page says more than its text.
    having = sorted(_pages_with(words, known), key=lambda one: one not in named)[:_MOST]
    if not having:
        return did_you_mean(name, known)
    which = "with this word" if len(words) == 1 else "about these words"
    return f"pages {which}: {', '.join(having)}"


def _words(typed: str) -> list[str]:
    """Return the words to look for, without those that every text has; the plural is that of the singular."""
    words = [word for word in re.split(r"[\s,;?!]+", typed) if word]
    words = [word for word in words if not _EVERYWHERE.fullmatch(word)] or words
    return [word[:-1] if len(word) > _SHORTEST_PLURAL and word.endswith("s") else word for word in words]


def _pages_with(words: Sequence[str], known: dict[str, Topic]) -> list[str]:
    """Return the pages that have the words, the one that is most about them first.

    A word in the title counts most, then one in the first lines, then how much of all its places a page has.
    """
    points = dict.fromkeys(known, 0.0)
    for word in dict.fromkeys(words):
        pattern = re.compile(rf"(?<![a-z0-9]){re.escape(word)}")
        texts = {one.name: one.text.lower() for one in known.values()}
        shares = {name: len(pattern.findall(text)) / len(text) for name, text in texts.items()}
        for name in (name for name, share in shares.items() if share):
            title = f"{name} {known[name].title}".lower()
            points[name] += shares[name] / sum(shares.values()) + _PRESENT
            points[name] += _IN_TITLE * bool(pattern.search(title))
            points[name] += _AT_BEGIN * bool(pattern.search(texts[name][:_BEGIN]))
    best = max(points.values())
    found = [name for name, value in points.items() if value and value >= best / 2]
    return sorted(found, key=lambda name: -points[name])


def _hint(typed: str) -> str:
    if typed in COMMANDS:
        return f"`hccl-tools {typed} --help` explains the command; `hccl-tools guide` lists the topics"
    if _CODE.fullmatch(typed):
        return f"`hccl-tools rules {typed}` explains the code; `hccl-tools guide` lists the topics"
    return "`hccl-tools guide` lists the topics"
