"""A host of a bed whose supervisor waits until a test lets it go on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.beds.network_host import Host

#: A start file of Python: a supervisor says that it has begun, and goes on once it may.
_WAITS = """\
import os, sys, time
here = os.path.dirname(__file__)
if "hccl_tools.launch" in sys.orig_argv:
    begun, go = (os.path.join(here, name) for name in ("begun", "go"))
    open(begun, "w").close()
    while os.path.exists(begun) and not os.path.exists(go):
        time.sleep(0.02)
"""


class LateHost:
    """The host whose supervisor waits before it does anything."""

    def __init__(self, host: Host, folder: Path | None = None) -> None:
        """``folder`` is on the PYTHONPATH of its supervisor, by default of those that ssh starts."""
        self.host, self._folder = host, folder or host.folder / "python"
        self._folder.mkdir(exist_ok=True)
        (self._folder / "sitecustomize.py").write_text(_WAITS)

    def has_begun(self) -> bool:
        """Whether its supervisor is there before long."""
        return eventually((self._folder / "begun").exists)

    def goes_on(self) -> None:
        """Let the supervisor go on."""
        (self._folder / "go").touch()

    def restore(self) -> None:
        """Make the host what it was; a supervisor that still waits goes on."""
        for name in ("sitecustomize.py", "begun", "go"):
            (self._folder / name).unlink(missing_ok=True)


@contextmanager
def held_back(host: Host, folder: Path | None = None) -> Iterator[LateHost]:
    """Have the host's supervisors wait, until the context is left."""
    late = LateHost(host, folder)
    try:
        yield late
    finally:
        late.restore()
