"""What launchers without a job key say: ``hccl-tools key`` does not help in a pod."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import consistency
from hccl_tools.launch.cluster.job_hosts import JobHosts

if TYPE_CHECKING:
    from pathlib import Path

HERE = JobHosts(0, 0, ("10.0.0.1", "10.0.0.2"), ("10.0.0.1", 1), None)
OF_PODS = "mount a Secret with the key in all pods, and set HCCL_TOOLS_JOB_KEY_FILE in their env"


def request(*, require_key: bool) -> Any:
    return SimpleNamespace(
        start=SimpleNamespace(require_key=require_key), watch=SimpleNamespace(host_timeout=12.0)
    )


@pytest.mark.parametrize("in_pod", [False, True])
def test_the_advice_is_for_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_pod: bool) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if in_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    credentials = cast("Any", consistency)._credentials
    told = list[str]()

    credentials(HERE, request(require_key=False), notify=told.append)
    with pytest.raises(LaunchError) as refused:
        credentials(HERE, request(require_key=True))

    (line,) = told
    assert [OF_PODS in text for text in (line, refused.value.hint or "")] == [in_pod] * 2
    assert ["key copy HOSTS" in text for text in (line, refused.value.hint or "")] == [not in_pod] * 2
