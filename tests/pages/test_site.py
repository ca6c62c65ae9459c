"""The site of the documentation: its navigation, and what makes its build fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    find_spec("mkdocs_static_i18n") is None and "HCCL_TOOLS_REQUIRE_BEDS" not in os.environ,
    reason="the extra `docs` is not installed",
)
#: A small documentation: docs/PAGE -> text.
PAGES = {
    "en/README.md": """# Docs

English | [中文](../zh/README.md)

## Begin

[one](one.md), [two](howto/two.md), [rules](../rules/README.md)
""",
    "en/one.md": "# One\n\n## A part\n\n[two](howto/two.md), [rules](../rules/README.md)\n",
    "en/howto/two.md": "# Two\n\n[one](../one.md#a-part), [a file](../../../examples/train.py)\n",
    "zh/README.md": """# 文档

[English](../en/README.md) | 中文

## 入门

[一](one.md)、[只有中文](howto/alone.md)、[二](../en/howto/two.md)、[规则](../rules/README.md)
""",
    "zh/one.md": "# 一\n\n[2](../en/howto/two.md) [英文](../en/one.md#a-part) [全部](../en/README.md)",
    "zh/howto/alone.md": "# 只有中文\n",
    "rules/README.md": "# The rules\n\n[one](HCC203.md)\n",
    "rules/HCC203.md": "# HCC203\n\nTwo devices share one rank id.\n",
}


def build(folder: Path, **pages: str) -> tuple[int, str]:
    """Build a site in ``folder`` from PAGES and others: exit code, and what is printed."""
    for name, text in {**PAGES, **pages}.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    (folder / "examples").mkdir()
    (folder / "examples" / "train.py").write_text("import torch\n")
    shutil.copytree(ROOT / "website", folder / "website", ignore=shutil.ignore_patterns("__pycache__"))
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "website/mkdocs.yml"],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    return built.returncode, built.stdout


@pytest.mark.slow
def test_a_page_without_a_chinese_one_is_in_the_chinese_site(tmp_path: Path) -> None:
    code, printed = build(tmp_path)
    site = tmp_path / "dist" / "docs"

    assert code == 0, printed
    chinese = (site / "zh" / "index.html").read_text(encoding="utf-8")
    two = (site / "zh" / "howto" / "two.html").read_text(encoding="utf-8")
    rule = (site / "zh" / "rules" / "HCC203.html").read_text(encoding="utf-8")
    assert 'href="howto/two.html"' in chinese
    assert 'href="index.html" hreflang="zh"' in chinese
    assert "本页目前只有英文" in two
    one = (site / "zh" / "one.html").read_text(encoding="utf-8")
    assert '<a href="../one.html#a-part">英文</a>' in one
    assert '<a href="../index.html">全部</a>' in one
    alone = (site / "zh" / "howto" / "alone.html").read_text(encoding="utf-8")
    assert 'href="../../index.html" hreflang="en"' in alone
    assert 'href="../one.html"' in two, "the Chinese page, which has another anchor"
    assert 'href="../../examples/train.py.txt"' in two
    assert (site / "examples" / "train.py.txt").read_text() == "import torch\n"
    assert "两个设备的 rank_id 相同" in rule
    assert "本页目前只有英文" not in (site / "howto" / "two.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_dead_link_a_dead_anchor_and_a_page_without_a_link_are_refused(tmp_path: Path) -> None:
    code, printed = build(
        tmp_path,
        **{"en/one.md": "# One\n\n[a](absent.md) [b](howto/two.md#absent)\n", "en/alone.md": "# Alone\n"},
    )

    assert code != 0
    assert "'absent.md'" in printed
    assert "does not contain an anchor '#absent'" in printed
    assert "en/alone.md" in printed
