"""The version of this package, and the folder from which it is imported."""

from __future__ import annotations

import os

__version__ = "0.1.0"

#: The folder of the package. With it on ``sys.path``, another interpreter imports the same hccl-tools.
IMPORT_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
