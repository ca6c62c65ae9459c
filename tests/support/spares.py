"""A small table, a program and faults for jobs whose hosts are lost, or sick, and replaced by spares."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tests.beds.network_host import Host

#: Those of HCCL: all of them must be taken for a fault.
HCCL_PORTS = range(60000, 60032)

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


def take_ports(host: Host, stack: ExitStack) -> None:
    """Let another program listen on HCCL's ports of a host until the stack is left."""
    code = (
        "import socket,signal\nheld=[]\n"
        f"for port in range({HCCL_PORTS.start},{HCCL_PORTS.stop}):\n"
        " one=socket.socket(); one.bind(('',port)); one.listen(); held.append(one)\n"
        "print('taken',flush=True); signal.pause()"
    )
    holder = host.start([sys.executable, "-c", code], stdout=-1)
    assert holder.stdout is not None
    stack.callback(holder.stdout.close)
    stack.callback(holder.wait)
    stack.callback(holder.kill)
    assert holder.stdout.readline() == "taken\n"


def fill_log_disk(host: Host, home: str, stack: ExitStack) -> None:
    """Mount a small disk where CANN writes its logs, on this host alone."""
    folder = f"{home}/ascend/log"
    mount = f"mkdir -p {folder} && mount -t tmpfs -o size=512k none {folder}"
    assert host.run(["sh", "-c", mount]).returncode == 0
    stack.callback(host.run, ["umount", folder])
