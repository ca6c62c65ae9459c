"""The first lines of the process on each host: they can say that hccl-tools itself is missing there."""

from __future__ import annotations

from hccl_tools.programs.install_hints import HCCL_TOOLS

#: A program for ``python -c PROGRAM HOST TASK``. It stands on its own, and its only line is in the form of
#: :mod:`hccl_tools.gathering.stdout_framing` and :class:`hccl_tools.gathering.messages.SurveyAnswer`.
_PROGRAM = """\
import os, sys
host = sys.argv[1] or os.environ.get("SLURMD_NODENAME", "?")
try:
    from hccl_tools.gathering.worker import main
except ImportError as error:
    import json
    try:
        import hccl_tools
        why = "its hccl-tools %s cannot take part (%s)" % (getattr(hccl_tools, "__version__", ""), error)
        hint = "install the same hccl-tools on all hosts"
    except ImportError:
        why = "hccl-tools is not installed there for %s" % sys.executable
        hint = HINT
    text = json.dumps({"form": 1, "host": host, "facts": None, "message": why, "hint": hint, "machine": ""})
    print("hccl-tools-gather", host, "1/1", text, flush=True)
    sys.exit(1)
sys.exit(main(host, sys.argv[2]))
"""
#: What to do where hccl-tools is missing.
HINT = f"install it there: {HCCL_TOOLS}"
PROGRAM = _PROGRAM.replace("HINT", repr(HINT))
