# SPDX-License-Identifier: Apache-2.0
"""What can be compressed: buffers, NumPy arrays, DLPack arrays; and that it comes back the same."""

from __future__ import annotations

import array
import ctypes
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
import ml_dtypes

import wirepress
from wirepress.chunks import kinds

DTYPES = [
    np.dtype(name)
    for name in (
        *"i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 ? c8 c16".split(),
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
    )
]


class OnlyDlpack:
    """An array that has DLPack and nothing else."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._values.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0, 2), (5, 6), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("recipe", ["store", "shuffle+zstd:1"])
def test_numpy_round_trip(dtype: np.dtype, shape: tuple[int, ...], recipe: str) -> None:
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7).astype(dtype)
    frame = wirepress.compress(values, recipe)
    assert same(wirepress.decompress(frame), values)
    assert wirepress.inspect(frame).shape == shape
    assert wirepress.decompress(frame, raw=True) == values.tobytes()
    out = np.empty(shape, f"u{dtype.itemsize}") if dtype.itemsize < 16 else np.empty(shape, dtype)
    wirepress.decompress(frame, out)
    assert out.tobytes() == values.tobytes()


def test_dtype_names() -> None:
    for dtype in DTYPES:
        name = wirepress.inspect(wirepress.compress(np.zeros(3, dtype))).dtype
        assert name == dtype.name.replace("e4m3fn", "e4m3")
    assert wirepress.inspect(wirepress.compress(b"abc")).dtype == "bytes"


def test_strides_are_copied(field: np.ndarray) -> None:
    for view in (field[::2], field.T, field[:, ::-1, 3:9], np.asfortranarray(field)):
        assert same(wirepress.decompress(wirepress.compress(view)), np.ascontiguousarray(view))
    memory = memoryview(bytes(range(100)))[::3]
    assert wirepress.decompress(wirepress.compress(memory)) == bytes(memory)


def test_numpy_scalar() -> None:
    restored = wirepress.decompress(wirepress.compress(np.float64(2.5)))
    assert (restored.shape, float(restored)) == ((), 2.5)


def test_buffers(text: bytes) -> None:
    for data in (bytearray(text), memoryview(text), array.array("B", text[:99])):
        assert wirepress.decompress(wirepress.compress(data)) == bytes(data)
    typed = array.array("d", [1.0, 2.0, 3.0])
    assert wirepress.decompress(wirepress.compress(typed)).tolist() == typed.tolist()
    matrix = ((ctypes.c_int32 * 3) * 2)((1, 2, 3), (4, 5, 6))
    assert wirepress.decompress(wirepress.compress(matrix)).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert wirepress.decompress(memoryview(wirepress.compress(b"x"))) == b"x"


def test_dtype_of_bytes(field: np.ndarray) -> None:
    frame = wirepress.compress(field.tobytes(), "shuffle+zstd", dtype="float32")
    info = wirepress.inspect(frame)
    assert (info.dtype, info.shape) == ("float32", None)
    assert wirepress.decompress(frame) == field.tobytes()
    bits = np.arange(6, dtype=np.uint16).reshape(2, 3)
    restored = wirepress.decompress(wirepress.compress(bits, dtype="bfloat16"))
    assert same(restored, bits.view(ml_dtypes.bfloat16))
    with pytest.raises(wirepress.ParameterError, match=r"7 bytes.*float32"):
        wirepress.compress(b"1234567", dtype="float32")
    with pytest.raises(wirepress.ParameterError, match=r"4 bytes.*uint16 has 2"):
        wirepress.compress(bits, dtype="float32")
    with pytest.raises(wirepress.ParameterError, match=r"float31.*known: .*float32"):
        wirepress.compress(b"", dtype="float31")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.zeros((1, 1, 1, 1, 1)), "5 dimensions.*at most 4"),
        (np.zeros(3, ">f4"), "byte order"),
        (np.zeros(3, "datetime64[ns]"), "datetime64.*view"),
        (np.zeros(3, "f4,i4"), "not one of"),
        (np.array([1, "x", None], dtype=object), "object"),
        (np.array(["a", "bc"]), "not one of"),
        (np.zeros(3, np.longdouble), "not one of"),
        (memoryview(np.zeros(3, ">i4")), "byte order"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unusable_arrays(values: Any, sentence: str) -> None:
    with pytest.raises(wirepress.ParameterError, match=sentence):
        wirepress.compress(values)


@pytest.mark.parametrize(
    "door",
    [wirepress.decompress, lambda *args: wirepress.Compressor().decompress_async(*args).result()],
    ids=["now", "as a job"],
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_that_numpy_lacks_are_written_to(dtype: str, door: Callable[..., Any]) -> None:
    values = np.arange(4).astype(dtype)
    out = np.zeros(4, dtype)
    door(wirepress.compress(values), out)
    assert same(out, values)
    size = wirepress.Compressor("store").compress_into(values, room := np.zeros(100, dtype))
    assert same(wirepress.decompress(room.view("u1")[:size]), values)


def test_types_whose_names_deceive() -> None:
    """A name says no byte order, and ml_dtypes has another type of the name float8_e4m3."""
    swapped = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")
    other = np.dtype(ml_dtypes.float8_e4m3)
    for dtype, ours in ((swapped, "bfloat16"), (other, "float8_e4m3")):
        frame = wirepress.compress(np.ones(4, f"u{dtype.itemsize}"), dtype=ours)
        for call in (
            lambda d=dtype: wirepress.compress(np.zeros(4).astype(d)),
            lambda d=dtype: wirepress.compress(bytes(8), dtype=d),
            lambda d=dtype: wirepress.StreamCompressor(dtype=d),
            lambda d=dtype, f=frame: wirepress.decompress(f, np.zeros(4).astype(d)),
        ):
            with pytest.raises(wirepress.ParameterError, match=r"byte order|ml_dtypes|>V2"):
                call()
        assert kinds(dtype)[0][0].startswith("uint")


def test_fields_of_records_are_not_written_to() -> None:
    frame = wirepress.compress(np.ones(4, np.float32))
    for record in (np.dtype([("a", "i4")]), np.dtype([("a", ">f4")])):
        with pytest.raises(wirepress.ParameterError, match=r"out is .*float32"):
            wirepress.decompress(frame, np.zeros(4, record))
    assert wirepress.decompress(frame, np.zeros(4, "V4")).view("f4").sum() == 4


@pytest.mark.parametrize("dtype", "i1 u2 i4 u8 f2 f4 f8 ? c8".split())
def test_dlpack(dtype: str) -> None:
    values = (np.arange(24).reshape(2, 3, 4) % 5).astype(dtype)
    for each in (values, values[:, ::2], values.T, values[0, 0, 0]):
        each = np.asarray(each)
        restored = wirepress.decompress(wirepress.compress(OnlyDlpack(each)))
        assert same(restored, each.copy(order="C"))


def test_dlpack_elsewhere() -> None:
    class OnOpenCl(OnlyDlpack):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 4, 0

    with pytest.raises(wirepress.ParameterError, match=r"OpenCL memory; .*cpu\(\)"):
        wirepress.compress(OnOpenCl(np.zeros(3)))


def test_without_numpy() -> None:
    program = """
