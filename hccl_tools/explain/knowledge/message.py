"""The record of one message: how it looks in a log, what it means, and what to do."""

from __future__ import annotations

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    #: What a message says about the cause of a failed job:
    #:
    #: * ``verdict``: HCCL names the device that others lost or wait for, not why
    #: * ``cause``: the message names a fault that needs no further cause
    #: * ``error``: a failure that an earlier failure of a peer may have caused
    #: * ``timeout``: a rank waited for others
    #: * ``code``: a number or a general failure without a reason
    #: * ``end``: a user or another program ended the process; never a cause
    #: * ``fact``: no failure; the line says which rank, device or setting it is about
    Kind = Literal["verdict", "cause", "error", "timeout", "code", "end", "fact"]

    #: The time limit that a wait exceeded: of HCCL's connections or operations, of torch's store or watchdog,
    #: of MindSpore's cluster.
    Limit = Literal["", "connect", "operation", "store", "watchdog", "cluster"]


#: The messages of the other ranks after a process has ended or hangs: they wait for it, or lose it.
AFTER_AN_END = (
    *("HCM002", "HCM006", "HCM009", "HCM013", "HCM015", "HCM221", "HCM222"),
    *("HCM240", "HCM301", "HCM306", "HCM343"),
)


#: Messages of several programs about one fault: the kernel, Kubernetes, Slurm and the program itself report it.
_ONE_FAULT = (
    ("HCM710", "HCM752", "HCM757", "HCM801", "HCM802", "HCM822", "HCM971", "HCM988"),
    ("HCM750", "HCM751", "HCM974"),
    ("HCM005", "HCM219"),
    ("HCM712", "HCM758", "HCM991"),
    ("HCM711", "HCM925"),
    ("HCM716", "HCM919"),
    ("HCM753", "HCM986"),
    ("HCM985", "HCM989"),
    ("HCM517", "HCM958"),
    ("HCM205", "HCM206", "HCM208", "HCM209", "HCM603", "HCM604", "HCM656", "HCM890"),
    ("HCM213", "HCM214", "HCM605"),
    ("HCM805", "HCM870"),
    ("HCM804", "HCM852"),
    ("HCM840", "HCM841", "HCM842"),
    ("HCM847", "HCM848", "HCM866", "HCM868"),
    ("HCM814", "HCM815", "HCM818", "HCM819"),
    ("HCM882", "HCM883", "HCM884", "HCM885"),
    ("HCM873", "HCM874", "HCM875"),
    ("HCM853", "HCM854"),
    ("HCM930", "HCM931", "HCM932"),
    ("HCM008", "HCM249", "HCM250"),
    ("HCM657", "HCM659"),
    ("HCM743", "HCM744", "HCM745", "HCM746"),
    ("HCM747", "HCM748"),
    ("HCM013", "HCM304", "HCM305", "HCM938", "HCM939", "HCM967"),
)
_FAULTS = {message: number for number, several in enumerate(_ONE_FAULT) for message in several}


def fault_of(message: str) -> str | int:
    """Return what is equal for messages, by their ids, that can be about one fault in the words of two programs."""
    return _FAULTS.get(message, message)


class Code(NamedTuple):
    """A code that a message has in some versions of CANN: ``cann`` is empty if it is the same in all."""

    code: str
    cann: str = ""


class Message(NamedTuple):
    """One message.

    Attributes:
        id: ``HCM`` and three digits.
        name: The name in lists; HCCL's own if it has one.
        kind: See ``Kind``.
        meaning: What has happened, as a clause that can follow "rank 3: ".
        remedy: What to do, as a clause, with commands in backticks.
        anchor: Text that is in every line with this message; empty if only its code identifies it.
        pattern: The regular expression of the line, without nested repetitions; the named groups are the
            fields of an event (see ``FIELDS``). Empty: the anchor alone.
        codes: The codes under which the user sees this fault.
        causes: What may be behind it, the most likely first.
        explains: The ids of messages that follow from this one.
        rules: The rules of ``validate`` that find the fault in a table.
        limit: Which time limit a wait exceeded; only waits with the same one can be compared.
        source: Where the message and its meaning are documented.
        example: A line that the pattern matches.
    """

    id: str
    name: str
    kind: Kind
    meaning: str
    remedy: str
    anchor: bytes = b""
    pattern: bytes = b""
    codes: tuple[Code, ...] = ()
    causes: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    limit: Limit = ""
    source: str = ""
    example: str = ""

    @property
    def sentence(self) -> str:
        """Meaning and remedy in one sentence, as in the hint for a failed rank."""
        return f"{self.meaning}: {self.remedy}"


#: The fields that patterns may name, with their meanings.
FIELDS = {
    "rank": "the rank that wrote the line",
    "size": "the number of ranks of its communicator",
    "address": "its device's address, or the local address of a connection",
    "server": "its host",
    "device": "its physical device id",
    "logical": "its logical device id",
    "port": "the port",
    "peer": "the rank at the other end",
    "peer_address": "the address of the other end",
    "peer_server": "the host of the other end",
    "peer_device": "the device id of the other end",
    "missing": "the ranks that are missing",
    "connected": "the ranks that are there",
    "timeout": "the time limit in seconds",
    "identifier": "the communicator",
    "tag": "the operation",
    "variable": "the name of a variable, key or setting",
    "value": "its value",
    "table": "the rank table in the line",
    "tls": "the TLS switch of the device",
    "on": "the devices on which it is on: hosts with their device ids",
    "off": "the devices on which it is off",
    "status": "the number with which an operation or a program ended",
    "configured": "the value in the rank table",
    "item": "what differs",
    "local": "the value of this rank",
    "remote": "the value of the other rank",
    "file": "a file",
    "reason": "the reason in the program's own words",
    "pid": "the process that was killed",
    "program": "the program that was killed",
    "signal": "the signal that ended the process",
    "ended": "the ranks that were ended",
    "pod": "a pod",
    "index": "the number of the operation in its communicator",
    "milliseconds": "the time limit in milliseconds",
    "count": "the number of elements of the operation",
    "completed": "the number of the last operation that has ended",
    "self": "the rank waits for a part of itself",
    "place": "the place in the program",
    "process_group": "the process group of torch",
    "moment": "when it happened, if that is not the time of the line",
    "finder": "the host of the device that found it",
}
#: Rows of the page of a message: what each kind is called.
KINDS = {
    "verdict": "HCCL names the device, not the reason",
    "cause": "names the cause",
    "error": "may follow from an earlier error of another rank",
    "timeout": "a rank waited for others: the cause is usually elsewhere",
    "code": "says that something failed, not what",
    "end": "a user or another program ended the process: never the cause",
    "fact": "information",
}
