"""The pages of the documentation that are in the package: docs/en and docs/zh, by topic.

A topic is named after its page: ``howto/first_table.md`` is ``first-table``. The map of the pages, README.md
of a language, has their order and its headings.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from hccl_tools.records import NamedTuple

#: The map of the pages of a language.
_MAP = "README.md"
#: A heading of the map, or a link to a page.
_PART = re.compile(r"^## (?P<heading>.+)$|\]\((?P<link>[\w/]+\.md)\)", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


class Topic(NamedTuple):
    """A page: its name for the command line, its place below the language's folder, its title and heading."""

    name: str
    page: str
    title: str
    heading: str
    language: str

    @property
    def text(self) -> str:
        """The page, in Markdown."""
        return _read(self.language, self.page)


@cache
def topics(language: str) -> dict[str, Topic]:
    """Return the topics of a language (``en``, ``zh``) by name, in the order of its map."""
    found: dict[str, Topic] = {}
    heading = ""
    for part in _PART.finditer(_read(language, _MAP)):
        heading = part["heading"] or heading
        page = part["link"]
        if page is None:
            continue
        title = _TITLE.search(_read(language, page))
        name = topic_name(page)
        found[name] = Topic(name, page, title[1] if title else name, heading, language)
    return found


def topic_name(typed: str) -> str:
    """Return the name of a topic for what is typed, or for a page: lower case, hyphens, no folder, no ending.

    >>> topic_name("howto/First_table.md")
    'first-table'
    """
    return typed.strip().lower().rpartition("/")[2].removesuffix(".md").replace("_", "-").replace(" ", "-")


def _read(language: str, page: str) -> str:
    place = files("hccl_tools").joinpath("docs", language)
    return place.joinpath(*page.split("/")).read_text(encoding="utf-8")
