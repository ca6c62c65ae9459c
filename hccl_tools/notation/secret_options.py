"""Find secrets in command lines whose options have no telling name: ``sshpass -p``, ``curl -u``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def _by_program(programs_of: Mapping[str, str]) -> dict[str, str]:
    """Return the letters of options by program; the argument has the programs by letters."""
    return {program: letters for letters, programs in programs_of.items() for program in programs.split()}


#: Options with a secret as the next word or in the same one, and the programs that have them.
_NEXT = _by_program(
    {
        "p": "sshpass mongo mongosh mongodump mongorestore mongoexport twine rdesktop",
        "w": "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami",
        "P": "ipmitool sqlcmd bcp isql mosquitto_pub mosquitto_sub zip unzip",
        "a": "redis-cli",
        "ikt": "obsutil",
        "kK": "openssl",
        "k": "swanlab",
    }
)
#: Programs with ``-pSECRET`` in one word only; ``-p NAME`` has another meaning or asks.
_ATTACHED = dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "7z", "7za", "rar", "unrar"), "p")
#: Programs with ``-p SECRET`` after ``login``; elsewhere it is a port.
_LOGIN = frozenset({"docker", "podman", "nerdctl", "helm", "oras", "az", "oc", "cf", "argocd", "ibmcloud"})
#: Letters that may stand before another one in the same word, as ``-sSu``: their options have no value.
_FLAGS = _by_program(
    {
        "#012346aBfgGiIjJklLMnNOpqRsSvVZ": "curl",
        "AcCIkKLMnNQqtuvVxZ": "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami",
        "0123456789ABcdDeEfFghjklmoqrSTuvVwXyz": "zip",
        "aACfjlLMnopqtTuUvVWz": "unzip",
        "ABCEGHNVXbfnqrstvw": "mysql mysqldump mysqladmin mariadb",
        "bcdfFhIjmSvx": "http https xh",
        "vV": "sshpass",
    }
)
#: Programs and options with ``user:password``.
_USERS = {"curl": "uU", "http": "a", "https": "a", "xh": "a", "smbclient": "U", "rpcclient": "U"}
#: Programs, the words after which the secrets stand, and how many words come between.
_PLACES = {"wandb": ("login", 0, 1), "vault": ("login", 0, 1), "mc": ("set", 2, 2)}
_PROGRAMS = frozenset({*_NEXT, *_ATTACHED, *_LOGIN, *_USERS, *_PLACES})
#: A word of a command line, its end, or punctuation of a JSON list.
_WORDS = r"""\\*"([^"\n]*)"|'([^'\n]*)'|([^\s"'|;&,\[\]]+)|([|;&\n\]])"""
_END = 4
_QUOTES = "\\\"'"
#: Options of several programs with ``user:password``.
USERS = frozenset({"--user", "--proxy-user", "--auth", "--http-user", "--ftp-user"})
#: ``user:password``, or ``user%password`` of smbclient; numbers are a user and a group of docker.
_USER = r"[^\s:%/]{1,256}[:%](?![\d:]*\Z)(?!/)"
_OPTION = re.compile(r"-[A-Za-z0-9#]")
#: What may be the name of a program.
_PROGRAM = r"[\w.-]+"


class Words:
    """Reads the words of one command line; the programs in it decide what their options mean."""

    def __init__(self) -> None:
        self._program = ""
        self._next = ""
        self._skip = self._take = 0

    def secret_at(self, word: str) -> int:
        """Return the position in the next word at which a secret begins, -1 if there is none."""
        waits, self._next = self._next, ""
        if waits == "secret":
            return -1 if word.startswith("--") else 0
        if waits == "user":
            return after_user(word)
        name = word.rpartition("/")[2]
        if name in _PROGRAMS and not self._program.endswith(" login"):
            self._program = name
            return -1
        if word.startswith("-"):
            return self._option(word)
        if self._program == "sshpass":
            self._program = ""  # The word is the command that sshpass starts.
        if word == "login" and self._program in _LOGIN:
            self._program += " login"
        return self._place(word)

    def _option(self, word: str) -> int:
        name, equals, _ = word.partition("=")
        if name in USERS:
            self._next = "" if equals else "user"
            return after_user(word, len(name) + 1) if equals else -1
        if self._program == "openssl" and name in {"-passin", "-passout", "-pass"}:
            self._next = "secret"
            return -1
        return self._letters(word) if _OPTION.match(word) else -1

    def _letters(self, word: str) -> int:
        """Return the position of a secret in a word such as ``-sSu``: the last letter may have a value."""
        flags = _FLAGS.get(self._program, "")
        at = next((at for at in range(1, len(word) - 1) if word[at] not in flags), len(word) - 1)
        letter, start = word[at], at + 1
        if letter in _USERS.get(self._program, ""):
            self._next = "" if word[start:] else "user"
            return after_user(word, start) if word[start:] else -1
        if letter in _ATTACHED.get(self._program, ""):
            return start if word[start:] else -1
        login = "p" if self._program.endswith(" login") else ""
        if letter in _NEXT.get(self._program, login):
            self._next = "" if word[start:] else "secret"
            return start + word.startswith("=", start) if word[start:] else -1
        return -1

    def _place(self, word: str) -> int:
        if self._take and not self._skip:
            self._take -= 1
            return 0
        if self._skip:
            self._skip -= 1
        elif (place := _PLACES.get(self._program)) and word == place[0]:
            _, self._skip, self._take = place
        return -1


def after_user(word: str, start: int = 0) -> int:
    """Return the position after the colon in ``user:password``, -1 if a word has another form."""
    match = re.compile(_USER).match(word, start)
    return match.end() if match else -1


@lru_cache(maxsize=1)
def _any_program() -> re.Pattern[str]:
    words = "|".join(sorted(map(re.escape, _PROGRAMS), reverse=True))
    return re.compile(rf"(?<![\w.-])(?:{words})(?![\w.-])(?:\\*[\"'])?")


def find(text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of secrets in the command lines of a text, also in JSON lists of words."""
    if _PROGRAMS.isdisjoint(re.findall(_PROGRAM, text)):
        return
    done, programs = 0, _any_program()
    while match := programs.search(text, done):
        reader = Words()
        reader.secret_at(match[0].rstrip(_QUOTES))
        done = match.end()
        for found in re.compile(_WORDS).finditer(text, done):
            done = found.end()
            group = found.lastindex or 0
            if group == _END and not (found[0] == "\n" and text[max(0, done - 2)] in ",\\"):
                break
            word = found[group].rstrip("\\")
            if group != _END and 0 <= (at := reader.secret_at(word)) < len(word):
                yield found.start(group) + at, found.start(group) + len(word)
        else:
            return
