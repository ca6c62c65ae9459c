"""A server_id that is nearly an address is reported with the part that is too much, and with the address."""

from __future__ import annotations

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def findings(text: str, servers: int = 6) -> list[tuple[str, str, str | None]]:
    """Return the findings on a table whose second server has a text as server_id."""
    value = table("1.0", servers, 8)
    value["server_list"][1]["server_id"] = text
    return [(one.rule.id, one.message, one.hint) for one in validate(value, product="a2").findings]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("10.0.0.2:22", 'the port ":22"'),
        ("root@10.0.0.2", 'the user "root@"'),
        ("ssh://root@10.0.0.2:22", 'the scheme "ssh://" and the user "root@" and the port ":22"'),
        ("1O.0.0.2", 'the letter "O" in place of a digit'),
        ("l0.0.0.2", 'the letter "l" in place of a digit'),
        ("#10.0.0.2", 'the text "#" before the address'),
        ("10.0.0.2 # node2", 'the text "# node2" after the address'),
        ("10..0.0.2", "two dots in place of one"),
        ("10.0.0.2.", 'the end "."'),
        ("10.0.0.2/24", 'the netmask "/24"'),
        ("http://10.0.0.2", 'the scheme "http://"'),
        ("[10.0.0.2]", "square brackets"),
        ("10.0.0.02", "leading zeros"),
        ("10.0.0,2", "a comma in place of a dot"),
        ("10:0:0:2", "other signs in place of dots"),
        ("10\u30020.0.2", 'a full-width dot "\u3002"'),
    ],
)
def test_the_part_that_is_too_much_is_named_with_the_address(text: str, fault: str) -> None:
    assert findings(text) == [
        (
            "HCC619",
            f'server_id "{text}" has {fault}',
            'write "10.0.0.2", wherever the table has this server_id',
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        "10-0-0-2", "ip-10-0-0-2", "node-10.0.0.2", "10.0.0.2.nip.io", "node2.", "node2.lab.local", "fd00::2",
        "l1.o2.lo.ol.io", "worker_2",
    ],
)  # fmt: skip
def test_names_and_addresses_that_a_host_can_have_are_silent(text: str) -> None:
    assert findings(text, 2) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.Z", '"Z" is not a digit'),
        ("1S.0.0.2", '"S" is not a digit'),
        ("10.0.0.256", "256 is above 255"),
        ("10.0.0", "it has 3 numbers, an address has 4"),
        ("10.0.0.0.2", "it has 5 numbers, an address has 4"),
    ],
)
def test_an_address_that_is_not_certain_is_stated_only_by_the_order_of_the_others(
    text: str, why: str
) -> None:
    said = f'server_id "{text}" is not an IP address ({why}), and no host has such a name'
    hint = "write the address or name of the host, wherever the table has this server_id"

    assert findings(text) == [
        ("HCC619", said, f'{hint}: by the order of the others, that of server 2 is "10.0.0.2"')
    ]
    assert findings(text, 2) == [("HCC619", said, hint)]


def test_an_address_that_another_server_has_is_not_offered() -> None:
    ((_, message, hint),) = findings("10.0.0.1:22", 2)

    assert message == 'server_id "10.0.0.1:22" has the port ":22"'
    assert hint is not None
    assert hint.startswith('write the address of its own host: without this it is "10.0.0.1"')
    assert "that of server 1" in hint


@pytest.mark.parametrize(
    ("text", "what", "name"),
    [("root@node2", 'the user "root@"', "node2"), ("node2:22", 'the port ":22"', "node2")],
)
def test_a_user_or_port_beside_a_name_is_named(text: str, what: str, name: str) -> None:
    assert findings(text, 2) == [
        (
            "HCC619",
            f'server_id "{text}" has {what} beside the name of the host',
            f'write "{name}" alone, wherever the table has this server_id',
        )
    ]


def test_several_server_ids_with_a_port_are_one_finding_in_the_report() -> None:
    value = table("1.0", 3, 8)
    for server in value["server_list"]:
        server["server_id"] += ":22"
    found = validate(value, product="a2").findings

    like = "and the others in the same way, wherever the table has them"
    hint = f'write "10.0.0.1" in place of "10.0.0.1:22", {like}'
    assert {one.alike for one in found} == {('server_ids have the port ":22"', hint)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10.0.0.2-3", '"-" is not a digit'),
        ("10.0.0.2.nip.io", "is not an IP address"),
        ("b0.0.0.2", '"b" is not a digit'),
    ],
)
def test_an_address_of_a_device_is_not_cut_out_of_a_longer_text(text: str, said: str) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][0]["device_ip"] = text
    (found,) = validate(value, product="a2").findings

    assert said in found.message
    assert found.hint is not None
    assert found.hint.startswith("`hccn_tool -i 0 -ip -g` on 10.0.0.2 shows the address of device 0")
    assert '10.0.0.2"' not in found.hint


