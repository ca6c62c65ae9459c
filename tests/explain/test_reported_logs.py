"""Logs that were read wrongly once, and those of reports: other people's, which are read in place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

REPORTED = Path(__file__).parents[3] / "shared" / "corpus" / "explain"
#: Files of a case that are not its logs.
_NO_LOGS = {"case.md", "cmd.txt", "env.txt"}

#: What the first sentences of each answer have.
ANSWERS = {
    "02": ["The process at the other end is gone", "192.168.10.12", "the network is not to blame"],
    "04": ["beyond those in ASCEND_RT_VISIBLE_DEVICES"],
    "07": ["not in the rank table", "ranks 0-1, on devices 6-7"],
    "08": ["HCC404", "repeats device 1 of its server"],
    "14": ["no address (device_ip)", "/etc/hccn.conf"],
    "16": [
        "Rank 7 (device 7 of 192.168.10.11)",
        "rank 15 (device 7 of 192.168.10.12)",
        "AllGather_group_name_119",
    ],
    "17": ["Rank 0 ", "two devices did not connect", "rank 8 "],
    "21": ["Paddle does not know the NPU", "PADDLE_XCCL_BACKEND=npu"],
    "25": ["16-23", "The root lists them as missing"],
    "26": ["ASCEND_MF_STORE_URL"],
    "29": ["Rank 3", "200.0 s after rank 0", "120 s"],
    "C1": ["no cause found in 1 log"],
    "M01": ["Rank 0 ", "two devices did not connect", "rank 1 "],
    "M02": ["Device 3 of 10.20.1.199", "device 3 of 10.20.1.195", "EI0013"],
    "M03": ["no address (device_ip)"],
    "M04": ["The driver could not start the processes"],
    "M05": ["Rank 13", "crashed in a library"],
    "M06": ["Rank 1 ", "operation 41", "operation 42"],
    "M07": ["Rank 2 ", "Broadcast", "AllReduce"],
    "M08": ["Rank 2 ", "waits for itself"],
    "M09": ["Rank 1 ", "TLS switch is not the same"],
    "M10": ["Rank 0 ", "rank 2 -> rank 1 -> rank 0"],
    "W01": ["Rank 3", "ValueError: bad shape"],
    "W02": ["Rank 5", "ValueError: bad sample"],
    "W03": ["Rank 2", "KeyError: 1"],
    "W04": ["Rank 3 ", "port 16666"],
    "W05": ["Rank 1 ", "KeyError: 1"],
    "W06": ["waited for data of another rank until the time limit", "The logs do not show the cause"],
    "W07": ["0,2", "two devices did not connect"],
    "W08": ["Rank 1 ", "KeyError: 1"],
    "W09": ["Rank 0 ", "two devices did not connect", "rank 8 "],
    "W10": ["Rank 5", "the device has no memory left"],
    "W11": ["Rank 10", "507054"],
    "W12": ["Rank 1 ", "came later than the others' time limit allows"],
    "W13": ["The job was cancelled"],
    "W14": ["Rank 0", "libhccl.so"],
    "W15": ["Rank 7 ", "rank 6 ", "There is no log of rank 6"],
    "W16": ["4,12", "two devices did not connect"],
    "W17": ["Rank 4", "HCCL_SOCKET_IFNAME"],
    "W18": ["Rank 3", "200.0 s after rank 0"],
    "W19": ["AllReduce", "AllGather", "different operations"],
    "W20": ["Rank 6 ", "came later than the others' time limit allows"],
    "W21": ["Rank 7 ", "silent"],
}


@pytest.mark.skipif(
    not REPORTED.is_dir(), reason="the logs of reports, which are other people's, are not at hand"
)
@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_sentences_have_what_the_case_says(command_line: CommandLine, name: str) -> None:
    (folder,) = (one for one in REPORTED.iterdir() if one.name.partition("-")[0].partition("_")[0] == name)
    logs = [one for one in sorted(folder.iterdir()) if one.name not in _NO_LOGS and one.suffix != ".json"]

    done = command_line("explain", *map(str, logs))

    first = done.out.splitlines()[0]
    assert [text for text in ANSWERS[name] if text not in first] == [], first
