"""A small table and program for jobs whose hosts are lost and replaced by spares."""

from __future__ import annotations

import json
from pathlib import Path

#: A rank that ends well after a restart, and stays before; it writes its host into its log.
ONCE_AGAIN = """echo "on $(hostname)"; echo $$ > "new_$RANK_ID"; mv "new_$RANK_ID" "up_$RANK_ID"
[ "$HCCL_TOOLS_RESTART" != 0 ] || exec sleep 6464"""
OPTIONS = ["--ignore", "HCC2,HCC4,HCC5,HCC6", "--grace", "1", "--host-timeout", "3"]
#: Shorter waits of the launcher for an engine that it has signalled.
TIMING = {"HCCL_TOOLS_TIMING": "engine.end=0.5"}


def write_table(*addresses: str) -> str:
    """Write the table of a job with a rank on each of these hosts; return its name."""
    servers = [
        {
            "server_id": address,
            "device": [{"device_id": "4", "device_ip": f"192.168.0.{rank}", "rank_id": str(rank)}],
            "host_nic_ip": "reserve",
        }
        for rank, address in enumerate(addresses)
    ]
    table = {"version": "1.0", "server_count": str(len(servers)), "server_list": servers}
    Path("table.json").write_text(json.dumps(table | {"status": "completed"}))
    return "table.json"
