"""The examples of the rules as sentences: ``Base:``, ``Example:`` and ``Instead:`` on a documentation page.

The docstrings have steps that a test executes (``tests/support/rule_examples.py`` lists them); this module
turns them into text for readers.
"""

from __future__ import annotations

import re

from hccl_tools.notation.phrases import count
from hccl_tools.table.products import PRODUCTS

_STEPS = (
    (r"table", "the table unchanged"),
    (r"base (.+)", "{0}"),
    (r"file (.+)", "a file called {0}"),
    (r"size (\d+)", "a file of {0:,} bytes, blanks not counted"),
    (r"levels (\d+)", "a file of {0:,} nested lists"),
    (r"product (.+)", "product {0}"),
    (r"env (.+)", "{0} in the job's environment"),
    (r"remove (.+)", "no {0}"),
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


def lines(steps: str) -> list[str]:
    """Return an example with one line per step."""
    if steps.startswith("text "):
        return [steps.removeprefix("text ")]
    return [_line(step.strip()) for step in steps.split("; ")]


def base(text: str) -> str:
    """Return the description of the table that an example changes.

    >>> base("1.2 2x8 300i")
    'a 1.2 table of 2 servers with 8 devices each, product 300i'
    """
    facts, _, variables = text.partition("env ")
    size = re.search(r"(\d+)x(\d+)", facts)
    pods = re.search(r"pods (\d+)", facts)
    kind = next((fact for fact in facts.split() if fact in ("1.0", "1.2", "2.0", "group_list", "lab")), None)
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
                return base(found[1])
            values = [
                int(part) if pattern.startswith(("size", "levels")) else part for part in found.groups()
            ]
            return sentence.format(*values)
    return step
