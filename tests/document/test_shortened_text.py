"""Text that a mail or chat program has changed is named as such, wherever the parser stops in it."""

from __future__ import annotations

import json
import quopri

import pytest

from hccl_tools.document.document import Document
from hccl_tools.document.explanation import explained
from tests.support.tables import table

VALUE = table("1.0", 2, 8)


def told(text: str) -> tuple[str, str]:
    problem = explained(Document.parse(text.encode(), "x"))
    assert problem is not None
    return problem.message, problem.hint or ""


@pytest.mark.parametrize("shift", range(0, 40, 3))
def test_quoted_printable_is_named_whether_or_not_the_first_line_breaks_in_a_string(shift: int) -> None:
    text = json.dumps({"note": "x" * shift, **VALUE})

    message, hint = told(quopri.encodestring(text.encode()).decode())

    assert message.startswith("the text is quoted-printable, as a mail is sent: ")
    assert hint.startswith("decode it")
    assert "python3 -I -m quopri -d < OLD > NEW" in hint


def test_a_table_that_is_not_encoded_keeps_its_message() -> None:
    assert "quoted-printable" not in told(json.dumps(VALUE, indent=1).replace(":", "=\n", 1))[0]


@pytest.mark.parametrize(
    "marker",
    [
        "... (3742 more characters)",
        "... (message truncated)",
        "[truncated]",
        "...",
        "\u2026",
        "Show more",
        "(snip)",
        "... (46 devices omitted)",
    ],
)
@pytest.mark.parametrize("inside", ['"rank_id": "1', '"device_ip": "192.168', '"device_id": "1"'])
def test_a_text_that_was_shortened_lacks_its_end(marker: str, inside: str) -> None:
    text = json.dumps(VALUE, indent=1)
    cut = text[: text.index(inside, len(text) // 2) + len(inside)]

    message, hint = told(f"{cut}\n{marker}\n")

    assert message.startswith("the end of the file is missing: it ends inside the entry of ")
    assert message.endswith(f"; the last line stands for the rest: {marker}")
    assert hint.startswith("copy the complete text again")
    assert "write" not in hint
