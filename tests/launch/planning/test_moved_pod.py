"""A pod that was moved waits until the table lists it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hccl_tools.launch.cluster import consistency, job_hosts, table_watch
from hccl_tools.launch.model.request import TableChoice
from hccl_tools.launch.planning import moved_pod
from hccl_tools.launch.planning.local_server import EarlierTableError, NotAMemberError, OtherDevicesError
from tests.support.tables import table


class Pod:
    """A pod that the table lists from a certain look on; each wait takes as long as it says."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        listed_at: int,
        *,
        error: type[EarlierTableError] = NotAMemberError,
    ) -> None:
        self.listed_at, self.now, self.waits = listed_at, 0.0, list[float | None]()
        self.error = error
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)
        monkeypatch.setattr("hccl_tools.launch.planning.moved_pod.time", clock)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def prepare(self, request: Any) -> Any:
        self.waits.append(request.table.wait)
        if len(self.waits) < self.listed_at:
            raise self.error("not yet", hint="wait")
        return "the plan"


class Request(SimpleNamespace):
    def _replace(self, **changed: Any) -> Request:
        return Request(**{**vars(self), **changed})


@pytest.mark.parametrize(
    ("error", "lacks"), [(NotAMemberError, "this host"), (OtherDevicesError, "the devices of this host")]
)
def test_the_time_is_for_the_table_and_for_this_host_in_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: type[EarlierTableError],
    lacks: str,
) -> None:
    pod = Pod(monkeypatch, listed_at=3, error=error)

    found = moved_pod.prepared(cast("Any", Request(table=TableChoice(wait=12.0))), 12.0, pod.prepare)

    assert found == cast("Any", "the plan")
    assert pod.waits == [12.0, 7.0, 2.0]
    assert capsys.readouterr().err.count(f"waiting for a table with {lacks}, at most 12 s") == 1


def test_the_error_is_that_of_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = Pod(monkeypatch, listed_at=99)

    with pytest.raises(NotAMemberError):
        moved_pod.prepared(cast("Any", Request(table=TableChoice(wait=12.0))), 12.0, pod.prepare)

    assert pod.now == pytest.approx(12.0)


@pytest.mark.slow
@pytest.mark.usefixtures("own_directory")
@pytest.mark.parametrize("in_pod", [True, False])
def test_a_late_table_starts_the_job_in_a_pod(monkeypatch: pytest.MonkeyPatch, in_pod: bool) -> None:
    if in_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    late = json.dumps(table("1.0", 1, 2))
    Path("table.json").write_text(late)
    options = ("--rank-table", "table.json", "--wait", "60", "--cpu", "--no-python", "true")
    with subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", "launch", *options], stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stderr is not None
        lines = list[str]()
        for line in job.stderr:  # In a pod until it waits, elsewhere until it ends.
            lines.append(line)
            if "waiting for a table with this host" in line:
                break
        Path("new.json").write_text(late.replace("10.0.0.1", "127.0.0.1"))
        Path("new.json").rename("table.json")
        _, rest = job.communicate(timeout=100)
        said = "".join(lines) + rest

    assert job.returncode == (0 if in_pod else 125), said
    assert ("waiting for a table with this host" in said) == in_pod


def changes(monkeypatch: pytest.MonkeyPatch, file: Path, data: bytes, *, written: bytes | None) -> bool:
    """Return whether a launch with ``data`` sees that its table has changed."""
    monkeypatch.setattr(table_watch, "POLL_SECONDS", 0.0)
    variables = SimpleNamespace(assigned={})
    request = Request(
        table=TableChoice(str(file), wait=60.0), start=SimpleNamespace(cpu=True), variables=variables
    )
    watch = table_watch.TableWatch(cast("Any", request), data, 7.0)
    watch.look()
    if written is not None:
        new = file.with_name("new.json")
        new.write_bytes(written)
        new.rename(file)
    try:
        watch.look()
    except moved_pod.TableChangedError as changed:
        return changed.until == 7.0
    return False


ONE, OTHER = (json.dumps(table("1.0", servers, 2)).encode() for servers in (1, 2))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, False),
        (ONE, False),
        (OTHER, True),
        (b'{"status": "initializing"}', True),
        (ONE[:40], True),
        (ONE.replace(b"10.0.0.1", b"10.0.0.1.1"), True),
    ],
)
def test_a_table_that_changes_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: bytes | None, expected: bool
) -> None:
    """An operator that writes the same again, as it does at each reconcile, has changed nothing."""
    file = tmp_path / "hccl.json"
    file.write_bytes(ONE)

    assert changes(monkeypatch, file, ONE, written=written) is expected


def test_a_new_attempt_has_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_pod, "time", SimpleNamespace(monotonic=lambda: 100.0))
    seen = list[tuple[float | None, float | None]]()

    def launch(request: Any, until: float | None) -> int:
        seen.append((request.table.wait, until))
        if len(seen) < 3:
            raise moved_pod.TableChangedError(140.0 if until is None else until)
        return 5

    assert moved_pod.with_its_table(cast("Any", Request(table=TableChoice(wait=600.0))), launch) == 5

    assert seen == [(600.0, None), (40.0, 140.0), (40.0, 140.0)]


@pytest.mark.parametrize(("typed", "expected"), [(None, 600.0), (60.0, 600.0), (3600.0, 3600.0)])
def test_pods_wait_for_each_other_as_long_as_for_the_table(
    monkeypatch: pytest.MonkeyPatch, typed: float | None, expected: float
) -> None:
    seen = list[float]()

    def join(*_: Any, wait: float, **_others: Any) -> Any:
        seen.append(wait)

    hosts = job_hosts.JobHosts(0, 0, ("10.0.0.1", "10.0.0.2"), ("10.0.0.1", 1), None)
    monkeypatch.setattr(job_hosts, "of_plan", lambda _: hosts)
    monkeypatch.setattr(consistency, "manifest", lambda *_: None)
    monkeypatch.setattr(consistency, "_credentials", lambda *_, **__: None)
    monkeypatch.setattr(consistency, "join", join)
    monkeypatch.setattr(consistency, "PeerLink", lambda *_: None)

    prepared = cast("Any", SimpleNamespace(plan=None))
    consistency.connect_peers(prepared, cast("Any", Request(table=TableChoice(wait=typed))))

    assert seen == [expected]
