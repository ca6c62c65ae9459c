"""The wheel, the source distribution and the archives work without the checkout, in an empty environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

from tests.suite import matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
#: With the build backend of this environment: an isolated build would download one.
BUILD = (sys.executable, "-m", "build", "--no-isolation")
SCHEMAS = {f"hccl_tools/schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")}
LAUNCHERS = {
    f"hccl_tools/launchers/{path.name}"
    for pattern in ("*.sh", "*.sbatch")
    for path in (ROOT / "launchers").glob(pattern)
}

COMMIT = "0123abcd" * 5
VERSION = "0.2.0+g0123abcd"
CHINESE = {str(path.relative_to(ROOT)) for path in (ROOT / "hccl_tools" / "zh").glob("*.txt")}
PAGES = {
    f"hccl_tools/{path.relative_to(ROOT)}"
    for language in ("en", "zh")
    for path in (ROOT / "docs" / language).rglob("*.md")
}
PAGE = {str(path.relative_to(ROOT)) for path in (ROOT / "hccl_tools" / "show" / "picture" / "page").iterdir()}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheel and sdist, built from a copy so that the checkout stays as it is."""
    folder = tmp_path_factory.mktemp("distributions")
    source = folder / "source"
    leave_out = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info", "log", "__pycache__")
    shutil.copytree(ROOT, source, symlinks=True, ignore=leave_out)
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text(f"{COMMIT}\n")
    run([*BUILD, "--outdir", str(folder / "dist"), str(source)])
    return folder / "dist"


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment that holds the wheel and its dependencies, nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    run([sys.executable, "-m", "venv", str(folder)])
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (wheel,) = distributions.glob("*.whl")
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)])
    for name in dependencies("hccl-tools") - {"hccl-tools"}:
        copy_installed(name, packages)
    return folder / "bin"


def dependencies(name: str) -> set[str]:
    """The distributions that one needs without its extras, itself included."""
    found: set[str] = set()
    missing = {name}
    while missing:
        found |= missing
        wanted = [Requirement(text) for one in missing for text in metadata.requires(one) or ()]
        missing = {
            one.name for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})
        } - found
    return found


def copy_installed(name: str, packages: Path) -> None:
    """Copy a distribution from this environment: the tests need no network."""
    for file in metadata.files(name) or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)


def run(argv: Sequence[str], *, code: int = 0, **options: Any) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600, **options)
    assert done.returncode == code, f"{argv}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


