"""What hosts, peers and other users can send or write, and the commands that read it.

Each target has sound values, which ``tests.support.mutations`` changes, and a function that reads a changed
text the way a command does. It returns what was printed and which scripts were written; it raises only
errors of hccl-tools.
"""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

from hccl_tools.explain import remote_logs
from hccl_tools.gathering import over_connections
from hccl_tools.gathering.engine_run import EngineOutcome
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.gathering.table_copy import FileState
from hccl_tools.host.observation import (
    DeviceProcess,
    Observation,
    ObservationRequest,
    PingObservation,
    PortUse,
    Unknown,
)
from hccl_tools.host.observing import observe
from hccl_tools.host.site_defaults import Site
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.launch import stacks
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.rank_messages import Ended, EndedByEngine, Join, RankExit
from hccl_tools.launch.protocol import messages
from hccl_tools.launch.protocol.session import Session
from hccl_tools.launch.stacks import RankStack
from hccl_tools.notation.printable import escaped
from hccl_tools.processes import run_files
from hccl_tools.records import plain, plain_tagged
from hccl_tools.runs import remote, run_processes
from hccl_tools.runs.evidence import EvidenceNote
from hccl_tools.runs.job_report import HungRank, RankFailure
from hccl_tools.runs.remote import Answer
from tests.support.commands import run_here
from tests.support.hosts import make_host
from tests.support.mutations import unquoted
from tests.support.pictures import doctored, explained, record
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


FORMATS = ("text", "concise", "json", "junit", "github", "sarif")
EMITTED = ("rank_loop", "mpirun", "slurm", "msrun", "torchrun", "xllm", "mindie")
KEY = b"k" * 32
_VARIABLES = {
    "HCCL_CONNECT_TIMEOUT": "600",
    "HCCL_EXEC_TIMEOUT": "1800",
    "ASCEND_RT_VISIBLE_DEVICES": "0,1",
    "RANK_TABLE_FILE": "/a",
    "RANKTABLEFILE": "/a",
}


class Written(NamedTuple):
    """What a command printed, its exit code, and the scripts that it wrote."""

    text: str
    code: int = 0
    scripts: tuple[str, ...] = ()


class Target(NamedTuple):
    """One kind of input: its sound values, and what reads a changed one, the ``turn``-th, in a folder."""

    name: str
    seeds: list[Any]
    read: Callable[[str, int, Path], Written]


def problem(written: Written) -> str | None:
    """Return what is wrong with what a command wrote, None if nothing is."""
    for char in set(written.text):
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char not in "\n\t":
            at = written.text.index(char)
            return f"a control character is printed: {written.text[max(0, at - 60) : at + 40]!r}"
    if written.code not in {0, 1, 2, 125}:  # 125: `launch` was refused
        return f"exit code {written.code}: {written.text[-300:]}"
    for script in written.scripts:
        if (line := unquoted(script)) is not None:
            return f"not quoted in a script: {line!r}"
    return None


def command(*args: str, folder: Path) -> Written:
    """Run a command in this process, with no other program on PATH."""
    environ = {"PATH": str(folder / "bin"), "HOME": str(folder)}
    with (
        mock.patch.object(run_processes, "members", list),
        directly_written() as lines,
    ):  # no jobs of other tests
        done = run_here(*args, environ=environ, folder=folder)
    return Written(done.stdout + done.stderr + "".join(lines), done.returncode)


@contextmanager
def directly_written() -> Iterator[list[str]]:
    """Collect what is written to descriptor 1, as ``logs`` does."""
    lines: list[str] = []
    before, collected = os.dup(1), os.memfd_create("stdout")
    os.dup2(collected, 1)
    try:
        yield lines
    finally:
        os.dup2(before, 1)
        os.close(before)
        os.lseek(collected, 0, os.SEEK_SET)
        lines.append(os.read(collected, 1 << 24).decode(errors="replace"))
        os.close(collected)


@contextmanager
def answering(answers: dict[str, SurveyAnswer]) -> Iterator[None]:
    """Let hosts give these answers in place of ssh."""

    def ask(hosts: list[str], *_: Any) -> EngineOutcome:
        return EngineOutcome({host: answers[host] for host in hosts}, [])

    with mock.patch.object(over_connections, "survey", ask):
        yield


def _facts(product: str, number: int) -> SurveyAnswer:
    facts = survey(SurveyRequest(simulate=f"{product}:{number}"))
    return SurveyAnswer(f"h{number}", facts._replace(server_id=f"10.0.0.{number}"))


