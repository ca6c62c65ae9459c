"""``--via``: the user's command that runs a program on a host, in place of ssh."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation import host_list
from hccl_tools.notation.printable import escaped
from hccl_tools.programs.lookup import on_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Stands for the name of the host.
_PLACE = "{host}"
_EXAMPLE = "--via 'kubectl exec -i {host} --'"


def parse(text: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words of a command with ``{host}``.

    Raises:
        UsageError: The command has no ``{host}`` or an open quote, or its program does not exist.

    >>> parse("ls -d {host}", {"PATH": "/bin:/usr/bin"})
    ('ls', '-d', '{host}')
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        raise UsageError(
            f'--via "{text}": a quote or backslash has no end',
            hint=f"quote the whole command once: {_EXAMPLE}",
        ) from None
    if not any(_PLACE in word for word in words):
        raise UsageError(
            f'--via "{text}" has no {_PLACE}',
            hint=f"write {_PLACE} where the command needs the host: {_EXAMPLE}",
        )
    if on_path(words[0], environ) is None:
        raise UsageError(
            f'--via "{text}": no program {words[0]} on PATH', hint="install it, or specify its path"
        )
    return words


def command(words: Sequence[str], host: str) -> list[str]:
    """Return the command line for one host; a program and its arguments can be appended.

    Raises:
        UsageError: The name is not that of a host: the command could take it for an option.

    >>> command(("kubectl", "exec", "-i", "{host}", "--"), "worker-0")
    ['kubectl', 'exec', '-i', 'worker-0', '--']
    """
    if why := host_list.why_not_a_host(host, ipv6=True):
        raise UsageError(f"--via is not used for {escaped(host)!r}: it {why}")
    return [word.replace(_PLACE, host) for word in words]
