"""What travels between the hosts, as JSON: the task to a host, its answer back. Errors are data as well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import hccl_tools
from hccl_tools.discover.facts import DeviceFacts, HostFacts
from hccl_tools.discover.selection import Wanted
from hccl_tools.discover.site import Site
from hccl_tools.discover.survey import SurveyRequest
from hccl_tools.programs.install_hints import HCCL_TOOLS

if TYPE_CHECKING:
    from typing_extensions import Self

#: The form of what travels; another number is another hccl-tools.
FORM = 1


class SurveyTask(NamedTuple):
    """What one process has to do.

    Attributes:
        host: What the host list calls its host; empty where only that host knows (Slurm).
        place: The host's place in the list, from 0.
        request: What is asked of it.
        seconds: After this time nobody waits for it.
        over_mpi: Whether the answer goes to the first MPI process; else to standard output.
        collect: For the first MPI process: the file for all answers. It asks nothing of its own host.
        version: The hccl-tools that asks.
    """

    host: str = ""
    place: int = 0
    request: SurveyRequest = SurveyRequest()
    seconds: float = 60.0
    over_mpi: bool = True
    collect: str | None = None
    version: str = hccl_tools.__version__

    def to_json(self) -> str:
        """Return the task as one line."""
        request = self.request._asdict()
        request["wanted"] = self.request.wanted._asdict()
        # The environment is the host's own: its tools, its devices.
        request["site"] = {k: v for k, v in self.request.site._asdict().items() if k != "environ"}
        return json.dumps({"form": FORM, **self._asdict(), "request": request}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the task of a line that :meth:`to_json` of the same form has made."""
        told = json.loads(text)
        del told["form"]
        request = told.pop("request")
        wanted, site = Wanted(**request.pop("wanted")), Site(**request.pop("site"))
        return cls(**told, request=SurveyRequest(**request, wanted=wanted, site=site))


class SurveyAnswer(NamedTuple):
    """What one host said.

    Attributes:
        host: What the host list calls it, or its own name.
        facts: What it has, or None where it could not find out.
        message: Why not.
        hint: What to do about it.
        machine: What no two hosts share; empty for a simulated one.
        version: The hccl-tools that answers.
    """

    host: str
    facts: HostFacts | None = None
    message: str = ""
    hint: str | None = None
    machine: str = ""
    version: str = hccl_tools.__version__

    def to_json(self) -> str:
        """Return the answer as one line of ASCII."""
        told = {"form": FORM, **self._asdict()}
        if self.facts is not None:
            told["facts"] = self.facts._asdict()
            told["facts"]["devices"] = [device._asdict() for device in self.facts.devices]
        return json.dumps(told, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the answer of a line; one in another form is an answer that says so."""
        try:
            told = json.loads(text)
            if told.pop("form") != FORM:
                raise ValueError  # noqa: TRY301  (the one place that knows what to answer)
            if told["facts"] is not None:
                told["facts"] = _facts(told["facts"])
            return cls(**told)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls(
                "?", message="its answer cannot be read", hint="install the same hccl-tools everywhere"
            )


def _facts(told: dict[str, Any]) -> HostFacts:
    told["devices"] = [DeviceFacts(**_with_tuples(device)) for device in told["devices"]]
    return HostFacts(**_with_tuples(told))


def _with_tuples(told: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}


def versions_differ(there: str | None, here: str) -> tuple[str, str]:
    """Return message and hint for a host with another hccl-tools than that which asks."""
    has = f"has hccl-tools {there}" if there else "has another hccl-tools"
    return f"it {has}, this one is {here}", f"install the same version on all hosts: {HCCL_TOOLS}"
