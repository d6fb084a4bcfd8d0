# SPDX-License-Identifier: Apache-2.0
"""The codec in numcodecs' registry, and in arrays of Zarr format 2."""

from __future__ import annotations

import doctest
import pickle
from pathlib import Path

import numpy as np
import pytest

import wirepress

pytest.importorskip("numcodecs", reason="numcodecs is not installed")
import numcodecs
import wirepress.numcodecs
from wirepress.numcodecs import Wirepress

RNG = np.random.default_rng(1)
FIELD = np.cumsum(RNG.normal(size=(20, 30, 40)), axis=2)
TYPES = "i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16 >f4 >i8 >u2 M8[ns] m8[s] S5 U3 V7"


def test_doctests() -> None:
    assert doctest.testmod(wirepress.numcodecs, extraglobs={"np": np}).failed == 0


def test_is_found_by_name() -> None:
    codec = numcodecs.get_codec({"id": "wirepress", "recipe": "bx:m=6"})
    assert isinstance(codec, Wirepress)
    assert numcodecs.get_codec(codec.get_config()) == codec
    assert pickle.loads(pickle.dumps(codec)) == codec


@pytest.mark.parametrize("name", [*TYPES.split(), "?", [("a", "<i4"), ("b", "<f8")]])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_type_comes_back(name: str, order: str) -> None:
    dtype = np.dtype(name)
    if dtype.kind == "f":
        array = FIELD.astype(dtype)
    else:
        n_bytes = FIELD.size * dtype.itemsize
        array = np.frombuffer(RNG.integers(0, 2, n_bytes, np.uint8).tobytes(), dtype)
        array = array.reshape(FIELD.shape)
    array = np.asarray(array, order=order)
    codec = Wirepress()
    frame = codec.encode(array)
    assert codec.decode(frame).tobytes() == array.tobytes("A")
    out = np.empty_like(array)
    assert codec.decode(frame, out) is out
    assert out.tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2, 3, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("name", [*TYPES.split(), "?"])
def test_every_shape_comes_back(name: str, shape: tuple[int, ...]) -> None:
    n_bytes = int(np.prod(shape)) * np.dtype(name).itemsize
    array = np.frombuffer(RNG.integers(0, 2, n_bytes, np.uint8).tobytes(), name).reshape(shape)
    codec = Wirepress()
    flat = codec.decode(codec.encode(array))
    assert (flat.ndim, flat.tobytes()) == (1, array.tobytes())
    out = np.ones_like(array)
    assert codec.decode(codec.encode(array), out).tobytes() == array.tobytes()


@pytest.mark.parametrize("recipe", ["bx:m=6", "fre:m=6", "sz3:pw=1e-2", "auto:rel=1e-2"])
def test_lossy_within_its_bound(recipe: str) -> None:
    values = FIELD.astype(np.float32)
    frame = Wirepress(recipe).encode(values)
    assert len(frame) < values.nbytes / 2
    result = Wirepress().decode(frame).reshape(values.shape)
    assert np.all(np.abs(result - values) <= np.abs(values) * 2**-6)


def test_complex_numbers_are_pairs_to_a_float_codec() -> None:
    values = (FIELD + 1j * FIELD[::-1]).astype(np.complex64)
    frame = Wirepress("bx:m=6").encode(values)
    assert len(frame) < values.nbytes / 2
    result = Wirepress().decode(frame, np.empty_like(values))
    assert np.all(np.abs(result.imag - values.imag) <= np.abs(values.imag) * 2**-6)


def test_array_of_format_2(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    for order in "CF":
        path = tmp_path / order
        zarr.create_array(
            path, data=FIELD, chunks=(8, 8, 8), zarr_format=2, order=order,
            compressors=Wirepress("shuffle+lz4"),
        )  # fmt: skip
        assert '"id": "wirepress"' in (path / ".zarray").read_text()
        assert wirepress.inspect((path / "0.0.0").read_bytes()).shape == (8, 8, 8)
        np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], FIELD)


def test_dimensions_beyond_those_of_a_frame() -> None:
    array = FIELD.reshape(2, 2, 5, 6, 5, 40)
    frame = Wirepress("zfp:accuracy=1e-3").encode(array)
    assert wirepress.inspect(frame).shape == (20, 6, 5, 40)
    np.testing.assert_allclose(Wirepress().decode(frame, np.empty_like(array)), array, atol=1e-3)


def test_bad_input() -> None:
    with pytest.raises(wirepress.ParameterError, match='"zpaq"'):
        Wirepress("zpaq")
    with pytest.raises(wirepress.ParameterError, match=r"bx:m=6 cannot code int32: bx: takes"):
        Wirepress("bx:m=6").encode(np.arange(10, dtype=np.int32))
    with pytest.raises(wirepress.ParameterError, match="cannot code >f4"):
        Wirepress("bx:m=6").encode(np.ones(10, ">f4"))
    with pytest.raises(wirepress.ParameterError, match="references to objects"):
        Wirepress().encode(np.array([{}, None]))
    frame = Wirepress().encode(np.arange(100))
    with pytest.raises(wirepress.CorruptError, match="holds 800 bytes, the chunk has 792"):
        Wirepress().decode(frame, np.empty(99, np.int64))
    for bad in b"", b"nonsense", frame[:50], frame + b"x":
        with pytest.raises(wirepress.FrameError):
            Wirepress().decode(bad)
    stream = wirepress.StreamCompressor("lz4")
    with pytest.raises(wirepress.CorruptError, match="unknown number"):
        Wirepress().decode(stream.update(b"abc" * 100) + stream.finish())


def test_a_mask_is_not_lost() -> None:
    masked = np.ma.masked_less(FIELD, 0)
    with pytest.raises(wirepress.errors.ParameterError, match="lose its mask"):
        Wirepress().encode(masked)
    filled = masked.filled(0)
    assert (Wirepress().decode(Wirepress().encode(filled)) == filled.ravel()).all()
