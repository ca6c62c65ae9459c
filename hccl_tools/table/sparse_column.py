"""Columns of keys that few devices have.

If every device has a different key, a table has as many columns as devices, and full columns would need
memory for the square of that number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class SparseColumn(Sequence[Any]):
    """A column of a key that few devices have, with the interface of a list.

    Attributes:
        values: The values by row; all other values are ``None``.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self.values: dict[int, Any] = {}

    def __len__(self) -> int:
        """Return the number of devices."""
        return self._length

    def __getitem__(self, row: Any) -> Any:
        """Return the value of a row, or the values of a slice."""
        if isinstance(row, slice):
            return [self.values.get(one) for one in range(*row.indices(self._length))]
        return self.values.get(range(self._length)[row])

    def __iter__(self) -> Iterator[Any]:
        """Yield the values of all rows."""
        return map(self.values.get, range(self._length))

    def __eq__(self, other: object) -> bool:
        """Whether another column has the same values."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list has none


def rows_with(column: Sequence[Any]) -> list[int]:
    """Return the rows with a value in a column, ascending."""
    if isinstance(column, SparseColumn):
        return sorted(column.values)
    return [row for row, value in enumerate(column) if value is not None]
