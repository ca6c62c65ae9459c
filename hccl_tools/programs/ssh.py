"""The user's ssh: the command line, without prompts, and hints for its error messages."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import named
from hccl_tools.programs.lookup import on_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Options added to the user's ssh: no prompts, no passwords, no unknown host keys.
OPTIONS = (
    *("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
    *("-o", "NumberOfPasswordPrompts=0", "-o", "LogLevel=ERROR"),
)
#: The exit status when ssh itself fails.
FAILED = 255
#: Characters shown of a line of ssh or of a remote command.
_LONGEST_SHOWN = 1000
#: The variable with the ssh command of a site.
_SITE = "HCCL_TOOLS_SSH"
#: Variables with the ssh command for Open MPI; "ssh : rsh" selects the first that exists.
_AGENTS = ("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent")
#: Part of a message of ssh -> what to do.
_HINTS = {
    "Permission denied": "install your key there (`ssh-copy-id {host}`); passwords are not supported",
    "Host key verification failed": "its host key is unknown: run `ssh {host}` once and verify the key",
    "IDENTIFICATION HAS CHANGED": "its host key has changed: ask the administrator why",
    "Could not resolve": "correct the name, or use its address",
    "No route to host": "check the address, the host and its cable",
    "timed out": "check the address, the host and the firewalls between",
    "Connection refused": "sshd does not listen there: start it, or specify its port: --ssh 'ssh -p PORT'",
}


def command(typed: str | None, environ: Mapping[str, str], *, wait: int) -> list[str]:
    """Return the ssh to use with its options; the caller appends a host and a command line.

    Args:
        typed: The value of ``--ssh``; None selects the ssh of the site, the ssh set for Open MPI, or ``ssh``.
        wait: The timeout of a connection, in seconds.

    Raises:
        UsageError: The program does not exist.
    """
    of_site = environ.get(_SITE)
    agent = next(text for text in (typed, of_site, *map(environ.get, _AGENTS), "ssh") if text)
    argv = agent.partition(" : ")[0].split()
    if on_path(argv[0], environ) is None:
        source = "--ssh" if typed not in {None, of_site} or not of_site else _SITE
        raise UsageError(f'{source} "{agent}": no program {argv[0]} on PATH', hint="specify ssh, or its path")
    return [*argv, *OPTIONS, "-o", f"ConnectTimeout={wait}"]


def on_host(over_ssh: Sequence[str], host: str, words: Sequence[str]) -> list[str]:
    """Return the command line that runs a program in place of the shell of a host.

    ``over_ssh`` is what :func:`command` returns.
    """
    return [*over_ssh, "--", host, "exec " + shlex.join(words)]


def last_line(printed: str) -> str:
    """Return the last line that is not blank of the output of ssh or of the remote command.

    Of a long line, which a host may send, only the end is returned.
    """
    last = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
    return last[-_LONGEST_SHOWN:]


def hint(host: str, printed: str) -> str | None:
    """Return what to do about an error message of ssh, or None."""
    found = next((text for part, text in _HINTS.items() if part in printed), None)
    return found.format(host=named(host, "HOST")) if found else None
