"""The requirements of frameworks on the file of a rank table, and the variables with its path.

Source: MindIE-LLM ranktable_config.cpp (mode 640, container_ip); torch_npu and xLLM (no symbolic link; a path
that does not exist is silently ignored); MindSpore (RANK_TABLE_FILE). MindIE up to 2.0 reads RANKTABLEFILE,
later versions RANK_TABLE_FILE. Its guide for several hosts sets MASTER_IP to the first server and
HCCL_CONNECT_TIMEOUT to 7200; torch_npu warns below 300 if it uses a table.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.errors import TableError, UsageError
from hccl_tools.files.outputs import parse_mode
from hccl_tools.formats.file_kinds import TARGETS as NAMES
from hccl_tools.notation.phrases import count, operand
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple
from hccl_tools.validation.target_check import for_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hccl_tools.diagnostics.diagnostic import Diagnostic
    from hccl_tools.table.model import RankTable

TIMEOUT, MASTER_PORT = "HCCL_CONNECT_TIMEOUT", "MASTER_PORT"
#: The port of MindIE's master: that of `launch` on several hosts. Any port that is free on all hosts will do.
DEFAULT_PORT = "18118"
#: Variables that keep MindIE's hosts from reaching each other.
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class Target(NamedTuple):
    """What a command does for one framework; ``rules`` has what the framework requires of a table.

    Attributes:
        name: The value of ``--target``.
        mode: The file mode to write, None for the usual one.
        container_ip: Whether to write a container_ip for every server.
        follows_links: Whether the framework opens a symbolic link.
        least_timeout: The least HCCL_CONNECT_TIMEOUT of a job on several hosts, in seconds; None for any.
        usual_timeout: The value to set if it is less.
    """

    name: str
    mode: int | None = None
    container_ip: bool = False
    follows_links: bool = True
    least_timeout: int | None = None
    usual_timeout: int | None = None

    @property
    def service(self) -> str | None:
        """The value of ``launch --emit`` for a service that starts its own processes; None for training."""
        return self.name if self.name in {"mindie", "xllm"} else None

    @property
    def title(self) -> str:
        """The name of the framework in messages."""
        return NAMES[self.name]


TARGETS = {
    target.name: target
    for target in (
        Target("mindspore"),
        Target("torch", follows_links=False, least_timeout=300, usual_timeout=600),
        Target("mindie", mode=0o640, container_ip=True, least_timeout=300, usual_timeout=7200),
        Target("xllm", follows_links=False, least_timeout=300, usual_timeout=600),
    )
}


def check(target: Target, table: RankTable, destination: str | None, ignore: Sequence[str] = ()) -> list[str]:
    """Check a table, and where it is to be written, for a framework; return the warnings.

    Args:
        ignore: The rules that are not applied (``--ignore``).

    Raises:
        UsageError: The framework cannot open the destination.
        TableError: The framework would refuse the table, or fail later.
    """
    if destination == "-":
        raise UsageError(
            "--target sets the mode of a file and prints variables with its path, but -o - writes no file",
            hint="specify a file or folder with -o, or omit --target",
        )
    if destination is not None and not target.follows_links and os.path.islink(destination):
        raise UsageError(
            f"{destination} is a symbolic link, which {target.title} refuses to open",
            hint=f"write to its target: -o {operand(links.real_path(destination))}",
        )
    findings = for_target(table, target.name, ignore)
    require_no_error(target, findings)
    return warnings(target, findings)


def mode_to_write(target: Target, given: str | None) -> str | None:
    """Return the file mode for a framework as octal digits: that of ``--mode``, else the usual one.

    Raises:
        UsageError: The framework would refuse a file with the mode of ``--mode``.
    """
    if target.mode is None:
        return given
    if given is not None and parse_mode(given) & ~target.mode:
        raise UsageError(
            f"--mode {given} allows more than {target.title} does", hint=f"omit --mode: it is {target.mode:o}"
        )
    return f"{target.mode:o}" if given is None else given


def how_to_mount(target: Target) -> str:
    """Return how a pod must mount a ConfigMap so that a framework opens the table in it, or "".

    Kubernetes makes each key a symbolic link with mode 644, and a file if it is mounted with subPath.
    """
    if not target.follows_links:
        return f"mount it with subPath: {target.title} opens no symbolic link"
    if target.mode is not None:
        return f"mount it with defaultMode 0{target.mode:o}: {target.title} refuses 0644"
    return ""


def require_no_error(target: Target, findings: Iterable[Diagnostic]) -> None:
    """Raise the findings of a framework's rules that are errors, each rule once with its remedy.

    Raises:
        TableError: The framework would refuse the table, or fail later.
    """
    wrong = [one for one in findings if one.rule.severity == "error" and one.rule.reader == target.title]
    if not wrong:
        return
    by_rule: dict[str, list[Diagnostic]] = {}
    for one in wrong:
        by_rule.setdefault(one.rule.id, []).append(one)
    head = f"{target.title} cannot use the table: "
    if len(by_rule) == 1:
        raise TableError(head + _with_number(wrong), hint=wrong[0].hint)
    lines = [
        line
        for same in by_rule.values()
        for line in (f"  {_with_number(same)}", f"    help: {same[0].hint}")
        if not line.endswith(": None")
    ]
    where = f"`hccl-tools validate --target {target.name} FILE` shows the places"
    raise TableError(head + count(len(wrong), "finding"), hint=where, lines=lines)


def _with_number(same: Sequence[Diagnostic]) -> str:
    """Return the id and message of the first finding of a rule, and the number of the others."""
    others = f" ({count(len(same) - 1, 'more finding')} of this rule)" if len(same) > 1 else ""
    return f"{same[0].rule.id} {same[0].message}{others}"


def warnings(target: Target, findings: Iterable[Diagnostic]) -> list[str]:
    """Return the warnings of a framework's rules, each with its hint."""
    return [
        f"warning: {one.message} ({one.rule.id})\n  help: {one.hint}"
        for one in findings
        if one.rule.severity == "warning" and one.rule.reader == target.title
    ]


