"""A program for trying out `launch`: it prints which rank it is, and can fail or hang."""

import os
import sys
import time

RANK, SIZE = os.environ["RANK_ID"], os.environ["RANK_SIZE"]


def named(option: str) -> str:
    """Return the rank after an option; "" without the option."""
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else ""


def load_data() -> None:
    """Fail or hang on the rank that an option names."""
    if named("--fail") == RANK:
        time.sleep(0.5)
        raise ValueError("no data for this rank")
    if named("--hang") == RANK:
        time.sleep(600)


def wait_for_all() -> None:
    """Wait for the rank that fails or hangs, as the ranks of a training do."""
    if named("--fail") or named("--hang"):
        time.sleep(600)


print("rank", RANK, "of", SIZE, "has device", os.environ["DEVICE_ID"], flush=True)
load_data()
wait_for_all()
