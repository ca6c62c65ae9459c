"""A program for trying out `launch`: it prints which rank it is. `hccl-tools explain` finds its failures."""

import os
import sys
import time

rank, size = os.environ["RANK_ID"], os.environ["RANK_SIZE"]
print("rank", rank, "of", size, "has device", os.environ["DEVICE_ID"])
if "--fail" in sys.argv:
    if rank == sys.argv[sys.argv.index("--fail") + 1]:
        raise ValueError("no data for this rank")
    time.sleep(60)  # In a training, the other ranks wait for the one that failed.
if "--hang" in sys.argv and rank == sys.argv[sys.argv.index("--hang") + 1]:
    time.sleep(600)
