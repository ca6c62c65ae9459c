"""How to trust a folder: a pod has no shell of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.runs import parents

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("in_pod", [False, True])
def test_the_hint_is_for_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_pod: bool) -> None:
    monkeypatch.delenv(parents.TRUSTED_VARIABLE, raising=False)
    if in_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs").chmod(0o777)

    with pytest.raises(LaunchError) as refused:
        parents.check(str(tmp_path / "logs"))

    setting = f"{parents.TRUSTED_VARIABLE}={tmp_path / 'logs'}"
    wanted = f": set {setting} in env of the container" if in_pod else f": export {setting}"
    assert (refused.value.hint or "").endswith(wanted)
