"""The checks of ports: a listener, a connection, and how many ports are left."""

from __future__ import annotations

from typing import Any

import pytest

from hccl_tools.diagnostics.registry import Selection
from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.findings import HostFinding, judge
from hccl_tools.doctor.run_checks import Job, examine
from hccl_tools.host.observation import Observation, PortUse

DEVICES = (0, 1, 2, 3)
PROGRAM = "process 4711 (python3 train.py)"
CONNECTION = "port 60005 belongs to an outgoing connection at the moment"
#: The ports of connections on a usual host.
LOCAL = {"local_ports": "32768-60999"}


def listeners(*ports: int) -> tuple[PortUse, ...]:
    return tuple(PortUse(port, True, 4711, "python3 train.py") for port in ports)


def connections(*ports: int) -> tuple[PortUse, ...]:
    return tuple(PortUse(port) for port in ports)


def findings(check: str, *, start_port: int | None = None, **seen: Any) -> list[HostFinding]:
    case = Case(Observation(nodes=DEVICES, **seen), devices=DEVICES, start_port=start_port)
    return [one for one in judge("node1", case) if one.check == check]


def of_hccl(*uses: PortUse, cann: str = "8.0.0", **seen: Any) -> list[tuple[str, str]]:
    found = findings("HCD301", hccl_ports=uses, versions={"CANN": cann}, **seen)
    return [(one.consequence, one.message) for one in found]


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        (listeners(60000), "port 60000 is in use by process 4711 (python3 train.py)"),
        (listeners(60000, 60002), "ports 60000 and 60002 are in use by process 4711 (python3 train.py)"),
        ((PortUse(60000, True),), "port 60000 is in use by another program"),
        (connections(60008), "port 60008 belongs to an outgoing connection at the moment"),
        (connections(60000, 60008), "ports 60000 and 60008 belong to outgoing connections at the moment"),
        (
            connections(60005) + listeners(60000, 60001, 60002, 60004),
            f"ports 60000-60002 and 60004 are in use by {PROGRAM}; {CONNECTION}",
        ),
    ],
)
def test_a_port_in_use_is_a_note_while_others_are_free(uses: tuple[PortUse, ...], message: str) -> None:
    others = f"; HCCL takes other ports, as {16 - len(uses)} of 60000-60015 are free"

    assert of_hccl(*uses) == [("note", message + others)]


@pytest.mark.parametrize(
    ("uses", "consequence"),
    [
        (listeners(*range(60000, 60012)), "note"),  # 4 are left for 4 ranks
        (connections(*range(60000, 60012)), "note"),
        (listeners(*range(60000, 60013)), "stops"),
        (connections(*range(60000, 60013)), "may-stop"),
        (listeners(*range(60000, 60012)) + connections(60012), "may-stop"),
        (listeners(*range(60000, 60013)) + connections(60013), "stops"),
    ],
)
def test_enough_free_ports_for_the_ranks(uses: tuple[PortUse, ...], consequence: str) -> None:
    ((found, message),) = of_hccl(*uses)

    assert found == consequence
    is_short = "HCCL needs a port per rank, 4 in total, but only" in message
    assert is_short == (consequence != "note")


@pytest.mark.parametrize(("free", "are"), [(0, "are"), (1, "is"), (2, "are")])
def test_how_many_ports_are_free(free: int, are: str) -> None:
    ((_, message),) = of_hccl(*listeners(*range(60000, 60016 - free)))

    assert f"but only {free} of 60000-60015 {are} free (EJ0003)" in message


def test_too_few_ports_for_an_unknown_version_of_cann() -> None:
    """New versions have more ports than the connections hold; a listener is another job."""
    (found,) = of_hccl(*connections(*range(60000, 60013)), cann="")

    assert found[0] == "note"
    assert "from CANN 8.5 HCCL takes 60016-60031 as well" in found[1]
    assert [one for one, _ in of_hccl(*listeners(*range(60000, 60013)), cann="")] == ["stops"]


def test_the_range_of_cann() -> None:
    taken = listeners(*range(60000, 60016))

    assert [found for found, _ in of_hccl(*taken, cann="8.0.0")] == ["stops"]
    assert [found for found, _ in of_hccl(*taken, cann="8.5.0")] == ["note"]
    assert of_hccl(*listeners(60016), cann="8.0.0") == []
    assert "15 of 60000-60015" in of_hccl(*listeners(60000), cann="")[0][1]


