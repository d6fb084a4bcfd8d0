# SPDX-License-Identifier: Apache-2.0
"""What cannot be kept is refused in one sentence, and nothing is given back otherwise."""

from __future__ import annotations

import copy
import ctypes
import pickle
import subprocess
import sys
import threading
from array import array as plain_array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirepress

LOSING = ["bx:m=6", "int8", "bf16", "topk", "sz3", "zfp:rate=8", "fre:m=5", "bx:m=6+zstd:1"]


def refused(call: Callable[[], Any], match: str) -> None:
    with pytest.raises((wirepress.ParameterError, TypeError), match=match) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("recipe", LOSING)
def test_recipes_that_lose_need_a_dtype(recipe: str, text: bytes, tmp_path: Path) -> None:
    data = text[:40_000]
    for plain in (data, bytearray(data), memoryview(data)):
        refused(lambda p=plain: wirepress.compress(p, recipe), "dtype")
    refused(lambda: wirepress.compress(np.frombuffer(data, np.uint8), recipe), "uint8")
    refused(lambda: wirepress.Compressor(recipe).compress_into(data, bytearray(90_000)), "dtype")
    refused(lambda: wirepress.StreamCompressor(recipe), "dtype")
    refused(lambda: wirepress.FrameStore(tmp_path / "s", (9,), "bytes", recipe=recipe), "dtype")
    assert not (tmp_path / "s").exists()
    refused(lambda: wirepress.compress(data, recipe, dtype="bytes"), "dtype")
    frame = wirepress.compress(data, recipe, dtype="float32")  # said
    assert wirepress.inspect(frame).dtype == "float32"


def test_the_command_line_needs_a_dtype(
    wirepress_in: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path, text: bytes
) -> None:
    (tmp_path / "text").write_bytes(text[:40_000])
    for more in ([], ["-o", "out"]):
        run = wirepress_in("compress", "--recipe", "bx:m=6", *more, "text")
        assert run.returncode != 0 and b"dtype" in run.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["text"]
    run = wirepress_in("compress", "--recipe", "bx:m=6", "--dtype", "float32", "text")
    assert run.returncode == 0


@pytest.mark.parametrize("recipe", ["auto:rel=1e-2", "auto:abs=1", "bx:m=0", "fre:m=23", "zfp"])
def test_recipes_that_lose_nothing_take_bytes(recipe: str, text: bytes) -> None:
    for data in (text[:40_003], np.sin(np.arange(9000, dtype=np.float32)).tobytes()):
        assert wirepress.decompress(wirepress.compress(data, recipe)) == data
        stream = wirepress.StreamCompressor(recipe)
        assert wirepress.decompress(stream.update(data) + stream.finish()) == data


def test_arrays_that_are_no_plain_memory() -> None:
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    for call in (
        wirepress.compress,
        wirepress.StreamCompressor(dtype="float64").update,
        lambda x: wirepress.Compressor().compress_into(x, bytearray(1000)),
        lambda x: wirepress.Compressor("auto").explain(x),
        lambda x: wirepress.Compressor("bx").compress_feedback(
            x.astype("f4"), np.zeros(3, np.float32)
        ),
    ):
        refused(lambda c=call: c(masked), "mask")
    for array in (
        np.array([object()]),
        np.zeros(3, [("a", "f4"), ("b", "i4")]),
        np.rec.array([(1, 2.0)]),
        np.zeros(3, ">f4"),
        np.zeros(3, "M8[s]"),
        np.zeros(3, "U4"),
        np.zeros(3, "S4"),
        np.zeros(3, np.longdouble),
    ):
        refused(lambda a=array: wirepress.compress(a), "dtype")
    refused(lambda: wirepress.compress(np.zeros((1, 1, 1, 1, 1))), "5 dimensions")
    refused(lambda: wirepress.compress([1.0, 2.0]), "list")
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix(np.eye(3))
    back = wirepress.decompress(wirepress.compress(matrix))
    assert np.array_equal(back, np.eye(3))


