"""Messages of docker, docker compose and the kubelet about containers that start, fail a probe or are stopped."""

from __future__ import annotations

from hccl_tools.explain.knowledge.message import Message

_PROBE = (
    "compare the time that the program needs until it answers with the time that the probe leaves it (initialDelaySeconds +"
    " failureThreshold x periodSeconds): a startupProbe or a longer delay lets a model load; if the program had answered before,"
    " the end of its own log (`kubectl logs --previous`) says why it stopped"
)
_STOPPED = "nothing failed before in these logs: if the job should have gone on, find out who stopped it"

#: A prompt of a shell and what is typed after it.
_TYPED = rb"^(?:\S{0,80}[$#>] ?|\+ )(?:sudo )?"

MESSAGES = (
    Message(
        "HCM900", "probe-killed", "error",
        "the kubelet ended a container because its probe failed",
        _PROBE,
        anchor=b" probe, will be restarted",
        pattern=rb"(?P<reason>[Cc]ontainer (?:\"?[\w.-]{1,253}\"? )?failed (?:liveness|startup) probe), will be restarted",
        explains=("HCM880", "HCM881", "HCM665", "HCM667", "HCM901"), source="Kubernetes' sources (kubelet)",
        example="Normal   Killing    2m   kubelet  Container vllm failed liveness probe, will be restarted",
    ),
    Message(
        "HCM901", "probe-failed", "code",
        "a probe failed after which the kubelet ends a container",
        _PROBE,
        anchor=b" probe ", pattern=rb"(?P<reason>(?:Liveness|Startup) probe (?:failed|errored)[^\n]{0,300})",
        explains=("HCM880", "HCM881"), source="Kubernetes' sources (kubelet)",
        example='Warning  Unhealthy  2m (x9 over 14m)  kubelet  Liveness probe failed: Get "http://10.244.0.9:8000/health": context deadline exceeded',
    ),
    Message(
        "HCM902", "not-ready", "fact",
        "a container is not ready",
        "nothing",
        anchor=b"eadiness probe", pattern=rb"Readiness probe (?:failed|errored)", source="Kubernetes' sources (kubelet)",
        example="Warning  Unhealthy  8s  kubelet  Readiness probe failed: HTTP probe failed with statuscode: 503",
    ),
    Message(
        "HCM903", "probe-settings", "fact",
        "the times of a probe",
        "nothing",
        anchor=b" delay=", pattern=rb"^\s*(?:Liveness|Startup): .{0,300}? delay=(?P<timeout>\d{1,6})s ", source="the output of kubectl describe",
        example="    Liveness:   http-get http://:8000/health delay=240s timeout=5s period=20s #success=1 #failure=3",
    ),
    Message(
        "HCM904", "container-started", "fact",
        "a container started",
        "nothing",
        anchor=b"tarted container", pattern=rb"\bStarted container\b", source="Kubernetes' sources (kubelet)",
        example="3m58s       Normal    Started     pod/w-0  Started container main",
    ),
    Message(
        "HCM755", "pod-scheduled", "fact",
        "Kubernetes gave a pod its node",
        "nothing",
        anchor=b"uccessfully assigned", pattern=rb"\bSuccessfully assigned (?:[\w.-]{1,253}/)?(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) to\b",
        source="Kubernetes' sources (scheduler)",
        example="Normal  Scheduled  6m  default-scheduler  Successfully assigned ml/w-0 to node-1",
    ),
    Message(
        "HCM905", "compose-interrupted", "end",
        "a user interrupted docker compose, which stopped the containers",
        _STOPPED,
        anchor=b"racefully stopping", pattern=rb"Gracefully stopping\.\.\.", source="docker compose",
        example="^CGracefully stopping... (press Ctrl+C again to force)",
    ),
    Message(
        "HCM906", "container-stopped", "end",
        "a user or a program stopped a container (docker stop, docker compose down)",
        _STOPPED,
        anchor=b"signal=", pattern=rb"\bcontainer kill \w{1,64} .{0,400}?\bsignal=(?P<signal>15|2|SIGTERM|SIGINT)\b", source="docker events",
        example="2026-03-18T10:33:52.113403 container kill 9be21 (image=train:1, name=w-1, signal=15)",
    ),
    Message(
        "HCM907", "container-died", "fact",
        "a container ended",
        "nothing",
        anchor=b"container die ", pattern=rb"\bcontainer die \w{1,64} .{0,400}?\bexitCode=(?P<status>\d{1,3})", source="docker events",
        example="2026-03-18T10:33:52.113403 container die 9be21 (exitCode=1, name=w-1)",
    ),
    Message(
        "HCM908", "stop-typed", "end",
        "a user stopped the job with a command",
        _STOPPED,
        anchor=b"docker ", pattern=_TYPED + rb"(?P<reason>docker (?:compose )?(?:stop|down|kill)\b[^\n]{0,80})", source="a screen of a shell",
        example="$ docker compose down",
    ),
    Message(
        "HCM909", "interrupt-typed", "end",
        "a user interrupted the job with Ctrl-C",
        _STOPPED,
        anchor=b"^C", pattern=rb"^(?:[^\n]{0,200}\])?\^C(?=\s*$|[A-Z(\[])", source="a screen of a shell",
        example="^C",
    ),
    Message(
        "HCM910", "delete-typed", "end",
        "a user stopped the job with a command",
        _STOPPED,
        anchor=b"kubectl ", pattern=_TYPED + rb"(?P<reason>kubectl (?:-n \S{1,63} )?delete (?:pod|vcjob|job|deploy)\S{0,20} [^\n]{0,80})", source="a screen of a shell",
        example="$ kubectl delete vcjob trainer",
    ),
)  # fmt: skip
