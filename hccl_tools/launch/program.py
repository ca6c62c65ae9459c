"""Finding a program as a shell does."""

from __future__ import annotations

import os


def find_program(name: str, path: str) -> str:
    """Where a program is, as a shell finds it; "" if nowhere.

    A file that is there without permission to run it is returned when nothing better is: running it then
    says so (exit code 126).
    """
    if "/" in name:
        return name
    forbidden = ""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            forbidden = forbidden or candidate
    return forbidden
