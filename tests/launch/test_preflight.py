from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.host import device_holders, hccl_variables
from hccl_tools.host.site_defaults import Site
from hccl_tools.launch import preflight
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.preflight import Findings
from hccl_tools.variables.rows import refused_values
from tests.support.sockets import ADDRESS, connection, listener

HOST = tuple(range(8))


def plan(*devices: int, argv: tuple[str, ...] = ("python", "train.py"), **options: Any) -> Plan:
    variables = options.pop("variables", {})
    processes = tuple(
        RankProcess(rank, "localhost", 0, device, device, dict(variables), argv, f"rank_{rank}.log")
        for rank, device in enumerate(devices)
    )
    defaults: dict[str, Any] = {"table": "/table.json", "start": "table", "engine": "loop"}
    return Plan(
        processes, run_dir="/run", working_dir="/", world_size=len(devices), **{**defaults, **options}
    )


def check(made: Plan, environ: dict[str, str] | None = None, nodes: tuple[int, ...] = ()) -> Findings:
    return preflight.check(made, environ or {}, nodes)


def settings(**environ: str) -> list[str]:
    refused = [problem.message for problem in refused_values(environ, "910B")]
    return refused + list(
        hccl_variables.problems(
            environ, is_local=lambda address: address == "10.0.0.1", interfaces={"lo", "eth0", "enp1s0"}
        )
    )


def test_host_without_npus() -> None:
    assert check(plan(4, 5)).errors == ("this host has no NPU: there is no /dev/davinci* for devices 4,5",)
    assert check(plan(4, 5, cpu=True)) == Findings()
    assert check(plan(0, 1, table=None)) == Findings()


def test_device_that_is_not_there() -> None:
    assert "device 8 is not on this host" in check(plan(7, 8), nodes=HOST).errors[0]


@pytest.mark.parametrize(
    ("environ", "way"),
    [({}, "join its group (usually HwHiAiUser)"), ({"KUBERNETES_SERVICE_HOST": "1"}, "supplementalGroups")],
)
def test_the_group_of_a_device_in_a_container(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], way: str
) -> None:
    monkeypatch.setattr(device_holders, "closed_nodes", lambda *_: ("/dev/davinci0",))
    monkeypatch.setattr("os.path.exists", lambda _: False)

    (found,) = preflight.check(plan(0), environ, HOST).errors

    assert found.startswith("/dev/davinci0 cannot be opened by this user: ")
    assert way in found


