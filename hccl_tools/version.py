"""What this package is: its version, and the folder from which it is imported."""

from __future__ import annotations

import os

__version__ = "0.1.0"

#: The folder that holds the package. Another interpreter imports the same hccl-tools with it on ``sys.path``.
IMPORT_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
