"""What is measured in the log of rank 0: a time between two lines, a throughput, a metric."""

from __future__ import annotations

import re
from statistics import median
from typing import Any

from hccl_tools.codec import DecodeError, decode_as, parse
from hccl_tools.errors import UsageError
from hccl_tools.records import NamedTuple
from hccl_tools.scaling.columns import is_figure

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)


class Measures(NamedTuple):
    """What to look for; regular expressions, ``None`` for what is not measured.

    A number is the first group of the match, or the first number after it.
    """

    #: The time is that from the first line that matches ``begin`` to the last later one that matches ``end``.
    begin: str | None = None
    end: str | None = None
    #: The median of all matches counts.
    throughput: str | None = None
    #: The last match counts.
    metric: str | None = None
    #: Instead of ``metric``: a key of the last line that is a JSON object with this key.
    metric_key: str | None = None

    def check(self) -> None:
        """Refuse a pattern that is not a regular expression, and options that exclude each other.

        Raises:
            UsageError: A pattern is wrong, or --from and --to are not used together.
        """
        if (self.begin is None) != (self.end is None):
            raise UsageError("--from and --to belong together", hint="give both, or none for the whole time")
        if self.metric is not None and self.metric_key is not None:
            raise UsageError("--metric and --metric-key exclude each other")
        for name, pattern in zip(OPTIONS, self, strict=True):
            if pattern is None or name == "--metric-key":
                continue
            try:
                re.compile(pattern)
            except re.error as error:
                raise UsageError(
                    f'{name} "{pattern}" is not a regular expression: {error}',
                    hint="write a backslash before a character that is meant literally: \\( \\[ \\*",
                ) from None

    @property
    def metric_name(self) -> str:
        """The title of the metric in the report."""
        if self.metric_key is not None:
            return self.metric_key
        plain = (self.metric or "").strip(" :=")
        return plain if re.fullmatch(r"[\w /%-]{1,40}", plain) else "metric"


#: The option of each field of ``Measures``.
OPTIONS = ("--from", "--to", "--throughput", "--metric", "--metric-key")


class Observer:
    """Reads the lines of rank 0's log as they are written."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        self._patterns = {
            name: re.compile(pattern)
            for name, pattern in measures._asdict().items()
            if pattern is not None and name != "metric_key"
        }
        self._began: float | None = None
        self._ended: float | None = None
        self._speeds: list[float] = []
        self._metric: float | None = None

    @property
    def is_needed(self) -> bool:
        """Whether anything is measured in the log."""
        return any(self._measures)

    def line(self, text: str, at: float) -> None:
        """Take in one line, seen at a monotonic time in seconds."""
        if self._began is None:
            if self._matches("begin", text):
                self._began = at
        elif self._matches("end", text):
            self._ended = at
        if (speed := self._number("throughput", text)) is not None:
            self._speeds.append(speed)
        if (value := self._number("metric", text)) is not None:
            self._metric = value
        if self._measures.metric_key is not None and text.lstrip().startswith("{"):
            self._metric = _key(text, self._measures.metric_key, self._metric)

    def _matches(self, name: str, text: str) -> bool:
        pattern = self._patterns.get(name)
        return pattern is not None and pattern.search(text) is not None

    def _number(self, name: str, text: str) -> float | None:
        pattern = self._patterns.get(name)
        match = pattern.search(text) if pattern is not None else None
        if match is None:
            return None
        found = match[1] if match.re.groups else text[match.end() :]
        number = _NUMBER.search(found or "")
        value = float(number[0]) if number else None
        return value if value is not None and is_figure(value) else None

    def result(self, log: str) -> dict[str, float]:
        """Return what was measured, by the keys of a run: ``time``, ``throughput``, ``metric``.

        Raises:
            UsageError: A pattern has never matched in ``log``.
        """
        measures = self._measures
        results: dict[str, float] = {}
        if measures.begin is not None:
            if self._began is None:
                raise _never("--from", measures.begin, log)
            if self._ended is None:
                raise _never("--to", measures.end, log, " after the line of --from")
            results["time"] = round(self._ended - self._began, 3)
        if measures.throughput is not None:
            if not self._speeds:
                raise _never("--throughput", measures.throughput, log, " with a number")
            results["throughput"] = median(self._speeds)
        if measures.metric is not None or measures.metric_key is not None:
            if self._metric is None and measures.metric_key is not None:
                raise _never(
                    "--metric-key", measures.metric_key, log, " as a key of a JSON object, with a number"
                )
            if self._metric is None:
                raise _never("--metric", measures.metric, log, " with a number")
            results["metric"] = self._metric
        return results


def _key(text: str, key: str, known: float | None) -> float | None:
    try:
        value: Any = parse(text)
        found: float = decode_as("float", __name__, value.get(key) if isinstance(value, dict) else None)
    except DecodeError:
        return known
    return found if is_figure(found) else known


def _never(option: str, pattern: str | None, log: str, what: str = "") -> UsageError:
    hint = "compare the pattern, a regular expression, with the lines of the log"
    return UsageError(f'{option} "{pattern}" matches no line of rank 0\'s log{what}: {log}', hint=hint)
