"""Changed JSON and text, as a broken or hostile program could write it; a seed repeats the changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

#: Is in every text that would do harm where it is not quoted.
MARK = "PWN"
#: What a shell, a terminal, a spreadsheet, HTML or a path would follow.
TEXTS = (
    f"$({MARK})",
    f"`{MARK}`",
    f";{MARK};",
    f"'{MARK}",
    f'"{MARK}',
    f"\n{MARK}\n",
    f"|{MARK}",
    f">{MARK}",
    f"&&{MARK}#",
    f"'$({MARK})'",
    f"--{MARK}",
    f"-o{MARK}",
    f"\x1b]0;{MARK}\x07",
    f"\x1b[2J{MARK}",
    f"\x9b{MARK}",
    f"\u202e{MARK}",
    f"\r{MARK}",
    f"=cmd|{MARK}",
    f"<script>{MARK}</script>",
    f"../../{MARK}",
    f"/{MARK}\0",
    f"{{{MARK}}}",
    f"%s{MARK}%n",
    f"]]>{MARK}",
    f"::error::{MARK}",
    f"\\{MARK}",
    f"\u2028{MARK}",
    f"\ud800{MARK}",
    f"\udcff{MARK}",
    "",
    " ",
    "0",
    "9" * 5000,
    "-1",
    "10.0.0.1",
    "::1",
    "0x10",
    "\uff11",
    "1e9",
    "0-999999999",
    "9" * 5000 + ".1",
    "a\0b",
    "localhost",
    "h2",
    "910a",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    7,
    8,
    64,
    255,
    256,
    65536,
    1 << 31,
    -(1 << 31),
    1 << 63,
    10**19,
    10**40,
    0.5,
    -0.0,
    1e308,
    [],
    {},
    [[]],
    [{}],
    {"": {}},
    [0] * 50,
)
#: For changes of a text that is no longer JSON.
_BYTES = (
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\",
    "\\u",
    "\\ud800",
    "\x00",
    "\x1b",
    "\n",
    "NaN",
    "1" * 30,
    "[" * 3000,
)


def mutated(value: Any, random: Random) -> str:
    """Return the JSON of a value after one to three changes; one text in ten is changed as text."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        value = _changed(value, random.choice(list(_places(value))), random)
    text = json.dumps(value)
    if random.random() < 0.1:
        for _ in range(random.choice((1, 2, 5))):
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(_BYTES) + text[at + random.choice((0, 0, 1, 20)) :]
        text = text[: random.randrange(len(text))] if random.random() < 0.3 else text
    return text


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from _places(one, (*path, key))


def _changed(value: Any, path: tuple[Any, ...], random: Random) -> Any:
    if path:
        copy = dict(value) if isinstance(value, dict) else list(value)
        if len(path) == 1 and random.random() < 0.2:
            return _reshaped(copy, path[0], random)
        copy[path[0]] = _changed(value[path[0]], path[1:], random)
        return copy
    if isinstance(value, str) and random.random() < 0.4:
        at = random.randrange(len(value) + 1)
        return value[:at] + random.choice(TEXTS) + value[at:]
    if type(value) is int and random.random() < 0.5:
        return random.choice((value + 1, value - 1, -value, value * 8, value << 32, str(value), float(value)))
    return random.choice(random.choice((TEXTS, TEXTS, VALUES, ("x" * 70_000, ["x"] * 2000))))


def _reshaped(copy: Any, key: Any, random: Random) -> Any:
    """Return an object or a list without an entry, with one more, or with one twice."""
    if random.random() < 0.4:
        del copy[key]
    elif isinstance(copy, dict):
        copy[random.choice(TEXTS)] = copy[key]
    else:
        copy.insert(random.randrange(len(copy) + 1), copy[key])
    return copy


def unquoted(script: str) -> str | None:
    """Return the line of a shell script in which a marked text is not quoted, None if there is none.

    A text is quoted inside '...', and harmless in a comment, or where no character before it has a meaning.
    """
    state, begin = "plain", 0
    for at, char in enumerate(script):
        if char == "\n":
            begin = at + 1
        if script.startswith(MARK, at) and state in {"plain", "double"}:
            before = script[at - 1] if at else "\n"
            if before in ("$(`" if state == "double" else "$(`;|&<>\n'\"\r"):
                return script[begin : at + 40].splitlines()[0]
        state = _next_state(script, at, state)
    return None


def _next_state(script: str, at: int, state: str) -> str:
    char = script[at]
    if state == "comment":
        return "plain" if char == "\n" else state
    if state == "single":
        return "plain" if char == "'" else state
    if state == "double":
        return "plain" if char == '"' and script[at - 1] != "\\" else state
    if char in "'\"" and (not at or script[at - 1] != "\\"):
        return "single" if char == "'" else "double"
    return "comment" if char == "#" and (not at or script[at - 1] in " \n\t") else state
