"""``hccl-tools guide``: show a page of the documentation, or list the pages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import language
from hccl_tools.errors import UsageError
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.guide.topics import Topic


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
    shown = "\n".join(_page(" ".join(words), pages) if words else _list(pages))
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    click.echo_via_pager(shown.encode(encoding, "replace").decode(encoding) + "\n")


def _list(pages: str) -> Iterator[str]:
    from hccl_tools.guide.topics import topics  # noqa: PLC0415  (`--help` does not need it)

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
    from hccl_tools.guide.plain import links, plain  # noqa: PLC0415
    from hccl_tools.guide.topics import topic_name, topics  # noqa: PLC0415

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
    from hccl_tools.guide.topics import topic_name, topics  # noqa: PLC0415

    known = {**topics("en"), **topics(pages)}
    if topic := known.get(topic_name(typed)):
        return topic
    message = f'no topic "{typed}"'
    word = typed.strip().lower()
    having = [one.name for one in known.values() if word in f"{one.name} {one.title}".lower()]
    if guess := did_you_mean(topic_name(typed), known):
        message = f"{message}; {guess}"
    elif having:
        message = f"{message}; topics with this word: {', '.join(having)}"
    raise UsageError(message, hint="`hccl-tools guide` lists the topics")
