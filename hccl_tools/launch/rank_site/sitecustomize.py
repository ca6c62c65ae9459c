"""Register SIGUSR2 for dumps of the Python stacks in a rank: ``launch --faulthandler``.

``launch`` puts this folder at the front of the ranks' PYTHONPATH; Python imports ``sitecustomize`` at its
start. The rank's Python may be 3.7 and may not have hccl-tools. Another ``sitecustomize`` runs as well.
"""

import faulthandler
import os
import signal
import sys


def _run_other_sitecustomize() -> None:
    """Import the module of this name that would have been found without this folder."""
    own = sys.modules.pop(__name__)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    try:
        __import__(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


def _begin_recorder() -> None:
    """Write the dumps of torch's flight recorder on another signal; without it, the rank runs as well."""
    try:
        import hccl_tools_recorder  # type: ignore[import-not-found]  # noqa: PLC0415  (beside this module)

        hccl_tools_recorder.begin(int(os.environ["HCCL_TOOLS_RECORDER"]))
    except Exception as error:  # noqa: BLE001
        sys.stderr.write(f"hccl-tools: no flight recorder: {error}\n")


if __name__ == "sitecustomize":  # Not if it is imported as a module of hccl-tools.
    # At its exit Python restores what was there before: a late signal must not kill a rank that ends.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    if os.environ.get("HCCL_TOOLS_RECORDER"):
        _begin_recorder()
    _run_other_sitecustomize()
