"""The command line of the shim, parsed without click or argparse, which would cost every rank 30 ms."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch.planning import interpreter, program_check
from hccl_tools.launch.planning.environment import FAMILIES
from hccl_tools.launch.planning.log_paths import parse_mode
from hccl_tools.notation.assignments import parse_assignments
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import ProgramKind

USAGE = """\
usage: mpirun -n N python -m hccl_tools.launch.rank [OPTIONS] train.py ARGS...

Start train.py as one rank of the job that mpirun has started: with RANK_ID, DEVICE_ID, RANK_SIZE and its own
log. Without a table, the ranks of a host use its visible devices in order.

  --rank-table FILE   read RANK_ID and DEVICE_ID from this table; by default $RANK_TABLE_FILE
  --no-table          use no table, even if RANK_TABLE_FILE is set
  --devices 4,5       use these devices instead of the first visible ones
  --server ID         the server_id of this host in the table
  --no-local-check    do not compare the table with this host
  --ignore-visible    allow devices outside ASCEND_VISIBLE_DEVICES
  --cpu               rehearse on the CPU; for MindSpore rank 0 then starts a scheduler
  --start METHOD      how ranks meet: table, cluster, mpi, torch; default: mpi (no table) or by framework
  --env K=V           set an environment variable of the rank
  --log-dir DIR       create the run directory in DIR; by default log
  --log-mode MODE     mode of the run directory, for example 750; by default 700 (only you)
  --tail 0,3          show these ranks on the terminal; by default 0
  --python PATH       run the rank with this Python; by default the Python of this command
  -m, --no-python     start a module (-m) or any program (--no-python) instead of a script
  --keep-mpi          keep OMPI_*, PMIX_* and PMI_* under --start table and cluster
  --keep-binding      keep this rank on the core to which mpirun has bound it
  --exec              replace this process with the program: no log, forwarded signals or report
