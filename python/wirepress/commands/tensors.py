# SPDX-License-Identifier: Apache-2.0
"""Files of tensors, cut in parts whose type is known: .npy, .safetensors, PyTorch's .pt.

Nothing here runs code of a file: a pickle is only read for the types of its storages. What is not
as expected stays bytes.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickletools
import struct
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from wirepress import arrays, wps
from wirepress.commands import npy
from wirepress.errors import CorruptError

_SUFFIXES = {".npy": "npy", ".safetensors": "safetensors", ".pt": "pt", ".pth": "pt"}

SMALL = 4096  # bytes; a smaller tensor stays with the bytes around it: a frame costs some 60
_MAX_PICKLE = 1 << 26


class TensorFileError(ValueError):
    """Not a file of this format, or a damaged one; the text says why."""


class CutShortError(TensorFileError):
    """It ends before what its header announces."""


class Part(NamedTuple):
    """Neighbouring bytes of a file that are of one type."""

    size: int | None  # bytes; None: until the end of the file
    dtype: str = "bytes"
    shape: tuple[int, ...] = ()
    name: str = ""  # of a tensor
    at: int = 0  # where it begins

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith(("float", "bfloat", "complex"))


class Layout(NamedTuple):
    """How a file is cut.

    patches: where a zip keeps the CRC-32 of which part, by its number.
    note: why there are no tensors.
    header: of a .npy file; `array`: it is all of the file but the elements, and can be made anew.
    """

    parts: list[Part]
    patches: dict[int, int] = {}  # noqa: RUF012  (never changed)
    note: str = ""
    header: npy.Layout | None = None
    array: npy.Header | None = None


def format_of(name: str) -> str:
    """The format that a file's name promises."""
    return _SUFFIXES.get(os.path.splitext(name)[1].lower(), "bytes")


def sniff(head: bytes) -> str:
    """The format that a file's first 9 bytes promise."""
    if head.startswith(npy.MAGIC):
        return "npy"
    if head.startswith(b"PK\3\4"):
        return "pt"
    length = int.from_bytes(head[:8], "little")
    return "safetensors" if head[8:9] == b"{" and 2 <= length <= wps.MAX_HEADER else "bytes"


class Source:
    """An unbuffered file, read in whole pieces, whose beginning can be looked at."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._ahead, self._begin = file, b"", None
        with contextlib.suppress(OSError):
            self._begin = file.tell()

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay; fewer only at the end of the file."""
        while len(self._ahead) < size:
            more = self._file.read(min(size - len(self._ahead), 1 << 20))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def fill(self, memory: memoryview) -> int:
        """Fills memory as far as the file reaches; returns how many bytes that are."""
        done = min(len(memory), len(self._ahead))
        memory[:done] = self._ahead[:done]
        self._ahead = self._ahead[done:]
        # Unbuffered, so that Python sees signals between reads; a pipe gives less at a time.
        while done < len(memory):
            more = self._file.readinto(memory[done:])  # type: ignore[attr-defined]
            if not more:
                break
            done += more
        return done

    def size(self) -> int | None:
        """Bytes of the whole file; None: a pipe, a device, or a file read from its middle."""
        return os.fstat(self._file.fileno()).st_size or None if self._begin == 0 else None

    def seekable(self) -> BinaryIO | None:
        """A second reader of the file; None: it is a pipe."""
        return open(os.dup(self._file.fileno()), "rb") if self.size() else None

    def rewind(self, at: int = 0) -> None:
        self._file.seek(at)
        self._ahead = b""


