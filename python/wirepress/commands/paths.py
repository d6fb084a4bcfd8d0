# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of commands, by name.

A result appears under its final name whole or not at all: it is written beside it under a
temporary name, which an error or a signal removes. A source is removed only when its result is on
stable storage, in another file.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import io
import os
import select
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from wirepress import wps

PIPE = "-"
_ACL = "system.posix_acl_access"
_ACL_GROUP_OBJ, _ACL_NAMED = 4, (2, 8)  # users, groups


class UsageError(Exception):
    """A request that makes no sense, or that would lose data; the text says what to do."""


def label(name: str, pipe: str = "stdin") -> str:
    """A file's name in a sentence."""
    return pipe if name == PIPE else name


def file_name(text: str) -> str:
    """The type of an argument that names a file; an empty variable of a shell names none."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is empty")
    return text


class _Patient(io.FileIO):
    """An unbuffered file that waits where a pipe that does not block has no bytes, or no room, yet.
    (Python's own returns None. Such a pipe is shared with who made it so, who may need it so.)"""

    def _await(self, event: int) -> None:
        poll = select.poll()
        poll.register(self, event)
        poll.poll()

    def readinto(self, memory: Any) -> int:
        while (done := super().readinto(memory)) is None:
            self._await(select.POLLIN)
        return done

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return self.readall()
        while (data := super().read(size)) is None:
            self._await(select.POLLIN)
        return data

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(1 << 20), b""))

    def write(self, data: Any) -> int:
        while (done := super().write(data)) is None:
            self._await(select.POLLOUT)
        return done


# ---- inputs ---------------------------------------------------------------------------------


