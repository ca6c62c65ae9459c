"""Where a job reads that its allocation outlives the loss of a node."""

from __future__ import annotations

import pytest

from hccl_tools.launch.engines.slurm import directives, has_option


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("--no-kill -N 3 hccl-tools launch train.py", True),
        ("-N 3 -k hccl-tools launch train.py", True),
        ("--nodes=3 --exclusive --no-kill", True),
        ("-N 3 hccl-tools launch train.py -k", False),
        ("-N 3 sh -c 'sleep 1' --no-kill", False),
        ("--no-kill=off -N 3 sh", False),
        ("", False),
    ],
)
def test_the_option_counts_before_the_command(typed: str, expected: bool) -> None:
    assert has_option(typed.split()) is expected


def test_only_the_directives_before_the_first_command_count() -> None:
    before = "#!/bin/sh\n#SBATCH --nodes=3 # a comment --no-kill\n\n#SBATCH 'odd\n# --no-kill\n"

    assert list(directives(before + "set -e\n#SBATCH --no-kill\n")) == [["--nodes=3"]]
    assert list(directives("#!/bin/sh\n#SBATCH -k\ntrue\n")) == [["-k"]]
