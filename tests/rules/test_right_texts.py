"""A text that is refused because of its spelling gets the remedy for what it is."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hccl_tools.diagnostics import render
from hccl_tools.validation.checker import validate
from tests.support.tables import table


def finding(rule: str, key: str, text: Any, table_format: str = "1.0") -> Any:
    """Return the finding on a table in which the second device, or the first holder, has a text at a key."""
    value = table(table_format, 1, 8)
    server = (value.get("server_list") or [{}])[0]
    holder = value if key in value else server if key == "host_ip" else server["device"][1]
    holder[key] = text
    (found,) = [one for one in validate(value).findings if one.rule.id == rule]
    return found


@pytest.mark.parametrize(
    ("rule", "key", "text", "sign", "right"),
    [
        ("HCC201", "rank_id", "\uff11", "full-width digit", "1"),
        ("HCC301", "device_id", "\uff11", "full-width digit", "1"),
        ("HCC403", "device_ip", "10.0.0.1\uff0c10.0.0.2", "full-width comma", "10.0.0.1,10.0.0.2"),
        ("HCC403", "device_ip", "10\u30020.0.1", "full-width dot", "10.0.0.1"),
        ("HCC407", "host_ip", "10.0.0.\uff11", "full-width digit", "10.0.0.1"),
        ("HCC421", "device_port", "\uff11666", "full-width digit", "1666"),
        ("HCC106", "status", "\uff43ompleted", "full-width character", "completed"),
        ("HCC108", "version", "1\uff0e0", "full-width dot", "1.0"),
    ],
)
def test_full_width_signs_in_a_table_are_named(rule: str, key: str, text: str, sign: str, right: str) -> None:
    found = finding(rule, key, text)

    assert found.message.startswith(f'{key} "{text}" has a {sign} "')
    assert found.hint == f'write "{right}"'
    assert found.right == right


def test_a_dash_in_an_address_is_named_without_an_offer_that_is_refused() -> None:
    found = finding("HCC403", "device_ip", "10.0.0.1\u20135")

    assert 'has a typographic dash "\u2013"' in found.message
    assert found.hint == "`hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1"
    assert found.right is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("192.168.1.2/24", '"192.168.1.2/24" has the netmask "/24"', 'write "192.168.1.2"'),
        ("192.168.1.2:16666", '"192.168.1.2:16666" has the port ":16666"', 'write "192.168.1.2"'),
        ("192.168.003.101", '"192.168.003.101" has leading zeros', 'write "192.168.3.101"'),
        (
            " 192.168.003.101/24",
            '" 192.168.003.101/24" has blanks at its ends and the netmask "/24" and leading zeros',
            'write "192.168.3.101"',
        ),
        ("fd00::1/64", '"fd00::1/64" has the netmask "/64"', 'write "fd00::1"'),
        (
            "0.0.0.0",
            'HCCL reads "0.0.0.0" as no address',
            "`hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1",
        ),
        (
            "192.168.1.300/24",
            '"192.168.1.300/24" is not an IP address',
            "`hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1",
        ),
    ],
)
def test_an_address_gets_the_remedy_for_what_it_is(text: str, message: str, hint: str) -> None:
    found = finding("HCC403", "device_ip", text)

    assert (found.message, found.hint) == (message, hint)


def test_only_one_of_several_addresses_is_corrected() -> None:
    found = finding("HCC403", "device_ip", "192.168.3.100,192.168.003.101")

    assert found.right == "192.168.3.100,192.168.3.101"


@pytest.mark.parametrize("value", [None, 5, True])
def test_no_address_of_another_device_is_offered(value: Any) -> None:
    found = finding("HCC402", "device_ip", value)

    assert (
        found.hint
        == "write the address as a string: `hccn_tool -i 1 -ip -g` on 10.0.0.1 shows the address of device 1"
    )


def test_the_command_for_a_device_whose_id_is_damaged_names_no_device() -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][1].update(device_id=None, device_ip=None)

    hints = [one.hint for one in validate(value).findings if one.rule.id == "HCC402"]

    assert hints == [
        "write the address as a string: `hccn_tool -i N -ip -g` on 10.0.0.1 shows the address of device N"
    ]


@pytest.mark.parametrize(
    ("devices", "rule"), [((0, 1, 2), "HCC304"), ((0, 1, 2, 8), "HCC302"), ((0, 4), "HCC309")]
)
def test_a_hint_asks_for_the_chip_only_if_the_product_is_not_known(
    devices: tuple[int, ...], rule: str
) -> None:
    value = table("1.0", 1, len(devices))
    for entry, number in zip(value["server_list"][0]["device"], devices, strict=True):
        entry["device_id"] = str(number)

    def hint(product: str | None) -> str:
        (found,) = [one for one in validate(value, product=product).findings if one.rule.id == rule]
        return found.hint or ""

    assert "--product" in hint(None)
    assert "--product" not in hint("910a")


def test_two_tables_in_one_file_are_for_merge() -> None:
    text = json.dumps(table("1.0"))

    (found,) = validate(f"{text}\n{text}".encode()).findings

    assert found.message == (
        "there are two tables in this file: HCCL starts only the ranks of the first, and ignores the second, "
        "which begins on line 2"
    )
    assert "hccl-tools merge A B" in (found.hint or "")
    assert [one.hint for one in validate(f"{text}\nend".encode()).findings] == ["delete the text"]


@pytest.mark.parametrize(
    ("number", "files"),
    [(3, "merge A B C`"), (8, "merge A B C D E F G H`"), (9, "merge A B C D E F G H ...`")],
)
def test_all_tables_of_a_file_are_counted(number: int, files: str) -> None:
    (found,) = validate("\n".join([json.dumps(table("1.0"))] * number).encode()).findings

    assert found.message.startswith(
        f"there are {number} tables in this file: HCCL starts only the ranks of the first"
    )
    assert "which begin on lines 2, 3" in found.message
    assert files in (found.hint or "")


def test_what_only_the_guide_of_the_framework_forbids_is_not_refused_by_it() -> None:
    value = table("1.0", 2, 8)
    first, second = value["server_list"]
    first["server_id"], second["server_id"] = second["server_id"], first["server_id"]

    lines = "".join(render([validate(json.dumps(value).encode(), target="mindspore")])).splitlines()

    assert "  = MindSpore: accepts this, but the guide of MindSpore forbids it" in lines
    assert lines[-1] == "1 error: HCCL and MindSpore accept this table, but the guide of MindSpore forbids it"


@pytest.mark.parametrize(
    ("own", "written", "version"), [("1.0", "2.0", "1.0"), ("1.2", "2.0", "1.2"), ("2.0", "1.0", "2.0")]
)
def test_a_table_under_the_version_of_another_one(own: str, written: str, version: str) -> None:
    value = {**table(own), "version": written}
    has = "rank_list" if own == "2.0" else "server_list"

    report = validate(value)

    hints = {one.hint for one in report.findings if one.rule.id == "HCC111"}
    assert len(hints) == 1
    right = f'this is a table of version {version} (it has {has}): write "version": "{version}"; only if'
    assert (hints.pop() or "").startswith(right)
    assert validate({**value, "version": version}).ok


@pytest.mark.parametrize(
    ("text", "rule", "message", "hint"),
    [
        ("10.0.0.1\n10.0.0.2\n", "HCC110",
         "this is a list of hosts (hostfile), not a rank table", "gen --hostfile"),
        ("[{}]", "HCC110", "not a rank table: it is a list with a table in it", "remove the outer [ and ]"),
        ("[{0},{0}]", "HCC110", "not a rank table: it is a list of 2 tables", "merge"),
        ("{quoted}", "HCC110", "not a rank table: it is a table in a string", "take it out: python3 -I -c"),
        ("{headless}", "HCC110",
         "not a rank table: the { at the beginning is missing", 'write { before "version"'),
    ],
)  # fmt: skip
def test_what_is_valid_json_and_no_object_is_told_from_a_table(
    text: str, rule: str, message: str, hint: str
) -> None:
    whole = json.dumps(table("1.0"))
    text = text.replace("{quoted}", json.dumps(whole)).replace("{headless}", whole[1:])
    text = text.replace("{}", whole).replace("{0}", whole)

    (found,) = validate(text.encode()).findings

    assert (found.rule.id, found.message) == (rule, message)
    assert hint in (found.hint or "")


def test_a_key_behind_a_bracket_that_closes_the_table_early_is_not_to_be_written_again() -> None:
    text = json.dumps(table("1.0", 1, 8), indent=1).replace('"status"', '"x": "y"\n },\n "status"')

    found = {one.rule.id: one for one in validate(text.encode()).findings}

    assert found["HCC105"].message == '"status" is missing'
    assert found["HCC105"].hint is not None
    assert found["HCC105"].hint.startswith("remove the }")
    assert 'closes the table before "status"' in found["HCC105"].hint


@pytest.mark.parametrize(
    ("text", "what", "right"),
    [
        ("[fd80::1]", "square brackets", "fd80::1"),
        ("[fd80::1]:80", 'square brackets and the port ":80"', "fd80::1"),
        ("http://10.9.0.1", 'the scheme "http://"', "10.9.0.1"),
        ("http://10.9.0.1:80/", 'the scheme "http://" and the end "/" and the port ":80"', "10.9.0.1"),
        ("fd80::1/64", 'the netmask "/64"', "fd80::1"),
        ("10. 9.0.1", "blanks in it", "10.9.0.1"),
        ("10.9.O.1", 'the letter "O" in place of a digit', "10.9.0.1"),
        ("10-9-0-1", "other signs in place of dots", "10.9.0.1"),
        ("10,9,0,1", "commas in place of dots", "10.9.0.1"),
        ("ipaddr:10.9.0.1", 'the name "ipaddr:"', "10.9.0.1"),
        ("10.9.0.1 netmask:255.0.0.0", 'the netmask "netmask:255.0.0.0"', "10.9.0.1"),
        ("10.9.0.1.", 'the end "."', "10.9.0.1"),
    ],
)
def test_what_is_superfluous_in_an_address_is_named_with_the_right_text(
    text: str, what: str, right: str
) -> None:
    found = finding("HCC403", "device_ip", text)

    assert found.message == f'"{text}" has {what}'
    assert found.hint == f'write "{right}"'
    assert not [one for one in validate(_with_ip(right)).findings if one.rule.id == "HCC403"]


def _with_ip(text: str) -> Any:
    value = table("1.0", 1, 8)
    value["server_list"][0]["device"][1]["device_ip"] = text
    return value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0", "it has 3 numbers, an address has 4"),
        ("10.0.0.256", "256 is above 255"),
        ("10..0.1", "a number is missing between its dots"),
        ("node1", "it is a name or word"),
        ("fd80::g1", '"g" is not a hexadecimal digit'),
        ("fd80:::1", '"::" occurs more than once'),
        ("fd80:1:2", "it has 3 parts, an address has 8, or :: for those that are zero"),
    ],
)
def test_an_address_of_which_something_is_missing_says_what(text: str, why: str) -> None:
    found = finding("HCC403", "device_ip", text)

    assert found.message == f'"{text}" is not an IP address: {why}'
    assert found.right is None


EID = "000000000000002000100000dfdf0a01"


@pytest.mark.parametrize(
    ("kind", "text", "message", "hint"),
    [
        ("EID", EID[1:], "is not an EID address: it has 31 digits, 1 too few: an EID has 32", "rootinfo"),
        ("EID", f"{EID}0", "is not an EID address: it has 33 digits, 1 too many: an EID has 32", "rootinfo"),
        ("EID", f"[{EID}]", "has square brackets", f'write "{EID}"'),
        ("EID", f"0x{EID}", 'has "0x" before it', f'write "{EID}"'),
        ("EID", f"{EID[:8]}:{EID[8:]}", "has separators between its digits", f'write "{EID}"'),
        ("IPV6", "[fd80::1]", "has square brackets", 'write "fd80::1"'),
        ("IPV6", "fd80::1%eth0", 'has the interface "%eth0"', 'write "fd80::1"'),
        ("IPV4", "10.0.0.1:80", 'has the port ":80"', 'write "10.0.0.1"'),
        ("IPV4", "010.0.0.1", "has leading zeros", 'write "10.0.0.1"'),
        ("IPV4", "fd80::1", "is not an IPV4 address, but an IPV6 address", 'write "addr_type": "IPV6"'),
    ],
)
def test_an_address_of_a_2_0_table_says_what_is_wrong_with_it(
    kind: str, text: str, message: str, hint: str
) -> None:
    value = table("2.0", 1, 2)
    value["rank_list"][0]["level_list"][0]["rank_addr_list"][0].update(addr_type=kind, addr=text)

    (found,) = [one for one in validate(value).findings if one.rule.id == "HCC456"]

    assert found.message == f'"{text}" {message}'
    assert hint in (found.hint or "")


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("device_id", 'write "device_id": "3", the number that no other device of the server has'),
        ("rank_id", 'write "rank_id": "11", the number that no other device has'),
    ],
)
def test_a_missing_id_is_the_one_that_no_other_device_has(key: str, hint: str) -> None:
    value = table("1.0", 2, 8)
    del value["server_list"][1]["device"][3][key]

    (found,) = validate(value).findings

    assert (found.message, found.hint) == (f'"{key}" is missing', hint)


def test_a_key_of_the_table_is_not_renamed_to_one_that_is_missing() -> None:
    value = table("1.0", 1, 8)
    del value["server_list"][0]["device"][3]["device_id"]

    (found,) = validate(value).findings

    assert found.right_key is None
    assert "rename" not in (found.hint or "")


def hints(value: Any) -> list[str]:
    """Return the hints on what HCCL refuses in a table."""
    return [one.hint or "" for one in validate(value).findings if one.rule.consequence != "forbidden"]


def changed(change: Any, *size: Any) -> Any:
    """Return a table after a change."""
    value = table(*(size or ("1.0", 2, 8)))
    change(value)
    return value


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda value: value.update(status=True), 'write "status": "completed"'),
        (lambda value: value["server_list"][1].update(server_id=None),
         "give the server an id of its own, usually the address of its host"),
        (lambda value: value["server_list"][1]["device"][2].update(rank_id="x"),
         'write "10", the rank that no device has'),
        (lambda value: value["server_list"][1]["device"][2].update(device_id="npu2"),
         'write "2", the device that the server does not list'),
        (lambda value: value["server_list"][1]["device"][2].update(rank_id=[]),
         'write "rank_id": "10", the number that no other device has'),
        (lambda value: value["server_list"][1].update(device={"device_id": "0"}),
         'write [ before its { and ] after its }: list the devices under "device"'),
        (lambda value: value["server_list"][1].update(server_id="10.0.0.1"),
         ('`hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0: if it is "192.168.0.100", '
          'write another server_id in server 2, if it is "192.168.1.100", in server 1')),
        (lambda value: value["server_list"][1].update(devices=value["server_list"][1].pop("device")),
         'rename "devices" to "device"'),
    ],
)  # fmt: skip
def test_one_damage_is_one_finding_whose_remedy_is_safe(change: Any, hint: str) -> None:
    assert hints(changed(change)) == [hint]


def test_an_address_under_a_misspelt_key_is_renamed() -> None:
    value = json.loads(json.dumps(table("1.0", 2, 8)).replace("device_ip", "DEVICE_IP"))

    assert hints(value)[:16] == ['rename "DEVICE_IP" to "device_ip"'] * 16


def test_a_table_under_a_key_is_taken_out() -> None:
    (found,) = validate({"hccl": table("1.0", 1, 8)}).findings

    assert found.message == 'not a rank table: the table is the value of "hccl"'


def test_ranks_that_go_on_from_another_table_are_one_finding() -> None:
    value = table("1.0", 1, 8)
    for device in value["server_list"][0]["device"]:
        device["rank_id"] = str(int(device["rank_id"]) + 8)

    (found,) = validate(value).findings

    assert "the ranks go from 8 to 15" in found.message
    assert (found.hint or "").endswith("number the ranks 0 to 7: each rank id is too high by 8")


def test_two_entries_that_were_joined_are_told_from_one_key_twice() -> None:
    text = json.dumps(table("1.0", 1, 8), indent=1)
    joined = re.sub(r'"rank_id": "0"\n *\},\n *\{\n', '"rank_id": "0",\n', text)

    found = [one.hint or "" for one in validate(joined.encode()).findings if one.rule.id == "HCC601"]
    (single,) = validate(text.replace('"version"', '"server_count": "1", "version"').encode()).findings

    assert all("two entries were joined" in one for one in found)
    assert single.hint == "delete one of the two keys"


@pytest.mark.parametrize(
    ("added", "hint"),
    [
        ('"status": "initializing"', 'delete the first one, "initializing" (line 1)'),
        ('"version": "1.2"', 'delete the first one (line 1) if "1.0" is right, or the second one if '),
        ('"server_list": []', "if the job uses the entries of both lists, move those of the first (line 1) "),
    ],
)
def test_a_key_that_appears_twice_with_two_values_shows_them(added: str, hint: str) -> None:
    text = json.dumps(table("1.0", 1, 8))

    (found,) = validate(f"{{{added}, {text[1:]}".encode()).findings

    assert found.rule.id == "HCC601"
    assert (found.hint or "").startswith(hint)


def test_two_entries_that_were_joined_with_a_loss_are_told_from_a_lost_entry() -> None:
    lines = json.dumps(table("1.0", 2, 8), indent=1).split("\n")
    at = next(number for number, line in enumerate(lines) if "192.168.0.102" in line)
    text = "\n".join([*lines[: at + 1], *lines[at + 5 :]])

    found = {one.rule.id: one.hint or "" for one in validate(text.encode(), product="a2").findings}

    assert found["HCC202"].startswith("two entries are joined, and what was between them is lost: from line")
    assert found["HCC601"].endswith("if an entry is missing, two entries are joined here: write both whole")


@pytest.mark.parametrize("text", ["1=92.2.27.6", "10. 192.168.0.1 =3"])
def test_digits_beside_an_address_are_perhaps_a_part_of_it(text: str) -> None:
    found = finding("HCC403", "device_ip", text)

    assert found.right is None
    assert "text with digits" in found.message
    assert "only if these digits are not a part of it" in found.hint


def test_words_beside_an_address_are_no_part_of_it() -> None:
    assert finding("HCC403", "device_ip", "address: 192.168.0.1").right == "192.168.0.1"
