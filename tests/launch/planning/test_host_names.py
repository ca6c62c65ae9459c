"""Hosts that ``launch --engine mpirun`` would name to mpirun and ssh: only what is a host name."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import two_by_two
from tests.support.mpiruns import MPIRUNS

pytestmark = [pytest.mark.mpi, pytest.mark.skipif(not MPIRUNS, reason="no mpirun")]


@pytest.mark.parametrize("name", ["10.0.0.2,10.0.0.3", "10.0.0.2:4", "-x", "$(touch made)", "a b", "root@a"])
@pytest.mark.parametrize("key", ["server_id", "host_ip"])
def test_a_name_that_mpirun_would_read_otherwise_is_refused(key: str, name: str) -> None:
    table = two_by_two.table(("10.0.0.1", "10.0.0.2"))
    table["server_list"][1][key] = name
    command = two_by_two.command(("", ""), *MPIRUNS[0].for_launch, "--master-addr", "10.0.0.1")
    Path("table.json").write_text(json.dumps(table))

    argv = [*command, "--dry-run", "--no-python", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    refused_by_hccl = key == "host_ip" and "HCC" in done.stderr
    assert done.returncode == 125
    assert refused_by_hccl or "--engine mpirun needs host names" in done.stderr, done.stderr
    assert f"{Path('table.json').resolve()}:1:" in done.stderr or refused_by_hccl
