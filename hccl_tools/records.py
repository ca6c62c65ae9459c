"""A ``NamedTuple`` that does not import ``typing``, for the shim that starts every MPI rank.

Importing ``typing`` takes 5 of the 25 ms that a shim may add to the start of its rank.
"""

from __future__ import annotations

from collections import namedtuple

__all__ = ["NamedTuple"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    #: Names of a class body that are not copied to the record.
    _OF_THE_BODY = {
        *("__annotations__", "__module__", "__qualname__"),
        *("__firstlineno__", "__static_attributes__"),
    }

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024
            for key in body.keys() - _OF_THE_BODY:
                setattr(made, key, body[key])
            return made

    class NamedTuple(metaclass=_Maker):
        """As ``typing.NamedTuple``."""
