"""Write the files of examples/tables that hccl-tools makes: ``python -m tests.support.example_tables``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.commands import run_here
from tests.support.plogs import Plogs
from tests.support.tables import table

FOLDER = Path(__file__).parents[2] / "examples" / "tables"
_HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


def write(folder: Path) -> None:
    """Write the tables of three hosts, the job of two of them, the same for ModelArts, and logs of a job."""

    def hccl_tools(*args: str) -> None:
        done = run_here(*args, folder=folder)
        if done.returncode:
            sys.exit(done.stderr)

    ours = [f"hccl_8p_01234567_{host}.json" for host in _HOSTS[:2]] + ["spare.json"]
    for number, (host, name) in enumerate(zip(_HOSTS, ours, strict=True), 1):
        hccl_tools("gen", "--simulate", f"a2:{number}", "--server_ip", host, "-o", name, "--force")
    hccl_tools("merge", *ours[:2], "-o", "job.json", "--force")
    hccl_tools(
        "convert", "job.json", "--to", "group_list", "-o", "jobstart_hccl.json", "--product", "a2", "--force"
    )
    service = json.dumps(table("server_group_list", 1, 2), indent=4)
    (folder / "global_ranktable.json").write_text(f"{service}\n")
    for old in (folder / "logs").rglob("*.log"):
        old.unlink()
    job = Plogs(folder / "logs", 4, per_host=2).start()
    job.error(1, 5, f"socket type[0], listen on ip[{job.address(1)}] and specific port[16666] fail.")
    for rank in (0, 2, 3):
        job.no_link(rank, 1, 125)


if __name__ == "__main__":
    write(FOLDER)
