"""Another user exchanges a folder of logs for a link to a folder of this user, while commands read it."""

from __future__ import annotations

import subprocess
import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.runs.test_runs_of_other_users import RUN, tools
from tests.support.jobs import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.strangers import Stranger

pytestmark = [pytest.mark.bed, pytest.mark.slow]

#: Exchanges two names until its standard input ends.
EXCHANGE = """\
import ctypes, select, sys
one, other = (name.encode() for name in sys.argv[1:])
rename = ctypes.CDLL(None).renameat2
AT_FDCWD, RENAME_EXCHANGE = -100, 2
print(flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    assert rename(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0
"""
#: Each command is tried so often: most tries met an exchange before links were followed safely.
TRIES = 12


@contextmanager
def exchanged(stranger: Stranger, one: Path, other: Path) -> Iterator[None]:
    with subprocess.Popen(
        [stranger.interpreter, "-c", EXCHANGE, str(one), str(other)], user=stranger.user, group=stranger.user,
        extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        program.stdout.readline()
        yield
        program.communicate(timeout=LONG)


@pytest.mark.parametrize(
    "words", [["explain"], ["explain", "--bundle"], ["logs"], ["validate"]], ids=" ".join
)
def test_no_folder_of_this_user_is_listed(stranger: Stranger, words: list[str]) -> None:
    private = stranger.folder / "private"
    private.mkdir(mode=0o700)
    (private / "rank_77.log").write_text("RuntimeError: precious\n")
    stranger.python(
        "import os, sys\nos.makedirs('attack/t')\nopen('attack/t/rank_0.log', 'w').write('RuntimeError: lost')\n"
        "os.symlink(sys.argv[1], 'attack/link')",
        str(private),
    )
    there = stranger.folder / "attack"
    typed = there / "t" / "rank_0.log" if words == ["validate"] else there / "t"
    with exchanged(stranger, there / "t", there / "link"):
        for number in range(TRIES):
            more = [str(stranger.folder / f"{number}.tgz")] if words[1:] else []
            done = tools(stranger, 0, words[0], str(typed), *words[1:], *more)
            shown = done.stdout + done.stderr
            assert "Traceback" not in shown, shown
            # A typed file that is missing by now gets a similar name of the folder, on this user's own screen.
            assert words == ["validate"] or "rank_77" not in shown, shown
            assert "precious" not in shown, shown


def test_runs_of_another_user_that_are_exchanged_name_no_file_of_this_user(stranger: Stranger) -> None:
    """Between the two looks at a directory, it is one of this user, in which the plan may name any log."""
    private = stranger.folder / "private"
    private.mkdir(mode=0o700)
    (private / "secret.log").write_text("RuntimeError: precious\n")
    for name in ("a", "b"):
        (private / name).mkdir()
        (private / name / "plan.json").write_text("{}")
    there = stranger.folder / "attack"
    stranger.python("import os\nos.mkdir('attack', 0o755)\nos.mkdir('attack/x', 0o755)")
    for name in ("a", "b"):
        stranger.python(RUN, str(there / "x" / name), str(private / "secret.log"), "0")
    stranger.python("import os, sys\nos.symlink(sys.argv[1], 'attack/link')", str(private))
    shown = tools(stranger, 0, "explain", *(str(there / "x" / name) for name in ("a", "b"))).stderr
    assert shown.count(" of nobody (") == 2, shown
    with exchanged(stranger, there / "x", there / "link"):
        for number in range(2 * TRIES):
            bundle = stranger.folder / f"{number}.tgz"
            runs = [str(there / "x" / name) for name in ("a", "b")]
            done = tools(stranger, 0, "explain", *runs, "--bundle", str(bundle))
            assert "Traceback" not in done.stderr, done.stderr
            assert "precious" not in done.stdout, done.stdout
            if bundle.exists():
                with tarfile.open(bundle) as packed:
                    names = packed.getnames()
                assert not [name for name in names if "secret" in name], names
