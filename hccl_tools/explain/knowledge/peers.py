"""Connections between programs besides HCCL's own: torch's store, gloo, RPC; and Kubernetes' word on a pod."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import AFTER_AN_END, Message

_NOT_REACHED = (
    "check that the process at that address runs and listens (`ss -ltn` there), that the address is one of its host in a network that both"
    " share, and that no firewall is between them (`nc -vz ADDRESS PORT` from this host)"
)
#: An address with a port, before or after the reason.
#: Of a connection from one address to another, the second one is that of the other end.
_ADDRESS = rb"(?=(?:.{0,600}?(?:\bfrom|\bsource:?|\blocal:?) [\[(]?[\d.]{7,15}[\])]?:\d{2,5}[ ,]{1,2}(?:to|destination:?|remote:?) )?.{0,600}?(?<![\d.])(?P<peer_address>(?:\d{1,3}\.){3}\d{1,3})(?:[\]'\")]{0,2}\s?[:,/]\s?|[\]'\",)]{0,2} ?(?:remote |server )?[Pp]ort[ =:\[(]{1,3})(?P<port>\d{2,5})\b)"
_GONE = "it closed the connection or ended first: read its log; the network is not to blame before"

_NAME_UNKNOWN = (
    "check the name (MASTER_ADDR, --rdzv-endpoint), the DNS and /etc/hosts of this host: `getent hosts NAME`; in"
    " Kubernetes a service or pod may not exist yet"
)

MESSAGES = (
    Message(
        "HCM660", "torch-clients-missing", "timeout",
        "rank 0 waited for ranks that did not reach torch's store",
        "look for the ranks that are missing: they were not started, failed before, or do not reach MASTER_ADDR and MASTER_PORT of"
        " rank 0's host",
        limit="store", anchor=b"clients joined",
        pattern=rb"Timed out after (?P<timeout>\d{1,6}) seconds waiting for clients\. (?P<reason>\d{1,6}/(?P<size>\d{1,6}) clients joined)",
        causes=("a rank was not started or failed before", "MASTER_ADDR names another host or a network that a host does not reach", "the number of ranks that the program was given is wrong"),
        source="torch's sources (TCPStore), and published logs",
        example="torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.",
    ),
    Message(
        "HCM979", "monitored-barrier", "timeout",
        "a rank waited in a barrier until the time limit for ranks that did not reach it",
        "look at the ranks that rank 0 names: they failed, hang, or are in another part of the program",
        limit="store", anchor=b"monitoredBarrier",
        pattern=rb"(?:\bRanks? (?P<peer>\d{1,7})(?:, \d{1,7}){0,64} failed to pass monitoredBarrier|\bmonitoredBarrier\b, but received errors|waiting in monitoredBarrier)",
        source="torch's sources (ProcessGroupGloo)",
        example="RuntimeError: [Rank 0]: Rank 3 failed to pass monitoredBarrier in 1800000 ms",
    ),
    Message(
        "HCM661", "rpc-peer-gone", "error",
        "the process at the other end is gone",
        _GONE,
        anchor=b"Got EOF of ", pattern=rb"Got EOF of (?:Socket)?\{?(?:.{0,100}?addr=(?P<peer_address>[0-9a-fA-F.:]{2,45}?):(?P<port>\d{1,5})\b)?",
        source="brpc's sources, and published logs (xllm#743)",
        example="Execute_model_async failed. Error code : 112, error message : [E1014]Got EOF of Socket{id=12 fd=61 addr=10.0.0.2:45019}",
    ),
    Message(
        "HCM662", "gloo-peer-gone", "error",
        "the process at the other end is gone",
        _GONE,
        anchor=b"gloo/transport/",
        pattern=rb"gloo/transport/.{0,100}?(?:Connection closed by peer|Connection reset by peer|Read error|Write error)(?: \[(?P<peer_address>[^\[\]\s]{1,64})\](?::(?P<port>\d{1,5}))?)?",
        source="gloo's sources, and published logs (pytorch#75512)",
        example="RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:28048",
    ),
    Message(
        "HCM983", "gloo-loopback", "cause",
        "gloo connects to a loopback address, which each host has for itself: its peer has announced the address of its own host name",
        "set GLOO_SOCKET_IFNAME on every host to the interface of the network between the hosts (`ip address`), or give the host's name its"
        " address of that network in /etc/hosts, where Debian writes 127.0.1.1",
        anchor=b"gloo/transport/", pattern=rb"gloo/transport/.{0,100}?connect \[(?P<value>127\.[\d.]{5,11}|::1)\]:\d{1,5}: (?P<reason>Connection refused)",
        explains=("HCM662", "HCM665"), source="gloo's sources",
        example="RuntimeError: [enforce fail at gloo/transport/tcp/pair.cc:784] connect [127.0.0.1]:3999: Connection refused",
    ),
    Message(
        "HCM663", "torch-store-gone", "error",
        "rank 0, which keeps torch's store, is gone",
        "look at the log of rank 0: it ended or was killed first",
        anchor=b"Failed to recv, got 0 bytes", source="torch's sources (TCPStore), and published logs",
        example="torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
    ),
    Message(
        "HCM952", "name-unknown", "cause",
        "the name of a host could not be looked up",
        _NAME_UNKNOWN,
        anchor=b"ame or service not known", pattern=rb"^(?![^\n]{0,200}\bssh: )(?:(?=[^\n]{0,400}?\((?P<reason>[A-Za-z0-9][A-Za-z0-9.-]{0,252}), ?\d{1,5}\)))?[^\n]{0,900}?[Nn]ame or service not known",
        explains=("HCM660", "HCM665", "HCM667"), source="the C library (getaddrinfo), and torch's sources (c10d)",
        example="torch.distributed.DistNetworkError: The IPv4 network addresses of (master-0, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
    ),
    Message(
        "HCM953", "name-lookup-failed", "cause",
        "the name of a host could not be looked up",
        _NAME_UNKNOWN,
        anchor=b"emporary failure in name resolution", pattern=rb"^(?![^\n]{0,200}\bssh: )(?:(?=[^\n]{0,400}?\((?P<reason>[A-Za-z0-9][A-Za-z0-9.-]{0,252}), ?\d{1,5}\)))?[^\n]{0,900}?[Tt]emporary failure in name resolution",
        explains=("HCM660", "HCM665", "HCM667"), source="the C library (getaddrinfo)",
        example="socket.gaierror: [Errno -3] Temporary failure in name resolution",
    ),
    Message(
        "HCM665", "connection-refused", "timeout",
        "could not connect to an address: it refused the connection",
        _NOT_REACHED,
        limit="store", anchor=b"onnection refused", pattern=rb"^(?!.{0,300}(?:client socket|gloo/))" + _ADDRESS + rb".{0,600}?(?P<reason>[Cc]onnection refused)",
        source="the C library",
        example="ConnectionError: connect to 10.0.0.1:29500 failed: Connection refused",
    ),
    Message(
        "HCM666", "no-route", "timeout",
        "could not connect to an address: no route leads there",
        _NOT_REACHED,
        limit="store", anchor=b"o route to host", pattern=rb"^(?!.{0,300}client socket)" + _ADDRESS + rb".{0,600}?(?P<reason>[Nn]o route to host)",
        source="the C library",
        example="dial tcp 10.0.0.1:6379: connect: no route to host",
    ),
    Message(
        "HCM667", "connection-timed-out", "timeout",
        "could not connect to an address: it did not answer in time",
        _NOT_REACHED,
        limit="store", anchor=b"imed out", pattern=rb"^(?!.{0,300}(?:client socket|connect server\[))" + _ADDRESS + rb"(?=.{0,600}?[Cc]onnect).{0,600}?(?P<reason>(?:[Cc]onnection|[Cc]onnect\w{0,4}|[Oo]peration) ?(?:has |was )?[Tt]imed out)",
        source="the C library",
        example="[Connect][Server]connect fail, errno[110] Connection timed out, remote ip[10.0.0.1:60000], retry",
    ),
    Message(
        "HCM664", "connection-lost", "error",
        "the program lost the connection to another process",
        "look for a process that ended or was killed before; the other end is in the line or in the traceback",
        anchor=b"Error", pattern=rb"^(?:\[[^\]]{0,40}\]:? ?)?(?P<reason>EOFError\b(?!: EOF when reading a line\s*$).{0,200}|[\w.]{0,100}(?:Error|Exception)\b.{0,200}?(?:[Cc]onnection (?:was |has been )?(?:reset|closed|refused|aborted)|[Bb]roken pipe)\b[^\[]{0,100}(?:\[(?P<peer_address>[0-9a-fA-F.:]{2,45})\](?::(?P<port>\d{1,5}))?)?)",
        source="Python, and the C library",
        example="ConnectionResetError: [Errno 104] Connection reset by peer",
    ),
    Message(
        "HCM668", "torch-store-connection", "fact",
        "a process lost its connection to torch's store, which is in the process of rank 0",
        "nothing",
        anchor=b"TCPStore.cpp:", pattern=rb"TCPStore\.cpp:\d{1,5}\] \[c10d\] \w{1,20} failed on SocketImpl\([^)\n]{0,200}?remote=\[(?P<peer_address>[^\]\s]{1,255})\]:(?P<port>\d{1,5})\)",
        source="torch's sources (TCPStore)",
        example="[W911 07:07:09.639 TCPStore.cpp:122] [c10d] recvValue failed on SocketImpl(fd=71, addr=[hostb]:46034, remote=[hosta]:29500): Connection reset by peer",
    ),
    Message(
        "HCM750", "pod-evicted", "cause",
        "Kubernetes evicted the pod, because its node was short of a resource",
        "request what the pod uses (resources.requests), or give the job nodes of its own; `kubectl describe pod` names the node",
        anchor=b"node was low on resource", pattern=rb"node was low on resource: ?(?P<reason>[\w-]{1,60})", explains=AFTER_AN_END,
        source="Kubernetes' sources (eviction), and published logs (kubernetes#112927)",
        example="Message:  The node was low on resource: memory. Container main was using 1275700Ki, which exceeds its request of 0.",
    ),
    Message(
        "HCM751", "pod-evicted-reason", "cause",
        "Kubernetes evicted the pod",
        "`kubectl describe pod` gives the reason; request what the pod uses (resources.requests)",
        anchor=b"Evicted", pattern=rb"[Rr]eason\"?: {0,20}\"?Evicted|(?:Warning|Normal) +Evicted\b|^(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +\d{1,3}/\d{1,3} +Evicted\b", explains=AFTER_AN_END,
        source="Kubernetes' sources (eviction), and published logs (trainer#301)",
        example="Reason:         Evicted",
    ),
    Message(
        "HCM974", "pod-over-limit", "cause",
        "Kubernetes evicted the pod, because it used more of a resource than its limit",
        "raise the limit (resources.limits, sizeLimit of the volume), or write less: checkpoints and caches to a volume of their own",
        anchor=b" exceeds the ",
        pattern=rb"(?P<reason>(?:Pod ephemeral local storage usage|Usage of EmptyDir volume \"[\w.-]{1,63}\") exceeds the (?:total )?limit[^\n]{0,80}?)\.?\s*$",
        explains=(*AFTER_AN_END, "HCM751"), source="Kubernetes' sources (eviction)",
        example="Message:  Pod ephemeral local storage usage exceeds the total limit of containers 50Gi.",
    ),
    Message(
        "HCM975", "pod-stopped", "end",
        "Kubernetes stopped a container: its pod or job was deleted, or its node was drained",
        "nothing failed before in these logs: `kubectl get events` and the log of the job's controller may say who did it",
        anchor=b"topping container", pattern=rb"\bKilling\b[^\n]{0,160}?(?:pod/(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +)?Stopping container\b",
        source="Kubernetes' sources (kubelet)",
        example="14m   Normal   Killing   pod/trainer-master-0   Stopping container trainer",
    ),
    Message(
        "HCM954", "pod-preempted", "cause",
        "a job of higher priority took the place of a pod",
        "start the job again, or give it a higher priority (priorityClassName); `kubectl describe pod` names the other job",
        anchor=b"reempt", pattern=rb"(?:\bpod/(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +)?[^\n]{0,80}?(?:evicted, because of preempt\w{0,3}|Preempted by (?:a )?(?:pod|job)\b[^\n]{0,200})", explains=AFTER_AN_END,
        source="Volcano's sources (cache), and Kubernetes' sources (scheduler)",
        example="12m   Warning   Evict   pod/trainer-worker-1   Pod is evicted, because of preempt",
    ),
    Message(
        "HCM753", "pod-image", "cause",
        "Kubernetes could not get the image of a pod, which did not start",
        "`kubectl describe pod` has the reason: the name of the image, access to its registry, or the registry's certificate",
        anchor=b"ImagePull", pattern=rb"(?:^(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +\d{1,3}/\d{1,3} +|[Rr]eason\"?: {0,20}\"?)(?:Init:)?(?P<reason>ErrImagePull|ImagePullBackOff)",
        explains=(*AFTER_AN_END, "HCM660"), source="Kubernetes' sources (kubelet)",
        example="trainer-worker-2   0/1     ImagePullBackOff   0          12m",
    ),
    Message(
        "HCM986", "pod-image-pull", "cause",
        "Kubernetes could not get the image of a pod, which did not start",
        "check the name of the image, access to its registry, and the registry's certificate: the line has the reason",
        anchor=b"ailed to pull ", pattern=rb"(?:\bpod/(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +)?Failed to pull image (?P<reason>[^\n]{1,400})",
        explains=(*AFTER_AN_END, "HCM660", "HCM753"), source="Kubernetes' sources (kubelet)",
        example='Warning  Failed  2m  kubelet  Failed to pull image "registry.local/train:1": rpc error: code = NotFound',
    ),
    Message(
        "HCM987", "pod-device-unhealthy", "cause",
        "Kubernetes has no healthy device for a pod, which did not start",
        "look at the devices of the node (`npu-smi info`) and at the log of the device plugin; the pod has to be created again",
        anchor=b" unhealthy devices ", pattern=rb"(?:\bpod/(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +)?[^\n]{0,160}?Allocate failed due to (?P<reason>[^\n]{0,40}no healthy devices present[^\n]{0,160}?)(?:, which is unexpected|$)",
        explains=(*AFTER_AN_END, "HCM660"), source="Kubernetes' sources (device manager), and published logs (truecharts#19201)",
        example="Warning  UnexpectedAdmissionError  2m  kubelet  Allocate failed due to no healthy devices present; cannot allocate unhealthy devices huawei.com/Ascend910, which is unexpected",
    ),
    Message(
        "HCM754", "pod-not-scheduled", "cause",
        "Kubernetes found no node for a pod, which did not start",
        "the line says what the nodes lack; `kubectl describe nodes` shows what they have",
        anchor=b"FailedScheduling", pattern=rb"FailedScheduling .{0,200}?(?P<reason>\d{1,5}/\d{1,5} nodes are (?:un)?available[^\n]{0,300})", explains=(*AFTER_AN_END, "HCM660"),
        source="Kubernetes' sources (scheduler)",
        example="Warning  FailedScheduling  3m   volcano  0/12 nodes are available: 12 Insufficient huawei.com/Ascend910.",
    ),
    Message(
        "HCM959", "gang-not-scheduled", "cause",
        "the scheduler has no place for all pods of the job at once, so that none started",
        "the events of the pods say what the nodes lack (`kubectl describe pod`, FailedScheduling); free nodes, or lower minAvailable",
        anchor=b"in gang unschedulable", pattern=rb"(?P<reason>\d{1,6}/\d{1,6} tasks in gang unschedulable[^\n]{0,200})", explains=(*AFTER_AN_END, "HCM660"),
        source="Volcano's sources (gang plugin)",
        example="Warning  Unschedulable  2m  volcano  4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable",
    ),
    Message(
        "HCM752", "container-out-of-memory", "cause",
        "a container reached its memory limit, and the kernel ended it",
        "raise resources.limits.memory of the pod, or use less memory per rank and fewer data-loading workers",
        anchor=b"OOMKilled", pattern=rb"[Rr]eason\"?: {0,20}\"?OOMKilled|^(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) +\d{1,3}/\d{1,3} +(?:Init:)?OOMKilled\b|\"OOMKilled\": true", explains=AFTER_AN_END, source="Kubernetes' sources (kubelet)",
        example="      Reason:       OOMKilled",
    ),
)  # fmt: skip
