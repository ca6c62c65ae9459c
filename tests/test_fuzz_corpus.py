"""Inputs that were found by fuzzing, and sound ones, are read or refused by every reader.

``make fuzz`` searches for more.
"""

from __future__ import annotations

import time

import pytest

from tests.support import fuzz_targets

#: CPU seconds for an input of at most 16 KB, on a machine that does other work.
_MOST_SECONDS = 3.0


def _kept() -> list[tuple[str, str]]:
    return [(folder.parent.name, folder.name) for folder in sorted(fuzz_targets.CORPUS.glob("*/*"))]


@pytest.mark.parametrize(("target", "name"), _kept(), ids=lambda text: text)
def test_kept_input(target: str, name: str) -> None:
    data = (fuzz_targets.CORPUS / target / name).read_bytes()
    began = time.process_time()

    fuzz_targets.give(fuzz_targets.readers()[target], data)

    assert time.process_time() - began < _MOST_SECONDS


def test_each_target_has_sound_inputs_to_begin_with() -> None:
    assert [name for name in fuzz_targets.readers() if not fuzz_targets.seeds(name)] == []
