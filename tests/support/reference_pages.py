"""Write the pages in docs that are made from the rules, the messages, the products and HCCL's variables.

``python -m tests.support.reference_pages`` writes docs/rules, docs/messages.md, docs/checks.md,
in docs/en/reference products.md, hccl_variables.md and commands.md, the pages on troubleshooting, and
docs/zh/codes.md.
"""

from __future__ import annotations

from pathlib import Path

from hccl_tools.doctor.pages import MEANINGS
from hccl_tools.doctor.registry import all_checks
from hccl_tools.explain.knowledge.message import KINDS
from hccl_tools.explain.knowledge.registry import hccl_codes, messages
from hccl_tools.rules.pages import CONSEQUENCES, page
from hccl_tools.rules.registry import all_rules
from hccl_tools.table.products import PRODUCTS, Product
from hccl_tools.variables.rows import ROWS, Row
from tests.support import command_pages, troubleshooting

DOCS = Path(__file__).parents[2] / "docs"
_FAMILIES = {
    "1": "File and structure",
    "2": "Ranks",
    "3": "Devices",
    "4": "Network",
    "5": "Servers and super pods",
    "6": "Advice",
    "7": "Service tables (server_group_list)",
    "8": "Endpoint files and root infos of Ascend 950",
}
_PRODUCTS = """# Products

<!-- made from the table of products by `python -m tests.support.reference_pages` -->

`--product` and `HCCL_TOOLS_PRODUCT` take a product's name, or the name of its chip or machine in any
spelling. `...` matches any ending. `gen` writes the first format; HCCL accepts all of them. If no product is
named, a table is checked for the product that has its format in the column "assumed for". "Simulated" is the
device count of `--simulate`.

| product | title | chips | machines | device ids | formats | assumed for | simulated |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


_MESSAGES = """# The messages that `explain` knows

<!-- made from the messages by `python -m tests.support.reference_pages` -->

`hccl-tools explain HCM207` shows
one with its causes, source and an example.

| id | name | says | codes | meaning | what to do |
| --- | --- | --- | --- | --- | --- |
"""


_CHECKS = """# The checks of `doctor`

<!-- made from the checks by `python -m tests.support.reference_pages` -->

`hccl-tools rules HCD202` shows one with
its source and an example. With a table, the rules of `validate --local` are checked as well.

"""


_VARIABLES = """# The variables of HCCL that refuse values

<!-- made from the table of variables by `python -m tests.support.reference_pages` -->

HCCL reads these variables at the start of a job, before the table, and refuses the job if one of them has
another value. It takes `EmptyString` as not set (except in HCCL_DEBUG_CONFIG), and Ascend 950 an empty value
as well. A number has at most 10 characters. `validate --env`, `launch` and `doctor` report such values
(HCC116, HCD307). HCCL also refuses a path that is not on the host; these commands do not check that.

