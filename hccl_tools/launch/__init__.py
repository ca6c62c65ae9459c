"""Start one process per rank and see the job to its end; the contract is docs/launching.md."""
