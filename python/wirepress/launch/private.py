# SPDX-License-Identifier: Apache-2.0
"""The folder of one `wirepress run`. Standard library only, as run.py, which uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

if __package__:
    from .mpi_libraries import RunError
else:
    from mpi_libraries import RunError

PREFIX = f"wirepress-{os.getuid()}-"  # and 16 random digits


def place() -> Path:
    """A folder for temporary ones: as users ask for it, if programs can be started from there by
    PATH, which colons cut."""
    wanted = os.environ.get("TMPDIR")
    for name in (wanted, "/tmp", "/var/tmp", os.path.expanduser("~")):
        usable = name and ":" not in name and os.access(name, os.W_OK | os.X_OK)
        if usable and not os.statvfs(name).f_flag & os.ST_NOEXEC:
            return Path(name).absolute()
    raise RunError(
        f"{wanted or '/tmp'}: no programs can be put there, nor into /var/tmp and the home folder: "
        "set TMPDIR"
    )


class Private:
    """Made when the first file is put there; few jobs need one.

    The run holds a lock on it, which its end opens, however it ends: what lies there unlocked
    belongs to nobody.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._lock = -1

    def __truediv__(self, name: str) -> Path:
        while self._folder is None:
            self._make(place() / (PREFIX + os.urandom(8).hex()))
        return self._folder / name

    def _make(self, folder: Path) -> None:
        folder.mkdir(0o700)
        self._lock = try_lock(folder)
        if self._lock >= 0:
            self._folder = folder  # else a sweep came first

    def file(self, name: str) -> Path | None:
        """A file of the folder, if there is one."""
        path = self._folder and self._folder / name
        return path if path and path.exists() else None

    def remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._lock)
            self._folder = None


def try_lock(folder: Path) -> int:
    """A descriptor that holds the lock, or -1: it is held, or the folder is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return -1
    with contextlib.suppress(OSError):  # a file system may have no locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.stat(folder)):
            return handle
    os.close(handle)
    return -1


def sweep() -> None:
    """Removes the folders of runs that ended before they could."""
    with contextlib.suppress(OSError, RunError):
        for entry in os.scandir(place()):
            if not entry.name.startswith(PREFIX) or entry.stat(follow_symlinks=False).st_uid != (
                os.getuid()
            ):
                continue
            if (handle := try_lock(Path(entry.path))) >= 0:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(handle)
