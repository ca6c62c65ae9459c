"""The facts of many hosts, brought to one: by ``mpirun`` over ssh and mpi4py, or by Slurm's ``srun``.

``across`` starts one small process per host and collects; ``member`` is that process; ``inside`` takes part
where ``mpirun`` or ``srun`` has started us already. What travels is JSON (``wire``), an error too.
"""
