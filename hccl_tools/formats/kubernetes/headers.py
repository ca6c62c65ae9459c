"""What the reader of a job's YAML must know: the comments before its objects, and notes for the terminal.

Sources: those of :mod:`jobs`; Kubernetes' documentation (Pod Security Standards, Quality of Service classes).
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from hccl_tools.formats.kubernetes import jobs
from hccl_tools.notation.phrases import count

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Columns of a comment, with its sign.
_WIDTH = 98
#: The other sizes of super pods that a note lists.
_SHOWN = 5
#: The example for requests, for each device.
_CPUS, _GIBIBYTES = 8, 32


def comments(spec: jobs.JobSpec) -> list[str]:
    """Return the lines of the comments before the objects."""
    paragraphs = [_title(spec), *_needs(spec), *_to_adapt(spec), *cautions(spec)]
    lines = [line for text in paragraphs for line in wrap(text, _WIDTH, subsequent_indent="  ")]
    return [*lines, *_requests(spec), "Add your volumes for code, data, logs and checkpoints."]


def cautions(spec: jobs.JobSpec) -> Iterator[str]:
    """Yield what may surprise the user of this job."""
    if spec.super_pod is not None and spec.pods > 1:
        yield _super_pods(spec.pods, spec.super_pod, spec.devices)
    if spec.restarts and spec.kind == "acjob":
        yield from _retries(spec)
    if spec.secrets:
        yield (
            f"{' and '.join(spec.secrets)}: who can read the file, the job or its pods can read the value; "
            "take it out, make a Secret, and add the variable to env with valueFrom: secretKeyRef"
        )


def _title(spec: jobs.JobSpec) -> str:
    what = "Volcano's Job" if spec.kind == "vcjob" else "MindCluster's AscendJob"
    each = " each" if spec.pods > 1 else ""
    devices = count(spec.devices, "device")
    return f"{what}: {count(spec.pods, 'pod')} with {devices}{each}; kubectl apply -f FILE"


def _needs(spec: jobs.JobSpec) -> Iterator[str]:
    operator = "" if spec.table is not None and spec.kind == "vcjob" else "ascend-operator, "
    yield (
        f"The cluster needs: Volcano with MindCluster's scheduler plug-in, {operator}MindCluster's device "
        f'plug-in and container runtime, and the queue "{spec.queue}" (kubectl get queue).'
    )
    yield (
        "The namespace must admit hostNetwork and hostPath: with Pod Security Admission, that is the level "
        "privileged."
    )
    if spec.table is None:
        yield "ascend-operator fills in the ConfigMap; the pods wait for it."


def _to_adapt(spec: jobs.JobSpec) -> Iterator[str]:
    yield "nodeSelector: the label of your nodes may differ, see kubectl get nodes -L accelerator-type."
    yield (
        "ASCEND_VISIBLE_DEVICES: MindCluster's plug-in of Volcano writes its annotation; remove the variable "
        "if your cluster has no such plug-in."
    )
    if any("$" in word for word in spec.command):
        yield "command: $$ is a $ of the program, because Kubernetes replaces $(NAME)."
    if spec.port is not None and (names := list(_ports(spec, str(spec.port)))):
        yield (
            f"{' and '.join(names)}: {spec.port} is the port of this job on its nodes, made from its name; "
            "if another job there has the same, choose another."
        )


def _ports(spec: jobs.JobSpec, port: str) -> Iterator[str]:
    if spec.kind == "acjob":
        yield "ascendjob-port"
    if port in spec.command:
        yield "--start-port"


def _super_pods(pods: int, nodes: int, devices: int) -> str:
    """Say how the job is divided into logical super pods, and which other sizes the scheduler takes."""
    said = f"sp-block is {nodes * devices}: "
    if nodes == pods:
        said += "the whole job is in one super pod"
    else:
        said += (
            f"{pods // nodes} logical super pods of {count(nodes, 'node')}, because MindCluster's default "
            f"super-pod-size is {jobs.SUPER_POD_NODES} nodes"
        )
    fitting = [number for number in range(pods, 0, -1) if pods % number == 0 and number != nodes]
    others = ", ".join(str(number * devices) for number in fitting[:_SHOWN])
    return f"{said}; values for other sizes: {others}"


def _retries(spec: jobs.JobSpec) -> Iterator[str]:
    """Say when a job is not started again, according to MindCluster's documentation."""
    yield (
        "fault-retry-times: according to MindCluster's documentation, a job whose pods all fail within a few "
        "seconds is not started again; --emit vcjob starts it again"
    )
    if not spec.labels.retries:
        yield (
            "fault-retry-times: documented by MindCluster only for Atlas 800T A2 and Atlas 900 A2 PoD, "
            f"not for nodes with the label {spec.labels.server}"
        )


def _requests(spec: jobs.JobSpec) -> Iterator[str]:
    """Yield an example of requests, which depend on the program."""
    yield "Without requests for cpu and memory, the scheduler keeps none for the pods, and kubelet evicts"
    yield "  them first. Add what the program needs to requests; an example, not a recommendation:"
    yield f"    cpu: '{_CPUS * spec.devices}'"
    yield f"    memory: {_GIBIBYTES * spec.devices}Gi  # with /dev/shm, at most {spec.shared_memory}"
