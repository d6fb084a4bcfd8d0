# SPDX-License-Identifier: Apache-2.0
"""Arrays of a GPU: frames and values are those of arrays of the CPU. The GPU is the library's
emulated one, whose memory ends a process that touches it."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirepress
from python.tests.device_arrays import DeviceArray, DlpackArray, gradient
from wirepress import _core
from wirepress.errors import ParameterError

Make = Callable[[np.ndarray], Any]
KINDS = pytest.mark.parametrize("make", [DeviceArray, DlpackArray])


@KINDS
@pytest.mark.parametrize("recipe", ["onebit", "bx:m=5", "terngrad+zstd", "zstd", "auto"])
def test_frames_are_those_of_the_cpu(make: Make, recipe: str) -> None:
    values = gradient()
    compressor = wirepress.Compressor(recipe, threads=1)
    expected = compressor.compress(values)
    assert compressor.compress(make(values)) == expected
    out = bytearray(compressor.bound(values.nbytes))
    assert out[: compressor.compress_into(make(values), out)] == expected
    back, here = make(np.zeros_like(values)), compressor.decompress(expected)
    assert compressor.decompress(expected, back) is back
    assert np.array_equal(back.numpy(), here)
    frame = DeviceArray(np.frombuffer(expected, np.uint8))
    assert np.array_equal(compressor.decompress(frame), here)
    assert compressor.inspect(frame) == compressor.inspect(expected)
    assert compressor.decompress_range(frame, 5, 100) == here.tobytes()[5:105]


@KINDS
def test_error_feedback_and_sums(make: Make) -> None:
    compressor = wirepress.Compressor("onebit", threads=1)
    residual, total = np.zeros(50_000, np.float32), gradient(seed=9)
    rest, sums = make(residual), make(total)
    for step in range(3):
        values = gradient(seed=step)
        frame = compressor.compress_feedback(values, residual)
        assert compressor.compress_feedback(make(values), rest) == frame
        compressor.decompress_add(frame, total)
        assert compressor.decompress_add(frame, sums) == 50_000
    assert np.array_equal(rest.numpy(), residual)
    assert np.array_equal(sums.numpy(), total)


@KINDS
def test_jobs_with_error_feedback_and_sums(make: Make) -> None:
    compressor = wirepress.Compressor("topk:ratio=0.1", threads=1)
    residual, total = np.zeros(50_000, np.float32), gradient(seed=9)
    rest, sums = make(residual), make(total)
    room = bytearray(compressor.bound(residual.nbytes))
    for step in range(3):
        values = gradient(seed=step)
        frame = compressor.compress_feedback(values, residual)
        job = compressor.compress_feedback_async(make(values), rest, room if step == 1 else None)
        made = job.result()
        assert (room[:made] if step == 1 else made) == frame
        assert np.array_equal(rest.numpy(), residual)
        compressor.decompress_add(frame, total)
        assert compressor.decompress_add_async(frame, sums).result() == 50_000
    assert np.array_equal(sums.numpy(), total)


def test_jobs_with_error_feedback_refuse_what_the_calls_refuse() -> None:
    compressor, values = wirepress.Compressor("onebit", threads=1), gradient()
    there, rest = DeviceArray(values), DeviceArray(np.zeros_like(values))
    with pytest.raises(ParameterError, match="one memory"):
        compressor.compress_feedback_async(there, np.zeros_like(values))
    with pytest.raises(ParameterError, match="residual is"):
        compressor.compress_feedback_async(there, DeviceArray(np.zeros(9, np.float32)))
    with pytest.raises(ParameterError, match="residual must be float32"):
        compressor.compress_feedback_async(there, DeviceArray(np.zeros_like(values, np.int32)))
    with pytest.raises(ParameterError, match="gradient must be"):
        compressor.compress_feedback_async(DeviceArray(values.astype(np.float64)), rest)
    frame = compressor.compress(values)
    with pytest.raises(ParameterError, match="out must be"):
        compressor.decompress_add_async(frame, DeviceArray(values.astype(np.int32)))
    assert not rest.numpy().any()
    assert np.array_equal(there.numpy(), values)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f4", "f8", "?", "c8"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (30, 40, 5)], ids=str)
def test_types_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    frame = wirepress.compress(DeviceArray(values), "shuffle+lz4")
    assert frame == wirepress.compress(values, "shuffle+lz4")
    back = DeviceArray(np.zeros_like(values))
    wirepress.decompress(frame, back)
    assert back.numpy().tobytes() == values.tobytes()


def test_it_is_counted_who_did_the_work() -> None:
    values = DeviceArray(gradient())
    before = wirepress.device_work()
    wirepress.compress(values, "onebit")
    after = wirepress.device_work()
    assert after.device_bytes - before.device_bytes == 200_000
    wirepress.compress(values, "zstd")
    assert wirepress.device_work().cores_bytes - after.cores_bytes == 200_000
    assert "no kernel" in wirepress.device_work().reason


def test_what_cannot_be_taken_is_said() -> None:
    values = gradient(1000)
    compressor = wirepress.Compressor("onebit", threads=1)
    there = DeviceArray(values)
    frame = compressor.compress(values)
    for array, sentence in (
        (DeviceArray(values, strides=(8,), shape=(500,)), "strides"),
        (DeviceArray(values, typestr=">f4"), "byte order"),
        (DeviceArray(values, typestr="<V4"), "not one of"),
        (DeviceArray(values, mask=np.zeros(1000)), "mask"),
        (DeviceArray(values, shape=None), "__cuda_array_interface__"),
        (DlpackArray(values, stride=2), "strides"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            compressor.compress(array)
    with pytest.raises(ParameterError, match="Vulkan"):
        compressor.compress(DlpackArray(values, kind=7))
    with pytest.raises(ParameterError, match="one memory"):
        compressor.compress_feedback(there, np.zeros_like(values))
    with pytest.raises(ParameterError, match="int32"):
        compressor.decompress(frame, DeviceArray(np.zeros(1000, np.int32)))
    read_only = DeviceArray(values)
    read_only._interface["data"] = (read_only.address, True)
    with pytest.raises(TypeError, match="written"):
        compressor.decompress(frame, read_only)
    with pytest.raises(wirepress.TooSmallError):
        compressor.decompress(frame, DeviceArray(np.zeros(999, np.float32)))
    stream = wirepress.StreamCompressor("zeros")
    with pytest.raises(ParameterError, match="memory of device 0"):
        stream.update(there)
    with wirepress.FrameStore(None, (1000,), "float32", policy="memory") as store:
        with pytest.raises(ParameterError, match="shape"):
            store.put(0, DeviceArray(gradient(999)))
        store.put(0, values)
        with pytest.raises(wirepress.TooSmallError):
            store.get(0, DeviceArray(gradient(999)))
    with pytest.raises(ParameterError, match="memory of a device"):
        _core.hash(_core.Memory(there, there.address, 4000, False))


@KINDS
@pytest.mark.parametrize("policy", ["memory", "compressed", "in-worker", "disk"])
def test_frame_stores_take_and_give_them(make: Make, policy: str, tmp_path: Path) -> None:
    path = None if policy == "memory" else tmp_path / "frames.wpr"
    with wirepress.FrameStore(path, (50_000,), "float32", policy=policy, recipe="bx:m=0") as store:
        for step in range(3):
            store.put(step, make(gradient(seed=step)))
        for step in reversed(range(3)):
            back = make(np.zeros(50_000, np.float32))
            assert store.get(step, back) is back
            assert np.array_equal(back.numpy(), gradient(seed=step))
            assert np.array_equal(store.get(step), gradient(seed=step))


def test_memory_that_the_build_does_not_reach_is_refused() -> None:
    """A device's array for a build without that device, and managed memory, look like this."""
    values = gradient(1000)
    here = DeviceArray(values, data=(values.ctypes.data, False))
    there = DlpackArray(values)
    there._tensor.data = values.ctypes.data
    for array in (here, there):
        with pytest.raises(ParameterError, match="reaches no memory"):
            wirepress.compress(array)
        with pytest.raises(ParameterError, match="reaches no memory"):
            wirepress.decompress(wirepress.compress(values), array)
    with pytest.raises(ParameterError, match="managed CUDA"):
        wirepress.compress(DlpackArray(values, kind=13))
    with pytest.raises(ParameterError, match="2 strides"):
        wirepress.compress(DeviceArray(values, strides=(4, 4)))