@contextlib.contextmanager
def open_input(name: str) -> Iterator[BinaryIO]:
    """A file, or stdin for "-", to be read unbuffered."""
    if name == PIPE:
        if fcntl.fcntl(sys.stdin.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            raise UsageError("stdin is closed")
        with _Patient(sys.stdin.fileno(), "rb", closefd=False) as file:
            yield file
        return
    if os.path.isdir(name):
        raise UsageError(f"{name} is a folder")
    with open(name, "rb", buffering=0) as file:
        yield file


def check_removable(name: str) -> None:
    """Raises UsageError where --rm must not remove a source."""
    if name == PIPE:
        raise UsageError("--rm: stdin is no file that could be removed")
    if not stat.S_ISREG(os.stat(name).st_mode):
        raise UsageError(f"--rm removes regular files; {name} is none")


def remove_source(name: str, file: BinaryIO, before: os.stat_result) -> None:
    """Removes what was read from the open `file`, unless that has changed since `before`."""
    after = os.fstat(file.fileno())
    same = (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    if not same or not os.path.samestat(os.stat(name), before):
        raise UsageError(f"{name} changed while it was read; it is kept, despite --rm")
    os.unlink(name)


# ---- outputs --------------------------------------------------------------------------------


def _status(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def _refuse_the_source(name: str, there: os.stat_result, source: BinaryIO | None) -> None:
    """A result that took its source's place would be the end of the source."""
    if source is not None and os.path.samestat(there, os.fstat(source.fileno())):
        raise UsageError(f"{name} is the source itself; give the result another name")


def _take_access(handle: int, source: BinaryIO | None) -> None:
    """Gives a result the owner, permissions and times of a regular source, never more access."""
    of = os.fstat(source.fileno()) if source is not None else None
    if source is None or of is None or not _is_regular(of):
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
        return
    acl = b""
    with contextlib.suppress(OSError, AttributeError):
        acl = os.getxattr(source.fileno(), _ACL)
    mode = _without_acl(of.st_mode & 0o777, acl)  # nor setuid, setgid and sticky bits
    same_owners = True
    try:
        os.fchown(handle, of.st_uid, -1)
    except OSError:
        same_owners = False
    try:
        os.fchown(handle, -1, of.st_gid)
    except OSError:  # the group is another: it may do what both the group and others may
        same_owners = False
        both = mode >> 3 & mode & 0o007
        mode = mode & 0o700 | both << 3 | both
    os.fchmod(handle, mode)
    if acl and same_owners:  # what it says of "the group" is meant for that one
        with contextlib.suppress(OSError):
            os.setxattr(handle, _ACL, acl)
    os.utime(handle, ns=(of.st_atime_ns, of.st_mtime_ns))


def _without_acl(mode: int, acl: bytes) -> int:
    """The permissions that give nobody more than those with the ACL (acl(5)), whose bits of the
    group are its mask."""
    if len(acl) < 4:
        return mode
    group, named = mode >> 3 & 7, 7
    for tag, bits, _ in struct.iter_unpack("<HHI", acl[4 : 4 + (len(acl) - 4) // 8 * 8]):
        if tag == _ACL_GROUP_OBJ:
            group &= bits
        elif tag in _ACL_NAMED:
            named &= bits
    return mode & 0o700 | (group & named) << 3 | mode & 7 & named


def _give_name(temporary: str, path: str, force: bool) -> None:
    if force:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)  # fails where something came there meanwhile
    except FileExistsError:
        raise UsageError(f"{path} exists; -f overwrites it") from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise UsageError(f"{path} exists; -f overwrites it") from None
        os.replace(temporary, path)
    else:
        os.unlink(temporary)


@contextlib.contextmanager
def _open_whole_file(
    name: str, source: BinaryIO | None, *, force: bool, sync: bool
) -> Iterator[BinaryIO]:
    """A file that gets its name when all went well; links are followed."""
    path = os.path.realpath(name)
    try:
        handle, temporary = tempfile.mkstemp(
            prefix=".wirepress-", suffix=".tmp", dir=os.path.dirname(path)
        )
    except OSError as error:
        error.filename = name
        raise
    try:
        with open(handle, "wb", buffering=0, closefd=False) as file:
            yield file  # which a wrapper of it may close
        _take_access(handle, source)
        if sync or os.path.exists(path):
            os.fsync(handle)
        _give_name(temporary, path, force)
        if sync:
            wps.sync_folder(os.path.dirname(path))
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        os.close(handle)


def stdout_is_closed() -> bool:
    """Whether the process was started without a stdout."""
    return fcntl.fcntl(sys.stdout.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


@contextlib.contextmanager
def _open_stdout(source: BinaryIO | None, force: bool) -> Iterator[BinaryIO]:
    if sys.stdout.isatty() and not force:
        raise UsageError("the result is binary and stdout is a terminal; -f writes it anyway")
    if stdout_is_closed():
        raise UsageError("stdout is closed")
    sys.stdout.flush()
    there = os.fstat(sys.stdout.fileno())
    if _is_regular(there):
        _refuse_the_source("stdout", there, source)
    # unbuffered, so that a full disk or a closed pipe shows here, not at exit
    with _Patient(sys.stdout.fileno(), "wb", closefd=False) as file:
        yield file


@contextlib.contextmanager
def open_output(
    name: str, source: BinaryIO | None = None, *, force: bool = False, durable: bool = False
) -> Iterator[BinaryIO]:
    """A file, or stdout for "-", for a result made of the open `source`.

    Args:
        force: overwrite what exists.
        durable: the result is on stable storage when this ends. A device, a pipe or stdout cannot
            promise that and is refused.

    Raises:
        UsageError: the name is the source's, or is taken.
    """
    there = _status(name) if name != PIPE else None
    if durable and (name == PIPE or (there is not None and not _is_regular(there))):
        what = "stdout" if name == PIPE else name
        raise UsageError(f"--rm needs a result in a regular file; {what} may keep none of it")
    if name == PIPE:
        with _open_stdout(source, force) as file:
            yield file
        return
    if there is not None:
        if stat.S_ISDIR(there.st_mode):
            raise UsageError(f"{name} is a folder")
        if not _is_regular(there):
            if stat.S_ISBLK(there.st_mode) and not force:
                raise UsageError(f"{name} is a disk; -f overwrites it")
            with open(name, "wb", buffering=0) as file:
                yield file
            return
        _refuse_the_source(name, there, source)
        if not force:
            raise UsageError(f"{name} exists; -f overwrites it")
    with _open_whole_file(name, source, force=force, sync=durable) as file:
        yield file


def write_all(file: BinaryIO, data: Any) -> None:
    """An unbuffered file may take less than it is given."""
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += file.write(view[done:])


def write_text(name: str, text: str) -> None:
    """A small text file under its final name, whole or not at all; - is stdout."""
    if name == PIPE:
        sys.stdout.write(text)
        return
    with open_output(name, force=True) as file:
        write_all(file, text.encode())
