"""``hccl-tools`` and ``python -m hccl_tools``: the command line, and the options of the original script.

Users of ``hccl_tools.py`` type ``python -m hccl_tools --device_num "[0,8)"``: options without a command mean
``gen``, unless only other commands have the first one.
"""

from __future__ import annotations

import atexit
import gc
import sys

TYPE_CHECKING = False  # The shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from types import FrameType

_GROUP_OPTIONS = {"-h", "--help", "-V", "--version"}
#: Objects between two runs of the garbage collector. With Python's 700 it runs sixty times while a command is
#: loaded, a twentieth of the time until the ranks of a job start.
_COLLECT_AFTER = 50_000
#: Seconds after which a callback is over.
_AFTER_CALLBACK = 0.01
#: Exit code after Ctrl-C.
_INTERRUPTED = 130


def prepare() -> None:
    """Tune the garbage collector, and lose no Ctrl-C, before the command line is loaded."""
    sys.unraisablehook = _report_unraisable
    gc.set_threshold(_COLLECT_AFTER)
    # Python collects garbage once more when it exits, which takes milliseconds and frees nothing of use.
    atexit.register(gc.freeze)


def _report_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt this process again if Python has dropped Ctrl-C, as in a callback at the end of an import.

    Other exceptions are reported as usual.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    import threading  # noqa: PLC0415  (rare)

    # Within the callback, the interrupt would be dropped again.
    threading.Timer(_AFTER_CALLBACK, _interrupt).start()


def _interrupt() -> None:
    import os  # noqa: PLC0415
    import signal  # noqa: PLC0415
    import threading  # noqa: PLC0415
    import time  # noqa: PLC0415

    # Within the hook, too: on a busy machine the main thread may still be there.
    while _is_in_hook(sys._current_frames().get(threading.main_thread().ident or 0)):  # noqa: SLF001  (as faulthandler)
        time.sleep(_AFTER_CALLBACK)
    # The main thread may wait for blocked signals: the kernel must not deliver this one to this thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.kill(os.getpid(), signal.SIGINT)


def _is_in_hook(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is _report_unraisable.__code__:
            return True
        frame = frame.f_back
    return False


def main() -> None:
    """Run the command line of ``hccl-tools``."""
    prepare()
    try:
        from hccl_tools.cli import main as command_line  # noqa: PLC0415  (see prepare)

        command_line()
    except KeyboardInterrupt:  # only during loading; later the command line handles it
        sys.exit(_INTERRUPTED)


def _original_arguments(args: list[str]) -> list[str]:
    option = _plain_option(args[0]) if args else None
    if option is None or option in _GROUP_OPTIONS:
        return args
    from hccl_tools.cli import cli, usage  # noqa: PLC0415  (only for the original script's options)

    is_other = usage.is_of_another_command(cli, option.partition("=")[0], args)
    return args if is_other else ["gen", *args]


def _plain_option(argument: str) -> str | None:
    """Return an option, with hyphens for the dashes of word processors, which ``gen`` refuses; else None."""
    if argument[:1].isascii():
        return argument if argument.startswith("-") else None
    from hccl_tools.notation.look_alikes import mistyped_option  # noqa: PLC0415  (only for such an argument)

    mistyped = mistyped_option(argument)
    return None if mistyped is None else f"--{mistyped[1]}"


if __name__ == "__main__":
    sys.argv[1:] = _original_arguments(sys.argv[1:])
    main()
