"""What the first MPI process accepts of the others."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.mpiruns import MPIRUNS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.mpiruns import Mpirun

pytestmark = pytest.mark.mpi

#: The second process sends a text of as many bytes as the argument says, the third an answer.
PROGRAM = """
import resource, sys
from hccl_tools.gathering import mpi_transport
from hccl_tools.gathering.messages import SurveyAnswer
world = mpi_transport.world()
if world.rank:
    mpi_transport.send(world, "x" * int(sys.argv[1]) if world.rank == 1 else "sound")
    mpi_transport.leave(world)
else:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    texts = mpi_transport.collect(world, 60).texts
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(SurveyAnswer.from_json(texts[1], "h1").message, texts[2], grown >> 10, sep="\\n", flush=True)
    world.Abort(3)  # the process that sent too much waits
"""

#: The second process sends a message with a tag that nothing uses, and then an answer.
OTHER_TAG = """
from hccl_tools.gathering import mpi_transport
world = mpi_transport.world()
if world.rank:
    from mpi4py import MPI
    world.Send([b"x", MPI.BYTE], dest=0, tag=77)
    mpi_transport.send(world, "sound")
    mpi_transport.leave(world)
else:
    print(*mpi_transport.collect(world, 60), flush=True)
    mpi_transport.finish()
"""

#: A text in the name of the second process comes before its own, and when all processes have one.
TWO_TEXTS = """
from hccl_tools.gathering import mpi_transport
from hccl_tools.gathering.messages import SurveyAnswer
world = mpi_transport.world()
if world.rank == 1:
    mpi_transport.send(world, "forged")
    world.recv(source=2)
    mpi_transport.send(world, "sound")
    mpi_transport.leave(world)
elif world.rank == 2:
    mpi_transport.send(world, "sound")
    world.send(None, dest=1)
    mpi_transport.leave(world)
else:
    found = mpi_transport.collect(world, 60)
    print(SurveyAnswer.from_json(found.texts[1], "h1").message, found.texts[2], found.is_complete, sep="\\n")
    mpi_transport.finish()
"""


@pytest.mark.parametrize("mpirun", MPIRUNS[:1], ids=str)
def test_a_message_with_another_tag_is_ignored(mpirun: Mpirun, tmp_path: Path) -> None:
    done = subprocess.run(
        mpirun.ranks(2, sys.executable, "-c", OTHER_TAG),
        env=dict(os.environ, **mpirun.for_mpi4py(tmp_path)), cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "{1: 'sound'} {} True\n"), done.stderr


@pytest.mark.parametrize("mpirun", MPIRUNS, ids=str)
def test_two_texts_in_one_name_are_no_answer(mpirun: Mpirun, tmp_path: Path) -> None:
    done = subprocess.run(
        mpirun.ranks(3, sys.executable, "-c", TWO_TEXTS),
        env=dict(os.environ, **mpirun.for_mpi4py(tmp_path)), cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    message, text, is_complete = done.stdout.splitlines()
    assert message == "two different answers came in its name: another host may have written one of them"
    assert (text, is_complete, done.returncode) == ("sound", "True", 0), done.stderr


@pytest.mark.parametrize("mpirun", MPIRUNS[:1], ids=str)
def test_a_text_that_is_too_long_is_not_received(mpirun: Mpirun, tmp_path: Path) -> None:
    size = 1 << 28
    command = mpirun.ranks(3, sys.executable, "-c", PROGRAM, str(size))

    done = subprocess.run(
        command, env=dict(os.environ, **mpirun.for_mpi4py(tmp_path)), cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    message, text, grown = done.stdout.splitlines()[:3]
    assert message == "it sent more than 4 MiB instead of an answer"
    assert text == "sound"
    assert int(grown) < 100
