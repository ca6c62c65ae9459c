"""Fixtures of the tests of `explain`."""

from tests.support.commands import command_line

__all__ = ["command_line"]