# A number after the address


def with_ids(*texts: str, table_format: str = "1.0") -> list[tuple[str, str, str | None]]:
    value = table(table_format, len(texts), 16 if table_format == "1.2" else 8)
    for server, text in zip(value["server_list"], texts, strict=True):
        server["server_id"] = text
    product = "a3" if table_format == "1.2" else "a2"
    return [(one.rule.id, one.message, one.hint) for one in validate(value, product=product).findings]


@pytest.mark.parametrize("sign", [" ", "\t", "  "])
def test_a_port_after_a_blank_is_not_a_part_of_the_address(sign: str) -> None:
    ((rule, message, hint),) = with_ids(f"10.0.0.1{sign}22", "10.0.0.2")

    assert (rule, hint) == ("HCC619", 'write "10.0.0.1", wherever the table has this server_id')
    assert message.endswith('has the text "22" after the address')


def test_what_all_have_behind_the_address_is_no_part_of_it() -> None:
    found = with_ids("10.0.0.1 22", "10.0.0.12 22", "10.0.0.3 22")

    assert [hint.partition(",")[0] for *_, hint in found if hint] == [
        'write "10.0.0.1"', 'write "10.0.0.12"', 'write "10.0.0.3"',
    ]  # fmt: skip


def test_a_blank_in_the_last_number_is_one_if_the_others_are_near() -> None:
    ((_, message, hint),) = with_ids("10.0.0.12 0", "10.0.0.121")

    assert message.endswith("has a blank in it")
    assert (hint or "").startswith('write "10.0.0.120"')


def test_both_addresses_are_named_if_nothing_says_which_it_is() -> None:
    ((_, _, hint),) = with_ids("10.0.0.1 0")

    assert (hint or "").startswith('write "10.0.0.1" or, if only the blank is too much, "10.0.0.10"')


def test_a_server_id_with_a_port_that_two_have_gets_the_address_in_one_finding() -> None:
    ((rule, _, hint),) = with_ids("10.0.0.1 22", "10.0.0.1 22", "10.0.0.3")

    assert rule == "HCC503"
    assert hint == (
        '`hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0: if it is "192.168.0.100", write '
        '"10.0.0.1" alone in server 1 and another server_id in server 2, if it is '
        '"192.168.1.100", the other way round'
    )


def test_the_super_pods_do_not_get_the_port() -> None:
    value = table("1.2", 2, 16)
    value["server_list"][0]["server_id"] = "10.0.0.1:22"

    (found, _) = validate(value, product="a3").findings

    assert (found.rule.id, found.hint) == (
        "HCC524",
        'write "server_id": "10.0.0.1" in server 1 of server_list, which has "10.0.0.1:22"',
    )


@pytest.mark.parametrize(
    ("texts", "hints"),
    [
        (["192.168.9.1 22"], ['write "192.168.9.1" or "192.168.9.122"']),
        (["192.168.9.1 22", "192.168.9.2 22"], ['write "192.168.9.1"', 'write "192.168.9.2"']),
        (["192.168.9.30 22"], ['write "192.168.9.30"']),
        (["192.168.0.10 1"], ['write "192.168.0.10"']),
    ],
)
def test_a_device_ip_with_a_number_behind_it(texts: list[str], hints: list[str]) -> None:
    value = table("1.0", 1, 8)
    for device, text in zip(value["server_list"][0]["device"][2:], texts, strict=False):
        device["device_ip"] = text

    found = validate(value, product="a2").findings

    assert [(one.hint or "").partition(":")[0] for one in found] == hints
    assert all(one.right is None or " " not in str(one.right) for one in found)


def test_a_port_of_one_instance_of_a_group_list_is_named() -> None:
    value = table("group_list", 4, 8)
    instances = value["group_list"][0]["instance_list"]
    instances[1]["server_id"] += ":2222"

    (found,) = validate(value).findings

    assert found.rule.id == "HCC619"
    assert found.message.startswith(
        'server_id "10.0.0.2:2222" has the text ":2222" after the host, as a port'
    )
    assert (found.hint or "").startswith('write "10.0.0.2": ')
    for instance in instances:
        instance["server_id"] = instance["server_id"].partition(":")[0] + ":2222"
    assert not validate(value).findings
