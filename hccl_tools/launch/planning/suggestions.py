"""What a refusal of a launch suggests: the file, or the table, that the user may mean."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.files.inputs import Inputs
from hccl_tools.transform.subsetting import subset
from hccl_tools.validation import loading
from hccl_tools.validation.checker import check_table

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable


class Suggestions:
    """The functions of other rooms that find it; ``program_check.suggestions`` loads them."""

    check_table = staticmethod(check_table)
    get_close_matches = staticmethod(get_close_matches)
    subset = staticmethod(subset)

    @staticmethod
    def sound_table(file: str) -> RankTable | None:
        """Return the table of a file as a job reads it; ``None`` if it has errors."""
        try:
            return loading.load(file).table
        except HcclToolsError:
            return None

    @staticmethod
    def is_sound(file: str) -> bool:
        """Return whether a command can read the table of a file."""
        try:
            Inputs().table(file)
        except HcclToolsError:
            return False
        return True
