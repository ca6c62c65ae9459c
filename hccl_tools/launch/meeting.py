"""Hosts on which the same command was typed compare what they have, before the first rank starts.

The host of rank 0 listens where the ranks will meet later; the others tell it what they have, and all get its
verdict. A table, script or setting that is not the same everywhere would otherwise show as a time-out of
HCCL, or not at all.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Seconds for all hosts to come: somebody types the command on one after the other.
WAIT = 600.0
#: Seconds between two tries, of one answer, and until it is said who is waited for.
_PAUSE, _ANSWER, _PATIENCE = 0.2, 10.0, 3.0
_LARGEST = 1 << 16
_KIND = "hccl-tools launch"
_HINT = "the same files and options belong on every host; --no-preflight starts all the same"


class Attendance(NamedTuple):
    """One host at the meeting: its server (index in the table), its name, and what it has by subject."""

    server: int
    host: str
    has: dict[str, str]


def meet(
    own: Attendance,
    hosts: Sequence[str],
    *,
    master: int,
    address: tuple[str, int],
    tell: Callable[[str], None],
    wait: float = WAIT,
) -> None:
    """Return once every host has said that it has the same.

    Args:
        own: This host.
        hosts: How the servers are called, by index.
        master: The server of rank 0, whose host listens.
        address: Its address, and the port.
        tell: Called with a line when there is somebody to wait for.
        wait: Seconds that all hosts may take to come.

    Raises:
        LaunchError: Something differs (the message names both hosts), or a host has not come in time.
    """
    deadline = time.monotonic() + wait
    if own.server == master:
        _listen(own, hosts, address, deadline=deadline, tell=tell, wait=wait)
    else:
        _attend(own, hosts[master], address, deadline=deadline, tell=tell, wait=wait)


def difference(one: Attendance, other: Attendance) -> str:
    """Return in a sentence what two hosts have differently, "" for nothing."""
    if one.server == other.server:
        return f"two hosts take themselves for server {one.host} of the job: tell them apart by --server"
    for subject in sorted({*one.has, *other.has}):
        here, there = (each.has.get(subject, "none") for each in (one, other))
        if here != there:
            return f"{subject}: {one.host} has {here}, {other.host} has {there}"
    return ""


def _listen(
    own: Attendance,
    hosts: Sequence[str],
    address: tuple[str, int],
    *,
    deadline: float,
    tell: Callable[[str], None],
    wait: float,
) -> None:
    """Hear all the others, then let all go; at the first difference refuse."""
    missing = set(range(len(hosts))) - {own.server}
    say_at = time.monotonic() + _PATIENCE
    with ExitStack() as open_ones:
        door = open_ones.enter_context(_door(address))
        guests: list[socket.socket] = []
        while missing:
            if time.monotonic() > deadline:
                raise _absent([hosts[server] for server in sorted(missing)], wait)
            if time.monotonic() > say_at:
                tell(f"waiting for {_some([hosts[server] for server in sorted(missing)])} to start its part")
                say_at = float("inf")
            guest = _next(door)
            if guest is None:
                continue
            open_ones.enter_context(guest)
            other = _heard(guest)
            if other is None:
                continue
            guests.append(guest)
            if why := difference(own, other):
                _let_go(guests, why)
                raise LaunchError(why, hint=_HINT)
            missing.discard(other.server)
        _let_go(guests, "")


def _door(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    door = socket.socket(family, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("", address[1]))
        door.listen(128)
    except OSError as error:
        door.close()
        raise LaunchError(
            f"port {address[1]}, where the hosts meet, cannot be had: {error.strerror}",
            hint="say another with --start-port, the same on all hosts",
        ) from error
    door.settimeout(_PAUSE)
    return door


def _next(door: socket.socket) -> socket.socket | None:
    try:
        guest, _address = door.accept()
    except TimeoutError:
        return None
    guest.settimeout(_ANSWER)
    return guest


def _heard(guest: socket.socket) -> Attendance | None:
    """Return what a host says; ``None`` for what is none of ours, or has gone."""
    said = _receive(guest)
    if not isinstance(said, dict) or said.get("kind") != _KIND:
        return None
    try:
        return Attendance(int(said["server"]), str(said["host"]), dict(said["has"]))
    except (KeyError, TypeError, ValueError):
        return None


def _let_go(guests: Sequence[socket.socket], refused: str) -> None:
    """Give all the verdict, and let them hang up first: the port is then free for the ranks at once."""
    for guest in guests:
        with suppress(OSError):
            _send(guest, {"kind": _KIND, "refused": refused})
    for guest in guests:
        with suppress(OSError):
            guest.recv(1)


def _attend(
    own: Attendance,
    master: str,
    address: tuple[str, int],
    *,
    deadline: float,
    tell: Callable[[str], None],
    wait: float,
) -> None:
    """Tell the master's host what this one has, and wait for its verdict."""
    say_at = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        verdict = _asked(own, address, deadline)
        if verdict is not None:
            if verdict.get("refused"):
                raise LaunchError(str(verdict["refused"]), hint=_HINT)
            return
        if time.monotonic() > say_at:
            tell(f"waiting for {master} to start its part (port {address[1]})")
            say_at = float("inf")
        time.sleep(_PAUSE)
    raise _absent([f"{master} (port {address[1]})"], wait)


def _asked(own: Attendance, address: tuple[str, int], deadline: float) -> dict[str, Any] | None:
    try:
        with socket.create_connection(address, timeout=_ANSWER) as line:
            _send(line, {"kind": _KIND, **own._asdict()})
            line.settimeout(max(0.1, deadline - time.monotonic()))
            verdict = _receive(line)
    except OSError:
        return None
    ours = isinstance(verdict, dict) and verdict.get("kind") == _KIND
    return verdict if ours else None


def _send(line: socket.socket, value: dict[str, Any]) -> None:
    line.sendall(json.dumps(value).encode() + b"\n")


def _receive(line: socket.socket) -> Any:
    """Return one line of JSON; ``None`` if none comes."""
    data = b""
    try:
        while not data.endswith(b"\n") and len(data) < _LARGEST:
            part = line.recv(_LARGEST)
            if not part:
                return None
            data += part
        return json.loads(data)
    except (OSError, ValueError):
        return None


def _absent(hosts: Sequence[str], wait: float) -> LaunchError:
    return LaunchError(
        f"{_some(hosts)} has not come to the meeting of the job's hosts within {wait:g} s",
        hint="type the same command, with the same --start-port, on every host; look for a refusal or a "
        "firewall there; --no-preflight goes without",
    )


def _some(hosts: Sequence[str]) -> str:
    return ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")
