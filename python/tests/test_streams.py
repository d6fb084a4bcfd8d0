# SPDX-License-Identifier: Apache-2.0
"""Frames piece by piece, and several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import wirepress


def stream_of(data: bytes, piece: int, **options: object) -> bytes:
    stream = wirepress.StreamCompressor(**options)  # type: ignore[arg-type]
    pieces = [stream.update(data[i : i + piece]) for i in range(0, len(data), piece)]
    return b"".join([*pieces, stream.finish()])


@pytest.mark.parametrize("piece", [1, 1000, 1024, 5000, 10**7])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 1024, 2048, 20_000])
def test_compress_in_pieces(piece: int, threads: int, size: int, text: bytes) -> None:
    frame = stream_of(text[:size], piece, recipe="lz4", block_size=1024, threads=threads)
    assert wirepress.decompress(frame) == text[:size]
    info = wirepress.inspect(frame)
    assert (info.streamed, info.raw_size, info.n_blocks) == (True, None, None)


@pytest.mark.parametrize("piece", [1, 3, 1000, 10**7])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("size", [0, 1, 1024, 20_000])
def test_expand_in_pieces(piece: int, streamed: bool, size: int, text: bytes) -> None:
    data = text[:size]
    frame = (
        stream_of(data, 999, block_size=1024)
        if streamed
        else wirepress.compress(data, block_size=1024)
    )
    stream = wirepress.StreamDecompressor()
    pieces = [stream.update(frame[i : i + piece]) for i in range(0, len(frame), piece)]
    assert b"".join(pieces) == data
    assert stream.done
    stream.close()
    assert stream.unused == b""
    assert stream.update(b"more") == b""
    assert stream.unused == b"more"


def test_expand_large_from_little() -> None:
    frame = wirepress.compress(bytes(50_000_000), "zstd")
    stream = wirepress.StreamDecompressor()
    assert stream.update(frame) == bytes(50_000_000)
    assert stream.done


def test_what_follows_a_frame() -> None:
    frame = wirepress.compress(b"first" * 100)
    stream = wirepress.StreamDecompressor()
    assert stream.update(frame + b"second") == b"first" * 100
    assert stream.unused == b"second"


def test_truncated_and_damaged_streams(text: bytes) -> None:
    frame = stream_of(text[:5000], 777, block_size=1024)
    for size in range(len(frame)):
        stream = wirepress.StreamDecompressor()
        stream.update(frame[:size])
        assert not stream.done
        with pytest.raises(wirepress.TruncatedError):
            stream.close()
    for at in range(len(frame)):
        bad = bytearray(frame)
        bad[at] ^= 0x10
        stream = wirepress.StreamDecompressor()
        with pytest.raises(wirepress.FrameError):  # noqa: PT012
            stream.update(bad)
            stream.close()


def test_a_damaged_stream_stays_damaged(text: bytes) -> None:
    frame = wirepress.compress(text[:5000])
    stream = wirepress.StreamDecompressor()
    with pytest.raises(wirepress.ChecksumError, match="block 0"):
        stream.update(frame[:-1] + bytes([frame[-1] ^ 1]))
    with pytest.raises(wirepress.ParameterError, match="use a new StreamDecompressor"):
        stream.update(frame)
    with pytest.raises(wirepress.ChecksumError, match="block 0"):
        stream.close()


def test_stream_of_a_dtype(field: np.ndarray) -> None:
    data = field.tobytes()
    frame = stream_of(data, 10_001, recipe="fre:m=5", dtype="float32", block_size=4096)
    restored = np.frombuffer(wirepress.decompress(frame), np.float32).reshape(field.shape)
    assert wirepress.inspect(frame).dtype == "float32"
    assert np.all(np.abs(restored - field) <= np.abs(field) * 2.0**-6)


def test_a_stream_is_used_once() -> None:
    stream = wirepress.StreamCompressor()
    stream.finish()
    for call in (lambda: stream.update(b"x"), stream.finish):
        with pytest.raises(wirepress.ParameterError, match="finished"):
            call()


def test_one_compressor_many_threads(words: Callable[..., bytes]) -> None:
    compressor = wirepress.Compressor("zstd:1", threads=2, block_size=4096)

    def work(seed: int) -> bool:
        data = words(50_000 + seed, seed)
        return compressor.decompress(compressor.compress(data)) == data

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))
    assert compressor.stats.raw_bytes == sum(50_000 + seed for seed in range(64))


def test_other_threads_run_meanwhile(text: bytes) -> None:
    """A long call lets go of the interpreter: a counting thread gets somewhere."""
    count, stop = 0, threading.Event()

    def counter() -> None:
        nonlocal count
        while not stop.wait(0.001):
            count += 1

    compressor = wirepress.Compressor("zstd:19", threads=1)
    thread = threading.Thread(target=counter)
    thread.start()
    before = count
    compressor.compress(text)
    during = count - before
    stop.set()
    thread.join()
    assert during >= 5
