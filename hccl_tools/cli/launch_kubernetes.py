"""``launch --emit vcjob|acjob``: the YAML of a job that a cluster manager places."""

from __future__ import annotations

import importlib.util
import os
import re
from typing import TYPE_CHECKING, Any, cast

from hccl_tools.cli.launch_options import OF_OBJECTS
from hccl_tools.cli.option_groups import typed_without
from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.formats.kubernetes import jobs, names, writing
from hccl_tools.host import hccn_conf, npu_smi
from hccl_tools.host.machine import DRIVER
from hccl_tools.launch.planning import table_file, table_source
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import count
from hccl_tools.programs.lookup import YAML
from hccl_tools.records import NamedTuple
from hccl_tools.table.product_names import read_name
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.table.products import Product

#: The options of the call that are not for the pods, each with a value.
_NOT_IN_PODS = (
    *("--emit", *OF_OBJECTS, "--nnodes", "--nproc-per-node", "--local-worker-num", "-n", "--np"),
    *("--worker-num", "--rank-table", "--rank-table-file", "--wait", "--max-restarts", "--product", "-np"),
)
#: The cluster manager decides what these options decide.
_REFUSED = frozenset(
    {
        *("--engine", "--mpirun", "--hosts", "--hostfile", "--ips", "--node-rank", "--server", "--spares"),
        *("--spare-hosts", "--exclude", "--devices", "--no-table", "--master-addr", "--stdin", "--cpu"),
        *("--all-here", "--max-restarts-per-hour", "--restart-delay", "--restart-on", "--env-file"),
    }
)
#: Seconds in which ascend-operator fills in the table, and kubelet shows it to the pods.
_WAIT = 600.0
#: Kubernetes' own default, and what a node needs after the ranks have ended.
_LEAST_GRACE, _END = 30, 15
#: Of a job: the names of its pods and ConfigMap are longer, and must be labels too.
_LONGEST_NAME = 45
#: The products whose names in Kubernetes are known.
_SUPPORTED = tuple(name for name, one in PRODUCTS.items() if one.labels is not None)
_OTHER_SIGNS = re.compile(r"[^a-z0-9]+")


class _Size(NamedTuple):
    pods: int
    devices: int


def text(request: LaunchRequest, options: Mapping[str, Any], typed: Collection[str]) -> tuple[str, list[str]]:
    """Return the YAML of a job, and notes for the user.

    ``typed`` are the options on the command line, by their canonical names.

    Raises:
        UsageError: An option is missing, or the cluster manager decides what it says.
        LaunchError: HCCL would refuse the table, or the product is not supported.
    """
    _check(options, typed)
    _check_complete(request, options)
    product = _product(request)
    nodes = host_list.parse(options["pin_nodes"], option="--pin-nodes") if options["pin_nodes"] else ()
    size, table = _pinned(request, product, nodes) if nodes else (_size(request, product), None)
    _check_size(size, product)
    kind = cast("jobs.Kind", options["emit"])
    if product.labels is None:  # ``_product`` has refused it; for the type alone
        raise AssertionError
    spec = jobs.JobSpec(
        kind,
        _name(options, request.program.argv[0], is_module=request.program.kind == "module"),
        options["namespace"],
        options["image"],
        list(_command(request, options, product, waits=table is None)),
        size.pods,
        size.devices,
        product.labels,
        "mindspore" if request.start.method in {"cluster", "table"} else "pytorch",
        request.watch.max_restarts,
        max(_LEAST_GRACE, round(request.watch.grace) + _END),
        (f"{DRIVER}/", hccn_conf.USUAL_PLACE, npu_smi.USUAL_PLACE),
        size.pods * size.devices if product.super_pods else None,
        nodes,
        table,
    )
    return writing.text(jobs.objects(spec), list(_comments(spec, size))), list(_notes(spec))


def _check(options: Mapping[str, Any], typed: Collection[str]) -> None:
    target = options["emit"]
    if refused := " and ".join(sorted(_REFUSED.intersection(typed))):
        raise UsageError(
            f"--emit {target} does not support {refused}",
            hint=f"the cluster manager decides: leave {refused} out",
        )
    if options["rank_table"] is not None and not options["pin_nodes"]:
        raise UsageError(
            f"--emit {target}: the cluster manager chooses the nodes and devices, and makes their table",
            hint="leave --rank-table out, so that the pods wait for the table of the manager; or add "
            "--pin-nodes with the names of the nodes of the table",
        )
    if options["namespace"] is not None:
        names.check_namespace(options["namespace"])


