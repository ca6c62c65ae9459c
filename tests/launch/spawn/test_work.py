"""``spawn`` as paddle's guide calls it: MindSpore ranks that train together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]

WORK = """\
import os
import hccl_tools

def train(scale=1.0, *, steps=3):
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, ops
    from mindspore.communication import get_group_size, get_rank, init, release

    ms.set_device("CPU")
    init()
    reduce, weight = ops.AllReduce(), np.zeros(4, np.float32)
    for _ in range(steps):
        gradient = np.full(4, scale * (get_rank() + 1), np.float32)
        weight += reduce(Tensor(gradient)).asnumpy() / get_group_size()
    me = hccl_tools.current_rank()
    print("trained", weight, flush=True)
    device = int(os.environ["DEVICE_ID"])
    found = [get_rank(), get_group_size(), me.rank, me.world_size, device, float(weight.sum())]
    release()
    return found
"""


@pytest.mark.parametrize(
    ("call", "weight"),
    [
        ("spawn(work.train, args=(2.0,), cpu=True)", 36.0),
        ("spawn(work.train, nprocs=2, gpus='4,5', cpu=True)", 18.0),
    ],
    ids=["all visible devices, with arguments", "named devices"],
)
def test_ranks_train_together(call: str, weight: float) -> None:
    pytest.importorskip("mindspore")
    Path("work.py").write_text(WORK)
    Path("main.py").write_text(
        "import json, work\nfrom hccl_tools import spawn\n"
        f"if __name__ == '__main__':\n    print(json.dumps({call}.results))\n"
    )

    done = subprocess.run(
        [sys.executable, "main.py"], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "ASCEND_RT_VISIBLE_DEVICES": "4,5", "GLOG_v": "3"},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    *shown, results = done.stdout.splitlines()
    assert [line for line in shown if line.startswith("trained")]
    assert json.loads(results) == [[rank, 2, rank, 2, rank, weight] for rank in range(2)]
