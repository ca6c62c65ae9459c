"""Messages of Open MPI, MPICH, Slurm, torchrun, msrun and ssh about the processes that they start."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import AFTER_AN_END, Message

#: A line that names a rank, but not a local one, and the id of its process.
_OF_RANK = (
    rb"^(?=.{0,300}?(?<![A-Za-z_])[Rr]ank(?: ?id)?(?: ?[=:#\[] ?| )?(?P<rank>\d{1,6})(?![\w.]))"
    rb"(?=.{0,300}?\bpid ?[=:\[(]? ?(?P<pid>\d{2,7})\b)"
)
_LOOPBACK = (
    "the master's address is a loopback address, which each host has for itself, in a job over several hosts"
)
_REAL_ADDRESS = (
    "name an address of rank 0's host that the other hosts reach (`ip address` there) in the command of every host, the same one; a"
    " firewall is not the reason"
)
#: A job over several hosts, on a host other than the first.
_SEVERAL = (
    rb"^(?=.{0,3000}?--(?:nnodes|num_nodes|nodes)[= ](?:\d{1,5}:)?(?!0{0,4}1\b)\d|.{0,3000}?--worker_num[= ](?P<size>\d{1,6})\b)"
    rb"(?!.{0,3000}?--(?:local_worker_num|nproc_per_node)[= ](?P=size)\b)(?!.{0,3000}?--node[_-]?rank[= ]0\b)"
)
#: The variables of torchrun and of msrun that `launch` sets with these starts only; a test compares them.
_OF_TORCHRUN = (
    rb"(?P<variable>(?:LOCAL_)?(?:RANK|WORLD_SIZE)|MASTER_(?:ADDR|PORT)|TORCHELASTIC_RESTART_COUNT)"
)
_OF_MSRUN = rb"(?P<variable>MS_(?:ROLE|WORKER_NUM|SCHED_HOST|SCHED_PORT|NODE_ID))"
_NEEDS_TORCHRUN = "the program reads a variable of torchrun, which is not set"
_START_TORCH = (
    "add `--start torch` to the options of `hccl-tools launch`: it sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT as torchrun"
    " does; all starts of `launch` set RANK_ID, RANK_SIZE and DEVICE_ID"
)
_NEEDS_MSRUN = "the program reads a variable of msrun, which is not set"
_START_CLUSTER = (
    "add `--start cluster` to the options of `hccl-tools launch`: it sets MS_ROLE, MS_WORKER_NUM, MS_SCHED_HOST, MS_SCHED_PORT and MS_NODE_ID as"
    " msrun does"
)

_SIGNALLED = (
    "nothing failed before in these logs: find out who stopped it: the scheduler, Kubernetes (`kubectl get events`), a user,"
    " or the launcher of another host after a failure there"
)

MESSAGES = (
    Message(
        "HCM743", "torchrun-variable", "cause",
        _NEEDS_TORCHRUN,
        _START_TORCH,
        anchor=b"KeyError: '", pattern=rb"\bKeyError: '" + _OF_TORCHRUN + rb"'\s*$", source="Python",
        example="KeyError: 'LOCAL_RANK'",
    ),
    Message(
        "HCM744", "torchrun-variable-shell", "cause",
        _NEEDS_TORCHRUN,
        _START_TORCH,
        anchor=b": unbound variable", pattern=rb": " + _OF_TORCHRUN + rb": unbound variable\s*$", source="bash",
        example="train.sh: line 3: WORLD_SIZE: unbound variable",
    ),
    Message(
        "HCM745", "torchrun-variable-parameter", "cause",
        _NEEDS_TORCHRUN,
        _START_TORCH,
        anchor=b": parameter n", pattern=rb": " + _OF_TORCHRUN + rb": parameter n(?:ot set|ull or not set)", source="dash, bash and zsh",
        example="train.sh: 3: RANK: parameter not set",
    ),
    Message(
        "HCM746", "torch-without-variable", "cause",
        _NEEDS_TORCHRUN,
        _START_TORCH,
        anchor=b"expected, but not set", pattern=rb"environment variable " + _OF_TORCHRUN + rb" expected, but not set",
        source="torch's sources (rendezvous)",
        example="ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set",
    ),
    Message(
        "HCM747", "msrun-variable", "cause",
        _NEEDS_MSRUN,
        _START_CLUSTER,
        anchor=b"KeyError: 'MS_", pattern=rb"\bKeyError: '" + _OF_MSRUN + rb"'\s*$", source="Python",
        example="KeyError: 'MS_WORKER_NUM'",
    ),
    Message(
        "HCM748", "msrun-variable-shell", "cause",
        _NEEDS_MSRUN,
        _START_CLUSTER,
        anchor=b": MS_", pattern=rb": " + _OF_MSRUN + rb": (?:unbound variable|parameter n(?:ot set|ull or not set))", source="bash, dash and zsh",
        example="train.sh: line 3: MS_SCHED_HOST: unbound variable",
    ),
    Message(
        "HCM701", "openmpi-exit", "error",
        "mpirun saw a rank fail",
        "look at the log of that rank",
        anchor=b"Primary job", pattern=rb"Primary job +terminated normally, but", source="Open MPI's help texts",
        example="Primary job  terminated normally, but 1 process returned a non-zero exit code.",
    ),
    Message(
        "HCM790", "openmpi-abort", "error",
        "a rank aborted itself (SIGABRT)",
        "look at the end of that rank's log: a failed assertion or an exception of a library in C++ is printed before the abort",
        anchor=b"exited on signal 6", pattern=rb"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<server>\S+) exited on signal 6\b",
        explains=AFTER_AN_END, source="Open MPI's help texts",
        example="mpirun noticed that process rank 3 with PID 12345 on node hostb exited on signal 6 (Aborted).",
    ),
    Message(
        "HCM791", "openmpi-terminated", "error",
        "another program ended a rank (SIGTERM)",
        "look for who sent the signal: the batch system (time limit, preemption), the container's runtime, a script or a user",
        anchor=b"exited on signal 15", pattern=rb"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<server>\S+) exited on signal 15\b",
        explains=AFTER_AN_END, source="Open MPI's help texts",
        example="mpirun noticed that process rank 3 with PID 12345 on node hostb exited on signal 15 (Terminated).",
    ),
    Message(
        "HCM702", "openmpi-signal", "error",
        "a rank was killed by a signal",
        "look at the end of that rank's log; signal 9 is often the out-of-memory killer (`dmesg`)",
        anchor=b"exited on signal",
        pattern=rb"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<server>\S+) exited on signal (?P<signal>\d+)",
        explains=AFTER_AN_END, source="Open MPI's help texts",
        example="mpirun noticed that process rank 3 with PID 12345 on node hostb exited on signal 9 (Killed).",
    ),
    Message(
        "HCM703", "openmpi-daemon-lost", "error",
        "mpirun lost a host",
        "check that the host is up and that ssh to it works without a password",
        anchor=b"daemon", pattern=rb"(?:ORTE|PRTE) (?:has lost communication with a remote daemon|was unable to reliably start one or more daemons)|lost (?:connection|communication) (?:to|with) .{0,20}daemon",
        explains=AFTER_AN_END, source="Open MPI's help texts",
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
        explains=AFTER_AN_END, source="Slurm's sources",
        example="slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0. Some of your processes may have been killed by the cgroup out-of-memory handler.",
    ),
    Message(
        "HCM988", "slurm-oom-task", "cause",
        "Slurm's memory limit killed a process of the job",
        "ask for more memory (`--mem`), or use less memory per rank",
        anchor=b": Out Of Memory", pattern=rb"srun: error: (?P<server>[^\s:]{1,255}): tasks? (?P<ended>\d[0-9,-]{0,80}): Out Of Memory",
        explains=(*AFTER_AN_END, "HCM710", "HCM714"), source="Slurm's sources (srun)",
        example="srun: error: hostb: task 3: Out Of Memory",
    ),
    Message(
        "HCM757", "sacct-out-of-memory", "cause",
        "Slurm's memory limit killed a process of the job",
        "ask for more memory (`--mem`), or use less memory per rank",
        anchor=b" OUT_OF_ME", pattern=rb"^\s*\d{1,10}(?:_\d{1,6})?(?:\.\w{1,20})?\s[^\n]{0,200}?\sOUT_OF_ME\S{0,8}\s[^\n]{0,120}?20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\s{1,40}(?P<moment>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)",
        explains=(*AFTER_AN_END, "HCM710", "HCM713", "HCM714", "HCM988"), source="the output of sacct",
        example="12.1  node1  hostb  OUT_OF_ME+  0:125  2026-03-18T10:00:00 2026-03-18T10:33:52",
    ),
    Message(
        "HCM758", "sacct-node-fail", "cause",
        "Slurm lost a node of the job",
        "look at the node (`sinfo -R`), and start the job without it (`--exclude`)",
        anchor=b" NODE_FAIL ", pattern=rb"^\s*\d{1,10}(?:_\d{1,6})?(?:\.\w{1,20})?\s[^\n]{0,200}?\sNODE_FAIL\s[^\n]{0,120}?20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\s{1,40}(?P<moment>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)",
        explains=(*AFTER_AN_END, "HCM713", "HCM714"), source="the output of sacct",
        example="12.1  node1  hostb  NODE_FAIL  0:0  2026-03-18T10:00:00 2026-03-18T10:33:52",
    ),
    Message(
        "HCM711", "slurm-time-limit", "cause",
        "the job reached its time limit",
        "ask for more time (`--time`)",
        anchor=b"DUE TO TIME LIMIT", explains=(*AFTER_AN_END, "HCM713"), source="Slurm's sources",
        example="slurmstepd: error: *** JOB 12 ON hostb CANCELLED AT 2026-03-18T10:33:52 DUE TO TIME LIMIT ***",
    ),
    Message(
        "HCM712", "slurm-node-fail", "cause",
        "Slurm lost a node of the job",
        "look at the node (`sinfo -R`), and start the job without it (`--exclude`)",
        anchor=b"DUE TO NODE FAILURE", pattern=rb"CANCELLED AT [^\s*]{1,40} DUE TO NODE FAILURE",
        explains=(*AFTER_AN_END, "HCM713"), source="Slurm's sources",
        example="slurmstepd: error: *** JOB 12 ON hostb CANCELLED AT 2026-03-18T10:33:52 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
    ),
    Message(
        "HCM991", "slurm-node-named", "cause",
        "Slurm lost a node of the job",
        "look at the node (`sinfo -R`, `last -x` there), and start the job without it (`--exclude`)",
        anchor=b"ode failure on ", pattern=rb"\berror: Node failure on (?P<server>[\w.\[\],-]{1,400})",
        explains=(*AFTER_AN_END, "HCM712", "HCM713"), source="Slurm's sources (srun, salloc)",
        example="srun: error: Node failure on hostb",
    ),
    Message(
        "HCM716", "slurm-ended", "cause",
        "Slurm ended the job",
        "the line has Slurm's reason; PREEMPTION: a job of higher priority took the nodes (`--requeue` lets the job start again)",
        anchor=b" DUE TO ", pattern=rb"CANCELLED AT [^\s*]{1,40} DUE TO (?P<reason>[A-Z][A-Z ]{1,60}[A-Z])",
        explains=(*AFTER_AN_END, "HCM713"), source="Slurm's sources",
        example="slurmstepd: error: *** JOB 12 ON hostb CANCELLED AT 2026-03-18T10:33:52 DUE TO PREEMPTION ***",
    ),
    Message(
        "HCM918", "sacct-completed", "fact",
        "Slurm says that the job is complete",
        "nothing",
        anchor=b" COMPLETED ", pattern=rb"^\s*\d{1,10}(?:_\d{1,6})?\s[^\n]{0,200}?\sCOMPLETED\s[^\n]{0,120}?20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\s{1,40}(?P<moment>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)",
        source="the output of sacct", example="12  train  gpu  COMPLETED  0:0  2026-03-18T10:00:00 2026-03-18T10:33:52",
    ),
    Message(
        "HCM919", "sacct-preempted", "cause",
        "a job of higher priority took the nodes: Slurm preempted the job",
        "start it again (`--requeue` lets Slurm do it), or use a partition or QOS that is not preempted",
        anchor=b" PREEMPTED ", pattern=rb"^\s*\d{1,10}(?:_\d{1,6})?\s[^\n]{0,200}?\sPREEMPTED\s[^\n]{0,120}?20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\s{1,40}(?P<moment>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)",
        explains=(*AFTER_AN_END, "HCM713", "HCM716"), source="the output of sacct",
        example="12  train  low  PREEMPTED  0:0  2026-03-18T10:00:00 2026-03-18T10:33:52",
    ),
    Message(
        "HCM925", "sacct-time-limit", "cause",
        "the job reached its time limit",
        "ask for more time (`--time`)",
        anchor=b" TIMEOUT ", pattern=rb"^\s*\d{1,10}(?:_\d{1,6})?\s[^\n]{0,200}?\sTIMEOUT\s[^\n]{0,120}?20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\s{1,40}(?P<moment>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)",
        explains=(*AFTER_AN_END, "HCM711", "HCM713"), source="the output of sacct",
        example="12  train  gpu  TIMEOUT  0:0  2026-03-18T10:00:00 2026-03-18T10:33:52",
    ),
    Message(
        "HCM926", "sacct-cancelled", "cause",
        "a user or an administrator cancelled the job (scancel)",
        "nothing failed before in these logs: if the job should have gone on, find out who stopped it",
        anchor=b" CANCELLED", pattern=rb"^\s*\d{1,10}(?:_\d{1,6})?\s[^\n]{0,200}?\sCANCELLED(?:\+| by \d{1,10})?\s[^\n]{0,120}?20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\s{1,40}(?P<moment>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)",
        explains=(*AFTER_AN_END, "HCM713"), source="the output of sacct",
        example="12  train  gpu  CANCELLED+  0:0  2026-03-18T10:00:00 2026-03-18T10:33:52",
    ),
    Message(
        "HCM713", "slurm-cancelled", "end",
        "the job was cancelled: by a user (scancel), or by Slurm after a task ended",
        "if no user cancelled it (`sacct -j JOB -X -o State,ExitCode` names the user), look for what failed before",
        anchor=b" CANCELLED AT ", pattern=rb"CANCELLED AT [^\s*]{1,40}", source="Slurm's sources",
        example="slurmstepd: error: *** STEP 12.0 ON hostb CANCELLED AT 2026-03-18T10:33:52 ***",
    ),
    Message(
        "HCM714", "srun-task-failed", "error",
        "srun saw a task fail",
        "look at the log of that rank",
        anchor=b"srun: error:", pattern=rb"srun: error: (?:(?P<server>[^\s:]+): )?tasks? (?P<ended>(?P<rank>\d+)[0-9,-]*): (?P<reason>(?!Terminated).*)",
        source="Slurm's sources",
        example="srun: error: hostb: task 3: Exited with exit code 1",
    ),
    Message(
        "HCM715", "srun-task-terminated", "end",
        "Slurm ended a task after another failed",
        "look for the task that failed first",
        anchor=b": Terminated", pattern=rb"srun: error: \S+: tasks? (?P<ended>[0-9,-]+): Terminated", source="Slurm's sources",
        example="srun: error: hostb: tasks 0-2: Terminated",
    ),
    Message(
        "HCM720", "torchrun-failure", "code",
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
        "HCM724", "torchrun-exit-code", "fact",
        "how the process ended that torchrun names",
        "nothing",
        anchor=b"exitcode", pattern=rb"exitcode {1,4}: (?P<value>-?\d{1,4}) \(pid: (?P<pid>\d{1,10})\)", source="torch's sources (elastic)",
        example="  exitcode  : -9 (pid: 4711)",
    ),
    Message(
        "HCM329", "process-of-rank", "fact",
        "the process of a rank",
        "nothing",
        anchor=b"pid ", pattern=_OF_RANK, source="the output of launchers",
        example="[launch] rank 3 started with pid 4711",
    ),
    Message(
        "HCM330", "process-of-rank-listed", "fact",
        "the process of a rank",
        "nothing",
        anchor=b"pid: ", pattern=_OF_RANK, source="the output of launchers",
        example="started worker, rank: 3, pid: 4711",
    ),
    Message(
        "HCM331", "process-of-rank-assigned", "fact",
        "the process of a rank",
        "nothing",
        anchor=b"rank=", pattern=_OF_RANK, source="the output of launchers",
        example="start worker rank=3 pid=4711 device=3",
    ),
    Message(
        "HCM332", "deepspeed-process", "fact",
        "the process of a rank of this host",
        "nothing",
        anchor=b" spawned with command", pattern=rb"process (?P<pid>\d{1,7}) spawned with command.{0,2000}?--local_rank=(?P<logical>\d{1,4})\b", source="DeepSpeed's sources (launcher)",
        example="[2026-03-18 10:00:01,123] [INFO] [launch.py:256:main] process 4711 spawned with command: ['/usr/bin/python3', '-u', 'train.py', '--local_rank=3']",
    ),
    Message(
        "HCM726", "torchrun-signal", "error",
        "a signal ended the rank",
        "SIGKILL usually comes from the out-of-memory killer (`dmesg`) or from a kill -9, SIGSEGV and SIGBUS from a fault in a library"
        " (`python -X faulthandler` shows where); the end of the rank's own log may say more",
        anchor=b"received by PID", pattern=rb"Signal \d{1,3} \((?P<signal>SIG(?!TERM|INT)[A-Z0-9+]{2,10})\) received by PID (?P<pid>\d{1,10})",
        explains=AFTER_AN_END, source="torch's sources (elastic)",
        example="  traceback : Signal 9 (SIGKILL) received by PID 4711",
    ),
    Message(
        "HCM722", "msrun-worker-failed", "error",
        "msrun saw a worker fail",
        "look at the log of that worker",
        anchor=b"exit with", pattern=rb"(?:Node|[Ww]orker|process) ?\[?(?P<pid>\d+)\]?.{0,40}exit(?:ed)? with (?:exception|code|error)", source="MindSpore's sources (msrun)",
        example="[ERROR] ME(17528:140,MainProcess):2026-03-18-10:33:52 [mindspore/parallel/cluster/process_entity/_api.py:1] Worker process 17600 exit with exception. Error code: 1.",
    ),
    Message(
        "HCM723", "launcher-exception", "code",
        "a launcher raised an exception because a process that it had started failed",
        "look for the process that failed first",
        anchor=b"Error", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?(?:torch\.distributed\.elastic\.[\w.]{0,100}Error|ray\.exceptions\.\w{1,40}|subprocess\.CalledProcessError)\b",
        source="the sources of torch (elastic), Ray and Python",
        example="torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    ),
    Message(
        "HCM731", "launcher-signalled", "end",
        "a signal ended torchrun, which ended the ranks",
        _SIGNALLED,
        anchor=b"SignalException", pattern=rb"SignalException: Process \d{1,10} got signal: (?P<signal>\d{1,2})", source="torch's sources (elastic)",
        example="torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15",
    ),
    Message(
        "HCM914", "launcher-interrupted", "end",
        "a user interrupted the job with Ctrl-C",
        "nothing failed before in these logs: if the job should have gone on, find out who stopped it",
        anchor=b" death signal", pattern=rb"Received (?:Signals\.)?(?P<signal>SIGINT|2) death signal", source="torch's sources (elastic)",
        example="W0318 10:33:52.113000 4711 torch/distributed/elastic/agent/server/api.py:719] Received 2 death signal, shutting down workers",
    ),
    Message(
        "HCM978", "launcher-received-signal", "end",
        "a signal ended torchrun, which ended the ranks",
        _SIGNALLED,
        anchor=b" death signal", pattern=rb"Received (?:Signals\.)?(?P<signal>SIGTERM|SIGHUP|SIGQUIT|15|1|3) death signal", source="torch's sources (elastic)",
        example="W0318 10:33:52.113000 4711 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGTERM death signal, shutting down workers",
    ),
    Message(
        "HCM725", "torch-launcher-exception", "code",
        "a launcher raised an exception because a process that it had started failed",
        "look for the process that failed first",
        anchor=b"torch.", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?torch\.(?:distributed\.elastic\.[\w.]{0,100}Exception|multiprocessing\.spawn\.Process\w{1,20})\b",
        source="torch's sources (elastic, spawn)",
        example="torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
    ),
    Message(
        "HCM734", "master-loopback", "cause",
        _LOOPBACK,
        _REAL_ADDRESS,
        anchor=b"--master", pattern=_SEVERAL + rb".{0,3000}?(?P<variable>--master(?:[_-]addr)?)[= ](?P<value>127\.[\d.]{5,11}|localhost|::1)(?![\w.])",
        explains=("HCM606", "HCM607", "HCM611", "HCM612", "HCM655", "HCM916", "HCM665"), source="the command lines of launchers",
        example="$ msrun --worker_num=16 --local_worker_num=8 --node_rank=1 --master_addr=127.0.0.1 train.py",
    ),
    Message(
        "HCM735", "rendezvous-loopback", "cause",
        _LOOPBACK,
        _REAL_ADDRESS,
        anchor=b"--rdzv", pattern=_SEVERAL + rb".{0,3000}?(?P<variable>--rdzv[_-]endpoint)[= ](?P<value>127\.[\d.]{5,11}|localhost|::1)(?![\w.])",
        explains=("HCM606", "HCM655", "HCM916", "HCM665"), source="the command lines of launchers",
        example="$ torchrun --nnodes=2 --rdzv-endpoint=localhost:29500 train.py",
    ),
    Message(
        "HCM736", "paddle-master-not-ready", "timeout",
        "paddle's launcher did not reach the launcher of the master",
        "check that the launcher runs on the master, that `nc -vz` reaches its address and port from this host, and that no proxy is set"
        " (http_proxy; no_proxy must name the master)",
        limit="store", anchor=b"master not ready", pattern=rb"LAUNCH \w{4,8} .{0,60}?master not ready", source="PaddlePaddle's sources (launch)",
        example="LAUNCH WARNING 2026-03-18 10:33:52,113 master not ready",
    ),
    Message(
        "HCM737", "proxy-set", "fact",
        "a proxy is set for requests over HTTP",
        "nothing",
        anchor=b"ttp_proxy=", pattern=rb"^(?:export |declare -x )?(?P<variable>http_proxy)=[\"']?(?P<value>http\S{4,200})", source="the output of env",
        example="http_proxy=http://10.0.0.9:3128",
    ),
    Message(
        "HCM738", "no-proxy-set", "fact",
        "the addresses that are reached without a proxy",
        "nothing",
        anchor=b"o_proxy=", pattern=rb"^(?:export |declare -x )?(?P<variable>no_proxy)=[\"']?(?P<value>\S{0,2000})", source="the output of env",
        example="no_proxy=localhost,127.0.0.1",
    ),
    Message(
        "HCM739", "paddle-master", "fact",
        "the address of the master of paddle's launcher",
        "nothing",
        anchor=b" master", pattern=rb"LAUNCH INFO .{0,40}?\bmaster: (?:https?://)?(?P<address>[\w.-]{1,120}):\d{1,5}", source="PaddlePaddle's sources (launch)",
        example="LAUNCH INFO 2026-03-18 10:33:52,113 master: 10.0.0.1:37777",
    ),
    Message(
        "HCM740", "master-through-proxy", "timeout",
        "requests to the launcher of the master go to a proxy",
        "unset http_proxy, https_proxy and their forms in capitals where the ranks are started, or add the master's address to no_proxy",
        source="the variables of the host",
    ),
    Message(
        "HCM741", "remote-start", "fact",
        "a command that starts ranks on other hosts",
        "nothing",
        anchor=b"mpi", pattern=rb"^(?:\S{0,80}[^\n]{0,80}[$#>] ?|\+ )?(?:[\w./-]{0,200}/)?(?:mpirun|mpiexec|orterun)(?P<tag>[\w.]{0,12}) (?=.{0,3000}?(?:-np?|--np)[ =](?P<size>\d{1,7})\b)(?:.{0,3000}?(?:-H|--host|-hosts)[ =](?P<value>[\w.,:-]{1,2000}))?",
        source="the command lines of launchers", example="$ mpirun -np 16 -H hosta:8,hostb:8 python3 train.py",
    ),
    Message(
        "HCM742", "remote-shell-variable", "fact",
        "a variable of a shell that ssh started without a terminal",
        "nothing",
        anchor=b"LD_LIBRARY_PATH", pattern=rb"\bssh (?:-\S{1,40} ){0,5}(?:\w[\w.-]{0,60}@)?(?P<value>\w[\w.-]{0,252}) ['\"].{0,300}?\$\{?LD_LIBRARY_PATH", source="a screen of a shell",
        example="$ ssh hostb 'echo $LD_LIBRARY_PATH'",
    ),
    Message(
        "HCM730", "terminated", "end",
        "the process received SIGTERM",
        "look for what failed before",
        anchor=b"SIGTERM", pattern=rb"(?:received|got|caught|by) (?:signal )?SIGTERM|SignalException.*SIGTERM", source="Python programs",
        example="error: received SIGTERM, exiting",
    ),
    Message(
        "HCM960", "deepspeed-exit", "error",
        "DeepSpeed's launcher saw a rank fail, and ended the others",
        "look at the lines of that rank above; return code -9 is SIGKILL (`dmesg`), -11 a fault in a library",
        anchor=b"exits with return code = ", pattern=rb"(?:--local_rank=(?P<logical>\d{1,5})[^\n\]]{0,400})?\] (?P<reason>exits with return code = (?P<status>-?[1-9]\d{0,3}))",
        explains=AFTER_AN_END, source="DeepSpeed's sources (launcher/launch.py)",
        example="[2026-03-18 10:33:52,113] [ERROR] [launch.py:1:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=5'] exits with return code = -9",
    ),
    Message(
        "HCM961", "shell-signal", "error",
        "a signal ended the program, as the shell says",
        "Killed is SIGKILL: of the out-of-memory killer (`dmesg`) or of kill -9; Terminated is SIGTERM, Aborted a failed check of a library",
        anchor=b": line ", pattern=rb": line \d{1,6}: {1,8}(?P<pid>\d{1,10}) (?P<signal>Killed|Terminated|Aborted|Bus error|Hangup)\b",
        explains=AFTER_AN_END, source="bash",
        example="train.sh: line 12:  4711 Killed                  python train.py",
    ),
    Message(
        "HCM963", "slurm-execve", "cause",
        "Slurm could not start the program of the job",
        "check the path and the rights of the program on the compute nodes, and its folder (--chdir)",
        anchor=b"slurmstepd: error: ", pattern=rb"slurmstepd: error: (?P<reason>(?:execve\(\)|couldn't chdir|[Cc]ould not (?:open|chdir))[^\n]{1,300})",
        explains=(*AFTER_AN_END, "HCM714"), source="Slurm's sources (slurmstepd)",
        example="slurmstepd: error: execve(): /opt/env/bin/python: No such file or directory",
    ),
    Message(
        "HCM964", "slurm-not-submitted", "cause",
        "Slurm did not take the job",
        "the line has Slurm's reason: account, partition, limits (`sacctmgr show assoc user=$USER`, `scontrol show partition`)",
        anchor=b"failed: ", pattern=rb"\b(?:sbatch|srun|salloc): error: (?P<reason>(?:Batch job submission|Job submit/allocate|Unable to allocate resources|Unable to create step)[^\n]{0,20}failed: [^\n]{1,200})",
        source="Slurm's sources (sbatch, srun)",
        example="sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
    ),
    Message(
        "HCM976", "dumps-of-different-times", "timeout",
        "the dumps of the ranks are of different times, or some are empty: they cannot be compared",
        "take the dumps of all ranks at one time: `launch --flight-recorder` does at the end of a job that hangs",
        source="the dumps of torch's flight recorder",
    ),
    Message(
        "HCM937", "rank-stopped", "cause",
        "a signal or a debugger stopped the rank, and nothing resumed it",
        "look for who stopped it: `kill -STOP`, Ctrl-Z, a debugger, a scheduler that suspends jobs; `kill -CONT PID` resumes it",
        explains=("HCM833", *AFTER_AN_END), source="report.json of the run",
    ),
)  # fmt: skip
