"""Messages of the kernel, of Python and of report.json about processes and hosts."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import AFTER_AN_END, Message

_MEMORY = "use less memory per rank, fewer data-loading workers, or a larger limit of the container or job"
_PROCESSES = (
    "raise the limit (`ulimit -u`, docker: --pids-limit, Kubernetes: podPidsLimit of the kubelet), or start fewer threads"
    " (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS) and data-loading workers"
)
_PCIE = (
    "compare `npu-smi info` and `lspci` with a sound host: a device is missing; power the host off and on, and let the card, its riser or"
    " its slot be checked if it comes back"
)
_INDEX = "an index is outside of the table that it is looked up in, as a rule a token id beyond the model's embedding"
_VOCABULARY = (
    "compare len(tokenizer) with the rows of the embedding (vocab_size of the model): after adding tokens call"
    " model.resize_token_embeddings(len(tokenizer)), and use the tokenizer of the model; the device is not at fault"
)

MESSAGES = (
    Message(
        "HCM802", "kernel-cgroup-oom", "cause",
        "a container or job reached its memory limit, and the kernel ended a process",
        _MEMORY,
        anchor=b"emory cgroup out of memory", pattern=rb"emory cgroup out of memory: [Kk]ill(?:ed)? process (?P<pid>\d+) ?\((?P<program>[^)]*)\)",
        explains=(*AFTER_AN_END, "HCM752"), source="the Linux kernel",
        example="[12345.678901] Memory cgroup out of memory: Killed process 4711 (python3) total-vm:812345kB",
    ),
    Message(
        "HCM801", "kernel-oom", "cause",
        "the kernel's out-of-memory killer ended a process",
        _MEMORY,
        anchor=b"illed process", pattern=rb"[Kk]illed process (?P<pid>\d+) ?\((?P<program>[^)]*)\)",
        explains=(*AFTER_AN_END, "HCM752"), source="the Linux kernel",
        example="[12345.678901] Out of memory: Killed process 4711 (python3) total-vm:812345kB, anon-rss:512345kB",
    ),
    Message(
        "HCM803", "python-memory", "cause",
        "the host has no memory left for the process",
        _MEMORY,
        anchor=b"MemoryError", pattern=rb"(?<![A-Za-z])(?:_Array)?MemoryError(?::|\s*$)", explains=AFTER_AN_END, source="Python",
        example="MemoryError: error",
    ),
    Message(
        "HCM985", "heap-damaged", "error",
        "a library damaged the memory of the process, which ended it (SIGABRT)",
        "look for libraries of other versions and for extensions of your own: `python -X faulthandler` shows the Python stack,"
        " MALLOC_CHECK_=3 the first damaged block",
        anchor=b"(): ", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?(?P<reason>(?:free|malloc|munmap_chunk|realloc)\(\): (?:invalid|corrupted|mismatching|unaligned|unsorted|double)[^\n]{0,80})",
        explains=AFTER_AN_END, source="the C library (malloc)",
        example="free(): invalid pointer",
    ),
    Message(
        "HCM989", "double-free", "error",
        "a library damaged the memory of the process, which ended it (SIGABRT)",
        "look for libraries of other versions and for extensions of your own: `python -X faulthandler` shows the Python stack,"
        " MALLOC_CHECK_=3 the first damaged block",
        anchor=b"orrupt", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?(?:\*{3} Error in [^\n]{0,200}?: )?(?P<reason>double free or corruption|corrupted size vs\. prev_size|corrupted double-linked list)",
        explains=AFTER_AN_END, source="the C library (malloc)",
        example="double free or corruption (!prev)",
    ),
    Message(
        "HCM756", "kernel-segfault", "fact",
        "a process used memory that it does not have (SIGSEGV), in the kernel's words",
        "nothing",
        anchor=b"]: segfault at ", pattern=rb"\b(?P<program>[\w.:/+-]{1,40})\[(?P<pid>\d{1,10})\]: segfault at [^\n]{0,160}? in (?P<file>[\w.+-]{1,120})",
        source="the Linux kernel",
        example="[12345.678901] python3[4711]: segfault at 10 ip 0000ffff8c2a11d4 sp 0000ffff1b7fd0a0 error 4 in libascendcl.so[ffff8c200000+15c000]",
    ),
    Message(
        "HCM962", "cpp-exception", "error",
        "an exception of a library in C++ ended the process (SIGABRT)",
        "the line below it (what()) has the reason; `python -X faulthandler` shows the call in the program",
        anchor=b"terminate called after throwing", pattern=rb"terminate called after throwing an instance of '(?P<reason>[^'\n]{1,120})'",
        explains=AFTER_AN_END, source="the C++ library",
        example="terminate called after throwing an instance of 'std::runtime_error'",
    ),
    Message(
        "HCM965", "kernel-panic", "cause",
        "the kernel of a host stopped (panic): the host is down or has started again",
        "`last -x` on the host shows the restart; look at the lines before the panic, and at its hardware log (BMC)",
        anchor=b"Kernel panic", pattern=rb"\bKernel panic - not syncing: ?(?P<reason>[^\n]{0,160})",
        explains=(*AFTER_AN_END, "HCM712", "HCM991"), source="the Linux kernel",
        example="Mar 18 10:33:52 hostb kernel: Kernel panic - not syncing: Fatal exception",
    ),
    Message(
        "HCM804", "shared-memory", "cause",
        "the shared memory (/dev/shm) is full or too small",
        "start the container with a larger one (docker: --shm-size), or use fewer data-loading workers",
        anchor=b"us error", pattern=rb"\b[Bb]us error\b", explains=AFTER_AN_END, source="torch's sources",
        example="RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. bus error. It is possible that dataloader's workers are out of shared memory.",
    ),
    Message(
        "HCM805", "disk-full", "cause",
        "a disk is full",
        "free space (`df -h` shows the full file system), then start the job again",
        anchor=b"No space left on device", explains=AFTER_AN_END, source="the C library",
        example="OSError: [Errno 28] No space left on device: error",
    ),
    Message(
        "HCM890", "address-in-use", "cause",
        "a port that the program wants to listen on is in use",
        "stop the process that uses it (`ss -ltnp` shows it), or choose another port",
        anchor=b"ddress already in use", pattern=rb"(?:\bport[ :=\[]{1,3}(?P<port>\d{2,5}).{0,200}?)?ddress already in use", explains=AFTER_AN_END, source="the C library",
        example="OSError: [Errno 98] Address already in use",
    ),
    Message(
        "HCM806", "open-files", "cause",
        "the process has reached its limit of open files",
        "raise it in the shell that starts the job: `ulimit -n 1048576`",
        anchor=b"Too many open files", explains=AFTER_AN_END, source="the C library",
        example="OSError: [Errno 24] Too many open files",
    ),
    Message(
        "HCM814", "task-blocked", "cause",
        "a process waits in the kernel, usually for a disk or a file server",
        "look at the lines below it (its stack names the file system) and at `dmesg` for a server that does not respond",
        anchor=b" blocked for more than ", pattern=rb"task (?P<program>[^\s:]{1,64}):(?P<pid>\d{1,10}) blocked for more than \d{1,9} seconds",
        explains=AFTER_AN_END, source="the kernel (hung tasks)",
        example="[12345.678901] INFO: task python3:4711 blocked for more than 120 seconds.",
    ),
    Message(
        "HCM929", "cpu-lockup", "error",
        "a CPU of the host was stuck in the kernel",
        "look at what the kernel reports beside it (`dmesg -T`): a driver, a file system or a broken CPU; update the kernel or the driver that it names",
        anchor=b" lockup - CPU#", pattern=rb"BUG: (?P<reason>(?:soft|hard) lockup - CPU#\d{1,6} stuck for \d{1,9}s)! \[(?P<program>[^\]\n]{1,64}):(?P<pid>\d{1,10})\]",
        explains=AFTER_AN_END, source="the Linux kernel (watchdog)",
        example="[12345.678901] watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [python3:4711]",
    ),
    Message(
        "HCM815", "nfs-not-responding", "error",
        "a file server does not respond (NFS)",
        "check the server and the network to it; processes that use its files wait until it responds",
        anchor=b"not responding", pattern=rb"nfs: server (?P<reason>\S{1,253}) not responding", source="the kernel (NFS)",
        example="[12345.678901] nfs: server 10.8.0.200 not responding, still trying",
    ),
    Message(
        "HCM816", "storage-error", "error",
        "a disk or a file server returned an error",
        "look at the lines around it in the kernel's log, and at the health of the disk or of the server; processes that use its files fail or wait",
        anchor=b"I/O error", pattern=rb"(?:kernel: |\] |^)(?P<reason>(?:blk_update_request|Buffer I/O error|print_req_error|EXT4-fs|XFS|critical medium|I/O error, dev|Lustre|nvme\w{0,8}|NFS).{0,160})",
        source="the kernel",
        example="[12345.678901] blk_update_request: I/O error, dev nvme0n1, sector 88123",
    ),
    Message(
        "HCM817", "nfs-responds-again", "fact",
        "a file server responds again (NFS)",
        "nothing",
        anchor=b"nfs: server", pattern=rb"nfs: server (?P<reason>\S{1,253}) OK", source="the kernel (NFS)",
        example="[12345.678901] nfs: server 10.8.0.200 OK",
    ),
    Message(
        "HCM818", "lustre-lost", "error",
        "a file server does not respond (Lustre)",
        "check the server and the network to it; processes that use its files wait until it responds",
        anchor=b"ustre", pattern=rb"Lustre(?:Error)?: .{0,160}?(?P<reason>[Cc]onnection to \S{1,120} .{0,60}?was lost|.{0,80}?operation \w{1,40} .{0,60}?failed)", source="the kernel (Lustre)",
        example="LustreError: 11-0: data-OST0003-osc: operation ost_write to node 10.8.0.3@tcp failed: rc = -5",
    ),
    Message(
        "HCM819", "file-system-timeout", "error",
        "a file system does not respond",
        "check the server and the network to it; processes that use its files wait until it responds",
        anchor=b"ceph", pattern=rb"(?P<reason>(?:lib)?ceph: (?:mds|osd|mon)\d{1,6} .{0,80}?(?:hung|down|session lost|caps stale|socket closed))", source="the kernel (Ceph)",
        example="ceph: mds0 caps stale",
    ),
    Message(
        "HCM930", "pcie-fatal", "error",
        "the host lost a device on the PCIe bus",
        _PCIE,
        anchor=b"AER: ", pattern=rb"(?P<reason>\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d: AER: (?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error[^\n]{0,100})", source="the kernel (AER)",
        example="[12345.678901] pcieport 0000:80:04.0: AER: Uncorrected (Fatal) error received: 0000:81:00.0",
    ),
    Message(
        "HCM931", "pcie-link-down", "error",
        "the host lost a device on the PCIe bus",
        _PCIE,
        anchor=b"pciehp", pattern=rb"(?P<reason>(?:\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d[: ]{1,2})?pciehp: Slot\([\w-]{1,12}\): (?:Link Down|Card not present))", source="the kernel (pciehp)",
        example="[12345.678901] pcieport 0000:80:04.0: pciehp: Slot(3): Link Down",
    ),
    Message(
        "HCM932", "pcie-fallen-off", "error",
        "the host lost a device on the PCIe bus",
        _PCIE,
        anchor=b"fallen off the bus", pattern=rb"(?P<reason>\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d[^\n]{0,100}fallen off the bus)", source="the kernel",
        example="[12345.678901] devdrv_device_driver 0000:81:00.0: device has fallen off the bus",
    ),
    Message(
        "HCM933", "index-out-of-range", "error",
        _INDEX,
        _VOCABULARY,
        anchor=b"index out of range in self", source="torch's sources (embedding)",
        example="IndexError: index out of range in self",
    ),
    Message(
        "HCM808", "no-new-thread", "cause",
        "the process could not start another thread",
        _PROCESSES,
        anchor=b"can't start new thread", explains=AFTER_AN_END, source="Python",
        example="RuntimeError: can't start new thread",
    ),
    Message(
        "HCM809", "fork-rejected", "cause",
        "a container or a job has reached its limit of processes, and the kernel refused another one",
        _PROCESSES,
        anchor=b"fork rejected by pids controller", explains=AFTER_AN_END, source="the kernel (cgroups)",
        example="[12345.678901] cgroup: fork rejected by pids controller in /kubepods.slice/pod1",
    ),
    Message(
        "HCM812", "write-failed", "error",
        "a file could not be written completely",
        "look whether a disk is full or a quota is used up (`df -h`, `quota`); the checkpoint that was written is incomplete",
        anchor=b"failed writing file", pattern=rb"PytorchStreamWriter failed writing file (?P<file>[^\s:]{1,200})", source="torch's sources",
        example="RuntimeError: [enforce fail at inline_container.cc:783] . PytorchStreamWriter failed writing file data/181: file write failed",
    ),
    Message(
        "HCM807", "hccn-tool-missing", "cause",
        "a script that makes the rank table found no hccn_tool and no address in /etc/hccn.conf",
        "use `hccl-tools gen`, which writes a table without addresses where the product needs none; in a container"
        " mount hccn_tool and /etc/hccn.conf",
        anchor=b"Failed to call hccn_tool", source="published logs",
        example="hccl_tools.py: Failed to call hccn_tool, try to read /etc/hccn.conf instead",
    ),
    Message(
        "HCM811", "torch-hccl-error", "code",
        "a call of HCCL failed",
        "look at the code and the lines that follow it, and at the plog of this rank",
        anchor=b"HCCL error in", pattern=rb"Error: .{0,40}HCCL error in", source="torch_npu's sources (ProcessGroupHCCL)",
        example="RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64",
    ),
    Message(
        "HCM896", "failed-call", "code",
        "a call of CANN failed",
        "the number alone does not say why: look for the first [ERROR] line of the rank's plog",
        anchor=b"Error", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?[\w.]{0,100}(?:Error|Exception): (?P<reason>.{0,300}?\berror ?code(?: is|:|=)? ?\d{5,6}\b.{0,100})",
        source="published logs",
        example="RuntimeError: aclnnMatMul failed, error code is 561999",
    ),
    Message(
        "HCM813", "worker-exception", "code",
        "an exception of a worker process was raised again",
        "look at the original exception below it",
        anchor=b": Caught ", pattern=rb": Caught (?P<reason>\w{1,100} in [\w ]{1,60} process [\w ]{1,20})", source="torch's sources (reraise)",
        example="ValueError: Caught ValueError in DataLoader worker process 5.",
    ),
    Message(
        "HCM898", "error-above", "code",
        "a call of CANN failed, with the reason in the lines above",
        "look at the lines above it; ASCEND_LAUNCH_BLOCKING=1 shows the call in the program",
        anchor=b"nner error is reported as above", pattern=rb"nner error is reported as above(?:.{0,200}?operator name is (?P<reason>\w{1,100}))?",
        source="torch_npu's sources", example="RuntimeError: The Inner error is reported as above. The current working operator name is aclnnEmbedding.",
    ),
    Message(
        "HCM889", "no-standard-input", "cause",
        "the program reads standard input (`input()`), which the ranks of a job do not have",
        "read the value from an argument or a variable; `hccl-tools launch --stdin RANK` gives one rank the standard input of the launcher",
        anchor=b"EOFError: EOF when", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?EOFError: EOF when reading a line\s*$", explains=("HCM821",),
        source="Python",
        example="EOFError: EOF when reading a line",
    ),
    Message(
        "HCM810", "python-exception", "error",
        "the program raised an exception",
        "look at the traceback above this line of the log",
        anchor=b"Error", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?(?P<reason>[\w.]{0,100}(?:Error|Exception)(?:: .{0,3000})?)\s*$",
        source="Python",
        example="ValueError: 0 samples in this shard",
    ),
    Message(
        "HCM899", "exception-handled", "fact",
        "the program handled an exception and went on",
        "nothing",
        source="the words beside a traceback, such as skipped or retrying",
    ),
    Message(
        "HCM897", "python-interrupted", "end",
        "the process was interrupted (SIGINT)",
        "nothing, if a user pressed Ctrl-C or stopped the job",
        anchor=b"KeyboardInterrupt", pattern=rb"^KeyboardInterrupt\b", source="Python",
        example="KeyboardInterrupt",
    ),
    Message(
        "HCM820", "rank-killed", "error",
        "a signal ended the rank",
        "SIGKILL comes from a kill -9, or from the out-of-memory killer if `dmesg` names the process; SIGSEGV and"
        " SIGBUS from a fault in a library",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM891", "rank-aborted", "error",
        "the rank aborted itself (SIGABRT)",
        "look at the end of its log: a failed assertion or an exception of a library in C++ is printed before the abort",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM892", "rank-terminated", "error",
        "SIGTERM ended the rank, and the launcher had not sent it",
        "look for what sent it: the batch system (time limit, preemption), the container's runtime, a script, a user, or the program itself",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM821", "rank-exited", "error",
        "the rank ended with an exit code other than 0",
        "look at the end of its log",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM822", "rank-out-of-memory", "cause",
        "the kernel's out-of-memory killer ended the rank",
        _MEMORY,
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM823", "host-lost", "cause",
        "the launcher lost a host of the job",
        "check that the host is up and reachable, and start the job without it if it is not",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM830", "engine-failed", "error",
        "the program that starts the ranks failed before them",
        "its last lines say why: mpirun's and srun's own messages are in engine.log and engine_errors.log of the run",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM831", "ssh-unreachable", "cause",
        "the host cannot be reached over ssh",
        "check the name and the port of the host and that its sshd runs: `ssh HOST true` must work without a password",
        anchor=b"ssh: connect to host", pattern=rb"connect to host (?P<server>\S+) port (?P<port>\d+): (?P<reason>.*)",
        explains=("HCM830", "HCM703"), source="OpenSSH",
        example="ssh: connect to host hostb port 22: No route to host",
    ),
    Message(
        "HCM984", "ssh-host-key", "cause",
        "ssh does not know the key of a host, or the host has another key now",
        "`ssh HOST true` must work without a question: compare the key with the host's, then `ssh-keyscan HOST >> ~/.ssh/known_hosts`",
        anchor=b"ost key verification failed", pattern=rb"^(?:pdsh@\S{1,64}: )?(?:(?P<server>[A-Za-z0-9][\w.-]{0,252}): )?Host key verification failed",
        explains=("HCM830", "HCM703"), source="OpenSSH",
        example="hostb: Host key verification failed.",
    ),
    Message(
        "HCM832", "ssh-refused", "cause",
        "the host does not accept this user's ssh key",
        "`ssh HOST true` must work without a password: add your public key there (`ssh-copy-id HOST`)",
        anchor=b"Permission denied (publickey",
        pattern=rb"(?:[^\s@]{1,64}@(?P<server>[^\s@]{1,255}): )?Permission denied \(publickey", explains=("HCM830", "HCM703"), source="OpenSSH",
        example="user@hostb: Permission denied (publickey,password).",
    ),
    Message(
        "HCM827", "time-limit", "code",
        "the job exceeded the --timeout of its launch",
        "raise --timeout; if the job hung, `--hang-timeout` shows in which step, with the stacks of its ranks; the end of each rank's log may too",
        source="report.json of the run",
    ),
    Message(
        "HCM833", "job-hung", "error",
        "the job was ended because it hung (--hang-timeout)",
        "look at what the ranks that stopped first were doing: state, last line and stack are in report.json (`hung`)",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM828", "process-lost", "error",
        "a process that the job needs was lost",
        "look for who killed it: the out-of-memory killer (`dmesg`), a batch system or a user",
        explains=AFTER_AN_END, source="report.json of the run",
    ),
    Message(
        "HCM829", "launch-ended", "end",
        "a signal ended the launcher, which ended the ranks",
        "nothing",
        source="report.json of the run",
    ),
    Message(
        "HCM893", "logs-not-collected", "timeout",
        "the other ranks wait, and what happened here is in none of these logs",
        "fetch the missing logs (by default ~/ascend/log of the host, and what the program printed) and explain them with these",
        source="the absence of its lines",
    ),
    Message(
        "HCM894", "operations-differ", "timeout",
        "the ranks of a communicator are in different operations",
        "compare the order of the operations on these ranks: the same script, options, number of steps and amount of data",
        source="the operations that the lines name",
    ),
    Message(
        "HCM895", "rank-behind", "timeout",
        "the rank is behind the others: its operation has a lower number",
        "find out why it has fewer operations (a skipped step, less data, another branch of the program), or what holds it up",
        source="the numbers of the operations that the lines name",
    ),
    Message(
        "HCM948", "uneven-steps", "timeout",
        "the rank has fewer steps than the others: it has left the loop, and they wait for it in another operation",
        "give every rank the same number of batches (drop_last, a sampler that pads such as DistributedSampler or DistributedBatchSampler, or"
        " torch's Join): compare the numbers of samples of the ranks; a longer time limit does not help, and the network is not at fault",
        source="the last steps of the ranks' logs",
    ),
    Message(
        "HCM949", "rank-slow", "timeout",
        "the rank is slower than the others, which wait for it in every step",
        "look at what its time is spent on: data (the disk or file server of its host), or computing (the clock and the temperature of its"
        " device: `npu-smi info -t common -i N`, fans, other processes on the host)",
        source="the times in the ranks' logs",
    ),
    Message(
        "HCM824", "rank-silent", "timeout",
        "silent while other ranks wait",
        "look at the log and at the process there: it hangs, was never started, or its host or network is gone",
        source="the absence of its lines",
    ),
    Message(
        "HCM915", "job-stood-still", "timeout",
        "the job hung until it was stopped: the last line of its logs is",
        "while it hangs, take the stack of each rank (`py-spy dump --pid PID`, or `hccl-tools stacks RUN`); with a time limit"
        " (HCCL_EXEC_TIMEOUT above 0, `launch --hang-timeout`) the ranks that wait report it",
        source="the last times in the logs of the ranks",
    ),
    Message(
        "HCM834", "rank-at-work", "timeout",
        "still at work while the other ranks waited for it: the last line is",
        "let this work end before the ranks communicate (prepare data, models and kernels before the job, or on every host), or"
        " raise the time limit of the waits (HCCL_CONNECT_TIMEOUT, HCCL_EXEC_TIMEOUT, the timeout of init_process_group); if the line is"
        " much older than the time-outs, `py-spy dump --pid PID` shows where the process hangs",
        source="the last line of the rank's log",
    ),
    Message(
        "HCM835", "address-of-one-host", "timeout",
        "the other hosts cannot reach the address that they were given",
        "select the interface of the network between the hosts, on every host: HCCL_SOCKET_IFNAME or HCCL_IF_IP for HCCL,"
        " GLOO_SOCKET_IFNAME for gloo, MASTER_ADDR or MS_SCHED_HOST for the rendezvous; for 127.0.1.1 correct the host's own name in /etc/hosts",
        source="the addresses that the lines name",
    ),
    Message(
        "HCM836", "address-of-no-host", "timeout",
        "the ranks look for an address that none of their hosts has",
        "compare MASTER_ADDR, MS_SCHED_HOST or the root's address with `ip address` of rank 0's host; a host of which no log is here may"
        " have it",
        source="the addresses that the lines name",
    ),
    Message(
        "HCM825", "rank-late", "timeout",
        "the rank came later than the others' time limit allows",
        "find out what delayed it (loading data, compiling, a slow disk), or raise HCCL_CONNECT_TIMEOUT"
        " (connections) or HCCL_EXEC_TIMEOUT (operations) on all ranks",
        source="the order of the time-outs",
    ),
    Message(
        "HCM619", "waiting-for-rank", "fact",
        "a rank waits for another one, in the words of the program",
        "nothing",
        anchor=b"aiting for rank ", pattern=rb"\b[Ww]aiting for rank (?P<peer>\d{1,6})\b", source="programs",
        example="2026-03-18 10:33:52 [rank1] waiting for rank 0 in torch.distributed.barrier()",
    ),
    Message(
        "HCM826", "waiting-cycle", "timeout",
        "ranks wait for each other in a cycle",
        "compare the order of the operations and sends on these ranks: each waits for one that the other has not"
        " reached; if the order is the same, check the links between them",
        source="the peers that the lines name",
    ),
    Message(
        "HCM997", "rank-steps-behind", "timeout",
        "the rank is some steps behind the others",
        "look at the end of its log and at its host: the others cannot go on without it; if it was only slow to write, all logs end like that",
        source="the last steps of the ranks' logs",
    ),
    Message(
        "HCM996", "rank-elsewhere", "timeout",
        "the rank is not in the operation in which the others wait for it",
        "look at what it does there: a file, a lock, another branch of the program; `hccl-tools stacks` shows the stacks again a little later",
        source="the stacks of the ranks (py-spy, faulthandler)",
    ),
    Message(
        "HCM940", "collective-not-ended", "timeout",
        "all ranks have begun the operation, and it has not ended: none is behind",
        "look at the transport: links and their errors (`hccn_tool -i N -link_stat -g`, `error cqe` in the plogs), the network between the"
        " hosts, and the devices (`npu-smi info`)",
        source="the dumps of torch's flight recorder",
    ),
    Message(
        "HCM941", "rank-without-dump", "timeout",
        "the rank has left no dump of its flight recorder, and the others wait",
        "look at the end of its log and at its stack: it has ended, is stopped, or is inside compiled code",
        source="the dumps of torch's flight recorder",
    ),
    Message(
        "HCM942", "rank-comes-last", "timeout",
        "the rank comes last to the operations of its group: the others wait for it each time",
        "compare its work and its host with the others': data, checkpoints, other programs, a slower device",
        source="the dumps of torch's flight recorder",
    ),
    Message(
        "HCM995", "ring-waits", "timeout",
        "an operation of HCCL did not end, and no rank is behind the others",
        "look for a link that lost packets (`error cqe` in the plogs, `hccn_tool -i N -link_stat -g`), and for ranks that got less time"
        " on their device; the stacks of the processes (`py-spy dump --pid PID`) help while a job hangs",
        source="the operations and the peers that the lines name",
    ),
)  # fmt: skip