| variable | HCCL accepts | products | read by |
| --- | --- | --- | --- |
"""


def products() -> str:
    """Return the text of docs/en/reference/products.md."""
    return _PRODUCTS + "".join(f"| {' | '.join(_cells(product))} |\n" for product in PRODUCTS.values())


def _cells(product: Product) -> list[str]:
    chips = [chip.replace("*", "...") for chip in product.chips]
    formats = sorted(product.formats, key=lambda name: name != product.default_format)
    return [
        f"`{product.name}`",
        product.title,
        ", ".join([*chips, *(f"SoC name `{name}`" for name in product.soc_names)]),
        ", ".join(product.machines),
        f"0 to {product.device_limit - 1}",
        ", ".join(formats),
        ", ".join(product.assumed_for),
        str(product.simulated.devices) if product.simulated else "",
    ]


def variables() -> str:
    """Return the text of docs/en/reference/hccl_variables.md."""
    rows = sorted(ROWS, key=lambda row: row.name)
    return _VARIABLES + "".join(f"| {' | '.join(_variable(row))} |\n" for row in rows)


def _variable(row: Row) -> list[str]:
    named = [f"`{name}`" for name, product in PRODUCTS.items() if product.device_type in row.devices]
    only = "" if row.only_with is None else f"; read only with {row.only_with[0]}={row.only_with[1]}"
    shown = "all" if len(named) == len(PRODUCTS) else ", ".join(named)
    return [f"`{row.name}`", row.reading.accepts + only, shown, row.source]


def _index() -> str:
    lines = [
        "# The rules", "",
        "<!-- made from the rules by `python -m tests.support.reference_pages` -->", "",
        *(f"* **{name}**: {text}" for name, text in CONSEQUENCES.items()),
    ]  # fmt: skip
    family = ""
    for rule in all_rules().values():
        facts = rule.facts
        if facts.id[3] != family:
            family = facts.id[3]
            lines += [
                "",
                f"## {_FAMILIES[family]}",
                "",
                "| rule | name | consequence | HCCL | what |",
                "| --- | --- | --- | --- | --- |",
            ]
        what = facts.title.replace("|", "\\|")
        link, code = f"[{facts.id}]({facts.id}.md)", facts.hccl_code or ""
        lines.append(f"| {link} | {facts.name} | {facts.consequence} | {code} | {what} |")
    return "\n".join([*lines, "", *_codes(), ""])


def _codes() -> list[str]:
    return [
        "## HCCL's error codes", "",
        "`hccl-tools rules EI0014` shows a code and its rules; `hccl-tools explain` reads logs.", "",
        "| code | HCCL's name | meaning | what to do |",
        "| --- | --- | --- | --- |",
        *(f"| {code} | {one.name} | {one.meaning} | {one.remedy} |" for code, one in hccl_codes().items()),
    ]  # fmt: skip


def all_messages() -> str:
    """Return the text of docs/messages.md."""
    lines = [_MESSAGES]
    for message in messages().values():
        shown = ", ".join(dict.fromkeys(code.code for code in message.codes))
        cells = (message.id, message.name, KINDS[message.kind], shown, message.meaning, message.remedy)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n")
    return "".join(lines)


def checks() -> str:
    """Return the text of docs/checks.md."""
    lines = [_CHECKS, *(f"* **{name}**: {text}\n" for name, text in MEANINGS.items())]
    lines += ["\n| check | name | consequence | asks | what to do |\n| --- | --- | --- | --- | --- |\n"]
    for one in all_checks().values():
        remedy = one.remedy.replace("{device}", "N")
        cells = (one.id, one.name, one.consequence, one.title, remedy)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n")
    return "".join(lines)


def rules() -> dict[str, str]:
    """Return the pages of docs/rules by file name."""
    of_rules = {f"{rule_id}.md": page(rule) for rule_id, rule in all_rules().items()}
    return {"README.md": _index(), **of_rules}


def write() -> None:
    """Write all pages and remove those of rules that no longer exist."""
    wanted = rules()
    for old in (DOCS / "rules").glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (DOCS / "rules" / name).write_text(text, encoding="utf-8")
    (DOCS / "messages.md").write_text(all_messages(), encoding="utf-8")
    (DOCS / "checks.md").write_text(checks(), encoding="utf-8")
    (DOCS / "en" / "reference" / "products.md").write_text(products(), encoding="utf-8")
    (DOCS / "en" / "reference" / "hccl_variables.md").write_text(variables(), encoding="utf-8")
    (DOCS / "en" / "reference" / "commands.md").write_text(command_pages.commands(), encoding="utf-8")
    (DOCS / "en" / "troubleshooting.md").write_text(troubleshooting.english(), encoding="utf-8")
    (DOCS / "zh" / "troubleshooting.md").write_text(troubleshooting.chinese(), encoding="utf-8")
    (DOCS / "zh" / "codes.md").write_text(troubleshooting.chinese_codes(), encoding="utf-8")


if __name__ == "__main__":
    write()
