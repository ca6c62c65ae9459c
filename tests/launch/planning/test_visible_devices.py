from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.host.visible import physical as discovered
from hccl_tools.launch.planning import planner
from hccl_tools.launch.planning.visible_devices import VisibleDevices, of_rehearsal, visible_devices
from tests.support.requests import launch_request

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest

HOST = tuple(range(8))


def test_nothing_is_known_nothing_is_limited() -> None:
    seen = visible_devices({}, ())

    assert seen == VisibleDevices()
    assert seen.device_id(5) == 5
    assert seen.outside([0, 99]) == []


def test_a_device_that_is_not_visible_keeps_its_number() -> None:
    limited = visible_devices({"ASCEND_RT_VISIBLE_DEVICES": "2,3"}, (4, 5, 6, 7))

    assert (limited.device_id(4), limited.runtime_id(3)) == (4, 3)
    assert visible_devices({}, ()).runtime_id(5) == 5


def test_devices_are_named_among_those_that_may_be_used() -> None:
    limited = visible_devices({"ASCEND_RT_VISIBLE_DEVICES": "2,3"}, (4, 5, 6, 7))

    assert limited.named_by("0,1") == [6, 7]
    with pytest.raises(UsageError) as caught:
        limited.named_by("1,2")
    assert "0 to 1" in f"{caught.value.message} {caught.value.hint}"
    free = visible_devices({}, ())
    assert free.named_by("0,1023") == [0, 1023]
    with pytest.raises(UsageError):
        free.named_by("1024")


def test_host_with_all_devices_keeps_their_numbers() -> None:
    seen = visible_devices({}, HOST)

    assert [seen.device_id(device) for device in (4, 5, 6, 7)] == [4, 5, 6, 7]
    assert seen.outside([7, 8]) == [8]


def test_container_with_physical_4_to_7_counts_them_from_0() -> None:
    for environ, nodes in (
        ({}, (4, 5, 6, 7)),
        ({"ASCEND_VISIBLE_DEVICES": "4-7"}, ()),
        ({"ASCEND_VISIBLE_DEVICES": "Ascend910-4,Ascend910-5,6,7"}, ()),
    ):
        seen = visible_devices(environ, nodes)

        assert [seen.device_id(device) for device in (4, 5, 6, 7)] == [0, 1, 2, 3]
        assert seen.outside([3, 4]) == [3]


def test_limit_on_a_whole_host_does_not_renumber() -> None:
    seen = visible_devices({"ASCEND_VISIBLE_DEVICES": "4-7"}, HOST)

    assert seen.chosen == (4, 5, 6, 7)
    assert seen.device_id(4) == 4
    assert seen.runtime_id(4) == 4


def test_runtime_variable_counts_within_the_container() -> None:
    seen = visible_devices({"ASCEND_RT_VISIBLE_DEVICES": "2,3"}, (4, 5, 6, 7))

    assert seen.chosen == (6, 7)
    assert [seen.device_id(device) for device in (6, 7)] == [0, 1]
    assert [seen.runtime_id(device) for device in (6, 7)] == [2, 3]
    assert seen.outside([4, 6]) == [4]


def test_runtime_variable_counts_ascending() -> None:
    seen = visible_devices({"ASCEND_RT_VISIBLE_DEVICES": "7,6,5,4"}, HOST)

    assert [seen.device_id(device) for device in (4, 5, 6, 7)] == [0, 1, 2, 3]


def test_runtime_variable_alone() -> None:
    seen = visible_devices({"ASCEND_RT_VISIBLE_DEVICES": "4,5"}, ())

    assert (seen.device_id(4), seen.device_id(5)) == (0, 1)


@pytest.mark.parametrize("text", ["four", "0,,1", "0 1", "1-", "4-7", "4,4,5"])
def test_unreadable_variable(text: str) -> None:
    with pytest.raises(UsageError, match="ASCEND_RT_VISIBLE_DEVICES"):
        visible_devices({"ASCEND_RT_VISIBLE_DEVICES": text}, HOST)


def test_runtime_variable_names_a_device_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="there is no device 4"):
        visible_devices({"ASCEND_RT_VISIBLE_DEVICES": "0,4"}, (4, 5, 6, 7))


def test_void_means_no_limit_by_the_container() -> None:
    assert visible_devices({"ASCEND_VISIBLE_DEVICES": "void"}, ()) == VisibleDevices()
    assert visible_devices({"ASCEND_VISIBLE_DEVICES": "void"}, HOST).chosen == HOST


@pytest.mark.parametrize("text", ["0", "1,3", "0-2,4", "npu-1,npu-3", "Ascend910-6", " 5 , 4 ,4, 3-5 "])
def test_container_variable_means_the_same_as_to_gen(text: str) -> None:
    environ = {"ASCEND_VISIBLE_DEVICES": text}

    assert visible_devices(environ, HOST).chosen == visible_devices(environ, ()).chosen
    assert visible_devices(environ, HOST).chosen == discovered(environ)


