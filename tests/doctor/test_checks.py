"""Each check, run on its own example: on a stand-in host, or on what a sound host shows."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.findings import judge
from hccl_tools.doctor.pages import page
from hccl_tools.doctor.registry import Check, all_checks, selection
from hccl_tools.errors import UsageError
from hccl_tools.host.observation import Observation, ObservationRequest, PortUse, from_json
from hccl_tools.host.observing import observe
from hccl_tools.host.site_defaults import Site
from tests.support import reference_pages
from tests.support.bulk import for_each
from tests.support.hosts import StandInHost, conf_text, described, make_host

if TYPE_CHECKING:
    from pathlib import Path

CHECKS = all_checks()
WITH_EXAMPLE = [one for one in CHECKS.values() if one.example is not None]


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    four = {str(device): {"ip": f"192.168.{100 + device}.101"} for device in range(4)}
    return make_host(tmp_path, nodes=range(4), devices=four)


def seen_on(host: StandInHost, **variables: str) -> Observation:
    environ = host.environ(HOME=str(host.folder), **variables)
    return observe(ObservationRequest(tool_timeout=60), Site(environ))


def plant(host: StandInHost, check: Check) -> Observation:
    """Put the example of a check on a host, and look."""
    assert check.example is not None
    kind, name, text = check.example
    if kind == "tool":
        host.describe({**host.description, "answers": {name: {"stdout": text}}})
    elif kind == "folder":
        (host.root / name.lstrip("/")).mkdir(parents=True)
    elif kind == "file":
        path = host.root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    seen = seen_on(host, **({name: text} if kind == "env" else {}))
    if kind == "observed":
        fields: dict[str, Any] = json.loads(json.dumps({**seen.as_json(), name: json.loads(text)}))
        fields["processes"] = [{"memory": None, **one} for one in fields["processes"]]
        seen = from_json(fields)
    return seen


@pytest.mark.parametrize("check", WITH_EXAMPLE, ids=lambda check: check.id)
def test_a_check_reports_its_example(host: StandInHost, check: Check) -> None:
    found = list(judge("node1", Case(plant(host, check), product="910a")))

    own = [one for one in found if one.check == check.id]
    assert own
    assert all("{" not in one.remedy for one in own)
    assert [one.check for one in found if one.consequence != "note" and one.check != check.id] == []
    if check.example is not None and (device := re.search(r"-i (\d+)", check.example.name)):
        assert {device_id for one in own for device_id in one.devices} >= {int(device[1])}


@pytest.mark.slow
@pytest.mark.parametrize("product", ["910a", "a2", "a3", "a5", "300i"])
def test_a_sound_host_has_nothing_above_a_note(tmp_path: Path, product: str) -> None:
    description = described(product)
    host = make_host(tmp_path, description, nodes=map(int, description["devices"]))

    found = list(judge("node1", Case(seen_on(host), product=product)))

    assert [one for one in found if one.consequence != "note"] == []


def test_an_observation_survives_its_way_between_hosts(host: StandInHost) -> None:
    host.conf(conf_text(["10.0.0.1"]))
    host.describe({**host.description, "processes": [[3, 4711, "python", 900]]})
    seen = seen_on(host, HCCL_BUFFSIZE="200")
    seen = seen._replace(hccl_ports=(PortUse(60000, True, 4711, "python"), PortUse(60001)))

    assert from_json(json.loads(json.dumps(seen.as_json()))) == seen


def test_ids_names_and_documentation() -> None:
    for check in CHECKS.values():
        assert re.fullmatch(r"HCD[0-9]{3}", check.id)
        assert re.fullmatch(r"[a-z0-9-]+", check.name)
        assert (check.find.__doc__ or "").partition("\n")[0].endswith("?")
        assert check.remedy
        assert check.source
    assert len({check.name for check in CHECKS.values()}) == len(CHECKS)


def test_the_page_lists_every_check() -> None:
    stored = (reference_pages.DOCS / "checks.md").read_text(encoding="utf-8")

    assert stored == reference_pages.checks(), "run: python -m tests.support.reference_pages"


@for_each(CHECKS.values(), name=lambda check: check.id)
def test_the_page_of_a_check(check: Check) -> None:
    text = page(check)

    assert text.startswith(f"# {check.id} {check.name}\n")
    assert "{" not in text or check.example is not None


def test_a_selector_that_matches_nothing() -> None:
    with pytest.raises(UsageError, match='no check matches "HCD9"'):
        selection(["HCD9"], [], [])


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [("", "printed nothing"), ("hccn_tool is busy, please try again.\n", "stays busy")],
)
def test_a_tool_without_an_answer_is_a_note(host: StandInHost, stdout: str, reason: str) -> None:
    host.describe({**host.description, "answers": {"hccn_tool -i 3 -tls -g": {"stdout": stdout}}})

    site = Site(host.environ(HOME=str(host.folder)))
    found = list(judge("node1", Case(observe(ObservationRequest(tool_timeout=2), site), product="910a")))

    assert {one.consequence for one in found} == {"note"}
    assert any(reason in one.message and 3 in one.devices for one in found)
