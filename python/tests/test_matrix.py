# SPDX-License-Identifier: Apache-2.0
"""Every codec, for every dtype, through every door: right, or refused in one sentence.

Right is bit for bit where `lossless` says so, else what `decompress(compress(x))` gives, whose
bounds test_bounds.py looks at. A door that refuses does so for what all doors refuse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirepress
from wirepress import arrays

ml_dtypes = pytest.importorskip("ml_dtypes")

Array = np.ndarray
NUMPY = {
    "bytes": np.dtype("u1"),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


# Chunks know no plain bytes and take complex numbers for pairs; buffers are of NumPy's own types.
NOT_OF_CHUNKS = {*NUMPY, "complex64", "complex128"}


def recipes() -> list[str]:
    names = [codec.name for codec in wirepress.codecs()]
    more = ["bx:m=0", "fre:m=23", "fre:m=7,ways=4", "fre:m=7,ways=0", "zfp:accuracy=1e-2"]
    more += [
        "zfp:rate=12",
        "sz3:abs=1e-2+zstd:1",
        "shuffle+zstd:1",
        "shuffle+lz4",
        "planes+zstd:1",
        "zeros+lz4",
    ]
    return [*names, *more, "auto", "auto:rel=1e-2", "auto:abs=1e-2", "auto:goal=ratio"]


def values(dtype: str, n: int) -> Array:
    """That codecs shrink; any NumPy dtype."""
    wave = np.round(np.sin(np.arange(n) / 40) * 40)
    if dtype == "bool":
        return wave > 0
    if dtype.startswith("complex"):
        return (wave + 1j * wave[::-1]).astype(dtype)
    if dtype.startswith("uint") or dtype == "bytes":
        wave = wave + 50
    return wave.astype(NUMPY.get(dtype, dtype))


def in_memory(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


# ---- doors: an array in, the bytes of its elements out ------------------------------------------

Options = dict[str, Any]


def functions(x: Array, dtype: str, o: Options) -> bytes:
    data = x.tobytes() if dtype == "bytes" else x
    back = wirepress.decompress(wirepress.compress(data, **o), threads=2)
    if dtype == "bytes":
        assert isinstance(back, bytes)
        return back
    assert (back.dtype, back.shape) == (x.dtype, x.shape)
    return in_memory(back)


def into(x: Array, dtype: str, o: Options) -> bytes:
    compressor = wirepress.Compressor(**o)
    data = x.tobytes() if dtype == "bytes" else x
    frame = bytearray(compressor.bound(x.nbytes))
    size = compressor.compress_into(data, frame)
    back = bytearray(x.nbytes)
    compressor.decompress(memoryview(frame)[:size], back)
    half = x.nbytes // 3
    part = compressor.decompress_range(frame[:size], half, x.nbytes - half)
    assert bytes(back[half:]) == part
    return bytes(back)


def stream(x: Array, dtype: str, o: Options) -> bytes:
    out, back = wirepress.StreamCompressor(dtype=dtype, **o), wirepress.StreamDecompressor()
    data = x.tobytes()
    got = [back.update(out.update(data[at : at + 3001])) for at in range(0, len(data), 3001)]
    got.append(back.update(out.finish()))
    back.close()
    return b"".join(got)


def stream_of_arrays(x: Array, dtype: str, o: Options) -> bytes:
    out = wirepress.StreamCompressor(dtype=dtype, **o)
    frame = b"".join(out.update(piece) for piece in (x.reshape(-1)[:101], x.reshape(-1)[101:]))
    return bytes(wirepress.decompress(frame + out.finish()))


def store(x: Array, dtype: str, o: Options) -> bytes:
    o = dict(o)
    path, recipe = o.pop("path") / "store", o.pop("recipe")
    more = {key: str(value) for key, value in o.items() if key != "threads"}
    data = arrays.View(x.tobytes(), 0, 1, x.shape) if dtype == "bytes" else None
    try:
        with wirepress.FrameStore(path, x.shape, dtype, recipe=recipe, options=more) as frames:
            if data is None:
                frames.put(3, x)
            else:
                frames._store.put(3, data.buffer)
            back = frames.get(3)
    finally:
        path.unlink(missing_ok=True)
    return in_memory(back)


def tiles(x: Array, dtype: str, o: Options) -> bytes:
    o = dict(o)
    path, recipe = o.pop("path") / "store", o.pop("recipe")
    more = {key: str(value) for key, value in o.items() if key != "threads"}
    try:
        with wirepress.FrameStore(
            path, x.shape, dtype, recipe=recipe, options=more, policy="in-worker"
        ) as frames:
            for i, box in enumerate(frames.tiles()):
                if dtype == "bytes":
                    frames._store.put_tile(3, i, x[box].tobytes())
                else:
                    frames.put_tile(3, i, x[box])
            return in_memory(frames.get(3))
    finally:
        path.unlink(missing_ok=True)


def numcodecs(x: Array, dtype: str, o: Options) -> bytes:
    from wirepress.numcodecs import Wirepress

    codec = Wirepress(o["recipe"], block_size=o["block_size"], threads=o["threads"])
    return bytes(memoryview(codec.decode(codec.encode(x))).cast("B"))


DOORS: dict[str, Callable[[Array, str, Options], bytes]] = {
    "functions": functions,
    "into": into,
    "stream": stream,
    "stream_of_arrays": stream_of_arrays,
    "store": store,
    "tiles": tiles,
    "numcodecs": numcodecs,
}
BY_BLOCKS = {"functions", "into", "stream", "stream_of_arrays"}  # cut alike, at the same places


def lossless(recipe: str, dtype: str) -> bool | None:
    """None: the type is not taken."""
    try:
        return wirepress.Compressor(recipe).lossless(dtype)
    except wirepress.ParameterError:
        return None


def takes(recipe: str, dtype: str) -> bool:
    kept = lossless(recipe, dtype)
    return kept is not None and (kept or dtype != "bytes")


def check(door: str, recipe: str, dtype: str, x: Array, options: Options) -> None:
    call = DOORS[door]
    if not takes(recipe, dtype):
        with pytest.raises(wirepress.ParameterError) as refused:
            call(x, dtype, options)
        assert 20 < len(str(refused.value)) < 400
        return
    back = call(x, dtype, options)
    assert len(back) == x.nbytes
    if lossless(recipe, dtype):
        assert back == in_memory(x)
    elif door in BY_BLOCKS and not recipe.startswith("auto"):
        assert back == functions(x, dtype, options)  # of one dimension, which is cut alike


def few(door: str) -> list[tuple[int, int]]:
    """(elements, threads)."""
    return [(3000, 1)] if door in ("store", "tiles") else [(0, 1), (1, 1), (3000, 2)]


@pytest.mark.parametrize(("door", "recipe"), list(itertools.product(DOORS, recipes())))
def test_matrix(door: str, recipe: str, tmp_path: Path) -> None:
    if door == "numcodecs":
        pytest.importorskip("numcodecs")
    stores = door in ("store", "tiles")
    for dtype in arrays.DTYPES:
        # Of what a store refuses, or keeps bit for bit like its sibling, a few types are enough.
        if stores and dtype not in ("bytes", "float32", "float64", "int32", "bfloat16"):
            continue
        if door == "numcodecs" and dtype in NOT_OF_CHUNKS:
            continue
        for n, threads in few(door):
            options = {"recipe": recipe, "block_size": "4KiB", "threads": threads, "seed": 5}
            if stores:
                options["path"] = tmp_path
            check(door, recipe, dtype, values(dtype, n), options)


def forms(x: Array) -> Iterator[Array]:
    """The same kind of values, as arrays lie in memory."""
    yield x.reshape(60, 50)[::-2, ::3]
    yield x.reshape(60, 50).T
    yield np.asfortranarray(x.reshape(3, 20, 50))
    yield np.broadcast_to(x[:50], (7, 50))
    yield x[:1].reshape(())
    yield x[:0].reshape(0, 4)
    yield x.reshape(2, 3, 5, 100)
    frozen = x.copy()
    frozen.flags.writeable = False
    yield frozen


@pytest.mark.parametrize(
    "recipe", ["shuffle+zstd:1", "auto", "bx:m=6", "zfp:accuracy=1e-2", "int8"]
)
def test_arrays_as_they_lie_in_memory(recipe: str) -> None:
    for dtype in arrays.DTYPES[1:]:
        if not takes(recipe, dtype):
            continue
        for x in forms(values(dtype, 3000)):
            frame = wirepress.compress(x, recipe, block_size="4KiB")
            same = wirepress.compress(np.array(x, order="C"), recipe, block_size="4KiB")
            assert frame == same
            back = wirepress.decompress(frame)
            assert (back.dtype, back.shape) == (x.dtype, x.shape)
            if lossless(recipe, dtype):
                assert in_memory(back) == in_memory(x)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes())
def test_matrix_long(recipe: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for door, dtype in itertools.product(DOORS, arrays.DTYPES):
        if door == "numcodecs" and dtype in NOT_OF_CHUNKS:
            continue
        sizes = (50_000,) if door in ("store", "tiles") else (2, 31, 4096, 20_000)
        for n in sizes:
            options = {"recipe": recipe, "block_size": "8KiB", "threads": 3, "seed": 5}
            if door in ("store", "tiles"):
                options["path"] = tmp_path
            x = values(dtype, n)
            check(door, recipe, dtype, x, options)
            bits = rng.integers(0, 256, x.nbytes, dtype=np.uint8).view(x.dtype)
            if dtype != "bool":  # any bits
                check(door, recipe, dtype, bits, options)
