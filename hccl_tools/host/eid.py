"""Encode and decode EIDs of Ascend 950: device, die, port and network layer.

From the right: 8 bits port number within the board, 4 bits board, 4 bits chassis, 16 bits that begin with
0xdf; 5 bits function at bit 69, 16 bits super pod at bit 76. A port number up to 180 is one of the 9 ports
on each of the 2 dies of the board's 8 NPUs, from 1; a higher number is one of 2 groups of ports on each die,
from 181.

Source: mind-cluster, mindcluster_tools (parse_eid.py, eid_generator.py, rootinfo.py); public 2.0 tables
have this layout.
"""

from __future__ import annotations

from hccl_tools.records import NamedTuple

_PORTS, _GROUPS, _DIES = 9, 2, 2
NPUS_PER_BOARD = 8
_FIRST_GROUP = 181
_MARK = 0xDF
#: Function -> network layer. The functions of UBG (3) and UBOE (8, 9) need more information than an EID has.
_LAYERS = {1: 0, 0: 1}


class Eid(NamedTuple):
    """A decoded EID.

    Attributes:
        text: 32 hex digits.
        layer: The network layer; None unless 0 or 1.
        local_id: The NPU within its chassis: 8 times the board plus the NPU on the board.
        port: The port on the die; None for a group of ports.
    """

    text: str
    layer: int | None
    local_id: int
    die: int
    port: int | None
    chassis: int
    super_pod: int


def read(text: str) -> Eid | None:
    """Decode an EID (32 hex digits); return None if it has another layout."""
    value = int(text, 16)
    number, board, chassis = value & 0xFF, value >> 8 & 0xF, value >> 12 & 0xF
    if value >> 24 & 0xFF != _MARK or number == 0:
        return None
    if number >= _FIRST_GROUP:
        place, port = divmod(number - _FIRST_GROUP, _GROUPS)[0], None
    else:
        place, port = divmod(number - 1, _PORTS)
    npu, die = divmod(place, _DIES)
    if npu >= NPUS_PER_BOARD:
        return None
    layer = _LAYERS.get(value >> 69 & 0x1F)
    return Eid(text, layer, NPUS_PER_BOARD * board + npu, die, port, chassis, value >> 76 & 0xFFFF)


def make(
    layer: int, local_id: int, die: int, port: int | None, *, chassis: int = 0, super_pod: int = 0
) -> str:
    """Return the EID of a port, or of the group of ports of a die and layer; the reverse of :func:`read`."""
    board, npu = divmod(local_id, NPUS_PER_BOARD)
    place = npu * _DIES + die
    number = place * _PORTS + port + 1 if port is not None else _FIRST_GROUP + place * _GROUPS + layer
    function = next(key for key, value in _LAYERS.items() if value == layer)
    right = _MARK << 24 | _MARK << 16 | chassis << 12 | board << 8 | number
    return f"{super_pod << 76 | function << 69 | 1 << 52 | right:032x}"