def _typed_buffers(size: int) -> dict[str, Any]:
    """Memory of every type that a buffer may have without NumPy."""
    kinds = {"float32": "f", "float64": "d", "int32": "i", "uint32": "I", "int64": "q"}
    kinds |= {"int16": "h", "uint8": "B", "int8": "b"}
    of_size = {name: size // plain_array(kind).itemsize for name, kind in kinds.items()}
    found: dict[str, Any] = {
        name: plain_array(kind, [1] * of_size[name]) for name, kind in kinds.items()
    }
    found |= {f"memoryview {name}": memoryview(found[name])[:] for name in ("float64", "int32")}
    found |= {"ctypes double": (ctypes.c_double * (size // 8))(), "bool": (ctypes.c_bool * size)()}
    found |= {"pointer": (ctypes.c_void_p * (size // 8))(), "char *": (ctypes.c_char_p * 2)()}
    return found


def test_outputs_that_elements_cannot_be_written_to(tmp_path: Path) -> None:
    field = np.arange(4, dtype=np.float32)
    frame = wirepress.compress(field)
    with wirepress.FrameStore(tmp_path / "s", (4,), "float32", recipe="lz4") as store:
        store.put(0, field)
        doors = (
            lambda out: wirepress.decompress(frame, out),
            lambda out: store.get(0, out),
            lambda out: store.get_tile(0, 0, out),
        )
        for door in doors:
            for out in (
                np.zeros(4, ">f4"),
                np.empty(4, object),
                np.zeros(4, np.float64),
                np.zeros(4, np.int32),
                np.zeros(4, np.complex64),
                np.ma.array(np.zeros(4, np.float32), mask=[0, 1, 0, 1]),
                np.zeros(8, np.float32)[::2],
                np.zeros(4, np.float32)[::-1],
            ):
                before = out.copy()
                refused(lambda d=door, o=out: d(o), "out|mask")
                assert np.array_equal(np.asarray(out), np.asarray(before))
            for memory in (
                np.zeros(4, np.float32),
                np.zeros(4, np.uint32),
                np.zeros(16, np.uint8),
                bytearray(16),
            ):
                door(memory)
                assert bytes(memory) == field.tobytes()
            for name, typed in _typed_buffers(16).items():
                before_bytes = bytes(memoryview(typed).cast("B"))
                if name in ("float32", "uint32", "uint8", "int8"):
                    door(typed)
                    assert bytes(memoryview(typed).cast("B")) == field.tobytes()
                else:
                    refused(lambda d=door, o=typed: d(o), "out")
                    assert bytes(memoryview(typed).cast("B")) == before_bytes
    refused(lambda: wirepress.Compressor().compress_into(field, np.empty(99, object)), "objects")
    for strided in (memoryview(bytearray(32))[::2], memoryview(np.zeros(8, np.float32))[::2]):
        refused(lambda o=strided: wirepress.decompress(frame, o), "out has strides")
    pointers = (ctypes.c_char_p * 99)()
    refused(lambda: wirepress.Compressor().compress_into(field, pointers), "pointers")
    refused(lambda: wirepress.decompress(wirepress.compress(b"1234"), pointers), "pointers")
    raw = wirepress.compress(b"1234")
    assert wirepress.decompress(raw, np.zeros(1, np.float32)).tobytes() == b"1234"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_pieces_of_a_stream_are_of_its_dtype(dtype: str) -> None:
    stream = wirepress.StreamCompressor(dtype=dtype)
    good = np.arange(8).astype(dtype)
    for other in ("float64", "float32", "int32", "uint16", "complex64", "int8"):
        if other != dtype:
            refused(lambda o=other: stream.update(np.zeros(8, o)), f"{dtype}, the piece of {other}")
    frame = stream.update(good) + stream.update(good.tobytes())
    frame += stream.update(np.frombuffer(good.tobytes(), np.uint8)) + stream.finish()
    assert wirepress.decompress(frame) == good.tobytes() * 3


def test_plain_streams_take_any_array() -> None:
    stream = wirepress.StreamCompressor()
    frame = stream.update(np.arange(3.0)) + stream.update(b"x") + stream.finish()
    assert wirepress.decompress(frame) == np.arange(3.0).tobytes() + b"x"


def test_streams_of_types_that_numpy_lacks() -> None:
    stream = wirepress.StreamCompressor("bx:m=3", dtype="bfloat16")
    refused(lambda: stream.update(np.zeros(4, np.uint32)), "bfloat16")
    words = np.full(4000, 0x3F80, np.uint16)
    frame = stream.update(words) + stream.finish()
    assert wirepress.decompress(frame) == words.tobytes()


@pytest.mark.parametrize(
    "recipe",
    ["zstd:1,level=2", "bx:m=3,m=3", "auto:rel=1e-3,rel=1e-3", "fre:5,m=5", "shuffle:4+bx:m=5"],
)
def test_recipes_that_contradict_themselves(recipe: str) -> None:
    refused(lambda: wirepress.Compressor(recipe), "twice|first")


@pytest.mark.parametrize("recipe", ["sz3:abs=0", "sz3:rel=0.0", "sz3:psnr=0", "sz3:abs=1,pw=0e3"])
def test_a_bound_of_zero_is_not_the_default_bound(recipe: str) -> None:
    refused(lambda: wirepress.Compressor(recipe), "a number above 0 such as")
    values = np.sin(np.arange(3000) / 30)
    back = wirepress.decompress(wirepress.compress(values, "zfp:accuracy=0"))
    assert np.array_equal(back, values)


def test_steps_of_a_store_are_any_integers(tmp_path: Path) -> None:
    field = np.arange(4, dtype=np.float32)
    with wirepress.FrameStore(tmp_path / "s", (4,), "float32") as store:
        store.put(np.int64(3), field)
        store.put(np.uint8(5), field)
        for step in (3, np.int64(3), np.uint16(3), 3.0, np.float32(3)):
            assert step in store
            assert np.array_equal(store.get(step), field)  # type: ignore[arg-type]
        for step in (4, np.int64(-3), 3.5, "3", None, 1 << 64, float("nan"), float("inf")):
            assert step not in store
        for bad in (3.5, "x", None, -1, 1 << 64, float("inf")):
            refused(lambda b=bad: store.put(b, field), "not an integer")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["zstd\0+lz4", "zst\udc80"])
def test_text_ends_where_python_says(tmp_path: Path, bad: str) -> None:
    """C would end it at the NUL."""
    store = wirepress.FrameStore
    for call in (
        lambda: wirepress.compress(b"a", bad),
        lambda: wirepress.Compressor(engine=bad),
        lambda: wirepress.Compressor(**{bad: 1}),
        lambda: wirepress.StreamCompressor(bad),
        lambda: wirepress.api.rate(bad),
        lambda: store(tmp_path / bad, (2,)),
        lambda: store(tmp_path / "s", (2,), recipe=bad),
        lambda: store(tmp_path / "s", (2,), engine=bad),
        lambda: store(tmp_path / "s", (2,), options={"block_size": bad}),
        lambda: store(tmp_path / "s", (2,), options={bad: 1}),
    ):
        refused(call, "NUL|not text")
    assert not list(tmp_path.iterdir())


def test_numbers_are_whole_and_in_their_range(tmp_path: Path) -> None:
    frame, compressor = wirepress.compress(np.arange(100)), wirepress.Compressor()
    store = wirepress.FrameStore
    path = tmp_path / "s"
    for bad in (-1, 1.5, "1", None, 1 << 64):
        for call in (
            lambda b: wirepress.decompress_range(frame, b, 1),
            lambda b: wirepress.decompress_range(frame, 1, b),
            lambda b: compressor.bound(b),
            lambda b: store(path, (b, 3)),
            lambda b: store(path, (4, 3), tile=(b, 3)),
            lambda b: store(path, (4, 3), servants=b),
            lambda b: store(path, (4, 3), reserve=b),
            lambda b: store(path, (4, 3), nodes=(b,)),
            lambda b: store(path, (4, 3), pin=(b,)),
        ):
            refused(lambda c=call, b=bad: c(b), "whole number|not in|none such|not one|None")
    for call in (
        lambda: store(path, "46"),
        lambda: store(path, 5),
        lambda: store(path, (4, 3), direct="no"),
        lambda: store(path, (4, 3), pin="0"),
        lambda: store(None, policy="memory"),
        lambda: store("", (4, 3)),
        lambda: wirepress.decompress_range(frame, 0, 1 << 62),
        lambda: wirepress.decompress(None),
        lambda: wirepress.inspect(None),
        lambda: compressor.add(None, frame),
        lambda: compressor.decompress_async(None),
        lambda: compressor.option(None),
        lambda: compressor.number(None),
        lambda: compressor.set_stream("x"),
        lambda: wirepress.StreamDecompressor().update_into(frame, -1, bytearray(9)),
        lambda: wirepress.StreamDecompressor().update_into(None, 0, bytearray(9)),
    ):
        refused(call, "not a whole|not in|sequence|neither|shape|empty|that holds|None")
    stream = wirepress.StreamCompressor("lz4")
    streamed = stream.update(b"a" * 9999) + stream.finish()
    with pytest.raises(MemoryError, match=f"no memory for {1 << 62} bytes"):
        wirepress.decompress_range(streamed, 0, 1 << 62)
    refused(lambda: wirepress.compress(b"a", seed=-1), "seed: .*from 0 on")
    assert not path.exists()
    assert wirepress.compress(b"a" * 99, threads=np.int64(2)) == wirepress.compress(b"a" * 99)


SECOND_INTERPRETER = """
import importlib
import wirepress
before = wirepress.Compressor("zstd")
try:
    interpreters = importlib.import_module("_xxsubinterpreters")
except ImportError:
    interpreters = importlib.import_module("_interpreters")
script = "try:\\n  import wirepress\\nexcept ImportError as error:\\n"
script += "  assert 'main' in str(error)\\nelse:\\n  raise ValueError('it was imported')\\n"
failure = interpreters.run_string(interpreters.create(), script)
assert not failure, failure
for compressor in before, wirepress.Compressor("lz4"):
    assert compressor.decompress(compressor.compress(b"abc")) == b"abc"
"""


def test_a_second_interpreter_is_refused_and_does_not_harm_the_first() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SECOND_INTERPRETER], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_is_written_lies_apart_from_what_is_read() -> None:
    compressor, room = wirepress.Compressor("onebit", threads=1), np.zeros(9999, np.float32)
    room[:] = np.arange(9999)
    before = room.copy()
    frame = compressor.compress(room)
    held = bytearray(room.nbytes + len(frame))
    held[-len(frame) :] = frame
    refused(lambda: compressor.compress_into(room, room), "overlap")
    refused(lambda: compressor.compress_into(room[:5000], room[4999:]), "overlap")
    refused(lambda: compressor.compress_feedback(room, room), "overlap")
    refused(lambda: compressor.compress_feedback(room[:5000], room[4999:9999]), "overlap")
    assert np.array_equal(room, before)
    whole = memoryview(held)
    refused(
        lambda: compressor.decompress(whole[-len(frame) :], whole[1 : room.nbytes + 1]), "overlap"
    )
    compressor.decompress(whole[-len(frame) :], whole[: room.nbytes])
    expected = compressor.decompress(frame)
    assert bytes(whole[: room.nbytes]) == expected.tobytes()


def test_dtypes_may_be_numpys() -> None:
    raw = np.arange(4, dtype=np.float32).tobytes()
    for dtype in ("float32", np.float32, np.dtype(np.float32), np.dtype("<f4")):
        assert wirepress.inspect(wirepress.compress(raw, dtype=dtype)).dtype == "float32"
    for bad in (">f4", np.dtype(">f4"), float, None.__class__, np.dtype("M8[s]"), "f4"):
        refused(lambda b=bad: wirepress.compress(raw, dtype=b), "unknown dtype")


def test_copies_of_a_compressor_are_compressors_of_their_own(tmp_path: Path) -> None:
    one = wirepress.Compressor("lz4:3", block_size="64KiB", checksum=False)
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        data = b"some text, and more of it" * 9999
        assert other.compress(data) == one.compress(data)
        other.set("recipe", "zstd")
        assert one.option("recipe") == ("lz4:3", "set")
        assert other.option("threads")[1] != "set"


class _Own(wirepress.Compressor):
    __slots__ = ("more",)

    def __init__(self, name: str, level: int) -> None:
        super().__init__(f"zstd:{level}", threads=1)
        self.name, self.more = name, [level]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_copies_of_a_subclass_are_of_that_class(protocol: int) -> None:
    one = _Own("fields", 7)
    for other in (
        copy.copy(one),
        copy.deepcopy(one),
        pickle.loads(pickle.dumps(one, protocol)),
    ):
        assert type(other) is _Own
        assert (other.name, other.more) == ("fields", [7])
        assert other.option("recipe") == ("zstd:7", "set")
        assert other.option("threads") == ("1", "set")
    assert copy.copy(one).more is one.more
    assert copy.deepcopy(one).more is not one.more


def test_work_in_progress_is_not_copied(tmp_path: Path) -> None:
    with wirepress.FrameStore(tmp_path / "s", (4,)) as store:
        held = {
            "FrameStore": store,
            "StreamCompressor": wirepress.StreamCompressor(),
            "StreamDecompressor": wirepress.StreamDecompressor(),
            "Job": wirepress.Compressor().compress_async(b"data"),
        }
        for name, each in held.items():
            for call in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match=f"a {name} cannot be copied or pickled: "):
                    call(each)


def test_copies_of_a_patch_are_patches() -> None:
    before, after = {"w": np.zeros(999, np.float32)}, {"w": np.full(999, 1e-3, np.float32)}
    one = wirepress.Patch(bytearray(wirepress.diff(before, after)))
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        (entry,) = other.entries
        assert other.frames(entry) == one.frames(entry)


def test_a_store_of_bytes_takes_what_it_gives(tmp_path: Path) -> None:
    with wirepress.FrameStore(tmp_path / "s", (2, 8), "bytes") as store:
        store.put(0, np.arange(16, dtype=np.uint8).reshape(2, 8))
        store.put(1, store.get(0))
        for n, place in enumerate(store.tiles()):
            store.put_tile(2, n, store.get(0)[place])
        assert [store.get(step).tobytes() for step in (1, 2)] == [bytes(range(16))] * 2
        refused(lambda: store.put(3, np.zeros((2, 8), np.int8)), "the store holds bytes")


# ---- one compressor, several threads ---------------------------------------------------------


def test_options_set_by_another_thread() -> None:
    """A call sees one set of options, for its bound and for what it writes."""
    shared = wirepress.Compressor("lz4", threads=1)
    noise = np.random.default_rng(1).integers(0, 256, 300_000, dtype=np.uint8)
    stop = threading.Event()

    def turn() -> None:
        for i in range(1 << 30):
            if stop.is_set():
                return
            shared.set("block_size", ("1KiB", "1MiB")[i % 2])
            shared.set("checksum", bool(i & 2))
            shared.set("threads", 1 + i % 3)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        for _ in range(300):
            assert np.array_equal(shared.decompress(shared.compress(noise)), noise)
    finally:
        stop.set()
        thread.join()


# ---- PyTorch's lazy views --------------------------------------------------------------------


def views() -> list[tuple[str, Any]]:
    torch = pytest.importorskip("torch")
    z = torch.complex(torch.arange(1.0, 61.0), torch.arange(101.0, 161.0))
    return [
        ("conj", z.conj()),
        ("imag of conj", z.conj().imag),
        ("real of conj", z.conj().real),
        ("strided", z.conj().reshape(6, 10)[::2, ::3]),
        ("strided neg", z.conj().imag.reshape(6, 10).T),
        ("conj of one", z.conj()[5]),
        ("adjoint", z.reshape(6, 10).mH),
        ("neg view", torch._neg_view(torch.arange(5.0))),
        ("double", z.to(torch.complex128).conj()),
        ("grad", torch.arange(5.0).requires_grad_()),
        ("grad of conj", z.clone().requires_grad_().conj()),
        ("slice", torch.arange(50.0)[7:31:3]),
    ]


def test_lazy_views_of_torch(tmp_path: Path) -> None:
    for name, tensor in views():
        expected = tensor.detach().resolve_conj().resolve_neg().numpy()
        assert np.array_equal(wirepress.decompress(wirepress.compress(tensor)), expected), name
        kind = str(expected.dtype)
        stream = wirepress.StreamCompressor(dtype=kind)
        frame = stream.update(tensor) + stream.finish()
        assert wirepress.decompress(frame) == expected.tobytes(), name
        with wirepress.FrameStore(
            tmp_path / name, expected.shape, kind, recipe="shuffle+lz4"
        ) as store:
            store.put(0, tensor)
            assert np.array_equal(store.get(0), expected), name
    gradient = views()[1][1]
    compressor, residual = wirepress.Compressor("bx:m=0"), np.zeros(60, np.float32)
    out = np.zeros(60, np.float32)
    compressor.decompress_add(compressor.compress_feedback(gradient, residual), out)
    assert np.array_equal(out, gradient.resolve_neg().numpy())


def test_tensors_that_are_no_memory() -> None:
    torch = pytest.importorskip("torch")
    for tensor in (torch.eye(3).to_sparse(), torch.empty(3, device="meta")):
        refused(lambda t=tensor: wirepress.compress(t), "DLPack")
    frame = wirepress.compress(np.arange(4, dtype=np.float32))
    for out in (torch.zeros(4), torch._neg_view(torch.zeros(4))):
        with pytest.raises((TypeError, BufferError)):
            wirepress.decompress(frame, out)
        assert bool((out == 0).all())
