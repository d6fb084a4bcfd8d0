# SPDX-License-Identifier: Apache-2.0
"""The codec in arrays of Zarr format 3, in shards, and below xarray."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wirepress

pytest.importorskip("zarr", reason="zarr is not installed")
import wirepress.numcodecs
import zarr
from wirepress.zarr import WirepressCodec

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")

FIELD = np.cumsum(np.random.default_rng(1).normal(size=(21, 30, 40)), axis=2)


def create(path: Path, data: np.ndarray, recipe: str = "shuffle+zstd:1", **arguments: object):
    codec = WirepressCodec(recipe)
    arguments = {"chunks": (8, 16, 16), "compressors": None} | arguments
    return zarr.create_array(path, data=data, serializer=codec, **arguments)


@pytest.mark.parametrize("name", "i1 u2 i4 u8 f2 f4 f8 c8 c16 >f4 >i8 M8[ns] U3".split())
def test_every_type_comes_back(tmp_path: Path, name: str) -> None:
    dtype = np.dtype(name)
    source = FIELD if dtype.kind in "fc" else FIELD.astype("i8") % 100
    data = source.astype(dtype)
    create(tmp_path, data)
    assert json.loads((tmp_path / "zarr.json").read_text())["codecs"] == [
        {"name": "wirepress", "configuration": {"recipe": "shuffle+zstd:1"}}
    ]
    np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[:], data)


def test_is_found_without_an_import(tmp_path: Path) -> None:
    create(tmp_path, FIELD)
    code = f"import zarr; print(zarr.open_array({str(tmp_path)!r}, mode='r')[:].sum())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert float(done.stdout) == pytest.approx(FIELD.sum()), done.stderr


def test_dtype_and_shape_are_known(tmp_path: Path) -> None:
    create(tmp_path, FIELD.astype("f4"), "zfp:accuracy=1e-3")
    info = wirepress.inspect((tmp_path / "c" / "0" / "0" / "0").read_bytes())
    assert (info.dtype, info.shape) == ("float32", (8, 16, 16))
    np.testing.assert_allclose(zarr.open_array(tmp_path)[:], FIELD, atol=1.1e-3)


def test_a_recipe_is_refused_when_the_array_is_made(tmp_path: Path) -> None:
    whole = {"shape": (8, 8), "dtype": "i4", "chunks": (4, 4), "compressors": None}
    for name, shards in ("plain", None), ("shards", (8, 8)):
        with pytest.raises(wirepress.ParameterError):
            zarr.create_array(
                tmp_path / name, shards=shards, serializer=WirepressCodec("bx:m=6"), **whole
            )


def test_in_shards(tmp_path: Path) -> None:
    array = create(tmp_path, FIELD, "sz3:abs=1e-3", chunks=(7, 10, 10), shards=(14, 30, 40))
    np.testing.assert_allclose(zarr.open_array(tmp_path)[:], FIELD, atol=1e-3)
    assert len(list((tmp_path / "c").rglob("0"))) > 0
    array[3, 4, 5:9] = 7  # a part of a chunk of a shard
    np.testing.assert_allclose(
        zarr.open_array(tmp_path)[3, 4, 4:9], [FIELD[3, 4, 4], *[7] * 4], atol=2e-3
    )


def test_behind_a_transposition(tmp_path: Path) -> None:
    create(tmp_path, FIELD, "bx:m=0", filters=[zarr.codecs.TransposeCodec(order=(2, 0, 1))])
    np.testing.assert_array_equal(zarr.open_array(tmp_path)[:], FIELD)


def test_single_numbers_and_chunks_never_written(tmp_path: Path) -> None:
    create(tmp_path / "0", np.array(3.5), chunks=())
    assert zarr.open_array(tmp_path / "0")[()] == 3.5
    array = zarr.create_array(
        tmp_path / "1", shape=100, chunks=10, dtype="f4", fill_value=2,
        serializer=WirepressCodec(), compressors=None,
    )  # fmt: skip
    array[35] = 1
    expected = np.full(100, 2, "f4")
    expected[35] = 1
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "1")[:], expected)


ALL_TYPES = "? i1 u2 i4 u8 f2 f4 f8 c8 c16 >f4 >f8 >i2 >c8 M8[ns] >m8[s] S5 U3 V7".split()
SHAPES = [(), (0,), (0, 3), (1,), (700,), (30, 21), (2, 3, 2, 3, 2)]
RNG = np.random.default_rng(2)


def stored(data: np.ndarray, recipe: str | None, form: int, order: str = "C") -> np.ndarray:
    """What an array of two chunks a dimension gives back; recipe None: without wirepress."""
    arguments: dict[str, object] = {"compressors": None, "zarr_format": form}
    if form == 2:
        arguments["order"] = order
    if recipe and form == 2:
        arguments["compressors"] = wirepress.numcodecs.Wirepress(recipe)
    elif recipe:
        arguments["serializer"] = WirepressCodec(recipe)
    chunks = tuple(max(1, (n + 1) // 2) for n in data.shape)
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(store, shape=data.shape, dtype=data.dtype, chunks=chunks, **arguments)
    array[...] = data
    return np.asarray(zarr.open_array(store, mode="r")[...])


def check_as_without(name: str, shape: tuple[int, ...], form: int, order: str) -> None:
    n_bytes = int(np.prod(shape)) * np.dtype(name).itemsize
    raw = RNG.integers(0, 2, n_bytes, np.uint8).tobytes()
    data = np.frombuffer(raw, name).reshape(shape)
    if data.dtype.kind in "fc":
        data = RNG.normal(size=shape).astype(name)
    data = np.asarray(data, order=order)
    expected = stored(data, None, form, order)
    found = stored(data, "shuffle+zstd:1", form, order)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()
    takes = data.dtype.kind in "fc" and (form == 3 or data.dtype.isnative)
    if not takes and data.tobytes().strip(b"\0"):  # Zarr leaves out chunks of zeros
        with pytest.raises(wirepress.ParameterError, match="cannot code"):
            stored(data, "bx:m=6", form, order)
    elif takes:
        found = stored(data, "bx:m=6", form, order)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2**-6)


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("name", ["f8", ">f4", "i4", "c8", "?"])
def test_as_without_wirepress(name: str, form: int) -> None:
    for shape in SHAPES:
        check_as_without(name, shape, form, "C")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The data type:FutureWarning")
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("name", ALL_TYPES)
def test_every_type_and_shape_as_without_wirepress(name: str, form: int) -> None:
    for shape in SHAPES:
        for order in "CF":
            check_as_without(name, shape, form, order)


def test_xarray(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    data = xarray.Dataset(
        {"p": (("t", "y", "x"), FIELD.astype("f4")), "n": ("t", np.arange(21))},
        coords={"t": np.arange(21) * 0.5},
    )
    encoding = {"p": {"serializer": WirepressCodec("bx:m=6"), "compressors": None}}
    encoding["n"] = {"serializer": WirepressCodec(), "compressors": None}
    data.to_zarr(tmp_path / "d", zarr_format=3, encoding=encoding, consolidated=False)
    back = xarray.open_zarr(tmp_path / "d", consolidated=False, chunks=None)
    error = np.abs(back.p.values - data.p.values)
    assert np.all(error <= np.abs(data.p.values) * 2**-7)
    assert error.max() > 0
    np.testing.assert_array_equal(back.n, data.n)


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(wirepress.ParameterError, match='"zpaq"'):
        WirepressCodec("zpaq")
    assert pickle.loads(pickle.dumps(WirepressCodec("bx"))) == WirepressCodec("bx", threads=2)
    with pytest.raises(wirepress.ParameterError, match="bx cannot code int64: bx: takes"):
        create(tmp_path / "a", FIELD.astype("i8"), "bx")
    with pytest.raises(wirepress.ParameterError, match=r"unknown configuration \['level'\]"):
        WirepressCodec.from_dict({"name": "wirepress", "configuration": {"level": 1}})


def test_damaged_chunks(tmp_path: Path) -> None:
    create(tmp_path, FIELD[:8, :16, :16])
    path = tmp_path / "c" / "0" / "0" / "0"
    frame = path.read_bytes()
    for i in range(0, len(frame), 97):
        path.write_bytes(frame[:i] + bytes([frame[i] ^ 4]) + frame[i + 1 :])
        with pytest.raises(wirepress.FrameError):
            zarr.open_array(tmp_path)[:]
    path.write_bytes(wirepress.compress(np.zeros((8, 16, 15))))
    with pytest.raises(wirepress.CorruptError, match="holds 15360 bytes, the chunk has 16384"):
        zarr.open_array(tmp_path)[:]
    path.write_bytes(wirepress.compress(np.zeros((8, 16, 16), np.int64)))
    with pytest.raises(wirepress.CorruptError, match="holds int64, the array is float64"):
        zarr.open_array(tmp_path)[:]