def test_whoever_gives_an_array_waits_for_its_work() -> None:
    asked = []

    class Asked(DlpackArray):
        def __dlpack__(self, **options: Any) -> Any:
            asked.append(options.get("stream"))
            return super().__dlpack__(**options)

    frame = wirepress.compress(Asked(gradient()))
    assert asked[0] == 1  # CUDA's default stream, for which calls wait
    asked.clear()
    wirepress.decompress(frame, Asked(gradient()))
    assert asked[0] == 1


def test_streams_are_taken() -> None:
    compressor = wirepress.Compressor("onebit", threads=1)
    there = DeviceArray(gradient(), stream=2)
    for stream in (0, 7, None):
        compressor.set_stream(stream)
        assert compressor.compress(there) == compressor.compress(gradient())


def test_touching_it_ends_the_process() -> None:
    """The test of the tests."""
    program = (
        "import ctypes; from wirepress import _core; "
        "ctypes.string_at(_core.device_alloc('cuda:emulated', 0, 100), 1)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -11


# ---- jobs ----


@KINDS
@pytest.mark.parametrize("recipe", ["onebit", "bx:m=5", "terngrad+zstd", "zstd", "auto"])
def test_jobs_give_what_calls_give(make: Make, recipe: str) -> None:
    compressor = wirepress.Compressor(recipe, threads=1)
    values = [gradient(40_000 + 1000 * seed, seed) for seed in range(4)]
    expected = [compressor.compress(of) for of in values]
    there = [make(of) for of in values]
    jobs = [compressor.compress_async(array) for array in there]
    assert [job.result() for job in reversed(jobs)] == expected[::-1]
    assert all(job.done() for job in jobs)
    room = [bytearray(compressor.bound(of.nbytes)) for of in values]
    jobs = [compressor.compress_async(array, out) for array, out in zip(there, room, strict=True)]
    sizes = [job.result() for job in jobs]
    assert [bytes(out[:size]) for out, size in zip(room, sizes, strict=True)] == expected
    here = [compressor.decompress(frame) for frame in expected]
    back = [make(np.zeros_like(of)) for of in values]
    jobs = [
        compressor.decompress_async(frame, out) for frame, out in zip(expected, back, strict=True)
    ]
    for job, out, right in zip(jobs, back, here, strict=True):
        while not job.done():
            pass
        assert job.result() is out
        assert np.array_equal(out.numpy(), right)


def test_a_device_does_a_job() -> None:
    compressor = wirepress.Compressor("onebit", threads=1)
    values, before = gradient(), wirepress.device_work()
    frame = compressor.compress_async(DeviceArray(values)).result()
    assert wirepress.device_work().device_bytes - before.device_bytes == values.nbytes
    compressor.decompress_async(frame, DeviceArray(values)).result()
    assert wirepress.device_work().device_bytes - before.device_bytes == 2 * values.nbytes


def test_frames_of_jobs_lie_on_a_device_too() -> None:
    compressor = wirepress.Compressor("onebit", threads=1)
    values = gradient()
    room = DeviceArray(np.zeros(compressor.bound(values.nbytes), np.uint8))
    size = compressor.compress_async(DeviceArray(values), room).result()
    expected = compressor.compress(values)
    assert room.numpy()[:size].tobytes() == expected
    frame = DeviceArray(np.frombuffer(expected, np.uint8))
    back = DeviceArray(np.zeros_like(values))
    compressor.decompress_async(frame, back).result()
    assert np.array_equal(back.numpy(), compressor.decompress(expected))
    assert np.array_equal(compressor.decompress_async(frame).result(), back.numpy())


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f4", "f8", "?", "c8"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (30, 40, 5)], ids=str)
def test_jobs_of_types_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    compressor = wirepress.Compressor("zeros", threads=1, probe=False)
    frame = compressor.compress_async(DeviceArray(values)).result()
    assert frame == compressor.compress(values)
    back = DeviceArray(np.zeros_like(values))
    compressor.decompress_async(frame, back).result()
    assert back.numpy().tobytes() == values.tobytes()
    here = compressor.decompress_async(frame).result()
    assert (here.shape, here.dtype, here.tobytes()) == (shape, values.dtype, values.tobytes())


def test_jobs_without_a_device() -> None:
    """The call itself does them."""
    compressor, data = wirepress.Compressor("zstd", threads=1), b"hello " * 1000
    job = compressor.compress_async(data)
    assert job.result() == job.result() == compressor.compress(data)
    assert compressor.decompress_async(job.result()).result() == data
    out = bytearray(len(data))
    assert compressor.decompress_async(job.result(), out).result() is out
    assert out == data
    values = np.arange(1000.0).reshape(10, 100)
    frame = compressor.compress_async(values).result()
    assert np.array_equal(compressor.decompress_async(frame).result(), values)
    assert compressor.decompress_async(frame, raw=True).result() == values.tobytes()


def test_a_job_keeps_what_it_needs() -> None:
    """Arrays that nobody else has, rooms that must not be resized, jobs that nobody waits for."""
    compressor, values = wirepress.Compressor("onebit", threads=1), gradient()
    expected = compressor.compress(values)
    jobs = [compressor.compress_async(DeviceArray(values)) for _ in range(3)]
    assert [job.result() for job in jobs] == 3 * [expected]
    out = bytearray(compressor.bound(values.nbytes))
    job = compressor.compress_async(DeviceArray(values), out)
    with pytest.raises(BufferError):
        out.clear()
    with pytest.raises(ParameterError, match="job"):
        compressor.set("recipe", "zstd")
    size = job.result()
    assert bytes(out[:size]) == expected
    out.clear()
    for _ in range(3):
        compressor.compress_async(DeviceArray(values))
    compressor.set("recipe", "zstd")
    job = wirepress.Compressor("onebit").compress_async(DeviceArray(values))
    assert job.result() == expected


def test_jobs_that_fail_say_why_each_time() -> None:
    compressor, values = wirepress.Compressor("onebit", threads=1), gradient()
    frame = compressor.compress(values)
    small = bytearray(100)
    job = compressor.compress_async(DeviceArray(values), small)
    assert job.done()
    for _ in range(2):
        with pytest.raises(wirepress.TooSmallError):
            job.result()
    assert small == bytes(100)
    small.clear()
    damaged = bytearray(frame)
    damaged[len(frame) // 2] ^= 1
    back = DeviceArray(np.ones_like(values))
    with pytest.raises(wirepress.FrameError):
        compressor.decompress_async(damaged, back)
    with pytest.raises(wirepress.TooSmallError):
        compressor.decompress_async(frame, DeviceArray(np.zeros(999, np.float32)))
    assert np.array_equal(back.numpy(), np.ones_like(values))
    with pytest.raises(ParameterError, match="int32"):
        compressor.decompress_async(frame, DeviceArray(np.zeros(50_000, np.int32)))
    with pytest.raises(TypeError):
        compressor.compress_async(DeviceArray(values), 7)
    compressor.set("recipe", "zstd")  # none of these is on its way


def test_jobs_stand_on_the_stream_of_the_array() -> None:
    """Nobody waits for its work but that stream."""
    asked = []

    class Asked(DlpackArray):
        def __dlpack__(self, **options: Any) -> Any:
            asked.append(options.get("stream"))
            return super().__dlpack__(**options)

    compressor, values = wirepress.Compressor("onebit", threads=1), gradient()
    frame = compressor.compress(values)
    for stream, expected in ((None, 1), (0, 1), (7, 7)):
        asked.clear()
        assert compressor.compress_async(Asked(values), stream=stream).result() == frame
        compressor.decompress_async(frame, Asked(values), stream=stream).result()
        assert [of for of in asked if of is not None] == [expected, expected]
    compressor.set_stream(9)
    asked.clear()
    compressor.compress_async(Asked(values)).result()
    assert asked[0] == 9
    asked.clear()
    compressor.compress(Asked(values))  # calls wait for that one, too
    assert asked[0] == 9
    named = DeviceArray(values, stream=7)
    assert wirepress.arrays.stream_of(named) == 7
    assert wirepress.arrays.stream_of(values) is None
    assert compressor.compress_async(named).result() == frame


def test_threads_share_a_compressor_with_jobs() -> None:
    compressor = wirepress.Compressor("onebit", threads=1)
    values = [gradient(seed=seed) for seed in range(8)]
    expected = [compressor.compress(of) for of in values]

    def run(of: np.ndarray) -> list[bytes]:
        return [compressor.compress_async(DeviceArray(of)).result() for _ in range(10)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, values)) == [10 * [frame] for frame in expected]