def _read_facts(text: str, turn: int, folder: Path) -> Written:
    answer = SurveyAnswer.from_json(text, "h1")
    product = answer.facts.product if answer.facts is not None else "a2"
    others = {"h1": answer, "h2": _facts(product if product in {"a2", "a3", "a5"} else "a2", 2)}
    options = ["--allow-missing", "--force", "-o", "t.json", "--hosts", "h1,h2", "--engine", "ssh"]
    (folder / "t.json").unlink(missing_ok=True)
    with answering(others):
        made = command("gen", *options, folder=folder)
    if not (folder / "t.json").exists() or turn % 5:
        return made
    emitted = EMITTED[turn // 5 % len(EMITTED)]
    launch = ["launch", "--rank-table", "t.json", "--product", product, "--emit", emitted, "--no-local-check"]
    launch += ["train.py"]
    script = command(*launch, folder=folder)
    return Written(made.text + script.text, max(made.code, script.code), (script.text,))


def _read_observation(text: str, turn: int, folder: Path) -> Written:
    answers = {"h1": SurveyAnswer.from_json(text, "h1"), "h2": SurveyAnswer("h2", seen=Observation())}
    options = ["--hosts", "h1,h2", "--engine", "ssh", "--strict", "-f", FORMATS[turn % len(FORMATS)]]
    shutil.rmtree(folder / "remedies", ignore_errors=True)
    target = ("mindspore", "torch", "mindie")[turn % 3]
    job = ["job.json", "--target", target] if turn % 2 else []
    with answering(answers):
        done = command("doctor", *job, *options, "--emit-remedies", "remedies", folder=folder)
    scripts = [path.read_text() for path in (folder / "remedies").glob("*")]
    return done._replace(scripts=tuple(scripts))


def _read_file_state(text: str, turn: int, folder: Path) -> Written:
    answers = {"h1": SurveyAnswer.from_json(text, "h1"), "h2": SurveyAnswer("h2", file=FileState("none"))}
    options = ["--write"] * (turn % 2) + ["--force"] * (turn % 4 == 1)
    with answering(answers):
        return command("distribute", "job.json", "h1,h2", "--engine", "ssh", *options, folder=folder)


class _Sent:
    """A connection to a host that has sent its answer."""

    def __init__(self, data: bytes) -> None:
        self._data, self.ended, self.error, self.received = data, False, None, 0

    def read(self, *, last: bool) -> bytes:
        del last
        self.ended = True
        data, self._data = self._data, b""
        return data

    def close(self) -> None:
        pass


def _read_host_logs(text: str, turn: int, folder: Path) -> Written:
    sent = _Sent(text.encode(errors="surrogatepass"))
    with mock.patch.object(remote, "run_there", return_value=sent):
        return command("explain", str(folder / "elsewhere"), *["-f", "json"] * (turn % 2), folder=folder)


def _read_stacks(text: str, turn: int, _folder: Path) -> Written:
    found = stacks._of_host("h1", Answer(text.encode(errors="surrogatepass")), [0, 1])
    return Written(stacks.as_json("run", found) if turn % 2 else stacks.as_text(found))


_COMMANDS = (
    ["jobs"],
    ["jobs", "-f", "json"],
    ["explain"],
    ["explain", "-f", "json"],
    ["logs"],
    ["logs", "--rank", "1"],
    ["stop"],
    ["stacks"],
    ["explain", "--bundle", "b.tar.gz"],
)


def _reads_file_of_run(name: str) -> Callable[[str, int, Path], Written]:
    def read(text: str, turn: int, folder: Path) -> Written:
        run = folder / "log" / "changed"
        run_files.release(str(run))
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(folder / "sound", run)
        (run / name).write_bytes(text.encode(errors="surrogatepass"))
        words, *options = _COMMANDS[turn % len(_COMMANDS)]
        where = [] if words == "jobs" else [str(run)]
        (folder / "b.tar.gz").unlink(missing_ok=True)
        return command(words, *options, *where, folder=folder)

    return read


def _reads_result(option: str) -> Callable[[str, int, Path], Written]:
    def read(text: str, turn: int, folder: Path) -> Written:
        (folder / "result.json").write_bytes(text.encode(errors="surrogatepass"))
        form = ("svg", "html")[turn % 2]
        return command("show", "job.json", "-f", form, option, "result.json", folder=folder)

    return read


def _read_message(text: str, _turn: int, _folder: Path) -> Written:
    return Written(repr(messages.from_bytes(text.encode(errors="surrogatepass"))))


def _read_frame(text: str, turn: int, _folder: Path) -> Written:
    """Give a frame to a session that waits for it: as the first, the answer, the proof, or a message."""
    listens, keyed, opened = turn % 2 == 0, turn % 3 == 0, turn % 4 == 3
    here = Session(KEY if keyed else b"", listens=listens, dialled=("10.0.0.1", 60000))
    there = Session(KEY if keyed else b"", listens=not listens, dialled=("10.0.0.1", 60000))
    if opened:
        for _ in range(3):
            for one, other in ((here, there), (there, here)):
                other.receive(_taken(one))
    content = text.encode(errors="surrogatepass")
    here.receive(len(content).to_bytes(4, "big") + content)
    return Written(escaped(repr(here.problem)))


def _observations(folder: Path) -> list[Any]:
    """Return what a host with eight devices answers to doctor, with ports, processes and pings."""
    host = make_host(folder / "host", nodes=range(8))
    site = Site(environ={"PATH": f"{host.bin}:/usr/bin:/bin", "HCCL_TOOLS_ROOT": str(host.root)})
    request = ObservationRequest(
        tuple(range(8)),
        ("10.0.0.1",),
        ports=(60001,),
        table=str(folder / "job.json"),
        code=(str(folder / "train.py"),),
    )
    seen = observe(request, site)
    seen = seen._replace(
        hccl_ports=(PortUse(60000, True, 77, "python"),),
        processes=(DeviceProcess(88, 0, "python", "user", 100),),
        pings=(PingObservation(0, "192.168.1.2", 3, 1),),
        unknown=(Unknown("the way", "no answer"),),
        problems=("a sentence",),
        variables={**seen.variables, "HCCL_IF_IP": "10.0.0.1", **_VARIABLES},
    )
    return [json.loads(SurveyAnswer("h1", seen=seen).to_json())]


def _messages() -> list[Any]:
    hung = HungRank(1, "rank 1", "h1", 1, False, 3.0, None, "D", "read", "a", ["x.py:1 in f"], False)
    failure = RankFailure(
        3, "rank 3", "h1", 3, 77, 1, None, "exited with 1", 2.0, hints=["h"], last_lines=["l"]
    )
    cause = Cause("h1", "failed", 1, "rank 3 failed", 0, failure, (hung,))
    note = EvidenceNote("h1", "/run/evidence_0.json", 0.5, 1, 1, ("late",))
    end = RankExit(3, 1234, 9, 1.5, was_terminated=False, log="rank_3.log")
    return [
        plain_tagged(one)
        for one in (
            Join(1, 5, ("h1", 4), "n1", "/run"),
            messages.Ready(0, {"0": "x"}),
            EndedByEngine(),
            messages.Waiting(("h1",), 0, 3.0, ("note",)),
            messages.Refused("why", 0),
            messages.Start(0, {1: "/run"}),
            messages.Ending(cause, 0),
            Ended((end,), cause, (hung,), 0, (note,)),
            messages.End(cause, 2, 0),
            messages.Kill(0),
            messages.Heard(0),
            messages.Release(0),
            messages.Leave("why"),
        )
    ]


def _taken(session: Session) -> bytes:
    data = bytes(session.outgoing)
    session.outgoing.clear()
    return data


def _frames() -> list[Any]:
    listener = Session(KEY, listens=True)
    connecting = Session(KEY, listens=False, dialled=("10.0.0.1", 60000))
    frames = []
    for one, other in ((listener, connecting), (connecting, listener), (listener, connecting)):
        data = _taken(one)
        frames.append(json.loads(data[4:]))
        other.receive(data)
    return [*frames, {"refused": "key"}, {"refused": "elsewhere"}]


def _host_logs() -> list[Any]:
    fields = {"ip": "10.0.0.2", "port": "16666"}
    logs = remote_logs.HostLogs(
        (
            remote_logs.FoundLog("/log/rank_1.log", 1, "77", "g"),
            remote_logs.FoundLog("/log/plog", None, "", ""),
        ),
        (
            remote_logs.FoundEvent(
                *("HCM001", fields, ("EI0006",), 0, 12, 1_790_000_000.0, "77", 1, "timeout"),
                *(None, None, "python3", False),
            ),
            remote_logs.FoundEvent("HCM217", {}, (), 1, 3, None, "", None, "text", 1.0, 2.0, "", True),
        ),
        ("a note",),
    )
    return [plain(logs)]


def make_folder(folder: Path) -> None:
    """Make what the commands of the targets read: a table, and a run that has failed on two hosts."""
    (folder / "bin").mkdir()
    (folder / "log").mkdir()
    (folder / "train.py").touch()
    (folder / "job.json").write_text(json.dumps(table("1.0", 2, 8)))
    sound = folder / "sound"
    sound.mkdir(mode=0o700)
    plan, report = saved_run()
    (sound / "plan.json").write_text(json.dumps(plan))
    (sound / "report.json").write_text(json.dumps(report))
    (sound / "launcher").write_text(f"1\n{os.uname().nodename}\n1790000000.5\nlaunch\n5\n")
    (sound / "rank_0.log").write_text("epoch 1\n[ERROR] the end\n")
    (sound / "rank_1.log").write_text("Traceback (most recent call last):\nValueError: x\n")
    shutil.copytree(sound, folder / "elsewhere")
    for process in plan["processes"][1:]:
        process["host"], process["here"] = "h1", False
    (folder / "elsewhere" / "plan.json").write_text(json.dumps(plan))
    (folder / "elsewhere" / "rank_1.log").unlink()


def saved_run() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return plan.json and report.json of a job of two ranks, the second of which failed."""
    processes = [
        {
            "name": f"rank {rank}",
            "rank": rank,
            "host": "127.0.0.1",
            "server_index": 0,
            "here": True,
            "device": rank,
            "device_id": rank,
            "log": f"rank_{rank}.log",
            "cores": None,
            "argv": ["python", "train.py"],
            "environment": {"RANK_ID": str(rank)},
        }
        for rank in range(2)
    ]
    plan = {
        "schema_version": 1,
        "start": "table",
        "engine": "local",
        "cpu": True,
        "world_size": 2,
        "hosts": ["127.0.0.1"],
        "meeting": None,
        "run_dir": "x",
        "chosen": {"start": "why"},
        "notes": ["n"],
        "command": [],
        "slurm_job": "77",
        "processes": processes,
    }
    failure = RankFailure(
        1,
        "rank 1",
        "127.0.0.1",
        1,
        77,
        3,
        None,
        "exited with 3",
        2.0,
        log="rank_1.log",
        hints=["look"],
        hccl_codes=["EI0006"],
        traceback=["ValueError: x"],
        last_lines=["ValueError: x"],
    )
    end = {key: value for key, value in plain(failure).items() if key not in {"hints", "traceback"}}
    hung = {"rank": 0, "name": "rank 0", "host": "127.0.0.1", "is_first": True, "idle": 5.0}
    report = {
        "schema_version": 1,
        "exit_code": 3,
        "reason": "failed",
        "detail": None,
        "signal": None,
        "began_on": None,
        "duration": 2.5,
        "restarts": 0,
        "replaced": [],
        "run_dir": "x",
        "first_failure": plain(failure),
        "hung": [hung],
        "consequences": [],
        "stuck": [],
        "ranks": [{**end, "rank": 0}, end],
        "warnings": [],
    }
    return plan, report


def targets(folder: Path) -> list[Target]:
    """Return all kinds of inputs; ``make_folder`` has made the folder."""
    plan, report = saved_run()
    hang = {
        **report,
        "first_failure": None,
        "reason": "hang",
        "detail": "no rank made progress",
        "exit_code": 124,
    }
    stacks = [
        plain(
            (RankStack(0, "h1", 7, "sleeping", ("f.py:1 in g",), "py-spy"), RankStack(1, "h1", problem="p"))
        )
    ]
    diagnosis = doctored(
        {
            "check": "HCD202",
            "hosts": ["10.0.0.1"],
            "devices": [3],
            "message": "DOWN",
            "place": "p",
            "consequence": "stops",
            "not_examined": False,
        }
    )
    return [
        Target(
            "facts for gen",
            [json.loads(_facts(name, 1).to_json()) for name in ("a2", "a3", "a5")],
            _read_facts,
        ),
        Target("observations for doctor", _observations(folder), _read_observation),
        Target(
            "files for distribute",
            [
                json.loads(SurveyAnswer("h1", file=one).to_json())
                for one in (FileState("file", "0" * 64, 0o640), FileState("link"))
            ],
            _read_file_state,
        ),
        Target("logs for explain", _host_logs(), _read_host_logs),
        Target("stacks", stacks, _read_stacks),
        Target("plan.json", [plan], _reads_file_of_run("plan.json")),
        Target("report.json", [report, hang], _reads_file_of_run("report.json")),
        Target("run_dirs.json", [{"h1": "/log/a", "h2": "/log/b"}], _reads_file_of_run("run_dirs.json")),
        Target("hosts.jsonl", [{"host": "127.0.0.1", "node": "n1"}], _reads_file_of_run("hosts.jsonl")),
        Target("results of doctor", [diagnosis], _reads_result("--doctor")),
        Target("results of explain", [explained([record(3, "Rank 3: lost.")])], _reads_result("--explain")),
        Target("messages of the protocol", _messages(), _read_message),
        Target("frames of the handshake", _frames() + _messages(), _read_frame),
    ]
