"""Phrases that messages share: numbers with nouns, lists of names, suggestions, and commands."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.notation.screen import cells, padded
from hccl_tools.version import IMPORT_ROOT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

#: The most characters of a message: a value of a file or of another host may have megabytes.
LONGEST_TEXT = 1000
#: A chip for examples; the guide does not restrict its device sets.
EXAMPLE_CHIP = "910B4"
#: The user's program in commands that are printed.
EXAMPLE_PROGRAM = "train.py"
#: A hint for a device id that the assumed product does not have.
NAME_THE_CHIP = f"specify the machine's chip, as in --product {EXAMPLE_CHIP}"
#: What to do with several tables of one file, whose names are to be filled in.
MERGE = "to join them: `hccl-tools merge {}`, which continues the rank numbers"


def count(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: ``1 error``, ``65,516 errors``; ``nouns`` is an unusual plural."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def those(number: int, noun: str) -> str:
    """Return what follows "the": ``missing`` + ``server`` for one, ``2 servers`` for more."""
    return count(number, noun) if number > 1 else noun


def ordinal(number: int) -> str:
    """Return a number as a place in an order: ``1st``, ``2nd``, ``11th``, ``23rd``."""
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def with_article(noun: str) -> str:
    """Return a noun with its article: ``an endpoint file``."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def devices(ids: Iterable[int]) -> str:
    """Return device ids with their noun: ``device 4``, ``devices 4,5``."""
    listed = list(ids)
    return f"device{'' if len(listed) == 1 else 's'} {','.join(map(str, listed))}"


def time_span(seconds: float, decimals: int = 0) -> str:
    """Return a length of time in its two largest units; ``decimals`` applies below one minute.

    >>> time_span(45), time_span(1.534, 2), time_span(3661), time_span(200_000)
    ('45 s', '1.53 s', '1 h 1 min', '2 d 7 h')
    """
    if seconds < 60:
        return f"{seconds:.{decimals}f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def and_more(names: Sequence[str], most: int = 4, *, unlisted: int = 0) -> str:
    """Return at most ``most`` names with commas, and the number of further names.

    ``unlisted`` is a number of further names that are not in ``names``.

    >>> and_more(["a", "b", "c"], 2)
    'a, b and 1 more'
    >>> and_more(["a"], unlisted=3)
    'a and 3 more'
    """
    others = max(0, len(names) - most) + unlisted
    return ", ".join(names[:most]) + (f" and {others:,} more" if others > 0 else "")


def listed_parts(parts: Sequence[str], most: int = 8) -> str:
    """Return parts with commas and a last "and", as a phrase; more than ``most`` are counted.

    >>> listed_parts(["a", "b", "c"])
    'a, b and c'
    """
    if len(parts) <= most:
        return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return and_more(parts, most)


def shortened(text: str) -> str:
    """Return a text without its middle if it has more characters than a message may have."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} ... {text[-half:]}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion of the known name most similar to a wrong name, ignoring case, or "".

    >>> did_you_mean("hcc23", ["HCC203", "HCC601"])
    'did you mean "HCC203"?'
    """
    from difflib import get_close_matches  # noqa: PLC0415  (1.1 ms; only for a name that is wrong)

    spelled = {one.lower(): one for one in known}
    closest = get_close_matches(name.lower(), spelled, n=1)
    return f'did you mean "{spelled[closest[0]]}"?' if closest else ""


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> Iterator[str]:
    """Yield rows as lines with aligned columns; the columns with an index in ``right`` are right-aligned.

    >>> list(aligned([("rank", "log"), ("0", "rank_0.log")], right=[0]))
    ['rank  log', '   0  rank_0.log']
    """
    widths = [max(map(cells, column)) for column in zip(*rows)]  # noqa: B905  (strict= needs Python 3.10)
    for row in rows:
        columns = (padded(text, widths[index], right=index in right) for index, text in enumerate(row))
        yield "  ".join(columns).rstrip()


def operand(path: str) -> str:
    """Return the path of a file for a command line: one word, and no option.

    >>> operand("-x y.json")
    "'./-x y.json'"
    """
    return quote(f"./{path}" if path.startswith("-") else path)


def named(name: str, placeholder: str) -> str:
    """Return a name, such as that of a host, for a command line: one word, and no option.

    Args:
        name: A name from a file, another host or another user; "" if it is unknown.
        placeholder: What stands for a name that a program would take for an option.

    >>> named("a b", "HOST"), named("-oProxyCommand=x", "HOST")
    ("'a b'", 'HOST')
    """
    return quote(name) if name and not name.startswith("-") else placeholder


def as_root(command: str) -> str:
    """Return a command line that runs hccl-tools as root; sudo's PATH has no virtual environment.

    On a host that was queried without an installation (see ``remote.archive``), return how to log in as root.
    """
    if IMPORT_ROOT.endswith(".pyz"):
        return "log in there as root, for example with --ssh 'ssh -l root'"
    return f"sudo {own_python.typed()} {command}"
