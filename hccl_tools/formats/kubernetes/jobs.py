"""The objects of a job that a cluster manager places: Volcano's Job and MindCluster's AscendJob.

Sources: volcano-sh/volcano v1.16.0-alpha.1, config/crd/volcano/bases/batch.volcano.sh_jobs.yaml;
Ascend/mind-cluster 22bb3d98 (2026-08-21): component/ascend-operator (its CRD, validation and rank tables),
docs/en/scheduling/api (k8s.md, ascend_job.md, hccl.json_file_description.md) and its samples of jobs.
"""

from __future__ import annotations

import zlib
from math import gcd
from typing import TYPE_CHECKING, Any, Literal

from hccl_tools.programs.environment import KEY_FILE_VARIABLE
from hccl_tools.records import NamedTuple
from hccl_tools.variables.rows import LOGIC_SUPER_POD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.table.products import NodeLabels

Kind = Literal["vcjob", "acjob"]
JSON = dict[str, Any]
#: The folder of the table in a pod, and its name, which MindCluster's documentation fixes.
TABLE_FOLDER, TABLE_KEY = "/user/serverid/devindex/config", "hccl.json"
#: ascend-operator looks for the ConfigMap of a job by this name, and writes the table into it.
_RINGS_CONFIG = "rings-config-"
#: The table before ascend-operator has filled it in.
_INITIALIZING = '{\n    "status": "initializing"\n}\n'
#: ascend-operator requires this name of the container.
_CONTAINER = "ascend"
#: launch's default for the logs, relative to WORKDIR of the image.
LOG_FOLDER = "log"
#: The name of the leader's port for ascend-operator.
_PORT_NAME = "ascendjob-port"
#: The ports of jobs: of those that administrators usually open for jobs, below those that launch and HCCL
#: choose. The ranks of a node may take the next ones.
_PORTS = range(10240, 16384, 16)
#: The Secret with the job key, which is also its key in the Secret, and where the pods see it.
KEY_SECRET, _KEY_FOLDER = "job-key", "/etc/hccl-tools"
_PRODUCT_LABEL = "ring-controller.atlas"
#: The label with the name of its job, which each of the two gives a pod.
_JOB_LABEL: Mapping[Kind, str] = {"vcjob": "volcano.sh/job-name", "acjob": "job-name"}
#: The nodes in a super pod for MindCluster's scheduler, unless its configuration has ``super-pod-size``.
SUPER_POD_NODES = 48
#: The queue that Volcano makes itself.
QUEUE = "default"
#: GiB of shared memory: those of MindCluster's samples, for 8 devices, and more for more devices.
_LEAST_SHARED, _SHARED_PER_DEVICE = 16, 2
#: The first pod of an AscendJob has a role of its own.
_LEADER = {"mindspore": "Scheduler", "pytorch": "Master"}


