"""``launch --emit vcjob|acjob``: the YAML of a job that Volcano or MindCluster places."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import formats
from hccl_tools.transform.merging import merge
from tests.support.clusters import host_table
from tests.support.kubernetes_objects import documents, violations

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

KINDS = ("vcjob", "acjob")
DEVICES = {"910a": 8, "a2": 8, "a3": 16}


def emitted(command_line: CommandLine, kind: str, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ConfigMap and the job."""
    done = command_line("launch", "--emit", kind, "--image", "cann:9.1", *options)
    assert done.code == 0, done.err
    config_map, job = documents(done.out)
    return config_map, job


def templates(job: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Return the number of pods of each role, and their template."""
    spec = job["spec"]
    roles = spec["tasks"] if job["kind"] == "Job" else spec["replicaSpecs"].values()
    return [(role["replicas"], role["template"]) for role in roles]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("product", sorted(DEVICES))
@pytest.mark.parametrize("nodes", [1, 2, 64])
def test_the_objects_fit_their_schemas(
    command_line: CommandLine, kind: str, product: str, nodes: int
) -> None:
    size = ("--nnodes", str(nodes), "--product", product, "--max-restarts", "3")

    config_map, job = emitted(command_line, kind, *size, "train.py", "--lr", "0.1")

    assert violations(kind, job) == []
    assert sum(number for number, _ in templates(job)) == nodes
    label = job["metadata"]["labels"]["ring-controller.atlas"]
    assert config_map["metadata"]["labels"] == {"ring-controller.atlas": label}
    assert config_map["metadata"]["name"] == f"rings-config-{job['metadata']['name']}"
    assert json.loads(config_map["data"]["hccl.json"]) == {"status": "initializing"}
    for _, template in templates(job):
        assert template["metadata"]["labels"]["ring-controller.atlas"] == label
        (container,) = template["spec"]["containers"]
        wanted = {"huawei.com/Ascend910": DEVICES[product]}
        assert container["resources"] == {"requests": wanted, "limits": wanted}
        assert container["command"] == [
            *("hccl-tools", "launch", "--rank-table", "/user/serverid/devindex/config/hccl.json"),
            *("--wait", "600", "--product", product, "train.py", "--lr", "0.1"),
        ]
    # A super pod has at most 48 nodes by default.
    assert job["metadata"].get("annotations", {}) == (
        {"sp-block": str(16 * min(nodes, 32))} if product == "a3" else {}
    )


def test_a_schema_refuses_what_the_api_server_would_drop(command_line: CommandLine) -> None:
    """The tests above would not notice a misspelt field otherwise."""
    _, job = emitted(command_line, "vcjob", "--product", "a2", "train.py")
    job["spec"]["tasks"][0]["template"]["spec"]["hostnetwork"] = True
    job["spec"]["minAvailable"] = "1"

    assert [one.partition(":")[0] for one in violations("vcjob", job)] == [
        "$.spec.minAvailable",
        "$.spec.tasks[0].template.spec",
    ]


def test_no_two_pods_have_one_index(command_line: CommandLine) -> None:
    """Volcano counts the pods of each task from 0; ascend-operator counts workers from 1 after the leader."""
    _, volcano = emitted(command_line, "vcjob", "--nnodes", "3", "--product", "a2", "train.py")
    _, torch = emitted(command_line, "acjob", "--nnodes", "3", "--product", "a2", "train.py")
    start = ("--start", "cluster")
    _, mindspore = emitted(command_line, "acjob", "--nnodes", "3", "--product", "a2", *start, "train.py")

    assert [task["replicas"] for task in volcano["spec"]["tasks"]] == [3]
    assert {role: one["replicas"] for role, one in torch["spec"]["replicaSpecs"].items()} == {
        "Master": 1, "Worker": 2
    }  # fmt: skip
    assert torch["metadata"]["labels"]["framework"] == "pytorch"
    assert list(mindspore["spec"]["replicaSpecs"]) == ["Scheduler", "Worker"]
    assert mindspore["metadata"]["labels"]["framework"] == "mindspore"


def test_a_framework_that_nobody_named_is_said(command_line: CommandLine) -> None:
    def comments(kind: str, *options: str) -> str:
        named = ("--emit", kind, "--image", "i", "--product", "a2", *options)
        return command_line("launch", *named, "train.py").out.partition("apiVersion")[0]

    assert "framework is pytorch, because --start was not given" in comments("acjob")
    assert "framework" not in comments("acjob", "--start", "torch") + comments("vcjob")


@pytest.mark.parametrize("kind", KINDS)
def test_what_doctor_asks_of_a_container(command_line: CommandLine, kind: str) -> None:
    """HCD402 wants these mounts, and another check more than 64 MiB of shared memory."""
    _, job = emitted(command_line, kind, "--product", "a2", "train.py")

    ((_, template),) = templates(job)
    pod, (container,) = template["spec"], template["spec"]["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    assert {"/usr/local/Ascend/driver", "/etc/hccn.conf", "/usr/local/sbin/npu-smi"} < mounted.keys()
    assert mounted["/dev/shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    assert pod["hostNetwork"] is True
    environment = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]}
    assert environment["HOST_IP"] == environment["HCCL_IF_IP"] == "status.hostIP"
    assert environment["ASCEND_VISIBLE_DEVICES"] == "metadata.annotations['huawei.com/Ascend910']"


def test_restarts_are_those_of_the_manager(command_line: CommandLine) -> None:
    options = ("--product", "a2", "--max-restarts", "2")
    _, volcano = emitted(command_line, "vcjob", *options, "train.py")
    _, once = emitted(command_line, "vcjob", "--product", "a2", "train.py")
    _, ascend = emitted(command_line, "acjob", *options, "train.py")

    actions = [[one["action"] for one in job["spec"]["policies"]] for job in (volcano, once)]
    assert actions == [
        ["RestartJob", "RestartJob", "CompleteJob"],
        ["TerminateJob", "TerminateJob", "CompleteJob"],
    ]
    assert (volcano["spec"]["maxRetry"], once["spec"]["maxRetry"]) == (3, 1)  # Volcano counts the runs.
    assert ascend["metadata"]["labels"]["fault-retry-times"] == "2"
    # Else the pods of a lost node stay Terminating; "force" does not go with hostNetwork.
    labels = [job["metadata"]["labels"].get("fault-scheduling") for job in (volcano, ascend, once)]
    assert labels == ["grace", "grace", None]
    assert ascend["spec"]["runPolicy"]["backoffLimit"] == 2  # 0 and none mean no limit.
    for job in (volcano, ascend):
        ((_, template),) = templates(job)
        assert "--max-restarts" not in template["spec"]["containers"][0]["command"]


@pytest.mark.parametrize(
    ("pods", "block", "said"),
    [
        (1, 16, ""),
        (6, 96, "the job stays pending until one super pod has 6 free nodes; other values: 48, 32, 16\n"),
        (48, 768, "the job stays pending until one super pod has 48 free nodes; "),
        (96, 768, "2 logical super pods of 48 nodes because "),
        (50, 400, "2 logical super pods of 25 nodes because MindCluster's default super-pod-size is 48"),
        (53, 16, "53 logical super pods of 1 node, without HCCS between nodes, because"),
    ],
)  # fmt: skip
def test_a_super_pod_fits_the_scheduler(command_line: CommandLine, pods: int, block: int, said: str) -> None:
    """Its plug-in refuses sizes that do not divide the job, or are larger than its super-pod-size."""
    done = command_line(
        "launch", "--emit", "vcjob", "--image", "i", "--product", "a3", "--nnodes", str(pods), "train.py"
    )

    assert documents(done.out)[1]["metadata"]["annotations"] == {"sp-block": str(block)}
    assert done.err.startswith(f"note: sp-block is {block}: {said}" if said else "note: ") or not done.err


def test_a_super_pod_larger_than_the_default_has_a_condition(command_line: CommandLine) -> None:
    several = ("--product", "a3", "--nnodes", "96")

    done = command_line("launch", "--emit", "vcjob", "--image", "i", *several, "train.py")

    assert "; other values: 1536 (with super-pod-size 96 or more), 512, 384, " in done.err


@pytest.mark.parametrize(
    ("name", "label", "devices", "product"),
    [
        ("Atlas 800 (Model 9000)", "module", 8, "910a"),
        ("Atlas 800T A2", "module-910b-8", 8, "a2"),
        ("910B4", "module-910b-8", 8, "a2"),
        ("Atlas 200T A2 Box16", "module-910b-16", 16, "a2"),
        ("Atlas 900 A3 SuperPoD", "module-a3-16-super-pod", 16, "a3"),
        ("Atlas 800T A3", "module-a3-16", 16, "a3-server"),
        ("A200T A3 Box8", "module-a3-16", 16, "a3-server"),
    ],
)
def test_a_named_machine_has_its_own_node(
    command_line: CommandLine, name: str, label: str, devices: int, product: str
) -> None:
    _, job = emitted(command_line, "acjob", "--product", name, "--nnodes", "2", "train.py")

    for _, template in templates(job):
        (container,) = template["spec"]["containers"]
        assert template["spec"]["nodeSelector"] == {"accelerator-type": label}
        assert container["resources"]["limits"] == {"huawei.com/Ascend910": devices}
        assert container["command"][6:8] == ["--product", product]
    assert ("annotations" in job["metadata"]) == (product == "a3")


def test_a_machine_in_the_variable_has_its_own_node(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_PRODUCT", "Atlas 200T A2 Box16")

    _, job = emitted(command_line, "vcjob", "train.py")

    ((_, template),) = templates(job)
    assert template["spec"]["nodeSelector"] == {"accelerator-type": "module-910b-16"}


def test_jobs_on_a_part_of_a_node_have_a_port_each(command_line: CommandLine) -> None:
    """The operator would give each leader 2222, which the network of the node has once."""
    ports = list[int]()
    for name in ("one", "two", "one"):
        part = ("--product", "a2", "-n", "4", "--object-name", name)
        _, job = emitted(command_line, "acjob", *part, "train.py")
        ((_, template),) = templates(job)
        (port,) = template["spec"]["containers"][0]["ports"]
        assert violations("acjob", job) == []
        assert port["name"] == "ascendjob-port"
        ports.append(port["containerPort"])
    _, whole = emitted(command_line, "acjob", "--product", "a2", "train.py")
    _, volcano = emitted(command_line, "vcjob", "--product", "a2", "-n", "4", "train.py")

    assert ports[0] == ports[2] != ports[1]
    assert all(10240 <= port < 16384 for port in ports)
    for job in (whole, volcano):
        assert "ports" not in templates(job)[0][1]["spec"]["containers"][0]


def test_the_pods_of_a_job_on_parts_of_nodes_meet_at_its_port(command_line: CommandLine) -> None:
    """Another job on these nodes would take launch's default port."""
    several = ("--product", "a2", "--nnodes", "2", "--nproc-per-node", "4")

    _, job = emitted(command_line, "acjob", *several, "train.py")
    _, volcano = emitted(command_line, "vcjob", *several, "train.py")
    _, own = emitted(command_line, "vcjob", *several, "--start-port", "5000", "train.py")

    leader, worker = (one["spec"]["containers"][0] for _, one in templates(job))
    assert "ports" not in worker
    start = ["--start-port", str(leader["ports"][0]["containerPort"])]
    assert [start] * 3 == [
        container["command"][8:10]
        for container in (leader, worker, templates(volcano)[0][1]["spec"]["containers"][0])
    ]
    assert templates(own)[0][1]["spec"]["containers"][0]["command"][8:10] == ["--start-port", "5000"]


@pytest.mark.parametrize(("product", "said"), [("a2", False), ("910a", True), ("Atlas 200T A2 Box16", True)])
def test_retries_are_not_promised_where_they_are_not_documented(
    command_line: CommandLine, product: str, said: bool
) -> None:
    options = ("--emit", "acjob", "--image", "i", "--product", product)
    done = command_line("launch", *options, "--max-restarts", "2", "train.py")
    without = command_line("launch", *options, "train.py")

    assert "with one pod again after its program has failed" in done.err
    several = command_line("launch", *options, "--nnodes", "2", "--max-restarts", "2", "train.py")
    assert "if all pods fail within a few seconds, as they usually do" in several.err
    assert ("only for Atlas 800T A2" in done.err) is said
    assert "fault-retry-times" not in without.err + without.out


@pytest.mark.parametrize("kind", KINDS)
def test_pods_end_before_the_scheduler_deletes_them(command_line: CommandLine, kind: str) -> None:
    def said(grace: str, *options: str) -> str:
        typed = ("--product", "a2", "--grace", grace, *options)
        return command_line("launch", "--emit", kind, "--image", "i", *typed, "train.py").err

    assert "terminationGracePeriodSeconds is 900 (--grace)" in said("885", "--max-restarts", "1")
    assert "terminationGracePeriodSeconds" not in said("884", "--max-restarts", "1") + said("885")


#: The words after the variable.
_RANKS = "but RANK differs between ranks\n  help: leave RANK out of --env: hccl-tools sets it for each rank"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--env", "RANK_TABLE_FILE=/x"], "RANK_TABLE_FILE=/x is not the rank table of this job"),
        (["--start", "torch", "--env", "RANK=0"], _RANKS),
        (["--env", "RANK_ID=3"], "RANK_ID differs between ranks"),
        (["--start", "cluster", "--env", "MS_NODE_ID=3"], "MS_NODE_ID differs between ranks"),
        (["--env", "HCCL_TOOLS_RUN_DIR=/r"], "HCCL_TOOLS_RUN_DIR is reserved for hccl-tools"),
        (["--env", "HCCL_IF_BASE_PORT=abc"],
         'HCCL_IF_BASE_PORT="abc": HCCL accepts 1024 to 65520; HCCL refuses every job\n  help: set it to'),
        (["--env", "HCCL_INTRA_ROCE_ENABLE=0"], "HCCL refuses every job\n  help: "),
        (["--nnodes", "2", "--env", "HCCL_IF_IP=10.0.0.1"],
         "HCCL_IF_IP=10.0.0.1 assigns one address to all 2 pods, but each has its own\n  help: leave"),
    ],
)  # fmt: skip
def test_variables_that_the_pods_would_refuse(
    command_line: CommandLine, kind: str, options: list[str], words: str
) -> None:
    done = command_line("launch", "--emit", kind, "--image", "i", "--product", "a2", *options, "train.py")

    assert done.code == 2
    assert words in done.err
    assert done.out == ""


