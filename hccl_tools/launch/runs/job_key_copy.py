"""Copy the job key to another host over ssh.

The other host needs a POSIX shell, but neither Python nor hccl-tools. The key is sent over the standard input
of the shell: all users of a host can see its command lines.
"""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING, Literal

from hccl_tools.discover.local_addresses import is_this_host
from hccl_tools.launch.runs import job_key
from hccl_tools.programs import ssh
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What was found or done. ``here``: the host is this host. ``failed``: no answer, or an error.
State = Literal["here", "copied", "same", "different", "failed"]
#: The beginning of the line with the answer; startup files of a shell may print other lines.
_MARK = "hccl-tools-job-key"
#: The program of the shell on the other host. It has no single quotes, backslashes or exclamation marks, and
#: is sent as one line: the login shell that parses the quoted text may be csh or fish. A link never replaces
#: a file that another process has just made, and that file is compared before it is reported. Hosts may share
#: the directory: the temporary name has the host.
_SCRIPT = """\
set -eu; umask 077; LC_ALL=C; export LC_ALL;
case "${XDG_CONFIG_HOME:-}" in /*) d=$XDG_CONFIG_HOME ;; *) d=$HOME/.config ;; esac;
d=$d/hccl-tools; f=$d/job-key; t=$d/.job-key.$(uname -n).$$.tmp;
clean() { rm -f "$t"; };
text() { tr -d "[:space:]" | tr A-F a-f; };
same() { test -f "$f" && test -O "$f" && test "$(text < "$f")" = "$(text < "$t")"; };
exists() { test -e "$f" || test -L "$f"; };
report() { echo "MARK $1 $f"; exit 0; };
compare() { if exists; then if same; then report same; fi; report different; fi; };
mkdir -p "$d"; chmod 700 "$d";
trap clean EXIT; trap "exit 1" HUP INT TERM;
clean; set -C; cat > "$t";
if test $(wc -c < "$t") -ne $2; then echo "the key was not received completely" >&2; exit 1; fi;
if same; then chmod 600 "$f"; report same; fi;
if test -d "$f"; then echo "$f is a directory" >&2; exit 1; fi;
if test "$1" = force; then mv -f "$t" "$f"; report copied; fi;
compare;
if ln "$t" "$f"; then report copied; fi;
compare;
exit 1
""".replace("MARK", _MARK)
#: Seconds for a host to accept a connection, and for the whole copy.
_CONNECT_SECONDS, _SECONDS = 10, 60


class Copied(NamedTuple):
    """The result on one host; ``path`` is the file there, ``problem`` and ``hint`` explain a failure."""

    host: str
    state: State
    path: str = ""
    problem: str = ""
    hint: str | None = None


def ssh_command(typed: str | None, environ: Mapping[str, str]) -> list[str]:
    """Return the ssh for :func:`copy`; ``typed`` is the value of ``--ssh``.

    Raises:
        UsageError: The program does not exist.
    """
    return ssh.command(typed, environ, wait=_CONNECT_SECONDS)


def copy(
    host: str, key: bytes, *, over_ssh: Sequence[str], force: bool, environ: Mapping[str, str]
) -> Copied:
    """Write the key to the default file of a host, in at most 60 s, and return what happened.

    This host is left out. A different key is replaced with ``force`` only.
    """
    if is_this_host(host):
        return Copied(host, "here")
    data = key.hex().encode() + b"\n"
    try:
        done = subprocess.run(
            [*over_ssh, "--", host, _remote_command(len(data), force=force)],
            input=data, capture_output=True, timeout=_SECONDS, check=False,
            env={name: value for name, value in environ.items() if name not in job_key.VARIABLES},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Copied(host, "failed", problem=f"no answer within {_SECONDS} s",
                      hint="check its load and its file systems")  # fmt: skip
    return _result(
        host, done.returncode, *(text.decode(errors="replace") for text in (done.stdout, done.stderr))
    )


def _remote_command(size: int, *, force: bool) -> str:
    script = " ".join(_SCRIPT.splitlines())
    return f"exec sh -c {shlex.quote(script)} sh {'force' if force else 'keep'} {size}"


def _result(host: str, status: int, output: str, errors: str) -> Copied:
    for line in output.splitlines():
        mark, _, answer = line.partition(" ")
        state, _, path = answer.partition(" ")
        if mark != _MARK or status != 0:
            continue
        if state == "copied":
            return Copied(host, "copied", path)
        if state == "same":
            return Copied(host, "same", path)
        return Copied(host, "different", path, f"has a different job key in {path}", "--force replaces it")
    last = ssh.last_line(errors)
    if status == ssh.FAILED:
        return Copied(host, "failed", "", last or "ssh failed without a message", ssh.hint(host, errors))
    hint = "check the home directory there" if last else f"check that `ssh {host} sh` starts a shell"
    return Copied(host, "failed", "", last or f"its shell exited with exit code {status}", hint)