class JobSpec(NamedTuple):
    """What is known about a job before the cluster manager places it.

    Attributes:
        kind: Which of the two objects.
        name: Its name; an RFC 1123 label.
        namespace: Its namespace; ``None`` for that of the ``kubectl`` command.
        image: The image of its containers.
        command: What each pod runs.
        pods: The number of pods, each on a node of its own.
        devices: The number of devices of each pod.
        labels: The names of the devices and nodes in Kubernetes.
        framework: For an AscendJob: mindspore or pytorch.
        knows_start: Whether the user has said how the ranks start, which decides on the framework.
        restarts: How often the manager starts the job again.
        grace: Seconds from SIGTERM to SIGKILL.
        mounts: Files and folders of the node, such as the driver; those that end with / are folders.
        super_pods: The nodes in each physical super pod if that is fixed, else all; empty without super pods.
        nodes: The only nodes on which pods may run; empty for all.
        table: The text of a table that is fixed, for ``nodes``; ``None`` if ascend-operator makes it.
        queue: Volcano's queue.
        shared_memory: The limit of ``/dev/shm``, as Kubernetes writes sizes.
        port: Its port on the network of the nodes, if other jobs may run there, too.
        connects: Whether the pods check each other before the start, and end together.
        needs_key: Whether the pods take the job key from a Secret.
        rendezvous: The port at which pods with different ports find each other, and the one where the pods
            and their ranks meet.
        hccl_ports: The ports of HCCL on the network of the nodes, as a phrase.
        name_is_cut: Whether the name is the beginning of a longer one.
        secrets: The variables and options in the command whose values seem to be secrets.
        log_folder: The folder of the logs in the pods, or relative to WORKDIR of the image.
    """

    kind: Kind
    name: str
    namespace: str | None
    image: str
    command: Sequence[str]
    pods: int
    devices: int
    labels: NodeLabels
    framework: str = "pytorch"
    knows_start: bool = True
    restarts: int = 0
    grace: int = 30
    mounts: Sequence[str] = ()
    super_pods: Sequence[int] = ()
    nodes: Sequence[str] = ()
    table: str | None = None
    queue: str = QUEUE
    shared_memory: str = "16Gi"
    port: int | None = None
    connects: bool = True
    needs_key: bool = False
    rendezvous: tuple[int, int] = (0, 0)
    hccl_ports: str = ""
    name_is_cut: bool = False
    secrets: Sequence[str] = ()
    log_folder: str = LOG_FOLDER


def super_pod_nodes(pods: Sequence[int]) -> int:
    """Return the number of nodes in each logical super pod of a job; ``pods`` as ``JobSpec.super_pods``."""
    return next(nodes for nodes in super_pod_choices(pods) if nodes <= SUPER_POD_NODES)


def super_pod_choices(pods: Sequence[int]) -> list[int]:
    """Return the numbers of nodes that a logical super pod may have, the largest first.

    The scheduler takes only sizes by which the number of nodes can be divided, and refuses those larger than
    a physical super pod (ascend-for-volcano, superpod/frame.go).
    """
    common = gcd(*pods)
    return [nodes for nodes in range(common, 0, -1) if common % nodes == 0]


def shared_memory(devices: int) -> str:
    """Return the default limit of ``/dev/shm``, which is memory of the pod, and would have no limit else."""
    return f"{max(_LEAST_SHARED, _SHARED_PER_DEVICE * devices)}Gi"


def own_port(name: str, namespace: str | None) -> int:
    """Return the port of a job that may share its nodes with other jobs.

    All pods of a node have its ports. Without a port of their own, jobs would meet at launch's default; and
    ascend-operator would reserve 2222 for the leader of each AscendJob (defaults.go, setDefaultPort), so that
    the second job on a node would stay pending.
    """
    return _PORTS[zlib.crc32(f"{namespace or ''}/{name}".encode()) % len(_PORTS)]


def objects(spec: JobSpec) -> list[JSON]:
    """Return the objects of a job: the ConfigMap for its table, and the job."""
    build = _volcano_job if spec.kind == "vcjob" else _ascend_job
    return [_config_map(spec), build(spec)]


def _config_map(spec: JobSpec) -> JSON:
    metadata = _metadata(_table_name(spec), spec)
    if spec.table is None:
        metadata["labels"] = {_PRODUCT_LABEL: spec.labels.product}
    data = {TABLE_KEY: _INITIALIZING if spec.table is None else spec.table}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _table_name(spec: JobSpec) -> str:
    """Return the name of the ConfigMap; ascend-operator must not overwrite a table that is fixed."""
    return f"{spec.name}-table" if spec.table is not None else f"{_RINGS_CONFIG}{spec.name}"


def _metadata(name: str, spec: JobSpec) -> JSON:
    return {"name": name} if spec.namespace is None else {"name": name, "namespace": spec.namespace}


def _job_metadata(spec: JobSpec, **labels: str) -> JSON:
    metadata = _metadata(spec.name, spec) | {"labels": {_PRODUCT_LABEL: spec.labels.product, **labels}}
    if spec.super_pods:
        metadata["annotations"] = {"sp-block": str(super_pod_nodes(spec.super_pods) * spec.devices)}
    return metadata