def test_variables_that_the_pods_take(command_line: CommandLine) -> None:
    own = ("--env", "HCCL_IF_BASE_PORT=50000", "--env", "HCCL_IF_IP=10.0.0.1", "--env", "LR=1")
    _, job = emitted(command_line, "vcjob", "--product", "a2", *own, "--start", "torch", "train.py")

    assert "HCCL_IF_IP=10.0.0.1" in templates(job)[0][1]["spec"]["containers"][0]["command"]


#: How Kubernetes reads a word of a command (third_party/forked/golang/expansion).
REFERENCE = re.compile(r"\$(\$|\([^)]*\))")


@pytest.mark.parametrize("kind", KINDS)
def test_the_pods_get_the_words_as_they_were_typed(command_line: CommandLine, kind: str) -> None:
    words = ["bash", "-c", 'echo $HOME $$ $(hostname) $(HOST_IP) "${A[@]}" $']
    own = ("--product", "a2", "--env", "A=$(POD_IP)", "--no-python")

    _, job = emitted(command_line, kind, *own, *words)

    for _, template in templates(job):
        command = template["spec"]["containers"][0]["command"]
        assert "$$" in command[-1]
        read = [REFERENCE.sub(lambda found: "$" if found[1] == "$" else "replaced", word) for word in command]
        assert read[8:] == ["--env", "A=$(POD_IP)", "--no-python", *words]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["option", "variable"])
