"""The options of ``launch``, in the groups of its help; hidden options are other launchers' spellings."""

from __future__ import annotations

from typing import Any, get_args

from hccl_tools.cli import exclude_option, product_option, site_options
from hccl_tools.cli.help_option import Option
from hccl_tools.cli.values import Choice, Choices, IntRange, Pattern, Seconds
from hccl_tools.host import site_defaults
from hccl_tools.launch import engines
from hccl_tools.launch.model.outcome import RestartCause
from hccl_tools.launch.model.plan import DEFAULT_JOIN_SECONDS, DEFAULT_SILENCE
from hccl_tools.launch.model.request import Watch

_HABITS = "Other launchers' spellings"


def _option(*names: str, **attributes: Any) -> Option:
    return Option(names, **attributes)


def _flag(*names: str, **attributes: Any) -> Option:
    return Option(names, is_flag=True, **attributes)


#: The targets of ``--emit`` that place the job themselves.
CLUSTER_MANAGERS = ("vcjob", "acjob")

GROUPS: dict[str, list[Option]] = {
    "What to start": [
        _flag("-m", "--module", help="PROGRAM is a Python module, as for python -m."),
        _flag("--no-python", help="PROGRAM is any program, not a Python script."),
        _option("--python", metavar="PATH", help="The ranks' Python; by default your shell's `python`."),
        _option("--env", multiple=True, metavar="K=V", help="Set a variable for every rank. Repeatable."),
        _option("--env-file", multiple=True, metavar="FILE", help="Set variables from a file of K=V lines."),
    ],
    "Where": [
        _option("--rank-table", "--rank-table-file", "rank_table",
                metavar="FILE", help="The rank table; by default $RANK_TABLE_FILE."),
        _option("--wait", type=Seconds(), metavar="SECONDS",
                help="Wait up to SECONDS for an incomplete table; in a pod also for this host in it, and for "
                "the other pods."),
        _option("-n", "--worker-num", "--np", "count", type=IntRange(min=1), metavar="N",
                help="The number of ranks of the job."),
        _option("--devices", "--gpus", "--npus", "--xpus", "--selected-gpu", "--selected-gpus",
                "--selected-npus", "--selected-xpus", "devices", metavar="LIST",
                help="Devices, counted among the visible devices: 4-7 or 0,1 or [4,8)."),
        _flag("--no-table", help="Start N ranks without a rank table."),
        _option("--server", metavar="ID", help="The server of the table, or of --ips, that is this host."),
        _option(
            "--product",
            metavar="NAME",
            callback=product_option.read,
            help=product_option.help_text("this host's, else the product of the table's format"),
        ),
        _option("--exclude", **exclude_option.ATTRIBUTES),
        _option("--ignore", multiple=True, metavar="RULES", help="Rules to ignore: HCC304 or HCC4,HCC6."),
        _option("--preflight", type=Choice(["none", "quick", "full"]), metavar="LEVEL",
                help="Checks before the start: none, quick (devices, ports and variables of each host; the "
                "default), full (all that doctor asks, on all hosts)."),
        _option("--preflight-command", metavar="CMD",
                help="Run this health check on all hosts before the start: a spare replaces a host that "
                "fails, or the job is refused."),
        _option("--preflight-timeout", type=Seconds(5, 86400), metavar="SECONDS",
                help="Time limit for asking all hosts before the start. Default: 60."),
        _flag("--no-preflight", help="The same as --preflight none."),
        _flag("--require-key", help="Refuse to start by hand on several hosts without a job key."),
        _flag("--no-local-check", help="Do not compare the table with this host's devices."),
        _flag("--ignore-visible", help="Allow devices outside ASCEND_VISIBLE_DEVICES."),
    ],
    "Rehearse without NPUs": [
        _flag("--cpu", help="Run the same job on the CPU (MindSpore's mccl, torch's gloo)."),
        _flag("--all-here", help="With --cpu: run the ranks of all servers on this machine."),
        _option("--max-ranks", type=IntRange(min=1), default=16, show_default=True, metavar="N",
                help="With --all-here: refuse more ranks than this."),
    ],
    "How": [
        _option("--engine", type=Choice(engines.names()), default="loop", show_default=True,
                help="The program that starts the job on its hosts."),
        _option("--mpirun", metavar="PROGRAM",
                help="The mpirun or mpiexec of --engine mpirun; by default the first on PATH."),
        _option("--start", type=Choice(["auto", "table", "cluster", "mpi", "torch"]), default="auto",
                show_default=True, help="How the framework finds its peers. torch sets RANK, WORLD_SIZE, "
                "LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as torchrun does; cluster sets MS_*, as msrun."),
        _option("--bind", type=Choice(["none", "cores", "numa"]), default="none", show_default=True,
                help="cores: share a host's cores among its ranks; numa: one NUMA node per rank."),
        _option("--start-port", "--master-port", "start_port", type=IntRange(1024, 65535), metavar="PORT",
                help="The rendezvous port; by default a free port, or 18118 on several hosts."),
        _option("--master-addr", "master_address", metavar="ADDRESS", help="The address of rank 0's host."),
        _flag("--keep-mpi", help="Keep OMPI_*, PMIX_*, PMI_* in the ranks' environment (for mpi4py)."),
        _flag("--pass-table", help="With --start torch: set RANK_TABLE_FILE as well."),
    ],
    "Several machines (run the command once)": [
        _option("--hostfile", metavar="FILE",
                help="Query these hosts, build the table, start the job with srun, mpirun or ssh."),
        _option("--hosts", metavar="LIST", help="The same for a list of hosts: 10.0.0.[1-16]."),
        _option("--spares", type=IntRange(min=0), default=0, metavar="N",
                help="Keep N of the hosts in reserve: after a loss, one takes the lost host's place "
                "(--max-restarts)."),
        _option("--spare-hosts", metavar="LIST", help="With --rank-table: the hosts in reserve."),
        _option("--export", multiple=True, metavar="NAME",
                help="Also export this variable, besides PATH, ASCEND_*, HCCL_* ... Repeatable."),
        _flag("--no-export", help="Export only the variables named by --export."),
    ],
    "Several machines (run the same command on each)": [
        _option("--ips", metavar="A,B", help="The machines' addresses; rank 0 is on the first."),
        _option("--nnodes", "node_count", metavar="N", help="The number of machines."),
        _option("--node-rank", "--rank", "node_rank", type=IntRange(min=0), metavar="I",
                help="The index of this machine, if its address does not identify it."),
        _option("--nproc-per-node", "--local-worker-num", "per_node", metavar="N",
                help="Ranks on each machine."),
    ],
    "Logs": [
        _option("--log-dir", default="log", show_default=True, metavar="DIR",
                **site_options.from_site(site_defaults.LOG_DIR),
                help="The parent of the run directory; %j is Slurm's job id."),
        _option("--log-mode", metavar="MODE",
                help="The mode of the run directory, as for chmod: 750 for your group; by default 700."),
        _option("--log-file", metavar="FILE", help="Write rank 0's log to this file instead."),
        _flag("--flat-logs", help="Name the logs as paddle does: DIR/workerlog.0, workerlog.1, ..."),
        _flag("--buffered", help="Do not set PYTHONUNBUFFERED=1 for the ranks."),
        _option("--tail", default="0", show_default=True, metavar="RANKS",
                help="The ranks to follow on the terminal: 0,3 or all or none."),
        _option("--on-log-error", type=Choice(["warn", "stop"]), default="warn", show_default=True,
                help="What to do when the log disk is full."),
        _option("--stdin", type=IntRange(min=0), metavar="RANK", help="Give this rank the launcher's stdin."),
    ],
    "Supervision": [
        _option("--grace", type=Seconds(), default=15.0, show_default=True, metavar="SECONDS",
                help="Time from SIGTERM to SIGKILL, for all ranks together."),
        _option("--timeout", type=Seconds(above=True), metavar="SECONDS",
                help="Kill the job after this time (exit code 124): 3600, 90m, 2h."),
        _option("--early-exit-warn", type=Seconds(), default=60.0, show_default=True,
                metavar="SECONDS", help="Warn when ranks still run this long after a rank exited with 0."),
        _option("--hang-warn", type=Seconds(), default=600.0, show_default=True, metavar="SECONDS",
                help="Warn when no rank has written output or used the CPU for this time."),
        _option("--hang-timeout", type=Seconds(1.0), metavar="SECONDS",
                help="End the job (exit code 124) when its ranks have done nothing for this time."),
        _option("--progress", type=Pattern(), metavar="REGEX",
                help="With --hang-timeout: only a line of output that matches counts, such as 'step \\d+'. "
                "For NPUs, whose ranks use their CPUs while they wait."),
        _flag("--faulthandler", help="Let the ranks' Python write its stacks to the log: in a crash, at the "
              "end of a hang and on SIGUSR2. The default with --hang-timeout."),
        _flag("--no-faulthandler", help="With --hang-timeout: do not change the ranks' Python for that."),
        _option("--evidence-timeout", type=Seconds(), default=5.0, show_default=True, metavar="SECONDS",
                help="Time for evidence before a failed or hung job is ended: stacks, ends of logs, npu-smi, "
                "recorder dumps. 0: none."),
        _flag("--flight-recorder", help="Record the collectives of torch and torch_npu; the evidence has the "
              "dumps, and explain says which rank is behind. Includes --faulthandler."),
        _option("--host-timeout", type=Seconds(2.0, 3600.0), default=DEFAULT_SILENCE, show_default=True,
                metavar="SECONDS", help="Time without an answer from a host until it counts as lost."),
        _option("--join-timeout", type=Seconds(2.0), default=DEFAULT_JOIN_SECONDS, show_default=True,
                metavar="SECONDS", help="Time for a host that answers to start its part of the job."),
        _option("--max-restarts", type=IntRange(min=0), default=0, show_default=True, metavar="N",
                help="Restart the whole job up to N times after a failure."),
        _option("--max-restarts-per-hour", "restarts_per_hour", type=IntRange(min=1), metavar="N",
                help="End the job instead of a restart when the last hour has had N of them."),
        _option("--restart-delay", type=Seconds(), default=0.0, metavar="SECONDS",
                help="Time before each restart."),
        _option("--restart-on", type=Choices(get_args(RestartCause)), metavar="CAUSES",
                default=Watch().restart_on,
                help="What to restart after: host-lost, rank-failed, hang. By default all; a lost host "
                "needs a spare."),
        _option("--notify", metavar="CMD",
                help="After a failure, run CMD with the report as JSON on its stdin."),
    ],
    "Preview": [
        _option("--dry-run", type=Choice(["text", "json"]), metavar="[=json]",
                help="Print the plan, start nothing."),
        _option("--emit", metavar="TARGET",
                type=Choice(["rank_loop", "mpirun", "slurm", "msrun", "torchrun", "xllm", "mindie",
                             *CLUSTER_MANAGERS]),
                help="Print a script or command that starts the same job: rank_loop, mpirun, slurm, msrun, "
                "torchrun, xllm, mindie; or the YAML of Volcano's Job (vcjob) or MindCluster's AscendJob "
                "(acjob)."),
        _option("--image", metavar="NAME", help="With --emit vcjob|acjob: the image of the containers; its "
                "ENTRYPOINT is not used."),
        _option("--object-name", metavar="NAME", help="The name of that job; by default that of PROGRAM."),
        _option("--namespace", metavar="NAME", help="The namespace of that job."),
        _option("--queue", metavar="NAME", help="Volcano's queue of that job; by default `default`."),
        _option("--shm-size", metavar="SIZE",
                help="The size of /dev/shm in that job, such as 64Gi; by default 16Gi, or 2Gi per device."),
        _option("--pin-nodes", metavar="LIST",
                help="The nodes of that job, as `kubectl get nodes` names them: those of --rank-table."),
    ],
    _HABITS: [
        # The launcher passes these options to the supervisor of each host of a job on several hosts.
        _option("--run-dir", hidden=True),
        _option("--restart", type=IntRange(min=0), default=0, hidden=True),
        _option("--master", hidden=True),
    ],
}  # fmt: skip