def _volcano_job(spec: JobSpec) -> JSON:
    """Return Volcano's Job.

    It has a single task: Volcano counts the pods of each task from 0, so that the first pods of two tasks
    would both have rank 0. ``maxRetry`` counts the runs, with the first (restarting.go: the job fails once as
    many runs have failed), and the webhook replaces 0 by 3 (mutate_job.go). TerminateJob keeps the pods as
    AbortJob does, but an aborted job does not count as finished (garbagecollector.go, isJobFinished).
    """
    end = "RestartJob" if spec.restarts else "TerminateJob"
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": _job_metadata(spec, **_after_faults(spec)),
        "spec": {
            "minAvailable": spec.pods,
            "schedulerName": "volcano",
            "queue": spec.queue,
            "maxRetry": spec.restarts + 1,
            "policies": [
                {"event": "PodFailed", "action": end},
                {"event": "PodEvicted", "action": end},
                {"event": "TaskCompleted", "action": "CompleteJob"},
            ],
            "tasks": [{"name": "worker", "replicas": spec.pods, "template": _template(spec)}],
        },
    }


def _ascend_job(spec: JobSpec) -> JSON:
    """Return MindCluster's AscendJob; ascend-operator numbers the leader 0, and the workers from 1.

    It starts a job whose pods fail again only if the job has the label with the number of times. Other
    restarts, such as those after a fault of a node, are limited by ``backoffLimit``, where 0 and a missing
    value mean no limit (job.go, ReconcileJobs); without the label ``fault-scheduling`` there are none.
    """
    leader = _LEADER[spec.framework]
    roles = {leader: 1}
    if spec.pods > 1:
        roles["Worker"] = spec.pods - 1
    limit = {"backoffLimit": spec.restarts} if spec.restarts else {}
    again = {"fault-retry-times": str(spec.restarts)} if spec.restarts else {}
    return {
        "apiVersion": "mindxdl.gitee.com/v1",
        "kind": "AscendJob",
        "metadata": _job_metadata(spec, framework=spec.framework, **_after_faults(spec), **again),
        "spec": {
            "schedulerName": "volcano",
            "runPolicy": {
                **limit,
                **_clean_up(spec),
                "schedulingPolicy": {"minAvailable": spec.pods, "queue": spec.queue},
            },
            "successPolicy": "AllWorkers",
            "replicaSpecs": {
                role: {
                    "replicas": number,
                    "restartPolicy": "Never",
                    "template": _template(spec, spec.port if role == leader else None),
                }
                for role, number in roles.items()
            },
        },
    }


def _after_faults(spec: JobSpec) -> dict[str, str]:
    """Return the label with which MindCluster's scheduler deletes the pods of a node that is lost.

    Without it they stay Terminating, and the job is not started again (restarting.go waits for all pods). The
    value "force" does not go with the network of the node (resumable_training, "Configuring Pod-Level
    Rescheduling"); with "grace", pods that do not end are deleted after grace-over-time.
    """
    return {"fault-scheduling": "grace"} if spec.restarts else {}


def _clean_up(spec: JobSpec) -> JSON:
    """Return the policy that ends the other pods if one fails; those that connect do so themselves."""
    return {} if spec.connects else {"cleanPodPolicy": "Running"}