@pytest.mark.parametrize(
    ("text", "options"), [("7-4", ""), ("npu-", ""), ("none", ""), ("1,,2", ""), ("100", "NODRV,VIRTUAL")]
)
def test_container_variable_that_gen_refuses(text: str, options: str) -> None:
    environ = {"ASCEND_VISIBLE_DEVICES": text, "ASCEND_RUNTIME_OPTIONS": options}

    with pytest.raises(DiscoveryError) as refused:
        discovered(environ)
    with pytest.raises(UsageError) as caught:
        visible_devices(environ, HOST)
    assert caught.value.message == refused.value.message


def test_virtual_devices_do_not_matter_on_the_cpu() -> None:
    environ = {"ASCEND_VISIBLE_DEVICES": "100", "ASCEND_RUNTIME_OPTIONS": "VIRTUAL"}

    assert visible_devices(environ, (), cpu=True) == VisibleDevices()


def test_container_variable_that_names_no_device_of_the_host() -> None:
    with pytest.raises(UsageError, match="ASCEND_VISIBLE_DEVICES=12 does not contain a device of this host"):
        visible_devices({"ASCEND_VISIBLE_DEVICES": "12"}, HOST)
    assert visible_devices({"ASCEND_VISIBLE_DEVICES": "12"}, HOST, cpu=True).chosen == HOST


def test_two_variables_that_leave_nothing() -> None:
    environ = {"ASCEND_VISIBLE_DEVICES": "0-3", "ASCEND_RT_VISIBLE_DEVICES": "4,5"}

    with pytest.raises(UsageError, match="ASCEND_RT_VISIBLE_DEVICES=4,5 selects none of") as caught:
        visible_devices(environ, HOST)
    assert caught.value.hint == "that variable names 0, 1, 2, 3"
    assert visible_devices(environ, HOST, cpu=True).chosen == ()  # A rehearsal needs none.


@pytest.mark.parametrize(
    ("value", "options", "note"),
    [
        ("0,1", {}, "use ASCEND_RT_VISIBLE_DEVICES=0,1, or --devices 0,1"),
        ("4, 5", {"ranks": 2}, "use ASCEND_RT_VISIBLE_DEVICES=4,5, or --devices 4,5"),
        ("GPU-8932f937,GPU-11", {"ranks": 2}, "use --devices LIST"),
        ("-1", {"ranks": 2}, "use --devices LIST"),
    ],
)
def test_the_variable_of_cuda_that_has_no_effect_is_named(
    own_directory: Path, value: str, options: dict[str, Any], note: str
) -> None:
    Path("train.py").write_text("")
    request = launch_request(start="torch", python=sys.executable, **options)

    notes = _notes(request, {"CUDA_VISIBLE_DEVICES": value})

    assert notes == [f"CUDA_VISIBLE_DEVICES={value} has no effect on NPUs: {note}"]


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({}, {}),
        ({"CUDA_VISIBLE_DEVICES": ""}, {}),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, {"ranks": 2}),  # They are the devices of the job.
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, {"devices": "4-5"}),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, {"cpu": True, "ranks": 3}),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "ASCEND_RT_VISIBLE_DEVICES": "2,3"}, {}),
    ],
)
def test_the_variable_of_cuda_that_changes_nothing_is_not_named(
    own_directory: Path, environ: dict[str, str], options: dict[str, Any]
) -> None:
    Path("train.py").write_text("")
    request = launch_request(start="torch", python=sys.executable, **options)

    assert _notes(request, environ) == []


def _notes(request: LaunchRequest, environ: dict[str, str]) -> list[str]:
    found = planner.prepare(
        request,
        environ={"PATH": "/usr/bin:/bin", **environ},
        working_dir=str(Path.cwd()),
        nodes=tuple(range(8)),
    )
    return [note for note in found.plan.notes if "CUDA" in note]


@pytest.mark.parametrize(
    ("environ", "nodes", "devices", "said"),
    [
        ({}, (), [0, 1], "2 (-n"),
        ({}, HOST, [0, 1], "2 (-n"),
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "4,5,6"},
            HOST,
            [4, 5, 6],
            "3, as ASCEND_RT_VISIBLE_DEVICES=4,5,6 says",
        ),
        ({"ASCEND_VISIBLE_DEVICES": "4-7"}, (), [4, 5, 6, 7], "4, as ASCEND_VISIBLE_DEVICES=4-7 says"),
        ({"CUDA_VISIBLE_DEVICES": "4, 5,6"}, (), [0, 1, 2], "3, as CUDA_VISIBLE_DEVICES=4, 5,6 says"),
        ({"NPU_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "0,1"}, (), [0], "1, as NPU_VISIBLE_DEVICES=3"),
        ({"CUDA_VISIBLE_DEVICES": ""}, (), [0, 1], "2 (-n"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, (), [0, 1], "2 (-n"),
        ({"XPU_VISIBLE_DEVICES": "all"}, (), [0, 1], "2 (-n"),
    ],
)
def test_a_rehearsal_without_a_number_takes_what_a_variable_names(
    environ: dict[str, str], nodes: tuple[int, ...], devices: list[int], said: str
) -> None:
    seen = visible_devices(environ, nodes, cpu=True)

    found, note = of_rehearsal(seen, environ)

    assert found == devices
    assert note.startswith(f"--cpu without a number of ranks: {said}")
