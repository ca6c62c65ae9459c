"""HCCL's variables are read as HCCL reads them (externalinput.cc)."""

from __future__ import annotations

import pytest

from hccl_tools import validate
from hccl_tools.rules import job_variables
from hccl_tools.table.products import PRODUCTS
from tests.support.tables import table

ROCE, PCIE = "HCCL_INTRA_ROCE_ENABLE", "HCCL_INTRA_PCIE_ENABLE"
EXPANSION, RETRY = "HCCL_OP_EXPANSION_MODE", "HCCL_OP_RETRY_ENABLE"


def without_addresses() -> dict[str, object]:
    value = table("1.0", 1, 2)
    for device in value["server_list"][0]["device"]:
        del device["device_ip"]
    return value


@pytest.mark.parametrize(
    ("env", "needed"),
    [
        ({}, False),
        ({ROCE: "1"}, True),
        ({ROCE: "01"}, True),
        ({ROCE: "0000000001"}, True),
        ({ROCE: "1", PCIE: "0"}, True),
        ({ROCE: "0", PCIE: "1"}, False),
        ({ROCE: "0", PCIE: "0"}, False),
        ({ROCE: "-0", PCIE: "1"}, False),
        ({PCIE: "1"}, False),
    ],
)
def test_roce_on_one_server_needs_addresses(env: dict[str, str], needed: bool) -> None:
    report = validate(without_addresses(), env=env)

    assert {finding.rule.id for finding in report.findings} == ({"HCC401"} if needed else set())


@pytest.mark.parametrize(
    "env",
    [
        {ROCE: "0"},
        {PCIE: "0"},
        {ROCE: ""},
        {ROCE: "", PCIE: "1"},
        {ROCE: "-"},
        {ROCE: "-1"},
        {ROCE: "2"},
        {ROCE: " 1"},
        {ROCE: "+1"},
        {ROCE: "true"},
        {ROCE: "00000000001"},
        {ROCE: "\uff11"},
        {ROCE: "1", PCIE: "1"},
        {ROCE: "1", PCIE: ""},
        {EXPANSION: ""},
        {RETRY: "L2"},
        {RETRY: "L2:1,"},
        {RETRY: ",L2:1"},
        {RETRY: "L1:0,,L2:1"},
        {RETRY: "L2:1,L2:1"},
        {RETRY: "L3:1"},
        {RETRY: "L2:2"},
        {RETRY: "L2:1\t"},
    ],
    ids=str,
)
def test_values_that_no_job_starts_with(env: dict[str, str]) -> None:
    report = validate(table("1.0"), env=env)

    assert [finding.rule.id for finding in report.findings] == ["HCC116"]
    assert report.verdict == "refused"
    assert not any(finding.rule.id == "HCC116" for finding in validate(table("2.0"), env=env).findings)


@pytest.mark.parametrize("mode", ["ai_cpu", "AI_CPU ", "HOST", "CCU_MS"])
def test_modes_by_reader(mode: str) -> None:
    def refused(version: str) -> bool:
        report = validate(table(version), env={EXPANSION: mode})
        return report.verdict == "refused"

    assert refused("1.0") == (mode != "HOST")
    assert refused("2.0") == (mode != "CCU_MS")


@pytest.mark.parametrize("retry", ["", " ", "L2:1", "L0:0, L1:0, L2:1", "L 2 : 1"])
def test_retry_levels_with_blanks(retry: str) -> None:
    assert list(job_variables.problems({RETRY: retry}, PRODUCTS["a2"])) == []


@pytest.mark.parametrize("mode", [None, "AI_CPU", "AICPU_CacheDisable", "AIV", "HOST", "HOST_TS"])
@pytest.mark.parametrize("product", ["910a", "a2", "a3", "a3-server"])
def test_an_a3_reads_backup_addresses_unless_expansion_is_on_the_host(mode: str | None, product: str) -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["device"][0]["backup_device_ip"] = "1.2.3"
    env = {RETRY: "L2:1"} if mode is None else {RETRY: "L2:1", EXPANSION: mode}
    found = {finding.rule.id for finding in validate(value, product=product, env=env).findings}

    assert ("HCC441" in found) == (product.startswith("a3") and mode != "HOST")


def test_a_refused_variable_comes_before_a_status_that_hangs() -> None:
    value = {**table("1.0"), "status": "initializing"}

    assert validate(value, env={ROCE: "0"}).verdict == "refused"