def _template(spec: JobSpec, port: int | None = None) -> JSON:
    volumes = [_host_volume(index, path) for index, path in enumerate(spec.mounts)]
    mounts = [
        {"name": volume_name(index), "mountPath": path.rstrip("/"), "readOnly": True}
        for index, path in enumerate(spec.mounts)
    ]
    shared = {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": spec.shared_memory}}
    table = {"name": "table", "configMap": {"name": _table_name(spec)}}
    if spec.needs_key:
        volumes.append({"name": KEY_SECRET, "secret": {"secretName": KEY_SECRET}})
        mounts.append({"name": KEY_SECRET, "mountPath": _KEY_FOLDER, "readOnly": True})
    container = {
        "name": _CONTAINER,
        "image": spec.image,
        # Kubernetes replaces $(NAME), and writes $$ for a $: a program must get what the user typed.
        "command": [word.replace("$", "$$") for word in (*_of_pinned(spec), *spec.command)],
        "env": _environment(spec),
        **({"ports": [{"name": _PORT_NAME, "containerPort": port}]} if port is not None else {}),
        "resources": {limit: {spec.labels.resource: spec.devices} for limit in ("requests", "limits")},
        "volumeMounts": [
            {"name": "table", "mountPath": TABLE_FOLDER, "readOnly": True},
            {"name": "dshm", "mountPath": "/dev/shm"},  # noqa: S108  (a mount point)  # nosec B108
            *mounts,
        ],
    }
    pod: JSON = {
        # On the network of the node: its address is that of the table, and HCCL uses its ports.
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        # The program needs no access to the API server, and its container is close to the node.
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": spec.grace,
        "nodeSelector": {"accelerator-type": spec.labels.server},
        "affinity": _affinity(spec),
        "containers": [container],
        "volumes": [table, shared, *volumes],
    }
    if spec.kind == "vcjob":  # ascend-operator warns of the policy of a pod: it has that of the role.
        pod["restartPolicy"] = "Never"
    return {"metadata": {"labels": {_PRODUCT_LABEL: spec.labels.product}}, "spec": pod}


def _of_pinned(spec: JobSpec) -> Sequence[str]:
    """Return the words that leave the super pods of a fixed table to launch, as in a vcjob.

    ascend-operator numbers logical super pods by the pods (env.go, addHcclSuperPodIdEnv; superpod.go,
    GetLogicSuperPodId). With a fixed table the ranks are those of the node on which a pod happens to be, and
    CANN up to 8.3 wants the ranks of each logical super pod to be consecutive.
    """
    is_numbered = spec.kind == "acjob" and spec.nodes and spec.super_pods
    return ("env", "-u", LOGIC_SUPER_POD) if is_numbered else ()


def _environment(spec: JobSpec) -> list[JSON]:
    fields = {
        "HOST_IP": "status.hostIP",
        "POD_IP": "status.podIP",
        "POD_NAME": "metadata.name",
        "XDL_IP": "status.hostIP",
        "HCCL_IF_IP": "status.hostIP",
        # The scheduler plug-in of MindCluster writes the devices of the pod there, for ascend-docker-runtime.
        "ASCEND_VISIBLE_DEVICES": f"metadata.annotations['{spec.labels.resource}']",
    }
    key = [{"name": KEY_FILE_VARIABLE, "value": f"{_KEY_FOLDER}/{KEY_SECRET}"}] if spec.needs_key else []
    taken = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    return [*taken, *key]


def _affinity(spec: JobSpec) -> JSON:
    """Place each pod on a node of its own, among the given nodes."""
    own = [{"key": _JOB_LABEL[spec.kind], "operator": "In", "values": [spec.name]}]
    apart = {"labelSelector": {"matchExpressions": own}, "topologyKey": "kubernetes.io/hostname"}
    affinity: JSON = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    if spec.nodes:
        # The label kubernetes.io/hostname can differ from the name of the node. A term has one name.
        fields = [{"key": "metadata.name", "operator": "In", "values": [node]} for node in spec.nodes]
        terms = {"nodeSelectorTerms": [{"matchFields": [field]} for field in fields]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return affinity


def volume_name(index: int) -> str:
    """Return the name of the volume of a file or folder of the node."""
    return f"ascend-{index}"


def _host_volume(index: int, path: str) -> JSON:
    kind = "Directory" if path.endswith("/") else "File"
    return {"name": volume_name(index), "hostPath": {"path": path.rstrip("/"), "type": kind}}
