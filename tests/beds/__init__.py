"""Test beds: real hosts and a real scheduler, made on one machine and removed again.

A bed that cannot be made here leaves its tests out with its name and the reason. With
HCCL_TOOLS_REQUIRE_BEDS=1, as in CI, that is a failure instead (``tests/conftest.py`` turns it into one).
"""
