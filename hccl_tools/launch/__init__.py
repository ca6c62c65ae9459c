"""Start one process per rank of a job, supervise them, and report how it ended."""