"""

_WITH_VALUE = (
    "--rank-table", "--run-dir", "--log-dir", "--log-mode", "--start", "--devices", "--scheduler-port",
    "--master-addr", "--python", "--env", "--product", "--ignore", "--tail", "--facts", "--restart",
    "--server",
)  # fmt: skip
_FLAGS = (
    "--cpu", "--exec", "--keep-binding", "--keep-mpi", "--no-python", "--buffered", "--module", "-m",
    "--help", "-h", "--no-table", "--no-local-check", "--ignore-visible",
)  # fmt: skip


class RankOptions(NamedTuple):
    """The options of the shim, see ``USAGE``. The launcher adds ``run_dir`` and ``scheduler_port``."""

    program: tuple[str, ...]
    kind: ProgramKind = "script"
    rank_table: str | None = None
    run_dir: str | None = None
    log_dir: str = "log"
    log_mode: int = 0o700
    start: Start | None = None
    devices: list[int] | None = None
    scheduler_port: int | None = None
    master_address: str | None = None
    python: str | None = None
    environment: dict[str, str] = {}  # noqa: RUF012  (never changed: it is merged into another)
    product: str | None = None
    ignore: tuple[str, ...] = ()
    tail: str = "0"
    restart: int = 0
    cpu: bool = False
    exec: bool = False
    keep_binding: bool = False
    keep_mpi: bool = False
    buffered: bool = False
    no_table: bool = False
    server: str | None = None
    local_check: bool = True
    ignore_visible: bool = False


def of_launch(typed: Sequence[str]) -> list[str]:
    """Return the options of ``launch`` that a rank of a job without it has, too.

    ``launch`` has ranges of devices, and its ranks the run directory.
    """
    kept: list[str] = []
    is_kept = False
    for word in typed:
        if word.startswith("-"):
            name = word.partition("=")[0].replace("_", "-")
            is_kept = name in {*_WITH_VALUE, *_FLAGS} - {"--devices", "--run-dir"}
        if is_kept:
            kept.append(word)
    return kept


def parse(args: list[str]) -> RankOptions:
    """Read the shim's command line; options end at the program.

    Raises:
        UsageError: An option is unknown or has no value, or the program is missing.
        SystemExit: ``--help`` was given; the help has been printed.
    """
    values, flags, program = _split(args)
    if flags & {"-h", "--help"}:
        print(USAGE, end="")
        raise SystemExit(0)
    if not program:
        raise UsageError("PROGRAM is missing", hint="mpirun -n 2 python -m hccl_tools.launch.rank train.py")
    last = {name: given[-1] for name, given in values.items()}
    kind, named, python = _program(flags, tuple(program), last.get("--python"))
    return RankOptions(
        program=named,
        kind=kind,
        rank_table=last.get("--rank-table"),
        run_dir=last.get("--run-dir"),
        log_dir=last.get("--log-dir", "log"),
        log_mode=_log_mode(last.get("--log-mode")),
        start=_start(last.get("--start")),
        devices=_numbers(last["--devices"]) if "--devices" in last else None,
        scheduler_port=_numbers(last["--scheduler-port"])[0] if "--scheduler-port" in last else None,
        master_address=last.get("--master-addr"),
        python=python,
        environment=_environment(values.get("--env", [])),
        product=last.get("--product"),
        ignore=tuple(values.get("--ignore", ())),
        tail=last.get("--tail", "0"),
        restart=_numbers(last["--restart"])[0] if "--restart" in last else 0,
        cpu="--cpu" in flags,
        exec="--exec" in flags,
        keep_binding="--keep-binding" in flags,
        keep_mpi="--keep-mpi" in flags,
        buffered="--buffered" in flags,
        no_table="--no-table" in flags,
        server=last.get("--server"),
        local_check="--no-local-check" not in flags,
        ignore_visible="--ignore-visible" in flags,
    )


def _program(
    flags: set[str], program: tuple[str, ...], python: str | None
) -> tuple[ProgramKind, tuple[str, ...], str | None]:
    module = bool(flags & {"-m", "--module"})
    kind: ProgramKind = "module" if module else "program" if "--no-python" in flags else "script"
    if kind == "script" and not program[0].endswith(".py"):
        program_check.refuse_data(program, ("python", "-m", "hccl_tools.launch.rank"))
    if "python" not in program[0]:
        return kind, program, python
    return interpreter.split_typed_python(kind, program, python)


def _split(args: list[str]) -> tuple[dict[str, list[str]], set[str], list[str]]:
    values: dict[str, list[str]] = {}
    flags: set[str] = set()
    position = 0
    while position < len(args) and args[position].startswith("-"):
        word = args[position]
        position += 1
        if word == "--":
            break
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if name in _FLAGS and not equals:
            flags.add(name)
        elif name in _WITH_VALUE:
            if not equals:
                if position == len(args):
                    raise UsageError(f"{name} needs a value")
                value = args[position]
                position += 1
            values.setdefault(name, []).append(value)
        else:
            close = difflib.get_close_matches(name, [*_WITH_VALUE, *_FLAGS], n=1)
            raise UsageError(f"no such option {word}", hint=f"did you mean {close[0]}?" if close else None)
    return values, flags, args[position:]


def _start(text: str | None) -> Start | None:
    if text in {None, "auto"}:
        return None
    if text not in FAMILIES:
        raise UsageError(f'--start "{text}" is not one of auto, {", ".join(FAMILIES)}')
    return text


def _log_mode(text: str | None) -> int:
    if text is None:
        return 0o700
    return parse_mode(text)


def _numbers(text: str) -> list[int]:
    parts = [whole_number(part.strip()) for part in text.split(",")]
    numbers = [part for part in parts if part is not None]
    if len(numbers) < len(parts):
        raise UsageError(f'"{text}" is not a list of numbers', hint="use, for example, 0,1,2,3")
    return numbers


def _environment(assignments: list[str]) -> dict[str, str]:
    return parse_assignments(assignments, where="--env") if assignments else {}
