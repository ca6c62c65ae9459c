"""The findings as JSON; ``schemas/doctor.schema.json`` describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.doctor.findings import Examination, HostFinding
    from hccl_tools.host.observation import BandwidthObservation, Observation

SCHEMA_VERSION = 1


def as_json(result: Examination, seen: Mapping[str, Observation]) -> dict[str, Any]:
    """Return the result, ready for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "table": result.table,
        "hosts": [_host(host, one) for host, one in seen.items()],
        "findings": [_finding(one) for one in result.findings],
    }


def _host(host: str, seen: Observation) -> dict[str, Any]:
    return {
        "host": host,
        "product": seen.product,
        "devices": list(seen.nodes),
        "versions": dict(seen.versions),
        **({"bandwidth": [_bandwidth(one) for one in seen.bandwidths]} if seen.bandwidths else {}),
    }


def _bandwidth(one: BandwidthObservation) -> dict[str, Any]:
    return {
        "device": one.device,
        "peer_host": one.host,
        "peer_device": one.peer,
        "link": one.link,
        "gigabytes_per_second": one.gigabytes,
        "check_result": one.verdict,
    }


def _finding(one: HostFinding) -> dict[str, Any]:
    return {
        "check": one.check,
        "name": one.name,
        "consequence": one.consequence,
        "message": one.message,
        "hosts": list(one.hosts),
        "devices": list(one.devices),
        "place": str(one.place) if one.place else None,
        "remedy": one.remedy or None,
        "source": one.source,
        "not_examined": one.is_unknown,
    }
