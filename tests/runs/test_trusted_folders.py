"""How to trust a folder that other users can write to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.runs import parents

if TYPE_CHECKING:
    from collections.abc import Callable


def hint_on(folder: Path) -> str:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(LaunchError) as refused:
        parents.check(str(folder))
    return refused.value.hint or ""


@pytest.mark.parametrize("in_pod", [False, True])
def test_a_pod_has_no_shell_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_pod: bool
) -> None:
    monkeypatch.delenv(parents.TRUSTED_VARIABLE, raising=False)
    if in_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")

    hint = hint_on(tmp_path / "logs")

    setting = f"{parents.TRUSTED_VARIABLE}={tmp_path / 'logs'}"
    wanted = f": set {setting} in env of the container" if in_pod else f": export {setting}"
    assert hint.endswith(wanted)


def test_a_folder_that_is_trusted_already_stays_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(parents.TRUSTED_VARIABLE, "/srv/a b")
    assert hint_on(tmp_path / "logs").endswith(
        f": export {parents.TRUSTED_VARIABLE}='/srv/a b:{tmp_path}/logs'"
    )


def test_a_path_that_the_variable_would_take_for_two_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(parents.TRUSTED_VARIABLE, raising=False)
    assert parents.TRUSTED_VARIABLE not in hint_on(tmp_path / "logs:")


@pytest.mark.skipif(os.geteuid() != 0, reason="root gives a file to another user")
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).touch()])
def test_a_file_of_another_user_in_place_of_a_folder_is_refused(
    tmp_path: Path, make: Callable[[str], object]
) -> None:
    path = str(tmp_path / "scaling")
    make(path)
    os.chown(path, 65534, -1)

    with pytest.raises(LaunchError, match="belongs to nobody"):
        parents.make(f"{path}/devices-1")
