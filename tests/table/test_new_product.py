"""A new row of the table of products is all that a new product needs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.hosts import StandInHost, make_host

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

#: Each test starts processes.
pytestmark = pytest.mark.slow

#: The command line in a process whose table has one more row.
PROGRAM = """
from hccl_tools.table.products import PRODUCTS, Product, SimulatedMachine
PRODUCTS["x9"] = Product(
    "x9", "Atlas X9 (Ascend 999)", 12, chips=("999*",), machines=("900 X9",), npu_smi_names=("AscendX",),
    pci_ids=("d9ff",), simulated=SimulatedMachine(6, first_address=20), default_format="1.2",
    super_pods=True, dies_per_npu=2, even_servers=True, single_server=True,
)
from hccl_tools.__main__ import main
main()
"""


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    return make_host(tmp_path, tools=())


@pytest.fixture
def run(host: StandInHost) -> Run:
    """Run ``hccl-tools`` on the host."""

    def run(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *args],
            check=False, capture_output=True, text=True, timeout=120,
            cwd=host.work, env=host.environ(**environ),
        )  # fmt: skip

    return run


def test_its_simulated_machine(run: Run) -> None:
    done = run("gen", "--simulate", "x9:2", "-o", "-")
    made = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert made["version"] == "1.2"
    devices = made["server_list"][0]["device"]
    assert [one["device_ip"] for one in devices] == [f"192.168.2.{20 + number}" for number in range(6)]
    assert devices[5]["super_device_id"] == str(1 << 22 | 2 << 18 | 1 << 16 | 5)
    assert made["super_pod_list"][0]["super_pod_id"] == "0"


@pytest.mark.parametrize("name", ["x9", "X9", "Ascend 9991", "atlas-900-x9", "Atlas 900 X9 SuperPoD"])
def test_its_names(run: Run, name: str) -> None:
    run("gen", "--simulate", "x9", "-o", "table.json")

    done = run("validate", "table.json", "--product", name)
    assert done.returncode == 0, done.stdout
    assert "product x9 (" in done.stdout
    assert "product x9 (" in run("validate", "table.json", HCCL_TOOLS_PRODUCT=name).stdout


def test_its_rules(run: Run, host: StandInHost) -> None:
    for number in (1, 2):
        run("gen", "--simulate", f"x9:{number}", "--devices", f"0-{number}", "-o", f"{number}.json")
    run(
        "merge",
        "1.json",
        "2.json",
        "--product",
        "x9",
        "-o",
        "both.json",
        "--force",
        "--ignore",
        "HCC306",
    )

    found = run("validate", "both.json", "--product", "x9", "-f", "concise").stdout

    assert "HCC306" in found
    assert "2 servers; the guide supports Atlas X9 (Ascend 999) on one server only" in found
    beyond = run("gen", "--simulate", "x9", "--devices", "12").stderr
    assert "x9" in beyond


def test_its_pci_id(run: Run, host: StandInHost) -> None:
    card = host.root / "sys/bus/pci/devices/0000:61:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text("0x19e5\n")
    (card / "device").write_text("0xd9ff\n")

    assert "x9" in found_out(run, host)
    assert "device d9ff" in found_out(run, host)


@pytest.mark.parametrize(("name", "like"), [("Ascend 9992", "910a"), ("AscendX", "a3")])
def test_its_chip_in_npu_smi(run: Run, host: StandInHost, name: str, like: str) -> None:
    host.install("npu-smi")
    devices = {"0": {"ip": "10.1.0.1", "sdid": 4}}
    host.describe({"product": like, "chip_name": name, "devices": devices})

    assert "product x9 (npu-smi info -m)" in found_out(run, host)


def found_out(run: Run, host: StandInHost) -> str:
    host.nodes([0])
    done = run(
        "gen",
        "--format",
        "1.0",
        "--server_ip",
        "10.0.0.5",
        "--hccn-conf",
        str(host.conf("address_0=10.1.0.1\n")),
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("gen", "--help"), ", x9, or a chip"),
        (("gen", "--help"), "1.2 on x9, else 1.0"),
        (("gen", "--help"), ", x9; 910a:2"),
        (("validate", "--help"), ", x9, or a chip"),
        (("gen", "--simulate", "x9:99"), ", x9; the second machine"),
        (("gen", "--product", "none"), "x9 (999)"),
    ],
)
def test_its_texts(run: Run, words: tuple[str, ...], expected: str) -> None:
    done = run(*words)

    assert expected in " ".join((done.stdout + done.stderr).split())


def test_its_completion(run: Run) -> None:
    done = run(_HCCL_TOOLS_COMPLETE="bash_complete", COMP_WORDS="hccl-tools gen --product x", COMP_CWORD="3")

    assert "plain,x9" in done.stdout


def test_its_row_of_the_page() -> None:
    program = PROGRAM.replace("from hccl_tools.__main__ import main\nmain()", "")
    program += "from tests.support.reference_pages import products; print(products())"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert "| `x9` | Atlas X9 (Ascend 999) | 999... | 900 X9 | 0 to 11 |" in done.stdout
