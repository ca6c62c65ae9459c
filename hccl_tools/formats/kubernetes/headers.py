"""What the reader of a job's YAML must know: the comments before its objects, and notes for the terminal.

Sources: those of :mod:`jobs`; Kubernetes' documentation (Pod Security Standards, Quality of Service classes);
ascend-operator/pkg/controllers/v1/ascendjob_controller.go (``isJobDecorator``); the ENTRYPOINT of the images
of Ascend/cann-container-image, which loads CANN's variables.
"""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING

from hccl_tools.formats.kubernetes import jobs
from hccl_tools.notation.phrases import count

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Columns of a comment, with its sign.
_WIDTH = 106
#: The other sizes of super pods that a note lists.
_SHOWN = 5
#: The example for requests, for each device; the second number of GiB is what is left beside /dev/shm.
_CPUS, _GIBIBYTES, _BESIDE = 8, 32, 16
#: The range from which the kernel takes ports, and its default (the kernel's ip-sysctl).
_GLOO_PORTS = "net.ipv4.ip_local_port_range of the nodes (32768-60999 by default)"
#: Seconds after which MindCluster's scheduler deletes the pods of a lost node by force, by default.
_GRACE_OVER_TIME = 900
#: GiB of each unit.
_UNITS = {"M": 1 / 1024, "G": 1, "T": 1024}


def comments(spec: jobs.JobSpec, *, trusted_variable: str) -> list[str]:
    """Return the lines of the comments before the objects.

    ``trusted_variable`` contains the folders that are trusted although other users can write to them.
    """
    paragraphs = [*_title(spec), *_needs(spec), *_key(spec), *_to_adapt(spec), *cautions(spec)]
    paragraphs += [_requests(spec), _volumes(spec, trusted_variable)]
    return [line for text in paragraphs for line in _lines(text)]


