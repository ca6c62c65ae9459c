"""The version names the commit of the checkout: two of them differ when the hosts of a job compare theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools import version

FIRST, SECOND = "0123456789abcdef" * 2 + "01234567", "fedcba9876543210" * 2 + "fedcba98"


def checkout(folder: Path, files: dict[str, str]) -> str:
    """Return the version that a checkout with these files states."""
    package = folder / "hccl_tools"
    package.mkdir(parents=True)
    (package / "version.py").write_text(Path(version.__file__).read_text())
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    program = "import runpy, sys; print(runpy.run_path(sys.argv[1])['__version__'])"
    argv = [sys.executable, "-I", "-S", "-c", program, str(package / "version.py")]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


BRANCH = {".git/HEAD": "ref: refs/heads/main\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "0.2.0"),
        ({".git/HEAD": f"{FIRST}\n"}, "0.2.0+g01234567"),
        ({**BRANCH, ".git/refs/heads/main": f"{SECOND}\n"}, "0.2.0+gfedcba98"),
        ({**BRANCH, ".git/packed-refs": f"# pack\n{FIRST} refs/heads/main2\n{SECOND} refs/heads/main\n"},
         "0.2.0+gfedcba98"),
        (BRANCH, "0.2.0"),  # before the first commit
        ({".git/HEAD": "no commit\n"}, "0.2.0"),
        ({".git": "gitdir: there\n", "there/HEAD": "ref: refs/heads/x\n", "there/commondir": "../common\n",
          "common/refs/heads/x": f"{FIRST}\n"}, "0.2.0+g01234567"),
    ],
    ids=["no git", "detached", "branch", "packed", "unborn", "garbage", "linked work tree"],
)  # fmt: skip
def test_a_checkout_names_its_commit(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert checkout(tmp_path, files) == expected


def test_a_copy_outside_the_checkout_keeps_the_commit(tmp_path: Path) -> None:
    source = version.stamped(Path(version.__file__).read_text())
    (tmp_path / "version.py").write_text(source)
    program = "import runpy; print(runpy.run_path('version.py')['__version__'])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.strip() == version.__version__