class _Peeker:
    """Reads what a source has ahead."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def read(self, size: int) -> bytes:
        data = self._source.peek(self._at + size)[self._at :]
        self._at += len(data)
        return data


def _cut(tensors: list[Part], end: int | None) -> list[Part]:
    """Parts from the file's beginning to its end, tensors and the bytes between them."""
    parts, at = [], 0
    for tensor in sorted(tensors, key=lambda part: part.at):
        size = tensor.size or 0
        if tensor.at < at:
            raise TensorFileError(f"its tensor {tensor.name} begins inside the one before")
        if size < SMALL or tensor.dtype == "bytes":
            continue
        if tensor.at > at:
            parts.append(Part(tensor.at - at, at=at))
        parts.append(tensor)
        at = tensor.at + size
    if end is None or end > at:
        parts.append(Part(None if end is None else end - at, at=at))
    return parts


def _require_whole(size: int | None, end: int) -> None:
    if size is not None and size < end:
        raise CutShortError(f"it ends after {size} bytes; its header says {end}")


# ---- .npy -----------------------------------------------------------------------------------


def npy_layout(source: Source) -> Layout:
    """A .npy file: its header, the elements, and what follows them."""
    try:
        found = npy.parse(_Peeker(source).read)
    except npy.NpyError as error:
        raise TensorFileError(str(error)) from None
    begin, size = len(found.head), source.size()
    if found.kind is None:  # records, text, pickled objects
        return Layout([Part(size)], note=f"its dtype {found.descr!r} is kept as bytes")
    dtype, count = found.kind
    shape = found.memory_shape + ((count,) if count > 1 else ())
    n_bytes = arrays.n_bytes(arrays.dtype_code(dtype), shape)
    end = begin + n_bytes
    if size is not None and size < end:
        raise CutShortError(f"the .npy file has {size - begin} bytes of elements, not {n_bytes}")
    parts = [Part(begin), Part(n_bytes, dtype, shape, "its array", begin)]
    parts.append(Part(None if size is None else size - end, at=end))
    array = found.header if size in (None, end) else None
    return Layout([part for part in parts if part.size != 0], header=found, array=array)


# ---- .safetensors ---------------------------------------------------------------------------


def safetensors_layout(source: Source) -> Layout:
    """A .safetensors file, by its header."""
    head = source.peek(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or not 2 <= length <= wps.MAX_HEADER:
        raise TensorFileError("this is not a .safetensors file")
    if source.peek(9)[8:] != b"{":
        raise TensorFileError("this is not a .safetensors file")
    text = source.peek(8 + length)[8:]
    if len(text) < length:
        raise CutShortError(f"it ends after {8 + len(text)} bytes, in its header")
    try:
        tensors = [
            Part(entry.size, entry.frame_dtype, entry.shape, entry.name, 8 + length + entry.begin)
            for entry in wps.parse_entries(text)
        ]
    except CorruptError as error:
        raise TensorFileError(str(error)) from None
    size = source.size()
    end = max((part.at + (part.size or 0) for part in tensors), default=8 + length)
    _require_whole(size, end)
    if size is None:  # a pipe may have more
        return Layout([*_cut(tensors, end), Part(None, at=end)])
    return Layout(_cut(tensors, size))


# ---- .pt ------------------------------------------------------------------------------------

_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}  # fmt: skip
_TORCH_DTYPES = {
    "float8_e4m3fn": "float8_e4m3", "float8_e5m2": "float8_e5m2", "uint16": "uint16",
    "uint32": "uint32", "uint64": "uint64",
}  # fmt: skip


class _Name(str):
    """A name that a pickle imports, such as "torch FloatStorage"; here it stays a name."""


class _Storage(NamedTuple):
    """A storage that a pickle refers to."""

    dtype: str | None  # None: untyped
    key: str
    count: int


class _Mark:
    pass


