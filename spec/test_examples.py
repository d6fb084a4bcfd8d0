# SPDX-License-Identifier: Apache-2.0
"""Every example that a codec's document works out, against its reference decoder and the library.

Data stand here as numbers, and as the words that the page has for them: a page that changes one
without the other is found, as is one that has no example.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import wirepress
from spec.tests import frames
from spec.tests.frames import decode

CODECS = Path(__file__).parent.parent / "codecs"
NAN, INFINITY = float("nan"), float("inf")
ABC = b"abc" * 10


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def times(scale: int, *codes: int) -> bytes:
    """Multiples of the float32 that these bits are."""
    (unit,) = struct.unpack("<f", struct.pack("<I", scale))
    return floats(*(code * unit for code in codes))


@dataclass(frozen=True)
class Example:
    recipe: str
    said: str  # of the data, on the page
    raw: bytes
    decoded: bytes | None = None  # None: the raw bytes
    block: int = -1  # of the indented ones, the one with the payload
    dtype: str = "float32"

    @property
    def codec(self) -> str:
        return self.recipe.partition(":")[0]

    @property
    def values(self) -> bytes:
        return self.raw if self.decoded is None else self.decoded


SPARSE = floats(0.5, -0.0, -3.0, 1.0, 0.0, 2.0, -1.0, 0.25)
SPARSE_SAID = "0.5, -0.0, -3.0, 1.0, 0.0, 2.0, -1.0, 0.25"
SPARSE_DECODED = floats(0, 0, -3, 0, 0, 2, 0, 0)
TBQ = floats(1.0, -0.25, 0.0, -0.5, -4.0)
EXAMPLES = [
    Example("store", "`abc`", b"abc", dtype="bytes"),
    Example("lz4", "`abcabcabcabcabcabcabcabcabcabc` (30 bytes)", ABC, dtype="bytes"),
    Example("snappy", "`abcabcabcabcabcabcabcabcabcabc` (30 bytes)", ABC, dtype="bytes"),
    Example("zstd:1", "`abcabcabcabcabcabcabcabcabcabc` (30 bytes)", ABC, dtype="bytes"),
    Example("deflate:6", "`abc` (3 bytes), level 6", b"abc", dtype="bytes"),
    Example("zlib:6", "`abc` (3 bytes), level 6", b"abc", dtype="bytes"),
    Example("gzip:6", "`abc` (3 bytes), level 6", b"abc", dtype="bytes"),
    Example("shuffle:4", "raw      00 01 02 03  04 05 06 07  08 09 0a", bytes(range(11)),
            dtype="bytes"),
    Example("zeros", "70 bytes: 65 of 00, then 01 02 03 04 05", bytes(65) + bytes(range(1, 6)),
            dtype="bytes"),
    Example("sparse", "int16, 1000 elements, all 0 but 3 at place 2, and -1 at place 600",
            struct.pack("<1000h", *[0] * 2, 3, *[0] * 597, -1, *[0] * 399), dtype="int16"),
    Example("trits", "13 bytes: a head of 1.0 as float32; one pair, places 2 and 31 set",
            floats(1.0) + struct.pack("<II", 1 << 31 | 1 << 2, 1 << 31) + b"\7", dtype="bytes"),
    Example("planes", "16 elements: 1.0 and 2.0 by turns", floats(*[1.0, 2.0] * 8)),
    Example("fre", "1.0, 1.0, -2.5, 0.0, -0.0, 1e-40 (word `000116c2`), 100.3",
            floats(1.0, 1.0, -2.5, 0.0, -0.0, 1e-40, 100.3),
            floats(1.0, 1.0, -2.5, 0.0, -0.0, 1e-40, 100.0)),
    Example("bx", "1.0, -2.5, 0.0, 100.3, then twelve times 1.0",
            floats(1.0, -2.5, 0.0, 100.3, *[1.0] * 12),
            floats(1.0, -2.5, 0.0, 100.0, *[1.0] * 12)),
    Example("bf16", "1.0, -2.00390625, 1.00390625 (a tie), 100.3, a NaN, the byte 07",
            floats(1.0, -2.00390625, 1.00390625, 100.3, NAN) + b"\7",
            floats(1.0, -2.0, 1.0, 100.5, NAN) + b"\7"),
    Example("fp16", "1.0, -2.001953125, 1.00048828125 (a tie), 1e-7, 70000, a NaN, the byte 07",
            floats(1.0, -2.001953125, 1.00048828125, 1e-7, 70000, NAN) + b"\7",
            floats(1.0, -2.001953125, 1.0, 2**-23, INFINITY, NAN) + b"\7"),
    Example("fp8", "1.0, -3.0, 0.1, 0.0, 1e-3, the byte 07",
            floats(1.0, -3.0, 0.1, 0.0, 1e-3) + b"\7",
            floats(1.0, -3.0, 13 / 128, 0.0, 0.125 / 128) + b"\7"),
    Example("int8", "1.0, -3.0, 0.1, 0.0, the byte 07", floats(1.0, -3.0, 0.1, 0.0) + b"\7",
            times(0x3CC18380, 42, -127, 4, 0) + b"\7"),
    Example("int4", "1.0, -3.0, 0.1, 0.0, 2.0, the byte 07",
            floats(1.0, -3.0, 0.1, 0.0, 2.0) + b"\7", times(0x3EDB6E00, 2, -7, 0, 0, 5) + b"\7"),
    Example("onebit", "1.0, -2.0, 0.0, -0.0, -4.0", floats(1.0, -2.0, 0.0, -0.0, -4.0),
            floats(1 / 3, -3.0, 1 / 3, 1 / 3, -3.0)),
    Example("signsgd", "1.0, -2.0, 0.0, -0.0, -4.5", floats(1.0, -2.0, 0.0, -0.0, -4.5),
            floats(1.5, -1.5, 1.5, 1.5, -1.5)),
    Example("terngrad", "2.0, -2.0, 0.0, 2.0, -0.0", floats(2.0, -2.0, 0.0, 2.0, -0.0),
            floats(2.0, -2.0, 0.0, 2.0, 0.0)),
    Example("qsgd:bits=3", "3.0, -1.0, 0.0, 2.0, -3.0", floats(3.0, -1.0, 0.0, 2.0, -3.0)),
    Example("tbq:tau=0.5,of=one", "1.0, -0.25, 0.0, -0.5, -4.0", TBQ,
            floats(0.5, 0.0, 0.0, -0.5, -0.5), block=0),
    Example("topk:0.25", SPARSE_SAID, SPARSE, SPARSE_DECODED),
    Example("topq:k=1024", SPARSE_SAID, SPARSE, SPARSE_DECODED),
    Example("dgc:ratio=0.25", SPARSE_SAID, SPARSE, SPARSE_DECODED),
    Example("graddrop:ratio=0.25", SPARSE_SAID, SPARSE, SPARSE_DECODED),
    Example("zfp:accuracy=1e-1", "1, 1.25, 1.5, 1.75", floats(1, 1.25, 1.5, 1.75)),
    Example("sz3:abs=0.5", "1, 2, 3 and so on to 31, then 40", floats(*range(1, 32), 40)),
]  # fmt: skip


def section(codec: str) -> str:
    page = (CODECS / codec / "spec.md").read_text()
    return page.partition("\n## Example\n")[2].partition("\n## ")[0]


def payload_of(example: Example) -> bytes:
    """The bytes at the beginning of an indented block's lines."""
    paragraphs = section(example.codec).split("\n\n")
    blocks = [p.lstrip("\n") for p in paragraphs if p.lstrip("\n").startswith("    ")]
    line = r"^    (?:encoded  )?((?:[0-9a-f]{2} {1,2})*[0-9a-f]{2})(?=\s|$)"
    return bytes.fromhex(" ".join(re.findall(line, blocks[example.block], re.M)))


