"""Repeat a Ctrl-C that Python has dropped."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

#: Seconds after which a callback is over.
_AFTER_CALLBACK = 0.01


def repeat_after(hook: CodeType) -> None:
    """Interrupt this process again as soon as the main thread has left a hook for exceptions.

    Within the callback that raised the exception, the interrupt would be dropped again.
    """
    threading.Timer(_AFTER_CALLBACK, _interrupt, (hook,)).start()


def _interrupt(hook: CodeType) -> None:
    # Within the hook, too: on a busy machine the main thread may still be there.
    while _is_in(hook, sys._current_frames().get(threading.main_thread().ident or 0)):  # noqa: SLF001  (as faulthandler)
        time.sleep(_AFTER_CALLBACK)
    # The main thread may wait for blocked signals: the kernel must not deliver this one to this thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.kill(os.getpid(), signal.SIGINT)


def _is_in(hook: CodeType, frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is hook:
            return True
        frame = frame.f_back
    return False
