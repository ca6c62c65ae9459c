"""A job of two hosts with two ranks each, servers and ranks of its table in no order."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts

#: Rank: (index of its host, device). The second host has rank 0, and its devices are written last one first.
SEATS = {0: (1, 4), 1: (0, 5), 2: (0, 4), 3: (1, 5)}
#: Findings on a table of less than eight devices per server.
IGNORED = "HCC2,HCC5,HCC6"

#: A host that does not answer counts as lost after 3 s instead of 12.
SHORT_LOSS = ("--host-timeout", "3")
#: The launcher waits 0.5 s and not 3 for an engine that it has signalled.
SHORT_END = "engine.end=0.5"


def table(hosts: tuple[str, str]) -> dict[str, Any]:
    """Return the table as it lies in its file."""
    servers = [
        {
            "server_id": hosts[index],
            "device": [
                {"device_id": str(device), "device_ip": f"192.168.{index}.{device}", "rank_id": str(rank)}
                for rank, (host, device) in sorted(SEATS.items(), reverse=index == 1)
                if host == index
            ],
            "host_nic_ip": "reserve",
        }
        for index in (1, 0)
    ]
    return {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}


def command(hosts: tuple[str, str], *options: str) -> list[str]:
    """Write ``table.json`` into the working directory and return the start of a command that launches it.

    Without ``--start`` among the options, the ranks get torch's variables: MindSpore's need its scheduler.
    """
    Path("table.json").write_text(json.dumps(table(hosts)))
    launch = [sys.executable, "-m", "hccl_tools", "launch", "--rank-table", "table.json", "--product", "a2"]
    start = () if "--start" in options else ("--start", "torch")
    return [*launch, "--ignore", IGNORED, "--cpu", "--python", sys.executable, *start, *options]


def seats_as_seen(logs: dict[int, Path]) -> dict[int, tuple[str, int]]:
    """Return host and device of each rank as told in the first line of its log: ``on HOST DEVICE_ID``."""
    found = {}
    for rank, log in logs.items():
        _, host, device = log.read_text().splitlines()[0].split()
        found[rank] = (host, int(device))
    return found


def environ(two_hosts: TwoHosts, timing: str = SHORT_END) -> dict[str, str]:
    """Return an environment in which every mpirun reaches the other host by the bed's ssh."""
    agent = {
        f"{prefix}_MCA_plm_{name}_agent": str(two_hosts.ssh)
        for prefix in ("OMPI", "PRTE")
        for name in ("rsh", "ssh")
    }
    agent["HYDRA_LAUNCHER_EXEC"] = str(two_hosts.ssh)
    return {**os.environ, **agent, "HCCL_TOOLS_TIMING": timing}
