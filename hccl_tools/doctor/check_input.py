"""The input of checks: one host as observed, and what the job needs of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.rules.job_variables import uses_roce
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.host.observation import Observation
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import DeviceType


class Case(NamedTuple):
    """One host and the job.

    Attributes:
        seen: What was observed on the host.
        table: The table of the job, if one was given.
        table_path: Its path.
        product: The product of the host or, if that is unknown, of the table.
        devices: The physical ids that the job uses on this host.
        target: The framework of the job (``--target``), if stated.
        start_port: The rendezvous port that was asked for.
        product_by_user: The product of ``--product``.
        table_problem: What ``validate`` says of the table; empty for a good one.
        table_remedy: What to do about it.
        cpu: Whether the job is a rehearsal without NPUs.
    """

    seen: Observation
    table: RankTable | None = None
    table_path: str = ""
    product: str | None = None
    devices: tuple[int, ...] = ()
    target: str | None = None
    start_port: int | None = None
    product_by_user: str | None = None
    table_problem: str = ""
    table_remedy: str = ""
    cpu: bool = False

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables of the host."""
        return self.seen.variables

    @property
    def device_type(self) -> DeviceType | None:
        """The device type of the product in HCCL's code, ``None`` if the product is not known."""
        return PRODUCTS[self.product].device_type if self.product is not None else None

    @property
    def ranks(self) -> int:
        """The number of ranks of the job, 0 without a table."""
        return 0 if self.table is None else len(self.table.rank_numbers)

    @property
    def has_several_servers(self) -> bool:
        """Whether the job runs on several servers, as far as the table states it."""
        return self.table is not None and len(self.table.servers) > 1

    @property
    def cann(self) -> str:
        """The version of CANN on the host, ``""`` if unknown."""
        return self.seen.versions.get("CANN", "")

    @property
    def needs_roce(self) -> bool | None:
        """Whether the devices communicate over their own network ports; ``None`` without a table.

        Devices of one server use HCCS or PCIe, devices of one A3 super pod use HCCS.
        """
        if self.table is None:
            return None
        if uses_roce(self.environ):
            return True
        if self.table.super_pods is not None:
            return len(self.table.super_pods) > 1
        return len(self.table.servers) > 1
