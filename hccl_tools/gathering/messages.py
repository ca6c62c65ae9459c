"""The JSON messages between hosts: the task for a host, and its answer or error."""

from __future__ import annotations

import base64
import json
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import hccl_tools
from hccl_tools.codec import DecodeError, decode, decode_as, parse
from hccl_tools.gathering.table_copy import CopyRequest, FileState
from hccl_tools.host.facts import HostFacts  # noqa: TC001  (the codec reads annotations)
from hccl_tools.host.observation import Observation, ObservationRequest
from hccl_tools.host.survey import SurveyRequest
from hccl_tools.programs.lookup import HCCL_TOOLS
from hccl_tools.records import NamedTuple, plain, plain_tagged

if TYPE_CHECKING:
    from typing_extensions import Self

    from hccl_tools.records import OsText

#: The length of a request from which it is compressed, in characters.
_LONG = 1 << 14
_FACTS = "hccl_tools.host.facts"
#: What to do about a host with another version.
SAME_VERSION_HINT = f"install the same version on all hosts: {HCCL_TOOLS}"
_UNREADABLE_HINT = "install the same hccl-tools everywhere; no other program may write to its output"
#: The version of the messages.
FORM = 1


class SurveyTask(NamedTuple):
    """The task of one process.

    Attributes:
        request: What to find out: the facts for a table, what ``doctor`` asks, or what is at a path.
        host: The host's name in the host list; empty if only the host knows its name (Slurm).
        place: The host's index in the list, from 0.
        seconds: The time limit for the answer.
        over_mpi: Whether to send the answer to the first MPI process instead of standard output.
        collect: The file for all answers, for the first MPI process, which does not survey its host.
        version: The version of hccl-tools that sent the task.
    """

    host: str = ""
    place: int = 0
    request: SurveyRequest | ObservationRequest | CopyRequest = SurveyRequest()
    seconds: float = 60.0
    over_mpi: bool = True
    collect: str | None = None
    version: str = hccl_tools.__version__

    def to_json(self) -> str:
        """Return the task as one line."""
        fields = {"form": FORM, **plain(self._replace(request=CopyRequest("", ""))), "request": self._sent()}
        return json.dumps(fields, separators=(",", ":"))

    def _sent(self) -> dict[str, Any] | str:
        if isinstance(self.request, ObservationRequest):
            return _shortened(self.request)
        request: dict[str, Any] = plain_tagged(self.request)
        if isinstance(self.request, SurveyRequest):
            del request["site"]["environ"]  # each host uses its own: its tools, its devices
        return request

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a line written by :meth:`to_json` of the same version.

        Raises:
            DecodeError: The text is not a task.
        """
        fields = parse(text)
        if isinstance(fields, dict) and fields.pop("form", None) == FORM:
            return decode(cls, {**fields, "request": _restored(fields.get("request"))})
        raise DecodeError(f"it is not a task of form {FORM}")


class SurveyAnswer(NamedTuple):
    """The answer of one host.

    Attributes:
        host: The name in the host list, else the host's own name.
        facts: The facts about the host for a table, or None.
        seen: What was observed on the host for ``doctor``, or None.
        file: What is at a path, or None. After a failure, all three are None.
        message: The reason for the failure.
        hint: What the host advises: its own text.
        refusal_hint: What this host advises about an answer that it refuses; it is never sent.
        machine: An id that no two hosts share; empty for a simulated host.
        version: The version of hccl-tools that answers.
    """

    host: str
    facts: HostFacts | None = None
    seen: Observation | None = None
    file: FileState | None = None
    message: OsText = ""
    hint: OsText | None = None
    machine: str = ""
    version: str = hccl_tools.__version__
    refusal_hint: str | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the host could not answer what it was asked."""
        return self.facts is None and self.seen is None and self.file is None

    def to_json(self) -> str:
        """Return the answer as one line of ASCII."""
        fields = {"form": FORM, **self._asdict()}
        del fields["refusal_hint"]
        if self.seen is not None:
            fields["seen"] = self.seen.as_json()
        if self.file is not None:
            fields["file"] = self.file._asdict()
        if self.facts is not None:
            fields["facts"] = self.facts._asdict()
            fields["facts"]["devices"] = [device._asdict() for device in self.facts.devices]
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, host: str = "?") -> Self:
        """Parse an answer of ``host``: a name in it is ignored, and an unreadable line is an error."""
        try:
            fields = parse(text)
            if not isinstance(fields, dict) or fields.pop("form", None) != FORM:
                raise DecodeError(f"it is not of form {FORM}")  # noqa: TRY301  (handled below)
            own: dict[str, Any] = {"host": "", "refusal_hint": None}
            answer: Self = decode(cls, {**_with_texts(fields), **own})._replace(host=host)
            if answer.facts is not None:
                answer = answer._replace(facts=_with_levels(answer.facts, fields["facts"]))
        except DecodeError as error:
            return cls(
                host,
                message=f"the answer of {host} cannot be read: {error.message}",
                refusal_hint=_UNREADABLE_HINT,
            )
        return answer


def _with_texts(fields: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the levels of its devices, which are decoded apart."""
    facts = fields.get("facts")
    devices = facts.get("devices") if isinstance(facts, dict) else None
    if not isinstance(facts, dict) or not isinstance(devices, list):
        return fields
    bare = [{**one, "levels": []} if isinstance(one, dict) else one for one in devices]
    return {**fields, "facts": {**facts, "devices": bare}}


def _with_levels(facts: HostFacts, sent: dict[str, Any]) -> HostFacts:
    """Return facts with the levels of their devices, which are JSON as in a 2.0 table."""
    devices = []
    for device, fields in zip(facts.devices, sent["devices"]):  # noqa: B905  (Python 3.8)
        found = decode_as("tuple[Level, ...]", _FACTS, fields.get("levels", []), strict=False)
        levels = tuple(_without_none(plain(level)) for level in found)
        devices.append(device._replace(levels=levels))
    return facts._replace(devices=tuple(devices))


def _without_none(level: dict[str, Any]) -> dict[str, Any]:
    addresses = [
        {key: value for key, value in address.items() if value is not None}
        for address in level["rank_addr_list"]
    ]
    return {
        **{key: value for key, value in level.items() if value is not None},
        "rank_addr_list": addresses,
    }


@lru_cache(maxsize=1)
def _shortened(request: ObservationRequest) -> dict[str, Any] | str:
    """Return a long request as text that is a fraction as long: Linux limits an argument to 128 KiB.

    All hosts get the same request, which is compressed once.
    """
    fields: dict[str, Any] = plain_tagged(request)
    text = json.dumps(fields, separators=(",", ":"))
    return fields if len(text) < _LONG else base64.b85encode(zlib.compress(text.encode())).decode()


def _restored(request: Any) -> Any:
    return parse(zlib.decompress(base64.b85decode(request))) if isinstance(request, str) else request


def versions_differ(there: str | None, here: str) -> tuple[str, str]:
    """Return message and hint for a host with another version of hccl-tools."""
    has = f"has hccl-tools {there}" if there else "has another version of hccl-tools"
    return f"it {has}, this host has {here}", SAME_VERSION_HINT
