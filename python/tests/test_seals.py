# SPDX-License-Identifier: Apache-2.0
"""Heads and seals of frames: what they say, what they bind, what is refused."""

from __future__ import annotations

import random

import pytest

import wirepress
from wirepress import FrameError, seals

RAW = bytes(range(256)) * 40 + random.Random(1).randbytes(3000)


def framed(recipe: str, **options: object) -> bytes:
    return wirepress.compress(RAW, recipe, block_size="1KiB", checksum=True, **options)


@pytest.mark.parametrize("recipe", ["store", "lz4", "auto", "shuffle:4+zstd:1"])
def test_heads_say_where_blocks_lie(recipe: str) -> None:
    compressor = wirepress.Compressor()
    one, two = framed(recipe), wirepress.compress(b"", "zstd", checksum=True)
    heads = seals.heads_of(memoryview(one), compressor) + seals.heads_of(two, compressor)
    first, second = seals.frames_of(heads, compressor)
    assert (first.at, first.size, first.begin, first.raw_size) == (0, len(one), 0, len(RAW))
    assert (second.at, second.size, second.begin) == (len(one), len(two), len(RAW))
    assert len(second.places) == 1 and list(second.covers(0, 0)) == []
    assert first.matches(one, range(len(first.places) - 1))
    # Any range comes out of a frame that has the heads and the blocks of the range alone.
    for begin, end in [(0, 1), (1023, 1025), (5000, 9000), (len(RAW) - 1, len(RAW)), (7, 7)]:
        blocks = first.covers(begin, end)
        memory = bytearray(len(one))
        part = slice(first.places[blocks.start], first.places[blocks.stop])
        memory[part] = one[part]
        first.fill(memory)
        assert compressor.decompress_range(memory, begin, end - begin) == RAW[begin:end]


def test_a_seal_tells_frames_of_the_same_size_apart() -> None:
    compressor = wirepress.Compressor("store", checksum=True)
    frames = [compressor.compress(bytes([i]) * 5000) for i in range(50)]
    assert len({len(frame) for frame in frames}) == 1
    assert len({seals.seal(seals.heads_of(frame, compressor)) for frame in frames}) == 50


def test_what_cannot_be_sealed_is_refused() -> None:
    compressor = wirepress.Compressor()
    stream = wirepress.StreamCompressor("lz4", checksum=True)
    streamed = stream.update(RAW) + stream.finish()
    plain = wirepress.compress(RAW, "lz4", checksum=False)
    for frame in (streamed, plain):
        with pytest.raises(FrameError, match="streamed, or its blocks carry no checksums"):
            seals.heads_of(frame, compressor)
    good = framed("lz4")
    for bad in (good[:-1], good + b"x", good[:30], good[:3], b""):
        with pytest.raises(FrameError):
            seals.heads_of(bad, compressor)


def test_damaged_heads_are_refused_or_stay_within_their_bytes() -> None:
    compressor, rng = wirepress.Compressor(), random.Random(2)
    heads = seals.heads_of(framed("lz4"), compressor)
    for _ in range(500):
        bad = bytearray(heads)
        bad[rng.randrange(len(bad))] = rng.randrange(256)
        cut = bytes(bad[: rng.randint(0, len(bad))])
        try:
            frames = seals.frames_of(cut, compressor)
        except FrameError:
            continue
        assert b"".join(frame.heads for frame in frames) == cut
