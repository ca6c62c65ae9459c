"""Subjects of pictures: a table as a dict, checked, and the results of other commands on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.show.picture.subject import Subject
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.show.picture.marks import Mark

JSON = dict[str, Any]


def subject(value: JSON, *, name: str = "job.json", product: str | None = None) -> Subject:
    """Return all servers of a table as a subject, without marks."""
    report = validate(json.dumps(value, indent=1).encode(), product=product)._replace(file=name)
    assert report.table is not None
    return Subject(report, report.table, range(len(report.table.servers)), date="2026-01-02")


def marked(one: Subject, marks: Sequence[Mark]) -> Subject:
    """Return a subject with marks."""
    return one._replace(marks=marks)


def record(rank: int | None, sentence: str, **others: Any) -> JSON:
    """Return a cause or a consequence as ``explain -f json`` writes it."""
    unknown: JSON = {"host": None, "device": None, "address": None, "peer": None, "table": None, "codes": []}
    at = {"file": "plog.log", "line": 7, "time": None, "text": "text"}
    return {
        **unknown, "message": "HCM217", "rank": rank, "at": at, "confidence": "named", "sentence": sentence,
        "remedy": "nothing", **others,
    }  # fmt: skip


def explained(causes: Sequence[JSON], consequences: Sequence[JSON] = ()) -> JSON:
    """Return the output of ``explain -f json``."""
    return {
        "schema_version": 1, "run": None, "ranks": None, "logs": 1, "notes": [],
        "causes": [
            {"ranks": [one["rank"]], "confidence_text": "", "reason": None, "look_at": [], **one}
            for one in causes
        ],
        "consequences": list(consequences),
    }  # fmt: skip


def doctored(*findings: JSON) -> JSON:
    """Return the output of ``doctor -f json``."""
    usual: JSON = {
        "check": "HCD202", "name": "link-down", "consequence": "stops", "message": "the link is DOWN",
        "hosts": [], "devices": [], "place": None, "remedy": None, "source": "a page", "not_examined": False,
    }  # fmt: skip
    return {
        "schema_version": 1,
        "table": None,
        "hosts": [],
        "findings": [{**usual, **one} for one in findings],
    }
