"""Messages of Open MPI, MPICH, Slurm, torchrun, msrun and ssh about the processes that they start."""

from __future__ import annotations

from hccl_tools.knowledge.message import Message

_LATER = ("HCM002", "HCM006", "HCM009", "HCM013", "HCM015", "HCM221", "HCM222", "HCM306", "HCM240", "HCM301")

MESSAGES = (
    Message(
        "HCM701", "openmpi-exit", "error",
        "mpirun saw a rank fail",
        "look at the log of that rank",
        anchor=b"Primary job", pattern=rb"Primary job +terminated normally, but", source="Open MPI's help texts",
        example="Primary job  terminated normally, but 1 process returned a non-zero exit code.",
    ),
    Message(
        "HCM702", "openmpi-signal", "error",
        "a rank was killed by a signal",
        "look at the end of that rank's log; signal 9 is often the out-of-memory killer (`dmesg`)",
        anchor=b"exited on signal",
        pattern=rb"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<server>\S+) exited on signal (?P<value>\d+)",
        explains=_LATER, source="Open MPI's help texts",
        example="mpirun noticed that process rank 3 with PID 12345 on node hostb exited on signal 9 (Killed).",
    ),
    Message(
        "HCM703", "openmpi-daemon-lost", "error",
        "mpirun lost a host",
        "check that the host is up and that ssh to it works without a password",
        anchor=b"daemon", pattern=rb"(?:ORTE|PRTE) (?:has lost communication with a remote daemon|was unable to reliably start one or more daemons)|lost (?:connection|communication) (?:to|with) .{0,20}daemon",
        explains=_LATER, source="Open MPI's help texts",
        example="ERROR: ORTE has lost communication with a remote daemon.",
    ),
    Message(
        "HCM704", "openmpi-slots", "cause",
        "there are fewer slots than ranks",
        "name slots in the hostfile (`host slots=8`), or start fewer ranks",
        anchor=b"not enough slots available", source="Open MPI's help texts",
        example="Error: There are not enough slots available in the system to satisfy the 16 slots that were requested by the application",
    ),
    Message(
        "HCM705", "openmpi-not-found", "cause",
        "the program is not on the PATH of a host",
        "give its full path, or install it on every host",
        anchor=b"could not find an executable", source="Open MPI's help texts",
        example="mpirun was unable to launch because it could not find an executable: error",
    ),
    Message(
        "HCM706", "mpich-termination", "error",
        "a rank ended with an exit code other than 0",
        "look at the log of that rank",
        anchor=b"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", source="MPICH's sources (hydra)",
        example="=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    ),
    Message(
        "HCM707", "mpi-abort", "error",
        "a rank called MPI_Abort",
        "look at the log of that rank",
        anchor=b"MPI_A", pattern=rb"MPI_ABORT was invoked on rank (?P<rank>\d+)|application called MPI_Abort\(.{0,60}process (?P<peer>\d+)",
        source="Open MPI's help texts",
        example="MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD with errorcode 1: error",
    ),
    Message(
        "HCM710", "slurm-oom", "cause",
        "Slurm's memory limit killed a process of the job",
        "ask for more memory (`--mem`), or use less memory per rank",
        anchor=b"oom", pattern=rb"(?:oom[-_]kill event|Detected .{0,30}oom)|(?i:slurmstepd: .{0,60}memory limit)",
        explains=_LATER, source="Slurm's sources",
        example="slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0. Some of your processes may have been killed by the cgroup out-of-memory handler.",
    ),
    Message(
        "HCM711", "slurm-time-limit", "cause",
        "the job reached its time limit",
        "ask for more time (`--time`)",
        anchor=b"DUE TO TIME LIMIT", explains=(*_LATER, "HCM713"), source="Slurm's sources",
        example="slurmstepd: error: *** JOB 12 ON hostb CANCELLED AT 2026-03-18T10:33:52 DUE TO TIME LIMIT ***",
    ),
    Message(
        "HCM712", "slurm-node-fail", "cause",
        "Slurm lost a node of the job",
        "look at the node (`sinfo -R`), and start the job without it (`--exclude`)",
        anchor=b"DUE TO NODE FAILURE", pattern=rb"(?:ON (?P<server>\S+) )?CANCELLED AT .* DUE TO NODE FAILURE",
        explains=(*_LATER, "HCM713"), source="Slurm's sources",
        example="slurmstepd: error: *** JOB 12 ON hostb CANCELLED AT 2026-03-18T10:33:52 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
    ),
    Message(
        "HCM713", "slurm-cancelled", "end",
        "Slurm ended the job step",
        "look for what failed before",
        anchor=b" CANCELLED AT ", source="Slurm's sources",
        example="slurmstepd: error: *** STEP 12.0 ON hostb CANCELLED AT 2026-03-18T10:33:52 ***",
    ),
    Message(
        "HCM714", "srun-task-failed", "error",
        "srun saw a task fail",
        "look at the log of that rank",
        anchor=b"srun: error:", pattern=rb"srun: error: (?P<server>[^\s:]+): tasks? (?P<rank>\d+)[0-9,-]*: (?P<reason>(?!Terminated).*)",
        source="Slurm's sources",
        example="srun: error: hostb: task 3: Exited with exit code 1",
    ),
    Message(
        "HCM715", "srun-task-terminated", "end",
        "Slurm ended a task after another failed",
        "look for the task that failed first",
        anchor=b": Terminated", pattern=rb"srun: error: \S+: tasks? [0-9,-]+: Terminated", source="Slurm's sources",
        example="srun: error: hostb: tasks 0-2: Terminated",
    ),
    Message(
        "HCM720", "torchrun-failure", "error",
        "torchrun names the rank that failed first",
        "look at the log of that rank",
        anchor=b"rank      :", pattern=rb"rank      : (?P<rank>\d+) \(local_rank: (?P<logical>\d+)\)", source="torch's sources (elastic)",
        example="  rank      : 3 (local_rank: 3)  exitcode: 1 error_file: <N/A>",
    ),
    Message(
        "HCM721", "torchrun-sigterm", "end",
        "torchrun ended a rank after another failed",
        "look for the rank that failed first",
        anchor=b"closing signal SIGTERM", pattern=rb"Sending process (?P<pid>\d+) closing signal SIGTERM", source="torch's sources (elastic)",
        example="W1120 10:11:12 torch/distributed/elastic/multiprocessing/api.py:1] Sending process 12345 closing signal SIGTERM",
    ),
    Message(
        "HCM722", "msrun-worker-failed", "error",
        "msrun saw a worker fail",
        "look at the log of that worker",
        anchor=b"exit with", pattern=rb"(?:Node|[Ww]orker|process) ?\[?(?P<pid>\d+)\]?.{0,40}exit(?:ed)? with (?:exception|code|error)", source="MindSpore's sources (msrun)",
        example="[ERROR] ME(17528:140,MainProcess):2026-03-18-10:33:52 [mindspore/parallel/cluster/process_entity/_api.py:1] Worker process 17600 exit with exception. Error code: 1.",
    ),
    Message(
        "HCM730", "terminated", "end",
        "the process received SIGTERM",
        "look for what failed before",
        anchor=b"SIGTERM", pattern=rb"(?:received|got|caught|by) (?:signal )?SIGTERM|SignalException.*SIGTERM", source="Python programs",
        example="error: received SIGTERM, exiting",
    ),
)  # fmt: skip
