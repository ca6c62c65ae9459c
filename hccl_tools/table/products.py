"""The table of Ascend products: one row contains everything that depends on the product.

Discovery, rules, simulated machines, help, error messages and docs/en/reference/products.md read this table.
A new product is a new row here, and no other module depends on the name of a product.

Sources: the rank table guides of HCCL (rank_table_config_{910,a2,a3,300i_duo,a5}.md, constraints.md) and
what HCCL's parser enforces (hcomm device_capacity.cc:238, topoinfo_parse.cc:32,
hccl_communicator_attrs_host.cc:621). Names of chips: HCCL's own map from SoC names (hcomm, SOC_VER_CONVERT);
names of machines: the product lists of HCCL's and MindCluster's documentation.
"""

from __future__ import annotations

from typing import Literal

from hccl_tools.records import NamedTuple

#: Which of HCCL's two loaders reads the table: the loader of 910 to A3 and 310P, or of Ascend 950.
Loader = Literal["legacy", "a5"]
#: The device types that HCCL's reader of environment variables distinguishes (hcomm, DevType).
DeviceType = Literal["910", "310P", "910B", "910_93", "950"]


class SimulatedMachine(NamedTuple):
    """A simulated machine; ``first_address`` ends device 0's address if the product has no groups.

    It differs between products: a table of simulated machines names its product by the addresses.
    """

    devices: int
    first_address: int = 8


class NodeLabels(NamedTuple):
    """How MindCluster names the devices and nodes of a product in Kubernetes, and how many it gives a pod.

    Source: Ascend/mind-cluster, docs/en/scheduling: api/k8s.md, the labels of nodes in
    01_preparing_for_installation.md, the counts in 03_ascend_ai_processor_based_affinity.md; and what its
    scheduler plug-in enforces (ascend910a3/superpod/frame.go, module910a3x16/frame.go, module910bx16).

    Attributes:
        resource: The resource that a container requests, and the annotation with its devices.
        product: The label ``ring-controller.atlas``.
        server: The label ``accelerator-type`` of the node.
        devices: The number of devices of the node.
        machines: The machines for which the label is documented, as in ``Product.machines``.
        counts: The numbers of devices that a pod may request, or None for any up to ``devices``.
        cluster_counts: The same for a job with several pods; None for ``counts``.
        retries: Whether its label ``fault-retry-times`` is documented for these nodes (docs/zh/scheduling,
            06_api/15_yaml_configuration.md: only Atlas 800T A2 and Atlas 900 A2 PoD).
    """

    resource: str
    product: str
    server: str
    devices: int
    machines: tuple[str, ...] = ()
    counts: tuple[int, ...] | None = None
    cluster_counts: tuple[int, ...] | None = None
    retries: bool = False


