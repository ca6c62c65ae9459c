"""What all tests share: a clean environment, and test beds that CI may not leave out."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from hccl_tools.processes import linux, run_files

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest_plugins = [
    *("tests.beds.two_hosts", "tests.beds.three_hosts", "tests.beds.slurm_cluster"),
    "tests.beds.browser",
    *("tests.suite.own_network", "tests.suite.dealing", "tests.suite.order", "tests.suite.left_out"),
    "tests.support.golden",
    "tests.support.strangers",
]

# How fast examples are made depends on what else the machine does; a slow one says nothing about the code.
settings.register_profile("full", suppress_health_check=[HealthCheck.too_slow], deadline=None)
# `make check` selects this one by --hypothesis-profile.
settings.register_profile("check", settings.get_profile("full"), max_examples=20)
settings.load_profile("full")

#: Variables of the machine that the product, or a program under it, would read.
FOREIGN_PREFIXES = (
    *("ASCEND_", "FLAGS_", "GITHUB_", "GLOG_", "HCCL_", "MS_"),
    *("OMPI_", "PADDLE_", "PMIX_", "PRTE_", "SLURM_"),
)
FOREIGN_NAMES = {
    *("CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "PYTHONUNBUFFERED"),
    *("DEVICE_ID", "DEVICE_NUM", "DEVICE_TARGET", "RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE", "SERVER_ID"),
    *("LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"),
    *("HOST_IP", "KUBERNETES_SERVICE_HOST", "MA_CURRENT_HOST_IP", "OLDPWD", "POD_IP"),
}
#: Variables that choose the language of messages, beside LC_ALL.
LANGUAGE_VARIABLES = ("HCCL_TOOLS_LANG", "LANG", "LANGUAGE", "LC_MESSAGES")
BEDS_REQUIRED = os.environ.get("HCCL_TOOLS_REQUIRE_BEDS") == "1"
NEVER_LEFT_OUT_IN_CI = ("bed", "mindspore", "mpi", "paddle")
#: Fixtures that start a bed or act as another user: a test that uses one, also indirectly, is marked ``bed``.
BED_FIXTURES = {"browser", "two_hosts", "three_hosts", "slurm_cluster", "stranger"}
#: Fixtures that start jobs and wait for what happens to them: a test that uses one is marked ``slow``.
SLOW_FIXTURES = {"jobs"}

#: Makes glibc ask no name server, where each unknown name costs 10 s if that does not answer.
NO_NAME_SERVER = "attempts:0"


def pytest_configure() -> None:
    """Keep tests from waiting for a name server, and let signals end children, also under nohup.

    The language is English, also for what a session fixture runs.
    """
    for name in LANGUAGE_VARIABLES:
        os.environ.pop(name, None)
    os.environ["LC_ALL"] = "C.UTF-8"
    os.environ["RES_OPTIONS"] = NO_NAME_SERVER
    os.environ["PATH"] = without_shims(os.environ["PATH"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def without_shims(path: str) -> str:
    """Return PATH without the wrappers of pyenv and its like, as long as it has another Python.

    A wrapper costs 0.1 to 0.3 s of processor time for each Python that a test starts, and what it chooses
    depends on the user's settings.
    """
    rest = os.pathsep.join(folder for folder in path.split(os.pathsep) if Path(folder).name != "shims")
    return rest if shutil.which("python3", path=rest) else path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose fixtures show what they need."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & BED_FIXTURES:
            item.add_marker("bed")
        if fixtures & SLOW_FIXTURES:
            item.add_marker("slow")


@pytest.fixture(scope="session")
def no_configuration(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an empty directory in place of the user's ~/.config, which may have a job key."""
    return str(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def own_tmp(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the directory in which this worker has its locks of tables and the index of its runs."""
    return str(tmp_path_factory.mktemp("tmp"))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, no_configuration: str, own_tmp: str) -> None:
    """Remove what this machine sets and another does not."""
    for name in list(os.environ):
        if name.startswith(FOREIGN_PREFIXES) or name in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", no_configuration)
    monkeypatch.setenv("TMPDIR", own_tmp)


@pytest.fixture(autouse=True)
def own_children_only() -> Iterator[None]:
    """Undo that the start of a keeper makes this process inherit orphans, for which it never waits."""
    yield
    linux.become_subreaper(False)


@pytest.fixture(autouse=True)
def released_logs() -> Iterator[None]:
    """Close the directories of logs that ``explain`` holds in this process until its command ends."""
    yield
    run_files.release_logs()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where beds are required, a test that was left out for want of one has failed."""
    report = yield
    mark = next((mark for mark in NEVER_LEFT_OUT_IN_CI if item.get_closest_marker(mark)), None)
    if BEDS_REQUIRED and mark and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = (
            f"HCCL_TOOLS_REQUIRE_BEDS=1: no test marked {mark} may be left out\n{report.longrepr}"
        )
    return report
