"""The documentation pages of the rules, for ``hccl-tools rules`` and ``docs/rules``.

The docstrings have steps that a test executes (``tests/support/rule_examples.py`` lists them); the pages show
them as sentences for readers.
"""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import PRODUCT_GUIDE
from hccl_tools.formats.file_kinds import OTHER_FILES
from hccl_tools.notation.phrases import count
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Rule

#: What happens to a job, by consequence.
CONSEQUENCES = {
    "refused": "HCCL refuses the table",
    "hangs": "HCCL waits for 30 minutes, then fails",
    "fails-later": "HCCL accepts the table, and the job fails later",
    "forbidden": f"{PRODUCT_GUIDE} forbids the table, but HCCL accepts it",
    "advice": "the table works, but is fragile or probably wrong",
}
#: The files, other than tables, that examples change.
_FILES = {
    "endpoints": "the endpoint file of device 0 of a host with eight devices",
    "rootinfo": "the root info of a host with eight devices",
}
_EXAMPLE = re.compile(r"^(Base|Example|Instead|Hint): (.*)$", re.MULTILINE)
#: The steps of examples as regular expressions, each with its sentence.
_STEPS = (
    (r"table", "the table unchanged"),
    (r"base (.+)", "{0}"),
    (r"file (.+)", "a file called {0}"),
    (r"size (\d+)", "a file of {0:,} bytes, blanks not counted"),
    (r"levels (\d+)", "a file of {0:,} nested lists"),
    (r"marked", "a byte order mark before the table"),
    (r"directory", "a directory with the name of the file"),
    (r"beside (\d+) (.+)", "in ub_endpoint_npu_{0}.json: {1}"),
    (r"topology (.+)", "in the topology file: {0}"),
    (r"product (.+)", "product {0}"),
    (r"env (.+)", "{0} in the job's environment"),
    (r"remove (.+)", "without {0}"),
    (r"swap (\S+) (\S+)", "{0} and {1} swapped"),
    (r"host", "this host matches the table"),
    (r"host elsewhere", "this host has other devices and addresses"),
    (r"host is (.+)", "this host's address is {0}"),
    (r"host remove /devices/(\d+)", "this host has no device {0}"),
    (r'host /devices/(\d+) = ""', "device {0} of this host has no address"),
    (r'host /devices/(\d+) = "(.+)"', "device {0} of this host has the address {1}"),
    (r'host conf (\d+) = "(.+)"', "/etc/hccn.conf gives device {0} the address {1}"),
    (r"host sdid (\d+) = (\d+)", "the driver reports SDID {1} for device {0}"),
)


def page(rule: Rule, chinese: str = "") -> str:
    """Return one rule's page in Markdown, with its Chinese line, if it is given, below the title."""
    facts, doc = rule.facts, cleandoc(rule.facts.doc)
    examples = dict(_EXAMPLE.findall(doc))
    code = f", with {facts.hccl_code}" if facts.hccl_code else ""
    in_such = f", in {example_table(examples['Base'])}" if "Base" in examples else ""
    lines = [
        f"# {facts.id} {facts.name}",
        "",
        f"{facts.title}.",
        *([f"= 中文: {chinese}"] if chinese else []),
        "",
        *([facts.why, ""] if facts.why else []),
        f"* Consequence: {facts.consequence} ({_consequence(rule)}{code})",
        f"* Severity: {facts.severity}",
        f"* Tables: {_tables(rule)}",
        f"* Source: {facts.source}",
        "",
        f"Bad{in_such}:",
        "",
        *(f"    {line}" for line in example_lines(examples["Example"])),
        "",
        "Good:",
        "",
        *(f"    {line}" for line in example_lines(examples["Instead"])),
        "",
        *([f"What to do: {examples['Hint']}", ""] if "Hint" in examples else []),
    ]
    return "\n".join(lines)


def _consequence(rule: Rule) -> str:
    """Return what happens to a job, with the names of the file and of its reader."""
    text = CONSEQUENCES[rule.facts.consequence].replace("the table", f"the {rule.facts.noun}")
    if rule.facts.consequence == "forbidden" and rule.facts.words:
        return text.replace(PRODUCT_GUIDE, rule.facts.words)
    return text.replace("HCCL", rule.facts.reader)


def _tables(rule: Rule) -> str:
    kind = rule.kind
    if kind.name in OTHER_FILES:
        return f"none; {kind.noun}s ({kind.name}), read by {kind.reader}"
    return kind.tables or ", ".join(rule.formats) or "all"


def example_lines(steps: str) -> list[str]:
    """Return an example with one line per step."""
    if steps.startswith("text "):
        return [steps.removeprefix("text ")]
    return [_line(step.strip()) for step in steps.split("; ")]


def example_table(text: str) -> str:
    """Return the description of the table that an example changes.

    >>> example_table("1.2 2x8 300i")
    'a 1.2 table of 2 servers with 8 devices each, product 300i'
    """
    if text in _FILES:
        return _FILES[text]
    facts, _, variables = text.partition("env ")
    size = re.search(r"(\d+)x(\d+)", facts)
    pods = re.search(r"pods (\d+)", facts)
    known = ("1.0", "1.2", "2.0", "group_list", "lab", SERVICE)
    kind = next((fact for fact in facts.split() if fact in known), None)
    product = next((fact for fact in facts.split() if fact in PRODUCTS), None)
    parts = [f"a {kind} table" if kind else "a table"]
    if size:
        each = " each" if size[1] != "1" else ""
        parts[0] += f" of {count(int(size[1]), 'server')} with {count(int(size[2]), 'device')}{each}"
    parts += [f"in {pods[1]} super pods"] if pods else []
    parts += [f"product {product}"] if product else []
    parts += variables.split()
    return ", ".join(parts)


def _line(step: str) -> str:
    for pattern, sentence in _STEPS:
        if found := re.fullmatch(pattern, step):
            if pattern.startswith("base"):
                return example_table(found[1])
            values = [
                int(part) if pattern.startswith(("size", "levels")) else part for part in found.groups()
            ]
            return sentence.format(*values)
    return step
