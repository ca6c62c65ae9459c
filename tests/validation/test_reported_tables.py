"""Tables and files from reports, and those on which HCCL's rank graph was run, have the right verdicts.

They are other people's files: read in place where they are at hand, never part of this repository.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hccl_tools.errors import TableError
from hccl_tools.files.inputs import Inputs
from hccl_tools.formats.topology_file import load
from hccl_tools.table.difference import compare
from hccl_tools.transform.merging import merge
from hccl_tools.transform.subsetting import subset
from hccl_tools.validation.checker import validate

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
REPORTED, FOUND = CORPUS / "tables_reported", CORPUS / "found_2"
pytestmark = pytest.mark.skipif(
    not (REPORTED.is_dir() and FOUND.is_dir()), reason="the corpus of other people's files is not at hand"
)
ALL = "910a a2 a3 a3-server 300i"
#: A file of a report, a list of products ("-" for none), and the rules that find errors; "" for no error.
EXPECTED = (
    ("01-*/node-a/*.json", f"- {ALL}", ""),
    ("01-*/node-b/*.json", f"- {ALL}", ""),
    ("01-*/merged_by_hand/*.json", f"- {ALL}", ""),
    ("05-*/*.json", "a2 a3 a3-server", "HCC302"),
    ("05-*/*.json", "- 910a", "HCC302 HCC305"),
    ("05-*/*.json", "300i", ""),
    ("06-*/*.json", "a2 a3 a3-server 300i", ""),
    ("06-*/*.json", "- 910a", "HCC308"),
    ("10-*/ranktable_as_in_doc.json", f"- {ALL} a5", "HCC101"),
    ("10-*/ranktable_no_comment.json", f"- {ALL}", "HCC105"),
    ("11-*/*.json", "- a2 a3 a3-server 300i", ""),
    ("11-*/*.json", "910a", "HCC302 HCC304 HCC308"),
    ("11-*/ranktable*.txt", f"- {ALL}", "HCC101 HCC102"),
    ("12-*/fwk_test_inline.json", f"- {ALL}", "HCC105 HCC107 HCC111"),
    ("12-*/hccl_vm_readme.json", f"- {ALL}", "HCC105 HCC111 HCC112"),
    ("12-*/pd_integers.json", f"- {ALL} a5", "HCC110"),
    ("13-*/ranktable_pd.json", f"- {ALL} a5", "HCC110"),
    ("13-*/built_by_connector.json", "- a2 a3 a3-server 300i", ""),
    ("22-*/jobstart_hccl_v01.json", "a2 a3 a3-server 300i", ""),
    ("22-*/jobstart_hccl_v01.json", "- 910a", "HCC308"),
    ("22-*/made_from_task_index.json", "a2 a3 a3-server 300i", "HCC203"),
    ("23-*/*.json", f"- {ALL}", ""),
    ("28-*/*.json", f"- {ALL}", "HCC105 HCC107 HCC111"),
    ("31-*/expected_2p.json", f"- {ALL}", ""),
    ("31-*/hccl_8p.json", f"- {ALL}", ""),
    ("31-*/ranktable_pd.json", f"- {ALL} a5", "HCC110"),
    ("32-*/guide_910_template_*.json", "a2 a3-server 300i", ""),
    ("32-*/guide_910_template_*.json", "- 910a", "HCC308"),
    ("32-*/guide_a2_1.json", "a2 a3-server", ""),
    ("32-*/guide_a3_1.json", "- a3", ""),
    ("32-*/guide_a3_2.json", "a3 a3-server", ""),
    ("32-*/guide_300i_duo_1.json", "300i a2", ""),
    ("32-*/guide_a5_1.json", "- a5", "HCC110"),
    ("32-*/guide_a5_[23].json", "- a5", ""),
)
#: What is found besides errors.
ADVICE = (
    ("06-*/*.json", "300i", "HCC613"),
    ("11-*/*.json", "a3", "HCC610"),
    ("13-*/built_by_connector.json", "a3", "HCC638"),
    ("32-*/guide_300i_duo_1.json", "300i", "HCC613"),
)
#: What HCCL's rank graph says of a file, and the rules that say it: the parser accepts all of them.
RANK_GRAPH = {
    "a5_empty_level_list": "HCC463",
    "a5_gap_0_3": "",
    "a5_gap_0_7": "",
    "a5_layer0_1DMESH": "HCC464",
    "a5_layer0_clos": "HCC462",
    "a5_layer0_two_types": "HCC465",
    "a5_layer1_1DMESH": "HCC464",
    "a5_layer1_2DMESH": "HCC464",
    "a5_layer1_A2_AX_SERVER": "HCC464",
    "a5_layer1_A3_SERVER": "HCC464",
    "a5_layer1_TOPO_FILE_DESC": "HCC464",
    "a5_local_id_not_in_topology": "",  # Only the topology file of the host shows it.
    "a5_no_layer0": "HCC463",
    "a5_ok": "",
    "a5_rank1_no_layer0": "HCC463",
}


def rows() -> list[dict[str, str]]:
    with (FOUND / "found.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize(("pattern", "products", "rules"), EXPECTED)
def test_a_reported_file(pattern: str, products: str, rules: str) -> None:
    files = sorted(REPORTED.glob(pattern))
    assert files
    for file in files:
        for product in products.split():
            report = validate(file, product=None if product == "-" else product)
            found = {one.rule.id for one in report.errors}

            assert (file.name, product, " ".join(sorted(found))) == (file.name, product, rules)


def test_each_reported_table_is_judged() -> None:
    judged = {file for pattern, *_ in EXPECTED for file in REPORTED.glob(pattern)}

    assert set(REPORTED.rglob("*.json")) - judged == set()


@pytest.mark.parametrize(("pattern", "product", "rule"), ADVICE)
def test_advice_on_a_reported_file(pattern: str, product: str, rule: str) -> None:
    (file,) = REPORTED.glob(pattern)

    assert rule in {one.rule.id for one in validate(file, product=product).warnings}


def test_a_guide_that_forbids_only_on_the_assumed_product_names_another() -> None:
    for pattern in ("06-*/*.json", "22-*/jobstart*.json", "32-*/guide_a2_1.json", "32-*/guide_a3_2.json"):
        (file,) = REPORTED.glob(pattern)
        report = validate(file)

        assert (report.verdict, report.accepted_on) == ("accepted", "a2")


def test_two_tables_of_one_loopback_address_are_not_merged() -> None:
    inputs = Inputs()
    tables = [
        (file.parent.name, inputs.table(str(file))) for file in sorted(REPORTED.glob("01-*/node-*/*.json"))
    ]

    with pytest.raises(TableError, match=r'server_id "127\.0\.0\.1" is in node-a and node-b'):
        merge(tables)


@pytest.mark.parametrize(
    ("whole", "part", "servers", "devices"),
    [
        ("31-*/hccl_8p.json", "31-*/expected_2p.json", None, [2, 3]),
        (
            "23-*/jobstart_hccl.json",
            "23-*/ranktable_w1w2_expected.json",
            ["192.168.20.12", "192.168.20.13"],
            None,
        ),
    ],
)
def test_a_part_that_was_made_by_hand_is_what_subset_makes(
    whole: str, part: str, servers: list[str] | None, devices: list[int] | None
) -> None:
    first, second = (Inputs().table(str(next(REPORTED.glob(name)))) for name in (whole, part))

    assert compare(subset(first, servers=servers, devices=devices), second).is_empty


@pytest.mark.parametrize("name", RANK_GRAPH)
def test_what_the_rank_graph_says(name: str) -> None:
    (row,) = (row for row in rows() if row["file"] == f"{name}.json")
    report = validate(FOUND / row["file"], product=row["product"])
    consequences = {one.rule.consequence for one in report.errors}

    assert report.verdict == "accepted"
    assert " ".join(sorted({one.rule.id for one in report.errors})) == RANK_GRAPH[name]
    if "rank graph REJECT" in row["HCCL's verdict"] or " / REJECT" in row["HCCL's verdict"]:
        assert consequences == {"fails-later"} or name == "a5_local_id_not_in_topology"
    else:
        assert consequences <= {"forbidden"}


def test_each_table_of_the_rank_graph_is_judged() -> None:
    assert {file.stem for file in FOUND.glob("a5_*.json")} == set(RANK_GRAPH)


def test_a_variable_that_hccl_refuses() -> None:
    with_env = [row for row in rows() if row["env"]]

    assert len(with_env) == 7
    for row in with_env:
        name, _, value = row["env"].partition("=")
        report = validate(FOUND / row["file"], product=row["product"], env={name: value})

        assert [one.rule.id for one in report.errors] == ["HCC116"]
        assert report.verdict == "refused"


def test_topology_files_with_and_without_net_layer_are_read() -> None:
    for name, layers in (("topo_2npu.json", {0}), ("topo_2npu_without_net_layer.json", {None})):
        assert layers <= {edge.layer for edge in load(str(FOUND / name)).edges}
        (finding,) = validate(FOUND / name).errors
        assert finding.message.startswith("not a rank table: it is the topology file")


def test_a_table_of_hccl_vm_is_accepted() -> None:
    for file in sorted((FOUND / "hccl_vm").glob("*.json")):
        assert validate(file, product="a5").findings == ()
