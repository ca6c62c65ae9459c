"""No simulated table has a finding: of each product, a machine, a cluster, parts of it and other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.table.products import PRODUCTS
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

SIMULATED = [product.name for product in PRODUCTS.values() if product.simulated]
#: The products without clusters.
SINGLE = {"300i"}
SERVERS = (2, 3, 4, 5, 8, 11, 12, 16, 17, 31)
#: A simulated super pod of an Ascend 950 has 16 servers, and no layer joins two super pods (HCC635).
MOST_OF_A5 = 16


def findings(name: str, product: str) -> list[tuple[str, str]]:
    return [(one.rule.id, one.message) for one in validate(name, product=product).findings]


@pytest.mark.parametrize("product", SIMULATED)
def test_each_machine_is_sound(command_line: CommandLine, product: str) -> None:
    for number in (1, 2, 9, 10, 99, 100, 255, 256):
        done = command_line("gen", "--simulate", f"{product}:{number}", "-o", "t.json", "--force")
        if done.code:
            assert "machine that can be simulated" in done.err  # A cluster has fewer machines.
            continue

        assert findings("t.json", product) == [], number


@pytest.mark.parametrize("product", [name for name in SIMULATED if name not in SINGLE])
def test_each_cluster_is_sound(command_line: CommandLine, product: str) -> None:
    for number in (one for one in SERVERS if product != "a5" or one <= MOST_OF_A5):
        done = command_line("gen", "--simulate", product, "--servers", str(number), "-o", "t.json", "--force")

        assert done.code == 0, done.err
        assert findings("t.json", product) == [], number


def test_each_division_into_super_pods_is_sound(command_line: CommandLine) -> None:
    for number, pods in ((2, 1), (2, 2), (4, 2), (6, 3), (12, 4), (16, 2)):
        words = ["--servers", str(number), "--super-pods", str(pods), "-o", "t.json", "--force"]
        done = command_line("gen", "--simulate", "a3", *words)

        assert done.code == 0, done.err
        assert findings("t.json", "a3") == [], (number, pods)


@pytest.mark.parametrize(
    ("product", "parts"), [("910a", ("0-3", "4-7", "0", "2-3")), ("a2", ("0-3", "0-6", "5"))]
)
def test_parts_of_a_machine_are_sound(
    command_line: CommandLine, product: str, parts: tuple[str, ...]
) -> None:
    for part in parts:
        done = command_line("gen", "--simulate", product, "--devices", part, "-o", "t.json", "--force")

        assert done.code == 0, done.err
        assert findings("t.json", product) == [], part


@pytest.mark.parametrize(
    ("product", "table_format", "advice"), [("910a", "group_list", []), ("a3", "1.0", ["HCC638"])]
)
def test_other_formats_of_a_cluster_are_sound(
    command_line: CommandLine, product: str, table_format: str, advice: list[str]
) -> None:
    """Version 1.0 has no super pods: a warning says so, and the table is accepted."""
    for number in (2, 4, 9):
        command_line("gen", "--simulate", product, "--servers", str(number), "-o", "t.json", "--force")
        done = command_line("convert", "t.json", "--to", table_format, "-o", "other.json", "--force")

        assert done.code == 0, done.err
        assert [rule for rule, _ in findings("other.json", product)] == advice, number


@pytest.mark.parametrize("product", [name for name in SIMULATED if name not in SINGLE])
def test_the_joined_tables_of_machines_are_sound(command_line: CommandLine, product: str) -> None:
    names = [f"{number}.json" for number in range(1, 6)]
    for number, name in enumerate(names, 1):
        assert command_line("gen", "--simulate", f"{product}:{number}", "-o", name).code == 0
    done = command_line("merge", *names, "-o", "t.json")

    assert done.code == 0, done.err
    assert findings("t.json", product) == []