def variables(target: Target, path: str, own_address: str | None) -> dict[str, str]:
    """Return the variables that pass the path of the table to a framework.

    Args:
        own_address: The container_ip or server_id of the host; None for the variables that all hosts share.
    """
    # The real path, because some readers refuse symbolic links.
    real = links.real_path(path)
    found = {"RANK_TABLE_FILE": real}
    if target.name == "mindie":
        found["RANKTABLEFILE"] = real
        if own_address is not None:
            found["MIES_CONTAINER_IP"] = own_address
    return found


def exports(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield shell commands that export variables, with every value quoted."""
    for name, value in variables.items():
        yield f"export {name}={shlex.quote(value)}\n"


def job_variables(target: Target, table: RankTable, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables besides the path that a job with this table needs on every host.

    A timeout that is already set and long enough is left as it is.
    """
    found = {}
    if target.name == "mindie" and len(table.servers) > 1:
        found["MASTER_IP"] = table.servers[_master(table)].server_id
        if not environ.get(MASTER_PORT):
            found[MASTER_PORT] = DEFAULT_PORT
    least = target.least_timeout if len(table.servers) > 1 else None
    if least is not None and (whole_number(environ.get(TIMEOUT, "")) or 0) < least:
        found[TIMEOUT] = str(target.usual_timeout)
    return found


def unset(target: Target, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables of this host that a framework's guide tells to unset."""
    return tuple(name for name in PROXIES if environ.get(name)) if target.name == "mindie" else ()


def derived(target: Target, table: RankTable) -> str:
    """Return what a framework takes from the table in place of its configuration, as a sentence, or ""."""
    if target.name != "mindie" or len(table.servers) < 2:
        return ""
    devices = sorted(
        number for row in table.servers[0].rows if (number := table.device_numbers[row]) is not None
    )
    ids = ",".join(map(str, devices))
    return f"MindIE takes from the table: worldSize {len(devices)}, npuDeviceIds [[{ids}]]"


def _master(table: RankTable) -> int:
    """Return the index of the server with rank 0, which MindIE takes as its master."""
    ranks = table.rank_numbers
    return table.server_of_row[ranks.index(0)] if 0 in ranks else 0


def add_container_ips(table: RankTable) -> int:
    """Give each server without a container_ip its own address: its containers share its network.

    None is added if the containers of another server have a network of their own: the addresses are unknown.

    Returns:
        The number of servers that were changed.
    """
    if any(server.has_own_container_ip for server in table.servers):
        return 0
    without = [server for server in table.servers if not server.fields.get("container_ip")]
    for server in without:
        server.fields["container_ip"] = server.server_id
    return len(without)
