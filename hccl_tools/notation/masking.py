"""Mask secrets in the variables and arguments of a plan that is printed or written, by name and by shape.

A masked plan is never used to start ranks.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MASK = "***"
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
#: A name that contains one of these parts belongs to a secret.
_PARTS = ("SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY", "ACCESSKEY", "AUTHTOKEN")
#: A name with one of these words, too, unless a harmless word shows that the value is no secret.
_WORDS = frozenset({"KEY", "TOKEN", "AUTH", "AUTHORIZATION", "PASS", "PWD", "PAT", "COOKIE", "SIGNATURE"})
_HARMLESS = frozenset(
    {
        "COUNT", "DIM", "DROPOUT", "EMBEDDING", "HEADS", "ID", "IDS", "LEN", "LENGTH", "MAX", "MIN", "NUM",
        "SIZE", "SOCK", "TABLE", "TYPE", "VALUE",
    }
)  # fmt: skip
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
#: Secrets by shape: passwords in URLs, tokens of well-known services, private keys. Each row has
#: texts (one must be present: a check faster than a regular expression), the expression, the replacement.
_SHAPES = (
    (("://",), r"((?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*):[^\s/@]+@", rf"\1:{_MASK}@"),
    (("Bearer", "Basic"), r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}", rf"\1 {_MASK}"),
    (
        ("gh", "glpat-", "hf_", "sk-", "AKIA", "LTAI", "AIza", "xox", "eyJ"),
        (
            r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_\w{16,}|sk-[\w-]{16,}"
            r"|AKIA\w{12,}|LTAI\w{12,}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}"
            r"|eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?)"
        ),
        _MASK,
    ),
    (("-----BEGIN",), r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", _MASK),
)
#: A name and the separator before its value: ``token=``, ``"token": ``, ``--token ``.
_NAMED = r"""(?<![\w.-])(--?(?=[A-Za-z])|)([A-Za-z][\w.-]*)(["']?\s*[:=]\s*|\s+)"""
_VALUE = r"""(?s)(["'])(?:(?!\1).)*\1|[^\s"',;&|}]+"""


@cache
def is_secret(name: str) -> bool:
    """Return whether a variable or option of this name contains a secret.

    >>> [is_secret(name) for name in ("HF_TOKEN", "--api-key", "ASCEND_AUTH", "--eos-token-id", "PWD")]
    [True, True, True, False, False]
    """
    words = _SEPARATORS.split(_CAMEL.sub("_", name.strip("-")).upper())
    if name in _NOT_SECRET:
        return False
    if any(part in "".join(words) for part in _PARTS):
        return True
    return bool(_WORDS.intersection(words)) and not _HARMLESS.intersection(words)


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables with masked secrets."""
    return {name: _MASK if is_secret(name) else text(value) for name, value in environment.items()}


def arguments(argv: Sequence[str]) -> list[str]:
    """Return a command line with masked secrets: ``--token X``, ``--password=X`` and the like."""
    shown: list[str] = []
    after_secret = False
    for word in argv:
        name, equals, _ = word.partition("=")
        is_option = word.startswith("-") and " " not in name and is_secret(name)
        if after_secret and not word.startswith("-"):
            shown.append(_MASK)
        else:
            shown.append(f"{name}={_MASK}" if is_option and equals else text(word))
        after_secret = is_option and not equals
    return shown


def text(value: str) -> str:
    """Return a text with masked secrets: values assigned to the name of a secret, and secrets by shape."""
    return value if value.isdecimal() else _masked(value)


@lru_cache(maxsize=1024)
def _masked(value: str) -> str:
    for marks, shape, instead in _SHAPES:
        if any(mark in value for mark in marks):
            value = re.sub(shape, instead, value)
    if not any(mark in value for mark in ("=", ":", " -")):
        return value
    parts, done = [], 0
    for match in re.finditer(_NAMED, value):
        dashes, name, between = match.groups()
        if match.end() < done or (between.isspace() and not dashes) or not is_secret(name):
            continue
        if found := re.compile(_VALUE).match(value, match.end()):
            quote = found[1] or ""
            parts += [value[done : match.end()], quote, _MASK, quote]
            done = found.end()
    return "".join([*parts, value[done:]])
