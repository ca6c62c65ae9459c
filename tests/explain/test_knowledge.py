"""The records of messages: each can be found, each example is recognised, each page reads well."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain.knowledge import pages, patterns, registry
from hccl_tools.explain.knowledge.message import FIELDS, KINDS
from hccl_tools.explain.scanner import Scanner
from hccl_tools.rules.registry import all_rules
from tests.support import reference_pages
from tests.support.bulk import for_each

if TYPE_CHECKING:
    from hccl_tools.explain.knowledge.message import Message

MESSAGES = registry.messages()
#: Codes that say no more than another message with the same code, whose words are in their example.
_SHADOWED = {"HCM006", "HCM013", "HCM014", "HCM017", "HCM018", "HCM021", "HCM023"}


@pytest.mark.slow
@for_each(MESSAGES.values(), name=lambda message: message.id)
def test_the_example_of_a_message_in_a_log_is_found(message: Message, tmp_path: Path) -> None:
    log = tmp_path / "plog.log"
    log.write_text(f"a line before\n{message.example}\na line after\n", encoding="utf-8")
    scan = Scanner().scan(str(log), 0)

    if not message.example:
        assert message.id in {
            f"HCM{number}"
            for number in (
                *range(820, 831),
                *range(833, 837),
                *range(891, 896),
                899,
                659,
                740,
                759,
                761,
                937,
                948,
                976,
                949,
                *range(940, 943),
                970,
                990,
                915,
                995,
                996,
                997,
                998,
                999,
            )
        }, "it has to come from a log"
    elif message.id == "HCM100":
        assert [event.message.kind for event in scan.events] in ([], ["fact"])
    else:
        (event,) = scan.events
        assert event.line == 2
        if message.id in _SHADOWED:
            assert set(event.codes) <= {code.code for code in event.message.codes}
        else:
            assert event.message is message


@for_each(MESSAGES.values(), name=lambda message: message.id)
def test_a_record_refers_to_what_exists(message: Message) -> None:
    assert re.fullmatch(r"HCM\d{3}", message.id)
    assert message.kind in KINDS
    assert all((message.meaning, message.remedy, message.source))
    assert set(message.explains) <= MESSAGES.keys()
    assert set(message.rules) <= all_rules().keys()
    assert set(re.compile(message.pattern).groupindex) <= FIELDS.keys()
    assert not message.meaning.endswith(".")
    assert not message.remedy.endswith(".")


@for_each(MESSAGES.values(), name=lambda message: message.id)
def test_a_pattern_takes_no_exponential_time(message: Message) -> None:
    assert patterns.problem(message.pattern) == ""


@pytest.mark.parametrize(
    "pattern", [rb"(a+)+b", rb"(?:(?:x*)y?)*z", rb"(a|b*)*c", rb"(", rb"(?P<a>(x+x+)+)y"]
)
def test_a_pattern_that_may_take_forever_is_refused(pattern: bytes) -> None:
    assert patterns.problem(pattern)


def test_ids_and_names_are_distinct() -> None:
    names = [message.name for message in MESSAGES.values() if message.id >= "HCM100"]
    counted = [
        message
        for name in registry._MODULES
        for message in import_module(f"hccl_tools.explain.knowledge.{name}").MESSAGES
    ]

    assert len(set(names)) == len(names)
    assert len(counted) == len(MESSAGES)


@pytest.mark.parametrize("code", [f"EI{number:04d}" for number in range(1, 21)])
def test_every_code_of_hccl_is_known(code: str) -> None:
    assert [message.codes[0].code for message in registry.find(code)] == [code]


@pytest.mark.parametrize("number", range(25))
def test_every_number_of_hccl_result_is_known(number: int) -> None:
    (message,) = registry.find(str(number))

    assert pages.page(message).startswith(f"# HcclResult {number} HCCL_")


@for_each(MESSAGES.values(), name=lambda message: message.id)
def test_a_page_says_what_happened_and_what_to_do(message: Message) -> None:
    page = pages.page(message)

    assert f"What to do: {message.remedy}." in page
    assert message.example in page


def test_the_page_of_messages_is_up_to_date() -> None:
    stored = (reference_pages.DOCS / "messages.md").read_text(encoding="utf-8")

    assert stored == reference_pages.all_messages(), "run: python -m tests.support.reference_pages"


def test_every_module_with_messages_is_read() -> None:
    folder = Path(registry.__file__).parent
    found = {
        path.stem
        for path in folder.glob("*.py")
        if "\nMESSAGES = (" in path.read_text() or "\nMESSAGES = tuple(" in path.read_text()
    }

    assert found == set(registry._MODULES)


def test_the_code_of_a_fault_depends_on_the_version_of_cann() -> None:
    assert "* Codes: EJ0003 (CANN 8 and older); EI0020, EI0019 (CANN 9)" in pages.page(MESSAGES["HCM207"])
