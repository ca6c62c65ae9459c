"""``launch --emit vcjob|acjob``: the YAML of the job of a cluster manager, and the size of its pods."""

from __future__ import annotations

import importlib.util
import os
import re
from typing import TYPE_CHECKING, Any, cast

from hccl_tools.cli import product_option
from hccl_tools.cli.launch_options import OF_OBJECTS
from hccl_tools.cli.option_groups import typed_without
from hccl_tools.cli.site_options import is_from_site
from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.formats.kubernetes import headers, jobs, names, writing
from hccl_tools.host import hccn_conf, host_ports, npu_smi
from hccl_tools.host.machine import DRIVER
from hccl_tools.launch.planning import composition, ports, table_source
from hccl_tools.launch.planning.environment import JobFacts
from hccl_tools.launch.planning.placement import place_ranks_without_table
from hccl_tools.launch.planning.visible_devices import VisibleDevices
from hccl_tools.notation import host_list, secret_names
from hccl_tools.notation.phrases import count
from hccl_tools.programs.lookup import YAML
from hccl_tools.records import NamedTuple
from hccl_tools.rules import job_variables
from hccl_tools.runs import job_key, parents
from hccl_tools.table.product_names import machine, read_name
from hccl_tools.table.products import PRODUCTS, NodeLabels, Product

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from hccl_tools.launch.model.request import LaunchRequest

#: The options of the call that are not for the pods, each with a value.
_NOT_IN_PODS = (
    *("--emit", *OF_OBJECTS, "--nnodes", "--nproc-per-node", "--local-worker-num", "-n", "--np"),
    *("--worker-num", "--rank-table", "--rank-table-file", "--wait", "--max-restarts", "--product", "-np"),
)
#: The options that do not go with a job of a cluster manager, by the reason.
_REASONS = {
    "the cluster manager chooses the nodes": (
        *("--hosts", "--hostfile", "--ips", "--node-rank", "--server", "--spares", "--spare-hosts"),
        "--exclude",
    ),
    "the cluster manager chooses the devices": ("--devices",),
    "the cluster manager starts the command in each pod": ("--engine", "--mpirun"),
    "the table of the cluster manager has the ranks and addresses": ("--no-table", "--master-addr"),
    "the cluster manager starts the job again; --max-restarts says how often": (
        *("--max-restarts-per-hour", "--restart-delay", "--restart-on"),
    ),
    "the pods request NPUs; to try the program on this host, leave --emit out": ("--cpu", "--all-here"),
    "pods have no standard input": ("--stdin",),
    "the file is not in the pods; use --env, or add a ConfigMap or a Secret to the YAML": ("--env-file",),
}
#: Seconds in which ascend-operator fills in the table, and kubelet shows it to the pods.
_WAIT = 600.0
#: Kubernetes' own default, and what a node needs after the ranks have ended.
_LEAST_GRACE, _END = 30, 15
#: Of a job: the names of its pods and ConfigMap are longer, and must be labels too.
_LONGEST_NAME = 45
_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]{0,62}")
_OTHER_SIGNS = re.compile(r"[^a-z0-9]+")
#: The products whose names in Kubernetes are known.
_SUPPORTED = tuple(name for name, one in PRODUCTS.items() if one.nodes)


