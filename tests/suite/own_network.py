"""A network of its own for each process that runs tests, as far as this user may make one.

No port of a test then conflicts with another worker or with a program of this machine. The network has the
loopback interface and one card. Outgoing connections do not get the ports from 60000 on, which HCCL uses.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.beds.daemons import program

if TYPE_CHECKING:
    import pytest

_CLONE_NEWNET = 0x40000000
_CARD = (
    "link set lo up",
    "link add card type veth peer name far",
    "addr add 10.76.0.1/24 dev card",
    "link set card up",
    "link set far up",
)


def pytest_configure(config: pytest.Config) -> None:
    """Enter the network, unless this process only controls those that run the tests."""
    is_controller = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if os.geteuid() != 0 or is_controller:
        return
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
        return
    for command in _CARD:
        subprocess.run([program("ip"), *command.split()], check=True, capture_output=True)
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("32768 59999")
