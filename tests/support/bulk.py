"""One test for hundreds of small cases, each of which costs less than an item of pytest does."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Case = TypeVar("Case")
Fixtures = ParamSpec("Fixtures")


def for_each(
    cases: Iterable[Case], name: Callable[[Case], str]
) -> Callable[[Callable[Concatenate[Case, Fixtures], None]], Callable[Fixtures, None]]:
    """Call a test for all cases, which are its first argument; it fails with the names of all that failed."""
    collected = list(cases)
    assert collected

    def decorate(check: Callable[Concatenate[Case, Fixtures], None]) -> Callable[Fixtures, None]:
        def failure(case: Case, *args: Fixtures.args, **fixtures: Fixtures.kwargs) -> Exception | None:
            try:
                check(case, *args, **fixtures)
            except Exception as error:  # noqa: BLE001  (raised below, with the others)
                return error
            return None

        @wraps(check)
        def test(*args: Fixtures.args, **fixtures: Fixtures.kwargs) -> None:
            errors = [(name(case), failure(case, *args, **fixtures)) for case in collected]
            if failed := {case: error for case, error in errors if error is not None}:
                told = "\n".join(f"{case}: {error!r}" for case, error in failed.items())
                first = next(iter(failed.values()))
                raise AssertionError(f"{len(failed)} of {len(collected)} cases failed\n{told}") from first

        del test.__wrapped__  # pytest would ask for a fixture of each of its arguments
        signature = inspect.signature(check)
        arguments = list(signature.parameters.values())[1:]
        test.__signature__ = signature.replace(parameters=arguments)  # type: ignore[attr-defined]
        return test

    return decorate