def _check_complete(request: LaunchRequest, options: Mapping[str, Any]) -> None:
    """Refuse a call in which something is missing; the message names all that is missing.

    Raises:
        UsageError: The image, the product or the package that writes YAML is missing.
    """
    missing: list[tuple[str, str]] = []
    if not options["image"]:
        missing.append(
            ("the image of the containers", "--image NAME: an image with CANN, hccl-tools and the program")
        )
    if not _product_name(request):
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


def _product_name(request: LaunchRequest) -> str:
    return request.table.product or os.environ.get(PRODUCT_VARIABLE) or ""


def _product(request: LaunchRequest) -> Product:
    product = read_name(_product_name(request)).product
    if product.labels is None:
        raise LaunchError(
            f"--emit does not know the names of {product.title} in Kubernetes",
            hint=f"it knows those of {', '.join(_SUPPORTED)}",
        )
    return product


def _size(request: LaunchRequest, product: Product) -> _Size:
    devices, pods = request.devices, request.hosts.node_count
    whole = product.server_size or product.device_limit
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


def _check_size(size: _Size, product: Product) -> None:
    whole = product.server_size or product.device_limit
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


def _pinned(request: LaunchRequest, product: Product, nodes: Sequence[str]) -> tuple[_Size, str]:
    """Return the size and the text of a table whose servers are the given nodes."""
    located = table_source.locate(request.table, {})
    if located is None:
        raise UsageError("--pin-nodes is for a table that is fixed", hint="add --rank-table FILE")
    if request.devices.ranks or request.devices.per_node or request.hosts.node_count:
        raise UsageError("--pin-nodes: the table has the numbers of nodes and ranks", hint="leave them out")
    loaded = table_file.load_file(located[0], request.table._replace(product=product.name), {})
    servers = loaded.table.servers
    if len(servers) != len(nodes):
        raise UsageError(
            f"--pin-nodes: {count(len(nodes), 'node')}, but the table has {count(len(servers), 'server')}",
            hint="name the node of each server, as `kubectl get nodes` does",
        )
    whole = product.server_size or product.device_limit
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
    return _Size(len(servers), whole), loaded.data.decode()


def _name(options: Mapping[str, Any], program: str, *, is_module: bool) -> str:
    if options["object_name"] is not None:
        names.check_job(options["object_name"], most=_LONGEST_NAME)
        return str(options["object_name"])
    name = program.replace(".", "-") if is_module else program.rpartition("/")[2].partition(".")[0]
    stem = name.lower()
    made = _OTHER_SIGNS.sub("-", stem)[:_LONGEST_NAME].strip("-")
    return made if made[:1].isalpha() else f"job-{made}".rstrip("-")


def _command(
    request: LaunchRequest, options: Mapping[str, Any], product: Product, *, waits: bool
) -> Iterator[str]:
    """Yield what each pod runs: the call without what is in the objects, with the table of the pod."""
    yield from ("hccl-tools", "launch", "--rank-table", f"{jobs.TABLE_FOLDER}/{jobs.TABLE_KEY}")
    if waits:
        yield from ("--wait", f"{request.table.wait if request.table.wait is not None else _WAIT:g}")
    yield from ("--product", product.name)
    yield from typed_without(request.typed_options, *_NOT_IN_PODS)
    yield from options["program"]


def _comments(spec: jobs.JobSpec, size: _Size) -> Iterator[str]:
    what = "Volcano's Job" if spec.kind == "vcjob" else "MindCluster's AscendJob"
    each = " each" if size.pods > 1 else ""
    devices = count(size.devices, "device")
    yield f"{what}: {count(size.pods, 'pod')} with {devices}{each}; kubectl apply -f FILE"
    if spec.table is None:
        yield "ascend-operator fills in the ConfigMap; the pods wait for it."
    yield "nodeSelector: the label of your nodes may differ, see kubectl get nodes -L accelerator-type."
    yield "ASCEND_VISIBLE_DEVICES: MindCluster's plug-in of Volcano writes its annotation; remove the"
    yield "variable if your cluster has no such plug-in."
    yield "Add your volumes for code, data, logs and checkpoints."


def _notes(spec: jobs.JobSpec) -> Iterator[str]:
    if spec.super_pod is not None and spec.pods > 1:
        yield (
            f"sp-block is {spec.super_pod}: the whole job is in one super pod; if yours are smaller, use a "
            f"smaller multiple of {spec.devices} that divides {spec.super_pod}"
        )
