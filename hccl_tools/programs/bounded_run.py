"""Run a program that may print without end, such as ssh to a host that is not trusted."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from hccl_tools.programs.environment import without_key
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The bytes of each stream that are kept, and that are read at a time.
_MOST_KEPT = 1 << 16


class TooMuchOutputError(Exception):
    """A program was killed, because it printed more than its caller expects at most."""


class Ended(NamedTuple):
    """The exit code of a program, and the end of what it has printed."""

    code: int
    output: str
    errors: str


def run(
    argv: Sequence[str],
    seconds: float,
    environ: Mapping[str, str],
    *,
    data: bytes = b"",
    most: float = float("inf"),
) -> Ended:
    """Run a program and return its end; ``data`` is its standard input, and must fit into a pipe.

    The program does not get the job key.

    Raises:
        TooMuchOutputError: It was killed, because it printed more than ``most`` bytes.
        subprocess.TimeoutExpired: It was killed, because it did not end in time.
    """
    until = time.monotonic() + seconds
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, env=without_key(environ), bufsize=0
    ) as child:
        try:
            with suppress(BrokenPipeError):
                _opened(child.stdin).write(data)
            _opened(child.stdin).close()
            output, errors = _read([_opened(child.stdout), _opened(child.stderr)], until, most)
            code = child.wait(max(0.0, until - time.monotonic()))
        except BaseException:  # also Ctrl-C: nothing waits for a child that does not end
            child.kill()
            raise
    return Ended(code, output, errors)


def answer(argv: Sequence[str], seconds: float, environ: Mapping[str, str]) -> Ended | None:
    """Run a program for its answer; ``None`` if it was killed, because it did not end in time."""
    try:
        return run(argv, seconds, environ)
    except subprocess.TimeoutExpired:
        return None


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101  (for mypy)
    return pipe


def _read(pipes: Sequence[IO[bytes]], until: float, most: float) -> list[str]:
    """Read pipes to their ends, and return the end of what each had."""
    kept = [b""] * len(pipes)
    with selectors.DefaultSelector() as selector:
        for number, pipe in enumerate(pipes):
            selector.register(pipe, selectors.EVENT_READ, number)
        while selector.get_map():
            if (left := until - time.monotonic()) <= 0:
                raise subprocess.TimeoutExpired("", 0)
            for key, _ in selector.select(left):
                data = os.read(key.fd, _MOST_KEPT)
                most -= len(data)
                if most < 0:
                    raise TooMuchOutputError
                kept[key.data] = (kept[key.data] + data)[-_MOST_KEPT:]
                if not data:
                    selector.unregister(key.fileobj)
    return [text.decode(errors="replace") for text in kept]
