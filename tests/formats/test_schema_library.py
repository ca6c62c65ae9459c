"""jsonschema, which takes 60 ms and 9 MB, is imported for refused tables and foreign JSON only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.hosts import StandInHost, described, make_host
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

SHOWS_MODULES = """\
import atexit, sys
names = {"jsonschema", "referencing", "rpds", "attr", "attrs", "jsonschema_specifications"}
atexit.register(lambda: print("loaded", *sorted(names & set(sys.modules)), file=sys.stderr))
from hccl_tools.__main__ import main
main()
"""
_REHEARSAL = ("launch", "--cpu", "--log-dir", "log", "--python", sys.executable)
WITHOUT = (
    ("validate", "good.json"),
    ("validate", "--local", "-f", "sarif", "good.json"),
    ("validate", "--env", "HCCL_BUFFSIZE=0", "good.json"),
    ("merge", "good.json", "-o", "-"),
    ("subset", "good.json", "--devices", "0-3", "-o", "-"),
    ("convert", "good.json", "--to", "group_list", "-o", "-"),
    ("show", "good.json"),
    ("diff", "good.json", "good.json"),
    ("env", "good.json", "--target", "torch", "--server", "10.0.0.1"),
    ("doctor", "--local", "good.json"),
    ("doctor", "--local"),
    ("gen", "-o", "-"),
    ("gen", "--simulate", "a5", "-o", "-"),
    (*_REHEARSAL, "-n", "2", "good.py"),
    (*_REHEARSAL, "-n", "2", "bad.py"),
    (*_REHEARSAL, "--all-here", "--rank-table", "good.json", "good.py"),
    ("launch", "--rank-table", "good.json", "--emit", "msrun", "good.py"),
    ("distribute", "good.json", "10.0.0.1", "--via", "false {host}"),
    ("explain", "plog.log"),
    ("jobs",),
)
WITH = (
    ("validate", "refused.json"),
    ("explain", "--knowledge", "messages.json", "plog.log"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("schema_library")
    make_host(made / "host", described("a2"), nodes=range(8))
    value = table("1.0", 1, 8)
    (made / "good.json").write_text(json.dumps(value))
    value["server_list"][0]["device"][0]["rank_id"] = 0
    (made / "refused.json").write_text(json.dumps(value))
    (made / "messages.json").write_text('{"messages": []}')
    (made / "plog.log").write_text("[ERROR] HCCL(1,python):2026-11-27-10:00:00.000.000 EI0004\n")
    (made / "good.py").write_text("print(1)\n")
    (made / "bad.py").write_text('raise RuntimeError("no")\n')
    (made / "shows.py").write_text(SHOWS_MODULES)
    return made


def loaded(folder: Path, words: tuple[str, ...]) -> list[str]:
    host = StandInHost(folder / "host")
    done = subprocess.run(
        [sys.executable, "shows.py", *words], cwd=folder, capture_output=True, text=True, check=False,
        timeout=120, env={
            **os.environ, "HCCL_TOOLS_ROOT": str(host.root), "PATH": f"{host.bin}:/usr/bin:/bin",
            "HOME": str(folder),
        },
    )  # fmt: skip
    assert "Traceback" not in done.stderr or "bad.py" in words
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("loaded"))
    return line.split()[1:]


@pytest.mark.slow
@pytest.mark.parametrize("words", WITHOUT, ids=" ".join)
def test_not_for_good_tables_jobs_and_hosts(folder: Path, words: tuple[str, ...]) -> None:
    assert loaded(folder, words) == []


@pytest.mark.parametrize("words", WITH, ids=" ".join)
def test_for_refused_tables_and_foreign_files(folder: Path, words: tuple[str, ...]) -> None:
    assert "jsonschema" in loaded(folder, words)
