"""Make the archive that is run on hosts without hccl-tools: one zip file of Python sources.

The archive has what ``hccl_tools.gathering.host_survey`` imports, and nothing outside the standard library.
Its modules run with Python 3.8 and later.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import zipfile
from importlib.resources import files
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple
from hccl_tools.remote.connection import READY
from hccl_tools.version import stamped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PACKAGE = "hccl_tools"
#: The modules in the archive, by folder of the package.
_PARTS = {
    "": "__init__ codec errors own_python records version",
    "document": "__init__ links writing",
    "gathering": "__init__ host_survey messages stdout_framing table_copy",
    "host": "__init__ connections contents dev_info device_addresses device_holders "
    "device_network eid facts hccl_variables hccn_conf hccn_tool health_command host "
    "host_ports host_state host_tools large_packets levels local_addresses machine naming "
    "npu_overview npu_smi observation observing open_descriptors pings port_users selection settings "
    "simulated simulated_addresses site_defaults super_pod survey table_copies visible",
    "notation": "__init__ assignments bounded_file device_range look_alikes number_list phrases "
    "screen whole_number",
    "processes": "__init__ foreign_descriptors mounts procfs",
    "programs": "__init__ environment lookup resolving",
    "table": "__init__ addresses format_names product_names products",
    "variables": "__init__ readings rows",
}
_MAIN = "import sys\nfrom hccl_tools.gathering.host_survey import main\nsys.exit(main(*sys.argv[1:]))\n"
#: The first program at the other end: it reads the next one. It must run with every Python 3.
_LOADER = f"""\
import sys
if sys.version_info < (3, 8):
    sys.exit("python3 there is %d.%d; 3.8 or later is required" % sys.version_info[:2])
import json, signal
signal.alarm(int(sys.argv[1]))
sys.stdout.write({READY.decode() + chr(10)!r})
sys.stdout.flush()
line = sys.stdin.buffer.readline()
if not line.endswith(b"\\n"):
    sys.exit("the connection ended")
job, program = json.loads(line.decode()), {{}}
exec(job["program"], program)
sys.exit(program["main"](job))
"""


class Archive(NamedTuple):
    """A zip file that Python runs, and the text of the program that starts it on a target."""

    data: bytes
    sha256: str
    starter: str

    def message(self, argv: Sequence[str], seconds: float) -> bytes:
        """Return what is sent to a target: a line of JSON with the task, and the archive.

        Args:
            argv: The arguments of the archive.
            seconds: The time after which the target ends the archive's process.
        """
        job = {
            "program": self.starter,
            "size": len(self.data),
            "sha256": self.sha256,
            "argv": list(argv),
            "seconds": seconds,
        }
        return json.dumps(job).encode() + b"\n" + self.data


def make(entries: Mapping[str, str] | None = None) -> Archive:
    """Make the archive from the installed package; the same sources give the same bytes.

    ``entries`` are further texts in it, by name.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names():
            text = _source(name)
            _add(archive, f"{_PACKAGE}/{name}", stamped(text) if name == "version.py" else text)
        _add(archive, "__main__.py", _MAIN)
        for name, text in (entries or {}).items():
            _add(archive, name, text)
    data = written.getvalue()
    return Archive(data, hashlib.sha256(data).hexdigest(), _source("remote/target.py"))


def names() -> Iterator[str]:
    """Yield the sources in the archive, relative to the package: ``table/products.py``."""
    for folder, modules in _PARTS.items():
        yield from (f"{folder}/{name}.py" if folder else f"{name}.py" for name in modules.split())


def _source(name: str) -> str:
    """Return a source of the package, which may itself be in a zip file."""
    source = files(_PACKAGE)
    for part in name.split("/"):
        source /= part
    return source.read_text(encoding="utf-8")


def start_line(python: str, seconds: float) -> bytes:
    """Return the line for the shell of a target that starts this Python; it prints ``READY``.

    ``seconds`` is the time limit for the arrival of the message.
    """
    return f"exec {shlex.join([python, '-I', '-S', '-c', _LOADER, str(round(seconds) + 1)])}\n".encode()


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, text)
