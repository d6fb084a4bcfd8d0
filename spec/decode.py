#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder from spec/frame.md, series.md, wps.md, dcp.md and patch.md alone, in plain Python.

It shares nothing with the library: the codecs' own decoders are codecs/NAME/reference.py, found
through the ids in codecs/NAME/CMakeLists.txt. Slow, and meant to be read beside the specification.

    python3 spec/decode.py FRAME_OR_SERIES > RAW
    python3 spec/decode.py MODEL.wps > MODEL.safetensors
    python3 spec/decode.py CHECKPOINT_FOLDER       lists its items
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent))
from xxh3 import xxh3_64

CODECS = Path(__file__).parent.parent / "codecs"
DTYPES = (
    "bytes int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64"
    " float8_e4m3 float8_e5m2 bool complex64 complex128"
).split()
ELEMENT_SIZE = [1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1, 8, 16]
MAX_HEADER, MAX_RAW, MAX_BLOCK, MAX_OWN_RECIPES = 64, 1 << 48, 1 << 28, 8
Stage = tuple[str, list[int | float]]


class FrameError(ValueError):
    """The bytes are not a valid frame."""


def refuse(condition: bool, sentence: str) -> None:
    if condition:
        raise FrameError(sentence)


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        refuse(self.at + size > len(self.data), f"ends at byte {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def varint(self) -> int:
        value = 0
        for i in range(10):
            byte = self.number(1)
            value |= (byte & 127) << 7 * i
            if byte < 128:
                refuse((byte == 0 and i > 0) or value >= 1 << 64, "not a shortest varint")
                return value
        raise FrameError("not a shortest varint")


@dataclass
class Header:
    checksum: bool
    streamed: bool
    dtype: str
    shape: tuple[int, ...] | None
    raw_size: int | None
    block_size: int
    stages: list[Stage] = field(default_factory=list)
    slabs: bool = False
    own: list[list[Stage]] = field(default_factory=list)


@cache
def codec_names() -> dict[int, str]:
    names = {}
    for path in sorted(CODECS.glob("*/CMakeLists.txt")):
        match = re.search(r"wpr_add_codec\((\w+)\s+ID\s+(0x[0-9A-Fa-f]+|\d+)", path.read_text())
        if match:
            names[int(match[2], 0)] = match[1]
    return names


@cache
def reference(name: str) -> ModuleType:
    """codecs/NAME/reference.py: decode(data, params, raw_size) -> bytes, or ValueError."""
    path = CODECS / name / "reference.py"
    spec = importlib.util.spec_from_file_location(f"reference_{name}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_real(data: bytes) -> float | None:
    """digits * 10^exponent; None: not the shortest form."""
    digits = int.from_bytes(data[:2], "little")
    exponent = int.from_bytes(data[2:3], "little", signed=True)
    shortest = digits % 10 != 0 if digits else exponent == 0
    return float(f"{digits}e{exponent}") if shortest and digits <= 32767 else None


def read_params(name: str, data: bytes) -> list[int | float]:
    """As PARAMS of the codec's reference.py has them: the ranges; those of floats are of reals."""
    ranges = getattr(reference(name), "PARAMS", ())
    later = list(getattr(reference(name), "LATER", ()))
    n_early = len(ranges) - len(later)
    sizes = [3 if isinstance(least, float) else 1 for least, _ in ranges]
    left_out = bool(later) and len(data) == sum(sizes[:n_early])
    refuse(not left_out and len(data) != sum(sizes), f"{len(data)} bytes of parameters of {name}")
    params: list[int | float] = []
    for size, (least, most) in zip(sizes, ranges[: n_early if left_out else None], strict=False):
        value = read_real(data) if size == 3 else int.from_bytes(data[:1], "little", signed=True)
        refuse(value is None or not least <= value <= most, f"{name}: a parameter is {value}")
        params.append(value or 0)
        data = data[size:]
    refuse(bool(later) and params[n_early:] == later, f"{name}: defaults that are left out")
    return params + (later if left_out else [])


def refuse_id(number: int) -> None:
    for name in codec_names().values():
        former = getattr(reference(name), "FORMER_ID", 0) == number
        refuse(former, f"codec id 0x{number:03x}: an older format of {name}, which is not read")
    refuse(True, f"unknown codec id 0x{number:03x}")


def read_stage(reader: Reader, dtype: str) -> Stage:
    word = reader.number(2)
    refuse(word >> 12 > 12, f"stage with {word >> 12} bytes of parameters")
    if word & 0xFFF not in codec_names():
        refuse_id(word & 0xFFF)
    name, data = codec_names()[word & 0xFFF], reader.take(word >> 12)
    params, codec = read_params(name, data), reference(name)
    types = getattr(codec, "TYPES", (dtype,))
    refuse(dtype not in (*types, "bytes"), f"{name} does not take {dtype}")
    try:
        getattr(codec, "check", lambda params, dtype: None)(params, dtype)
    except ValueError as error:
        raise FrameError(str(error)) from None
    return name, params


def read_stages(reader: Reader, n_stages: int, dtype: str) -> list[Stage]:
    """In the order of encoding. What comes before a codec that needs the raw size keeps sizes."""
    refuse(not 1 <= n_stages <= 4, f"{n_stages} stages")
    stages = [read_stage(reader, dtype) for _ in range(n_stages)]
    known = True
    for name, _ in stages:
        needs = getattr(reference(name), "NEEDS_SIZE", not hasattr(reference(name), "KEEPS_SIZE"))
        refuse(needs and not known, f"{name} must know the raw size")
        known = known and getattr(reference(name), "KEEPS_SIZE", False)
    return stages


def read_header(reader: Reader) -> Header:
    refuse(reader.take(3) != b"WPR", "not a frame: wrong magic")
    version_flags, dtype_dims, block_stages = reader.take(3)
    refuse(version_flags >> 4 != 1, f"version {version_flags >> 4}")
    refuse(version_flags & 8 != 0, "reserved flag")
    dtype, dims = dtype_dims & 31, dtype_dims >> 5
    refuse(dtype >= len(DTYPES), f"dtype {dtype}")
    refuse(dims in (5, 6), f"dims {dims}")
    streamed = bool(version_flags & 2)
    refuse(streamed and dims != 7, "streamed frame with a shape")
    log, n_stages = block_stages & 31, block_stages >> 5
    refuse(not 10 <= log <= 28, f"block size 2^{log}")
    stages = read_stages(reader, n_stages, DTYPES[dtype])
    shape, raw_size = None, None
    if not streamed and dims == 7:
        raw_size = reader.varint()
        refuse(raw_size % ELEMENT_SIZE[dtype] != 0, "raw size is no multiple of the element size")
    elif not streamed:
        shape = tuple(reader.varint() for _ in range(dims))
        refuse(math.prod(max(n, 1) for n in shape) * ELEMENT_SIZE[dtype] > MAX_RAW, "overflow")
        raw_size = math.prod(shape) * ELEMENT_SIZE[dtype]
    refuse(raw_size is not None and raw_size > MAX_RAW, "raw size above 2^48")
    covered = reader.data[: reader.at]
    checksum = reader.number(4)
    refuse(checksum != xxh3_64(covered) & 0xFFFFFFFF, "header checksum")
    refuse(reader.at > MAX_HEADER, f"header of {reader.at} bytes")
    block_size, slabs = 1 << log, bool(version_flags & 4)
    if slabs:
        refuse(shape is None or len(shape) < 2 or raw_size == 0, "no rows to cut blocks at")
        assert shape is not None
        four_rows = 4 * math.prod(shape[1:]) * ELEMENT_SIZE[dtype]
        refuse(four_rows > MAX_BLOCK, "four rows pass 2^28 bytes")
        block_size = max(four_rows, block_size // four_rows * four_rows)
    return Header(
        bool(version_flags & 1), streamed, DTYPES[dtype], shape, raw_size, block_size, stages, slabs
    )


def own_recipe(header: Header, number: int, data: bytes) -> tuple[list[Stage], bytes]:
    """The recipe at the beginning of a block's payload, and the code behind it."""
    reader = Reader(data)
    stages = read_stages(reader, reader.number(1), header.dtype)
    refuse(reader.at == len(data), f"block {number}: nothing behind its recipe")
    if stages not in header.own:
        header.own.append(stages)
    refuse(len(header.own) > MAX_OWN_RECIPES, f"block {number}: too many recipes")
    return stages, data[reader.at :]


def expand(
    header: Header,
    name: str,
    params: list[int | float],
    data: bytes,
    size: int,
    first: bool = True,
) -> bytes:
    codec = reference(name)
    if not getattr(codec, "TYPED", False):
        return codec.decode(data, params, size)
    if not getattr(codec, "SHAPED", False):
        return codec.decode(data, params, size, header.dtype)
    shape = header.shape if header.slabs and first else None
    return codec.decode(data, params, size, header.dtype, shape)


def read_block(reader: Reader, header: Header, number: int, raw_size: int) -> tuple[bytes, bool]:
    """One block, expanded, and whether it is the last of a stream."""
    word = reader.number(4)
    raw, last, stored = bool(word >> 31), bool(word >> 30 & 1), word & (1 << 29) - 1
    own = bool(word >> 29 & 1)
    checksum = reader.number(4) if header.checksum else None
    begin = reader.at
    refuse(last and not header.streamed, f"block {number}: last, but not streamed")
    if last:
        raw_size = reader.number(4)
        refuse(raw_size > header.block_size, f"block {number}: raw size {raw_size}")
    refuse(stored > raw_size, f"block {number}: stored size {stored} of {raw_size}")
    refuse(raw and stored != raw_size, f"block {number}: raw, but {stored} of {raw_size} bytes")
    refuse(raw and own, f"block {number}: raw, and with a recipe")
    refuse(not raw and stored == 0, f"block {number}: empty, but not raw")
    data = reader.take(stored)
    if checksum is not None:
        seed = (number + (word << 32)) & (1 << 64) - 1
        expected = xxh3_64(reader.data[begin : reader.at], seed) & 0xFFFFFFFF
        refuse(checksum != expected, f"block {number}: checksum")
    if raw:
        return data, last
    stages = header.stages
    if own:
        stages, data = own_recipe(header, number, data)
    for i, (name, params) in reversed(list(enumerate(stages))):
        try:
            data = expand(header, name, params, data, raw_size, i == 0)
        except ValueError as error:
            raise FrameError(f"block {number}: {name}: {error}") from error
    refuse(len(data) != raw_size, f"block {number}: {len(data)} bytes instead of {raw_size}")
    return data, last


def read_frame(reader: Reader) -> tuple[Header, bytes]:
    """Header and raw bytes of the frame that begins here."""
    # a header's checksum covers what stands before it in its own frame
    own = Reader(reader.data[reader.at :])
    header = read_header(own)
    parts: list[bytes] = []
    if header.raw_size is None:
        last = False
        while not last:
            data, last = read_block(own, header, len(parts), header.block_size)
            parts.append(data)
    else:
        for begin in range(0, header.raw_size, header.block_size):
            size = min(header.block_size, header.raw_size - begin)
            parts.append(read_block(own, header, len(parts), size)[0])
    reader.at += own.at
    return header, b"".join(parts)


def decode(frame: bytes) -> tuple[Header, bytes]:
    """Header and raw bytes of one whole frame; FrameError for anything else."""
    reader = Reader(bytes(frame))
    header, raw = read_frame(reader)
    refuse(reader.at != len(frame), f"{len(frame) - reader.at} bytes after the last block")
    return header, raw


def decode_series(series: bytes) -> tuple[list[Header], bytes]:
    """Headers of the frames and all raw bytes of a series (spec/series.md)."""
    reader = Reader(bytes(series))
    refuse(reader.take(3) != b"WPS", "not a series: wrong magic")
    version = reader.number(1)
    refuse(version != 0x10, f"version and flags {version:#x}")
    headers: list[Header] = []
    parts: list[bytes] = []
    while reader.data[reader.at : reader.at + 3] == b"WPR":
        header, raw = read_frame(reader)
        headers.append(header)
        parts.append(raw)
    begin = reader.at
    refuse(reader.take(3) != b"WPE", "neither a frame nor the end record")
    refuse(reader.number(1) != version, "version of the end record")
    n_frames, raw_size = reader.number(8), reader.number(8)
    crc = zlib.crc32(reader.data[begin : reader.at])
    refuse(reader.number(4) != crc, "checksum of the end record")
    raw = b"".join(parts)
    refuse((n_frames, raw_size) != (len(parts), len(raw)), "the end record is not of these frames")
    refuse(reader.at != len(series), f"{len(series) - reader.at} bytes after the end record")
    return headers, raw


# ---- tensors: spec/wps.md and spec/dcp.md -----------------------------------------------------


def heads_of(frame: bytes) -> bytes:
    """The header and, behind each other, the word and the checksum of every block."""
    reader = Reader(frame)
    header = read_header(reader)
    refuse(header.streamed or not header.checksum, "a frame without sizes or checksums")
    heads = frame[: reader.at]
    while reader.at < len(frame):
        heads += reader.data[reader.at : reader.at + 8]
        word = reader.number(4)
        reader.take(4 + (word & (1 << 29) - 1))
    return heads


def decode_tensors(data: bytes) -> bytes:
    """The .safetensors file that a .wps file was made of."""
    reader = Reader(data)
    refuse(reader.take(4) != b"WPT\x20", "not a .wps file of version 2")
    count, header = reader.number(4), reader.take(reader.number(8))
    described, index = reader.at, Reader(data[-4 - 12 * count : -4])
    crc = zlib.crc32(index.data, zlib.crc32(data[:described]))
    refuse(crc != int.from_bytes(data[-4:], "little"), "CRC-32 of header and index")
    tensors = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
    tensors.sort(key=lambda entry: entry["data_offsets"])
    refuse(len(tensors) != count, f"{count} frames of {len(tensors)} tensors")
    raw = len(header).to_bytes(8, "little") + header
    for entry in tensors:
        frame, seal = reader.take(index.number(8)), index.number(4)
        refuse(zlib.crc32(heads_of(frame)) != seal, "seal of a frame")
        raw += decode(frame)[1]
        refuse(len(raw) - 8 - len(header) != entry["data_offsets"][1], "size of a tensor")
    refuse(data[reader.at :] != index.data + data[-4:], "the index does not follow the frames")
    return raw


def decode_item(data: bytes, place: dict[str, int]) -> bytes:
    """The content of an item of a checkpoint; `data` is its file."""
    reader = Reader(data[: place["at"] + place["size"] + place["heads"]])
    reader.take(place["at"])
    heads = raw = b""
    while reader.at < place["at"] + place["size"]:
        begin = reader.at
        raw += read_frame(reader)[1]
        heads += heads_of(data[begin : reader.at])
    refuse(reader.take(place["heads"]) != heads, "heads that are not those of the frames")
    refuse(zlib.crc32(heads) != place["seal"], "seal of an item")
    return raw


def decode_checkpoint(folder: Path) -> dict[tuple[str, tuple[int, ...] | None], bytes]:
    """The content of every item, by name and, of tensors, offsets."""
    reader = Reader((folder / ".metadata").read_bytes())
    refuse(reader.take(4) != b"WPM\x10", "not the metadata of a checkpoint of version 1")
    text = reader.take(reader.number(8))
    crc = zlib.crc32(reader.data[: reader.at])
    refuse(reader.number(4) != crc or reader.at != len(reader.data), "CRC-32 of the metadata")
    content, files = json.loads(text), []
    for file in content["files"]:
        files.append((folder / file["name"]).read_bytes())
        refuse(len(files[-1]) != file["size"], f"size of {file['name']}")
        refuse(files[-1][:4] != b"WPD\x10", f"magic of {file['name']}")
    items = {(name, None): place for name, place in content["objects"].items()}
    for name, tensor in content["tensors"].items():
        items |= {(name, tuple(chunk["offsets"])): chunk for chunk in tensor["chunks"]}
    return {key: decode_item(files[place["file"]], place) for key, place in items.items()}


# ---- patches: spec/patch.md --------------------------------------------------------------------

State = dict[str, tuple[str, list[int], bytes]]  # by name: dtype, shape, bytes


def digest(state: State) -> str:
    rows = sorted(
        [name, dtype, shape, text_hash(raw)] for name, (dtype, shape, raw) in state.items()
    )
    return text_hash(json.dumps(rows, separators=(",", ":")).encode())


def text_hash(data: bytes) -> str:
    return f"{xxh3_64(data):016x}"


def move(words: bytes, steps: bytes, each: int) -> bytes:
    lower, full = (1 << 8 * each - 1) - 1, (1 << 8 * each) - 1
    out = bytearray()
    for at in range(0, len(words), each):
        word, step = (int.from_bytes(part[at : at + each], "little") for part in (words, steps))
        place = (word ^ lower if word > lower else word) + step & full
        out += (place ^ lower if place > lower else place).to_bytes(each, "little")
    return bytes(out)


def overwrite(words: bytes, places: bytes, new: bytes, each: int) -> bytes:
    refuse(not {*places} <= {0, 1} or sum(places) * each != len(new), "places of new words")
    out, at = bytearray(words), 0
    for i, place in enumerate(places):
        if place:
            out[i * each : (i + 1) * each] = new[at : at + each]
            at += each
    return bytes(out)


def apply_patch(data: bytes, base: State) -> State:
    """What a patch makes of a state."""
    reader = Reader(data)
    refuse(reader.take(4) != b"WPU\x10", "not a patch of version 1")
    refuse(reader.number(8) >= reader.number(8), "versions that do not rise")
    size = int.from_bytes(data[-16:-8], "little")
    text = data[len(data) - 16 - size : -16]
    hashed = xxh3_64(data[:20] + text + data[-16:-8])
    refuse(hashed != int.from_bytes(data[-8:], "little"), "hash of head and table")
    table, target = json.loads(text), {}
    refuse(digest(base) != table["base"], "another base")
    for row in table["tensors"]:
        _, _, raw = base.get(row["name"], (None, None, b""))
        each = ELEMENT_SIZE[DTYPES.index(row["dtype"])]
        content = []
        for frame_size, seal in row["frames"]:
            frame = reader.take(frame_size)
            refuse(zlib.crc32(heads_of(frame)) != seal, "seal of a frame")
            content.append(decode(frame)[1])
        if row["op"] == "ulp":
            raw = move(raw, content[0], each)
        elif row["op"] == "set":
            raw = overwrite(raw, *content, each)
        elif row["op"] == "full":
            raw = content[0]
        refuse(text_hash(raw) != row["target"], f"hash of {row['name']}")
        target[row["name"]] = (row["dtype"], row["shape"], raw)
    refuse(reader.at != len(data) - 16 - size, "sizes of the frames")
    refuse(digest(target) != table["target"], "digest of the target")
    return target


def decode_any(path: Path) -> bytes:
    if path.is_dir():
        items = decode_checkpoint(path).items()
        lines = [f"{name} {offsets or ''}: {len(raw)} bytes\n" for (name, offsets), raw in items]
        return "".join(lines).encode()
    data = path.read_bytes()
    if data[:3] == b"WPT":
        return decode_tensors(data)
    header, raw = (decode_series if data[:3] == b"WPS" else decode)(data)
    print(header, file=sys.stderr)
    return raw


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        raw = decode_any(Path(sys.argv[1]))
    except (FrameError, OSError) as error:
        print(f"decode.py: {error}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(raw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
