"""What the pages of the documentation tell readers to type works, and shows what the pages show."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.host_files import topology
from tests.support.hosts import conf_text, described, make_host
from tests.support.pages import Block, Shell, blocks, corrected, is_shown, settings, typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.beds.network_host import Host
    from tests.beds.three_hosts import ThreeHosts

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        ROOT / "README.md",
        ROOT / "README.zh-CN.md",
        *(ROOT / "docs" / "en").rglob("*.md"),
        *(ROOT / "docs" / "zh").rglob("*.md"),
    )
)


def typed_on(name: str) -> list[tuple[str, str | None, int]]:
    """Return what is typed on a page: the texts, what is seen, and the exit codes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [(one.typed, one.seen, one.code) for one in blocks(text) if not one.why_not]


def is_twin(name: str) -> bool:
    """Return whether a Chinese page has the blocks of the English page, with which they are typed."""
    english = name.replace("docs/zh/", "docs/en/")
    return english != name and english in PAGES and typed_on(name) == typed_on(english)


#: Pages with blocks to type.
TYPED = [name for name in PAGES if typed_on(name) and not is_twin(name)]
ON_HOSTS = [name for name in TYPED if "hosts" in settings((ROOT / name).read_text(encoding="utf-8"))]
#: Where the driver puts the topology files of Ascend 950.
_TOPOLOGIES = "/usr/local/Ascend/driver/topo/"
#: Programs that a host of the pages does not have: what `gen --hosts` and `launch` use depends on them.
NOT_THERE = re.compile(r"mpi(run|exec)|(prte|orte)(run|d)|srun|sbatch|salloc|kubectl|hccn_tool|npu-smi|ssh$")


@dataclass
class Reader:
    """Types the blocks of a page, one after the other, in a shell for each host."""

    shells: Sequence[Shell]
    seen: dict[int, str] = field(default_factory=dict)

    def read(self, name: str, *, update: bool) -> None:
        """Type the blocks of a page and compare what is seen; with ``update`` write it into the page."""
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        for block in blocks(text):
            if block.why_not:
                continue
            try:
                self._type(block, name, update=update)
            except AssertionError:
                typed(Block(0, "hccl-tools stop --now", None), self.shells)
                raise
        if update and self.seen:
            page.write_text(corrected(text, self.seen), encoding="utf-8")

    def _type(self, block: Block, name: str, *, update: bool) -> None:
        code, text = typed(block, self.shells)
        assert code == block.code, f"{name}:{block.line}: exit code {code}\n{text}"
        if block.seen is None or is_shown(block.seen, text):
            return
        assert update, f"{name}:{block.line} shows\n{block.seen}\nnot\n{text}"
        self.seen[block.line] = text


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH: hccl-tools, and the programs of this machine but for those of a cluster."""
    folder = tmp_path_factory.mktemp("programs")
    for name, words in (("hccl-tools", "-m hccl_tools"), ("python", ""), ("python3", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (folder / name).chmod(0o755)
    for path in (*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()):
        if not NOT_THERE.match(path.name) and not os.path.lexists(folder / path.name):
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def reader(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Reader:
    """A reader of the page that the test has as ``name``."""
    name: str = request.node.callspec.params["name"]
    where = settings((ROOT / name).read_text(encoding="utf-8"))
    folder = tmp_path / "tutorial"
    if "folder" in where:
        shutil.copytree(ROOT / where["folder"], folder)
    else:
        folder.mkdir()
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    environ = {**os.environ, **own, "PATH": str(programs), "PYTHONPATH": str(ROOT)}
    if program := where.get("also"):
        found = shutil.which(program) or pytest.skip(f"{program} is not installed")
        (tmp_path / "also").mkdir()
        (tmp_path / "also" / program).symlink_to(found)
        environ["PATH"] = f"{tmp_path / 'also'}:{programs}"
    if "hosts" not in where:
        return Reader([Shell(folder, environ)])
    bed: ThreeHosts = request.getfixturevalue("three_hosts")
    make_devices(bed, where["hosts"])
    return Reader([shell(bed, host, folder, environ) for host in bed.hosts])


def shell(bed: ThreeHosts, host: Host, folder: Path, environ: dict[str, str]) -> Shell:
    """Return the shell of a reader on a host; the pages have two of its folders under other names."""
    ascend = host.folder / "ascend"
    here = {
        "PATH": f"{ascend / 'bin'}:{bed.ssh.parent}:{environ['PATH']}",
        "HCCL_TOOLS_ROOT": str(ascend / "root"),
    }
    paths = {_TOPOLOGIES: f"{host.disk}/topo/", "/data/": f"{host.disk}/"}
    return Shell(folder, {**environ, **here}, host.command, paths)


def make_devices(bed: ThreeHosts, product: str) -> None:
    """Give each host the devices of a product, and the driver's tools."""
    for number, host in enumerate(bed.hosts, 1):
        described_host: dict[str, Any] = described(product, number)
        devices = {int(device): one["ip"] for device, one in described_host["devices"].items()}
        conf = conf_text({device: ips[0] for device, ips in devices.items() if ips})
        make_host(host.folder / "ascend", described_host, nodes=devices, conf=conf or None)
        topologies = host.folder / "disk" / "topo"
        topologies.mkdir()
        (topologies / "topo.json").write_text(json.dumps(topology()), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TYPED if name not in ON_HOSTS])
