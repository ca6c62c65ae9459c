"""Search for lines on which a pattern of ``explain`` takes long: ``python -m benchmarks.slow_patterns``.

All pairs of parts of each pattern are tried at the full size of a line; the test tries the slowest only.
"""

from __future__ import annotations

import re
import sys

from tests.explain.test_pattern_times import LARGEST, PATTERNS, Used, seconds
from tests.support import adversarial_lines


def main() -> None:
    """Print the CPU time of the slowest line of each of the ten slowest patterns."""
    chosen = sys.argv[1:] or list(PATTERNS)
    if unknown := [name for name in chosen if name not in PATTERNS]:
        sys.exit(f"error: no pattern {unknown[0]}; there are {', '.join(PATTERNS)}")
    found = []
    for name in chosen:
        pattern = Used(re.compile(PATTERNS[name]))
        lines = adversarial_lines.lines(PATTERNS[name], LARGEST)
        spent, line = max((seconds(pattern, line), line) for line in lines)
        found.append((spent, name, line))
    for spent, name, line in sorted(found, reverse=True)[:10]:
        print(f"{name}  {1000 * spent:.1f} ms  {line[:40]!r} ... {line[LARGEST // 2 :][:40]!r}")


if __name__ == "__main__":
    main()
