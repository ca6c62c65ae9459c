"""Time and size of ``show -f svg|html``: ``python -m benchmarks.pictures [RUNS]``.

The page of 65,536 ranks must take at most three times as long as ``validate`` and be at most 8 MB. How fast
it opens and answers is measured in a browser by tests/show/picture/test_page_in_browser.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import Contender, Row, alternate, report
from benchmarks.validate import make

_SERVERS = 8192
_MOST_MEGABYTES = 8


def rows(folder: Path, table_format: str, runs: int) -> list[Row]:
    """Return the lines of one format."""
    table = make(folder, table_format, _SERVERS)
    page, picture = str(folder / "page.html"), str(folder / "picture.svg")
    figures = alternate(
        [
            Contender("validate", ["hccl-tools", "validate", table]),
            Contender("html", ["hccl-tools", "show", table, "-o", page, "--force"]),
            Contender("svg", ["hccl-tools", "show", table, "-o", picture, "--force"]),
        ],
        runs,
    )
    least = figures["validate"].seconds
    size = Path(page).stat().st_size / 1e6
    return [
        Row(f"{table_format}, html, 65,536 ranks", figures["html"].seconds, "s", "validate", least, 3),
        Row(f"{table_format}, svg, 65,536 ranks", figures["svg"].seconds, "s", "validate", least, 3),
        Row(f"{table_format}, size of the page", size, "MB", "the most", _MOST_MEGABYTES, 1),
    ]


def main(runs: int) -> None:
    """Measure and print."""
    with TemporaryDirectory() as name:
        found = [row for one in ("1.0", "1.2", "2.0", "group_list") for row in rows(Path(name), one, runs)]
    report(f"pictures: medians of {runs}, whole processes", found)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