def text(request: LaunchRequest, options: Mapping[str, Any], typed: Collection[str]) -> tuple[str, list[str]]:
    """Return the YAML of a job, and notes for the user.

    ``typed`` are the options on the command line, by their canonical names.

    Raises:
        UsageError: An option is missing, or the cluster manager decides what it says.
        LaunchError: HCCL would refuse the table, or the product is not supported.
    """
    _check(request, options, typed)
    _check_complete(options)
    place = _place_of(product_option.typed() or "")
    nodes = host_list.parse(options["pin_nodes"], option="--pin-nodes") if options["pin_nodes"] else ()
    size, table, groups = _pinned(request, place, nodes) if nodes else _free(request, place)
    _check_size(size, place)
    _check_variables(request, place.product, size)
    name = _name(options, request)
    port = jobs.own_port(name, options["namespace"]) if size.devices < place.node.devices else None
    meets_at = ports.chosen_port(request.hosts.start_port, os.environ)[0] or port if size.pods > 1 else None
    spec = jobs.JobSpec(
        cast("jobs.Kind", options["emit"]),
        name,
        options["namespace"],
        options["image"],
        list(_command(request, options, place.product, meets_at, waits=table is None)),
        size.pods,
        size.devices,
        place.node,
        "mindspore" if request.start.method in {"cluster", "table"} else "pytorch",
        request.start.method is not None,
        request.watch.max_restarts,
        max(_LEAST_GRACE, round(request.watch.grace) + _END),
        (f"{DRIVER}/", hccn_conf.USUAL_PLACE, npu_smi.USUAL_PLACE),
        groups if place.product.super_pods else (),
        nodes,
        table,
        queue=options["queue"] or jobs.QUEUE,
        shared_memory=options["shm_size"] or jobs.shared_memory(size.devices),
        port=port,
        connects=request.start.preflight,
        needs_key=size.pods > 1 and _requires_key(request),
        rendezvous=(ports.DISCOVERY_PORT, meets_at or ports.DEFAULT_PORT),
        hccl_ports=host_ports.to_open(request.variables.assigned),
        name_is_cut=options["object_name"] is None and not name.endswith(_stem(request)),
        secrets=list(_secrets(request)),
        log_folder=request.logs.dir if _has_log_folder(typed) else jobs.LOG_FOLDER,
    )
    notes = [*([place.note] if place.note else []), *headers.cautions(spec)]
    comments = headers.comments(spec, trusted_variable=parents.TRUSTED_VARIABLE)
    return writing.text(jobs.objects(spec), comments), notes


def _check(request: LaunchRequest, options: Mapping[str, Any], typed: Collection[str]) -> None:
    target = options["emit"]
    if refused := _refused(typed):
        given = " and ".join(sorted(option for group in refused.values() for option in group))
        hint = "; ".join(f"leave {' and '.join(group)} out: {why}" for why, group in refused.items())
        raise UsageError(f"--emit {target} does not support {given}", hint=hint)
    if options["rank_table"] is not None and not options["pin_nodes"]:
        size = _size_options(request)
        instead = f"use {size} in place of --rank-table" if size else "leave --rank-table out"
        raise UsageError(
            f"--emit {target}: the cluster manager chooses the nodes and devices, and makes their table",
            hint=f"{instead}, so that the pods wait for the table of the manager; or add --pin-nodes with "
            "the names of the nodes of the table",
        )
    if _requires_key(request) and not request.start.preflight:
        raise UsageError(
            f"--emit {target}: --require-key protects the connections of the pods, which --preflight none "
            "leaves out",
            hint="leave one of the two out",
        )
    if _has_log_folder(typed) and "%j" in options["log_dir"]:
        raise UsageError(
            f"--log-dir {options['log_dir']}: %j is Slurm's job id, and pods have none",
            hint="leave %j out: each run has a folder of its own in that folder",
        )
    checks = {
        "namespace": names.check_namespace,
        "image": names.check_image,
        "queue": names.check_queue,
        "shm_size": names.check_shared_memory,
    }
    for option, check in checks.items():
        if options[option] is not None:
            check(options[option])


def _refused(typed: Collection[str]) -> dict[str, list[str]]:
    """Return the options that are refused, by the reason."""
    given = {why: sorted(set(options).intersection(typed)) for why, options in _REASONS.items()}
    return {why: options for why, options in given.items() if options}


