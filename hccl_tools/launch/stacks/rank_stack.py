"""What one rank of a running job does: its state and its Python stack."""

from __future__ import annotations

from typing import Any

from hccl_tools.records import NamedTuple

_TEXTS = ("host", "doing", "source", "problem")
_NUMBERS = ("rank", "pid")


class RankStack(NamedTuple):
    """What one rank does.

    Attributes:
        pid: Its process id on its host, 0 if it has no process there.
        doing: Its state: ``sleeping in recvfrom() on a socket``, ``stopped``; "" without a process.
        stack: The lines of its Python stack, the innermost frame first.
        source: Where the stack comes from: ``faulthandler``, ``py-spy``, or "" without a stack.
        problem: Why there is no stack, "" with one.
    """

    rank: int
    host: str
    pid: int = 0
    doing: str = ""
    stack: tuple[str, ...] = ()
    source: str = ""
    problem: str = ""

    @classmethod
    def parse(cls, value: Any) -> RankStack:
        """Return the record of a JSON object.

        Raises:
            TypeError: A value is missing, unknown or of another type.
        """
        record = cls(**value)
        texts = [*(getattr(record, name) for name in _TEXTS), *record.stack]
        numbers = [getattr(record, name) for name in _NUMBERS]
        if not all(type(text) is str for text in texts) or not all(type(one) is int for one in numbers):
            raise TypeError(value)
        return record._replace(stack=tuple(record.stack))