def by_reference(example: Example, payload: bytes) -> bytes:
    stage = frames.stage_of(example.recipe, example.dtype)
    header = decode.Header(False, False, example.dtype, None, len(example.raw), 1 << 20)
    name, params = decode.read_stage(decode.Reader(stage), example.dtype)
    return decode.expand(header, name, params, payload, len(example.raw))


def same(a: bytes, b: bytes, dtype: str) -> bool:
    """Equal bytes; one NaN is as good as another."""
    n = len(a) // 4 * 4
    if dtype != "float32" or len(a) != len(b):
        return a == b
    mine, other = (np.frombuffer(x[:n], np.float32) for x in (a, b))
    numbers = ~(np.isnan(mine) & np.isnan(other))
    words = [x.view(np.uint32)[numbers] for x in (mine, other)]
    return bool((words[0] == words[1]).all()) and a[n:] == b[n:]


def test_every_codec_has_one() -> None:
    assert {example.codec for example in EXAMPLES} == {codec.name for codec in wirepress.codecs()}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.recipe)
def test_the_page_is_right(example: Example) -> None:
    assert example.said in " ".join(section(example.codec).split("\n"))
    payload = payload_of(example)
    assert payload
    assert same(by_reference(example, payload), example.values, example.dtype)


def shrinks(example: Example) -> bool:
    """No frame holds a payload that is larger than the data."""
    return len(payload_of(example)) <= len(example.raw)


SHRINKING = [example for example in EXAMPLES if shrinks(example)]


@pytest.mark.parametrize("example", SHRINKING, ids=lambda example: example.recipe)
def test_the_library_reads_it(example: Example) -> None:
    payload, size = payload_of(example), len(example.raw)
    stage = frames.stage_of(example.recipe, example.dtype)
    # bytes: an array of float32 has no last byte
    frame = frames.frame_of([stage], payload, size, "bytes" if size % 4 else example.dtype)
    assert same(wirepress.decompress(frame, raw=True), example.values, example.dtype)


@pytest.mark.parametrize("example", SHRINKING, ids=lambda example: example.recipe)
def test_the_library_writes_it(example: Example) -> None:
    payload = payload_of(example)
    tail = len(example.raw) % 4 if example.dtype == "float32" else 0
    raw, wanted = (data[: len(data) - tail] for data in (example.raw, payload))
    frame = wirepress.compress(raw, example.recipe, dtype=example.dtype, probe="off")
    # What keeps its size is stored raw.
    assert frames.first_block(frame) == (None if len(wanted) == len(raw) else wanted)


def test_the_sum_of_tbq() -> None:
    assert "1.0, 0.0, 0.0, 1.0, 0.0: counts 2, 0, 0, 0, -1" in section("tbq")
    example = next(e for e in EXAMPLES if e.codec == "tbq")
    codec = wirepress.Compressor(example.recipe, probe="off")
    a, b = (np.frombuffer(raw, np.float32) for raw in (TBQ, floats(1.0, 0.0, 0.0, 1.0, 0.0)))
    wanted = payload_of(replace(example, block=1))
    assert frames.first_block(codec.add(codec.compress(a), codec.compress(b))) == wanted
    assert by_reference(example, wanted) == floats(1.0, 0.0, 0.0, 0.0, -0.5)
