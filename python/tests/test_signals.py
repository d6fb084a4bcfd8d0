# SPDX-License-Identifier: Apache-2.0
"""Signals during long calls, and forks meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wirepress

SECONDS = 0.1  # from one signal to the next; a call takes some seconds


class Ended(Exception):
    """What a handler raises."""


@contextlib.contextmanager
def signals(handler: Callable[..., Any]) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def end(*_: object) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise Ended


@pytest.fixture(scope="module")
def data(words: Callable[..., bytes]) -> bytes:
    return words(6_000_000)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_ends_with_what_a_handler_raises(data: bytes, threads: int) -> None:
    compressor = wirepress.Compressor("zstd:19", threads=threads)
    with pytest.raises(Ended), signals(end):
        compressor.compress(data)
    assert compressor.stats.raw_bytes == 0  # otherwise it went on to its end
    small = compressor.compress(data[:1000])
    assert compressor.decompress(small) == data[:1000]


def test_an_interrupted_call_into_a_buffer(data: bytes) -> None:
    compressor, out = wirepress.Compressor("zstd:19", threads=1), bytearray(len(data) + 9999)
    with pytest.raises(Ended), signals(end):
        compressor.compress_into(data, out)
    assert compressor.stats.raw_bytes == 0
    out.clear()  # nothing holds it


def test_an_interrupted_stream_has_ended(data: bytes) -> None:
    stream = wirepress.StreamCompressor("zstd:19", threads=1)
    with pytest.raises(Ended), signals(end):
        stream.update(data)
    assert stream.stats.raw_bytes == 0
    with pytest.raises(wirepress.ParameterError):
        stream.update(data)


def test_expanding_ends_too() -> None:
    wave = np.sin(np.arange(1 << 24, dtype=np.float32) / 999)
    compressor = wirepress.Compressor("sz3:abs=1e-6", threads=1)
    frame, out = compressor.compress(wave), np.empty_like(wave)
    with pytest.raises(Ended), signals(end):
        compressor.decompress(frame, out)
    assert compressor.stats.expanded_bytes == 0
    assert compressor.decompress(frame, out) is out


def test_a_call_goes_on_where_handlers_return(data: bytes) -> None:
    seen: list[int] = []
    compressor = wirepress.Compressor("zstd:12", threads=2)
    with signals(lambda number, _: seen.append(number)):
        frame = compressor.compress(data)
    assert compressor.decompress(frame) == data
    assert compressor.stats.raw_bytes == len(data)


def test_a_handler_takes_another_compressor(data: bytes) -> None:
    compressor, said = wirepress.Compressor("zstd:19", threads=1), []

    def use(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert wirepress.compress(b"more")
        with pytest.raises(wirepress.ParameterError) as refusal:
            compressor.compress(b"more")
        said.append(str(refusal.value))
        raise Ended

    with pytest.raises(Ended), signals(use):
        compressor.compress(data)
    assert "use another one in the signal's handler" in said[0]
    assert compressor.compress(b"more")


def test_forks_while_a_call_looks_for_signals(data: bytes) -> None:
    """A fork has the interpreter's lock and waits for calls; a call waits for that lock."""
    codes, over = [], threading.Event()

    def fork() -> None:
        while not over.is_set():
            child = os.fork()
            if child == 0:
                os._exit(wirepress.decompress(wirepress.compress(b"child")) != b"child")
            codes.append(os.waitpid(child, 0)[1])

    thread = threading.Thread(target=fork)
    thread.start()
    try:
        frame = wirepress.compress(data, "zstd:12", threads=1)
    finally:
        over.set()
        thread.join()
    assert wirepress.decompress(frame) == data
    assert not any(codes)
