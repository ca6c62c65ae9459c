from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import typing

import pytest

from hccl_tools.launch.mpi.prepared import PreparedRank
from hccl_tools.launch.mpi.world import MpiWorld
from hccl_tools.records import NamedTuple

WORLD = MpiWorld(1, 2, 1, 2, "job", "Open MPI")


def test_a_record_is_what_typing_makes_of_it() -> None:
    assert WORLD == (1, 2, 1, 2, "job", "Open MPI")
    assert WORLD.one_host
    assert not WORLD._replace(local_size=1).one_host
    assert repr(WORLD).startswith("MpiWorld(rank=1, size=2")
    assert copy.copy(WORLD) == WORLD
    assert (MpiWorld.__doc__ or "").startswith("The rank of a process")


class Point(NamedTuple):
    """A point on a map."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y


class OfTyping(typing.NamedTuple):
    """A point on a map."""

    x: int
    y: int = 2


def test_a_record_behaves_like_that_of_typing() -> None:
    for kind in (Point, OfTyping):
        point = kind(y=3, x=1)
        assert (point.x, point.y, point[1], len(point), hash(point)) == (1, 3, 3, 2, hash((1, 3)))
        assert point == kind(1, 3) == (1, 3) != kind(1)
        assert kind._make([4, 5]) == (4, 5)
        assert kind(1)._replace(y=7) == (1, 7)
        assert (kind._fields, kind.__match_args__, kind._field_defaults) == (("x", "y"), ("x", "y"), {"y": 2})
        assert point._asdict() == {"x": 1, "y": 3}
        assert repr(point) == f"{kind.__name__}(x=1, y=3)"
        assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301
        assert not hasattr(point, "__dict__")
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            kind()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            kind(1, z=2)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"[Ee]xpected 2 arguments, got 1"):
            kind._make([1])
        with pytest.raises((TypeError, ValueError), match=r"unexpected field names: \['z'\]"):
            kind(1)._replace(z=2)  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            point.x = 2  # type: ignore[misc]
    assert Point(1).sum == 3


def test_defaults_and_what_must_be_given() -> None:
    assert PreparedRank(0, 4, ("true",), {}, "run").tail == "0"
    with pytest.raises(TypeError, match="run_dir"):
        PreparedRank(0, 4, ("true",), {})  # type: ignore[call-arg]


_SHIM = "hccl_tools.launch.rank", "hccl_tools.launch.mpi.shim", "hccl_tools.launch.mpi.end_report"


@pytest.mark.parametrize("modules", [_SHIM, ("hccl_tools.processes.keeper_process",)], ids=["shim", "keeper"])
def test_a_shim_and_the_keeper_load_none_of_what_takes_long(modules: tuple[str, ...]) -> None:
    slow = {"typing", "json", "re", "dataclasses", "subprocess", "signal", "enum"}
    code = f"import sys, {', '.join(modules)}; print(sorted({slow} & set(sys.modules)))"

    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
