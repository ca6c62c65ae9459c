"""``distribute`` over a real ssh, to a host with Debian's python3 and nothing of hccl-tools."""

from __future__ import annotations

import json
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.tables import table

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.beds.two_hosts import TwoHosts

pytestmark = pytest.mark.bed


def distribute(bed: TwoHosts, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hccl_tools", "distribute", str(folder / "job.json")]
    return bed.first.run([*command, "--ssh", str(bed.ssh), "-o", str(folder / "there" / "job.json"), *args])


@pytest.mark.parametrize("named", [False, True])
def test_a_table_is_copied_to_real_hosts(two_hosts: TwoHosts, tmp_path: Path, named: bool) -> None:
    """Both hosts share the folder: the second finds the file that the first has just made, or the reverse."""
    hosts = [two_hosts.first.address, two_hosts.second.address]
    value = table("1.0", 2, 8)
    for server, address in zip(value["server_list"], hosts, strict=True):
        server["server_id"] = address
    (tmp_path / "job.json").write_text(json.dumps(value))
    (tmp_path / "there").mkdir()
    args = [hosts[1]] if named else []

    before = distribute(two_hosts, tmp_path, *args)
    copied = distribute(two_hosts, tmp_path, *args, "--write")
    after = distribute(two_hosts, tmp_path, *args)

    assert "has no such file" in before.stdout, before.stderr
    assert [one.returncode for one in (before, copied, after)] == [1, 0, 0], copied.stderr
    assert "written, fingerprint" in copied.stdout
    (file,) = (tmp_path / "there").iterdir()
    assert file.read_bytes() == (tmp_path / "job.json").read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) & 0o600 == 0o600


def test_an_unknown_host_is_named(two_hosts: TwoHosts, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(table("1.0", 1, 8)))

    done = distribute(two_hosts, tmp_path, f"{two_hosts.second.address},node.invalid", "--write")

    assert done.returncode == 1
    assert "node.invalid: " in done.stderr
    assert "Traceback" not in done.stderr