#: The options for the objects of :data:`CLUSTER_MANAGERS`.
OF_OBJECTS = ("--image", "--object-name", "--namespace", "--queue", "--shm-size", "--pin-nodes")
#: Options whose value may be omitted, with their value in that case.
BARE = {"--dry-run": "text"}
#: mpirun's spelling, which click would read as ``-n p``.
SPELLINGS = {"-np": "-n"}

HELP = """Start one process per rank and supervise the job until it ends.

Every rank gets RANK_ID, DEVICE_ID, RANK_SIZE, RANK_TABLE_FILE and its own log; the terminal shows rank 0.
When a rank fails, launch stops the other ranks and exits with the exit code of the failed rank.

\b
hccl-tools launch --rank-table FILE train.py --epochs 3  one rank per device
hccl-tools launch --rank-table FILE --dry-run train.py   print the plan
hccl-tools launch --rank-table FILE --cpu train.py       try it without NPUs
hccl-tools launch -n 4 --cpu train.py                    without a table
hccl-tools launch -n 8 --start torch train.py            as torchrun does
hccl-tools launch -n 2 --engine mpirun train.py          use MPI
hccl-tools launch --no-table -n 4 -m package.module      start a module
hccl-tools launch --hostfile hosts train.py              query many hosts

Options end at PROGRAM; the arguments after it belong to the program. launch also accepts the options of
torchrun, msrun and paddle (--nproc_per_node, --master_addr, --worker_num, --log_dir, --gpus, --ips), or it
refuses them and reports what to use instead.
"""

EPILOG = (
    "Exit codes: the code of the first rank that failed (128+n for signal n); 124 timeout or hang; 125 "
    "refused before the start, or the log disk is full (--on-log-error stop); 126 the program cannot run; "
    "127 the program does not exist; 129, 130, 131, 143 the launcher received SIGHUP, Ctrl-C, SIGQUIT, "
    "SIGTERM; 137 a host or its launcher was lost; 2 wrong usage."
)
