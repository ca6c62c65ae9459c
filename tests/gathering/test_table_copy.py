"""What runs on a host to look at a file, and to write the table there."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.errors import WriteError
from hccl_tools.gathering import table_copy
from hccl_tools.gathering.messages import SurveyAnswer, SurveyTask
from hccl_tools.gathering.table_copy import CopyRequest, FileState, handle, pack, unpack

if TYPE_CHECKING:
    from pathlib import Path

DATA = b'{"version": "1.0"}'


def request(path: Path, **fields: object) -> CopyRequest:
    made = CopyRequest(str(path), hashlib.sha256(DATA).hexdigest(), pack(DATA), write=True)
    return made._replace(**fields)  # type: ignore[arg-type]


@given(st.binary(max_size=2000))
def test_what_was_packed_is_unpacked(data: bytes) -> None:
    assert unpack(pack(data)) == data
    assert pack(data).isascii()


@pytest.mark.parametrize("text", ["x", "eA==", pack(DATA)[:-12]])
def test_damaged_contents_are_not_written(tmp_path: Path, text: str) -> None:
    with pytest.raises((ValueError, WriteError)):
        handle(request(tmp_path / "table.json", content=text))

    assert list(tmp_path.iterdir()) == []


def test_a_task_and_an_answer_survive_the_way(tmp_path: Path) -> None:
    task = SurveyTask("node1", request=request(tmp_path / "t", replaceable=("a",)))
    answer = SurveyAnswer("node1", file=FileState("file", "00", 0o640, pack(DATA), written=True))

    assert SurveyTask.from_json(task.to_json()) == task
    assert SurveyAnswer.from_json(answer.to_json(), "node1") == answer
    assert not answer.has_failed


@pytest.mark.parametrize("failing", ["fsync", "link"])
def test_an_interruption_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def interrupt(*_args: object, **_folders: object) -> None:
        raise SystemExit(143)  # as SIGTERM does

    monkeypatch.setattr(os, failing, interrupt)

    with pytest.raises(SystemExit):
        handle(request(tmp_path / "table.json"))

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.json"
    link = os.link

    def late(source: str, target: str, **folders: Any) -> None:
        path.write_text("another program's")
        link(source, target, **folders)

    monkeypatch.setattr(os, "link", late)

    with pytest.raises(WriteError, match="meanwhile"):
        handle(request(path))

    assert path.read_text() == "another program's"
    assert list(tmp_path.iterdir()) == [path]


def test_hosts_may_share_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.json"
    link = os.link

    def late(source: str, target: str, **folders: Any) -> None:
        path.write_bytes(DATA)
        link(source, target, **folders)

    monkeypatch.setattr(os, "link", late)

    assert not handle(request(path)).written
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [DATA]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_folders: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    assert handle(request(tmp_path / "table.json")).written
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [DATA]


def test_a_pipe_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "table.json")

    assert handle(request(tmp_path / "table.json", write=False)).kind == "special"
    with pytest.raises(WriteError, match="a device, pipe or socket"):
        handle(request(tmp_path / "table.json", force=True))


def test_a_file_that_is_exchanged_after_the_look_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.json"
    path.write_text("the old table")

    def late(text: str) -> bytes:
        path.write_text("another program's")
        return unpack(text)

    monkeypatch.setattr(table_copy, "unpack", late)

    with pytest.raises(WriteError, match="changed"):
        handle(request(path, force=True))

    assert path.read_text() == "another program's"
