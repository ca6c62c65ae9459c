"""Fixtures of the tests of rules."""

from tests.support.commands import command_line

__all__ = ["command_line"]
