"""Clocks that differ between hosts, by the times at which they write the same steps of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def at(seconds: int) -> str:
    return f"2026-03-18 {10 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def screen(ahead: int, pace: int = 10, last: int = 60) -> str:
    """Return the steps of a host whose clock is ahead."""
    return "".join(
        f"[{at(ahead + pace * number)}] iteration {number}/9000 | lm loss: 2.1\n" for number in range(1, last)
    )


def wait(rank: int, seconds: int) -> str:
    return f"[rank{rank}]: EI0002: [PID: 3] {at(seconds).replace(' ', '-')}.000.000 The Notify register has not received the Notify record from remote rank [unknown].\n"


def crash(seconds: int) -> str:
    return f"[rank9]: EZ9999: [PID: 9] {at(seconds).replace(' ', '-')}.000.000 The error from device(chipId:1, dieId:0), serial number is 1, there is an exception of aivec error, core id is 5\n"


def test_the_same_steps_show_that_a_clock_is_ahead(command_line: CommandLine) -> None:
    """By the clocks the error of the second host is 100 s after the wait of the first one."""
    command_line.write("logs/n1/train.log", screen(0) + wait(0, 2500))
    command_line.write("logs/n2/train.log", screen(2000) + crash(2600))
    lines = command_line("explain", "logs").out.splitlines()

    assert lines[0].startswith("Rank 9 (host n2): a kernel failed on the device") or lines[0].startswith(
        "Rank 9: a kernel failed on the device"
    )
    assert "  the clock of n2 is 2000 s ahead; corrected here" in lines


def test_steps_at_another_pace_say_nothing_of_the_clocks(command_line: CommandLine) -> None:
    command_line.write("logs/n1/train.log", screen(0) + wait(0, 2500))
    command_line.write("logs/n2/train.log", screen(2000, pace=12) + crash(2900))

    assert "clock" not in command_line("explain", "logs").out


def test_a_process_that_the_kernel_killed_on_a_host_whose_clock_is_ahead(command_line: CommandLine) -> None:
    """Its last steps have later times than the kernel's line, if only one of them is corrected."""
    command_line.write("logs/n1/train.log", screen(0))
    command_line.write("logs/n2/train.log", screen(300))
    kernel = "[Wed Mar 18 10:15:20 2026] Out of memory: Killed process 9104 (python3) total-vm:1kB\n"
    command_line.write("logs/n2/dmesg.txt", kernel)

    assert "out-of-memory killer ended a process" in command_line("explain", "logs").out.splitlines()[0]