def _lines(paragraph: str) -> Iterator[str]:
    """Yield the lines of a paragraph; what follows its first line is to be copied, and stays whole."""
    first, *rest = paragraph.split("\n")
    yield from wrap(first, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    yield from (f"    {line}" for line in rest)


def cautions(spec: jobs.JobSpec) -> Iterator[str]:
    """Yield what may surprise the user of this job."""
    if spec.super_pods and spec.pods > 1:
        yield _super_pods(spec)
    if spec.restarts and spec.kind == "acjob":
        yield from _retries(spec)
    if spec.restarts and spec.grace >= _GRACE_OVER_TIME:
        yield (
            f"terminationGracePeriodSeconds is {spec.grace} (--grace): it must be less than grace-over-time "
            f"of MindCluster's scheduler, {_GRACE_OVER_TIME} by default"
        )
    if spec.secrets:
        yield (
            f"{' and '.join(spec.secrets)}: who can read the file, the job or its pods can read the value; "
            "take it out, make a Secret, and add the variable to env with valueFrom: secretKeyRef"
        )


def _title(spec: jobs.JobSpec) -> Iterator[str]:
    what = "Volcano's Job" if spec.kind == "vcjob" else "MindCluster's AscendJob"
    each = " each" if spec.pods > 1 else ""
    devices = count(spec.devices, "device")
    yield f"{what}: {count(spec.pods, 'pod')} with {devices}{each}"
    # `apply` would reset the table of a running job of this name, and does not start a finished one again.
    yield "To start it: kubectl create -f FILE. To start it again: kubectl delete -f FILE first."


def _needs(spec: jobs.JobSpec) -> Iterator[str]:
    operator = "" if spec.table is not None and spec.kind == "vcjob" else "ascend-operator, "
    yield (
        f"The cluster needs: Volcano with MindCluster's scheduler plug-in, {operator}MindCluster's device "
        f'plug-in and container runtime, and the queue "{spec.queue}" (kubectl get queue).'
    )
    if spec.pods > 1:
        yield f"Open TCP ports between the nodes: {_open_ports(spec)}."
    yield "The namespace must admit hostNetwork and hostPath (Pod Security Admission: level privileged)."
    if spec.kind == "acjob":
        yield (
            "ascend-operator ignores the job if a Deployment, StatefulSet or vcjob of the namespace has its "
            "name."
        )
    if spec.table is None:
        yield "ascend-operator fills in the ConfigMap; the pods wait for it."


def _open_ports(spec: jobs.JobSpec) -> str:
    """Return the ports of launch, of its ranks and of HCCL, with the network of the nodes."""
    discovery, first = spec.rendezvous
    last = first + spec.devices - 1
    of_launch = f"{discovery}, " if spec.connects else ""
    users = "launch and ranks" if spec.connects else "ranks"
    # MindSpore uses no gloo; each group of gloo listens on a port that the kernel chooses.
    of_gloo = "" if spec.framework == "mindspore" else f"; if the program uses gloo, also {_GLOO_PORTS}"
    return f"{of_launch}{first}-{last} ({users}), {spec.hccl_ports} (HCCL){of_gloo}"


def _key(spec: jobs.JobSpec) -> Iterator[str]:
    if spec.needs_key:
        space = f" -n {spec.namespace}" if spec.namespace else ""
        yield (
            f"The pods read the job key (hccl-tools key create) from the Secret {jobs.KEY_SECRET}; one that "
            "exists may be another user's: then use another name here and in the volume.\n"
            f"kubectl create secret generic {jobs.KEY_SECRET} --from-file={jobs.KEY_SECRET}=FILE{space}"
        )
    elif spec.pods > 1 and not spec.connects:
        yield "--preflight none: the pods do not connect, so that they have no job key."
    elif spec.pods > 1:
        yield "No job key: every user of the nodes can join or end the job; --require-key prevents this."


def _to_adapt(spec: jobs.JobSpec) -> Iterator[str]:
    if spec.name_is_cut:
        yield f"name: the first {len(spec.name)} characters of the program's; --object-name sets another."
    yield (
        "nodeSelector: compare kubectl get nodes -L accelerator-type,host-arch; if host-arch differs, add it."
    )
    if spec.nodes:
        yield (
            "nodeAffinity: the nodes of --pin-nodes; each server_id of the table must be the address of one "
            "of them (kubectl get nodes -o wide)."
        )
    if spec.kind == "vcjob":  # ascend-operator adds the variable to an AscendJob.
        yield (
            "ASCEND_VISIBLE_DEVICES: remove it if MindCluster's scheduler plug-in does not write the "
            "annotation."
        )
    yield (
        "command replaces the image's ENTRYPOINT: if that loads CANN's set_env.sh, write args in place of "
        "command. Relative paths begin at the image's WORKDIR."
    )
    if spec.kind == "acjob" and not spec.knows_start:
        yield f"framework is {spec.framework}, because --start was not given; MindSpore: --start cluster."
    if any("$" in word for word in spec.command):
        yield "command: $$ is a $ of the program, because Kubernetes replaces $(NAME)."
    if files := [jobs.volume_name(index) for index, path in enumerate(spec.mounts) if path[-1] != "/"]:
        yield (
            f"{' and '.join(files)} are for checks; on a node without the file, no pod starts: "
            "remove volume and mount."
        )
    if spec.port is not None and (names := list(_ports(spec, str(spec.port)))):
        yield (
            f"{' and '.join(names)}: {spec.port} is made from the job's name and --namespace; another job "
            "with both on these nodes needs another --object-name."
        )


def _volumes(spec: jobs.JobSpec, trusted_variable: str) -> str:
    """Say what volumes are for."""
    lost = _lost_logs(spec)
    kept = f"; without one for logs, {lost}" if lost else ""
    return (
        f"Add your volumes for code, data, checkpoints and logs ({_log_folder(spec)}){kept}. If other "
        f"users own the folder of the logs or can write to it: {trusted_variable} in env."
    )


def _lost_logs(spec: jobs.JobSpec) -> str | None:
    """Say which pods a failure deletes, and their logs with them.

    A restart keeps no pod: Volcano's pkg/controllers/job/state/running.go; GraceDeleteJob in
    ascend-for-volcano/internal/rescheduling/job.go.
    """
    if spec.restarts:
        return "a restart deletes the logs of the failed run"
    if spec.pods > 1 and (spec.kind == "vcjob" or not spec.connects):
        return "a failure deletes those of pods that still run"
    return None


def _ports(spec: jobs.JobSpec, port: str) -> Iterator[str]:
    if spec.kind == "acjob":
        yield "ascendjob-port"
    if port in spec.command:
        yield "--start-port"


def _log_folder(spec: jobs.JobSpec) -> str:
    return spec.log_folder if spec.log_folder.startswith("/") else f"{spec.log_folder} in WORKDIR"


def _super_pods(spec: jobs.JobSpec) -> str:
    """Say how the job is divided into logical super pods, and which other sizes the scheduler takes."""
    nodes = jobs.super_pod_nodes(spec.super_pods)
    without = ", without HCCS between nodes," if nodes == 1 else ""
    parts = f"{count(spec.pods // nodes, 'logical super pod')} of {count(nodes, 'node')}{without} because"
    most = f"MindCluster's default super-pod-size is {jobs.SUPER_POD_NODES} nodes"
    if spec.nodes:
        why = f"{parts} this divides each super pod of the table"
        why += f", and {most}" if max(jobs.super_pod_choices(spec.super_pods)) > nodes else ""
    elif nodes == spec.pods:
        why = f"the job stays pending until one super pod has {spec.pods} free nodes"
    else:
        why = f"{parts} {most}"
    others = [number for number in jobs.super_pod_choices(spec.super_pods) if number != nodes][:_SHOWN]
    listed = ", ".join(_block(number, spec.devices) for number in others)
    return f"sp-block is {nodes * spec.devices}: {why}" + (f"; other values: {listed}" if listed else "")


def _block(nodes: int, devices: int) -> str:
    """Return a value of sp-block, and what it needs from the configuration of the scheduler."""
    condition = f" (with super-pod-size {nodes} or more)" if nodes > jobs.SUPER_POD_NODES else ""
    return f"{nodes * devices}{condition}"


def _retries(spec: jobs.JobSpec) -> Iterator[str]:
    """Say when a job is not started again, according to MindCluster's documentation."""
    if spec.pods == 1:
        yield (
            "fault-retry-times: MindCluster does not start a job with one pod again after its program has "
            "failed, only after a fault of its NPUs or node; --emit vcjob does (delete this job first)"
        )
    else:
        yield (
            "fault-retry-times: MindCluster does not start the job again if all pods fail within a few "
            "seconds, as they usually do when the program fails; --emit vcjob does (delete this job first)"
        )
    if not spec.labels.retries:
        yield (
            "fault-retry-times: documented by MindCluster only for Atlas 800T A2 and Atlas 900 A2 PoD, "
            f"not for nodes with the label {spec.labels.server}"
        )


def _requests(spec: jobs.JobSpec) -> str:
    """Return an example of requests, which depend on the program; pages of /dev/shm count as memory."""
    shared = math.ceil(int(spec.shared_memory[:-2]) * _UNITS[spec.shared_memory[-2]])
    memory = max(_GIBIBYTES * spec.devices, shared + _BESIDE * spec.devices)
    return (
        "Add cpu and memory to requests, else kubelet evicts these pods first. An example:"
        f"\ncpu: '{_CPUS * spec.devices}'"
        f"\nmemory: {memory}Gi  # with /dev/shm, at most {spec.shared_memory}"
    )