def _check_complete(options: Mapping[str, Any]) -> None:
    """Refuse a call in which something is missing; the message names all that is missing.

    Raises:
        UsageError: The image, the product or the package that writes YAML is missing.
    """
    missing: list[tuple[str, str]] = []
    if not options["image"]:
        missing.append(
            ("the image of the containers", "--image NAME: an image with CANN, hccl-tools and the program")
        )
    if not product_option.typed():
        missing.append(("the product of the nodes", f"--product {' or '.join(_SUPPORTED)}"))
    if missing and importlib.util.find_spec("yaml") is None:
        missing.append(("PyYAML", YAML))
    if missing:
        *others, last = (what for what, _how in missing)
        whole = f"{', '.join(others)} and {last}" if others else last
        raise UsageError(
            f"--emit {options['emit']} needs {whole}",
            hint=f"add {'; '.join(how for _what, how in missing)}",
        )


def _stem(request: LaunchRequest) -> str:
    """Return the name of the program in the signs of a job's name."""
    program = request.program.argv[0]
    is_module = request.program.kind == "module"
    name = program.replace(".", "-") if is_module else program.rpartition("/")[2].partition(".")[0]
    return _OTHER_SIGNS.sub("-", name.lower()).strip("-")


def _name(options: Mapping[str, Any], request: LaunchRequest) -> str:
    if options["object_name"] is not None:
        names.check_job(options["object_name"], most=_LONGEST_NAME, of_service=options["emit"] == "acjob")
        return str(options["object_name"])
    made = _stem(request)[:_LONGEST_NAME].strip("-")
    return made if made[:1].isalpha() else f"job-{made}".rstrip("-")


def _command(
    request: LaunchRequest, options: Mapping[str, Any], product: Product, port: int | None, *, waits: bool
) -> Iterator[str]:
    """Yield what each pod runs: the call without what is in the objects, with the table of the pod.

    ``port`` is where the hosts meet. The variables of the one who types do not reach the pods.
    """
    yield from ("hccl-tools", "launch", "--rank-table", f"{jobs.TABLE_FOLDER}/{jobs.TABLE_KEY}")
    wait = request.table.wait
    if waits or wait is not None:  # Pods also wait for each other.
        yield from ("--wait", f"{_WAIT if wait is None else wait:g}")
    yield from ("--product", product.name)
    if port is not None and request.hosts.start_port is None:
        yield from ("--start-port", str(port))
    if is_from_site("log_dir"):
        yield from ("--log-dir", request.logs.dir)
    if _requires_key(request) and not request.start.require_key:
        yield "--require-key"
    yield from typed_without(request.typed_options, *_NOT_IN_PODS)
    yield from options["program"]


def _has_log_folder(typed: Collection[str]) -> bool:
    return "--log-dir" in typed or is_from_site("log_dir")


def _requires_key(request: LaunchRequest) -> bool:
    return request.start.require_key or job_key.is_required(os.environ)


def _secrets(request: LaunchRequest) -> Iterator[str]:
    """Yield the variables and the program's options whose names say that their values are secrets."""
    for name, value in request.variables.assigned.items():
        if secret_names.is_secret(name) and not secret_names.is_plain(name, value):
            yield name
    for word in request.program.argv[1:]:
        name, has_value, value = word.partition("=")
        is_plain = has_value and secret_names.is_plain(name, value)
        if _OPTION.fullmatch(name) and secret_names.is_secret(name) and not is_plain:
            yield name


class _Place(NamedTuple):
    """Where the pods run.

    Attributes:
        product: The product of the devices, as the pods must understand the table of the cluster manager.
        node: The node in Kubernetes.
        note: What the user should know about this choice, if anything.
    """

    product: Product
    node: NodeLabels
    note: str | None = None


class _Size(NamedTuple):
    """The number of pods, each on a node of its own, and of the devices of each."""

    pods: int
    devices: int


