"""Whatever a log contains, the answer follows its schema and comes in time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.explain import explaining, ranks_from_logs, sources
from hccl_tools.explain.answer import text
from hccl_tools.explain.as_json import as_json
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.formats.schema import schema_text

SCHEMA = jsonschema.Draft202012Validator(json.loads(schema_text("explain")))
EXAMPLES = [message.example for message in messages().values() if message.example]
NAMES = ["rank_0.log", "rank_1.log", "a/plog/plog-7_1.log", "b/plog/plog-7_1.log", "worker-2/screen.txt"]


def numbers_changed(line: str, numbers: list[str]) -> str:
    """Return a line with its numbers replaced in turn."""
    turn = iter(numbers * 50)
    return re.sub(r"\d+", lambda found: next(turn, found[0]), line)


lines = st.builds(
    numbers_changed,
    st.sampled_from(EXAMPLES),
    st.lists(st.sampled_from(["0", "1", "2", "3", "7", "2026", "99999999999999"]), min_size=1, max_size=7),
) | st.sampled_from(EXAMPLES)


def answered(files: dict[str, bytes]) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        for name, data in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        logs, notes = sources.collect([folder])
        answer = explaining.explain(logs, notes=notes)
        assert list(text(answer))
        ranks_from_logs.communicators(logs)
        return as_json(answer)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(NAMES), st.lists(lines, max_size=12), min_size=1))
@settings(max_examples=2 * settings().max_examples)
def test_messages_in_any_mixture(files: dict[str, list[str]]) -> None:
    found = answered({name: "\n".join(content).encode() for name, content in files.items()})

    SCHEMA.validate(found)


@given(st.lists(lines, min_size=1, max_size=4), st.binary(max_size=200), st.integers(0, 400))
def test_lines_that_are_cut_or_mixed_with_other_bytes(content: list[str], junk: bytes, cut: int) -> None:
    data = "\n".join(content).encode()

    SCHEMA.validate(answered({"rank_0.log": data[:cut] + junk + data[cut:]}))


@pytest.mark.parametrize(
    "line",
    [
        "need connect rankNum is [99999999999]\nconnected rankinfo[LINE 0]: [0000000000000000];",
        "[LocalRank Key Info]userRank[4294967295] hostIp[a] devicePhyId[0] server[a] deviceIp[b] superPodId[] useSuperPodMode[0]",
        'TopoDetect ERROR occur !!! fault_info["Failed to connect agent[' + "99999999999," * 500 + ']"]',
    ],
)
def test_numbers_that_no_job_has(line: str) -> None:
    SCHEMA.validate(answered({"rank_0.log": f"[ERROR] HCCL {line}\n".encode()}))


@pytest.mark.slow
def test_brackets_that_are_empty() -> None:
    for example in EXAMPLES:
        for found in re.finditer(r"\[[^\[\]]*\]", example):
            line = example[: found.start()] + "[]" + example[found.end() :]

            SCHEMA.validate(answered({"rank_0.log": f"{line}\n".encode()}))
