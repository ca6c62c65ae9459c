"""The version of this package, and the folder from which it is imported."""

import os

_RELEASE = "0.2.0"
#: A build, and the archive for other hosts, have the digits of their commit here; see ``stamped``.
_BUILT = ""
#: The folder of the package. With it on ``sys.path``, another interpreter imports the same hccl-tools.
IMPORT_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: Digits of a commit.
_DIGITS = 8


def _head(root: str) -> str:
    """Return the first digits of the commit of a work tree; "" if there is none.

    git is not started: every rank of a job imports this.
    """
    git = os.path.join(root, ".git")
    try:
        if os.path.isfile(git):  # of a linked work tree, or a submodule
            git = os.path.join(root, _text(git)[len("gitdir: ") :])
        head = _text(os.path.join(git, "HEAD"))
        commit = _reference(git, head[len("ref: ") :]) if head.startswith("ref: ") else head
    except OSError:
        return ""
    digits = commit[:_DIGITS]
    return digits if len(digits) == _DIGITS and not digits.strip("0123456789abcdef") else ""


def _reference(git: str, name: str) -> str:
    common = os.path.join(git, "commondir")
    shared = os.path.join(git, _text(common)) if os.path.isfile(common) else git
    loose = os.path.join(shared, name)
    if os.path.isfile(loose):
        return _text(loose)
    for line in _text(os.path.join(shared, "packed-refs")).splitlines():
        commit, _, known = line.partition(" ")
        if known == name:
            return commit
    return ""


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def stamped(source: str) -> str:
    """Return the source of this module with its commit, for a copy outside the checkout."""
    return source.replace('\n_BUILT = ""\n', f'\n_BUILT = "{COMMIT}"\n')


#: The commit of the checkout from which this is imported, or was built; "" if it is unknown. Two checkouts of
#: one release have different versions, which the hosts of a job compare.
COMMIT = _BUILT or _head(IMPORT_ROOT)
__version__ = f"{_RELEASE}+g{COMMIT}" if COMMIT else _RELEASE
