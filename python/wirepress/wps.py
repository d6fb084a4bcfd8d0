# SPDX-License-Identifier: Apache-2.0
"""Files of tensors that notice damage: .wps, the header of safetensors and a frame for each tensor.

The format is spec/wps.md. `pack` and `unpack` turn a .safetensors file into a .wps file and back,
byte for byte. `Writer` and `Reader` work tensor by tensor, on bytes.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import secrets
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from wirepress import api, arrays, seals
from wirepress.errors import CorruptError, FrameError, ParameterError, TruncatedError
from wirepress.uncopied import Uncopied

SUFFIX = ".wps"
DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E4M3": "float8_e4m3", "F8_E5M2": "float8_e5m2",
    "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32",
    "U32": "uint32", "F32": "float32", "F64": "float64", "I64": "int64", "U64": "uint64",
    "C64": "complex64",
}  # fmt: skip
"""Types of safetensors that frames know; tensors of other types are coded as bytes."""

MAX_HEADER = 100_000_000  # bytes; the limit of safetensors
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_HEAD = struct.Struct("<4sIQ")  # magic and version, number of tensors, bytes of the header
MAGIC = b"WPT\x20"
_ENTRY, _CRC = struct.Struct("<QI"), struct.Struct("<I")  # of the index: size and seal of a frame


class Tensor(NamedTuple):
    """A tensor in the header: `dtype` as safetensors names it, bytes `begin` to `end` of the data
    of the .safetensors file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin

    @property
    def frame_dtype(self) -> str:
        return DTYPES.get(self.dtype, "bytes")


def _tensor(name: str, entry: Any) -> Tensor:
    shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
    if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)) or end < begin:
        raise ValueError
    tensor = Tensor(name, entry["dtype"], shape, begin, end)
    item = arrays.dtype_size(arrays.dtype_code(tensor.frame_dtype))
    if tensor.frame_dtype != "bytes" and math.prod(shape) * item != tensor.size:
        raise CorruptError(f"tensor {name} has {tensor.size} bytes, not those of its shape")
    return tensor


def parse_entries(header: bytes) -> list[Tensor]:
    """The tensors of a safetensors header, each one checked alone.

    Raises:
        CorruptError: the header is damaged.
    """
    try:
        entries = json.loads(header)
        return [_tensor(name, entry) for name, entry in entries.items() if name != "__metadata__"]
    except CorruptError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CorruptError("the header of safetensors is damaged") from None


def parse_header(header: bytes) -> list[Tensor]:
    """The tensors of a safetensors header, in the order of their data.

    Raises:
        CorruptError: the header is damaged, or the tensors do not follow each other without gaps.
    """
    found = sorted(parse_entries(header), key=lambda tensor: (tensor.begin, tensor.end))
    at = 0
    for tensor in found:
        if tensor.begin != at:
            raise CorruptError(f"tensor {tensor.name} begins at {tensor.begin}, not at {at}")
        at = tensor.end
    return found


def recipe_for(dtype: str, recipe: str) -> str:
    """What codes elements of a type: `recipe` floats, others one that loses nothing."""
    if dtype in _FLOATS:
        return recipe
    return arrays.DEFAULT_RECIPE if arrays.dtype_size(arrays.dtype_code(dtype)) > 1 else "zstd:1"


def _read(file: BinaryIO, size: int, what: str) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise TruncatedError(f"the file ends in {what}")
    return data


