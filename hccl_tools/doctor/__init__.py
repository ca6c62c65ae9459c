"""Judge machines: the checks, their findings, and the output of ``hccl-tools doctor``."""
