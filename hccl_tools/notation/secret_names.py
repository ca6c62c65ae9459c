"""Tell from the name of a variable, an option or a field whether its value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache

#: A name that contains one of these parts, across its words, belongs to a secret.
_PARTS = (
    "SECRET", "PASSW", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "APIKEY", "ACCESSKEY", "AUTHKEY", "PRIVATEKEY",
    "AUTHTOKEN", "APITOKEN", "ACCESSTOKEN",
)  # fmt: skip
#: A name with one of these words is that of a secret, unless other words show the opposite.
_WORDS = frozenset(
    """
    AK AUTH AUTHORIZATION BEARER COOKIE COOKIES JWT KEY KEYS OTP PASS PAT PSK PWD SAS SESSION SIG
    SIGNATURE SK TOKEN TOKENS
    """.split()  # noqa: SIM905  (a table of words)
)
#: The owners of a password, key or token that is written as one word with it: SSHPASS, HFTOKEN, PGKEY.
_OWNERS = frozenset(
    """
    ACCESS ACCOUNT ADMIN API APP AUTH AWS AZURE BEARER BOT CLIENT DB DEPLOY ENCRYPTION FTP GIT GITHUB GITLAB
    HF HTTP HUAWEI HUB HW JOB JWT KEY KEYSTORE LDAP LICENSE LOGIN MAIL MASTER MINIO MONGO MYSQL OBS OPENAI OSS
    PG POSTGRES PRIVATE PROXY REDIS REFRESH ROOT RSA SERVICE SESSION SHARED SIGNING SMTP SQL SSH SSL STORAGE
    STORE SUDO SVN TLS USER VNC VPN WANDB WIFI
    """.split()  # noqa: SIM905  (a table of words)
)
#: What is written as one word with its owner. No pattern: it would take 0.5 ms of the start of each job.
_GLUED = ("PASS", "PWD", "KEY", "KEYS", "TOKEN", "TOKENS", "COOKIE", "AUTH")
#: After the word of a secret, these say that the value describes the secret, or that the name is that of a
#: source file in a log.
_ATTRIBUTES = frozenset(
    """
    C CC CPP GO H HPP JAVA JS LOG PY RS
    ALG ALGORITHM BUS CAPACITY CLASS COUNT DIM DIR DIRECTORY DISPATCHER DROP DROPOUT DROPPING
    EMBEDDING ENABLED ENDPOINT EXPIRES EXPIRY FILE FILENAME FILES FOLDER FORMAT HEADS HOST ID IDS
    IDX INDEX LEN LENGTH LIMIT MANAGER MASK METHOD MODE NAME NAMES NUM OFFSET PADDING PARALLELISM
    PATH PATHS PER POLICY PORT POSITION RATE RATIO REQUIRED SERVER SIZE SOCK TABLE TIMEOUT TTL TYPE
    URI URL USAGE VERSION
    """.split()  # noqa: SIM905  (a table of words)
)
#: The identifier of an access key is one half of the pair, and is masked with the other.
_ATTRIBUTES_OF_PARTS = _ATTRIBUTES - {"ID", "IDS"}
#: Before the word of a secret, these say that the word has another meaning.
_KINDS = frozenset(
    """
    AUDIO AVG BOS CACHE CLS CONSUMED DESKTOP DISABLE ENABLE EOS FOREIGN HASH IMAGE MASK MAX MEAN MIN
    MISSING NUM PAD PARTITION PAST PRIMARY PUB PUBLIC QUERY SCREEN SEP SORT SPECIAL STOP TMUX TOTAL
    UNEXPECTED UNK USE VIDEO VOCAB
    """.split()  # noqa: SIM905  (a table of words)
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
#: A longer name is not one that a person typed.
_LONGEST = 256
_EMPTY = frozenset({"", "true", "false", "none", "null", "nil", "yes", "no", "on", "off"})
_NUMBERS = r"[\[(]?\s*-?\d[\d.,_\s]*(?:[eE]-?\d+|[kKmMbB])?\s*[\])]?"


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Return whether a variable or option of this name contains a secret.

    >>> [is_secret(name) for name in ("HF_TOKEN", "--api-key", "SSHPASS", "--eos-token-id", "KEY_LEN", "PWD")]
    [True, True, True, False, False, False]
    """
    if name in _NOT_SECRET or len(name) > _LONGEST:
        return False
    words = [word for word in _SEPARATORS.split(_CAMEL.sub("_", name).upper()) if word]
    if any(part in "".join(words) for part in _PARTS):
        return words[-1] not in _ATTRIBUTES_OF_PARTS
    at = max((at for at, word in enumerate(words) if _is_word(word)), default=-1)
    return at >= 0 and _ATTRIBUTES.isdisjoint(words[at + 1 :]) and _KINDS.isdisjoint(words[:at])


def is_plain(name: str, value: str) -> bool:
    """Return whether a value cannot be a secret of this name: ``token=None``, ``tokens=4096``."""
    if value.lower() in _EMPTY:
        return True
    return name.strip("-").upper().endswith(("TOKENS", "KEYS", "SIG")) and bool(re.fullmatch(_NUMBERS, value))


def _is_word(word: str) -> bool:
    if word in _WORDS:
        return True
    return any(word.endswith(part) and word[: -len(part)] in _OWNERS for part in _GLUED)