class Writer(Uncopied):
    """Writes a .wps file by `write`, which takes bytes: all tensors of the header, in order.

    Args:
        recipe: of float tensors; None: `planes`, which is lossless. A lossy recipe must be named
            here: no option of the environment selects it. Other tensors are always lossless.
        options: of `wirepress.Compressor`, such as `threads`.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        header: bytes,
        recipe: str | None = None,
        **options: Any,
    ) -> None:
        self.tensors = parse_header(header)
        self._write, self._recipe = write, recipe or "planes"
        self._options = options | {"checksum": "on"}
        self._made: dict[str, api.Compressor] = {}
        self._entries: list[bytes] = []
        self._described = _HEAD.pack(MAGIC, len(self.tensors), len(header)) + header
        for dtype in {tensor.frame_dtype for tensor in self.tensors} & {*_FLOATS}:
            self._compressor(dtype).lossless(dtype)  # raises where the recipe does not take it
        write(self._described)

    def _compressor(self, dtype: str) -> api.Compressor:
        recipe = recipe_for(dtype, self._recipe)
        if recipe not in self._made:
            self._made[recipe] = api.Compressor(**{**self._options, "recipe": recipe})
        return self._made[recipe]

    def add(self, memory: Any) -> None:
        """Writes the next tensor; `memory` holds its bytes, row by row."""
        tensor = self.tensors[len(self._entries)]
        view, code = memoryview(memory), arrays.dtype_code(tensor.frame_dtype)
        if view.nbytes != tensor.size:
            raise ParameterError(
                f"tensor {tensor.name} takes {tensor.size} bytes, not {view.nbytes}"
            )
        shape = (tensor.size // arrays.dtype_size(code),)
        compressor = self._compressor(tensor.frame_dtype)
        frame = compressor.compress_view(arrays.View(view, code, 1, shape))
        self._write(frame)
        seal = seals.seal(seals.heads_of(frame, compressor))
        self._entries.append(_ENTRY.pack(len(frame), seal))

    def finish(self) -> None:
        """Writes the index; without it the file is refused."""
        if len(self._entries) != len(self.tensors):
            raise ParameterError(
                f"{len(self._entries)} of {len(self.tensors)} tensors were written"
            )
        index = b"".join(self._entries)
        self._write(index + _CRC.pack(zlib.crc32(index, zlib.crc32(self._described))))


class Reader(Uncopied):
    """Reads tensors of a .wps file, each without the others.

    Args:
        file: a seekable, buffered file at its beginning.
        options: of `wirepress.Compressor`, such as `threads`.

    Raises:
        FrameError: not a .wps file, or one that is damaged or cut short.
    """

    def __init__(self, file: io.BufferedReader, **options: Any) -> None:
        self._file, self._compressor = file, api.Compressor(**options)
        self._room = memoryview(b"")
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = _read(file, _HEAD.size, "its head")
        magic, count, length = _HEAD.unpack(head)
        if magic != MAGIC:
            raise CorruptError(f"this is not a {SUFFIX} file of version 2")
        data = _HEAD.size + length
        end = size - count * _ENTRY.size - _CRC.size
        if length > MAX_HEADER or data > end:
            raise TruncatedError(f"the file has {size} bytes, less than its head announces")
        self.header = _read(file, length, "its header")
        file.seek(end)
        index = _read(file, count * _ENTRY.size, "its index")
        crc = zlib.crc32(index, zlib.crc32(self.header, zlib.crc32(head)))
        if _CRC.unpack(_read(file, _CRC.size, "its index"))[0] != crc:
            raise CorruptError("the header or the index is damaged, or the file was cut short")
        entries = list(_ENTRY.iter_unpack(index))
        self.tensors = parse_header(self.header)
        if len(self.tensors) != count or data + sum(size for size, _ in entries) != end:
            raise CorruptError("the header and the index contradict each other")
        self._places = {}
        for tensor, (size, seal) in zip(self.tensors, entries, strict=True):
            self._places[tensor.name] = tensor, data, size, seal
            data += size

    def stored_size(self, name: str) -> int:
        """The bytes of a tensor's frame; KeyError: the file has no tensor of this name."""
        return self._places[name][2]

    def read(self, name: str) -> memoryview:
        """The bytes of a tensor.

        Raises:
            KeyError: the file has no tensor of this name.
            FrameError: the tensor is damaged; the text names it.
        """
        tensor, at, size, seal = self._places[name]
        try:
            self._file.seek(at)
            return self._expand(self._frame(size), tensor, seal)
        except FrameError as error:
            raise type(error)(f"tensor {name}: {error}") from None

    def _frame(self, size: int) -> memoryview:
        """The next bytes of the file, until the next call."""
        if len(self._room) < size:
            self._room = arrays.unwritten(size)
        frame = self._room[:size]
        if self._file.readinto(frame) < size:
            raise TruncatedError("the file ends in a tensor")
        return frame

    def _expand(self, frame: memoryview, tensor: Tensor, seal: int) -> memoryview:
        info = self._compressor.inspect(frame)
        if (info.raw_size, info.dtype) != (tensor.size, tensor.frame_dtype):
            raise CorruptError(
                f"its frame holds {info.raw_size} bytes of {info.dtype}, the header says "
                f"{tensor.size} of {tensor.frame_dtype}"
            )
        if seals.seal(seals.heads_of(frame, self._compressor)) != seal:
            raise CorruptError("its frame does not match its seal in the index")
        memory = arrays.unwritten(tensor.size)
        self._compressor.decompress(frame, memory)
        return memory


def pack(
    source: BinaryIO,
    write: Callable[[bytes], object],
    recipe: str | None = None,
    progress: Callable[[int], object] = lambda size: None,
    **options: Any,
) -> None:
    """Makes a .wps file of a .safetensors file.

    Args:
        source: a buffered file, read once from its beginning to its end.
        write, recipe, options: see `Writer`.
        progress: takes the bytes of each tensor that is done.

    Raises:
        FrameError: the source is not a .safetensors file, or one that is damaged or cut short.
    """
    length = int.from_bytes(_read(source, 8, "its head"), "little")
    if not 2 <= length <= MAX_HEADER:
        raise CorruptError("this is not a .safetensors file")
    writer = Writer(write, _read(source, length, "its header"), recipe, **options)
    for tensor in writer.tensors:
        writer.add(_read(source, tensor.size, f"tensor {tensor.name}"))
        progress(tensor.size)
    if source.read(1):
        raise CorruptError("bytes follow the last tensor")
    writer.finish()


def unpack(
    source: BinaryIO,
    write: Callable[[bytes | bytearray], object],
    progress: Callable[[int], object] = lambda size: None,
    **options: Any,
) -> None:
    """Makes the .safetensors file that a .wps file was made of; see `Reader` and `pack`."""
    reader = Reader(source, **options)
    write(len(reader.header).to_bytes(8, "little") + reader.header)
    for tensor in reader.tensors:
        write(reader.read(tensor.name))
        progress(tensor.size)


def sync_folder(path: str) -> None:
    """Brings the names in a folder to stable storage."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that has its name when it is whole and on stable storage; an error removes it.

    A process that is killed leaves what was at `path`, and a file `.NAME.*.part` beside it. A
    device or a pipe cannot keep it, and is no name to be taken from its owner: ParameterError.
    """
    folder, name = os.path.split(os.path.realpath(path))
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ParameterError(f"{os.fspath(path)} is not a regular file: give another name")
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
    try:
        file = open(temporary, "xb")  # noqa: SIM115
    except OSError as error:
        error.filename = os.fspath(path)  # who gave it knows no other
        raise
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)
