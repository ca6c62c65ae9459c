"""Copy the job key to another host over ssh.

The other host needs a POSIX shell, but neither Python nor hccl-tools. The key is sent over the standard input
of the shell: all users of a host can see its command lines.
"""

from __future__ import annotations

import base64
import shlex
import subprocess
from typing import TYPE_CHECKING, Literal

from hccl_tools.host.local_addresses import is_this_host
from hccl_tools.notation.phrases import named
from hccl_tools.programs import bounded_run, ssh
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
#: The length of a part of the key that is not shown, in letters and digits.
_FRAGMENT = 8
#: The most letters of the answer of a host that are shown.
_LONGEST_SHOWN = 1000
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
        done = bounded_run.run(
            [*over_ssh, "--", host, _remote_command(len(data), force=force)],
            _SECONDS, environ, data=data,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Copied(host, "failed", problem=f"no answer within {_SECONDS} s",
                      hint="check its load and its file systems")  # fmt: skip
    return _without_echo(_result(host, done.code, done.output, done.errors), key)


def _without_echo(result: Copied, key: bytes) -> Copied:
    """Leave out the words of the other host if the key, or a part of it, is in them.

    A login shell with ``set -v`` or a wrapper of ssh may print its input, also encoded. The messages of ssh
    and of the shell are needed to mend a failure, so they are shown otherwise. The key itself is not at risk
    from the host, which may have it, but from what a terminal or the log of a CI job keeps.
    """
    shown = f"{result.path}\n{result.problem}"
    if not _spellings(key).isdisjoint(_fragments(shown)):
        return Copied(
            result.host, "failed", "", "its answer is not shown, because it contains the job key",
            "check that its login shell does not print what it reads: "
            f"`ssh {named(result.host, 'HOST')} true`",
        )  # fmt: skip
    return result


def _spellings(key: bytes) -> frozenset[str]:
    """Return all parts of the usual spellings of a key: hexadecimal, base64, base32, decimal, octal."""
    found: set[str] = set()
    for data in (key, key.hex().encode(), key.hex().upper().encode()):
        texts = [data.hex(), data.hex()[::-1], base64.b32encode(data).decode(), data[::-1].hex()]
        texts += [base64.b64encode(data[start:]).decode() for start in range(3)]
        texts += ["".join(form.format(byte) for byte in data) for form in ("{}", "{:03d}", "{:o}", "{:03o}")]
        texts += [data.decode(errors="replace")]
        found |= {fragment for text in texts for fragment in _fragments(text)}
    return frozenset(found)


def _fragments(text: str) -> set[str]:
    letters = "".join(filter(str.isalnum, text)).lower()
    return {letters[at : at + _FRAGMENT] for at in range(len(letters) - _FRAGMENT + 1)}


def _remote_command(size: int, *, force: bool) -> str:
    script = " ".join(_SCRIPT.splitlines())
    return f"exec sh -c {shlex.quote(script)} sh {'force' if force else 'keep'} {size}"


def _result(host: str, status: int, output: str, errors: str) -> Copied:
    for line in output.splitlines():
        mark, _, answer = line.partition(" ")
        state, _, path = answer.partition(" ")
        path = path[-_LONGEST_SHOWN:]
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
    hint = (
        "check the home directory there"
        if last
        else f"check that `ssh {named(host, 'HOST')} sh` starts a shell"
    )
    return Copied(host, "failed", "", last or f"its shell exited with exit code {status}", hint)
