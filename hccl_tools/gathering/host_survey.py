"""Survey one host and return the answer; a host without hccl-tools gets this module in ``remote.archive``."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.gathering import stdout_framing
from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.gathering.table_copy import CopyRequest, handle
from hccl_tools.host.local_addresses import is_local
from hccl_tools.host.observation import ObservationRequest
from hccl_tools.host.observing import observe
from hccl_tools.host.site_defaults import Site
from hccl_tools.host.survey import survey
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.table.addresses import is_loopback

if TYPE_CHECKING:
    from types import FrameType

    from hccl_tools.host.facts import HostFacts
    from hccl_tools.host.survey import SurveyRequest


def main(host: str, text: str) -> int:
    """Run a task (JSON), write the answer to standard output and return the exit code."""
    task = SurveyTask.from_json(text)
    end_with_tools()
    stdout_framing.began(host)
    stdout_framing.emit(host, answer(host, task.place, task.request).to_json())
    return 0


def end_with_tools() -> None:
    """Exit on SIGTERM, which mpirun and srun send, so that a running Ascend tool is killed."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


def answer(host: str, place: int, request: SurveyRequest | ObservationRequest | CopyRequest) -> SurveyAnswer:
    """Survey or observe this host, or copy a table to it; return the result, or the reason for a failure."""
    try:
        if isinstance(request, CopyRequest):
            return SurveyAnswer(host, file=handle(request), machine=machine())
        if isinstance(request, ObservationRequest):
            return SurveyAnswer(host, seen=observe(request, Site()), machine=machine())
        if request.simulate is not None:
            return SurveyAnswer(host, survey(_numbered(request, place)))
        return SurveyAnswer(host, _surveyed(host, request), machine=machine())
    except HcclToolsError as error:
        return SurveyAnswer(host, message=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001  (an internal error on one host must name that host)
        return SurveyAnswer(host, message=f"{type(error).__name__}: {error}", hint="please report this")


def machine() -> str:
    """Return an id of this host: its boot id, network namespace, and name in Slurm."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        network = os.readlink("/proc/self/ns/net")  # noqa: PTH115  (Path.readlink needs Python 3.9)
    except OSError:
        boot, network = socket.gethostname(), ""
    return "/".join([boot, network, os.environ.get("SLURMD_NODENAME", "")])


def _surveyed(host: str, request: SurveyRequest) -> HostFacts:
    """Survey this host, with its address in the host list as server_id if it is local."""
    listed = _own_address_of(host)
    if request.server_ip is not None or listed is None:
        return survey(request)
    source = "from the list of hosts" if listed == host else f"the address of {host}"
    return survey(request._replace(server_ip=listed))._replace(server_id_source=source)


def _own_address_of(host: str) -> str | None:
    """Return the address of a name if it is local and others can reach it, else None."""
    try:
        found = socket.getaddrinfo(host, 0, socket.AF_INET, socket.SOCK_DGRAM) if host else []
    except (OSError, UnicodeError):
        return None
    for *_, place in found:
        address = str(place[0])
        if not is_loopback(address) and is_local(address):
            return address
    return None


def _numbered(request: SurveyRequest, place: int) -> SurveyRequest:
    """Return the request with a different simulated machine for each host: ``910a``, ``910a:2``, ..."""
    product, _, first = (request.simulate or "").partition(":")
    number = whole_number(first or "1")
    return request._replace(simulate=f"{product}:{(1 if number is None else number) + place}")
