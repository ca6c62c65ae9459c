"""Slurm's srun, inside an allocation: one supervisor per node."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from types import MappingProxyType
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.engines.engine import Engine, Located
from hccl_tools.notation.phrases import named
from hccl_tools.processes import procfs
from hccl_tools.programs.environment import without_key
from hccl_tools.programs.lookup import ProgramMissingError, on_path
from hccl_tools.programs.slurm import allocated_nodes, find_srun, in_allocation, nodes_of_hosts, step_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hccl_tools.launch.engines.engine import Reach
    from hccl_tools.launch.model.plan import Plan

#: sbatch and salloc read them as they read the option.
VARIABLES = ("SBATCH_NO_KILL", "SALLOC_NO_KILL")
_OPTION = ("--no-kill", "-k")
_DIRECTIVE = "#SBATCH"
_TIMEOUT_SECONDS = 10.0


class Slurm(Engine):
    """Starts a step of the allocation."""

    name = "slurm"
    uses_allocation = True
    asks_hosts = True
    names_hosts = False
    #: Without this, srun would wait for a step of the user (`srun --pty bash`) that holds all cores.
    settings = MappingProxyType({"SLURM_OVERLAP": "1"})

    def is_inside(self, environ: Mapping[str, str]) -> bool:
        """Return whether this process is in an allocation whose srun can be used."""
        return in_allocation(environ)

    def locate(self, environ: Mapping[str, str], wanted: str | None, hosts: Sequence[str]) -> Located:  # noqa: ARG002
        """Return the srun on PATH, and the nodes of the hosts.

        Raises:
            ProgramMissingError: srun is not on PATH.
            LaunchError: The launch is outside an allocation (srun would wait in the queue), or the allocation
                does not contain the hosts.
        """
        path = find_srun(environ)
        if path is None:
            raise ProgramMissingError("--engine slurm: no srun on PATH", hint="use --engine mpirun or loop")
        if "SLURM_JOB_ID" not in environ:
            raise LaunchError(
                "--engine slurm: not in a Slurm allocation",
                hint="use `salloc -N 2` or `sbatch` first, or write a batch script with --emit slurm",
            )
        return Located(path, self.name, nodes_of_hosts(hosts, environ))

    def check_spares(self, environ: Mapping[str, str]) -> None:
        """Check that Slurm keeps this allocation when it loses a node.

        Raises:
            LaunchError: Nothing shows that the allocation was requested with ``--no-kill``.
        """
        if not is_requested(environ):
            raise LaunchError(
                "--spares: nothing shows that this allocation was requested with --no-kill, without which "
                "Slurm ends it when it loses a node",
                hint="add the line `#SBATCH --no-kill` to the batch script, or use `salloc --no-kill`; a job "
                "cannot see `sbatch --no-kill` on the command line: then also `export SBATCH_NO_KILL=1`",
            )

    def other_hosts(self, hosts: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the nodes of the allocation that are not hosts of a job."""
        own = nodes_of_hosts(hosts, environ)
        return tuple(node for node in allocated_nodes(environ) if own and node not in own)

    def on_host(self, host: str, words: Sequence[str], reach: Reach) -> list[str]:
        """Return the command line that runs a program as a step on a node of the allocation."""
        program = self.locate(reach.environ, None, ()).program
        step = step_command(program, reach.environ["SLURM_JOB_ID"], host)
        return [*step, f"--immediate={reach.seconds}", *words]

    def why_ended(self, errors: Iterable[str]) -> str:
        """Return what slurmstepd says about the end of the step: ``scancel JOB.STEP``, a limit."""
        cancelled = re.compile(
            r"\*\*\* (STEP|JOB) (\S{1,64}) ON \S{1,255} CANCELLED AT \S+(?: DUE TO (.{0,200}?))? \*\*\*"
        )
        by_srun = re.compile(r"^srun: .{0,200}Terminating (?:StepId=|job step )")
        lines = list(errors)
        # Slurm tells srun of the end; on a loaded host only after srun has reported a killed task.
        is_told = any(line.startswith("srun: Job step aborted") for line in lines)
        for line in lines:
            if by_srun.search(line) and not is_told:
                return ""  # --kill-on-bad-exit: the supervisor that failed is the cause.
            if not (match := cancelled.search(line)):
                continue
            kind, number, why = match.groups()
            if why and why.startswith("NODE FAILURE"):
                continue  # The lost host is the cause.
            by = (
                f"due to {why.lower()}"
                if why
                else f"by `scancel {named(number, 'JOB')}`, or by an administrator"
            )
            return f"Slurm has ended {kind.lower()} {number} {by}"
        return ""

    def command(self, plan: Plan) -> list[str]:
        """Return the srun command line of a plan."""
        count = str(len(plan.hosts))
        options = ["--nodes", count, "--ntasks", count, "--ntasks-per-node", "1", "--kill-on-bad-exit=1"]
        # Always set --export: a job of `sbatch --export=NONE` passes that setting on to its steps.
        options.append("--export=" + (",".join(plan.exported) if plan.only_exported else "ALL"))
        if plan.nodes:
            options += ["--nodelist", ",".join(plan.nodes)]
        # By default a step gets one core per task, which the supervisor's ranks would share.
        options += ["--cpu-bind=none", "--chdir", plan.working_dir]
        return [plan.engine_program, *options, *plan.supervisor]


def is_requested(environ: Mapping[str, str]) -> bool:
    """Return whether the allocation of this process is known to have been requested with ``--no-kill``."""
    if any(name in environ for name in VARIABLES):
        return True
    return any(map(has_option, (*_salloc_commands(), *directives(_batch_script(environ)))))


def has_option(words: Sequence[str]) -> bool:
    """Return whether the option is among the words after ``salloc``, before the command that it runs."""
    may_be_value = False
    for word in words:
        if word in _OPTION:
            return True
        if not word.startswith("-") and not may_be_value:
            return False
        may_be_value = word.startswith("-") and "=" not in word
    return False


def directives(script: str) -> Iterator[list[str]]:
    """Yield the options in the lines of a batch script that sbatch reads: those before the first command."""
    for line in script.splitlines():
        if line.startswith(_DIRECTIVE):
            try:
                yield shlex.split(line.removeprefix(_DIRECTIVE), comments=True)
            except ValueError:
                continue  # sbatch refuses such a line.
        elif line.strip() and not line.startswith("#"):
            return


def _salloc_commands() -> Iterator[list[str]]:
    """Yield the words after each salloc above this process."""
    pid = os.getppid()
    while pid > 1 and (status := procfs.status(pid)) is not None:
        program, *words = procfs.read(f"/proc/{pid}/cmdline").rstrip("\0").split("\0")
        if os.path.basename(program) == "salloc":
            yield words
        pid = status.parent


def _batch_script(environ: Mapping[str, str]) -> str:
    scontrol = on_path("scontrol", environ)
    if scontrol is None or "SLURM_JOB_ID" not in environ:
        return ""
    command = [scontrol, "write", "batch_script", environ["SLURM_JOB_ID"], "-"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
            env=without_key(environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
