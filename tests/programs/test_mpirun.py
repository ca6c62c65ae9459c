from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.programs.mpirun import Mpirun, find_mpirun

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "flavour"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n", "openmpi-4"),
        ("mpirun (Open MPI) 5.0.11\n", "openmpi-5"),
        ("mpirun.real (OpenRTE) 4.1.2\n", "openmpi-4"),
        ("HYDRA build details:\n    Version:                                 4.0.2\n", "mpich-4"),
    ],
)
def test_flavours_of_mpirun(text: str, flavour: str, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "mpirun"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
    program.chmod(0o755)

    assert find_mpirun({"PATH": f"{program.parent}:/usr/bin:/bin"}) == (str(program), flavour)


def test_an_mpirun_that_prints_bytes_without_end_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "mpirun"
    program.write_text("#!/bin/sh\nprintf '\\377\\n'; head -c 3000000 /dev/zero\n")
    program.chmod(0o755)

    with pytest.raises(LaunchError) as refused:
        find_mpirun({"PATH": f"{tmp_path}:/usr/bin:/bin"})

    assert "is neither Open MPI nor MPICH" in refused.value.message
    assert len(refused.value.message) < 1000


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/bin/mpirun", None),
        ("/bin/mpirun", None),
        ("/opt/ompi/bin/mpirun", "/opt/ompi"),
        ("/x/mpirun", None),
    ],
)
def test_the_prefix_of_an_mpirun_that_is_not_the_system_s(path: str, expected: str | None) -> None:
    assert Mpirun(path, "openmpi-5").prefix == expected
