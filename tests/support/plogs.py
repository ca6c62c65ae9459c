"""Logs of a job as CANN writes them: a run log and a debug log per process, in a folder per host."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_START = datetime(2026, 3, 18, 10, 0, 0)  # noqa: DTZ001  (logs have no time zone)


@dataclass
class Plogs:
    """Writes the logs of a job of ``ranks`` ranks, ``per_host`` on each host, in the style of a CANN version."""

    folder: Path
    ranks: int
    per_host: int = 8
    cann: int = 9
    clocks: dict[int, float] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    #: Whether the lines of CANN 8 have the host of the root in place of the rank's own.
    names_root: bool = False

    def host(self, rank: int) -> str:
        """The address of a rank's host."""
        return f"10.0.0.{rank // self.per_host + 1}"

    def device(self, rank: int) -> int:
        return rank % self.per_host

    def address(self, rank: int) -> str:
        """The address of a rank's device, as in ``tests.support.tables``."""
        return f"192.168.{rank // self.per_host}.{100 + self.device(rank)}"

    def start(self, identifier: str = "world") -> Plogs:
        """Write the run log of every rank: who it is."""
        for rank in range(self.ranks):
            self.identity(rank, rank, self.ranks, identifier)
        return self

    def identity(self, rank: int, group_rank: int, size: int, identifier: str) -> None:
        """Write that a rank is in a communicator."""
        host, device, address = self.host(rank), self.device(rank), self.address(rank)
        if self.names_root:
            host = self.host(0)
            identifier = f"{host}%eth0_60000_0_17"
        if self.cann < 9:
            self.run(
                rank, 1.0,
                f"[HCCL_TRACE]SetupAgent rankNum[{size}], rank[{group_rank}], rootInfo identifier[{identifier}], "
                f"server[{host}%eth0], serverPort[60000]deviceType[2], logicDevId[{device}], "
                f"phydevId[{device}], deviceIp[{address}]",
            )  # fmt: skip
            return
        servers = -(-self.ranks // self.per_host)
        self.run(
            rank,
            1.0,
            f"[Communicator Key Info]identifier[{identifier}] rankSize[{size}] serverNum[{servers}]",
        )
        self.run(
            rank, 1.0,
            f"[LocalRank Key Info]userRank[{group_rank}] hostIp[{host}] devicePhyId[{device}] server[{host}] "
            f"deviceIp[{address}] superPodId[] useSuperPodMode[0] isStandardCard[0]",
        )  # fmt: skip

    def run(self, rank: int, at: float, text: str) -> None:
        """Write an INFO line into a rank's run log, ``at`` seconds after the start."""
        self._write("run", rank, at, "INFO", text)

    def error(self, rank: int, at: float, text: str) -> None:
        """Write an ERROR line into a rank's debug log."""
        self._write("debug", rank, at, "ERROR", text)

    def screen(self, rank: int, text: str) -> None:
        """Write a line into the log of a rank's program."""
        path = self.folder / f"rank_{rank}.log"
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def no_link(self, rank: int, peer: int, at: float, timeout: int = 120) -> None:
        """A rank gave up waiting for the connection to another one."""
        unit = " s" if self.cann >= 9 else ""
        stage = "[InitChannelStage][Timeout]" if self.cann >= 9 else "[Create][DestLink]"
        self.error(
            rank,
            at,
            f"[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[{rank}] timeout[{timeout}{unit}]",
        )
        self.error(
            rank, at,
            f"{stage}Transport init error! createLink para:rank[{rank}]-localUserrank[{rank}]-localIpAddr"
            f"[{self.host(rank)}/{self.device(rank)}], remoteRank[{peer}]-remoteUserrank[{peer}]-remoteIpAddr"
            f"[{self.host(peer)}/{self.device(peer)}], machineType[1], linkMode[1], tag[AllReduce_world]",
        )  # fmt: skip
        self.screen(
            rank, "EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time."
        )

    def notify(self, rank: int, peer: int | None, at: float) -> None:
        """A rank gave up waiting in an operation."""
        whom = "" if peer is None else f", notify id:[0x12], stage:[1], remote rank:[{peer}]"
        self.error(rank, at, f"[TaskExecStage][Timeout]Task para information is Notify Wait{whom}")
        self.error(
            rank,
            at,
            "[TaskExecStage][Timeout]Task run failed, base information is streamID:[5], taskType[Notify Wait], tag[AllReduce_world]",
        )

    def _write(self, kind: str, rank: int, at: float, level: str, text: str) -> None:
        when = _START + timedelta(seconds=at + self.clocks.get(rank // self.per_host, 0.0))
        stamp = when.strftime("%Y-%m-%d-%H:%M:%S.%f")
        pid = 4000 + self.device(rank)  # the same on every host: pids are unique on one host only
        path = self.folder / self.host(rank) / kind / "plog" / f"plog-{pid}_20260318100000000.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"[{level}] HCCL({pid},python3):{stamp[:-3]}.{stamp[-3:]} [hccl.cc:1] [{pid}]{text}\n")
