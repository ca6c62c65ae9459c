"""Declare, load and select what finds faults: the rules on files and the checks of hosts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import did_you_mean
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_T = TypeVar("_T")


class Registry(Generic[_T]):
    """What the modules of a package declare when they are imported.

    Attributes:
        declared: All of it by id, in the order of the declarations.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._names: dict[str, str] = {}
        self.declared: dict[str, _T] = {}

    def declare(self, own_id: str, name: str, declared: _T) -> None:
        """Add something under an id, which is never used again.

        Raises:
            ValueError: The id is used.
        """
        if own_id in self._names:
            raise ValueError(f"{own_id} is both {self._names[own_id]} and {name}")
        self._names[own_id] = name
        self.declared[own_id] = declared

    def load(self, modules: Iterable[str]) -> None:
        """Import modules of the package."""
        for module in modules:
            import_module(f"{self._package}.{module}")

    def of(self, modules: Iterable[str]) -> dict[str, _T]:
        """Import modules of the package, and return all that has been declared, in the order of the ids."""
        self.load(modules)
        return dict(sorted(self.declared.items()))


class Selection(NamedTuple):
    """The ids, prefixes (``HCC2``) and names of ``--select`` and ``--ignore``."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def keeps(self, own_id: str, name: str) -> bool:
        """Return whether the findings of a rule or check are reported."""
        wanted = not self.select or any(_fits(own_id, name, one) for one in self.select)
        return wanted and not self.ignores(own_id, name)

    def ignores(self, own_id: str, name: str) -> bool:
        """Return whether ``--ignore`` leaves the findings of a rule or check out."""
        return any(_fits(own_id, name, one) for one in self.ignore)

    def require_known(self, known: Iterable[tuple[str, str]], noun: str, where: str) -> None:
        """Check that each of the ids, prefixes and names fits one of the ids and names that are known.

        Args:
            noun: What they select.
            where: The sentence that says which command lists all.

        Raises:
            UsageError: One fits none.
        """
        pairs = list(known)
        for selector in (*self.select, *self.ignore):
            if not any(_fits(own_id, name, selector) for own_id, name in pairs):
                similar = did_you_mean(selector, (text for pair in pairs for text in pair))
                raise UsageError(f'no {noun} matches "{selector}"', hint=f"{similar} {where}".lstrip())


def _fits(own_id: str, name: str, selector: str) -> bool:
    return name == selector or own_id.startswith(selector.upper())