def test_a_required_key_is_in_the_pods(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, kind: str, how: str
) -> None:
    """Without it, every pod would end at once."""
    required = ("--require-key",) if how == "option" else ()
    if not required:
        monkeypatch.setenv("HCCL_TOOLS_REQUIRE_KEY", "1")
    several = ("--product", "a2", "--nnodes", "2", "--namespace", "ns")

    done = command_line("launch", "--emit", kind, "--image", "i", *several, *required, "train.py")

    job = documents(done.out)[1]
    assert violations(kind, job) == []
    for _, template in templates(job):
        pod, (container,) = template["spec"], template["spec"]["containers"]
        (file,) = (one["value"] for one in container["env"] if one["name"] == "HCCL_TOOLS_JOB_KEY_FILE")
        (mount,) = (one for one in container["volumeMounts"] if file.startswith(f"{one['mountPath']}/"))
        (volume,) = (one for one in pod["volumes"] if one["name"] == mount["name"])
        assert volume["secret"] == {"secretName": "job-key"}
        assert container["command"].count("--require-key") == 1
    assert "create secret generic job-key" in done.out
    assert "-n ns" in done.out


def test_a_job_without_a_key_says_so(command_line: CommandLine) -> None:
    options = ("--emit", "vcjob", "--image", "i", "--product", "a2")
    several = command_line("launch", *options, "--nnodes", "2", "train.py")
    one = command_line("launch", *options, "--require-key", "train.py")

    assert "# No job key: every user of the nodes can join or end the job; --require-key" in several.out
    assert "key" not in one.out.replace("--require-key", "").partition("apiVersion")[0]
    assert "secret" not in one.out.lower()


