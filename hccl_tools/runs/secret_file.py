"""Read and write small files with a secret, which no other user may read or change."""

from __future__ import annotations

import contextlib
import os
import stat

from hccl_tools.document import links
from hccl_tools.errors import InputError, WriteError

#: The size in bytes above which a file is refused.
_LIMIT = 4096


def read(path: str, subject: str, *, may_be_roots: bool = False) -> bytes:
    """Return the content of a file, at most 4 KiB; never wait for a named pipe.

    Symbolic links are followed, and the file that they lead to is checked: it must be a regular file that
    belongs to this user and is closed to all others.

    Args:
        path: The file.
        subject: The beginning of messages, such as "the job key ~/key".
        may_be_roots: Accept a file of root, too, as administrators and the kubelet provide it. The group of
            the file may read it (``fsGroup``). All users may read it if it is on a read-only tmpfs:
            Kubernetes mounts a Secret in this way, with mode 0644 by default, and the mount exists only
            inside the container. On a host with several users such a file is not a secret.

    Raises:
        InputError: The file cannot be read, or is not safe from other users.
    """
    try:
        # O_NONBLOCK: opening a named pipe does not wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            _check(path, subject, handle, may_be_roots=may_be_roots)
            data = os.read(handle, _LIMIT + 1)
        finally:
            os.close(handle)
    except OSError as error:
        raise unreadable(path, subject, error) from None
    if len(data) > _LIMIT:
        raise InputError(f"{subject} is larger than {_LIMIT >> 10} KiB", hint="check the path")
    return data


def unreadable(path: str, subject: str, error: OSError) -> InputError:
    """Return the error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return InputError(f"{subject} is a symbolic link to a file that does not exist",
                          hint="remove the link, or create it again")  # fmt: skip
    hint = "check the path"
    if isinstance(error, PermissionError):
        hint = "check the owner and the mode of the file and of its directories"
    return InputError(f"{subject} cannot be read: {_reason(error)}", hint=hint)


def write(path: str, data: bytes, *, replace: bool) -> None:
    """Write a file of mode 0600 in a directory of mode 0700, completely or not at all.

    Missing directories are created. If several processes write the same file at the same time, and none
    replaces it, only the first succeeds.

    Raises:
        WriteError: The file exists although ``replace`` is false, or cannot be written.
    """
    folder = os.path.dirname(path)
    try:
        made = links.make_folders(folder, 0o700)
        try:
            handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=made)
        finally:
            os.close(made)
        try:
            _make_private(folder, handle)
            _write(handle, path, data, replace=replace)
            os.fsync(handle)
        finally:
            os.close(handle)
    except links.ForeignLinkError as error:
        from hccl_tools.document.writing import refusal  # noqa: PLC0415  (a shim reads secrets only)

        raise refusal(path, error) from None
    except OSError as error:
        raise WriteError(f"{path} cannot be written: {_reason(error)}") from None


def _check(path: str, subject: str, handle: int, *, may_be_roots: bool) -> None:
    """Refuse a file that another user can change or read."""
    about, user = os.fstat(handle), os.geteuid()
    mode, is_roots = stat.S_IMODE(about.st_mode), may_be_roots and about.st_uid == 0
    if not stat.S_ISREG(about.st_mode):
        raise InputError(f"{subject} is not a regular file", hint="use a regular file")
    if about.st_uid != user and not is_roots:
        raise InputError(
            f"{subject} belongs to {_user(about.st_uid)}, not to {_user(user)}",
            hint="make a copy that belongs to you, with mode 600",
        )
    allowed = 0
    if is_roots:
        allowed = 0o044 if _is_mounted_secret(handle, about.st_dev) else 0o040
    if mode & 0o077 & ~allowed:
        what = "change" if mode & 0o022 else "read"
        who = "" if about.st_uid == user else ", as root"
        from hccl_tools.notation.phrases import operand  # noqa: PLC0415  (1 ms; few files are open to others)

        raise InputError(
            f"other users can {what} {subject} (mode {mode:04o})",
            hint=f"run `chmod 600 {operand(path)}`{who}; replace the secret if another user may know it",
        )


def _is_mounted_secret(handle: int, device: int) -> bool:
    """Return whether an open file is on a read-only tmpfs."""
    if not os.fstatvfs(handle).f_flag & os.ST_RDONLY:
        return False
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = (line.partition(b" - ") for line in file)
        return any(mount.split()[2] == number and source.startswith(b"tmpfs ") for mount, _, source in mounts)


def _make_private(folder: str, handle: int) -> None:
    """Set the mode of a directory to 0700."""
    owner = os.fstat(handle).st_uid
    if owner != os.geteuid():
        raise WriteError(
            f"{folder} belongs to {_user(owner)}, not to {_user(os.geteuid())}",
            hint="set HOME or XDG_CONFIG_HOME to a directory of your own",
        )
    os.fchmod(handle, 0o700)


def _write(folder: int, path: str, data: bytes, *, replace: bool) -> None:
    name = os.path.basename(path)
    temporary = f".{name}.{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        if replace:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:  # Unlike a rename, a link fails if the file exists.
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise WriteError(f"{path} exists") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _user(number: int) -> str:
    import pwd  # noqa: PLC0415  (for messages only)

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
