"""Find the place of devices in their super pod: super device ids and the pod's id, from ``npu-smi``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import npu_smi
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.host.npu_smi import SuperPodPlace
    from hccl_tools.host.site_defaults import Site

_HOW = "on a machine outside super-pod mode use --format 1.0"


class SuperPodFacts(NamedTuple):
    """The super pod of a host, and the SDIDs of its devices by physical id; zero is a valid id."""

    super_pod_id: str
    super_device_ids: Mapping[int, int]
    warnings: tuple[str, ...]


def find_super_pod(device_ids: Sequence[int], site: Site) -> SuperPodFacts:
    """Determine the place of each device by physical id.

    Raises:
        DiscoveryError: ``npu-smi`` is missing or does not list a device, two devices have the same SDID, or
            the devices of this host are in several super pods.
    """
    tool = npu_smi.find_npu_smi(site)
    if tool is None:
        raise DiscoveryError("no npu-smi found, the only source of super_device_ids", hint=_HOW)
    chips = {chip.physical_id: chip for chip in npu_smi.chips(tool, site)}
    places: dict[int, SuperPodPlace] = {}
    for device_id in device_ids:
        chip = chips.get(device_id)
        if chip is None:
            raise DiscoveryError(
                f"npu-smi info -m lists no chip with physical id {device_id}",
                hint="the ids are in npu-smi info -m, column Chip Phy-ID",
            )
        places[device_id] = npu_smi.super_pod_place(tool, chip.npu_id, chip.chip_id, site)
    _refuse_shared(places)
    pods = sorted({place.super_pod_id for place in places.values()})
    if len(pods) > 1:
        raise DiscoveryError(
            f"the devices of this host are in several super pods: {', '.join(map(str, pods))}", hint=_HOW
        )
    ids = {device_id: place.super_device_id for device_id, place in places.items()}
    return SuperPodFacts(str(pods[0]), ids, _odd_places(places))


def _refuse_shared(places: Mapping[int, SuperPodPlace]) -> None:
    owner: dict[int, int] = {}
    for device_id, place in places.items():
        other = owner.setdefault(place.super_device_id, device_id)
        if other != device_id:
            raise DiscoveryError(
                f"npu-smi shows super_device_id {place.super_device_id} for devices {other} and {device_id}",
                hint=f"see npu-smi info -t spod-info; {_HOW}",
            )


def _odd_places(places: Mapping[int, SuperPodPlace]) -> tuple[str, ...]:
    """Return a warning if an SDID does not begin with the server index, as after a hardware change."""
    odd = [
        (device_id, place)
        for device_id, place in places.items()
        if place.super_device_id >> 22 != place.server_index
    ]
    if not odd:
        return ()
    (device_id, place), total = odd[0], count(len(odd), "device")
    warning = (
        f"device {device_id}: super_device_id {place.super_device_id} belongs to server index "
        f"{place.super_device_id >> 22}, npu-smi shows {place.server_index} ({total} differ)"
    )
    return (warning,)
