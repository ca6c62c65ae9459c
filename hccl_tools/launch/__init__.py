"""Start one process per rank of a job, supervise these processes, and report how the job ended."""