class Product(NamedTuple):
    """One kind of machine that HCCL distinguishes.

    Attributes:
        name: The value of ``--product``.
        title: The product's own name, for messages.
        device_limit: Device ids are 0 to ``device_limit - 1``.
        chips: Names of its chips, without "Ascend"; ``*`` at the end matches any ending.
        machines: Beginnings of the names of its machines, without "Atlas".
        soc_names: SoC names of this product that are spelled like a chip of another product.
        npu_smi_names: Chip names of ``npu-smi info -m`` that mean this product in a row with a physical id.
        pci_ids: PCI device ids of its cards (vendor 19e5, Huawei), in lower case.
        simulated: The machine of ``--simulate``, if supported.
        default_format: The table format that ``gen`` writes.
        formats: The formats that HCCL accepts on this product.
        assumed_for: The formats whose tables are checked for this product if the user specifies none. Each
            format is in one row.
        loader: Which of HCCL's loaders reads the table.
        device_type: The device type in HCCL's code.
        group_size: Devices per group connected by HCCS, if the guide forbids sets across groups.
        counts_per_server: The device counts that the guide allows on one machine, or None for any.
        hccs_size: Devices of a machine joined by HCCS: ids ``n * hccs_size`` to ``(n + 1) * hccs_size - 1``;
            None if no devices are.
        cluster_count: Devices per machine that the guide requires across machines, or None for any.
        even_servers: Whether HCCL refuses servers with different numbers of devices.
        checks_hccs_count: Whether HCCL refuses a count over 2 that is not a power of two (``devNum``).
        four_device_sets: The only sets of exactly four devices that HCCL accepts, or None for any.
        needs_device_ip: When a device of a table with several servers must have an address: ``always``,
            ``without-host-ip`` (the parser accepts an empty address), or ``never``.
        super_pods: Whether ``super_pod_list`` is read.
        dies_per_npu: Devices that are dies of one NPU, joined by SIO.
        single_server: Whether the guide allows one machine only.
        server_size: Devices of a whole server, or None if sizes vary.
        lab_device_limit: The limit of device ids in the old "lab" form of a group_list, or None for
            the general limit.
        nodes: Its nodes in Kubernetes, if ``launch --emit vcjob|acjob`` supports it; the first is the usual.
    """

    name: str
    title: str
    device_limit: int
    chips: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    soc_names: tuple[str, ...] = ()
    npu_smi_names: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()
    simulated: SimulatedMachine | None = None
    default_format: str = "1.0"
    formats: tuple[str, ...] = ("1.0", "1.2", "group_list")
    assumed_for: tuple[str, ...] = ()
    loader: Loader = "legacy"
    device_type: DeviceType = "910"
    group_size: int | None = None
    counts_per_server: tuple[int, ...] | None = None
    hccs_size: int | None = None
    cluster_count: int | None = None
    even_servers: bool = False
    checks_hccs_count: bool = False
    four_device_sets: frozenset[tuple[int, ...]] | None = None
    needs_device_ip: Literal["always", "without-host-ip", "never"] = "without-host-ip"
    super_pods: bool = False
    dies_per_npu: int = 1
    single_server: bool = False
    server_size: int | None = None
    lab_device_limit: int | None = None
    nodes: tuple[NodeLabels, ...] = ()


