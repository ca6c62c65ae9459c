"""The similarity of two words, to recognise misspelt keys of a table.

``difflib`` is 15 times slower, which matters for a table with 50,000 unknown keys.
"""

from __future__ import annotations

from functools import cache


def likeness(text: str, word: str, least: float) -> float:
    """Return the share of the letters of two words that are in both in the same order.

    The share is twice the length of their longest common subsequence divided by the sum of their lengths. The
    subsequence is computed for all letters of ``word`` at once, in the bits of an integer (Hyyro, 2004).

    Args:
        word: One of few words; its bit masks are cached.
        least: The similarity below which the result does not matter, 0 to 1.

    Returns:
        ``least`` to 1, or 0 for a lower similarity.
    """
    length = len(text) + len(word)
    most_unmatched = (1 - least) * length
    if abs(len(text) - len(word)) > most_unmatched:
        return 0.0
    letters, places = _bit_masks(word)
    if len(letters.symmetric_difference(text)) > most_unmatched:
        return 0.0
    every = unmatched = (1 << len(word)) - 1
    for letter in text:
        found = unmatched & places.get(letter, 0)
        unmatched = ((unmatched + found) | (unmatched - found)) & every
    found_likeness = 2 * (len(word) - unmatched.bit_count()) / length
    return found_likeness if found_likeness >= least else 0.0


@cache
def _bit_masks(word: str) -> tuple[frozenset[str], dict[str, int]]:
    """Return the letters of a word, and the positions of each letter as the bits of an integer."""
    places = {letter: sum(1 << at for at, one in enumerate(word) if one == letter) for letter in word}
    return frozenset(word), places


def is_near(text: str, right: str) -> bool:
    """Return whether a text is another one with a sign changed, added, left out, or in another place."""
    if sorted(text) == sorted(right):
        return True
    if len(text) == len(right):
        return sum(one != other for one, other in zip(text, right, strict=True)) == 1
    short, long = sorted((text, right), key=len)
    return len(long) - len(short) == 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
