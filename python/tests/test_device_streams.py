# SPDX-License-Identifier: Apache-2.0
"""Jobs whose stream has yet to do them: its work goes on when a test says so."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import threading
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import wirepress
from python.tests.device_arrays import DeviceArray, gradient
from wirepress import _core
from wirepress.errors import ParameterError

on_streams = pytest.mark.skipif(
    not hasattr(_core, "EmulatedStream"),
    reason="this extension is linked with a shared libwirepress, which hides its emulator",
)


class Stream:
    """A stream of the emulated device, of the jobs of one compressor."""

    def __init__(self, compressor: wirepress.Compressor) -> None:
        self._own, self._context = _core.EmulatedStream(), compressor._context
        self.address = self._own.address

    @property
    def waiting(self) -> int:
        """Pieces of work that are there."""
        return self._own.waiting

    def step(self) -> bool:
        return self._own.step(self._context)

    def drain(self) -> None:
        while self.step():
            pass


@contextlib.contextmanager
def drained(stream: Stream) -> Iterator[None]:
    """Whoever waits for the stream goes on where a test fails."""
    try:
        yield
    finally:
        stream.drain()


def one_bit() -> wirepress.Compressor:
    return wirepress.Compressor("onebit", threads=1)


@on_streams
def test_a_job_keeps_its_residual_and_what_it_adds_to() -> None:
    compressor, values = one_bit(), gradient()
    residual, total = np.zeros_like(values), np.ones_like(values)
    expected = compressor.compress_feedback(values, residual)
    compressor.decompress_add(expected, total)
    stream = Stream(compressor)
    rest, sums = DeviceArray(np.zeros_like(values)), DeviceArray(np.ones_like(values))
    kept = [weakref.ref(rest), weakref.ref(sums)]
    coded = compressor.compress_feedback_async(DeviceArray(values), rest, stream=stream.address)
    added = compressor.decompress_add_async(expected, sums, stream=stream.address)
    assert not coded.done()
    assert not added.done()
    assert not rest.numpy().any()
    assert (sums.numpy() == 1).all()
    del rest, sums
    gc.collect()
    rest, sums = kept[0](), kept[1]()
    assert rest is not None
    assert sums is not None
    stream.drain()
    assert coded.result() == expected
    assert added.result() == values.size
    assert np.array_equal(rest.numpy(), residual)
    assert np.array_equal(sums.numpy(), total)


@on_streams
@pytest.mark.parametrize("recipe", ["onebit", "bx:m=5", "planes", "zfp:rate=8"])
def test_a_job_is_on_its_way_and_keeps_its_array(recipe: str) -> None:
    compressor, values = wirepress.Compressor(recipe, threads=1, probe=False), gradient()
    expected, stream = compressor.compress(values), Stream(compressor)
    there = DeviceArray(values)
    kept = weakref.ref(there)
    job = compressor.compress_async(there, stream=stream.address)
    del there
    gc.collect()
    assert stream.waiting > 1
    while stream.waiting:
        assert not job.done()
        assert kept() is not None
        stream.step()
    assert job.done()
    gc.collect()
    assert kept() is None
    assert job.result() == job.result() == expected


@on_streams
@pytest.mark.parametrize("recipe", ["terngrad", "bx:m=5", "int8+zstd:1"])
@pytest.mark.parametrize("there", [True, False])
def test_pieces_are_what_calls_of_their_own_make(recipe: str, there: bool) -> None:
    compressor = wirepress.Compressor(recipe, threads=1)
    values = [gradient()[:n] for n in (5000, 1, 4096, 777)]
    place = DeviceArray if there else np.copy
    expected, left = [], []
    for seed, each in enumerate(values):
        compressor.set("seed", seed)
        rest = np.full_like(each, 1e-3)
        kept = seed % 2 == 0
        expected.append(
            compressor.compress_feedback(each, rest) if kept else compressor.compress(each)
        )
        left.append(rest if kept else None)
    compressor.set("seed", 99)
    stream = Stream(compressor)
    rests = [
        place(np.full_like(v, 1e-3)) if k is not None else None
        for v, k in zip(values, left, strict=True)
    ]
    rooms = [bytearray(compressor.bound(each.nbytes)) for each in values]
    pieces = [
        (place(v), rest, room, seed)
        for seed, (v, rest, room) in enumerate(zip(values, rests, rooms, strict=True))
    ]
    job = compressor.compress_pieces_async(pieces, stream=stream.address)
    stream.drain()
    sizes = job.result()
    assert [bytes(room[:n]) for room, n in zip(rooms, sizes, strict=True)] == expected
    for rest, kept in zip(rests, left, strict=True):
        if kept is not None:
            assert np.array_equal(rest.numpy() if there else rest, kept)
    assert compressor.option("seed")[0] == "99"
    for add in (False, True):
        outs = [place(np.ones_like(each)) for each in values]
        rows = list(zip(expected, outs, strict=True))
        job = compressor.decompress_pieces_async(rows, add=add, stream=stream.address)
        stream.drain()
        assert job.result() == [each.size if add else each.nbytes for each in values]
        for frame, out in rows:
            found = out.numpy() if there else out
            sent = wirepress.decompress(frame, np.empty_like(found))
            assert np.array_equal(found, sent + 1 if add else sent)


def test_what_no_pieces_are_is_said() -> None:
    compressor, values = wirepress.Compressor("onebit"), gradient()
    room = bytearray(compressor.bound(values.nbytes))
    half = values.astype(np.float64)
    for pieces, words in (
        ([], "one piece at least"),
        ([(values, None, room, 0), (half, None, room, 0)], "of one type"),
        ([(values.reshape(-1, 2), None, room, 0)], "one dimension, not 2"),
        ([(values, values[:5].copy(), room, 0)], "residual is"),
        ([(values, None, room, -1)], "seed"),
        ([(values, None, room, 1 << 64)], "seed"),
        ([(values, None, bytes(9), 0)], "read-only|writ"),
        ([(values, None, bytearray(9), 0)], "needs|room|bytes"),
    ):
        with pytest.raises((ParameterError, BufferError, wirepress.WirepressError), match=words):
            compressor.compress_pieces_async(pieces).result()
    frame = compressor.compress(values)
    for rows, add, words in (
        ([], False, "one piece at least"),
        ([(frame, np.empty(values.size))], True, "must be float32"),
        ([(frame, np.empty(3, np.float32))], False, "bytes|room"),
        ([(frame, np.empty_like(values)), (frame[:40], np.empty_like(values))], False, "piece 1"),
    ):
        with pytest.raises((ParameterError, wirepress.WirepressError), match=words):
            compressor.decompress_pieces_async(rows, add=add).result()


@on_streams
def test_a_room_is_written_when_its_stream_comes_to_it() -> None:
    compressor, values = one_bit(), gradient()
    frame, stream = compressor.compress(values), Stream(compressor)
    back = DeviceArray(np.zeros_like(values))
    job = compressor.decompress_async(bytearray(frame), back, stream=stream.address)
    gc.collect()
    assert not job.done()
    assert not back.numpy().any()
    stream.drain()
    assert job.result() is back
    assert np.array_equal(back.numpy(), compressor.decompress(frame))


@on_streams
def test_jobs_end_in_the_order_of_their_streams() -> None:
    compressor = one_bit()
    values = [gradient(seed=seed) for seed in range(4)]
    expected = [compressor.compress(of) for of in values]
    streams = [Stream(compressor), Stream(compressor)]
    jobs, ends = [], []
    for i, of in enumerate(values):
        stream = streams[i % 2]
        jobs.append(compressor.compress_async(DeviceArray(of), stream=stream.address))
        ends.append(stream.waiting)
    with pytest.raises(ParameterError, match="job"):
        compressor.set("recipe", "zstd")
    for _ in range(ends[1]):
        streams[1].step()
    assert [job.done() for job in jobs] == [False, True, False, False]
    streams[0].drain()
    assert [job.done() for job in jobs] == [True, True, True, False]
    streams[1].drain()
    assert [job.result() for job in jobs] == expected
    compressor.set("recipe", "zstd")


@on_streams
@pytest.mark.parametrize("to", ["device", "array", "bytes"])
def test_a_frame_that_its_stream_has_yet_to_make(to: str) -> None:
    compressor, values = one_bit(), gradient()
    expected, stream = compressor.compress(values), Stream(compressor)
    right = compressor.decompress(expected)
    room = DeviceArray(np.zeros(compressor.bound(values.nbytes), np.uint8))
    made = compressor.compress_async(DeviceArray(values), room, stream=stream.address)
    assert not made.done()
    room._interface["shape"] = (len(expected),)
    out = DeviceArray(np.zeros_like(values)) if to == "device" else None
    job = compressor.decompress_async(room, out, raw=to == "bytes", stream=stream.address)
    stream.drain()
    result = job.result()
    if isinstance(result, DeviceArray):
        result = result.numpy()
    assert bytes(result) == right.tobytes()
    assert made.result() == len(expected)


@on_streams
def test_who_waits_leaves_the_compressor_to_others() -> None:
    compressor, values = one_bit(), gradient()
    expected, stream = compressor.compress(values), Stream(compressor)
    job = compressor.compress_async(DeviceArray(values), stream=stream.address)
    with concurrent.futures.ThreadPoolExecutor(3) as pool, drained(stream):
        waiting = [pool.submit(job.result) for _ in range(3)]
        time.sleep(0.05)
        assert compressor.compress_async(DeviceArray(values)).result() == expected
        assert not job.done()
        assert stream.waiting > 0
        assert not any(of.done() for of in waiting)
        stream.drain()
        assert [of.result(timeout=60) for of in waiting] == 3 * [expected]


@on_streams
def test_a_job_that_nobody_has_is_waited_for() -> None:
    compressor, values = one_bit(), gradient()
    stream, there = Stream(compressor), DeviceArray(values)
    kept = weakref.ref(there)
    job = compressor.compress_async(there, stream=stream.address)
    del there
    later = threading.Timer(0.05, stream.drain)
    later.start()
    del job
    gc.collect()
    assert stream.waiting == 0
    assert kept() is None
    later.join()
    compressor.set("recipe", "zstd")


def test_threads_share_a_job() -> None:
    compressor, values = one_bit(), gradient(5000)
    expected, there = compressor.compress(values), DeviceArray(values)

    def look(job: wirepress.Job, start: threading.Barrier) -> bytes:
        start.wait()
        return job.result() if job.done() else b"not done"

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(100):
            job, start = compressor.compress_async(there), threading.Barrier(4)
            assert [of.result() for of in [pool.submit(look, job, start) for _ in range(4)]] == (
                4 * [expected]
            )


def test_settings_come_between_jobs_never_within() -> None:
    """The room for a frame is that of the settings that it is made with."""
    compressor = wirepress.Compressor("zstd", threads=1)
    data = np.random.default_rng(0).bytes(1 << 18)
    stop, n_set = threading.Event(), 0

    def change() -> None:
        nonlocal n_set
        while not stop.is_set():
            with contextlib.suppress(ParameterError):  # a job is on its way
                compressor.set("block_size", ("4KiB", "1MiB")[n_set % 2])
                n_set += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(1500):
            frame = compressor.compress_async(data).result()
            assert len(frame) > len(data)
    finally:
        stop.set()
        thread.join()
    assert n_set > 10
    assert compressor.decompress(frame) == data