def test_the_blocks_of_a_page_work_one_after_the_other(
    name: str, reader: Reader, request: pytest.FixtureRequest
) -> None:
    reader.read(name, update=request.config.getoption("--update-golden"))


@pytest.mark.slow
@pytest.mark.bed
@pytest.mark.parametrize("name", ON_HOSTS)
def test_the_blocks_of_a_page_work_on_hosts_with_devices(
    name: str, reader: Reader, request: pytest.FixtureRequest
) -> None:
    reader.read(name, update=request.config.getoption("--update-golden"))


def test_a_block_that_is_not_typed_says_why() -> None:
    reasons = [
        (name, block.why_not)
        for name in PAGES
        for block in blocks((ROOT / name).read_text(encoding="utf-8"))
        if block.why_not
    ]

    assert [one for one in reasons if len(one[1].split()) < 3] == []


def test_a_page_states_where_its_files_are() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
    silent = [
        name
        for name, text in texts.items()
        if (folder := settings(text).get("folder")) and f"cp -r {folder} try && cd try" not in text
    ]

    assert silent == []


@pytest.mark.parametrize("name", ["tutorial", "howto/first_table", "howto/mindspore", "howto/paddle"])
def test_the_chinese_page_has_the_commands_of_the_english_one(name: str) -> None:
    assert typed_on(f"docs/zh/{name}.md") == typed_on(f"docs/en/{name}.md")


def test_a_page_is_read() -> None:
    page = "Do this:\n\n<!-- exit code: 3 -->\n```bash\nfalse\n```\n\n```text\none\n```\n\n```bash\ncd\n```\n"

    first, second = blocks(page)

    assert (first.line, first.typed, first.seen, first.code) == (4, "false\n", "one\n", 3)
    assert second.seen is None


def test_a_page_states_where_it_is_typed() -> None:
    page = "# Title\n\n<!-- folder: examples/tables -->\n<!-- hosts: a2 -->\n\n```bash\ntrue\n```\n"

    assert settings(page) == {"folder": "examples/tables", "hosts": "a2"}
    assert [block.typed for block in blocks(page)] == ["true\n"]
    assert settings("# Title\n\n```bash\n# <!-- hosts: a2 -->\n```\n") == {}


@pytest.mark.parametrize(
    "page",
    ["```\n1\n```\n", "```console\n$ 1\n```\n", "<!-- skip: no time -->\n```bash\n:\n```\n"],
)
def test_a_block_of_another_kind_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="block"):
        list(blocks(page))


def test_a_block_that_shows_a_file_is_not_typed() -> None:
    assert list(blocks("```yaml\nspec:\n```\n\n```python\nimport os\n```\n")) == []


def test_a_page_is_corrected() -> None:
    page = "```bash\necho a\n```\n\n```text\nb\n```\n\n```bash\necho c\n```\n\n```text\nc\n```\n"

    assert corrected(page, {1: "a\n"}) == page.replace("\nb\n", "\na\n")


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
