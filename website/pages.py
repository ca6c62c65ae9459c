"""What the site does with the pages of docs: a hook of MkDocs.

The pages are written for a reader of the repository. README.md of a language is the map of its pages; the
navigation of the site is made from it.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

from hccl_tools.zh.lines import texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

#: The language of the pages that are not in a folder of a language, and of those that another one lacks.
DEFAULT = "en"
#: What a map consists of: headings, names of groups, and links to pages.
_PART = re.compile(
    r"^## (?P<heading>.+)$|^(?P<group>[^\[\]`\n]{1,20})[:：]$"
    r"|\[(?P<text>[^\]\n]{1,80})\]\((?P<link>[\w./]{1,80}\.md)\)",
    re.MULTILINE,
)
#: The link to the other language below a title: the site has a menu for that.
_SWITCH = re.compile(r"\A(# .*\n\n)(?:English \| \[|\[English\]).*\n\n")
_LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]\n]*)\]\((?P<file>[\w./-]+)(?P<anchor>#[\w-]+)?\)")
_HEADING = re.compile(r"^## ", re.MULTILINE)
_TITLE = re.compile(r"\A# .*\n")


def navigation(text: str, language: str) -> list[dict[str, Any]]:
    """Return the navigation of a language's map: its headings, groups and pages."""
    sections: list[dict[str, Any]] = []
    inner: list[Any] = []
    for part in _PART.finditer(text):
        if part["heading"]:
            inner = []
            sections.append({part["heading"]: inner})
        elif part["group"] and sections:
            inner = []
            next(iter(sections[-1].values())).append({part["group"]: inner})
        elif part["link"] and sections:
            inner.append(_entry(part["text"].replace("`", ""), part["link"], language))
    return sections


def _entry(text: str, link: str, language: str) -> str | dict[str, str]:
    """Return a page of the navigation: under its own title, or the map's if the page has another language."""
    folder, _, page = normpath(f"{language}/{link}").partition("/")
    if folder == language:
        return page
    page = page if folder == DEFAULT else normpath(f"{folder}/{page}")
    return page if language == DEFAULT else {text: page}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation of the language that is being built."""
    logging.getLogger("jieba").setLevel(logging.WARNING)
    language = config.plugins["i18n"].current_language or DEFAULT
    text = Path(config.docs_dir, language, "README.md").read_text(encoding="utf-8")
    config.nav = ["README.md", *navigation(text, language)]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Leave out the list of languages; add the style, and the files outside docs that pages link to."""
    style = str(Path(__file__).parent), config.site_dir
    files.append(File("wide.css", *style, use_directory_urls=False))
    if listed := files.get_file_from_path("README.md"):
        files.remove(listed)
    root = Path(config.docs_dir).parent
    for path in sorted({path for page in files.documentation_pages() for path in _outside(page, root)}):
        files.append(
            File(path, str(root), config.site_dir, use_directory_urls=False, dest_uri=_shown_as(path))
        )
    return files


def _outside(page: File, root: Path) -> Iterator[str]:
    """Yield the files outside docs that a page links to, as paths from ``root``; those that are no pages."""
    folder = PurePosixPath("docs", page.src_uri).parent
    for link in _LINK.finditer(page.content_string):
        target = normpath(folder / link["file"])
        if (
            not target.startswith(("docs/", ".."))
            and not target.endswith(".md")
            and (root / target).is_file()
        ):
            yield target


def _shown_as(path: str) -> str:
    """Return the path of a file outside docs in the site: browsers show a .txt, and save a .py."""
    return f"{path}.txt"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Make a page of the repository a page of the site."""
    language, source = config.theme["language"], PurePosixPath(page.file.src_uri)
    is_translated = language == DEFAULT or source.parts[0] == language
    markdown = _SWITCH.sub(r"\1", markdown)
    own = None if language == DEFAULT else Path(config.docs_dir, language)
    markdown = _LINK.sub(lambda link: _linked(link, source.parent, own, is_own=is_translated), markdown)
    if source.stem != "README" and source.parent.name == "rules":
        back = "全部规则" if language == "zh" else "All rules"
        markdown = f"{markdown}\n[{back}](README.md)\n"
    if not _HEADING.search(markdown):
        page.meta["hide"] = ["toc"]  # a wide table needs the room
    if is_translated:
        return markdown
    page.meta["search"] = {"exclude": True}  # the site in English has the page, too: a search finds that one
    return _TITLE.sub(lambda title: title[0] + _only_english(source), markdown)


def _linked(link: re.Match[str], folder: PurePosixPath, own: Path | None, *, is_own: bool) -> str:
    """Return a link of a page.

    Args:
        folder: The folder of the page in docs.
        own: The folder of the language that is built, if that is another one than English.
        is_own: Whether the page is in that language.
    """
    target = normpath(folder / link["file"])
    page = target.removeprefix(f"{DEFAULT}/")
    if page != target and own and (own / page).is_file():
        if is_own:  # A link to the English version: MkDocs would take it for one to the page itself.
            page = page.removesuffix(".md").replace("README", "index")
            place = "../" * len(folder.parts) + f"{page}.html" + (link["anchor"] or "")
            return f'<a href="{place}">{link["text"]}</a>'
        return f"{link['mark']}[{link['text']}]({link['file']})"  # The anchors are others.
    if not target.startswith("../"):
        return link[0]
    if target.endswith(".md"):
        return link["text"]
    return f"{link['mark']}[{link['text']}]({link['file'].replace('../', '', 1)})"


def _only_english(source: PurePosixPath) -> str:
    """Return what a Chinese reader sees above a page in English."""
    note = '\n!!! note "本页目前只有英文"\n'
    if text := texts().get(source.stem):
        return f"{note}\n    {text.line}\n"
    return note


def on_page_context(context: Any, config: MkDocsConfig, **_: object) -> Any:
    """Make the links of the menu of languages relative, so that the site may stand in any folder."""
    for alternate in config.extra.alternate:
        alternate["link"] = alternate["link"].lstrip("/")
    return context