import sys
sys.modules["numpy"] = None
import wirepress
assert wirepress.decompress(wirepress.compress(b"hello" * 99)) == b"hello" * 99
import array
frame = wirepress.compress(array.array("d", [1.0, 2.0]))
assert wirepress.decompress(frame, raw=True) == array.array("d", [1.0, 2.0]).tobytes()
try:
    wirepress.decompress(frame)
except ImportError as error:
    assert "float64" in str(error) and "raw=True" in str(error), error
else:
    raise SystemExit("no ImportError")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("add", [False, True])
def test_rows_of_an_output_are_those_of_the_array(add: bool) -> None:
    field = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    compressor = wirepress.Compressor("planes")
    frame, flat = compressor.compress(field), compressor.compress(field.ravel())
    call = compressor.decompress_add if add else compressor.decompress
    for shape in [(2, 4, 3), (4, 3, 2), (3, 8), (2, 3, 5), (2, 2, 2, 3)]:
        out = np.zeros(shape, np.float32)
        with pytest.raises(wirepress.ParameterError, match="its rows are of another length"):
            call(frame, out)
        assert not out.any()
    for shape in [(24,), (2, 3, 4), (6, 4), (1, 2, 3, 4), (2, 1, 3, 4), (2, 3, 1, 4)]:
        out = np.zeros(shape, np.float32)
        call(frame, out)
        assert np.array_equal(out.ravel(), field.ravel())
    if not add:
        out = np.zeros((6, 16), np.uint8)
        assert call(frame, out).tobytes() == field.tobytes()
        other = np.zeros((4, 6), np.float32)
        assert call(frame, other, raw=True).tobytes() == field.tobytes()
        with pytest.raises(wirepress.ParameterError, match="its rows are of another length"):
            call(frame, np.zeros((4, 24), np.uint8))
    out = np.zeros((4, 6), np.float32)
    call(flat, out)
    assert np.array_equal(out.ravel(), field.ravel())
