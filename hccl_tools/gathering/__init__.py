"""Collect the facts of many hosts on one host: with ``mpirun`` over ssh and mpi4py, or with Slurm's ``srun``.

``coordinator`` starts one ``worker`` per host and collects their answers; ``within_job`` does so if
``mpirun`` or ``srun`` has already started a process per host. The messages are JSON (``messages``).
"""
