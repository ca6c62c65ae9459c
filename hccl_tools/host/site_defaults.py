"""The defaults of a site: variables, and a file in which an administrator sets them for all users of a host.

The file has the lines ``NAME=VALUE`` of a file for systemd. Each command reads it and treats its values as
variables of the environment, which take precedence over it; options take precedence over both.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation.assignments import read_environment_file
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

SSH = "HCCL_TOOLS_SSH"
VIA = "HCCL_TOOLS_VIA"
LOG_DIR = "HCCL_TOOLS_LOG_DIR"
START_PORT = "HCCL_TOOLS_START_PORT"
#: The variables, and the option whose default each one is.
DEFAULTS = {
    "HCCL_TOOLS_PRODUCT": "--product",
    SSH: "--ssh",
    VIA: "--via",
    LOG_DIR: "--log-dir",
    START_PORT: "--start-port",
}
_PATH = "/etc/hccl-tools.env"

#: The values that the file has given to this process.
_from_file: dict[str, str] = {}

#: The folder that contains ``/dev``, ``/etc``, ``/sys`` and ``/usr`` of the host in place of ``/``: in a
#: container, where the host's file tree is mounted.
ROOT_VARIABLE = "HCCL_TOOLS_ROOT"
#: Variables in which platforms give a container its host's address (ModelArts; Kubernetes manifests).
HOST_VARIABLES = ("MA_CURRENT_HOST_IP", "HOST_IP")
#: The variables above, and the variable with the pod's own address.
ADDRESS_VARIABLES = (*HOST_VARIABLES, "POD_IP")
#: Seconds that a tool may take for one answer.
TOOL_TIMEOUT = 20.0


def path(environ: Mapping[str, str]) -> str:
    """Return the path of the file; a host's tree may be mounted elsewhere."""
    return environ.get(ROOT_VARIABLE, "").rstrip("/") + _PATH


def load(environ: MutableMapping[str, str]) -> list[str]:
    """Add the values of the file to the variables, unless they are set; return what is wrong in the file.

    A wrong file or line is not used: it must not stop the commands of all users of the host.
    """
    file = path(environ)
    try:
        about = os.stat(file)
    except OSError:
        return []
    if why := _untrusted(about):
        return [f"{file} is not used: {why}"]
    values, problems = _read(file)
    for name, value in values.items():
        if value and not environ.get(name):
            _from_file[name] = environ[name] = value
    return problems


def unload(environ: MutableMapping[str, str]) -> None:
    """Remove the values that the file has given."""
    for name, value in _from_file.items():
        if environ.get(name) == value:
            del environ[name]
    _from_file.clear()


def is_from_file(name: str, environ: Mapping[str, str]) -> bool:
    """Return whether the file has given the value of a variable."""
    return name in _from_file and environ.get(name) == _from_file[name]


def origin(name: str, environ: Mapping[str, str]) -> str:
    """Return the variable with a value, and the file if it is from there, as a phrase."""
    return f"{name} in {path(environ)}" if is_from_file(name, environ) else name


def _untrusted(about: os.stat_result) -> str:
    """Return why a file is not the administrator's; --via and --ssh are commands that will run."""
    if not stat.S_ISREG(about.st_mode):
        return "it is not a regular file"
    if about.st_uid not in {0, os.geteuid()}:
        return f"it belongs to user {about.st_uid}, not to root"
    return "others can write to it: chmod go-w" if about.st_mode & 0o022 else ""


def _read(file: str) -> tuple[dict[str, str], list[str]]:
    try:
        found = read_environment_file(file)
    except UsageError as error:
        return {}, [f"{file} is not used: {error.message.removeprefix(f'--env-file {file}: ')}"]
    unknown = [name for name in found if name not in DEFAULTS]
    known = ", ".join(DEFAULTS)
    problems = [f"{file}: {name} is not a default of a site: {known}" for name in unknown]
    return {name: value for name, value in found.items() if name in DEFAULTS}, problems


class Site(NamedTuple):
    """The host to examine.

    ``hccn_tool``, ``hccn_conf`` and ``rootinfo`` override the default paths; ``tool_timeout`` is in seconds.
    ``stop`` is a descriptor: when it is readable, a tool that runs is ended, and no other is called.
    """

    environ: Mapping[str, str] = os.environ
    hccn_tool: str | None = None
    hccn_conf: str | None = None
    tool_timeout: float = TOOL_TIMEOUT
    rootinfo: str | None = None
    stop: int = -1

    def path(self, absolute: str) -> str:
        """Return the path of a file of the host; ``absolute`` is its default path."""
        root = self.environ.get(ROOT_VARIABLE, "")
        return root.rstrip("/") + absolute if root else absolute
