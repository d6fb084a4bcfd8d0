# SPDX-License-Identifier: Apache-2.0
"""`wirepress compress` and `decompress`: files and pipes to frames and back.

A result appears under its final name whole or not at all: it is written beside it under a
temporary name, which an error or a signal removes. Streams take constant memory; a .npy file is
mapped, and the frame of its array (which remembers dtype and shape) is made in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import mmap
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from wirepress import _core, api, arrays, npy
from wirepress.errors import CorruptError, ParameterError, TruncatedError

SUFFIX = ".wpr"
PIPE = "-"
_PIECE = 1 << 20  # bytes read, and expanded, at a time
_DELAY = 0.5  # seconds that a file may take before its progress bar appears


class UsageError(Exception):
    """A request that makes no sense, or that would lose data; the text says what to do."""


@dataclasses.dataclass
class Result:
    """What was done with one file; one object of --json."""

    input: str
    output: str
    raw_size: int
    frame_size: int
    recipe: str
    dtype: str
    shape: tuple[int, ...] | None
    seconds: float

    @property
    def ratio(self) -> float:
        return self.raw_size / self.frame_size if self.frame_size else 1.0

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"ratio": round(self.ratio, 4)}

    def __str__(self) -> str:
        speed = self.raw_size / self.seconds / 1e6 if self.seconds else 0.0
        return (
            f"{self.input} -> {self.output}: {self.raw_size:,} raw, {self.frame_size:,} as frame "
            f"({self.ratio:.3f}x) in {self.seconds:.2f} s, {speed:.0f} MB/s"
        )


# ---- inputs and outputs ---------------------------------------------------------------------


@contextlib.contextmanager
def open_input(name: str) -> Iterator[BinaryIO]:
    if name == PIPE:
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as file:
            yield file
        return
    if os.path.isdir(name):
        raise UsageError(f"{name} is a folder")
    with open(name, "rb", buffering=0) as file:
        yield file


def _is_special(path: Path) -> bool:
    """A device, pipe or socket: written as it is."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _open_whole_file(path: Path, source: str, sync: bool) -> Iterator[BinaryIO]:
    """A file that gets its name, and the mode and times of its source, when all went well."""
    handle, temporary = tempfile.mkstemp(
        prefix=f".{path.name[:200]}.", suffix=".tmp", dir=path.parent
    )
    try:
        with open(handle, "wb", buffering=0) as file:
            yield file
            if sync:
                os.fsync(file.fileno())
        if source != PIPE and not _is_special(Path(source)):
            shutil.copystat(source, temporary)
        else:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def open_output(name: str, source: str, args: argparse.Namespace) -> Iterator[BinaryIO]:
    if name == PIPE:
        if sys.stdout.isatty() and not args.force:
            raise UsageError("the result is binary and stdout is a terminal; -f writes it anyway")
        sys.stdout.flush()
        # unbuffered, so that a full disk or a closed pipe shows here, not at exit
        with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as file:
            yield file
        return
    path = Path(name)
    if _is_special(path):
        if path.is_dir():
            raise UsageError(f"{name} is a folder")
        with open(path, "wb", buffering=0) as file:
            yield file
        return
    if path.exists() and not args.force:
        raise UsageError(f"{name} exists; -f overwrites it")
    with _open_whole_file(path, source, sync=args.rm) as file:
        yield file


def write_all(file: BinaryIO, data: Any) -> None:
    """An unbuffered file may take less than it is given."""
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += file.write(view[done:])


def _pieces(file: BinaryIO, bar: Any) -> Iterator[memoryview]:
    """The file's bytes in one reused buffer, which is filled whole: a pipe gives less at a time."""
    piece = memoryview(bytearray(_PIECE))
    size = _PIECE
    while size == _PIECE:
        size = 0
        # Read unbuffered, so that Python sees signals between reads.
        while size < _PIECE and (more := file.readinto(piece[size:])):  # type: ignore[attr-defined]
            size += more
        yield piece[:size]
        bar.update(size)


def _progress(name: str, file: BinaryIO, args: argparse.Namespace) -> Any:
    from tqdm import tqdm

    total = None
    with contextlib.suppress(OSError, ValueError):
        total = os.fstat(file.fileno()).st_size or None
    return tqdm(
        total=total,
        desc=os.path.basename(name),
        unit="B",
        unit_scale=True,
        delay=_DELAY,
        leave=False,
        disable=args.quiet or name == PIPE or not sys.stderr.isatty(),
    )


def bar_of_rows(args: argparse.Namespace) -> Any:
    """Counts rows of a table that takes minutes."""
    from tqdm import tqdm

    return tqdm(
        unit=" rows", delay=_DELAY, leave=False, disable=args.quiet or not sys.stderr.isatty()
    )


def write_text(name: str, text: str) -> None:
    """A small text file under its final name, whole or not at all; - is stdout."""
    if name == PIPE:
        sys.stdout.write(text)
        return
    with _open_whole_file(Path(name), PIPE, sync=False) as file:
        write_all(file, text.encode())


# ---- compress -------------------------------------------------------------------------------


def settings(args: argparse.Namespace) -> dict[str, str]:
    """The library options among the flags."""
    keys = (option.key for option in api.options())
    return {key: value for key in keys if (value := getattr(args, key, None)) is not None}


def _read_npy(name: str, file: BinaryIO, args: argparse.Namespace) -> npy.Header | None:
    """The header, or None where the file shall be compressed as the bytes it is."""
    wanted = args.npy if args.npy is not None else name.endswith(".npy") and not args.dtype
    if not wanted:
        return None
    try:
        return npy.read_header(file.read)
    except npy.NpyError as error:
        if args.npy:
            raise UsageError(f"{name}: {error}") from None
        if not args.quiet:
            print(f"wirepress: {name}: {error}: kept as bytes", file=sys.stderr)
        file.seek(0)
        return None


