"""``--preflight``, ``--no-preflight`` and ``--ignore`` of ``launch``."""

from __future__ import annotations

from typing import Any

from hccl_tools.errors import UsageError

#: The time limit for asking all hosts.
SECONDS = 60.0


def _ignored(options: dict[str, Any]) -> list[str]:
    return [one.strip() for text in options["ignore"] for one in text.split(",")]


def _is_check(selector: str) -> bool:
    return selector.upper().startswith("HCD")


def ignored_rules(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the selectors of ``--ignore`` that name rules for tables."""
    return tuple(one for one in _ignored(options) if not _is_check(one))


def ignored_checks(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the selectors of ``--ignore`` that name checks of ``doctor``."""
    return tuple(one for one in _ignored(options) if _is_check(one))


def has_gate(options: dict[str, Any]) -> bool:
    """Return whether all hosts are asked before the start."""
    return options["preflight"] == "full" or bool(options["preflight_command"])


def is_checked(options: dict[str, Any]) -> bool:
    """Return whether there are checks before the start.

    Raises:
        UsageError: Options exclude each other, or ``--ignore`` names a check that is not asked.
    """
    level, own = options["preflight"], options["preflight_command"]
    if own is not None and not own.strip():
        raise UsageError("--preflight-command is empty", hint="name a command, or leave the option out")
    if options["preflight_timeout"] is not None and not has_gate(options):
        raise UsageError(
            "--preflight-timeout is the time for asking all hosts, and none is asked",
            hint="add --preflight full or --preflight-command CMD",
        )
    if level != "full" and (checks := ignored_checks(options)):
        raise UsageError(
            f"{checks[0]} is a check of `doctor`, not a rule for tables",
            hint="add --preflight full, or leave it out",
        )
    if options["no_preflight"] and level not in {None, "none"}:
        raise UsageError(
            f"--no-preflight and --preflight {level} exclude each other", hint="leave one of them out"
        )
    return level != "none" and not options["no_preflight"]
