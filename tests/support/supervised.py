"""A small job under the real supervisor: ``python supervised.py JSON``, for tests that signal the launcher.

The JSON says ``run_dir``, ``programs`` (one argument list per rank; ``scheduler`` for one before them) and
``options`` of ``Supervision`` and its ``Watch``. Each rank gets RANK_ID; the exit code is the job's.
"""

from __future__ import annotations

import json
import os
import sys

from hccl_tools.processes import keeper


def main() -> int:
    """Run the job described on the command line."""
    started = keeper.start()
    from hccl_tools.launch.model.plan import RankProcess
    from hccl_tools.launch.model.request import Watch
    from hccl_tools.launch.supervise.options import Supervision
    from hccl_tools.launch.supervise.supervisor import supervise

    job = json.loads(sys.argv[1])
    programs = [(rank, argv) for rank, argv in enumerate(job["programs"])]
    if job.get("scheduler"):
        programs.insert(0, (-1, job["scheduler"]))
    processes = [
        RankProcess(
            rank=rank,
            host="host-a",
            server_index=0,
            device=rank + 4,
            device_id=rank,
            environment={"RANK_ID": str(rank)},
            argv=tuple(argv),
            log="scheduler.log" if rank < 0 else f"rank_{rank}.log",
        )
        for rank, argv in programs
    ]
    options = job.get("options", {})
    watch = {name: options.pop(name) for name in Watch._fields if name in options}
    if isinstance(options.get("tail"), list):
        options["tail"] = tuple(options["tail"])
    outcome = supervise(
        processes,
        run_dir=job["run_dir"],
        environment=dict(os.environ),
        working_dir=job["working_dir"],
        options=Supervision(watch=Watch(**watch), **options),
        keeper=started,
    )
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