def _place_of(name: str) -> _Place:
    """Return the nodes for the name of a product, chip or machine.

    Raises:
        LaunchError: The label of the nodes is not known.
        UsageError: No product has the name.
    """
    product = read_name(name).product
    if not product.nodes:
        raise LaunchError(
            f"--emit does not know the names of {product.title} in Kubernetes",
            hint=f"it knows those of {', '.join(_SUPPORTED)}",
        )
    named = machine(name)
    if named is None:
        return _Place(product, product.nodes[0])
    for other in PRODUCTS.values():
        for node in other.nodes:
            if named in node.machines:
                note = f'nodes "{name}" have the label {node.server}: the pods use --product {other.name}'
                return _Place(other, node, note if other is not product else None)
    like = ", ".join(f"--product {words} if it is {node.server}" for words, node in _nodes_like(product))
    raise LaunchError(
        f'--emit does not know the label accelerator-type of the node "{name}"',
        hint=f"look at `kubectl get nodes -L accelerator-type`, and use {like}",
    )


def _nodes_like(product: Product) -> Iterator[tuple[str, NodeLabels]]:
    """Yield the nodes with devices of the same type, each with the value of ``--product`` that means it."""
    for one in PRODUCTS.values():
        if one.device_type == product.device_type:
            for node in one.nodes:
                yield one.name if node is one.nodes[0] else f'"{node.machines[0]}"', node


