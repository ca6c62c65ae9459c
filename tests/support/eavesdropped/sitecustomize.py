"""Imported at the start of a Python whose connections to one address an eavesdropper has bent to another.

TESTS_EAVESDROPPER has address, port and the other address. The program sees the address that it asked for.
"""

from __future__ import annotations

import os
import socket
from typing import Any

_ADDRESS, _PORT, _OTHER = os.environ["TESTS_EAVESDROPPER"].split(",")
_create_connection = socket.create_connection


class _Bent(socket.socket):
    def getpeername(self) -> Any:
        return _ADDRESS, int(_PORT)


def _bent(address: tuple[str, int], *args: Any, **options: Any) -> socket.socket:
    if address != (_ADDRESS, int(_PORT)):
        return _create_connection(address, *args, **options)
    made = _create_connection((_OTHER, address[1]), *args, **options)
    timeout = made.gettimeout()
    bent = _Bent(fileno=made.detach())
    bent.settimeout(timeout)
    return bent


socket.create_connection = _bent  # type: ignore[assignment]
