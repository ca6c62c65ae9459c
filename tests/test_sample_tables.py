"""The sample tables are what ``gen --simulate`` makes, and ``validate`` finds no error in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.files import outputs
from hccl_tools.formats import MODULES
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.table.products import PRODUCTS
from hccl_tools.transform import generation
from hccl_tools.validation import checker

FOLDER = Path(__file__).parent.parent / "sample_tables"
#: File -> the options of ``gen`` that make it, and the product it is for.
ONE_MACHINE = {
    "hccl_1p_0_127.0.0.1.json": ["--simulate", "910a", "--devices", "0"],
    "hccl_2p_01_127.0.0.1.json": ["--simulate", "910a", "--devices", "0-1"],
    "hccl_4p_4567_127.0.0.1.json": ["--simulate", "910a", "--device_num", "[4,8)"],
    "hccl_8p_01234567_127.0.0.1.json": ["--simulate", "910a", "--device_num", "[0,8)"],
    "910a_group_list.json": ["--simulate", "910a", "--format", "group_list", "-o", "910a_group_list.json"],
    "a2_1.0.json": ["--simulate", "a2", "-o", "a2_1.0.json"],
    "a3_1.2.json": ["--simulate", "a3", "-o", "a3_1.2.json"],
    "a3-server_1.0.json": ["--simulate", "a3", "--product", "a3-server", "-o", "a3-server_1.0.json"],
    "a5_2.0.json": ["--simulate", "a5", "-o", "a5_2.0.json"],
    "300i_1.0.json": ["--simulate", "300i", "-o", "300i_1.0.json"],
}


@pytest.mark.parametrize("name", ONE_MACHINE)
def test_one_machine(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hccl_tools", "gen", *ONE_MACHINE[name]]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)

    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_two_machines() -> None:
    hosts = [survey(SurveyRequest(simulate=f"910a:{n}", server_ip=f"10.0.0.{n}")) for n in (1, 2)]
    table = generation.table(hosts)

    assert outputs.table_text(table) == (FOLDER / generation.file_name(table)).read_text()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_no_error_for_its_product(path: Path) -> None:
    product = path.name.split("_")[0]
    report = checker.validate(path, product=product if product in PRODUCTS else "910a")

    assert report.ok
    assert report.verdict == "accepted"


def test_there_is_one_for_every_product_and_every_format_that_gen_makes() -> None:
    made = [checker.validate(path).format for path in FOLDER.glob("*.json")]
    products = {options[options.index("--simulate") + 1] for options in ONE_MACHINE.values()}

    assert set(made) == set(MODULES)
    assert products | {"a3-server"} == set(PRODUCTS)


def test_the_readme_has_a_line_for_each() -> None:
    readme = (FOLDER / "README.md").read_text()

    assert [path.name for path in FOLDER.glob("*.json") if f"`{path.name}`" not in readme] == []
