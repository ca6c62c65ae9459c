"""``hccl-tools`` and ``python -m hccl_tools``: the command line, and the original script's own command line.

``python -m hccl_tools --device_num "[0,8)"`` is what users of ``hccl_tools.py`` type; options without a
command mean ``gen``.
"""

from __future__ import annotations

import gc
import sys

_GROUP_OPTIONS = {"-h", "--help", "--version"}
#: Objects until Python looks for cycles among them. Its own 700 make it look sixty times while a command is
#: loaded, a twentieth of the time until a job's ranks start.
_COLLECT_AFTER = 50_000
#: Exit code of a process that Ctrl-C ended.
_INTERRUPTED = 130


def prepare() -> None:
    """Do what must be done before the command line is loaded."""
    gc.set_threshold(_COLLECT_AFTER)


def main() -> None:
    """Entry point of ``hccl-tools``."""
    prepare()
    try:
        from hccl_tools.cli import main as command_line  # noqa: PLC0415  (see prepare)

        command_line()
    except KeyboardInterrupt:  # While the command line was being loaded; later it is told there.
        sys.exit(_INTERRUPTED)


def _original_words(args: list[str]) -> list[str]:
    if args and args[0].startswith("-") and args[0] not in _GROUP_OPTIONS:
        return ["gen", *args]
    return args


if __name__ == "__main__":
    sys.argv[1:] = _original_words(sys.argv[1:])
    main()