class _Reader:
    """Follows a pickle's stack without making objects: texts, numbers and tuples of them only."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.found: dict[str, tuple[str, tuple[int, ...]] | None] = {}

    def _to_mark(self) -> list[Any]:
        items = []
        while not isinstance(item := self.stack.pop(), _Mark):
            items.append(item)
        return items[::-1]

    def _note(self, storage: _Storage, dtype: str, shape: tuple[int, ...]) -> None:
        """What a storage holds; None: not one thing."""
        old = self.found.get(storage.key, (dtype, shape))
        if old and old[0] == dtype:
            keep = len(old[1]) != 1 and math.prod(old[1]) == math.prod(shape)
            self.found[storage.key] = (dtype, old[1] if keep else shape)
        else:
            self.found[storage.key] = None

    def _persistent(self, pid: Any) -> Any:
        match pid:
            case ("storage", _Name() as kind, str(key), _, int(count)):
                name = kind.rpartition(" ")[2]
                if name != "UntypedStorage":
                    dtype = _STORAGES.get(name)
                    storage = _Storage(dtype, key, count)
                    self._note(storage, dtype or "bytes", (count,))
                    return storage
                return _Storage(None, key, count)
        return None

    def _call(self, function: Any, arguments: Any) -> None:
        """A tensor says its storage's shape, and a new one's type."""
        match str(function) if isinstance(function, _Name) else "", arguments:
            case "torch._utils _rebuild_tensor_v2", (_Storage() as storage, 0, tuple(shape), *_):
                dtype = storage.dtype
            case (
                "torch._utils _rebuild_tensor_v3",
                (_Storage() as storage, 0, tuple(shape), _, _, _, _Name() as word, *_),
            ):
                dtype = _TORCH_DTYPES.get(word.rpartition(" ")[2])
            case _:
                return
        if dtype is None or not all(isinstance(n, int) for n in shape):
            return
        count = storage.count
        if storage.dtype is None:
            count //= arrays.dtype_size(arrays.dtype_code(dtype))
        self._note(storage, dtype, shape if math.prod(shape) == count else (count,))

    def step(self, op: pickletools.OpcodeInfo, argument: Any) -> None:
        """Does to the stack what one opcode does."""
        name, stack = op.name, self.stack
        if name == "MARK":
            stack.append(_Mark())
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif "PUT" in name:
            self.memo[int(argument)] = stack[-1]
        elif "GET" in name:
            stack.append(self.memo[int(argument)])
        elif name == "GLOBAL":
            stack.append(_Name(argument))
        elif name == "STACK_GLOBAL":
            word, module = stack.pop(), stack.pop()
            stack.append(_Name(f"{module} {word}"))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            n = int(name[-1])
            stack[-n:] = [tuple(stack[-n:])]
        elif name == "TUPLE":
            stack.append(tuple(self._to_mark()))
        elif name == "EMPTY_TUPLE":
            stack.append(())
        elif name == "BINPERSID":
            stack.append(self._persistent(stack.pop()))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            self._call(function, arguments)
            stack.append(None)
        else:
            self._other(op, argument)

    def _other(self, op: pickletools.OpcodeInfo, argument: Any) -> None:
        before = list(op.stack_before)
        if pickletools.markobject in before:
            self._to_mark()
            before = before[: before.index(pickletools.markobject)]
        for _ in before:
            self.stack.pop()
        constant = argument if len(op.stack_after) == 1 and not before else None
        self.stack.extend([constant] * len(op.stack_after))


def storages(pickled: bytes) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of the storages that a pickle of torch.save names, by their keys.

    The pickle is read, not run; of one that is no such pickle nothing is found.
    """
    reader = _Reader()
    try:
        for op, argument, _ in pickletools.genops(pickled):
            reader.step(op, argument)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error):
        return {}
    return {key: found for key, found in reader.found.items() if found and found[0] != "bytes"}


def _is_plain(entry: zipfile.ZipInfo) -> bool:
    return (
        entry.compress_type == zipfile.ZIP_STORED
        and entry.compress_size == entry.file_size
        and not entry.flag_bits & 1
    )


def _data_at(file: BinaryIO, entry: zipfile.ZipInfo) -> int:
    """Where an entry's data begin, behind its local header."""
    file.seek(entry.header_offset)
    head = file.read(30)
    if head[:4] != b"PK\3\4":
        raise TensorFileError(f"its entry {entry.filename} has no header")
    names, extra = struct.unpack("<HH", head[26:30])
    return entry.header_offset + 30 + names + extra


