# SPDX-License-Identifier: Apache-2.0
"""Frames of one block, made by hand for the tests of this room."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import wirepress

HERE = Path(__file__).parent.parent


def load(name: str) -> ModuleType:
    """spec/NAME.py: once, under its own name."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


decode = load("decode")
PLAIN, NO_SHAPE, BLOCK_LOG = 0x10, 7, 20
TYPES = {codec.name: codec.dtypes for codec in wirepress.codecs(kernels=False)}


def varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def stage_of(recipe: str, dtype: str) -> bytes:
    """The first stage as a header has it, for this type or one that the codec takes."""
    takes = TYPES[recipe.partition(":")[0]]
    dtype = dtype if dtype in takes or "int32" not in takes else "int32"
    header = wirepress.compress(b"", recipe, dtype=dtype)
    word = int.from_bytes(header[6:8], "little")
    return header[6 : 8 + (word >> 12)]


def sealed(header: bytes) -> bytes:
    return header + (decode.xxh3_64(header) & 0xFFFFFFFF).to_bytes(4, "little")


def frame_of(stages: list[bytes], payload: bytes, raw_size: int, dtype: str) -> bytes:
    """A frame of one block with this code, without checksums of blocks."""
    kind = decode.DTYPES.index(dtype) | NO_SHAPE << 5
    first = b"WPR" + bytes([PLAIN, kind, BLOCK_LOG | len(stages) << 5])
    block = len(payload).to_bytes(4, "little") + payload if raw_size else b""
    return sealed(first + b"".join(stages) + varint(raw_size)) + block


def raw_block(data: bytes, size: int, flags: int) -> bytes:
    """The only block of a frame with these flags: the first bytes of the data as they are."""
    word = 1 << 31 | (flags & 2) << 29 | size
    after = (size.to_bytes(4, "little") if flags & 2 else b"") + data[:size]
    checksum = (decode.xxh3_64(after, word << 32) & 0xFFFFFFFF).to_bytes(4, "little")
    return word.to_bytes(4, "little") + (checksum if flags & 1 else b"") + after


def first_block(frame: bytes) -> bytes | None:
    """The payload of a frame's first block; None: it is raw."""
    reader = decode.Reader(frame)
    header = decode.read_header(reader)
    word = reader.number(4)
    reader.take(4 if header.checksum else 0)
    return None if word >> 31 else reader.take(word & (1 << 29) - 1)
