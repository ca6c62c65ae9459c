"""Lines of files beside the logs that show a fault of a host: the output of df, hccn_tool, npu-smi, kubectl, sinfo.

They are facts: such a file has no time of the failure, and other hosts, disks and nodes may have faults that the
job never saw. They count where the logs name no cause.
"""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Code, Message

_HEALTH = "look at `npu-smi info -t health -i N` and the events of the driver (`dmesg`); reset or replace the device"
_NODE = "`scontrol show node NAME` has the reason; a job that used the node must start again on others"
_POD = "`kubectl describe pod` has the reason below Events"

#: What the ranks report after a device has lost its memory.
_AFTER_ECC = ("HCM343", "HCM301")

MESSAGES = (
    Message(
        "HCM870", "state-disk-full", "fact",
        "a file system has no space left",
        "free space there, or use another one; the checkpoints, caches and logs of a rank may be on it",
        anchor=b"% /", pattern=rb"^(?!/dev/loop|squashfs|udev)(?P<reason>[^\s|]{1,200}) +[\w.]{1,12} +[\w.]{1,12} +[\w.-]{1,12} +100% +(?P<file>/(?!snap/|boot/efi)\S{0,200})\s*$",
        source="the output of df", example="/dev/nvme0n1p1  3.5T  3.5T     0 100% /data",
    ),
    Message(
        "HCM871", "state-link-down", "fact",
        "the network port of a device is down",
        "check the cable, the optics and the switch (`hccn_tool -i N -link_stat -g`, `hccn_tool -i N -optical -g`)",
        anchor=b"ink status", pattern=rb"^(?:[^\n]{0,60}?\b(?:npu|NPU|dev|device|chip)[ _#:=\[]{0,3}(?P<device>\d{1,2})\b)?[^\n]{0,60}?\b[Ll]ink status ?[:=] ?(?P<reason>DOWN|[Dd]own)\b",
        source="the output of hccn_tool", example="link status: DOWN",
    ),
    Message(
        "HCM872", "state-network-health", "fact",
        "a device does not reach the address that checks its network",
        "check the gateway and the detect address of the device (`hccn_tool -i N -netdetect -g`), its link and the switch",
        anchor=b"et health status", pattern=rb"[Nn]et health status ?[:=] ?(?P<reason>(?!Success|Init|OK|success|init)\w[\w ]{2,60})",
        source="the output of hccn_tool", example="net health status: Receive timeout",
    ),
    Message(
        "HCM873", "state-device-health", "fact",
        "a fault of a device that npu-smi reports",
        _HEALTH,
        anchor=b"| Alarm", pattern=rb"^\| *(?P<device>\d{1,3}) +[\w-]{2,30} *\| *(?P<reason>Alarm)\b",
        source="the output of npu-smi", example="| 1     910B2               | Alarm         | 91.0        41                0    / 0             |",
    ),
    Message(
        "HCM874", "state-device-critical", "fact",
        "a fault of a device that npu-smi reports",
        _HEALTH,
        anchor=b"| Critical", pattern=rb"^\| *(?P<device>\d{1,3}) +[\w-]{2,30} *\| *(?P<reason>Critical)\b",
        source="the output of npu-smi", example="| 1     910B2               | Critical      | 91.0        41                0    / 0             |",
    ),
    Message(
        "HCM875", "state-health-item", "fact",
        "a fault of a device that npu-smi reports",
        _HEALTH,
        anchor=b"Health", pattern=rb"^\s*Health(?: Status)? *: *(?P<reason>Alarm|Critical|Warning)\b",
        source="the output of npu-smi", example="        Health Status                  : Alarm",
    ),
    Message(
        "HCM876", "state-pod-pending", "fact",
        "a pod has not started: Kubernetes has no node for it yet",
        f"{_POD}: what the nodes lack",
        anchor=b"Pending", pattern=rb"^(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +0/\d{1,3} +(?P<reason>Pending)\b",
        source="the output of kubectl", example="trainer-worker-2   0/1     Pending   0          12m",
    ),
    Message(
        "HCM877", "state-pod-creating", "fact",
        "a pod has not started: its container is not there yet",
        f"{_POD}: a volume, an image or a device that it waits for",
        anchor=b"ContainerCreating", pattern=rb"^(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +0/\d{1,3} +(?P<reason>ContainerCreating)\b",
        source="the output of kubectl", example="trainer-worker-2   0/1     ContainerCreating   0          12m",
    ),
    Message(
        "HCM878", "state-node-not-ready", "fact",
        "a node of Kubernetes is not ready",
        "`kubectl describe node` has the reason; the pods there are lost until it is back",
        anchor=b"NotReady", pattern=rb"^(?P<server>[a-z0-9][a-z0-9.-]{0,252}) +(?P<reason>NotReady\S{0,30})|\b(?P<value>NodeNotReady)\b",
        source="the output of kubectl", example="node-2   NotReady   worker   40d   v1.28.2",
    ),
    Message(
        "HCM879", "state-mount-failed", "fact",
        "Kubernetes could not mount a volume of a pod",
        "the line names the volume: check its server, its claim and the rights",
        anchor=b"FailedMount", pattern=rb"\bFailedMount\b.{0,200}?(?P<reason>(?:MountVolume|Unable to attach|mount failed|failed to).{0,200})",
        source="Kubernetes' sources (kubelet)", example='Warning  FailedMount  2m  kubelet  MountVolume.SetUp failed for volume "data" : mount failed: exit status 32',
    ),
    Message(
        "HCM880", "state-pod-crashes", "fact",
        "a container ends again and again",
        "`kubectl logs --previous` has the output of its last run",
        anchor=b"CrashLoopBackOff", pattern=rb"^(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +\d{1,3}/\d{1,3} +(?P<reason>(?:Init:)?CrashLoopBackOff)",
        source="the output of kubectl", example="trainer-worker-2   0/1     CrashLoopBackOff   7          12m",
    ),
    Message(
        "HCM881", "state-container-killed", "fact",
        "a signal ended a container",
        "137 is SIGKILL: of the memory limit if `docker inspect` has OOMKilled true or `dmesg` names the process, else of `docker stop`, of a probe or"
        " of kill -9; 139 is a fault in a library, 134 an abort",
        anchor=b"Exited (1", pattern=rb"^(?P<pod>[\w.-]{1,128})\b.{0,400}?(?P<reason>Exited \(1(?:3[2-9]|4[012])\)[\w ]{0,30}?(?= {2,}|$))",
        source="the output of docker", example='train-worker-2-1   train:1   "python3 a.py"   worker-2   2 hours ago   Exited (137) 3 minutes ago',
    ),
    Message(
        "HCM992", "state-container-exit", "fact",
        "a container ended with the exit code of a signal",
        "137 is SIGKILL: of the memory limit if its Reason is OOMKilled or `dmesg` of the node names the process, else of a probe, of the"
        " end of its grace period or of kill -9; 139 is a fault in a library, 134 an abort",
        anchor=b"Exit Code:", pattern=rb"^\s{1,40}Exit Code: {1,20}(?P<reason>1(?:3[2-9]|4[012]))\s*$",
        source="the output of kubectl describe", example="      Exit Code:    137",
    ),
    Message(
        "HCM994", "data-pipeline-slow", "fact",
        "the data pipeline does not keep up, and the training waits for batches",
        "measure the pipeline alone (its iterator without the network); use more workers, a faster disk or prepared data",
        anchor=b"Bad performance attention", pattern=rb"takes (?P<reason>more than \d{1,6} seconds) to fetch a batch",
        source="MindSpore's sources (minddata)",
        example="[WARNING] MD(4711,fffe,python):2026-03-18-10:33:52.113.403 [data_queue_op.cc:902] DetectPerBatchTime] Bad performance attention, it takes more than 25 seconds to fetch a batch of data from dataset pipeline, which might result `GetNext` timeout problem.",
    ),
    Message(
        "HCM882", "state-node-drained", "fact",
        "Slurm has taken a node out of use",
        _NODE,
        anchor=b" drain", pattern=rb"^\S{1,64} +(?:up|down|drain|inact) +\S{1,20} +\d{1,6} +(?P<reason>drain\w{0,4}[*~#!%$@+^-]{0,2}) +(?P<server>\S{1,400})\s*$",
        source="the output of sinfo", example="npu*         up   infinite      1  drain n002",
    ),
    Message(
        "HCM883", "state-node-down", "fact",
        "a node of Slurm is down",
        _NODE,
        anchor=b" down", pattern=rb"^\S{1,64} +(?:up|down|drain|inact) +\S{1,20} +\d{1,6} +(?P<reason>down[*~#!%$@+^-]{0,2}) +(?P<server>\S{1,400})\s*$",
        source="the output of sinfo", example="npu*         up   infinite      1  down* n002",
    ),
    Message(
        "HCM884", "state-node-in-control", "fact",
        "Slurm has taken a node out of use, or has lost it",
        _NODE,
        anchor=b"State=", pattern=rb"^\s*State=(?P<reason>[A-Z_+*]{0,40}(?:DOWN|DRAIN|FAIL|NOT_RESPONDING)[A-Z_+*]{0,40})",
        source="the output of scontrol", example="   State=DOWN*+DRAIN ThreadsPerCore=1",
    ),
    Message(
        "HCM885", "state-node-reason", "fact",
        "Slurm has taken a node out of use, or has lost it",
        _NODE,
        anchor=b"Not responding", pattern=rb"^(?P<reason>Not responding) +\w{1,32} +\d{4}-\d\d-\d\dT[\d:]{8} +(?P<server>\S{1,400})\s*$",
        source="the output of sinfo -R", example="Not responding       slurm     2026-03-18T10:01:00 n002",
    ),
    Message(
        "HCM886", "state-listener", "fact",
        "a process listens on a port",
        "nothing",
        anchor=b"users:((", pattern=rb"^(?:tcp +)?LISTEN +\d{1,9} +\d{1,9} +\S{0,64}:(?P<port>\d{1,5}) .{0,120}?users:\(\(\"(?P<program>[^\"]{1,64})\",pid=(?P<pid>\d{1,7})",
        source="the output of ss", example='LISTEN 0 128 0.0.0.0:29500 0.0.0.0:* users:(("python3",pid=777,fd=3))',
    ),
    Message(
        "HCM887", "state-listener-netstat", "fact",
        "a process listens on a port",
        "nothing",
        anchor=b" LISTEN ", pattern=rb"^tcp6? +\d{1,9} +\d{1,9} +\S{0,64}:(?P<port>\d{1,5}) +\S{1,64} +LISTEN +(?P<pid>\d{1,7})/(?P<program>\S{1,64})",
        source="the output of netstat", example="tcp        0      0 0.0.0.0:29500           0.0.0.0:*               LISTEN      777/python3",
    ),
    Message(
        "HCM888", "state-device-process", "fact",
        "a process uses a device",
        "nothing",
        anchor=b"| python", pattern=rb"^\| *(?P<device>\d{1,3}) +\d{1,2} *\| *(?P<pid>\d{1,7}) *\| *(?P<program>python[\w.]{0,20}) *\| *(?P<value>\d{1,9}) *\|",
        source="the output of npu-smi", example="| 0       0                 | 31999         | python3                  | 55000                   |",
    ),
    Message(
        "HCM732", "exit-code-said", "fact",
        "the exit code of a launcher",
        "nothing",
        anchor=b"xit", pattern=rb"^(?:[^\n]{0,80}[\s:\])])?[Ee]xit(?:ed)?[ _-]?(?:code|status|with code|with status)(?: is| was)?[ =:]{1,3}(?P<status>\d{1,3})\s*$",
        source="the output of shells and scripts", example="exit code 0",
    ),
    Message(
        "HCM733", "result-said", "fact",
        "the exit code of a launcher",
        "nothing",
        anchor=b"rc=", pattern=rb"^(?:[^\n]{0,60}\s)?rc= ?(?P<status>\d{1,3})\s*$", source="the output of shells and scripts", example="torchrun done, rc=0",
    ),
    Message(
        "HCM990", "job-complete", "fact",
        "a program says that it has done all of its work",
        "nothing",
        source="the output of training programs",
    ),
    Message(
        "HCM951", "state-too-hot", "fact",
        "a device or processor is too hot and lowers its clock",
        "look at the cooling and at the fans of the host (`npu-smi info`, `ipmitool sensor`)",
        anchor=b"emperature", pattern=rb"(?P<reason>[Oo]ver[ -]?[Tt]emperature[^\n]{0,120}|[Tt]emperature (?:is )?above threshold[^\n]{0,80})",
        source="the kernel (mce, device drivers)",
        example="[12345.678901] mce: CPU3: Core temperature is above threshold, cpu clock is throttled (total events = 1)",
    ),
    Message(
        "HCM999", "steps-slower", "timeout",
        "the steps became slower while the job ran",
        "look at what began at that time on the hosts: another job, a check of disks, heat (`npu-smi info`), a slow file server; if one rank alone is slower, the times of each rank show it",
        source="the times of steps in the logs of programs",
    ),
    Message(
        "HCM955", "state-tls-switch", "fact",
        "the TLS switch of the device",
        "it must be the same on all devices of the job: `hccn_tool -i N -tls -g`",
        anchor=b"tls switch[", pattern=rb"\b(?:dev_id|device|npu)[ :=]{1,3}(?P<device>\d{1,3}), ?tls switch\[(?P<tls>[01])\]",
        source="the output of hccn_tool (tls)",
        example="dev_id:3, tls switch[1](0:disable, 1:enable), tls preconfigured[1](0:non-preset, 1:preset), tls alarm time threshold[60]days",
    ),
    Message(
        "HCM957", "attempt-over", "fact",
        "an attempt of the job failed, and its launcher started all ranks again",
        "nothing",
        anchor=b"will restart worker group", source="torch's sources (elastic agent)",
        example="[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
    ),
    Message(
        "HCM935", "attempt-begins", "fact",
        "the launcher started the ranks of a further attempt",
        "nothing",
        anchor=b"restart_count=", pattern=rb"\brestart_count=[1-9]\d{0,5}\b", source="torch's sources (elastic agent)",
        example="[default] Starting worker group, restart_count=1",
    ),
    Message(
        "HCM936", "launch-again", "fact",
        "`hccl-tools launch` started all ranks again",
        "nothing",
        anchor=b"starting all ranks again", source="hccl-tools",
        example="hccl-tools: restart 1 of 3: starting all ranks again",
    ),
    Message(
        "HCM958", "memory-bits", "cause",
        "the memory of the device has more wrong bits than it can correct",
        "look at `npu-smi info -t ecc -i N`; replace the device if it repeats",
        anchor=b"ECC", pattern=rb"^(?![^\n]{0,900}\b507054\b)(?:(?=[^\n]{0,600}?\bdev(?:ice)?(?:[ _]?id)?[ :=\[(]{1,3}(?P<device>\d{1,5})\b))?[^\n]{0,600}?(?:(?:[Mm]ulti|MULTI)[ -](?:[Bb]it|BIT)s? ECC|(?:[Uu]ncorrectable|UNCORRECTABLE) ECC)",
        codes=(Code("507054"),), explains=_AFTER_ECC, source="CANN's sources (runtime), and the kernel (device driver)",
        example="[ERROR] RUNTIME(6604,python3):2026-03-18-01:02:03.113.403 [device_error_proc.cc:290] [6604]HBM MULTI BIT ECC, Uncorrectable ECC, device_id=4, event_id=0x80e01801",
    ),
    Message(
        "HCM998", "loss-not-a-number", "cause",
        "the loss is not a number",
        "the job goes on, and its result is of no use: look at the steps before this line: overflow and loss scale, learning rate, gradients, data; go on from a checkpoint before it",
        source="the output of training programs",
    ),
    Message(
        "HCM945", "state-raid-check", "fact",
        "the kernel checks or rebuilds a RAID array, which slows every reader of its disks",
        "stop or slow the check (`echo idle > /sys/block/MD/md/sync_action`, /proc/sys/dev/raid/speed_limit_max), or move it to a time without jobs",
        anchor=b" of RAID array ", pattern=rb"md: (?P<reason>(?:data-check|resync|recovery|reshape) of RAID array \w{1,40})", source="the kernel (md)",
        example="Mar 18 01:00:02 hosta kernel: md: data-check of RAID array md127",
    ),
    Message(
        "HCM946", "state-clock-lowered", "fact",
        "the clock of a device",
        "nothing",
        anchor=b"curFreq", pattern=rb"^\s*A[Ii]core curFreq\(MHZ\) *: *(?P<value>\d{2,5})", source="the output of npu-smi",
        example="\tAicore curFreq(MHZ)            : 800",
    ),
    Message(
        "HCM759", "package-version-differs", "error",
        "a package has another version on this host than on the others",
        "install the same versions on all hosts (compare `pip list`), then start the job again",
        source="lists of packages beside the logs",
    ),
    Message(
        "HCM761", "device-not-in-container", "cause",
        "the program asks for devices that its container or host does not have",
        "pass these devices to the container (docker: --device /dev/davinciN each; Kubernetes: a request of huawei.com/Ascend...), or"
        " lower the number of devices in its configuration (MindIE: npuDeviceIds and worldSize; vLLM: --tensor-parallel-size)",
        source="a listing of /dev beside the logs",
    ),
    Message(
        "HCM911", "state-power-lost", "fact",
        "the host lost its power, or was switched off",
        "look at its power supplies and the power of the rack; `ipmitool sel list` has the times",
        anchor=b"Asserted", pattern=rb"^\s*[0-9a-f]{1,6} ?\| (?P<moment>\d\d/\d\d/(?:20)?\d\d \| \d\d:\d\d:\d\d)[^|\n]{0,20}\|"
        rb" (?P<reason>[^|\n]{1,80}\| (?:Power Supply AC lost|Power off/down|AC lost|Power cycle|Power Unit Failure[^|\n]{0,20}"
        rb"|Upper Non-recoverable going high|Thermal Trip|CATERR|Run-time Stop|Soft-?power control failure)) *\| Asserted",
        source="the event log of the BMC (ipmitool sel)",
        example="  32 | 03/18/2026 | 10:33:51 | Power Unit #0x01 | Power off/down | Asserted",
    ),
    Message(
        "HCM912", "state-host-started", "fact",
        "the host started again",
        "look at what happened before it: `last -x` (a line `shutdown` is a planned one), `journalctl -b -1 -e`, `ipmitool sel list`",
        anchor=b"system boot", pattern=rb"^reboot +system boot +\S{1,64} +(?P<moment>[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d)",
        source="the output of last -x", example="reboot   system boot  5.10.0-136.12.0. Wed Mar 18 10:41   still running",
    ),
    Message(
        "HCM928", "state-host-shut-down", "fact",
        "the host was shut down or restarted on purpose",
        "find out who did it: `last -x`, `journalctl -b -1 -e`",
        anchor=b"system down", pattern=rb"^shutdown +system down +\S{1,64} +(?P<moment>[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d)",
        source="the output of last -x", example="shutdown system down  5.10.0-136.12.0. Wed Mar 18 10:33 - 10:41  (00:07)",
    ),
    Message(
        "HCM947", "state-fan", "fact",
        "a fan of the host has stopped",
        "replace the fan; devices without air lower their clock",
        anchor=b"Fan ", pattern=rb"\|\s*(?P<reason>Fan [\w ]{1,40})\| *Lower (?:Critical|Non-recoverable)[\w -]{0,40}\| *Asserted", source="the event log of the BMC (ipmitool sel)",
        example="  1a | 03/18/2026 | 10:33:52 | Fan FAN1 F Speed | Lower Critical going low  | Asserted | Reading 0 < Threshold 1200 RPM",
    ),
    Message(
        "HCM950", "state-link-record", "fact",
        "the network port of a device was down",
        "nothing",
        anchor=b"LINK DOWN", pattern=rb"^(?:\[devid (?P<device>\d{1,3})\])? *(?P<reason>[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d 20\d\d) +LINK DOWN", source="the output of hccn_tool (link_stat)",
        example="[devid 3]    Wed Mar 18 10:33:52 2026    LINK DOWN",
    ),
)  # fmt: skip
