"""The page of a table in a browser: search, folding, marks, keyboard, and what axe finds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.tables import large_table
from hccl_tools import formats
from hccl_tools.show.picture import imported_findings
from hccl_tools.show.picture.drawing import page
from hccl_tools.show.picture.marks import of_findings
from tests.support.pictures import explained, marked, record, subject
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.show.picture.subject import Subject
    from tests.beds.browser import Browser

pytestmark = pytest.mark.slow

#: What has the focus, in words.
FOCUS = (
    "evaluate",
    "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent",
)
DETAILS = ("evaluate", "[...document.querySelectorAll('#details li')].map((item) => item.textContent)")
VISIBLE = ("evaluate", "visibleHeads().length")


def written(folder: Path, one: Subject) -> Path:
    file = folder / "page.html"
    file.write_text("".join(page(one)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 2 super pods with 70 servers each."""
    return written(tmp_path_factory.mktemp("pods"), subject(table("1.2", 140, 8, 2)))


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a table with a finding and an explained cause."""
    folder = tmp_path_factory.mktemp("failed")
    value = table("1.0", 32, 8)
    value["server_list"][1]["device"][2]["device_ip"] = "10.0.0.300"
    one = subject(value)
    peer = {"rank": 17, "host": None, "device": None, "address": None}
    cause = record(42, "Rank 42: the link of its device is down.", peer=peer)
    (folder / "explain.json").write_text(json.dumps(explained([cause], [record(5, "waited")])))
    found = [*imported_findings.of_explain(str(folder / "explain.json"), one.table), *of_findings(one.report)]
    return written(folder, marked(one, found))


@pytest.mark.parametrize(
    ("query", "focus"),
    [
        ("rank 1000", "rank 1000, NPU0, 192.168.125.100"),
        ("1000", "rank 1000, NPU0, 192.168.125.100"),
        ("192.168.139.107", "rank 1119, NPU7, 192.168.139.107"),
        ("10.0.0.140", "10.0.0.140ranks 1112-1119"),
        ("NPU3", "rank 3, NPU3, 192.168.0.103"),
        ("9109511", "rank 1119, NPU7, 192.168.139.107"),  # the super_device_id
    ],
)
def test_search_finds_a_rank(browser: Browser, pods: Path, query: str, focus: str) -> None:
    steps = [("click", "#query"), ("type", query), ("press", "Enter"), FOCUS]
    (found,) = browser(pods, *steps)

    assert found == focus


def test_search_says_how_many_it_found(browser: Browser, pods: Path) -> None:
    found = ("evaluate", "document.getElementById('found').textContent")
    several, none = browser(
        pods, ("click", "#query"), ("type", "10.0.0.13"), found, ("type", "x"), found
    )  # fmt: skip

    assert several == "11 found"  # 10.0.0.13 and 10.0.0.130 to 10.0.0.139
    assert none == "0 found"


def test_a_large_table_opens_as_far_as_its_servers_and_folds(browser: Browser, pods: Path) -> None:
    first, folded, opened = browser(
        pods, VISIBLE, ("click", "#fold"), VISIBLE, ("click", "[data-box='pod 1']"), VISIBLE,
    )  # fmt: skip

    assert first == 2 + 4 + 140  # each super pod has two parts of at most 64 servers
    assert folded == 2
    assert opened > 2


@pytest.mark.parametrize("servers", [48, 128])
def test_a_page_opens_with_something_to_see_in_the_whole_window(
    browser: Browser, tmp_path: Path, servers: int
) -> None:
    file = written(tmp_path, subject(table("1.0", servers, 8)))
    cells, heads, low, height = browser(
        file,
        ("evaluate", "document.querySelectorAll('#overview .cell').length"),
        ("evaluate", "document.querySelectorAll('[data-box^=server]').length"),
        ("evaluate", "document.getElementById('boxes').getBoundingClientRect().bottom"),
        ("evaluate", "innerHeight"),
    )

    assert cells == heads == servers
    assert height - 40 < low <= height


def test_every_marked_server_has_its_mark_in_the_overview(browser: Browser, failed: Path) -> None:
    cells = "[...document.querySelectorAll('#overview .cell:not(:empty)')].map((one) => one.title)"
    found, signs = browser(
        failed, ("evaluate", cells),
        ("evaluate", "[...document.querySelectorAll('#signs li')].map((one) => one.textContent)"),
    )  # fmt: skip

    assert found == [
        "10.0.0.1, ranks 0-7: consequence",  # rank 5
        "10.0.0.2, ranks 8-15: error",  # rank 10
        "10.0.0.6, ranks 40-47: cause",  # rank 42
    ]
    assert [sign[0] for sign in signs] == ["5", "⬢", "■", "○", "∅", "▸"]
    assert "⬢ cause, with its number in the list" in signs


def test_the_arrow_keys_work_from_the_first_press(browser: Browser, tmp_path: Path) -> None:
    file = written(tmp_path, subject(table("1.0", 2, 8)))
    first, second = browser(file, ("press", "ArrowRight"), FOCUS, ("press", "ArrowRight"), FOCUS)

    assert first == "rank 0, NPU0, 192.168.0.100"
    assert second == "rank 1, NPU1, 192.168.0.101"


@pytest.mark.parametrize("servers", [1, 2, 48])
def test_a_narrow_screen_shows_every_device(browser: Browser, tmp_path: Path, servers: int) -> None:
    value = table("1.0", servers, 8)
    for server in value["server_list"]:
        for place, device in enumerate(server["device"]):
            device["device_ip"] = f"192.168.{100 + place}.{server['server_id'].rpartition('.')[2]}"
    file = written(tmp_path, subject(value))
    heads = "[...document.querySelectorAll('[data-box]')]"
    right = f"Math.max(...{heads}.map((one) => one.getBoundingClientRect().right))"
    wide, over, selected = browser(
        file, ("viewport", "390 844"), ("open", file.as_uri()),
        ("evaluate", "document.documentElement.scrollWidth"),
        ("evaluate", right),
        ("evaluate", "document.getElementById('selected').getBoundingClientRect().bottom <= innerHeight"),
    )  # fmt: skip

    assert wide <= 390
    assert 0 < over <= 390
    assert selected is True


def test_a_long_path_in_a_mark_is_not_cut_on_a_narrow_screen(browser: Browser, tmp_path: Path) -> None:
    one = subject(table("1.0", 1, 8))
    cause = record(5, f"Rank 5: the program raised an exception. ({'log/' + 'e' * 70}.log:4)")
    (tmp_path / "explain.json").write_text(json.dumps(explained([cause], [])))
    file = written(
        tmp_path, marked(one, imported_findings.of_explain(str(tmp_path / "explain.json"), one.table))
    )
    over = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)"
    inside, wide = browser(
        file, ("viewport", "390 844"), ("open", file.as_uri()),
        ("evaluate", "document.getElementById('notes').textContent.includes('e.log:4')"),
        ("evaluate", f"{over}(document.getElementById('notes'))"),
    )  # fmt: skip

    assert inside is True
    assert wide == 0


def test_screen_readers_have_headings_for_super_pods_and_servers(browser: Browser, pods: Path) -> None:
    headings = "[...document.querySelectorAll('#picture :is(h3, h4, h5)')].map((one) => one.tagName)"
    levels, label = browser(
        pods,
        ("evaluate", f"[...new Set({headings})]"),
        ("evaluate", "document.querySelector('#picture h5 button').getAttribute('aria-expanded')"),
    )  # fmt: skip

    assert levels == ["H3", "H4", "H5"]
    assert label == "false"


def test_a_small_table_opens_unfolded(browser: Browser, tmp_path: Path) -> None:
    (visible,) = browser(written(tmp_path, subject(table("1.0", 2, 8))), VISIBLE)

    assert visible == 2 + 16


def test_the_selected_device_is_mirrored_in_a_list(browser: Browser, tmp_path: Path) -> None:
    file = written(tmp_path, subject(table("1.2", 2, 4)))
    (details,) = browser(file, ("click", "#query"), ("type", "5"), ("press", "Enter"), DETAILS)

    assert details == [
        "rank: 5 of 8", "device: NPU1", "address: 192.168.1.101", "super device id: 65537",
        "server: 10.0.0.2", "super pod: 0", "line: job.json:45", "SIO: with rank 4", "HCCS: with ranks 6-7",
        "HCCS: with 4 ranks of 1 other server",
    ]  # fmt: skip


def test_a_finding_and_a_cause_are_shown(browser: Browser, failed: Path) -> None:
    notes, cause, peer, wrong, details = browser(
        failed,
        ("evaluate", "[...document.querySelectorAll('#notes button')].map((one) => one.textContent)"),
        ("evaluate", "document.querySelector('[data-box=\"device 42\"]').className"),
        ("evaluate", "document.querySelector('[data-box=\"device 17\"]').className"),
        ("evaluate", "document.querySelector('[data-box=\"device 10\"]').className"),
        ("click", "#notes li:first-child button"),
        DETAILS,
    )

    assert notes[0] == "⬢1 HCM217, cause: Rank 42: the link of its device is down. (plog.log:7)"
    assert notes[1].startswith(
        '■2 HCC403, error: "10.0.0.300" is not an IP address: 300 is above 255 (job.json:'
    )
    assert notes[-1] == "∅ 254 ranks: no error in the logs"
    assert (cause, peer, wrong) == ("npu cause", "npu silent", "npu error")
    assert notes[0] in details


def test_everything_can_be_done_by_keyboard(browser: Browser, pods: Path) -> None:
    first, down, around, rank, zoomed, links = browser(
        pods,
        *[("press", "Tab")] * 11, FOCUS,
        ("press", "ArrowDown"), ("press", "ArrowRight"),
        ("press", "Enter"), ("press", "ArrowRight"), ("press", "ArrowRight"), FOCUS,
        ("press", "Escape"), FOCUS,
        ("press", "/"), ("type", "rank 1119"), ("press", "Enter"), FOCUS,
        ("press", "+"), ("evaluate", "document.getElementById('normal').textContent"),
        ("press", "/"), *[("press", "Tab")] * 2, ("press", "Enter"),
        ("evaluate", "document.querySelectorAll('#links td.kHCCS').length > 0"),
    )  # fmt: skip

    assert first.startswith("super pod 0")
    assert down == "rank 1, NPU1, 192.168.0.101"
    assert around == "10.0.0.1ranks 0-7"
    assert rank == "rank 1119, NPU7, 192.168.139.107"
    assert zoomed == "115 %"
    assert links is True


def test_links_are_rank_by_rank_in_blocks(browser: Browser, failed: Path) -> None:
    cell = "[...document.querySelectorAll('#links td')].map((one) => one.title + '|' + one.textContent)"
    (cells,) = browser(failed, ("click", "#view-links"), ("evaluate", cell))

    assert "rank 0 to rank 3: HCCS|HCCS" in cells
    assert "rank 0 to rank 4: ?|?" in cells
    assert "rank 0 to rank 8: RoCE|RoCE" in cells
    assert "rank 17 to rank 42: RoCE|⬢ RoCE" in cells
    assert "rank 63 to rank 63: X|X" in cells


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, failed: Path, tmp_path: Path, theme: str) -> None:
    find = [("click", "#query"), ("type", "10.0.0.1"), ("press", "Enter")]
    small = written(tmp_path, subject(table("1.0", 2, 8)))

    assert browser(failed, ("theme", theme), *find, ("audit", "")) == [[]]
    assert browser(small, ("theme", theme), ("click", "#view-links"), ("audit", "")) == [[]]


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    value = table("1.2", 2, 2)
    for place, name in enumerate(
        ["</script><script>document.title='no'</script>", "<img src=x onerror=alert(1)>"]
    ):
        value["server_list"][place]["server_id"] = name
    value["super_pod_list"][0]["super_pod_id"] = "]]><!--"
    value["server_list"][0]["device"][0]["device_ip"] = "\u2028';alert(1)//"
    title, images, names = browser(
        written(tmp_path, subject(value, name="<b>job</b>.json")),
        ("evaluate", "document.title"),
        ("evaluate", "document.querySelectorAll('img, b:not(#details b), script:not(#data)').length"),
        ("evaluate", "[...document.querySelectorAll('.name')].map((one) => one.textContent)"),
    )

    assert title == "<b>job</b>.json: rank table"
    assert images == 1  # the page's own script
    assert "</script><script>document.title='no'</script>" in names


def test_65536_ranks_open_and_answer_fast(browser: Browser, tmp_path: Path) -> None:
    value = json.loads("".join(formats.write(large_table("1.0", 8192))))
    file = written(tmp_path, subject(value))
    timed = "(() => {{ const start = performance.now(); {0}; return performance.now() - start; }})()"
    queries = ["65535", "10.0.255.255", "172.16.31.255", "npu 7", "nothing like this", "1"]
    opened, *answers, visible = browser(
        file,
        ("evaluate", "performance.timing.loadEventEnd - performance.timing.navigationStart"),
        *[("evaluate", timed.format(f"query.value = '{text}'; showResults()")) for text in queries],
        VISIBLE,
    )

    assert file.stat().st_size <= 8_000_000
    assert opened < 3000
    assert max(answers) < 200
    assert visible == 128
