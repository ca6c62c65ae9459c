"""The user's ssh: which program it is, that it asks no questions, and what to do about its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.programs.lookup import on_path

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What is added to the user's ssh: no questions, no password, no unknown host key taken unseen.
OPTIONS = (
    *("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
    *("-o", "NumberOfPasswordPrompts=0", "-o", "LogLevel=ERROR"),
)
#: Its exit status where it is ssh itself that has failed.
FAILED = 255
#: By which users tell Open MPI which ssh to take; in its setting "ssh : rsh" the first is meant.
_AGENTS = ("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent")
#: What ssh says -> what to do.
_HINTS = {
    "Permission denied": "let your key in there (`ssh-copy-id {host}`); no password is ever asked for",
    "Host key verification failed": "its key is not known here: `ssh {host}` once by hand, and compare it",
    "IDENTIFICATION HAS CHANGED": "its host key is another than the one known here: ask who changed it",
    "Could not resolve": "correct the name, or name its address",
    "No route to host": "is the address right, is the host up, its cable plugged in?",
    "timed out": "is the address right, is the host up, is a firewall between?",
    "Connection refused": "no sshd listens there: start it, or say where: --ssh 'ssh -p PORT'",
}


def command(typed: str | None, environ: Mapping[str, str], *, wait: int) -> list[str]:
    """Return the ssh to use and its options; a host and a command line go behind.

    Args:
        typed: What the user has named (``--ssh``); without it what Open MPI is set to use, else ``ssh``.
        environ: The caller's environment.
        wait: Seconds for a host to answer.

    Raises:
        UsageError: There is no such program.
    """
    agent = next(text for text in (typed, *map(environ.get, _AGENTS), "ssh") if text)
    words = agent.partition(" : ")[0].split()
    if on_path(words[0], environ) is None:
        raise UsageError(f'--ssh "{agent}": there is no program {words[0]}', hint="name ssh, or its path")
    return [*words, *OPTIONS, "-o", f"ConnectTimeout={wait}"]


def last_words(said: str) -> str:
    """Return the last line of what ssh, or what ran there, has said."""
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")


def hint(host: str, said: str) -> str | None:
    """Return what to do about what ssh has said."""
    found = next((text for words, text in _HINTS.items() if words in said), None)
    return found.format(host=host) if found else None
