"""A low limit on open files (``ulimit -n``) is raised where that is possible, and else does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.jobs import sh

if TYPE_CHECKING:
    from tests.support.jobs import Jobs

RANKS = 60


def under(limit: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", f'{limit}; exec "$@"', "sh")


def test_a_low_limit_is_raised_and_ranks_get_it_back(jobs: Jobs) -> None:
    code, job = jobs.run(*[sh("ulimit -Sn")] * RANKS, prefix=under("ulimit -Sn 40"), tail="all")

    assert code == 0, job.err
    assert [job.log(rank) for rank in range(RANKS)] == ["40\n"] * RANKS
    assert sorted(job.out.splitlines()) == sorted(f"[rank {rank}] 40" for rank in range(RANKS))


def test_ranks_start_where_no_more_files_may_be_open(jobs: Jobs) -> None:
    ranks = [sh("echo $RANK_ID")] * RANKS

    code, job = jobs.run(*ranks, prefix=under("ulimit -n 30"), tail="all")

    assert code == 0, job.err
    assert [job.log(rank) for rank in range(RANKS)] == [f"{rank}\n" for rank in range(RANKS)]
    assert "because no more files may be open (`ulimit -n` is 30)" in job.err
    assert "[rank 0] 0" in job.out.splitlines()


def test_a_failure_is_reported_where_no_more_files_may_be_open(jobs: Jobs) -> None:
    ranks = [sh("exec sleep 300")] * RANKS

    code, job = jobs.run(*ranks, sh("sleep 0.5; echo why; exit 3"), prefix=under("ulimit -n 30"), tail="all")

    assert code == 3
    assert f"rank {RANKS} failed first: exit code 3" in job.err
    assert "    | why" in job.err
    assert not job.living()
    assert all(end["signal"] == "SIGTERM" for end in job.report["consequences"])
