"""Check who can exchange a directory of logs: the owners and the modes of all its parents.

A user who can rename files in a parent can put another directory in the place of a run. The files that a
launcher has opened are safe from that (see ``run_files``); a later command that gets the path is not.
"""

from __future__ import annotations

import os
import stat

from hccl_tools.document import links
from hccl_tools.errors import LaunchError
from hccl_tools.processes import run_files
from hccl_tools.programs.environment import in_pod

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Folders, separated by colons, that the user trusts although others can write to them: a mounted folder.
TRUSTED_VARIABLE = "HCCL_TOOLS_TRUSTED_FOLDERS"
#: The mode of the directories that this package makes for run directories, independent of the umask.
_MODE = 0o755


def make(folder: str) -> None:
    """Create a directory and its missing parents with the mode 0755, and check all of them.

    Raises:
        LaunchError: Another user can exchange the directory; see ``check``.
        OSError: A directory cannot be created.
    """
    missing, folder = [], os.path.abspath(folder)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    check(folder)
    for path in reversed(missing):
        try:
            os.mkdir(path, _MODE)
        except FileExistsError:
            check(path)  # Another process has made it since.
            continue
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            about = os.fstat(descriptor)
            if about.st_mode & 0o777 != _MODE and about.st_uid == os.geteuid():
                os.fchmod(descriptor, _MODE | about.st_mode & stat.S_ISGID)
        finally:
            os.close(descriptor)


def check(folder: str) -> None:
    """Refuse a directory if another user owns it or one of its parents, or every user can rename files there.

    Raises:
        LaunchError: The message names the directory, and the hint what to type.
    """
    for path, about in _checked(folder):
        if not _is_trusted_owner(path, about.st_uid):
            user = links.user_name(about.st_uid)
            raise _refusal(path, f"belongs to {user}, who could replace them", f"trust the owner, {user}")
        if _is_writable(about, stat.S_IWOTH):
            raise _refusal(
                path,
                "lets every user replace them",
                "trust all users of this host or container",
                "type `chmod o-w {}`, or ",
            )


def is_safe(folder: str) -> bool:
    """Return whether neither another user nor a group can replace a directory; also for trusted folders.

    No folder and no link of the path belongs to another user, and only root's and this user's are writable.

    Raises:
        OSError: The directory does not exist.
    """
    for path, about in links.passed(os.path.abspath(folder)):
        if (
            not _is_trusted_owner(path, about.st_uid)
            or _is_writable(about, stat.S_IWOTH)
            or group_that_renames(about)
        ):
            return False
    return True


def doubts(folder: str, what: str) -> tuple[str, ...]:
    """Return a line of warning if others can exchange what is in a directory, none if nobody can."""
    for path, about in _checked(folder):
        if not _is_trusted_owner(path, about.st_uid):
            user = links.user_name(about.st_uid)
            return (f"warning: {user} can replace {what}, because {path} belongs to {user}",)
        if _is_writable(about, stat.S_IWOTH):
            return (f"warning: every user can replace {what}, because all may write to {path}",)
    return warnings(folder, what)


def warnings(folder: str, what: str = "the logs") -> tuple[str, ...]:
    """Return a line of warning if a group can exchange a directory, none if no other user can."""
    for path, about in _checked(folder):
        if not about.st_mode & stat.S_IWOTH and (name := group_that_renames(about)):
            return (f"warning: the group {name} can replace {what}, because it may write to {path}",)
    return ()


def group_that_renames(about: os.stat_result) -> str:
    """Return the group whose members can rename what is in a directory, "" if none can but its owner.

    Debian and Red Hat give each user a group of the same name without other members.
    """
    if not _is_writable(about, stat.S_IWGRP):
        return ""
    import grp  # noqa: PLC0415  (most directories belong to one user)

    try:
        group = grp.getgrgid(about.st_gid)
        name, members = group.gr_name, set(group.gr_mem)
    except KeyError:
        name, members = str(about.st_gid), set[str]()
    is_own = name in {links.user_name(about.st_uid), links.user_name(os.geteuid())}
    return "" if is_own and members <= {name, "root"} else name


def _checked(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what a path passes, the last first, but for what is in folders that the user trusts."""
    trusted = [os.path.realpath(one) for one in os.environ.get(TRUSTED_VARIABLE, "").split(":") if one]
    for path, about in reversed(list(links.passed(os.path.abspath(folder)))):
        if not any(path == one or path.startswith(one.rstrip("/") + "/") for one in trusted):
            yield path, about


def _is_writable(about: os.stat_result, whose: int) -> bool:
    """Return whether others can rename what is in a directory; the mode of a link means nothing."""
    return bool(about.st_mode & whose) and not about.st_mode & stat.S_ISVTX and stat.S_ISDIR(about.st_mode)


def _is_trusted_owner(path: str, owner: int) -> bool:
    # In a user namespace without root, the owner of the root directory is root's stand-in.
    if owner in {0, os.geteuid(), os.stat("/").st_uid}:
        return True
    try:
        with run_files.opened(os.path.dirname(path) if os.path.islink(path) else path) as opened:
            return owner == opened.own_id()
    except OSError:  # Only its owner can read it, it is not a directory, or it has been replaced.
        return False


def _refusal(path: str, why: str, trust: str, first: str = "") -> LaunchError:
    """Return the error for a directory; ``first`` is what to type, with braces for its path."""
    import shlex  # noqa: PLC0415  (1 ms; most directories are safe)

    hint = f"{first.format(shlex.quote(path))}choose a directory of your own (--log-dir, --log-file)"
    if ":" not in path:  # The variable would name two other folders.
        trusted = (*filter(None, [os.environ.get(TRUSTED_VARIABLE)]), path)
        hint += f"; if you {trust}: {_setting(shlex.quote(':'.join(trusted)))}"
    return LaunchError(f"the logs are not safe from other users: {path} {why}", hint=hint)


def _setting(quoted: str) -> str:
    """Return how to trust a folder; a pod has no shell of the user, and its env is in its manifest."""
    if in_pod():
        return f"set {TRUSTED_VARIABLE}={quoted} in env of the container"
    return f"export {TRUSTED_VARIABLE}={quoted}"