def _npy_elements(file: BinaryIO, header: npy.Header) -> memoryview:
    """The elements behind the header: mapped, or read where that cannot be."""
    size = arrays.n_bytes(arrays.dtype_code(header.dtype), header.shape)
    try:
        offset = file.tell()
        elements = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[offset:]
    except (OSError, ValueError):
        elements = memoryview(file.read())  # a pipe
    if len(elements) != size:
        raise UsageError(f"the .npy file has {len(elements)} bytes of elements, not {size}")
    return elements


def _compress_npy(
    source: BinaryIO, target: BinaryIO, header: npy.Header, args: argparse.Namespace
) -> api.Stats:
    compressor = api.Compressor(**settings(args))
    view = arrays.View(
        _npy_elements(source, header),
        arrays.dtype_code(header.dtype),
        len(header.shape),
        header.shape,
    )
    write_all(target, compressor.compress_view(view))
    return compressor.stats


def _compress_stream(
    source: BinaryIO, target: BinaryIO, bar: Any, args: argparse.Namespace
) -> api.Stats:
    stream = api.StreamCompressor(dtype=args.dtype or "bytes", **settings(args))
    for piece in _pieces(source, bar):
        write_all(target, stream.update(piece))
    write_all(target, stream.finish())
    return stream.stats


def compress_file(name: str, args: argparse.Namespace) -> Result:
    output = args.output or (PIPE if name == PIPE else name + SUFFIX)
    began = time.perf_counter()
    with open_input(name) as source, open_output(output, name, args) as target:
        header = _read_npy(name, source, args)
        if header:
            stats = _compress_npy(source, target, header, args)
        else:
            with _progress(name, source, args) as bar:
                stats = _compress_stream(source, target, bar, args)
    recipe = api.Compressor(**settings(args)).option("recipe")[0]
    return Result(
        name,
        output,
        stats.raw_bytes,
        stats.wire_bytes,
        recipe,
        header.dtype if header else args.dtype or "bytes",
        header.shape if header else None,
        time.perf_counter() - began,
    )


# ---- decompress -----------------------------------------------------------------------------


def _output_of(name: str) -> str:
    if name == PIPE:
        return PIPE
    if not name.endswith(SUFFIX) or len(os.path.basename(name)) == len(SUFFIX):
        raise UsageError(f"{name}: the name does not end in {SUFFIX}; say with -o where to write")
    return name.removesuffix(SUFFIX)


class Expander:
    """Takes a frame in pieces and writes what they expand to; counts both."""

    def __init__(self, target: BinaryIO, options: dict[str, str]) -> None:
        self.stream = api.StreamDecompressor(**options)
        self.target = target
        self.out = memoryview(bytearray(_PIECE))
        self.n_taken = self.n_written = 0

    def take(self, piece: memoryview) -> None:
        offset, written = 0, len(self.out)
        while not self.stream.done and (offset < len(piece) or written == len(self.out)):
            consumed, written = self.stream.update_into(piece, offset, self.out)
            offset += consumed
            self.n_taken += consumed
            self.n_written += written
            write_all(self.target, self.out[:written])
        if offset < len(piece):
            raise CorruptError(f"there are bytes after the end of the frame, at {self.n_taken}")

    def close(self) -> None:
        if not self.stream.done:
            raise TruncatedError(
                f"the frame ends after {self.n_taken} bytes, before its content does"
            )


def read_head(source: BinaryIO) -> bytes:
    """As many bytes as a header may have, or all there are."""
    head = b""
    while len(head) < _core.MAX_HEADER and (more := source.read(_core.MAX_HEADER - len(head))):
        head += more
    return head


def _wants_npy(output: str, info: api.Info, args: argparse.Namespace) -> bool:
    if args.npy and info.shape is None:
        raise UsageError("the frame remembers no shape: it cannot become a .npy file")
    wanted = args.npy if args.npy is not None else output.endswith(".npy")
    return bool(wanted and info.shape is not None)


def decompress_file(name: str, args: argparse.Namespace) -> Result:
    output = args.output or _output_of(name)
    began = time.perf_counter()
    with (
        open_input(name) as source,
        open_output(output, name, args) as target,
        _progress(name, source, args) as bar,
    ):
        head = read_head(source)
        if not head:
            raise TruncatedError("the input is empty")
        info = api.inspect(head)
        if _wants_npy(output, info, args):
            write_all(target, npy.make_header(npy.Header(info.dtype, info.shape or ())))
        expander = Expander(target, settings(args))
        expander.take(memoryview(head))
        bar.update(len(head))
        for piece in _pieces(source, bar):
            expander.take(piece)
        expander.close()
    return Result(
        name,
        output,
        expander.n_written,
        expander.n_taken,
        info.recipe,
        info.dtype,
        info.shape,
        time.perf_counter() - began,
    )


# ---- the commands ---------------------------------------------------------------------------


def check_request(args: argparse.Namespace) -> None:
    """Raises UsageError for files and flags that do not fit together."""
    if args.output and len(args.files) > 1:
        raise UsageError("-o takes one result; give one file")
    if args.files.count(PIPE) > 1:
        raise UsageError("- (stdin) can be read only once")
    if getattr(args, "dtype", None):
        try:
            arrays.dtype_code(args.dtype)
        except ParameterError as error:
            raise UsageError(str(error)) from None


def finish(result: Result, args: argparse.Namespace) -> None:
    """After one file: removes the source where asked, and says what was done."""
    if args.rm and result.input != PIPE:
        os.unlink(result.input)
    if not args.quiet and not args.json:
        print(result, file=sys.stderr)