def _central_crcs(file: BinaryIO, archive: zipfile.ZipFile) -> list[int]:
    """Where the directory keeps each entry's CRC-32, in the order of infolist()."""
    found, at = [], archive.start_dir
    for _ in archive.infolist():
        file.seek(at)
        head = file.read(46)
        if head[:4] != b"PK\1\2":
            raise TensorFileError("its directory is damaged")
        found.append(at + 16)
        at += 46 + sum(struct.unpack("<HHH", head[28:34]))
    return found


def _crcs_of(file: BinaryIO, entry: zipfile.ZipInfo, data_at: int, central: int) -> list[int]:
    """Every place that holds the entry's CRC-32."""
    word, places = struct.pack("<I", entry.CRC), [central]
    file.seek(entry.header_offset + 14)
    if file.read(4) == word:
        places.append(entry.header_offset + 14)
    if entry.flag_bits & 8:  # a data descriptor, with its signature or without
        at = data_at + entry.file_size
        file.seek(at)
        behind = file.read(8)
        at += 4 if behind[:4] == b"PK\7\x08" else 0
        if word in (behind[:4], behind[4:]):
            places.append(at)
    return places


def _torch_tensors(file: BinaryIO) -> tuple[list[Part], dict[int, list[int]]]:
    """The storages of an archive, and where the CRC-32 of each stands, by its place."""
    tensors, crcs = [], {}
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        pickles = [e for e in entries if e.filename.rpartition("/")[2] == "data.pkl"]
        if len(pickles) != 1 or not _is_plain(pickles[0]) or pickles[0].file_size > _MAX_PICKLE:
            return [], {}
        prefix = pickles[0].filename.removesuffix("data.pkl")
        types = storages(archive.read(pickles[0]))
        order = next((e for e in entries if e.filename == prefix + "byteorder"), None)
        if order is not None and archive.read(order) != b"little":
            return [], {}
        for entry, central in zip(entries, _central_crcs(file, archive), strict=True):
            dtype, shape = types.get(entry.filename.removeprefix(prefix + "data/"), ("", ()))
            if not dtype or not entry.filename.startswith(prefix + "data/"):
                continue
            n_bytes = arrays.n_bytes(arrays.dtype_code(dtype), shape)
            if _is_plain(entry) and entry.file_size == n_bytes:
                at = _data_at(file, entry)
                tensors.append(Part(n_bytes, dtype, shape, entry.filename, at))
                crcs[at] = _crcs_of(file, entry, at, central)
    return tensors, crcs


def torch_layout(source: Source) -> Layout:
    """A file of torch.save: a zip of stored entries and a pickle that says what they are."""
    size, file = source.size(), source.seekable()
    if file is None or size is None:
        if not source.peek(1):
            raise TensorFileError("this is no zip, but empty")
        raise TensorFileError("a .pt file has its directory at its end: it cannot be a pipe")
    try:
        with file:
            if file.read(2) != b"PK":
                raise TensorFileError("this is no zip, as torch.save has written since PyTorch 1.6")
            tensors, crcs = _torch_tensors(file)
    except (zipfile.BadZipFile, NotImplementedError, struct.error, RuntimeError, EOFError) as error:
        raise CutShortError(f"its zip archive is damaged: {error}") from None
    finally:
        source.rewind()
    parts = _cut(tensors, size)
    _require_whole(size, max((part.at + (part.size or 0) for part in tensors), default=0))
    patches = {at: i for i, part in enumerate(parts) for at in crcs.get(part.at, ()) if part.name}
    note = "" if tensors else "no tensors were found in it"
    return Layout(parts, patches, note)


LAYOUTS: dict[str, Callable[[Source], Layout]] = {
    "npy": npy_layout,
    "safetensors": safetensors_layout,
    "pt": torch_layout,
}

FORMATS = (*LAYOUTS, "bytes")
