"""Time of ``hccl-tools gen`` for eight devices: ``python -m benchmarks.gen [RUNS]``.

Held against the same eight questions to ``hccn_tool`` from a shell loop, and a Python that loads click. The
``hccn_tool`` here answers at once: the real one takes its own time, which is nobody's to save.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.measuring import Contender, Row, alternate, report

TOOL = """#!/bin/sh
echo "ipaddr:192.168.100.10$2"
echo "netmask:255.255.255.0"
"""
LOOP = """
for i in 0 1 2 3 4 5 6 7; do ./hccn_tool -i $i -ip -g; done
python -c 'import click'
"""


def main(runs: int) -> None:
    """Measure and print."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    try:
        tool = folder / "hccn_tool"
        tool.write_text(TOOL)
        tool.chmod(0o755)
        asked = ["--hccn-tool", str(tool), "--server_ip", "10.0.0.1", "--product", "910a", "-o", "-"]
        simulated = ["--simulate", "910a", "-o", "-"]
        figures = alternate(
            [
                Contender("gen", ["hccl-tools", "gen", "--device_num", "[0,8)", *asked]),
                Contender("gen --simulate", ["hccl-tools", "gen", "--device_num", "[0,8)", *simulated]),
                Contender("shell loop", ["sh", "-c", LOOP], cwd=str(folder)),
            ],
            runs,
        )
    finally:
        shutil.rmtree(folder)
    loop = figures["shell loop"].seconds
    rows = [
        Row("gen, 8 devices asked of hccn_tool", figures["gen"].seconds, "s", "the shell loop", loop, 1.8),
        Row("gen --simulate 910a", figures["gen --simulate"].seconds, "s", "the shell loop", loop, 1.8),
    ]
    report(f"gen: medians of {runs}, whole processes", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