def test_the_wheel_holds_code_and_data_and_nothing_else(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert wheel.name == f"hccl_tools-{VERSION}-py3-none-any.whl"
    assert SCHEMAS | LAUNCHERS | PAGE | PAGES | CHINESE | {"hccl_tools/py.typed"} <= names
    assert {name.split("/")[0] for name in names} == {"hccl_tools"}
    assert {name for name in names if name.startswith("hccl_tools/docs/")} == PAGES
    assert {name for name in names if name.endswith(".py")} == {
        str(path.relative_to(ROOT)) for path in (ROOT / "hccl_tools").rglob("*.py")
    }


def test_the_sdist_can_be_built_from(distributions: Path, tmp_path: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    run(["tar", "--extract", "--file", str(sdist), "--directory", str(tmp_path)])
    (source,) = tmp_path.iterdir()

    run([*BUILD, "--wheel", "--outdir", str(tmp_path / "dist"), str(source)])

    (again,) = (tmp_path / "dist").glob("*.whl")
    (first,) = distributions.glob("*.whl")
    assert again.name == first.name  # with the commit, although there is no .git any more
    with zipfile.ZipFile(again) as one, zipfile.ZipFile(first) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_the_sdist_is_the_whole_project(distributions: Path) -> None:
    """What git knows is in it, so that its Makefile, its tests and the links of its README work."""
    (sdist,) = distributions.glob("*.tar.gz")
    names = run(["tar", "--list", "--file", str(sdist)]).splitlines()
    found = {name.partition("/")[2] for name in names if not name.endswith("/")}
    folders = (
        ".ci",
        "benchmarks",
        "docs",
        "examples",
        "hccl_tools",
        "launchers",
        "sample_tables",
        "schemas",
        "tests",
    )
    kept = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file()]
    wanted = {str(path.relative_to(ROOT)) for path in kept if "__pycache__" not in path.parts}
    wanted |= {
        "Makefile",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "LICENSE",
        "setup.py",
    }

    assert wanted - found == set()
    assert not any(name.endswith(".pyc") for name in found)


def test_the_source_is_not_changed_by_a_build(distributions: Path) -> None:
    assert '\n_BUILT = ""\n' in (distributions.parent / "source" / "hccl_tools" / "version.py").read_text()


def test_an_archive_of_the_package_finds_its_data(installed: Path, tmp_path: Path) -> None:
    """Python runs a zip file without unpacking it; the packages are pure, and there is no site-packages."""
    (packages,) = installed.parent.glob("lib/python*/site-packages")
    archive = tmp_path / "hccl-tools.pyz"
    with zipfile.ZipFile(archive, "w") as written:
        for path in sorted(file for name in ("hccl_tools", "click") for file in (packages / name).rglob("*")):
            if path.suffix != ".pyc":
                written.write(path, str(path.relative_to(packages)))
        written.writestr("__main__.py", "from hccl_tools.__main__ import main\nmain()\n")

    def hccl_tools(*args: str) -> str:
        argv = [sys.executable, "-I", "-S", str(archive), *args]
        return run(argv, cwd=tmp_path, env={"PATH": os.defpath, "HOME": str(tmp_path)})

    (tmp_path / "train.py").write_text("")
    hccl_tools("gen", "--simulate", "910a", "-o", "t.json")
    emitted = [
        hccl_tools("launch", "--rank-table", "t.json", "--cpu", "--emit", name, "train.py")
        for name in ("rank_loop", "slurm", "mpirun")
    ]

    assert hccl_tools("--version") == f"hccl-tools {VERSION}\n"
    assert json.loads(hccl_tools("schema", "1.0"))["title"]
    assert "= 中文: 两个设备的 rank_id 相同。" in hccl_tools("rules", "HCC203", "--lang", "zh")
    assert "# 教程" in hccl_tools("guide", "tutorial", "--lang", "zh")
    assert all(text.startswith("#!/usr/bin/env bash") for text in emitted)
    # The archive is sent to the hosts in a smaller one, whose version is compared.
    gathered = hccl_tools(
        "gen", "--simulate", "910a", "--hosts", "a,b", "--via", "env HOST={host}", "-o", "-"
    )
    assert json.loads(gathered)["server_count"] == "2"


def test_one_file_for_hosts_without_pip(installed: Path, tmp_path: Path) -> None:
    """``make pyz`` builds it with shiv, which unpacks what is compiled."""
    pytest.importorskip("shiv", reason="shiv is not installed")
    (packages,) = installed.parent.glob("lib/python*/site-packages")
    archive = tmp_path / "hccl-tools.pyz"
    options = ["--site-packages", str(packages), "--console-script", "hccl-tools"]
    run([sys.executable, "-m", "shiv", *options, "--output-file", str(archive)])
    env = {"PATH": os.defpath, "HOME": str(tmp_path), "SHIV_ROOT": str(tmp_path / "unpacked")}

    def hccl_tools(*args: str, code: int = 0) -> str:
        return run([sys.executable, "-I", "-S", str(archive), *args], code=code, cwd=tmp_path, env=env)

    (tmp_path / "t.json").write_text('{"version": "1.0", "server_list": [{"device": 1}]}')
    findings = json.loads(hccl_tools("validate", "-f", "json", "t.json", code=1))["files"][0]["findings"]
    hccl_tools("gen", "--simulate", "910a", "-o", "t.json", "--force")
    (tmp_path / "train.py").write_text("print('trained')\n")
    trained = hccl_tools(
        "launch",
        "--rank-table",
        "t.json",
        "--cpu",
        "--start",
        "table",
        "--python",
        sys.executable,
        "train.py",
    )

    assert "/server_list/0/device" in [one["pointer"] for one in findings]
    assert trained == "trained\n"


def test_the_installed_wheel_makes_checks_and_plans_from_a_table(installed: Path, tmp_path: Path) -> None:
    env = {"PATH": f"{installed}{os.pathsep}{os.defpath}", "HOME": str(tmp_path)}
    (tmp_path / "train.py").write_text("print('never started')\n")

    def hccl_tools(*args: str, code: int = 0) -> Any:
        return json.loads(run([str(installed / "hccl-tools"), *args], code=code, cwd=tmp_path, env=env))

    made = hccl_tools("gen", "--simulate", "910a", "--device_num", "[4,8)", "-o", "-")
    (tmp_path / "table.json").write_text(json.dumps(made))
    (tmp_path / "broken.json").write_text(json.dumps({**made, "server_list": "none"}))
    checked = hccl_tools("validate", "-f", "json", "table.json")
    broken = hccl_tools("validate", "-f", "json", "broken.json", code=1)
    run([str(installed / "hccl-tools"), "show", "table.json", "-o", "topo.html"], cwd=tmp_path, env=env)
    plan = hccl_tools("launch", "--rank-table", "table.json", "--cpu", "--dry-run=json", "train.py")

    assert [device["device_id"] for device in made["server_list"][0]["device"]] == ["4", "5", "6", "7"]
    assert checked["files"][0]["verdict"] == "accepted"
    assert broken["files"][0]["findings"][0]["pointer"] == "/server_list"
    assert [rank["environment"]["DEVICE_ID"] for rank in plan["processes"]] == ["4", "5", "6", "7"]
    assert (tmp_path / "topo.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("version", [(3, minor) for minor in range(10, 15)], ids=lambda one: f"3.{one[1]}")
def test_the_wheel_runs_on_each_python_that_is_here(
    installed: Path, tmp_path: Path, version: tuple[int, int]
) -> None:
    """``make matrix`` installs it, with its dependencies; here click alone is beside it, which is pure."""
    python = matrix.interpreters().get(version)
    if python is None:
        pytest.skip(f"Python 3.{version[1]} is not installed")
    (packages,) = installed.parent.glob("lib/python*/site-packages")
    for name in ("hccl_tools", "click"):
        shutil.copytree(packages / name, tmp_path / "packages" / name)
    (tmp_path / "train.py").write_text("import os\nprint('rank', os.environ['RANK_ID'])\n")
    start = "import sys; sys.path.insert(0, 'packages'); from hccl_tools.__main__ import main; main()"

    def hccl_tools(*args: str) -> str:
        return run([python, "-I", "-c", start, *args], cwd=tmp_path, env={"PATH": os.defpath})

    hccl_tools("gen", "--simulate", "910a", "--device_num", "[0,4)", "-o", "table.json")
    hccl_tools("launch", "--rank-table", "table.json", "--cpu", "--python", python, "train.py")

    assert "HCCL accepts this table" in hccl_tools("validate", "table.json")
    assert "ended" in hccl_tools("jobs")
    assert (tmp_path / "log/latest/rank_3.log").read_text() == "rank 3\n"
