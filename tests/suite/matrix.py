"""Try the installed tool on every Python that is here: ``python -m tests.suite.matrix``.

For each Python from 3.10 on, the wheel is installed with the newest and the lowest dependencies, and with all
optional ones but one; the archive of ``make pyz`` runs on it, too. Each time an ordinary user calls the
commands below, in an empty directory with an empty environment. A line tells how each case ended.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
OLDEST, NEWEST = (3, 10), (3, 14)
#: Extras that install on every Python and machine.
EXTRAS = ("fast", "yaml")
_NOBODY = 65534
_AS_NOBODY = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups")
_LOWEST = re.compile(r'^ +"([A-Za-z0-9_-]+)>=([0-9.]+)",?$', re.MULTILINE)


class Step(NamedTuple):
    """A call of the tool, its exit code, and a part of what it prints."""

    words: tuple[str, ...]
    code: int = 0
    printed: str = ""


#: What a first user does. The damaged table needs jsonschema, the ConfigMap needs PyYAML.
STEPS = (
    Step(("--version",), printed="hccl-tools"),
    Step(("gen", "--simulate", "910a", "--device_num", "[0,4)", "-o", "table.json"), printed="wrote"),
    Step(("validate", "table.json"), printed="no findings"),
    Step(("validate", "damaged.json"), 1, "HCC112"),
    Step(("show", "table.json"), printed="rank 0"),
    Step(("convert", "table.json", "--to", "group_list", "-o", "other.json")),
    Step(("launch", "--rank-table", "table.json", "--cpu", "train.py"), printed="4 ranks"),
    Step(("launch", "-n", "2", "--cpu", "--no-python", "false"), 1, "failed"),
    Step(("jobs",), printed="failed"),
    Step(("explain",), printed="exit code 1"),
    Step(("rules", "HCC203"), printed="HCC203"),
    Step(("guide", "tutorial"), printed="#"),
)  # fmt: skip
WITH_YAML = Step(("validate", "map.yaml"), printed="no findings")
WITHOUT_YAML = Step(("validate", "map.yaml"), 2, "yaml")
_DAMAGED = (
    '{"version": "1.0", "server_count": "1", "status": "completed", "server_list": '
    '[{"server_id": "10.0.0.1", "device": [{"device_id": 0, "device_ip": "10.0.1.1", "rank_id": "0"}]}]}'
)


def interpreters() -> dict[tuple[int, int], str]:
    """Return the path of a Python of each minor version that is here: on PATH, or one of pyenv's."""
    folders = [*os.get_exec_path(), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    found: dict[tuple[int, int], str] = {}
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        for folder in folders:
            path = f"{folder}/python3.{minor}"
            if (3, minor) not in found and os.access(path, os.X_OK) and _is_version(path, minor):
                found[3, minor] = path
    return found


def _is_version(path: str, minor: int) -> bool:
    """Return whether a Python starts and has this version: a shim of pyenv may not."""
    code = f"import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, {minor}))"
    return _succeeds(path, "-I", "-c", code)


def try_out(tool: list[str], folder: Path, *, has_yaml: bool) -> str:
    """Call the steps in an empty folder; return what went wrong, "" for nothing."""
    folder.mkdir()
    (folder / "damaged.json").write_text(_DAMAGED)
    (folder / "train.py").write_text("import os\nprint(os.environ['RANK_ID'])\n")
    table = _DAMAGED.replace('"device_id": 0', '"device_id": "0"')
    data = f"data:\n  hccl.json: '{table}'\n"
    (folder / "map.yaml").write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n{data}")
    if _is_for_all(tool):
        for path in (folder, *folder.iterdir()):
            os.chown(path, _NOBODY, _NOBODY)
        tool = [*_AS_NOBODY, *tool]
    # The ranks need a `python`, which an environment has beside the tool.
    environ = {"PATH": f"{Path(tool[-1]).parent}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    for step in (*STEPS, WITH_YAML if has_yaml else WITHOUT_YAML):
        done = subprocess.run(
            [*tool, *step.words], cwd=folder, env=environ, timeout=120,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        text = done.stdout + done.stderr
        if done.returncode != step.code or step.printed not in text or "Traceback" in done.stderr:
            return f"`{' '.join(step.words)}` ended with {done.returncode}: {text[-400:]}"
    return ""


def _is_for_all(tool: list[str]) -> bool:
    """Return whether another user may run the Python of a tool: root's may be in root's home directory."""
    called = [*_AS_NOBODY, *tool, "--version"]
    return os.geteuid() == 0 and _succeeds(*called)


def _succeeds(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _run(*words: str | Path, **options: str) -> None:
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, cwd=options.get("cwd")
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr[-2000:]}")


def _lowest(extras: tuple[str, ...]) -> list[str]:
    """Return the lowest versions that pyproject.toml allows of the dependencies and of some extras."""
    text = (ROOT / "pyproject.toml").read_text()
    listed = text[text.index("dependencies = [") :].split("]", 1)[0]
    needed = [f"{name}=={version}" for name, version in _LOWEST.findall(listed)]
    for extra in extras:
        (pair,) = re.findall(rf'^{extra} = \["([A-Za-z]+)>=([0-9.]+)"\]$', text, re.MULTILINE)
        needed.append("==".join(pair))
    return needed


def _cases() -> list[tuple[str, tuple[str, ...], bool]]:
    """Return name, extras, and whether the dependencies are the lowest, of each environment."""
    without = [(f"without {one}", tuple(name for name in EXTRAS if name != one), False) for one in EXTRAS]
    return [("newest", EXTRAS, False), ("lowest", EXTRAS, True), *without]


def _install(python: str, place: Path, listed: str, pinned: list[str]) -> str:
    """Install a wheel in a new environment, and versions; return those that have no wheel for this Python."""
    _run(python, "-m", "venv", place)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    _run(*pip, listed)
    failed = [one for one in pinned if not _succeeds(*pip, one)]
    return f", but not {' '.join(failed)}" if failed else ""


def _one_file(place: Path, wheel: Path) -> list[str]:
    """Build the archive of ``make pyz`` with the Python of an environment, and return how to call it."""
    python, file = place / "bin" / "python", place / "hccl-tools.pyz"
    _run(python, "-m", "pip", "install", "--quiet", "shiv")
    listed = f"{wheel}[{','.join(EXTRAS)}]"
    _run(place / "bin" / "shiv", "--console-script", "hccl-tools", "--output-file", file, listed)
    return [str(python), str(file)]


def _told(version: str, name: str, problem: str) -> bool:
    print(f"{version}  {name:14} {problem or 'as it should'}", flush=True)
    return bool(problem)


def main() -> None:
    """Try all cases, print a line for each, and fail if one did not end as it should."""
    found, wrong = interpreters(), 0
    with tempfile.TemporaryDirectory(prefix="matrix-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        source = folder / "source"
        leave_out = shutil.ignore_patterns(".venv*", "build", "dist", "*.egg-info", "log", "__pycache__")
        shutil.copytree(ROOT, source, symlinks=True, ignore=leave_out)
        _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source)
        (wheel,) = folder.glob("*.whl")
        for version, python in found.items():
            shown = ".".join(map(str, version))
            for name, extras, is_lowest in _cases():
                place = folder / f"{shown}-{name}".replace(" ", "-")
                lacks = _install(
                    python, place, f"{wheel}[{','.join(extras)}]", _lowest(extras) if is_lowest else []
                )
                tool = [str(place / "bin" / "hccl-tools")]
                wrong += _told(shown, name + lacks, try_out(tool, place / "work", has_yaml="yaml" in extras))
            file = _one_file(folder / f"{shown}-newest", wheel)
            wrong += _told(shown, "one file", try_out(file, folder / f"{shown}-file", has_yaml=True))
    missing = [minor for minor in range(OLDEST[1], NEWEST[1] + 1) if (3, minor) not in found]
    if missing:
        print(f"not here: {', '.join(f'3.{minor}' for minor in missing)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