def test_no_port_is_in_use() -> None:
    assert of_hccl() == []

    without_device = judge("node1", Case(Observation(hccl_ports=listeners(60000), kernel=LOCAL)))
    assert not {"HCD301", "HCD314"}.intersection(one.check for one in without_device)


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        (listeners(50003), [("stops", "port 50003 is in use by process 4711 (python3 train.py)")]),
        (connections(50003), [("may-stop", "port 50003 belongs to an outgoing connection at the moment")]),
        (listeners(50004), []),  # of no device
        (
            listeners(50000) + connections(50001),
            [
                ("stops", "port 50000 is in use by process 4711 (python3 train.py)"),
                ("may-stop", "port 50001 belongs to an outgoing connection at the moment"),
            ],
        ),
    ],
)
def test_fixed_ports(uses: tuple[PortUse, ...], expected: list[tuple[str, str]]) -> None:
    needed = "HCCL needs the port HCCL_IF_BASE_PORT + device (EJ0003), but "

    assert of_hccl(*uses, variables={"HCCL_IF_BASE_PORT": "50000"}) == [
        (consequence, needed + message) for consequence, message in expected
    ]


@pytest.mark.parametrize(
    ("reserved", "setting"),
    [
        ("", "60000-60015"),
        ("8080,9148", "8080,9148,60000-60015"),
        ("60000-60007", "60000-60015"),
    ],
)
def test_the_remedy_keeps_what_is_reserved(reserved: str, setting: str) -> None:
    kernel = {**LOCAL, "reserved_ports": reserved}
    command = f"sysctl -w net.ipv4.ip_local_reserved_ports={setting}"

    for check in ("HCD301", "HCD314"):
        (found,) = findings(check, hccl_ports=connections(60008), kernel=kernel)
        assert found.commands == (command,)
        assert f"`{command}`" in found.remedy
        assert "/etc/sysctl.d" in found.remedy
        assert "on the host" in found.remedy


def test_reserved_ports_are_not_reserved_again() -> None:
    kernel = {**LOCAL, "reserved_ports": "60000-60015"}

    (found,) = findings("HCD301", hccl_ports=connections(60008), kernel=kernel)

    assert "in a minute" in found.remedy
    assert found.commands == ()


@pytest.mark.parametrize(
    ("local", "reserved", "cann", "fires"),
    [
        ("32768-60999", "", "8.0.0", True),
        ("32768-60000", "", "8.0.0", True),
        ("32768-59999", "", "8.0.0", False),
        ("60016-65535", "", "8.0.0", False),
        ("60016-65535", "", "8.5.0", True),
        ("32768-60999", "60000-60015", "8.0.0", False),
        ("32768-60999", "60000-60014", "8.0.0", True),
        ("32768-60999", "60000-60015", "8.5.0", True),
        ("32768-60999", "60000-60031", "8.5.0", False),
        ("", "", "8.0.0", False),  # unknown
    ],
)
def test_ports_that_connections_may_get(local: str, reserved: str, cann: str, fires: bool) -> None:
    kernel = {"local_ports": local, "reserved_ports": reserved}
    found = findings("HCD314", kernel=kernel, versions={"CANN": cann})

    assert [one.consequence for one in found] == (["note"] if fires else [])


def test_one_note_for_all_hosts() -> None:
    seen = {f"node{number}": Observation(nodes=DEVICES, kernel=LOCAL) for number in (1, 2, 3)}

    found = examine(seen, Job(), Selection(select=("HCD314",))).findings

    assert [one.hosts for one in found] == [("node1", "node2", "node3")]


@pytest.mark.parametrize(
    ("uses", "consequence"),
    [
        (listeners(18118), "stops"),
        (connections(18118), "may-stop"),
        (listeners(18121), "may-stop"),
        (listeners(18122), None),
    ],
)
def test_the_start_port(uses: tuple[PortUse, ...], consequence: str | None) -> None:
    found = findings("HCD303", start_port=18118, busy_ports=uses)

    assert [one.consequence for one in found] == ([consequence] if consequence else [])


def test_the_device_port() -> None:
    (found,) = findings("HCD302", busy_ports=listeners(16666))

    assert (found.consequence, found.message) == (
        "may-stop",
        f"HCCL listens for other devices on port 16666, but port 16666 is in use by {PROGRAM}",
    )
    assert findings("HCD302", busy_ports=listeners(16667)) == []
