"""``doctor`` and msprechecker on the same faults: ``python -m benchmarks.beside_msprechecker VENV [WORD]``.

VENV is a virtual environment with msprechecker. Only faults with WORD in their names are planted; WORD may
be repeated, and without it all are. Needs root, for three hosts in namespaces with stand-in Ascend tools.
msprechecker looks at fixed places, such as ``/usr/local/Ascend`` and ``/dev/davinci0``: each host has its own
files there. Printed is what is not said of sound hosts: by ``doctor``, by ``precheck`` on each host, and by
``compare`` of the dumps. Some faults are measured several times: it is chance which device pings an address.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks.planted_faults import FAULTS, HOSTS, Fault, complete, nothing, settle
from tests.beds.test_doctor_on_three_hosts import Bed
from tests.beds.three_hosts import ThreeHosts, make_three_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 40
#: Put the files of a stand-in host at the places of a real one, in this mount namespace only. The arguments:
#: the folder of the host, what each call of a tool begins with, what to run before, and the command.
STAGE = r"""
set -e
ascend=$1; turn=$2; first=$3; shift 3
mount -t tmpfs none /mnt
for place in etc dev usr/bin usr/local; do mkdir -p "/mnt/$place/new" "/mnt/$place/work"; done
[ ! -d "$ascend/root/etc" ] || cp -r "$ascend/root/etc/." /mnt/etc/new
for node in "$ascend"/root/dev/*; do mknod "/mnt/dev/new/${node##*/}" c 1 3; done
tools=/mnt/usr/local/new/Ascend/driver/tools
mkdir -p "$tools"
echo 'Version=25.0.rc1' > "$tools/../version.info"
for tool in hccn_tool npu-smi lspci; do
    [ -e "$ascend/bin/$tool" ] || continue
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$turn" "$ascend/bin/$tool" > "$tools/$tool"
    chmod 755 "$tools/$tool"
done
cp "$tools/lspci" /mnt/usr/bin/new/
for place in etc dev usr/bin usr/local; do
    mount -t overlay none -o "lowerdir=/$place,upperdir=/mnt/$place/new,workdir=/mnt/$place/work" "/$place"
done
eval "$first"
PATH=/usr/local/Ascend/driver/tools:$PATH exec "$@"
"""
#: hccn_tool refuses parallel calls, and msprechecker makes them: so that other things show, a call waits.
WAITING, REFUSING = "flock /mnt/turn", "env"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: Lines that differ between runs, or by how a fault is planted.
VARYING = re.compile(r"LD_PRELOAD|(?i:faketime)|[+]5m|rtt min|time [0-9]+ms")


class Checker:
    """msprechecker on the hosts of a bed."""

    def __init__(self, venv: Path, bed: Bed, fault: Fault) -> None:
        self._program = str(venv / "bin" / "msprechecker")
        self._bed = bed
        self._fault = fault

    def said(self) -> list[tuple[str, list[str]]]:
        """Return the lines of ``precheck`` on each host, then those of ``compare``, each with its name."""
        table = ["--rank-table-path", str(self._bed.disk / "table.json")]
        names = [f"host {number + 1}" for number in self._fault.hosts]
        said = [*zip(names, self._on_all("precheck", *table), strict=True)]
        more = table if self._fault.dump_table else []
        dumped = self._on_all("dump", *more, "--output-path", str(self._bed.disk / "dump.json"))
        failed = [lines[-2] for lines in dumped if lines[-1].startswith("(exit code")]
        if failed or len(dumped) == 1:
            return [*said, ("dump", failed)]
        paths = [str(self._bed.file(number, "dump.json")) for number in self._fault.hosts]
        done = subprocess.run(
            [self._program, "compare", *paths], capture_output=True, text=True, check=False, timeout=60
        )
        text = (done.stdout + done.stderr).replace(str(self._bed.disk.parent), "")
        return [*said, ("compare", lines_of(text))]

    def _on_all(self, *args: str) -> list[list[str]]:
        started = [self._start(number, *args) for number in self._fault.hosts]
        said = []
        for process in started:
            lines = lines_of(process.communicate()[0])
            said.append([*lines, *([f"(exit code {process.returncode})"] if process.returncode else [])])
        return said

    def _start(self, number: int, *args: str) -> subprocess.Popen[str]:
        machine = self._bed.machines[number]
        wrapper = machine.bin / "python3"
        first = "\n".join(wrapper.read_text().splitlines()[1:-1]) if wrapper.exists() else ""
        turn = REFUSING if self._fault.parallel else WAITING
        command = ["env", "-i", "HOME=/tmp", "COLUMNS=80", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"]
        command += ["timeout", "-s", "KILL", str(PATIENCE_S)]
        command += ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command += ["sh", "-c", STAGE, "sh", str(machine.folder), turn, first, self._program, *args]
        return self._bed.hosts.hosts[number].start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def lines_of(text: str) -> list[str]:
    lines = [COLOUR.sub("", line).rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not VARYING.search(line)]


@contextmanager
def fresh(hosts: ThreeHosts) -> Iterator[Bed]:
    """Yield a sound bed, and remove its files."""
    bed = Bed(hosts)
    yield bed
    for number in HOSTS:
        for path in bed.file(number, ".").iterdir():  # the folder itself is mounted
            path.unlink()


def measure(venv: Path, bed: Bed, fault: Fault, known: set[str]) -> None:
    """Print what ``doctor`` says of a fault, and what msprechecker says but for what is known."""
    with fault.plant(bed) or nullcontext():
        if fault.hosts != (0,):
            settle(bed)
        complete(bed)
        for one in json.loads(bed.run("-f", "json", *fault.doctor).stdout)["findings"]:
            if one["consequence"] != "note" or one["not_examined"]:
                print("doctor:", one["consequence"], one["check"], ",".join(one["hosts"]), one["message"])
        for run in range(1, fault.runs + 1):
            for place, lines in Checker(venv, bed, fault).said():
                for line in lines:
                    if line not in known:
                        print(f"msprechecker, run {run}, {place}: {line[:200]}", flush=True)


def main(venv: Path, *words: str) -> None:
    """Measure the faults with one of these words in their names, or all."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    try:
        with make_three_hosts(folder / "bed") as hosts:
            with fresh(hosts) as bed:
                complete(bed)
                said = Checker(venv, bed, Fault(nothing)).said()
                known = {line for _place, lines in said for line in lines}
            print("## always", *sorted(known), sep="\n")
            for name, fault in FAULTS.items():
                if not words or any(word in name for word in words):
                    print(f"\n## {name}", flush=True)
                    with fresh(hosts) as bed:
                        measure(venv, bed, fault, known)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
