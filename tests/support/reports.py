"""Reports made by hand, so that what is shown does not hang on what the rules find today."""

from __future__ import annotations

from hccl_tools.diagnostics.diagnostic import (
    Consequence,
    Diagnostic,
    Path,
    Related,
    Report,
    RuleFacts,
    Verdict,
)
from hccl_tools.document.document import Document

TABLE = """\
{
    "version": "1.0",
    "server_count": "1",
    "server_list": [{
        "server_id": "节点 0",
        "device": [
        {"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"},
        {"device_id": "1", "device_ip": "192.168.1.2", "rank_id": "0"}
    ]}]
}
"""


def facts(rule: str, name: str, consequence: Consequence, code: str | None = None) -> RuleFacts:
    """Make up a rule."""
    return RuleFacts(rule, name, consequence, f"the guide, on {name}", code)


DUPLICATE_RANK = facts("HCC203", "duplicate-rank-id", "refused", "EI0014")
NO_STATUS = facts("HCC105", "status-missing", "refused")
WAITING = facts("HCC106", "status-not-completed", "hangs", "EI0004")
LATER = facts("HCC401", "address-missing", "fails-later")
FORBIDDEN = facts("HCC309", "crossed-groups", "forbidden")
ADVICE = facts("HCC601", "duplicate-key", "advice")


def rank(device: int) -> Path:
    """Return where the rank id of a device of ``TABLE`` stands."""
    return ("server_list", 0, "device", device, "rank_id")


def table(
    file: str = "table.json", *, text: str = TABLE, findings: tuple[Diagnostic, ...] | None = None
) -> Report:
    """Return a report on ``TABLE``, by default with a finding of every consequence."""
    if findings is None:
        findings = (
            Diagnostic(NO_STATUS, '"status" is missing', ("status",), 'add "status": "completed"'),
            Diagnostic(
                DUPLICATE_RANK, 'rank id "0" is used by two devices', rank(1),
                "give every device its own rank id, 0 to N-1", (Related(rank(0), "first used here"),),
            ),
            Diagnostic(WAITING, "HCCL waits", ()),
            Diagnostic(LATER, "an address fails later", rank(0)[:-1], at_key=True),
            Diagnostic(FORBIDDEN, "the guide forbids this", ("server_list", 0, "server_id"), "do otherwise"),
            Diagnostic(ADVICE, "the key stands oddly", ("server_count",), at_key=True),
        )  # fmt: skip
    errors = [one for one in findings if one.rule.severity == "error"]
    verdict: Verdict = "refused" if errors else "accepted"
    document = Document.parse(text.encode(), file)
    return Report(
        file, "1.0", 'version is "1.0"', "910a", "assumed for format 1.0", findings, verdict, document
    )  # fmt: skip


def sound(file: str = "sound.json") -> Report:
    """Return a report without findings."""
    return table(file, findings=())


def broken(data: bytes = b'{\n  "version": "1.0",\n}\n', file: str = "broken.json") -> Report:
    """Return a report on what is not valid JSON."""
    document = Document.parse(data, file)
    assert document.problem is not None
    problem = document.problem
    finding = Diagnostic(
        facts("HCC101", "broken-json", "refused", "EI0004"),
        problem.message,
        (),
        problem.hint,
        offset=problem.offset,
    )
    return Report(file, None, "not valid JSON", "910a", "assumed", (finding,), "refused", document)


def parsed() -> Report:
    """Return a report on an object that was never text."""
    finding = Diagnostic(
        DUPLICATE_RANK,
        'rank id "0" is used by two devices',
        rank(1),
        None,
        (Related(rank(0), "first used here"),),
    )
    return Report("<object>", "1.0", 'version is "1.0"', "910a", "as given", (finding,), "refused")


def many(count: int, file: str = "many.json") -> Report:
    """Return a report on a table in one line, every device of which is wrong."""
    devices = ",".join(f'{{"rank_id":"{number:05d}"}}' for number in range(count))
    text = f'{{"server_list":[{{"device":[{devices}]}}]}}'
    findings = tuple(
        Diagnostic(DUPLICATE_RANK, f"device {number} is wrong", rank(number)) for number in range(count)
    )
    return table(file, text=text, findings=findings)


def commands_of_workflow(text: str) -> list[str]:
    """Return the lines that a GitHub runner takes for commands: ``::`` begins them, or ``##[`` is in them."""
    return [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]
