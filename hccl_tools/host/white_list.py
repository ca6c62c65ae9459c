"""Read the white list of HCCL: the hosts from which HCCL accepts connections."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from hccl_tools.host.machine import state
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The variable with the path, and the one that turns the list on with 0.
FILE_VARIABLE, SWITCH_VARIABLE = "HCCL_WHITELIST_FILE", "HCCL_WHITELIST_DISABLE"
_LARGEST = 1 << 24


class WhiteList(NamedTuple):
    """The state of the file, as ``Observation.white_list`` has it, and the addresses of hosts in it."""

    state: str = ""
    hosts: tuple[str, ...] = ()


def read(environ: Mapping[str, str]) -> WhiteList:
    """Return the white list that HCCL would read. A relative path depends on the folder of the job."""
    path = environ.get(FILE_VARIABLE, "")
    if environ.get(SWITCH_VARIABLE) != "0" or not os.path.isabs(path) or "\0" in path:
        return WhiteList()
    if not os.path.isfile(path):
        return WhiteList(state(path))
    try:
        with open(path, "rb") as file:
            hosts = json.loads(file.read(_LARGEST))["host_ip"]
    except OSError:
        return WhiteList("unreadable")
    except (ValueError, KeyError, TypeError, RecursionError):
        return WhiteList("invalid")
    if not isinstance(hosts, list) or not all(isinstance(one, str) for one in hosts):
        return WhiteList("invalid")
    return WhiteList("file", tuple(hosts))