def test_names_and_own_options(command_line: CommandLine) -> None:
    own = ("--grace=60", "--preflight", "full", "-m")
    objects = emitted(
        command_line, "vcjob", "--product", "910B3", "-n", "16", "--namespace", "ns", *own, "a.b_C"
    )

    assert [one["metadata"]["namespace"] for one in objects] == ["ns", "ns"]
    assert objects[1]["metadata"]["name"] == "a-b-c"
    ((pods, template),) = templates(objects[1])
    assert pods == 2
    assert template["spec"]["terminationGracePeriodSeconds"] == 75
    command = template["spec"]["containers"][0]["command"]
    assert command[6:] == ["--product", "a2", "--grace=60", "--preflight", "full", "-m", "a.b_C"]


def test_the_size_of_shared_memory_and_the_queue(command_line: CommandLine) -> None:
    for kind in KINDS:
        _, usual = emitted(command_line, kind, "--product", "a3", "train.py")
        _, own = emitted(
            command_line, kind, "--product", "a3", "--shm-size", "64Gi", "--queue", "q-1", "train.py"
        )

        assert violations(kind, own) == []
        assert [
            template["spec"]["volumes"][1]["emptyDir"]["sizeLimit"]
            for job in (usual, own)
            for _, template in templates(job)
        ] == ["32Gi", "64Gi"]
        policy = own["spec"] if kind == "vcjob" else own["spec"]["runPolicy"]["schedulingPolicy"]
        assert policy["queue"] == "q-1"


def test_the_comments_say_what_the_cluster_must_allow(command_line: CommandLine) -> None:
    def comments(kind: str, *options: str) -> str:
        done = command_line("launch", "--emit", kind, "--image", "i", *options, "train.py")
        assert done.code == 0, done.err
        lines = [line[2:].strip() for line in done.out.splitlines() if line.startswith("#")]
        return " ".join(lines)

    text = comments("vcjob", "--product", "a3", "--nnodes", "64", "--queue", "llm")
    assert 'and the queue "llm"' in text
    assert "Pod Security Admission: level privileged" in text
    assert "ascend-operator fills in" in text
    assert "sp-block is 512: 2 logical super pods of 32 nodes" in text
    assert "cpu: '128' memory: 512Gi  # with /dev/shm, at most 32Gi" in text
    part = comments("acjob", "--product", "a2", "-n", "4", "--max-restarts", "1")
    assert "ascendjob-port: 1" in part
    several = comments("acjob", "--product", "a2", "--nnodes", "2", "--nproc-per-node", "4")
    assert "ascendjob-port and --start-port: 1" in several
    assert "fault-retry-times: MindCluster does not start a job with one pod again" in part
    table = merge([("1", host_table(1)), ("2", host_table(2))]).table
    command_line.write("job.json", "".join(formats.write(table)))
    pinned = ("--rank-table", "job.json", "--product", "910a", "--pin-nodes", "n1,n2")
    text = comments("vcjob", *pinned)
    assert "ascend-operator" not in text
    assert "each server_id of the table must be the address of one of them" in text


