"""What a host says while it waits for the other hosts of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.cluster.membership import CPU, HostManifest, missing_hosts_error, waiting

if TYPE_CHECKING:
    import pytest

OWN = HostManifest(1, "192.0.2.2", {CPU: "no"})


def test_the_first_message_says_what_to_do_and_how_long() -> None:
    text = waiting("10.0.0.2 to start its part", OWN, 600.0, is_first=True)

    assert "run the same command on each host of the job within 10 min;" in text
    assert "`--cpu --all-here`" in text
    assert "; this host is 192.0.2.2; " in text
    assert "\n" not in text


def test_what_was_typed_is_not_advised_again() -> None:
    text = waiting("192.0.2.1 to start its part", HostManifest(1, "b", {CPU: "yes"}), 600.0, is_first=True)

    assert text.endswith("to rehearse all ranks on this host, add `--all-here`")


def test_pods_get_no_advice_for_shells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")

    text = waiting("192.0.2.1 to start its part", OWN, 1200.0, is_first=True)
    error = missing_hosts_error(["192.0.2.1"], OWN, 1200.0)

    assert text == "waiting for 192.0.2.1 to start its part, at most 20 min; this host is 192.0.2.2"
    assert "--wait SECONDS waits longer" in (error.hint or "")
    assert "--all-here" not in (error.hint or "")


def test_the_others_say_what_time_is_left() -> None:
    text = waiting("10.0.0.2 to start its part", OWN, 480.0, is_first=False, also="; one program had no key")

    assert text == "still waiting for 10.0.0.2 to start its part, 8 min left; one program had no key"
