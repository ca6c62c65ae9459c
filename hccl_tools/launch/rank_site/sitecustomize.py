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


if __name__ == "sitecustomize":  # Not if it is imported as a module of hccl-tools.
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    _run_other_sitecustomize()