def test_device_without_permission(own_directory: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may open everything")
    (own_directory / "dev").mkdir()
    (own_directory / "dev" / "davinci0").touch(mode=0)

    errors = check(plan(0), {"HCCL_TOOLS_ROOT": str(own_directory)}, HOST).errors

    assert any("cannot be opened by this user" in error for error in errors)


def test_device_that_another_process_holds(own_directory: Path) -> None:
    (own_directory / "dev").mkdir()
    root = {"HCCL_TOOLS_ROOT": str(own_directory)}
    node = own_directory / "dev" / "davinci5"
    for name in ("davinci4", "davinci5"):
        (own_directory / "dev" / name).touch()
    program = f"import sys; file = open({str(node)!r}); print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"HCCL_TOOLS_RUN_DIR": "/log/old-run"},
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
        held, _ = device_holders.holders([4, 5], Site(root))
        errors = check(plan(4, 5), root, HOST).errors
        other.communicate()

    assert [(holder.pid, holder.device, holder.run) for holder in held] == [(other.pid, 5, "/log/old-run")]
    assert f"device 5 is in use by process {other.pid}" in errors[0]
    assert "left over from run /log/old-run" in errors[0]
    assert device_holders.holders([5], Site(root)) == ([], "")


def test_hccls_ports_are_taken() -> None:
    with listener() as port, connection() as connected:
        listens = check(plan(4), {"HCCL_IF_IP": ADDRESS, "HCCL_IF_BASE_PORT": str(port - 4)}, HOST).errors
        base = {"HCCL_IF_IP": ADDRESS, "HCCL_IF_BASE_PORT": str(connected - 4)}
        connects = check(plan(4), base, HOST).errors

    assert any(f"port {port} is in use by process {os.getpid()}" in error for error in listens)
    assert not any(str(connected) in error for error in connects)


def test_meeting_port_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        found = check(plan(0, cpu=True, variables={"MASTER_PORT": str(port)}))

    assert f"port {port} (MASTER_PORT) is in use" in found.errors[0]
    with pytest.raises(LaunchError) as caught:
        preflight.refuse(found)
    assert caught.value.hint == "--preflight none starts without these checks"  # It is a rehearsal already.


@pytest.mark.parametrize(
    ("line", "warned"),
    [("distribute: False", True), ("  use_parallel: false  # one", True), ("run_distribute: True", False),
     ("distribute_loader: False", False)],
)  # fmt: skip
def test_yaml_that_makes_single_card_trainings(line: str, warned: bool) -> None:
    Path("conf.yml").write_text(f"# a model\nepochs: 3\n{line}\n")
    argv = ("python", "train.py", "-c", "conf.yml")

    warnings = check(plan(0, 1, cpu=True, argv=argv)).warnings

    assert bool(warnings) is warned
    assert not warned or warnings[0].startswith("conf.yml:3: ")
    assert check(plan(0, cpu=True, argv=argv)).warnings == ()


def test_all_findings_are_told_at_once() -> None:
    with pytest.raises(LaunchError) as caught:
        preflight.refuse(Findings(("one", "two")))

    assert caught.value.head == "2 problems prevent the start on this host"
    assert caught.value.lines == ("  - one", "  - two")  # A line break in the head is printed as \\u000a.
    assert caught.value.exit_code == 125
    preflight.refuse(Findings((), ("a warning",)))


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"HCCL_CONNECT_TIMEOUT": "60"}, "120 to 7200"),
        ({"HCCL_CONNECT_TIMEOUT": "7201"}, "120 to 7200"),
        ({"HCCL_CONNECT_TIMEOUT": "10m"}, "120 to 7200"),
        ({"HCCL_CONNECT_TIMEOUT": "1836"}, "not below"),
        ({"HCCL_CONNECT_TIMEOUT": "600", "HCCL_EXEC_TIMEOUT": "600"}, "not below"),
        ({"HCCL_EXEC_TIMEOUT": "120"}, "not below"),
        ({"HCCL_EXEC_TIMEOUT": "long"}, "2147483647 seconds"),
        ({"HCCL_WHITELIST_DISABLE": "true"}, "0 or 1"),
        ({"HCCL_IF_IP": "10.0.0.2"}, "not an address of this host"),
        ({"HCCL_SOCKET_IFNAME": "ib"}, "matches no interface"),
        ({"HCCL_SOCKET_IFNAME": "=eth"}, "matches no interface"),
        ({"HCCL_SOCKET_IFNAME": "^eth,lo,enp"}, "matches no interface"),
        ({"HCCL_IF_BASE_PORT": "1023"}, "1024 to 65520"),
    ],
)
def test_settings_that_hccl_refuses(environ: dict[str, str], words: str) -> None:
    found = settings(**environ)

    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HCCL_CONNECT_TIMEOUT": "120"},
        {"HCCL_CONNECT_TIMEOUT": "7200", "HCCL_EXEC_TIMEOUT": "7201"},
        {"HCCL_CONNECT_TIMEOUT": "7200", "HCCL_EXEC_TIMEOUT": "0"},
        {"HCCL_CONNECT_TIMEOUT": "7200", "HCCL_EXEC_TIMEOUT": "7200.5"},
        {"HCCL_WHITELIST_DISABLE": "0"},
        {"HCCL_IF_IP": "10.0.0.1"},
        {"HCCL_SOCKET_IFNAME": "eth"},
        {"HCCL_SOCKET_IFNAME": "=eth0,ib0"},
        {"HCCL_SOCKET_IFNAME": "^docker"},
        {"HCCL_SOCKET_IFNAME": "^=eth0"},
    ],
)
def test_settings_that_hccl_takes(environ: dict[str, str]) -> None:
    assert settings(**environ) == []
