from __future__ import annotations

import pytest

from hccl_tools.discover.visible import physical as discovered
from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.launch.planning.visible_devices import VisibleDevices, visible_devices

HOST = tuple(range(8))


def test_nothing_is_known_nothing_is_limited() -> None:
    seen = visible_devices({}, ())

    assert seen == VisibleDevices()
    assert seen.device_id(5) == 5
    assert seen.outside([0, 99]) == []


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