def _size_of(request: LaunchRequest, place: _Place) -> _Size:
    """Return the number of pods and devices that the options ask for; by default one whole node.

    Raises:
        UsageError: The ranks cannot be divided evenly.
    """
    devices, pods = request.devices, request.hosts.node_count
    whole = place.node.devices
    if devices.per_node is not None or devices.ranks is None:
        return _Size(pods or 1, devices.per_node or whole)
    if pods is None:
        pods = max(1, devices.ranks // whole)
    if devices.ranks % pods:
        raise UsageError(
            f"{devices.ranks} ranks cannot be divided evenly among {count(pods, 'node')}",
            hint="give --nnodes and --nproc-per-node",
        )
    return _Size(pods, devices.ranks // pods)


def _free(request: LaunchRequest, place: _Place) -> tuple[_Size, None, list[int]]:
    """Return the size of a job without a table, all of whose nodes may be in one super pod."""
    size = _size_of(request, place)
    return size, None, [size.pods]


def _size_options(request: LaunchRequest) -> str | None:
    """Return the options for a job as large as the table of a request; ``None`` if it cannot be used."""
    try:
        located = table_source.locate(request.table, {})
        loaded = table_source.load_file(located[0], request.table, {}) if located else None
    except HcclToolsError:
        return None
    if loaded is None:
        return None
    return f"`-n {len(loaded.table)} --nnodes {len(loaded.table.servers)} --product {loaded.product}`"


def _check_size(size: _Size, place: _Place) -> None:
    """Refuse numbers of devices that HCCL or the scheduler of the cluster refuses.

    Raises:
        UsageError: They do so.
    """
    product, whole = place.product, place.node.devices
    if size.devices > whole:
        raise UsageError(
            f"{size.devices} devices in a pod: a node has {whole} ({product.title})",
            hint="spread the ranks over more nodes with --nnodes",
        )
    allowed = product.counts_per_server
    if allowed is not None and size.devices not in allowed:
        raise UsageError(
            f"{size.devices} devices in a pod: HCCL's guide allows {', '.join(map(str, allowed))} "
            f"on {product.title}"
        )
    if size.pods > 1 and product.cluster_count not in (None, size.devices):
        raise UsageError(
            f"{size.devices} devices in each of {size.pods} pods: a job on several nodes of {product.title} "
            f"uses all {product.cluster_count} of each"
        )
    if not _is_scheduled(size, place.node):
        raise _not_scheduled(size, place)


def _check_variables(request: LaunchRequest, product: Product, size: _Size) -> None:
    """Refuse variables in ``--env`` that launch in the pods refuses, or HCCL.

    If the user has not said how the ranks start, those of a start with the table count.

    Raises:
        UsageError: A variable differs between the ranks or pods, or its value is not valid.
    """
    assigned = request.variables.assigned
    composition.check_address(assigned, size.pods, "pods")
    for problem in job_variables.problems(assigned, product):
        raise UsageError(f"--env {problem.message}; HCCL refuses every job", hint=problem.hint)
    at = f"{jobs.TABLE_FOLDER}/{jobs.TABLE_KEY}"
    start, count_of_ranks = request.start.method or "table", size.pods * size.devices
    hosts = [str(pod) for pod in range(size.pods)]
    placements = place_ranks_without_table(range(size.devices), hosts)
    facts = JobFacts(start, count_of_ranks, hosts[0], 0, at, (), VisibleDevices(), servers=size.pods)
    composition.check_assigned(assigned, composition.compose(placements, facts).ranks, facts)


def _counts(size: _Size, node: NodeLabels) -> tuple[int, ...] | None:
    return (size.pods > 1 and node.cluster_counts) or node.counts


def _is_scheduled(size: _Size, node: NodeLabels) -> bool:
    counts = _counts(size, node)
    return counts is None or size.devices in counts


def _not_scheduled(size: _Size, place: _Place) -> UsageError:
    """Return the error for a number of devices with which MindCluster's scheduler leaves the pods pending."""
    node, total = place.node, size.pods * size.devices
    counts = _counts(size, node) or ()
    where = f" in each of {size.pods} pods" if size.pods > 1 else " in a pod"
    several = "a job with several pods" if size.pods > 1 else "a pod"
    allowed = f"all {node.devices} of each node" if counts == (node.devices,) else ", ".join(map(str, counts))
    ways = [
        f"--product {words}, if the label of your nodes is {other.server}"
        for words, other in _nodes_like(place.product)
        if other is not node and other.devices >= size.devices and _is_scheduled(size, other)
    ]
    if size.pods > 1 and total % node.devices == 0:
        ways.insert(0, f"--nnodes {total // node.devices} --nproc-per-node {node.devices}")
    return UsageError(
        f"{count(size.devices, 'device')}{where}: for nodes with the label {node.server}, MindCluster's "
        f"scheduler gives {several} only {allowed}",
        hint=f"use {'; or '.join(ways)}" if ways else None,
    )


def _pinned(request: LaunchRequest, place: _Place, nodes: Sequence[str]) -> tuple[_Size, str, list[int]]:
    """Return the size and the text of a table of the given nodes, and the number of nodes of each super pod.

    Raises:
        LaunchError: Kubernetes would give the pods other devices than the table, or the table is too large.
        UsageError: No table was found, or it has other nodes.
    """
    located = table_source.locate(request.table, {})
    if located is None:
        raise UsageError("--pin-nodes is for a table that is fixed", hint="add --rank-table FILE")
    if request.devices.ranks or request.devices.per_node or request.hosts.node_count:
        raise UsageError("--pin-nodes: the table has the numbers of nodes and ranks", hint="leave them out")
    loaded = table_source.load_file(located[0], request.table._replace(product=place.product.name), {})
    servers = loaded.table.servers
    if len(servers) != len(nodes):
        raise UsageError(
            f"--pin-nodes: {count(len(nodes), 'node')}, but the table has {count(len(servers), 'server')}",
            hint="name the node of each server, as `kubectl get nodes` does",
        )
    whole = place.node.devices
    if any(len(server.rows) != whole for server in servers):
        raise LaunchError(
            f"--pin-nodes needs all {whole} devices of each node in the table",
            hint="Kubernetes chooses the devices of a pod that uses some of them: leave --rank-table and "
            "--pin-nodes out",
        )
    if len(loaded.data) > writing.DATA_LIMIT:
        raise LaunchError(
            f"the table has {len(loaded.data):,} bytes; a ConfigMap has at most {writing.DATA_LIMIT:,}"
        )
    groups = [len(pod.server_ids) for pod in loaded.table.super_pods or ()] or [len(servers)]
    return _Size(len(servers), whole), loaded.data.decode(), groups