def test_the_comments_are_short_enough_to_be_read(command_line: CommandLine) -> None:
    """At most 25 lines in the usual case, 30 with all that can be said."""
    for kind in KINDS:
        for most, own in (
            (25, ("--product", "a2", "--nnodes", "2", "--max-restarts", "2", "--require-key")),
            (25, ("--product", "a3", "--nnodes", "64")),
            (30, ("--product", "a3", "--nnodes", "53", "--max-restarts", "2", "--env", "A_TOKEN=a")),
        ):
            done = command_line("launch", "--emit", kind, "--image", "i", *own, "train.py")
            lines = [line for line in done.out.splitlines() if line.startswith("#")]
            assert len(lines) <= most, done.out
            assert max(map(len, lines)) <= 110


def test_a_secret_in_the_command_is_named(command_line: CommandLine) -> None:
    secrets = ("--env", "HF_TOKEN=hf_1", "--env", "LR=0.1")
    program = ("train.py", "--api-key=k", "--num-tokens", "4096", "--token-file", "f")

    done = command_line("launch", "--emit", "vcjob", "--image", "i", "--product", "a2", *secrets, *program)
    without = command_line(
        "launch", "--emit", "vcjob", "--image", "i", "--product", "a2", "train.py", "--lr", "1"
    )

    said = "HF_TOKEN and --api-key: who can read the file, the job or its pods can read the value"
    assert done.err.startswith(f"note: {said}")
    assert f"# {said}" in done.out
    assert "hf_1" not in done.err
    assert without.err == ""


def test_a_table_that_is_fixed(command_line: CommandLine) -> None:
    table = merge([("1", host_table(1)), ("2", host_table(2))]).table
    name = command_line.write("job.json", "".join(formats.write(table)))
    pinned = ("--rank-table", name, "--product", "910a", "--pin-nodes", "node[1-2]")

    config_map, job = emitted(command_line, "vcjob", *pinned, "train.py")

    assert violations("vcjob", job) == []
    assert config_map["metadata"] == {"name": "train-table"}  # ascend-operator does not write into it.
    assert config_map["data"]["hccl.json"] == (command_line.folder / name).read_text()
    ((pods, template),) = templates(job)
    terms = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert pods == 2
    # Kubernetes takes one name in a term; the label kubernetes.io/hostname may differ from it.
    assert terms == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in ("node1", "node2")
    ]
    assert "--wait" not in template["spec"]["containers"][0]["command"]

    _, patient = emitted(command_line, "vcjob", *pinned, "--wait", "30m", "train.py")  # Images are pulled.

    ((_, template),) = templates(patient)
    assert template["spec"]["containers"][0]["command"][4:6] == ["--wait", "1800"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--product", "a2"], 2, "needs the image of the containers"),
        (["--image", "i"], 2, "needs the product of the nodes\n"),
        ([], 2, "needs the image of the containers and the product of the nodes\n"),
        (["--cpu", "--all-here"], 2, "does not support --all-here and --cpu\n  help: leave --all-here and"),
        (["--cpu"], 2, "leave --cpu out: the pods request NPUs; to try the program on this host,"),
        (["--devices", "0", "--hosts", "a"], 2, "manager chooses the nodes; leave --devices out: the"),
        (["--image", "a b"], 2, '--image "a b" has blanks'),
        (["--image", "i", "--queue", "A_b"], 2, '--queue "A_b" is not the name of a queue\n'),
        (["--image", "i", "--shm-size", "64g"], 2, '--shm-size "64g" is not a size\n  help: write 64Gi\n'),
        (["--image", "i", "--shm-size", "0"], 2, "the units are Mi, Gi and Ti"),
        (["--image", "i", "--product", "a5"], 125, "does not know the names of Ascend 950 in Kubernetes"),
        (["--image", "i", "--product", "a2", "--hosts", "a,b"], 2, "does not support --hosts"),
        (["--image", "i", "--product", "a2", "--exclude", "a"], 2, "does not support --exclude"),
        (["--image", "i", "--product", "a2", "--nproc-per-node", "9"], 2, "9 devices in a pod"),
        (["--image", "i", "--product", "910a", "--nproc-per-node", "3"], 2, "allows 1, 2, 4, 8"),
        (["--image", "i", "--product", "910a", "--nnodes", "2", "--nproc-per-node", "4"], 2, "uses all 8"),
        (["--image", "i", "--product", "a2", "-n", "9"], 2, "9 devices in a pod"),
        (["--image", "i", "--product", "a3", "--nnodes", "2", "--nproc-per-node", "8"], 2,
         "all 16 of each node\n  help: use --nnodes 1 --nproc-per-node 16; or --product a3-server, if the"),
        (["--image", "i", "--product", "a3", "-n", "3"], 2, "a pod only 1, 2, 4, 6, 8, 10, 12, 14, 16\n"),
        (["--image", "i", "--product", "a3-server", "--nnodes", "2", "--nproc-per-node", "1"], 2,
         "MindCluster's scheduler gives a job with several pods only 2, 4,"),
        (["--image", "i", "--product", "Atlas 200T A2 Box16", "-n", "9"], 2, "8, 10, 12, 14, 16\n"),
        (["--image", "i", "--product", "Atlas 800 A3"], 125,
         'does not know the label accelerator-type of the node "Atlas 800 A3"\n'),
        (["--image", "Repo/img:1", "--product", "a5"], 125, "--emit does not know"),
        (["--image", "a.b:5000/IMG:V1", "--product", "a2"], 2, '000/IMG:V1" has capital letters in IMG'),
        (["--image", "i", "--product", "a2", "--log-dir", "/l/%j"], 2, "Slurm's job id, and pods have none"),
        (["--image", "i", "--product", "a2", "--object-name", "Train"], 2, "not the name of a job"),
        (["--image", "i", "--product", "a2", "--object-name", "a" * 60], 2, "at most 45 characters"),
        (["--image", "i", "--product", "a2", "--namespace", "a_b"], 2, "not the name of a namespace"),
        (["--image", "i", "--rank-table", "none.json"], 2, "help: leave --rank-table out, so that the pods "),
        (["--image", "i", "--rank-table", "t.json"], 2,
         "help: use `-n 16 --nnodes 2 --product 910a` in place of --rank-table, so that the pods wait for "),
        (["--image", "i", "--rank-table", "t.json"], 2, "; or add --pin-nodes with the names of the nodes"),
        (["--image", "http://r/i:1", "--product", "a2"], 2, "http://, which no image has in its name"),
        (["--image", "i", "--product", "a2", "--require-key", "--preflight", "none"], 2, "one of the two"),
        (["--image", "i", "--product", "a2", "--pin-nodes", "n1"], 2, "add --rank-table FILE"),
        (["--image", "i", "--product", "910a", "--pin-nodes", "n1", "--rank-table", "t.json"], 2, "2 ser"),
    ],
)  # fmt: skip
def test_wrong_usage(command_line: CommandLine, options: list[str], code: int, words: str) -> None:
    table = merge([("1", host_table(1)), ("2", host_table(2))]).table
    command_line.write("t.json", "".join(formats.write(table)))

    done = command_line("launch", "--emit", "vcjob", *options, "train.py")

    assert done.code == code
    assert words in done.err
    assert done.out == ""


