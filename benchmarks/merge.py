"""Time and memory of ``hccl-tools merge``: ``python -m benchmarks.merge [RUNS]``.

8,192 tables of one server each become one of 65,536 ranks, validated and written. Held against the plain
script (``plain_merge.py``), which loads each with ``json``, appends and dumps with indent 4, and checks
nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.measuring import Contender, Row, alternate, report

SERVERS = 8192
PLAIN = str(Path(__file__).with_name("plain_merge.py"))


def make_hosts(folder: str) -> None:
    """Write the table of each host into a folder."""
    from benchmarks.tables import large_table  # noqa: PLC0415  (the measuring process stays small)
    from hccl_tools import formats  # noqa: PLC0415
    from hccl_tools.table.model import RankTable  # noqa: PLC0415
    from hccl_tools.transform.subsetting import subset  # noqa: PLC0415

    table = large_table("1.0", SERVERS)
    for number, server in enumerate(table.servers):
        columns = {key: [column[row] for row in server.rows] for key, column in table.columns.items()}
        server.rows = range(len(columns["device_id"]))
        one = subset(RankTable("1.0", [server], columns))
        Path(folder, f"hccl_8p_{number:05}.json").write_text("".join(formats.write(one)), encoding="utf-8")


def main(runs: int) -> None:
    """Measure and print."""
    folder = mkdtemp(prefix="hccl-tools-bench-")
    try:
        subprocess.run([sys.executable, "-m", "benchmarks.merge", "make", folder], check=True)
        pattern, target = f"{folder}/hccl_8p_*.json", Path(folder, "merged.json")

        def clear(_began: float) -> float:
            target.unlink()  # what stands there already would be compared, not written
            return 0

        figures = alternate(
            [
                Contender("merge", ["hccl-tools", "merge", pattern, "-o", str(target)], note=clear),
                Contender("plain", ["python", PLAIN, pattern, str(target)], note=clear),
            ],
            runs,
        )
    finally:
        shutil.rmtree(folder)
    ours, plain = figures["merge"], figures["plain"]
    rows = [
        Row("8,192 tables, 65,536 ranks", ours.seconds, "s", "the plain script", plain.seconds, 1.0),
        Row("  peak memory", ours.megabytes, "MB", "the plain script", plain.megabytes, 1.5),
    ]
    report(f"merge: medians of {runs}, whole processes", rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make_hosts(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
