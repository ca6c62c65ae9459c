"""Time and memory of asking many hosts: ``python -m benchmarks.doctor [HOSTS [RUNS]]``.

The hosts are stand-ins on this machine, reached by a stand-in for ssh. Each has eight devices, and tools that
are shell scripts and print what those of a sound machine print. ``doctor`` is held against ``gen --hosts``,
which asks the same hosts for their addresses.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.measuring import Contender, Row, alternate, report
from tests.support.hosts import described, make_host

DEVICES = range(8)
QUERIES = ("link", "net_health", "tls", "gateway", "netdetect", "speed", "stat")
SSH = """\
#!/bin/sh
while [ "$1" != -- ]; do shift; done
number=${{2#node}}
shift 2
export BENCH_NET=$((number / 250)).$((number % 250 + 1)) SLURMD_NODENAME=node$number
export HOST_IP=10.99.$BENCH_NET
export HCCL_TOOLS_ROOT={folder}/root HOME={folder} PATH={folder}/shell:{python}:/usr/bin:/bin
exec sh -c "$*"
"""
#: Prints the recorded answer of the command line; an address depends on the host.
TOOL = """\
#!/bin/sh
[ "$*" != "-i $2 -ip -g" ] || { printf 'ipaddr:10.%s.%s\\nnetmask:255.0.0.0\\n' "$2" "$BENCH_NET"; exit; }
[ "$3" != -ping ] || { echo '3 packets transmitted, 3 received, 0.00% packet loss'; exit; }
exec cat "${0%/*}/../answers/${0##*/} $*"
"""
#: The stand-ins do not have the addresses that they state.
IGNORED = ("--ignore", "HCC642")
LARGEST_MEMORY_MB = 150
MOST_LINES = 40


def make_hosts(folder: Path) -> None:
    """Write the tools, their answers, and the stand-in for ssh."""
    host = make_host(folder / "made", described("910a"), nodes=DEVICES)
    shutil.copytree(host.root, folder / "root")
    for name in ("answers", "shell", "python"):
        (folder / name).mkdir()
    (folder / "python" / "python3").symlink_to(sys.executable)
    commands = ["npu-smi info", "npu-smi info -l", "npu-smi info -m"]
    commands += [f"npu-smi info -t board -i {npu}" for npu in range(8)]
    commands += [f"hccn_tool -i {device} -{query} -g" for device in DEVICES for query in QUERIES]
    for command in commands:
        done = subprocess.run(
            command.split(), env=host.environ(), capture_output=True, text=True, check=False,
            executable=str(host.bin / command.split()[0]),
        )  # fmt: skip
        (folder / "answers" / command).write_text(done.stdout + done.stderr)
    for name, text in (("hccn_tool", TOOL), ("npu-smi", TOOL)):
        (folder / "shell" / name).write_text(text)
        (folder / "shell" / name).chmod(0o755)
    (folder / "ssh").write_text(SSH.format(folder=folder, python=folder / "python"))
    (folder / "ssh").chmod(0o755)


def main(count: int, runs: int) -> None:
    """Measure and print."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    how = ["--engine", "ssh", "--ssh", str(folder / "ssh"), "--gather-timeout", "3600", "--product", "910a"]
    hosts = f"node[1-{count}]"
    try:
        make_hosts(folder)
        gen = ["hccl-tools", "gen", "--hosts", hosts, *how, "-o", "table.json", "--force"]
        doctor = ["hccl-tools", "doctor", "table.json", "--hosts", hosts, *how, *IGNORED]
        figures = alternate(
            [Contender("gen", gen, cwd=str(folder)), Contender("doctor", doctor, cwd=str(folder))],
            runs, warm_up=0,
        )  # fmt: skip
        done = subprocess.run(doctor, cwd=folder, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(folder)
    print(done.stdout)
    lines = len(done.stdout.splitlines())
    seen = figures["doctor"]
    rows = [
        Row(f"doctor, {count:,} hosts", seen.seconds, "s", "gen --hosts", figures["gen"].seconds, 4.0),
        Row("its memory", seen.megabytes, "MB", "MB", LARGEST_MEMORY_MB, 1.0),
        Row("its output", lines, "", "lines", MOST_LINES, 1.0),
    ]
    report(f"doctor: medians of {runs}", rows)


if __name__ == "__main__":
    main(*(int(text) for text in [*sys.argv[1:], *("256", "3")[len(sys.argv) - 1 :]]))
