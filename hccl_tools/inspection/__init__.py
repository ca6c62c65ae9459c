"""Observe a host: its devices, tools, ports, limits, variables and mounts, without judging them."""
