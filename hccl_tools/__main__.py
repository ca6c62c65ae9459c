"""``hccl-tools`` and ``python -m hccl_tools``: the command line, and the options of the original script.

Users of ``hccl_tools.py`` type ``python -m hccl_tools --device_num "[0,8)"``: options without a command mean
``gen``, unless only other commands have the first one.
"""

from __future__ import annotations

import atexit
import gc
import sys

from hccl_tools import imports

#: Objects between two runs of the garbage collector. With Python's 700 it runs sixty times while a command is
#: loaded, a twentieth of the time until the ranks of a job start.
_COLLECT_AFTER = 50_000
#: Exit code after Ctrl-C.
_INTERRUPTED = 130


def prepare() -> None:
    """Tune the garbage collector, lose no Ctrl-C, and load less, before the command line is loaded."""
    sys.unraisablehook = _report_unraisable
    gc.set_threshold(_COLLECT_AFTER)
    # Python collects garbage once more when it exits, which takes milliseconds and frees nothing of use.
    atexit.register(gc.freeze)
    imports.prepare()


def _report_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt this process again if Python has dropped Ctrl-C, as in a callback at the end of an import.

    Other exceptions are reported as usual.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    from hccl_tools import dropped_interrupt  # noqa: PLC0415  (0.7 ms; rare)

    dropped_interrupt.repeat_after(_report_unraisable.__code__)


def main(*, like_original: bool = False) -> None:
    """Run the command line of ``hccl-tools``, or with the options of the original script as well."""
    prepare()
    try:
        from hccl_tools.cli import main as command_line  # noqa: PLC0415  (after prepare)

        command_line(like_original=like_original)
    except KeyboardInterrupt:  # only during loading; later the command line handles it
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main(like_original=True)
