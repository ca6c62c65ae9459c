"""The environment variables of HCCL: which it reads, how it reads them, and which values it refuses."""
