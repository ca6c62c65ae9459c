"""Take evidence of what the ranks of this host do before they are ended.

Stacks, the ends of the logs, the devices and the dumps of the flight recorder are asked for at the same
time. The end waits for those that come within ``--evidence-timeout``; what is late or cannot be written is
lost, and the record says so.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.launch.logs import excerpt
from hccl_tools.processes import linux, run_files, stack_dump, wait_state
from hccl_tools.processes.signals import spawn
from hccl_tools.processes.stack_dump import Stack, StackDump, Target, writes_stacks
from hccl_tools.programs.lookup import find_program
from hccl_tools.records import to_json
from hccl_tools.runs import names
from hccl_tools.runs.evidence import EvidenceNote, HostEvidence, RankEvidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.launch.model.outcome import RankEnd
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.processes.procfs import Status
    from hccl_tools.processes.signals import Helper
    from hccl_tools.processes.wait_state import WaitState

#: Seconds between two looks at what has been written.
_INTERVAL = 0.01
#: The part of the time after which the record is written, so that the end waits no longer than it may.
_TO_WRITE = 0.9
#: The ranks of a host that are looked at, and those for which py-spy runs.
_MOST_RANKS, _MOST_SPIES = 256, 16
_MOST_LINES = 20
#: Bytes and lines of npu-smi's output that are kept.
_LARGEST_OUTPUT, _MOST_DEVICE_LINES = 1 << 16, 400
#: Seconds for which a rank may write its stack before it is asked for the dump.
_STACK_SECONDS = 0.5
#: Seconds after which a rank that has not answered is asked again.
_AGAIN_SECONDS = 0.2
#: Seconds until the pipe of torch_npu is used; its thread looks at it once a second.
_PIPE_AFTER = 0.5
#: Seconds for the thread of a rank that is ending to answer, and for a dump to be written again with frames.
_ANSWER_SECONDS = _FRAMES_SECONDS = 2.0
#: Bytes of a file that may have a reason in place of a dump.
_LARGEST_PROBLEM = 1 << 12
#: The end of the last dump that a rank writes.
_FINAL = b'"is_final": true}'
_NO_HANDLER = "its Python was not started with `launch --flight-recorder`, or has ended"
_NO_ANSWER = "it has not written the dump in time: it is stopped, or inside compiled code"


class Evidence:
    """The evidence of one end of the ranks on this host, while it is taken."""

    def __init__(
        self,
        attempt: Attempt,
        ranks: Sequence[RankEnd],
        *,
        run_dir: str,
        restart: int,
        records: bool,
        done: Callable[[EvidenceNote], None],
    ) -> None:
        """Ask for everything; ``done`` is called when it is written, or when the time is over.

        ``ranks`` are those of this host, with those that have ended; ``records`` tells whether they have
        flight recorders.
        """
        self._began = time.monotonic()
        self._attempt, self._run_dir, self._done = attempt, run_dir, done
        self._name = names.generation(names.evidence(ranks[0].process.server_index), restart)
        self._deadline = self._began + _TO_WRITE * attempt.state.evidence_timeout
        self._ranks, self._problems = ranks[:_MOST_RANKS], list[str]()
        if len(ranks) > _MOST_RANKS:
            self._problems.append(f"only the first {_MOST_RANKS} of {len(ranks):,} ranks were looked at")
        self._states = {end.process.rank: wait_state.of(end.pid) for end in self._ranks if _runs(end)}
        # Before the stacks are written there.
        self._lines = {
            end.process.rank: tuple(excerpt.last_lines(excerpt.log_end(end.log), _MOST_LINES))
            for end in self._ranks
        }
        self._recorders = self._make_recorders(restart) if records else None
        self._stacks = _Stacks(attempt, self._ranks, self._states)
        self._devices = _Devices(attempt)
        self._is_done = False
        attempt.on_over.append(self._finish)
        self._check()

    def _make_recorders(self, restart: int) -> RecorderDumps:
        pids = {end.process.rank: end.pid for end in self._ranks if _runs(end)}
        # Only a hang is worth the second or two that the frames take.
        with_frames = self._attempt.state.reason == "hang"
        descendants = self._attempt.keeper.descendants
        return RecorderDumps(self._run_dir, pids, descendants, restart, with_frames=with_frames)

    def _check(self) -> None:
        if self._recorders is not None:
            self._recorders.ask(self._stacks.is_written)
        waits = any(map(_runs, self._ranks)) and not self._is_complete()
        if waits and time.monotonic() < self._deadline:
            self._attempt.call_later("evidence parts", _INTERVAL, self._check)
        else:
            self._finish()

    def _is_complete(self) -> bool:
        has_dumps = self._recorders is None or self._recorders.is_complete
        return has_dumps and self._stacks.is_complete and self._devices.is_complete

    def _finish(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        devices, problem = self._devices.finish()
        problems = [*self._problems, *([problem] if problem else [])]
        stacks = self._stacks.finish()
        dumps = self._recorders.finish() if self._recorders else {}
        found = [self._of_rank(end, stacks, dumps) for end in self._ranks]
        first, state = self._ranks[0].process, self._attempt.state
        seconds = round(time.monotonic() - self._began, 3)
        taken = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        record = HostEvidence(
            first.host, state.reason, taken, seconds, tuple(found), devices, tuple(problems)
        )
        path = ""
        try:
            path = run_files.write(self._run_dir, self._name, to_json(record) + b"\n")
        except OSError as error:
            problems.append(f"{self._name} cannot be written: {run_files.reason(error)}")
        stacked = sum(bool(one.stack) for one in found)
        dumped = sum(bool(one.recorder) for one in found)
        self._done(EvidenceNote(first.host, path, seconds, stacked, dumped, tuple(problems)))

    def _of_rank(
        self, end: RankEnd, stacks: Mapping[int, Stack], dumps: Mapping[int, tuple[str, str]]
    ) -> RankEvidence:
        rank = end.process.rank
        state, lines = self._states.get(rank), self._lines[rank]
        recorder, recorder_problem = dumps.get(rank, ("", ""))
        if state is None:
            how = end.description if end.status is not None else "ended"
            return RankEvidence(rank, 0, "", problem=how, last_lines=lines, recorder=recorder)
        stack = stacks.get(rank, Stack())
        return RankEvidence(
            rank, state.pid, state.description, stack.lines, stack.source, stack.problem, lines,
            recorder, recorder_problem,
        )  # fmt: skip


def _runs(end: RankEnd) -> bool:
    return bool(end.pid) and end.status is None


class _Stacks:
    """The stacks of the ranks; those that were taken when the hang was noticed are not taken again."""

    def __init__(
        self, attempt: Attempt, ranks: Sequence[RankEnd], states: Mapping[int, WaitState | None]
    ) -> None:
        self._known = {rank: one for rank, one in attempt.stacks.items() if rank in states and one.lines}
        logs = {end.process.rank: end.log for end in ranks}
        self._targets = {
            rank: Target(state.pid, logs[rank])
            for rank, state in states.items()
            if state is not None and rank not in self._known
        }
        writing = [rank for rank, target in self._targets.items() if writes_stacks(target.pid)]
        spied = [rank for rank in self._targets if rank not in writing]
        self._skipped = spied[_MOST_SPIES:]
        asked = [target for rank, target in self._targets.items() if rank not in self._skipped]
        self._dump = StackDump(asked, wake=attempt.state.reason == "hang")
        attempt.helpers += self._dump.helpers
        self._deadline = time.monotonic() + self._dump.seconds

    @property
    def is_complete(self) -> bool:
        """Whether all stacks are there, or the last ones are too late."""
        return self._dump.is_complete or time.monotonic() >= self._deadline

    def is_written(self, rank: int) -> bool:
        """Whether the stack of a rank is there, or the rank does not write it itself."""
        return rank not in self._targets or self._dump.is_written(self._targets[rank])

    def finish(self) -> dict[int, Stack]:
        """Return the stacks by rank."""
        found = self._dump.finish()
        late = Stack(problem=f"py-spy runs for at most {_MOST_SPIES} ranks")
        return {
            **self._known,
            **{rank: found.get(target, late) for rank, target in self._targets.items()},
        }


class _Devices:
    """The state of the devices, from npu-smi."""

    def __init__(self, attempt: Attempt) -> None:
        self._helper: Helper | None = None
        self._output = -1
        program = find_program("npu-smi", os.environ.get("PATH", os.defpath))
        if not program:
            return
        self._output = os.memfd_create("npu-smi")
        try:
            self._helper = spawn([program, "info"], stdout=self._output, stderr=self._output)
        except OSError:
            os.close(self._output)
            return
        attempt.helpers.append(self._helper)

    @property
    def is_complete(self) -> bool:
        """Whether npu-smi has ended, or was not found."""
        return self._helper is None or self._helper.ended()

    def finish(self) -> tuple[tuple[str, ...], str]:
        """Return the lines of npu-smi, and what is wrong, "" if nothing is."""
        if self._helper is None:
            return (), ""
        has_ended = self._helper.ended()
        self._helper.end()
        os.lseek(self._output, 0, os.SEEK_SET)
        text = os.read(self._output, _LARGEST_OUTPUT).decode(errors="replace")
        os.close(self._output)
        if not has_ended:
            return (), "npu-smi has not answered in time"
        lines = tuple(line.rstrip() for line in text.split("\n")[:_MOST_DEVICE_LINES])
        return lines, f"npu-smi exited with {self._helper.code}" if self._helper.code else ""


class RecorderDumps:
    """The dumps of some ranks' flight recorders, while they are being written.

    A thread of the rank's Python writes the dump (``rank_site.hccl_tools_recorder``); of torch_npu soon after
    that again with the stack frames of the calls, for which torch needs a second or two. torch_npu's own
    thread, which reads a pipe, is asked where that one does not answer: the interpreter may be blocked.
    """

    def __init__(
        self,
        run_dir: str,
        pids: Mapping[int, int],
        descendants: Callable[[], Sequence[Status]],
        restart: int,
        with_frames: bool,
    ) -> None:
        """Find the ranks that can be asked.

        ``pids`` has the process of each rank that runs, ``restart`` is the number of this start of the job.
        The dumps are complete without frames unless ``with_frames``.
        """
        self._with_frames = with_frames
        self._run_dir, self._began = run_dir, time.monotonic()
        self._names = {rank: names.generation(names.recorder_dump(rank), restart) for rank in pids}
        self._problems: dict[int, str] = {}
        self._before: dict[int, object] = {}
        self._targets: dict[int, int] = {}
        self._asked: dict[int, float] = {}
        self._piped: dict[int, object] = {}
        self._is_pipe_used = False
        processes = descendants() if pids else ()
        for rank, pid in pids.items():
            target = _handler(pid, processes)
            if not target:
                self._problems[rank] = _NO_HANDLER
                continue
            self._before[rank] = self._identity(self._names[rank])
            self._targets[rank] = target

    def ask(self, has_stack: Callable[[int], bool]) -> None:
        """Request the dumps of the ranks that have written their stack, again until they answer.

        faulthandler does nothing for a signal that arrives while it handles another one. A rank whose stack
        is late may not write one; it is asked as well.
        """
        now = time.monotonic()
        is_late = now > self._began + _STACK_SECONDS
        for rank, target in self._targets.items():
            is_due = now > self._asked.get(rank, 0.0) + _AGAIN_SECONDS
            if is_due and not self._has_written(rank) and (is_late or has_stack(rank)):
                self._asked[rank] = now
                with suppress(ProcessLookupError, PermissionError):
                    linux.signal_main_thread(target, stack_dump.RECORDER_SIGNAL)

    @property
    def is_complete(self) -> bool:
        """Whether all dumps have been written, or the last ones will not be."""
        missing = [rank for rank in self._before if not self._is_final(rank)]
        if missing and not self._is_pipe_used and time.monotonic() > self._began + _PIPE_AFTER:
            self._is_pipe_used = True
            for rank in missing:
                self._use_pipe(rank)
        if not missing or self._piped or time.monotonic() < self._began + _ANSWER_SECONDS:
            return not missing
        # On a loaded machine the thread needs longer; it does not answer if its process is ending.
        return not any(_catches(self._targets[rank]) for rank in missing)

    def finish(self) -> dict[int, tuple[str, str]]:
        """Return the name of the file of each rank, "" if it has none, and why."""
        found = {rank: ("", problem) for rank, problem in self._problems.items()}
        for rank in self._before:
            if not self._has_written(rank):
                found[rank] = ("", _NO_ANSWER)
            elif self._identity(self._names[rank]) == self._before[rank]:
                found[rank] = (names.pipe_dump(rank), "")
            else:
                problem = self._problem(self._names[rank])
                found[rank] = ("", problem) if problem else (self._names[rank], "")
        return found

    def _is_final(self, rank: int) -> bool:
        if not self._has_written(rank):
            return False
        if not self._with_frames or time.monotonic() > self._began + _FRAMES_SECONDS:
            return True
        is_of_pipe = self._identity(self._names[rank]) == self._before[rank]
        return is_of_pipe or self._ends(rank)

    def _ends(self, rank: int) -> bool:
        """Return whether a dump has its last key: no other one follows."""
        try:
            with open(run_files.open_read(os.path.join(self._run_dir, self._names[rank])), "rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - len(_FINAL)))
                return file.read() == _FINAL
        except OSError:
            return False

    def _has_written(self, rank: int) -> bool:
        if self._identity(self._names[rank]) != self._before[rank]:
            return True
        return rank in self._piped and self._identity(names.pipe_dump(rank)) != self._piped[rank]

    def _identity(self, name: str) -> object:
        about = run_files.status(os.path.join(self._run_dir, name))
        return about and (about.st_ino, about.st_mtime_ns, about.st_size)

    def _use_pipe(self, rank: int) -> None:
        """Ask torch_npu's own thread, if it has made its pipe."""
        with suppress(OSError):
            with run_files.opened(self._run_dir) as folder:
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
                pipe = os.open(f"{names.pipe_dump(rank)}.pipe", flags, dir_fd=folder.descriptor)
            try:
                before = self._identity(names.pipe_dump(rank))
                os.write(pipe, b"1")
                self._piped[rank] = before
            finally:
                os.close(pipe)

    def _problem(self, name: str) -> str:
        """Return why a rank has no dump, as its thread has written it; "" if it has one."""
        try:
            with run_files.opened(self._run_dir) as folder:
                data = folder.read(name, _LARGEST_PROBLEM + 1)
                if len(data) > _LARGEST_PROBLEM or not data.startswith(b'{"problem"'):
                    return ""
                folder.unlink(name)
            return str(json.loads(data)["problem"])
        except (OSError, ValueError, KeyError):
            return ""


def _handler(pid: int, processes: Sequence[Status]) -> int:
    """Return the process of a rank that handles the signal, its own or the first one below it; 0: none."""
    family = {pid}
    for one in processes:  # Parents come first.
        if one.pid in family or one.parent in family:
            family.add(one.pid)
    ordered = [pid, *(one.pid for one in processes if one.pid in family and one.pid != pid)]
    return next((one for one in ordered if _catches(one)), 0)


def _catches(pid: int) -> bool:
    return wait_state.catches(pid, stack_dump.RECORDER_SIGNAL)