#: topoinfo_parse.cc:32: one whole group, or two opposite pairs in both groups.
_FOUR_OF_910A = frozenset(
    {
        (0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (0, 2, 4, 6),
        (0, 3, 4, 7), (1, 2, 5, 6), (1, 3, 5, 7), (2, 3, 6, 7),
    }
)  # fmt: skip

#: The resource of all products before Ascend 950, and the label of all since the A2.
_RESOURCE, _LABEL_SINCE_A2 = "huawei.com/Ascend910", "ascend-910b"
#: Two devices of an A3 are dies of one NPU, which is given as a whole, except to a job with one device.
_PAIRS = (2, 4, 6, 8, 10, 12, 14, 16)

#: The products by name.
PRODUCTS = {
    product.name: product
    for product in (
        Product(
            "910a", "Atlas training series (Ascend 910A)", 8,
            chips=("910A", "910ProA", "910ProB", "910PremiumA"),
            machines=("800 9000", "800 9010", "900 PoD", "900T PoD", "300T 9000", "300T Pro"),
            # A first-generation chip with fewer cores; the chips of an A2 are Ascend910B1 to Ascend910B4.
            soc_names=("Ascend910B",),
            pci_ids=("d801",), simulated=SimulatedMachine(8), assumed_for=("1.0", "group_list"),
            group_size=4, hccs_size=4, counts_per_server=(1, 2, 4, 8), cluster_count=8, even_servers=True,
            checks_hccs_count=True, four_device_sets=_FOUR_OF_910A, server_size=8, lab_device_limit=8,
            nodes=(NodeLabels(_RESOURCE, "ascend-910", "module", 8, ("800 9000", "800 9010")),),
        ),
        Product(
            "a2", "Atlas A2 (Ascend 910B)", 16,
            chips=("910B", "910B1", "910B2", "910B2C", "910B3", "910B4", "910B4-1"),
            machines=("800T A2", "800I A2", "900 A2", "200T A2 Box16", "200I A2 Box16", "300T A2"),
            pci_ids=("d802",), simulated=SimulatedMachine(8), hccs_size=8, needs_device_ip="always",
            server_size=8, device_type="910B",
            nodes=(
                NodeLabels(
                    _RESOURCE, _LABEL_SINCE_A2, "module-910b-8", 8, ("800T A2", "800I A2", "900 A2"),
                    retries=True,
                ),
                NodeLabels(
                    _RESOURCE, _LABEL_SINCE_A2, "module-910b-16", 16, ("200T A2 Box16", "200I A2 Box16"),
                    counts=(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16),
                ),
            ),
        ),
        Product(
            "a3", "Atlas A3 super pod (Ascend 910_93)", 16,
            chips=("910C*", "910_93*"),
            machines=("800 A3", "800T A3", "800I A3", "900 A3", "A200T A3 Box8"),
            npu_smi_names=("Ascend910",), pci_ids=("d803",), simulated=SimulatedMachine(16, first_address=6),
            default_format="1.2", assumed_for=("1.2",), needs_device_ip="never", super_pods=True,
            hccs_size=16, dies_per_npu=2, server_size=16, device_type="910_93",
            nodes=(
                NodeLabels(
                    _RESOURCE, _LABEL_SINCE_A2, "module-a3-16-super-pod", 16, ("900 A3",),
                    counts=(1, *_PAIRS), cluster_counts=(16,),
                ),
            ),
        ),
        Product(
            "a3-server", "Atlas A3 outside super-pod mode (Ascend 910_93)", 16,
            needs_device_ip="never", hccs_size=16, dies_per_npu=2, server_size=16, device_type="910_93",
            nodes=(
                NodeLabels(
                    _RESOURCE, _LABEL_SINCE_A2, "module-a3-16", 16, ("800T A3", "800I A3", "A200T A3 Box8"),
                    counts=(1, *_PAIRS), cluster_counts=_PAIRS,
                ),
            ),
        ),
        Product(
            "300i", "Atlas 300I Duo (Ascend 310P3)", 32,
            chips=("310P*",), machines=("300I Duo",),
            pci_ids=("d500",), hccs_size=2, simulated=SimulatedMachine(4, first_address=40),
            even_servers=True, single_server=True, device_type="310P",
        ),
        Product(
            "a5", "Ascend 950", 65,
            chips=("950*", "910_95*"),
            pci_ids=("d806",), simulated=SimulatedMachine(8),
            default_format="2.0", formats=("2.0",), assumed_for=("2.0",), loader="a5",
            device_type="950",
        ),
    )
}  # fmt: skip

#: The numbers of devices of whole machines, ascending.
WHOLE_MACHINES = tuple(sorted({one.server_size for one in PRODUCTS.values() if one.server_size is not None}))

#: The variable for the product if ``--product`` is not set.
PRODUCT_VARIABLE = "HCCL_TOOLS_PRODUCT"


def assumed_for(table_format: str) -> Product:
    """Return the product that a format is documented for."""
    return next(one for one in PRODUCTS.values() if table_format in one.assumed_for)


def default() -> Product:
    """Return the product to use if neither the user nor the host determines it."""
    return assumed_for("1.0")


def assume(table_format: str | None, largest_server: int = 0) -> tuple[Product, str]:
    """Return the product to assume for a table if the user specifies none, and the reason as a phrase.

    Usually, this is the product that the format is documented for. If a server has too many devices for that
    product, it is the only other product of the format whose whole servers have this number of devices.
    """
    if table_format is None:
        return default(), "assumed"
    usual = assumed_for(table_format)
    if largest_server > usual.device_limit:
        holding = [
            one
            for one in PRODUCTS.values()
            if one.default_format == table_format and one.device_limit >= largest_server
        ]
        whole = [one for one in holding if one.server_size == largest_server]
        if len(whole) == 1:
            others = " or ".join(with_article(one) for one in holding if one is not whole[0])
            return whole[0], (
                f"assumed: a server has {largest_server} devices, too many for {with_article(usual)}"
                + (f"; if it is {others}, specify it with --product" if others else "")
            )
    return usual, f"assumed for format {table_format}"


def by_pci_id(device: str) -> Product | None:
    """Return the product of a PCI device id such as ``d802``; None if unknown."""
    return next((one for one in PRODUCTS.values() if device in one.pci_ids), None)


def with_article(product: Product) -> str:
    """Return a product's name with its article: ``an a2``."""
    return f"{'an' if product.name.startswith('a') else 'a'} {product.name}"
