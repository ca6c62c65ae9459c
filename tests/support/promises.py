"""What a version promises (docs/en/reference/promises.md), read from the package.

``python -m tests.support.promises`` writes tests/data/promises.json when a version is released: it adds what
is new, and fails if something is missing that the last release had.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.testing import CliRunner

import hccl_tools
from hccl_tools.cli import COMMANDS, cli
from hccl_tools.doctor.registry import all_checks
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.rules.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
HELD = ROOT / "tests" / "data" / "promises.json"
_TABLES = ("910a", "a2", "a3", "300i", "a5")
_REFERENCE = ROOT / "docs" / "en" / "reference"


def promised() -> dict[str, dict[str, Any]]:
    """Return what the package has now, by kind and name."""
    ids = {key: one.facts.name for key, one in all_rules().items()}
    ids |= {key: one.name for key, one in all_checks().items()}
    ids |= {key: one.name for key, one in messages().items()}
    variables = re.findall(r"`(HCCL_TOOLS_[A-Z_]+)`", (_REFERENCE / "environment.md").read_text())
    return {
        "ids": ids,
        "options": dict(_options()),
        "exit codes": dict(_exit_codes()),
        "variables": dict.fromkeys(sorted({*variables}), ""),
        "JSON keys": dict(_keys()),
        "library": dict.fromkeys(hccl_tools.__all__, ""),
        "tables": {name: _table(*name.split()) for name in _names_of_tables()},
    }


def differences(held: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]]) -> list[str]:
    """Return what the last release had and this version has not, or has with another meaning."""
    return [
        f"{kind}: {name}: {value!r} is now {now[kind].get(name)!r}"
        for kind, values in held.items()
        for name, value in values.items()
        if now[kind].get(name) != value
    ]


def _options() -> Iterator[tuple[str, str]]:
    context = click.Context(cli, info_name="hccl-tools")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield name, ""
        yield from _of_command(name, command)


def _of_command(name: str, command: click.Command) -> Iterator[tuple[str, str]]:
    for one in command.params:
        if isinstance(one, click.Option):
            yield from ((f"{name} {word}", _kind(one)) for word in (*one.opts, *one.secondary_opts))
    if isinstance(command, click.Group):
        for below in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), below)
            assert inner is not None
            yield from _of_command(f"{name} {below}", inner)


def _kind(option: click.Option) -> str:
    if option.is_flag:
        return "flag"
    return "repeatable" if option.multiple else "value"


def _exit_codes() -> Iterator[tuple[str, str]]:
    for line in (_REFERENCE / "exit_codes.md").read_text().splitlines():
        first = line.strip("| ").split(" | ")[0]
        if line.startswith("| ") and first[:1].isdigit():
            yield first, ""


def _keys() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "schemas").glob("*.json")):
        schema = json.loads(file.read_text())
        for path, kind in sorted({*_keys_of(schema, "")}):
            yield f"{file.name.partition('.')[0]} {path}", kind


def _keys_of(schema: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of keys below a schema, with their types."""
    if isinstance(schema, list):
        for one in schema:
            yield from _keys_of(one, where)
        return
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in {"properties", "$defs"} and isinstance(value, dict):
            for name, below in value.items():
                path = f"{where}/{name}" if key == "properties" else name
                if key == "properties":
                    yield path, json.dumps(below.get("type", "") if isinstance(below, dict) else "")
                yield from _keys_of(below, path)
        elif key in {"items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"}:
            yield from _keys_of(value, where)


def _names_of_tables() -> list[str]:
    return [
        f"{product} {servers}"
        for product in _TABLES
        for servers in (1, 2)
        if product != "300i" or servers == 1
    ]


def _table(product: str, servers: str) -> str:
    call = ["gen", "--simulate", product, "--servers", servers, "-o", "-"]
    done = CliRunner().invoke(cli, call, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return hashlib.sha256(done.stdout.encode()).hexdigest()


def main() -> int:
    """Write what this version promises."""
    now = promised()
    if missing := differences(json.loads(HELD.read_text()) if HELD.exists() else {}, now):
        print(*missing, sep="\n", file=sys.stderr)
        return 1
    HELD.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
