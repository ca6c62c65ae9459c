"""What a supervisor needs only after the start of the ranks; ``supervisor`` loads it by one import."""

from __future__ import annotations

from hccl_tools.launch.supervise.evidence import Evidence
from hccl_tools.launch.supervise.hangs import HangWatch


class AfterStart:
    """The watch for hangs, and the evidence that is taken at the end."""

    Evidence = Evidence
    HangWatch = HangWatch