def test_a_service_begins_with_a_letter(command_line: CommandLine) -> None:
    """ascend-operator makes a Service of the name of its job; Volcano makes none."""
    named = ("--image", "i", "--product", "a2", "--object-name", "7b")

    refused = command_line("launch", "--emit", "acjob", *named, "train.py")
    accepted = command_line("launch", "--emit", "vcjob", *named, "train.py")

    assert (refused.code, accepted.code) == (2, 0)
    assert '"7b" begins with a digit' in refused.err


def test_the_options_of_another_target(command_line: CommandLine) -> None:
    done = command_line("launch", "-n", "2", "--cpu", "--image", "i", "train.py")

    assert done.code == 2
    assert "--image is for a job that a cluster manager places" in done.err


def kubectl(folder: Path, *args: str) -> str:
    """Run kubectl without a cluster."""
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on PATH")
    done = subprocess.run(
        ["kubectl", *args], capture_output=True, text=True, check=False, cwd=folder, timeout=60,
        env={"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "KUBECONFIG": "/dev/null"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_kubectl_reads_the_objects(command_line: CommandLine, kind: str) -> None:
    done = command_line(
        "launch", "--emit", kind, "--image", "i", "--nnodes", "2", "--product", "a3", "train.py"
    )
    command_line.write("job.yaml", done.out)

    printed = kubectl(command_line.folder, "annotate", "--local", "-f", "job.yaml", "-o", "yaml", "a=b")

    for read, written in zip(documents(printed), documents(done.out), strict=True):
        assert read["metadata"].pop("annotations").pop("a") == "b"
        written["metadata"].pop("annotations", None)
        assert {key: read[key] for key in written} == written


def test_the_config_map_of_kubectl_is_read_back(command_line: CommandLine) -> None:
    table = merge([("1", host_table(1)), ("2", host_table(2))]).table
    command_line.write("hccl.json", "".join(formats.write(table)))
    made = kubectl(
        command_line.folder,
        *(
            "create",
            "configmap",
            "rings-config-train",
            "--from-file=hccl.json",
            "--dry-run=client",
            "-o",
            "yaml",
        ),
    )
    command_line.write("cm.yaml", made)

    assert command_line("validate", "cm.yaml", "--product", "910a").code == 0
    pinned = (
        "--rank-table",
        "hccl.json",
        "--product",
        "910a",
        "--pin-nodes",
        "n[1-2]",
        "--object-name",
        "train",
    )
    config_map, _ = emitted(command_line, "acjob", *pinned, "train.py")
    assert config_map["data"] == documents(made)[0]["data"]


TABLE_IS_DIVIDED = "because this divides each super pod of the table"
DEFAULT_IS_48 = "MindCluster's default super-pod-size is 48 nodes"


@pytest.mark.parametrize(
    ("sizes", "block", "said"),
    [
        ((1, 1), 16, f"2 logical super pods of 1 node, without HCCS between nodes, {TABLE_IS_DIVIDED}\n"),
        ((4, 2), 32, f"3 logical super pods of 2 nodes {TABLE_IS_DIVIDED}; other values: 16\n"),
        ((3,), 48, f"1 logical super pod of 3 nodes {TABLE_IS_DIVIDED}; other values: 16\n"),
        ((64,), 512, (f"2 logical super pods of 32 nodes {TABLE_IS_DIVIDED}, and {DEFAULT_IS_48}; "
         "other values: 1024 (with super-pod-size 64 or more), 256, 128, 64, 32\n")),
    ],
)  # fmt: skip
def test_the_super_pods_of_a_pinned_table_decide_on_sp_block(
    command_line: CommandLine, sizes: tuple[int, ...], block: int, said: str
) -> None:
    """MindCluster's scheduler leaves a job pending of which a part does not fit into a super pod."""
    made = command_line("gen", "--simulate", "a3", "--servers", str(sum(sizes)), "-o", "t.json")
    assert made.code == 0, made.err
    value = json.loads((command_line.folder / "t.json").read_text())
    servers = [server for pod in value["super_pod_list"] for server in pod["server_list"]]
    value["super_pod_list"] = [
        {"super_pod_id": str(number), "server_list": [servers.pop(0) for _ in range(size)]}
        for number, size in enumerate(sizes)
    ]
    command_line.write("t.json", value)
    pinned = ("--rank-table", "t.json", "--pin-nodes", f"n[1-{sum(sizes)}]")

    done = command_line("launch", "--emit", "vcjob", "--image", "i", "--product", "a3", *pinned, "train.py")

    assert done.code == 0, done.err
    assert f"sp-block: '{block}'" in done.out
    assert f"note: sp-block is {block}: {said}" in done.err
    assert f"# sp-block is {block}: {said[:30]}" in done.out


def test_the_super_pods_of_a_pinned_table_are_those_of_its_ranks(command_line: CommandLine) -> None:
    """ascend-operator numbers them by the pods, which are on the nodes in any order."""
    for product in ("a2", "a3"):
        made = command_line("gen", "--simulate", product, "--servers", "2", "-o", f"{product}.json")
        assert made.code == 0, made.err

    def command(kind: str, product: str, *options: str) -> list[list[str]]:
        _, job = emitted(command_line, kind, "--product", product, *options, "train.py")
        return [one["spec"]["containers"][0]["command"][:3] for _, one in templates(job)]

    def pinned(kind: str, product: str) -> list[list[str]]:
        return command(kind, product, "--rank-table", f"{product}.json", "--pin-nodes", "n[1-2]")

    assert pinned("acjob", "a3") == [["env", "-u", "HCCL_LOGIC_SUPERPOD_ID"]] * 2
    others = [pinned("vcjob", "a3"), pinned("acjob", "a2"), command("acjob", "a3", "--nnodes", "2")]
    assert all(words[0] == "hccl-tools" for one in others for words in one)


def test_pods_that_do_not_connect_are_ended_by_the_manager(command_line: CommandLine) -> None:
    several = ("--image", "i", "--product", "a2", "--nnodes", "2")

    alone = command_line("launch", "--emit", "acjob", *several, "--preflight", "none", "train.py")
    usual = command_line("launch", "--emit", "acjob", *several, "train.py")

    assert "cleanPodPolicy: Running" in alone.out
    assert "# --preflight none: the pods do not connect, so that they have no job key.\n" in alone.out
    assert "cleanPodPolicy" not in usual.out


def head(command_line: CommandLine, *options: str, kind: str = "vcjob") -> str:
    """Return the comments of a YAML, without line breaks."""
    done = command_line("launch", "--emit", kind, "--image", "i", *options)
    assert done.code == 0, done.err
    return " ".join(done.out.partition("apiVersion")[0].replace("#", "").split())


GLOO = "; if the program uses gloo, also net.ipv4.ip_local_port_range of the nodes (32768-60999 by default)."


def test_the_ports_between_the_nodes(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the network of the nodes, their firewalls count."""
    several = ("--product", "a2", "--nnodes", "2")

    assert f"nodes: 18117, 18118-18125 (launch and ranks), 60000-60031 (HCCL){GLOO}" in head(
        command_line, *several, "train.py"
    )
    assert f"nodes: 5000-5007 (ranks), 60000-60031 (HCCL){GLOO}" in head(
        command_line, *several, "--start-port", "5000", "--preflight", "none", "train.py"
    )
    mindspore = head(command_line, *several, "--start", "cluster", "train.py")
    assert "(HCCL). " in mindspore
    assert "gloo" not in mindspore
    assert "TCP" not in head(command_line, "--product", "a2", "train.py")
    monkeypatch.setenv("HCCL_TOOLS_START_PORT", "12000")
    assert "18117, 12000-12007" in head(command_line, *several, "train.py")
    _, job = emitted(command_line, "vcjob", *several, "train.py")
    command = templates(job)[0][1]["spec"]["containers"][0]["command"]
    assert command[8:10] == ["--start-port", "12000"]  # The pods do not have the variable.


@pytest.mark.parametrize(
    ("assigned", "said"),
    [
        (["HCCL_IF_BASE_PORT=50000"], f"50000-50031 (HCCL){GLOO}"),
        (["HCCL_IF_BASE_PORT=65520"], f"65520-65535 (HCCL){GLOO}"),
        (["HCCL_HOST_SOCKET_PORT_RANGE=40000-40100, 41000"], f"40000-40100,41000 (HCCL){GLOO}"),
        (["HCCL_HOST_SOCKET_PORT_RANGE= "], f"60000-60031 (HCCL){GLOO}"),
        (
            ["HCCL_HOST_SOCKET_PORT_RANGE=auto"],
            f"any free port, because HCCL_HOST_SOCKET_PORT_RANGE is auto (HCCL){GLOO}",
        ),
        (["HCCL_IF_BASE_PORT=5000", "HCCL_HOST_SOCKET_PORT_RANGE=6000"], f"5000-5031, 6000 (HCCL){GLOO}"),
    ],
)
def test_the_ports_of_hccl_are_those_of_the_pods_variables(
    command_line: CommandLine, assigned: list[str], said: str
) -> None:
    typed = [word for one in assigned for word in ("--env", one)]

    shown = head(command_line, "--product", "a2", "--nnodes", "2", *typed, "train.py")

    assert f"18118-18125 (launch and ranks), {said}" in shown


@pytest.mark.parametrize(
    ("kind", "options", "lost"),
    [
        ("vcjob", ["--max-restarts", "2"], "a restart deletes the logs of the failed run"),
        ("acjob", ["--max-restarts", "2"], "a restart deletes the logs of the failed run"),
        ("vcjob", ["--nnodes", "2"], "a failure deletes those of pods that still run"),
        ("acjob", ["--nnodes", "2", "--preflight", "none"], "a failure deletes those of pods that still run"),
        ("acjob", ["--nnodes", "2"], None),
        ("vcjob", [], None),
    ],
)
def test_which_logs_are_lost(
    command_line: CommandLine, kind: str, options: list[str], lost: str | None
) -> None:
    said = f"; without one for logs, {lost}" if lost else ""
    for folder, shown in ((), "log in WORKDIR"), (("--log-dir", "/logs"), "/logs"):
        comments = head(command_line, "--product", "a2", *folder, *options, "train.py", kind=kind)
        assert f"checkpoints and logs ({shown}){said}. If other users" in comments


def test_the_pods_use_the_folder_of_logs_that_the_note_names(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pods do not have the variable of the one who types."""
    monkeypatch.setenv("HCCL_TOOLS_LOG_DIR", "/xx")

    done = command_line("launch", "--emit", "vcjob", "--image", "i", "--product", "a2", "train.py")

    assert "note: --log-dir /xx (HCCL_TOOLS_LOG_DIR)" in done.err
    assert "and logs (/xx)" in head(command_line, "--product", "a2", "train.py")
    for typed, words in ((), ["--log-dir", "/xx"]), (("--log-dir", "/y"), ["--log-dir", "/y"]):
        _, job = emitted(command_line, "vcjob", "--product", "a2", *typed, "train.py")
        assert templates(job)[0][1]["spec"]["containers"][0]["command"][8:] == [*words, "train.py"]
    monkeypatch.setenv("HCCL_TOOLS_LOG_DIR", "/xx/%j")
    refused = command_line("launch", "--emit", "vcjob", "--image", "i", "--product", "a2", "train.py")
    assert "--log-dir /xx/%j: %j is Slurm's job id" in refused.err


@pytest.mark.parametrize(("size", "memory"), [(None, 256), ("64Gi", 256), ("200Gi", 328), ("1Ti", 1152)])
def test_the_example_of_memory_has_room_for_dev_shm(
    command_line: CommandLine, size: str | None, memory: int
) -> None:
    typed = ("--shm-size", size) if size else ()

    assert f"memory: {memory}Gi with /dev/shm, at most {size or '16Gi'}" in head(
        command_line, "--product", "a2", *typed, "train.py"
    )


def test_a_name_that_was_cut_is_said(command_line: CommandLine) -> None:
    """Two programs with the same beginning have one name."""
    said = "name: the first 45 characters of the program's; --object-name sets another."
    long = f"{'a' * 60}.py"

    assert said in head(command_line, "--product", "a2", long)
    assert "characters" not in head(command_line, "--product", "a2", "--object-name", "a" * 45, long)
    assert "characters" not in head(command_line, "--product", "a2", f"{'a' * 45}.py")
