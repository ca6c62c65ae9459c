"""A file system (FUSE) that does not answer, served by the user who runs this program.

In a mount namespace of its own it is mounted below an overlay, of which a descriptor is kept. The arguments
are what else is done, the device of FUSE, and a folder of the user; or ``answer``, and a descriptor of FUSE.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
_BIND, _SLAVE, _SHARED = 1 << 12, 1 << 19, 1 << 20
_NODEV_NOSUID = 6
_INIT, _LOOKUP, _FORGET, _GETATTR, _OPEN, _STATFS, _OPENDIR = 26, 1, 2, 3, 14, 17, 27
_FORGET_MANY, _NO_SUCH_CALL = 42, 38


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount a file system.

    Raises:
        OSError: It cannot be mounted.
    """
    texts = [one.encode() if one is not None else None for one in (source, target, kind)]
    if LIBC.mount(*texts, flags, options.encode() if options else None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


class Server:
    """Serves a folder with one file, until ``is_silent``."""

    def __init__(self, descriptor: int, *, is_silent: bool = False) -> None:
        self._descriptor, self.is_silent = descriptor, is_silent

    def serve(self) -> None:
        """Answer until the file system is gone."""
        while True:
            try:
                data = os.read(self._descriptor, 1 << 20)
            except OSError:
                return
            _length, call, unique, node = struct.unpack("<IIQQ", data[:24])
            if (self.is_silent and call in {_LOOKUP, _GETATTR}) or call in {_FORGET, _FORGET_MANY}:
                continue
            answer = self._answer(call, node)
            error = 0 if answer is not None else -_NO_SUCH_CALL
            answer = answer or b""
            os.write(self._descriptor, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)

    def _answer(self, call: int, node: int) -> bytes | None:
        if call == _INIT:
            return struct.pack("<IIIIHHII", 7, 31, 65536, 0, 12, 9, 65536, 1) + bytes(36)
        if call == _LOOKUP:
            return struct.pack("<QQQQII", 2, 1, 0, 0, 0, 0) + _attributes(2)
        if call == _GETATTR:
            return struct.pack("<QII", 0, 0, 0) + _attributes(node)
        if call in {_OPEN, _OPENDIR}:
            return struct.pack("<QII", 1, 0, 0)
        if call == _STATFS:
            return struct.pack("<5Q4I24x", 100, 50, 50, 10, 10, 4096, 255, 4096, 0)
        return None


def _attributes(node: int) -> bytes:
    mode = 0o40755 if node == 1 else 0o100666
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0)


def _overlay(server: Server, fuse: int, folder: str) -> int:
    """Return a descriptor of ``davinci0`` in an overlay over the served file system."""
    for name in ("served", "low", "over", "own"):
        Path(folder, name).mkdir()
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
    mount("x", f"{folder}/served", "fuse", _NODEV_NOSUID, options)
    threading.Thread(target=server.serve, daemon=True).start()
    mount("overlay", f"{folder}/over", "overlay", 0, f"lowerdir={folder}/served:{folder}/low")
    mount("t", f"{folder}/own", "tmpfs", 0, "mode=755")
    held = os.open(f"{folder}/over/davinci0", os.O_RDONLY)
    os.close(
        os.dup(held)
    )  # The server answers with ENOSYS: the kernel tells it of no other close, so that this program can end.
    return held


def _forge(held: int, own: str) -> None:
    """Make a line of the list of mounts: after a carriage return, with the number of the overlay."""
    about = Path(f"/proc/self/fdinfo/{held}").read_text(encoding="ascii")
    number = next(line.split()[1] for line in about.split("\n") if line.startswith("mnt_id"))
    mount("none", own, None, _SHARED, None)
    Path(own, f"x\r{number}").mkdir()
    Path(own, "p").mkdir()
    mount(f"{own}/x\r{number}", f"{own}/p", None, _BIND, None)
    mount("none", f"{own}/p", None, _SLAVE, None)
    mount("none", f"{own}/p", None, _SHARED, None)


def _exchange(held: int, own: str) -> None:
    """Exchange descriptors between a file of the machine and the served one, without an end."""
    file = os.open(f"{own}/davinci0", os.O_RDWR | os.O_CREAT)
    kept = [os.dup(file) for _ in range(200)]
    while True:
        for one in kept:
            os.dup2(held, one)
        for one in kept:
            os.dup2(file, one)


def main(what: str, fuse: str, folder: str) -> None:
    """Serve, and say so; end with standard input."""
    if what == "answer":
        server = Server(int(fuse), is_silent=True)
        print("up", flush=True)
        server.serve()
        return
    descriptor = os.open(fuse, os.O_RDWR)
    server = Server(descriptor)
    held = _overlay(server, descriptor, folder)
    if what == "forge":
        _forge(held, f"{folder}/own")
    server.is_silent = True
    print("up", flush=True)
    if what == "exchange":
        threading.Thread(target=_exchange, args=(held, f"{folder}/own"), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
