"""``--exclude`` as text: every form, the names that it matches, and mistakes."""

from __future__ import annotations

import re

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.notation import exclusion

RIGHT = [
    (["10.0.0.3"], ["10.0.0.3"]),
    (["node7"], ["node7"]),
    (["node7:0,1"], ["node7:0-1"]),
    (["node7:3"], ["node7:3"]),
    (["node7:0-3"], ["node7:0-3"]),
    (["node7:[4,8)"], ["node7:4-7"]),
    (["node7: 0, 2"], ["node7:0,2"]),
    (["10.0.0.3:7"], ["10.0.0.3:7"]),
    (["[fd00::3]:0,1"], ["[fd00::3]:0-1"]),
    (["[fd00::3]"], ["fd00::3"]),
    (["fd00::3"], ["fd00::3"]),
    (["node7@node8"], ["node7", "node8"]),
    (["node7:0,1@node8"], ["node7:0-1", "node8"]),
    (["node7 @ node8:2"], ["node7", "node8:2"]),
    (["[fd00::3]:0@[fd00::4]:1"], ["[fd00::3]:0", "[fd00::4]:1"]),
    (["fd00::3@fd00::4"], ["fd00::3", "fd00::4"]),
    (["10.0.0.[3-5]"], ["10.0.0.3", "10.0.0.4", "10.0.0.5"]),
    (["10.0.0.3,10.0.0.5"], ["10.0.0.3", "10.0.0.5"]),
    (["node[01-02]:0"], ["node01:0", "node02:0"]),
    (["node7", "node8:1"], ["node7", "node8:1"]),
    (["node7:0", "node7:1"], ["node7:0", "node7:1"]),
]


@pytest.mark.parametrize(("values", "read"), RIGHT)
def test_a_form(values: list[str], read: list[str]) -> None:
    assert [str(one) for one in exclusion.parse(values)] == read


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "names no host"),
        ("@node7", 'a host is missing next to "@"'),
        ("node7@@node8", 'a host is missing next to "@"'),
        (":0", 'the host is missing before ":"'),
        ("node7:", 'the devices are missing after ":"'),
        ("node7:x", 'cannot read "x" as a device range'),
        ("node7:0,node8", "node8"),
        ("node7,node8:0", "which host do the devices belong to?"),
        ("node7:0:1", 'more than one ":"'),
        ("node7:3-1", '"3-1" is in descending order'),
        ("node7:0,0", "twice"),
        ("node7:0-999999999", "device 999999999, which HCCL does not have"),
        ("[fd00::3:0", "as an IPv6 address"),
        ("[fd00::3]0", "as an IPv6 address"),
        ("[node7]:0", "as an IPv6 address"),
        ("10.0.0.3-5", "is not a host"),
        ("node7\uff1a0", "\uff1a"),
    ],
)
def test_a_mistake_is_one_sentence_with_a_hint(value: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as refused:
        exclusion.parse([value])

    assert "--exclude" in refused.value.message
    assert refused.value.hint


def test_a_device_after_an_ipv6_address_without_brackets() -> None:
    """``fd00::3:0`` is an address too: only the names of the job tell what was meant."""
    with pytest.raises(UsageError, match='no server "fd00::3:0"') as refused:
        exclusion.matched(exclusion.parse(["fd00::3:0"]), [("fd00::3",)], where="the table", what="server")

    assert refused.value.hint == 'did you mean "[fd00::3]:0"?'


def test_ipv6_addresses_are_compared_as_addresses() -> None:
    parsed = exclusion.parse(["fd00:0:0::3"])

    assert exclusion.matched(parsed, [("fd00::3",), ("fd00::4",)], where="", what="server") == {0: None}


def test_a_server_id_goes_before_another_servers_pod_name() -> None:
    parsed = exclusion.parse(["a:0"])
    names = [("x", "a"), ("a", "y")]

    assert exclusion.matched(parsed, names, where="", what="server") == {1: frozenset({0})}


def test_a_whole_host_includes_its_devices() -> None:
    parsed = exclusion.parse(["a:0", "a", "a:1", "b:0", "b:1"])

    found = exclusion.matched(parsed, [("a",), ("b",)], where="", what="server")

    assert found == {0: None, 1: frozenset({0, 1})}


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("node7:0,1;node8:0,1", "write @ between hosts with devices"),
        ("10.0.0.1:0,10.0.0.2:0", "write @ between hosts with devices"),
        ("fd00::3:0,1", "write an IPv6 address with devices as [fd00::3]:0,1"),
        ("fd00:0:0:0:0:0:0:3:0,1", "write an IPv6 address with devices as [fd00::3]:0,1"),
    ],
)
def test_colons_of_several_hosts_and_of_an_address(value: str, hint: str) -> None:
    with pytest.raises(UsageError, match='more than one ":"') as refused:
        exclusion.parse([value])

    assert (refused.value.hint or "").startswith(hint)


def test_a_list_excludes_up_to_a_limit_of_hosts() -> None:
    with pytest.raises(UsageError, match="--exclude names more than 16,384 hosts"):
        exclusion.parse(["@".join(f"{sign}[1-9999]" for sign in "abcdefgh")])
