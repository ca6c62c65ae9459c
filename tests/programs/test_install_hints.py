"""What messages say to install is what there is to install."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hccl_tools.gathering.commands import PROGRAM
from hccl_tools.gathering.failures import HCCL_TOOLS_MISSING_HINT
from hccl_tools.programs import lookup

ROOT = Path(__file__).parent.parent.parent
_TEXTS = [
    *(ROOT / "hccl_tools").rglob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
]


def test_nobody_is_sent_to_an_index_for_hccl_tools() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in _TEXTS
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"pip3? install [\"']?hccl[-_]tools(?!\S*\.whl)", line)
    ]

    assert wrong == []


@pytest.mark.parametrize(("extra", "hint"), [("mpi", lookup.MPI), ("fast", lookup.FAST)])
def test_what_replaces_an_extra_is_the_extra(extra: str, hint: str) -> None:
    (listed,) = re.findall(rf"^{extra} = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    packages = [re.split(r"[>=<; ]", text)[0] for text in re.findall(r'"([^"]+)"', listed)]

    assert hint.endswith(f"pip install {' '.join(packages)}`")


def test_the_program_for_other_hosts_names_it_as_well() -> None:
    compile(PROGRAM, "<program>", "exec")
    assert f"hint = {HCCL_TOOLS_MISSING_HINT!r}" in PROGRAM
