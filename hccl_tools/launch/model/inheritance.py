"""Compose the environment of one process: inherited variables, the job's variables, and its own."""

from __future__ import annotations

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping


class Inheritance(NamedTuple):
    """Which variables a process does not inherit: names, prefixes of names, and exceptions to these."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()

    def removes(self, name: str) -> bool:
        """Return whether a process does not inherit the variable."""
        if name in self.names:
            return True
        return name.startswith(self.prefixes) and not name.startswith(self.exceptions)


def composed(
    environ: Mapping[str, str], inheritance: Inheritance, common: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of one process."""
    inherited = {name: value for name, value in environ.items() if not inheritance.removes(name)}
    return {**inherited, **common, **own}
