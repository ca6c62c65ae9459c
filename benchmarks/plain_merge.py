"""Merge tables as one does without a tool: ``python benchmarks/plain_merge.py PATTERN TARGET``."""

import json
import sys
from glob import glob

merged = None
servers = []
for name in sorted(glob(sys.argv[1])):  # noqa: PTH207
    with open(name) as file:  # noqa: PTH123
        table = json.load(file)
    merged = merged or table
    servers += table["server_list"]
devices = [device for server in servers for device in server["device"]]
for rank, device in enumerate(devices):
    device["rank_id"] = str(rank)
with open(sys.argv[2], "w") as file:  # noqa: PTH123
    json.dump({**(merged or {}), "server_count": str(len(servers)), "server_list": servers}, file, indent=4)
