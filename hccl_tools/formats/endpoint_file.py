"""Read endpoint files: the endpoints of one Ascend 950 device, and the files beside them."""

from __future__ import annotations

import os
from typing import Any

from hccl_tools.document.document import Document
from hccl_tools.document.reading import read_file
from hccl_tools.errors import InputError
from hccl_tools.formats.file_kinds import ENDPOINT_NAME
from hccl_tools.records import NamedTuple

VERSION = "1.3"
#: The protocols that use an EID as comm_id, and those that use an IP address.
EID_PROTOCOLS = frozenset({"ub_ctp", "ub_tp", "ub_rtp", "ubg"})
IP_PROTOCOLS = frozenset({"roce", "uboe"})
#: The limits on the files beside a file: a host has at most 64 devices, and a file of one device is small.
_MOST_FILES, _LARGEST_FILE = 256, 1 << 20


class Endpoint(NamedTuple):
    """One entry of ``endpoint_list``; ``place`` is its index, and an absent key is ""."""

    place: int
    protocol: str
    comm_id: str
    placement: str
    plane: str = ""
    dst_eid: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether the entry is one end of a direct link between two devices."""
        return self.placement == "device" and self.protocol in EID_PROTOCOLS and bool(self.dst_eid)


def endpoints(value: Any) -> list[Endpoint]:
    """Return the entries of a document whose required keys are strings; other entries are left out."""
    entries = value.get("endpoint_list") if isinstance(value, dict) else None
    found = []
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, dict):
            continue
        values: list[Any] = [entry.get(key) for key in ("protocol", "comm_id", "placement")]
        values += [entry.get(key, "") for key in ("plane", "dst_eid")]
        if all(isinstance(text, str) for text in values):
            found.append(Endpoint(place, *values))
    return found


def device_of(file: str) -> int | None:
    """Return the number in the name of an endpoint file."""
    name = ENDPOINT_NAME.fullmatch(os.path.basename(file))  # noqa: PTH119  (as the other names)
    return int(name[1]) if name else None


def files_in(folder: str) -> list[str]:
    """Return the paths of the endpoint files in a folder, by number; [] if the folder cannot be read."""
    try:
        names = os.listdir(folder or os.curdir)  # noqa: PTH208
    except OSError:
        return []
    numbered = [(int(name[1]), name[0]) for name in map(ENDPOINT_NAME.fullmatch, names) if name]
    return [os.path.join(folder, name) for _, name in sorted(numbered)[:_MOST_FILES]]  # noqa: PTH118


def files_beside(path: str) -> dict[str, list[Endpoint]]:
    """Return the endpoints of the other endpoint files in the folder of a file, by name.

    Files that cannot be read are left out: each is reported when it is checked itself.
    """
    found = {}
    for other in files_in(os.path.dirname(path)):  # noqa: PTH120
        name = os.path.basename(other)  # noqa: PTH119
        if name == os.path.basename(path):  # noqa: PTH119
            continue
        try:
            if os.path.getsize(other) > _LARGEST_FILE:  # noqa: PTH202
                continue
            found[name] = endpoints(Document.parse(read_file(other), other).value)
        except (InputError, OSError):
            continue
    return found
