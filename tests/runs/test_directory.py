from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.host import host_ports
from hccl_tools.launch.planning import ports
from hccl_tools.processes import run_files
from hccl_tools.runs import directory, log_files, private_files, table_lock


def test_name_holds_time_and_ending() -> None:
    path = directory.path_for("log", {}, now=0.0, ending="a1b2")

    assert Path(path).parent == Path.cwd() / "log"
    assert Path(path).name[:8] in {"19691231", "19700101"}
    assert path.endswith("-a1b2")


def test_slurms_job_id() -> None:
    path = directory.path_for("log-%j", {"SLURM_JOB_ID": "12"}, ending="a1b2")

    assert "/log-12/" in path
    assert path.endswith("-a1b2-12")


def test_latest_points_to_the_last_run() -> None:
    for name in ("first", "second"):
        directory.create(str(Path.cwd() / "log" / name))
        os.close(directory.hold(str(Path.cwd() / "log" / name)))

    assert (Path("log") / "latest").readlink() == Path("second")


def test_latest_that_is_a_directory_is_left_alone() -> None:
    (Path("log") / "latest").mkdir(parents=True)

    directory.create(str(Path.cwd() / "log" / "run"))
    os.close(directory.hold(str(Path.cwd() / "log" / "run")))

    assert not (Path("log") / "latest").is_symlink()
    assert sorted(path.name for path in Path("log").iterdir()) == ["latest", "run"]


def test_place_where_nothing_can_be_made() -> None:
    Path("log").write_text("a file")

    with pytest.raises(LaunchError, match=r"cannot create the run directory .*: Not a directory"):
        directory.create(str(Path.cwd() / "log" / "run"))


def test_lock_names_its_holder(own_directory: Path) -> None:
    environ = {"TMPDIR": str(own_directory)}
    descriptor = table_lock.take(b"abc", "/the/first/run", environ)
    with pytest.raises(LaunchError, match=f"pid {os.getpid()}, /the/first/run"):
        table_lock.take(b"abc", "/the/second/run", environ)
    os.close(table_lock.take(b"other", "/another/run", environ))
    os.close(descriptor)

    os.close(table_lock.take(b"abc", "/the/second/run", environ))


def test_host_without_a_place_for_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_files, "_paths", lambda _environ: iter(["/nonexistent/hccl-tools-0"]))

    assert table_lock.take(b"abc", "/run", {}) == -1


def test_log_outside_is_emptied_and_linked(own_directory: Path) -> None:
    log = own_directory / "train.log"
    log.write_text("old")
    (own_directory / "run").mkdir()

    log_files.fresh_log(str(own_directory / "run"), str(log), 0)

    assert log.read_text() == ""
    assert (own_directory / "run" / "rank_0.log").readlink() == log


def test_log_outside_that_is_a_hard_link_is_not_emptied(own_directory: Path) -> None:
    victim, log = own_directory / "victim", own_directory / "workerlog.0"
    victim.write_text("precious")
    os.link(victim, log)

    with pytest.raises(LaunchError, match="it has a second name"):
        log_files.fresh_log(str(own_directory), str(log), 0)

    assert victim.read_text() == "precious"


def test_a_run_that_did_not_start_is_removed_through_no_link(own_directory: Path) -> None:
    run, precious = own_directory / "log" / "run", own_directory / "precious"
    precious.mkdir()
    (precious / "file").touch()
    directory.create(str(run))
    run_files.write(str(run), "plan.json", b"{}")
    run.rename(own_directory / "moved")
    run.symlink_to(precious)

    private_files.remove(str(run))

    assert (precious / "file").exists()
    assert list((own_directory / "moved").iterdir()) == []


def test_a_restart_takes_no_other_directory_of_the_user(own_directory: Path) -> None:
    """Its process is another one than that which has created the directory on this host."""
    run, other = own_directory / "log" / "20261121-101530-a1b2", own_directory / "other"
    directory.create(str(run), shared=True, again=True)  # A spare host has none yet.
    run_files.write(str(run), "given_table.json", b"{}")
    directory.create(str(run), shared=True, again=True)
    run_files.write(str(run), "plan.json", f'{{"run_dir": "{run}"}}'.encode())
    run_files.release(str(run))
    directory.create(str(run), shared=True, again=True)
    run_files.release(str(run))
    other.mkdir()
    (other / "plan.json").write_text('{"run_dir": "/log/20261121-101530-c3d4"}')
    run.rename(own_directory / "moved")
    other.rename(run)

    for plan in (True, False):
        if not plan:
            (run / "plan.json").rename(run / "notes.txt")
        with pytest.raises(LaunchError, match="another directory has taken the place of the run directory"):
            directory.create(str(run), shared=True, again=True)
    assert [path.name for path in run.iterdir()] == ["notes.txt"]


def test_free_port_is_free_and_in_range() -> None:
    port = ports.free_port()

    assert ports.FIRST <= port <= ports.LAST
    with socket.socket() as taken:
        taken.bind(("", port))
        taken.listen(1)
        assert not host_ports.is_free(port)
    assert host_ports.is_free(port)


def test_a_port_accepts_no_connection_while_it_is_asked_for() -> None:
    """A host of the job that connects at this instant would take it for the launcher."""
    port, is_over, connected = ports.free_port(), threading.Event(), list[int]()

    def connect() -> None:
        while not is_over.is_set():
            with socket.socket() as host:
                # The kernel gives no such port to a client: this one cannot connect to itself.
                connected.append(host.connect_ex(("127.0.0.1", port)))

    connecting = threading.Thread(target=connect)
    connecting.start()
    found = {host_ports.is_free(port, "127.0.0.1") for _ in range(10_000)}
    is_over.set()
    connecting.join()

    assert found == {True}
    assert set(connected) == {errno.ECONNREFUSED}


def test_agreed_port_in_order() -> None:
    assert ports.chosen_port(12345, {"FLAGS_START_PORT": "6070"}) == (12345, "--start-port")
    assert ports.chosen_port(None, {"FLAGS_START_PORT": "6070"}) == (6070, "FLAGS_START_PORT")
    assert ports.chosen_port(None, {})[0] is None
    with pytest.raises(UsageError, match="FLAGS_START_PORT"):
        ports.chosen_port(None, {"FLAGS_START_PORT": "many"})


def test_doubts_about_ports() -> None:
    assert ports.port_warnings(ports.DEFAULT_PORT, several_hosts=True) == []
    assert "outside 10000-20000" in ports.port_warnings(6070, several_hosts=True)[0]
    assert ports.port_warnings(6070, several_hosts=False) == []


def test_port_told_by_rank_0(own_directory: Path) -> None:
    (own_directory / "port").write_text("12345")

    assert ports.wait_for_port_file(str(own_directory / "port"), seconds=1) == 12345
    with pytest.raises(UsageError, match="did not publish its port"):
        ports.wait_for_port_file(str(own_directory / "absent"), seconds=0.01)
