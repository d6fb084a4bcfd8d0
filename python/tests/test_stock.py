# SPDX-License-Identifier: Apache-2.0
"""Payloads of stock codecs are what the stock libraries read; blocks taken apart by hand."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("cramjam", reason="cramjam is not installed")
pytest.importorskip("lz4", reason="lz4 is not installed")
pytest.importorskip("zstandard", reason="zstandard is not installed")
import cramjam
import lz4.block
import zstandard

import wirepress

BLOCK = 65536
STOCK: dict[str, Callable[[bytes, int], bytes]] = {
    "lz4": lambda payload, size: lz4.block.decompress(payload, uncompressed_size=size),
    "lz4:9": lambda payload, size: lz4.block.decompress(payload, uncompressed_size=size),
    "snappy": lambda payload, _: bytes(cramjam.snappy.decompress_raw(payload)),
    "zstd:-5": lambda payload, size: zstandard.decompress(payload, max_output_size=size),
    "zstd:3": lambda payload, size: zstandard.decompress(payload, max_output_size=size),
    "deflate:6": lambda payload, _: zlib.decompress(payload, wbits=-15),
    "zlib:6": lambda payload, _: zlib.decompress(payload),
    "gzip:6": lambda payload, _: gzip.decompress(payload),
}


def payloads(frame: bytes) -> Iterator[tuple[bytes, int]]:
    """(payload, raw size) of every block of a frame with checksums and sizes."""
    info = wirepress.inspect(frame)
    assert info.checksum
    assert not info.streamed
    at = info.header_size
    for index in range(info.n_blocks or 0):
        (word,) = struct.unpack_from("<I", frame, at)
        size = word & 0x3FFFFFFF
        assert word == size, "raw or last block"
        yield (
            frame[at + 8 : at + 8 + size],
            min(info.block_size, info.raw_size - index * info.block_size),
        )
        at += 8 + size
    assert at == len(frame)


@pytest.mark.parametrize("recipe", STOCK)
def test_stock_libraries_read_payloads(recipe: str, text: bytes) -> None:
    frame = wirepress.compress(text, recipe, block_size=BLOCK)
    parts = [STOCK[recipe](payload, size) for payload, size in payloads(frame)]
    assert len(parts) == -(-len(text) // BLOCK)
    assert b"".join(parts) == text


def test_all_stock_codecs_are_tested() -> None:
    ours = {"store", "shuffle"}
    expected = {codec.name for codec in wirepress.codecs() if codec.lossless} - ours
    assert {"lz4", "snappy", "zstd", "deflate", "zlib", "gzip"} <= expected
    assert {recipe.split(":")[0] for recipe in STOCK} <= expected
