# SPDX-License-Identifier: Apache-2.0
"""The HDF5 filter in h5py, in Debian's tools, on damaged chunks; chunks coded by threads."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirepress

pytest.importorskip("h5py", reason="h5py is not installed")
import h5py

try:
    import wirepress.hdf5
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

FIELD = np.cumsum(np.random.default_rng(1).normal(size=(21, 30, 40)), axis=2)
CHUNKS = (8, 16, 16)


@pytest.fixture
def file(tmp_path: Path) -> h5py.File:
    with h5py.File(tmp_path / "t.h5", "w") as made:
        yield made


def create(file: h5py.File, data: np.ndarray, recipe: str = "", **arguments: object):
    arguments = {"chunks": CHUNKS} | wirepress.hdf5.options(recipe) | arguments
    name = f"d{len(file)}"
    file.create_dataset(name, data=data, **arguments)
    file.flush()
    dataset = file[name]
    dataset.id.refresh()
    return dataset


def frame_of(dataset: h5py.Dataset) -> bytes:
    return dataset.id.read_direct_chunk((0,) * len(dataset.shape))[1]


def values_of(dataset: h5py.Dataset) -> tuple[int, ...]:
    return dataset.id.get_create_plist().get_filter(0)[2]


def test_a_variable_that_nobody_reads_is_named_once() -> None:
    program = (
        "import h5py, numpy, wirepress.hdf5\n"
        "with h5py.File('x', 'w', driver='core', backing_store=False) as file:\n"
        "    for name in 'ab':\n"
        "        file.create_dataset(name, data=numpy.arange(9999), **wirepress.hdf5.options())"
    )
    settings = os.environ | {"WIREPRESS_RECIPPE": "lz4"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True
    )
    assert done.stderr.count("WIREPRESS_RECIPPE (did you mean WIREPRESS_RECIPE?)") == 1


# ---- h5py


@pytest.mark.parametrize("name", "i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16 >f4 >i8 S5 ?".split())
def test_every_type_comes_back(file: h5py.File, name: str) -> None:
    dtype = np.dtype(name)
    source = FIELD if dtype.kind in "fc" else FIELD.astype("i8") % 2
    dataset = create(file, source.astype(dtype))
    np.testing.assert_array_equal(dataset[:], source.astype(dtype))
    info = wirepress.inspect(frame_of(dataset))
    described = {"?": "int8", ">f4": "uint32", ">i8": "uint64", "S5": "uint8"}
    assert info.dtype == described.get(name, dtype.name)
    assert info.shape == (CHUNKS if name != "S5" else (*CHUNKS, 5))
    assert info.recipe.startswith("shuffle")


def test_records_arrays_and_many_dimensions(file: h5py.File) -> None:
    records = np.zeros(100, [("a", "<i4"), ("b", "<f8"), ("c", "S3")])
    records["b"] = np.arange(100)
    dataset = create(file, records, chunks=(30,))
    np.testing.assert_array_equal(dataset[:], records)
    vectors = np.dtype(("<f4", (3,)))
    dataset = file.create_dataset(
        "v", (50, 10), vectors, chunks=(25, 10), **wirepress.hdf5.options("bx:m=0")
    )
    dataset[:] = np.arange(1500, dtype="f4").reshape(50, 10, 3)
    file.flush()
    np.testing.assert_array_equal(dataset[:].ravel(), np.arange(1500))
    info = wirepress.inspect(frame_of(dataset))
    assert (info.dtype, info.shape) == ("float32", (25, 10, 3))
    deep = FIELD.reshape(3, 7, 5, 6, 4, 10)
    dataset = create(file, deep, "zfp:accuracy=1e-3", chunks=(3, 7, 5, 6, 4, 10))
    np.testing.assert_allclose(dataset[:], deep, atol=1e-3)
    assert wirepress.inspect(frame_of(dataset)).shape == (105, 6, 4, 10)


@pytest.mark.parametrize("recipe", ["bx:m=6", "fre:m=6", "sz3:pw=1e-2", "auto:rel=1e-2"])
def test_lossy_within_its_bound(file: h5py.File, recipe: str) -> None:
    values = FIELD.astype("f4")
    dataset = create(file, values, recipe)
    assert dataset.id.get_storage_size() < values.nbytes / 1.5
    error = np.abs(dataset[:] - values)
    assert np.all(error <= np.abs(values) * 2**-6)
    assert error.max() > 0


def test_complex_numbers_are_pairs_to_a_float_codec(file: h5py.File) -> None:
    values = (FIELD + 1j * FIELD[::-1]).astype("c8")
    dataset = create(file, values, "bx:m=6")
    error = dataset[:] - values
    assert np.all(np.abs(error.imag) <= np.abs(values.imag) * 2**-6)
    assert np.all(np.abs(error.real) <= np.abs(values.real) * 2**-6)


def test_cd_values(file: h5py.File) -> None:
    text = (6, int.from_bytes(b"bx:m", "little"), int.from_bytes(b"=6", "little"))
    dataset = create(file, FIELD.astype("f4"), "bx:m=6")
    assert values_of(dataset) == (*text, 11 | 3 << 8, *CHUNKS)
    assert values_of(create(file, FIELD)) == (0, 12 | 3 << 8, *CHUNKS)


def test_behind_another_filter_it_sees_bytes(file: h5py.File) -> None:
    dataset = create(file, FIELD, "zstd:3", shuffle=True)
    np.testing.assert_array_equal(dataset[:], FIELD)
    assert wirepress.inspect(frame_of(dataset)).dtype == "uint8"
    with pytest.raises(ValueError, match=r"bx: takes .* behind another filter, .* put it first"):
        create(file, FIELD, "bx:m=6", shuffle=True)
    dataset = create(file, FIELD, "zstd:3", fletcher32=True)
    np.testing.assert_array_equal(dataset[:], FIELD)


def test_bad_settings(file: h5py.File) -> None:
    with pytest.raises(wirepress.ParameterError, match='"zpaq"'):
        wirepress.hdf5.options("zpaq")
    with pytest.raises(ValueError, match=r"bx: takes float16.*not int64"):
        create(file, FIELD.astype("i8"), "bx:m=6")
    for values in (200, 1, 2), (127, 0), (1 << 30,), (4, 0x71707A7A):
        with pytest.raises(ValueError, match=r"wirepress: (cd_values|recipe)"):
            create(file, FIELD, compression_opts=values)


def test_settings_of_the_environment(tmp_path: Path) -> None:
    code = """if True:
        import h5py, numpy, wirepress.hdf5
        with h5py.File("e.h5", "w") as f:
            f.create_dataset("d", data=numpy.ones((50, 50), "f4"), **wirepress.hdf5.options())
        """
    environment = os.environ | {"WIREPRESS_RECIPE": "bx:m=3"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    with h5py.File(tmp_path / "e.h5") as file:
        assert wirepress.inspect(frame_of(file["d"])).recipe == "bx:m=3"
        assert np.all(file["d"][:] == 1)


def _sum(path: str, results: object) -> None:
    with h5py.File(path) as file:
        results.put(float(file["d0"][:].sum()))


def test_after_a_fork(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        data = np.arange(2_000_000.0).reshape(1000, 2000)
        create(file, data, chunks=(1000, 2000))  # several blocks: by threads
        assert file["d0"][0, 1] == 1
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    child = fork.Process(target=_sum, args=(str(tmp_path / "t.h5"), results))
    child.start()
    assert results.get(timeout=20) == data.sum()
    child.join(20)
    assert child.exitcode == 0


# ---- damaged chunks


def test_damaged_chunks_are_errors(file: h5py.File) -> None:
    dataset = create(file, FIELD[:8, :16, :16], "shuffle+lz4", chunks=CHUNKS)
    frame = frame_of(dataset)
    rng = np.random.default_rng(1)
    damaged = [b"", b"x", frame[:20], frame[:-1], frame + b"x", bytes(len(frame))]
    damaged += [rng.bytes(n) for n in (10, 100, 5000)]
    for _ in range(300):
        changed = bytearray(frame)
        for at in rng.integers(0, len(frame), rng.integers(1, 4)):
            changed[at] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(changed))
    for bad in damaged:
        if bad in (b"", frame):  # HDF5 takes no empty chunk
            continue
        dataset.id.write_direct_chunk((0, 0, 0), bad)
        with pytest.raises(OSError, match="filter returned failure"):
            dataset[:]
        assert wirepress.hdf5.last_error()
    dataset.id.write_direct_chunk((0, 0, 0), wirepress.compress(np.zeros(8 * 16 * 16 - 1)))
    with pytest.raises(OSError, match="filter returned failure"):
        dataset[:]
    assert "holds 16376 bytes, a chunk has 16384" in wirepress.hdf5.last_error()
    dataset.id.write_direct_chunk((0, 0, 0), frame)
    np.testing.assert_array_equal(dataset[:], FIELD[:8, :16, :16])


class Filter:
    """The filter as HDF5 calls it, without HDF5."""

    def __init__(self) -> None:
        class Class(ctypes.Structure):
            _fields_ = (("head", ctypes.c_int * 4), ("rest", ctypes.c_void_p * 4))

        info = Class.from_address(wirepress.hdf5.filter._module.H5PLget_plugin_info())
        arguments = [ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        arguments += [ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_void_p)]
        self.call = ctypes.CFUNCTYPE(ctypes.c_size_t, *arguments)(info.rest[3])
        self.libc = ctypes.CDLL(None)
        self.libc.malloc.restype = ctypes.c_void_p
        self.libc.malloc.argtypes = [ctypes.c_size_t]
        self.libc.free.argtypes = [ctypes.c_void_p]

    def __call__(self, data: bytes, values: tuple[int, ...] = (), decode: bool = True) -> bytes:
        """What the filter makes of data; b"" where it fails."""
        buffer = ctypes.c_void_p(self.libc.malloc(len(data) or 1))
        ctypes.memmove(buffer, data, len(data))
        size = ctypes.c_size_t(len(data))
        words = (ctypes.c_uint * (len(values) or 1))(*values)
        n = self.call(
            0x100 if decode else 0, len(values), words, len(data),
            ctypes.byref(size), ctypes.byref(buffer),
        )  # fmt: skip
        assert n <= size.value
        result = ctypes.string_at(buffer, n) if n else b""
        self.libc.free(buffer)
        return result


def test_decodes_without_cd_values() -> None:
    apply = Filter()
    data = FIELD.astype("f4").tobytes()
    for recipe in "bx:m=0", "shuffle+zstd:1", "sz3:abs=1e-9":
        assert apply(wirepress.compress(FIELD.astype("f4"), recipe))[:100] == data[:100]
    assert apply(apply(data, decode=False)) == data
    assert apply(data) == b""


def test_any_cd_values() -> None:
    apply = Filter()
    rng = np.random.default_rng(1)
    frame = wirepress.compress(FIELD)
    for _ in range(2000):
        values = rng.integers(0, rng.choice([4, 20, 300, 2**32]), rng.integers(0, 9))
        for decode, data in (True, frame), (False, FIELD.tobytes()[:1000]):
            apply(data, tuple(int(value) for value in values), decode)


# ---- Debian's tools, another HDF5

TOOLS = pytest.mark.skipif(
    not (shutil.which("h5dump") and shutil.which("h5repack")), reason="hdf5-tools not installed"
)


def tool(*command: object, **variables: str) -> str:
    environment = os.environ | {"HDF5_PLUGIN_PATH": wirepress.hdf5.plugin_path()} | variables
    done = subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@TOOLS
def test_h5dump_reads_what_h5py_wrote(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create(file, np.arange(1000, dtype="i4"), "lz4", chunks=(300,))
    out = tool("h5dump", "-d", "/d0", "-y", "-w", "0", tmp_path / "a.h5")
    numbers = [int(word) for word in out.split("DATA {")[1].split("}")[0].replace(",", " ").split()]
    assert numbers == list(range(1000))
    assert f"FILTER_ID {wirepress.hdf5.FILTER}" in tool("h5dump", "-p", "-H", tmp_path / "a.h5")


@TOOLS
def test_h5py_reads_what_h5repack_wrote(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("f", data=FIELD.astype("f4"), chunks=CHUNKS, compression="gzip")
        file.create_dataset("n", data=np.arange(5000), chunks=(1000,))
    lossy = (wirepress.hdf5.FILTER, 0, 3, *wirepress.hdf5.cd_values("bx:m=6"))
    any_recipe = (wirepress.hdf5.FILTER, 0, 0)
    tool(
        "h5repack", "-f", f"f:UD={','.join(map(str, lossy))}",
        "-f", f"n:UD={','.join(map(str, any_recipe))}", tmp_path / "a.h5", tmp_path / "b.h5",
    )  # fmt: skip
    with h5py.File(tmp_path / "b.h5") as file:
        info = wirepress.inspect(frame_of(file["f"]))
        assert (info.recipe, info.dtype, info.shape) == ("bx:m=6", "float32", CHUNKS)
        assert np.all(np.abs(file["f"][:] - FIELD) <= np.abs(FIELD) * 2**-6)
        np.testing.assert_array_equal(file["n"][:], np.arange(5000))
        assert wirepress.inspect(frame_of(file["n"])).dtype == "int64"
    # Other chunks: what set_local filled in before is filled in anew.
    tool("h5repack", "-l", "f:CHUNK=21x30x40", tmp_path / "b.h5", tmp_path / "c.h5")
    tool("h5repack", "-f", "NONE", tmp_path / "c.h5", tmp_path / "d.h5")
    with h5py.File(tmp_path / "c.h5") as c, h5py.File(tmp_path / "d.h5") as d:
        assert wirepress.inspect(frame_of(c["f"])).shape == (21, 30, 40)
        np.testing.assert_array_equal(c["f"][:], d["f"][:])
        assert np.all(np.abs(d["f"][:] - FIELD) <= np.abs(FIELD) * 2**-5)


@TOOLS
def test_the_command_tells_what_tools_need(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("f", data=FIELD, chunks=CHUNKS)
    command = [sys.executable, "-m", "wirepress.hdf5", "zstd:3"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    script = said.replace("IN.h5", "a.h5").replace("OUT.h5", "b.h5")
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True)
    with h5py.File(tmp_path / "b.h5") as file:
        assert wirepress.inspect(frame_of(file["f"])).recipe == "zstd:3"
        np.testing.assert_array_equal(file["f"][:], FIELD)
    failed = subprocess.run([*command[:3], "zpaq"], capture_output=True, text=True)
    assert failed.returncode == 2 and '"zpaq"' in failed.stderr


def test_links_no_hdf5() -> None:
    library = Path(wirepress.hdf5.plugin_path()) / "libwirepress_hdf5.so"
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout
    assert "NEEDED" in needed and "hdf5" not in needed.split("NEEDED", 1)[1].split("SONAME")[0]
    symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    ours = [line.split()[-1] for line in symbols.stdout.splitlines() if " T " in line]
    assert sorted(ours) == ["H5PLget_plugin_info", "H5PLget_plugin_type", "wirepress_hdf5_error"]
    assert not [line for line in symbols.stdout.splitlines() if " U H5" in line]


# ---- chunks coded by threads


@pytest.mark.parametrize("recipe", ["", "bx:m=6", "zfp:accuracy=1e-3"])
def test_written_by_threads_is_what_the_filter_writes(file: h5py.File, recipe: str) -> None:
    data = FIELD.astype("f4")
    theirs = create(file, data, recipe)
    ours = create(file, np.zeros_like(data), recipe)
    wirepress.hdf5.write(ours, data, threads=3)
    np.testing.assert_array_equal(ours[:], theirs[:])
    for start in (0, 0, 0), (16, 16, 32):
        chunks = [d.id.read_direct_chunk(start)[1] for d in (ours, theirs)]
        assert chunks[0] == chunks[1] or start != (0, 0, 0)  # the border's filling may differ
    np.testing.assert_array_equal(wirepress.hdf5.read(theirs, threads=3), theirs[:])


@pytest.mark.parametrize(
    "region",
    [np.s_[:], np.s_[3:20, 5, ...], np.s_[-1], np.s_[..., 7:9], np.s_[2:2], (0, 0, 0),
     np.s_[8:16, 16:, -8:]],
)  # fmt: skip
def test_read_regions(file: h5py.File, region: object) -> None:
    dataset = create(file, FIELD)
    found = wirepress.hdf5.read(dataset, region)
    np.testing.assert_array_equal(found, FIELD[region])
    assert found.shape == FIELD[region].shape
    out = np.empty_like(found)
    assert wirepress.hdf5.read(dataset, region, out) is out
    np.testing.assert_array_equal(out, FIELD[region])


def test_write_regions(file: h5py.File) -> None:
    dataset = create(file, FIELD, chunks=(1, 16, 40))
    wirepress.hdf5.write(dataset, FIELD[5] * 2, 5)
    wirepress.hdf5.write(dataset, FIELD[7:9, 16:], np.s_[8:10, 16:])
    expected = FIELD.copy()
    expected[5] *= 2
    expected[8:10, 16:] = FIELD[7:9, 16:]
    np.testing.assert_array_equal(dataset[:], expected)


EDGES = {
    "wide": np.array([-300, -1, 0, 1, 127, 128, 255, 256, 70000, -70000]),
    "unsigned": np.full(10, 2**64 - 1, "u8"),
    "float": np.array([np.nan, np.inf, -np.inf, 1.7, -1.7, 300, -300, 1e300, 0, 5.5]),
    "swapped": np.arange(10, dtype=">i4") * 1000,
    "strided": np.arange(20, dtype="i2")[::-2],
    "bool": np.arange(10) % 2 == 0,
    "complex": np.arange(10) * 1j,
    "bytes": np.array([b"1"] * 10),
    "dates": np.arange(10).astype("M8[s]"),
    "records": np.zeros(10, [("b", "f4"), ("a", "i4")]),
    "list": list(range(10)),
}


def outcome(call: Callable[[], np.ndarray]) -> str:
    """What a call returns, or that it refuses."""
    try:
        return repr(call().tolist())
    except (OSError, TypeError, ValueError, wirepress.ParameterError):
        return "refused"


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(
    "kind", ["u1", "i2", "i4", ">i4", "f2", "f4", ">f4", "f8", "c8", "?", "S3", "(2,)i2", "a,b"]
)
def test_data_of_other_types_are_converted_as_h5py_does(
    file: h5py.File, kind: str, name: str
) -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f4")] if kind == "a,b" else kind)
    data: Any = EDGES[name]
    if dtype.subdtype:
        data = np.stack([np.asarray(data)] * 2, -1)
    plain = file.create_dataset("plain", (10,), dtype, chunks=(4,))
    ours = file.create_dataset("ours", (10,), dtype, chunks=(4,), **wirepress.hdf5.options())

    def by_h5py() -> np.ndarray:
        plain[...] = data
        return plain[...]

    def by_us() -> np.ndarray:
        wirepress.hdf5.write(ours, data)
        return wirepress.hdf5.read(ours)

    found = outcome(by_us)
    # h5py matches records by their names, and makes numbers all fields of a record.
    records = kind == "a,b" and name != "list"
    assert found == ("refused" if records else outcome(by_h5py))
    assert outcome(lambda: ours[...]) == (found if found != "refused" else outcome(lambda: ours[:]))


def test_borders_that_hdf5_leaves_unfiltered(tmp_path: Path) -> None:
    """A file of another program: HDF5 would take a frame there for elements."""
    with h5py.File(tmp_path / "t.h5", "w", libver="latest") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4,))
        options = wirepress.hdf5.options()
        plist.set_filter(options["compression"], 0, options["compression_opts"])
        hdf5 = ctypes.CDLL(h5py.h5p.__file__)
        assert hdf5.H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(2)) == 0
        space = h5py.h5s.create_simple((10,), (h5py.h5s.UNLIMITED,))
        made = h5py.h5d.create(file.id, b"d", h5py.h5t.NATIVE_INT32, space, plist)
        dataset = h5py.Dataset(made)
        dataset[...] = np.arange(10)
        for call in (
            lambda: wirepress.hdf5.write(dataset, np.arange(10)),
            lambda: wirepress.hdf5.read(dataset),
        ):
            with pytest.raises(wirepress.ParameterError, match="are not filtered"):
                call()
        np.testing.assert_array_equal(dataset[:], np.arange(10))


def test_masks_and_what_lies_outside_of_chunks_is_refused(file: h5py.File) -> None:
    dataset = create(file, FIELD)
    with pytest.raises(wirepress.ParameterError, match="lose its mask"):
        wirepress.hdf5.write(dataset, np.ma.array(FIELD, mask=FIELD > 0))
    for n, dtype in enumerate(
        (h5py.string_dtype(), h5py.vlen_dtype("i4"), h5py.ref_dtype, h5py.regionref_dtype)
    ):
        other = file.create_dataset(f"o{n}", (4,), dtype, chunks=(2,), **wirepress.hdf5.options())
        with pytest.raises(wirepress.ParameterError, match="outside of its chunks"):
            wirepress.hdf5.read(other)
        with pytest.raises(wirepress.ParameterError, match="outside of its chunks"):
            wirepress.hdf5.write(other, other[...])
    for what in (file, FIELD, None, dataset.astype("i2")):
        with pytest.raises(TypeError, match=r"h5py\.Dataset is needed"):
            wirepress.hdf5.read(what)


@pytest.mark.parametrize(
    "region",
    [1.0, 1.7, "1", None, (None, 1), (..., ...), [1, 2], np.array([1, 2]), FIELD > 0, "a", b"1"],
    ids=str,
)
def test_regions_that_are_neither_integers_nor_slices(file: h5py.File, region: Any) -> None:
    dataset = create(file, FIELD)
    with pytest.raises(wirepress.ParameterError, match=r"use dataset\[...\]|indices for") as caught:
        wirepress.hdf5.read(dataset, region)
    assert "\n" not in str(caught.value)
    for out in ([], memoryview(FIELD), np.ma.array(FIELD), np.broadcast_to(FIELD, FIELD.shape)):
        with pytest.raises(wirepress.ParameterError, match="out"):
            wirepress.hdf5.read(dataset, out=out)


def test_chunks_that_were_never_written_and_left_out_filters(file: h5py.File) -> None:
    dataset = file.create_dataset(
        "f", (100,), "f4", chunks=(10,), fillvalue=7, **wirepress.hdf5.options()
    )
    dataset[35] = 1  # in HDF5's cache of chunks
    dataset.id.write_direct_chunk((50,), np.arange(10, dtype="f4").tobytes(), filter_mask=1)
    np.testing.assert_array_equal(wirepress.hdf5.read(dataset), dataset[:])
    assert set(wirepress.hdf5.read(dataset)[:30]) == {7}


def test_direct_bad_input(file: h5py.File) -> None:
    dataset = create(file, FIELD)
    plain = file.create_dataset("plain", data=FIELD)
    gzip = file.create_dataset("gzip", data=FIELD, compression="gzip", shuffle=True)
    for other, names in (plain, "none"), (gzip, "shuffle, deflate"):
        with pytest.raises(wirepress.ParameterError, match=f"its filters are {names}"):
            wirepress.hdf5.read(other)
    with pytest.raises(wirepress.ParameterError, match=r"\(21, 30\), the region \(21, 30, 40\)"):
        wirepress.hdf5.write(dataset, FIELD[..., 0])
    with pytest.raises(wirepress.ParameterError, match="3 to 8 cuts a chunk in dimension 0"):
        wirepress.hdf5.write(dataset, FIELD[3:8], np.s_[3:8])
    with pytest.raises(wirepress.ParameterError, match="a step of 2"):
        wirepress.hdf5.read(dataset, np.s_[::2])
    with pytest.raises(wirepress.ParameterError, match="index 21 of 21"):
        wirepress.hdf5.read(dataset, 21)
    with pytest.raises(wirepress.ParameterError, match="out is"):
        wirepress.hdf5.read(dataset, out=np.empty((21, 30, 40), "f4"))
    np.testing.assert_array_equal(dataset[:], FIELD)
    frame = frame_of(dataset)
    dataset.id.write_direct_chunk((8, 0, 0), frame[:-9] + b"x" + frame[-8:])
    with pytest.raises(wirepress.FrameError):
        wirepress.hdf5.read(dataset)
    dataset.id.write_direct_chunk((8, 0, 0), wirepress.compress(np.zeros(9)))
    with pytest.raises(wirepress.CorruptError, match=r"chunk at \(8, 0, 0\) holds 72 bytes"):
        wirepress.hdf5.read(dataset)


TWO_LIBRARIES = """
import ctypes, sys
import h5py, numpy as np, wirepress, wirepress.hdf5
other = ctypes.CDLL(sys.argv[1])
Id, Sizes = ctypes.c_int64, ctypes.c_uint64 * 2
def call(name, *arguments):
    function = other[name]
    function.restype = Id
    result = function(*[Id(a) if isinstance(a, int) else a for a in arguments])
    assert result >= 0, name
    return result
def known(name):
    return Id.in_dll(other, name).value
call("H5open")
field = np.random.default_rng(1).normal(size=(100, 200)).astype("f4")
pointer = field.ctypes.data_as(ctypes.c_void_p)
values = (ctypes.c_uint * 3)(*wirepress.hdf5.cd_values("bx:m=6"))
for _ in range(2):  # both libraries, in turns
    file = call("H5Fcreate", b"a.h5", ctypes.c_uint(2), 0, 0)
    plist = call("H5Pcreate", known("H5P_CLS_DATASET_CREATE_ID_g"))
    call("H5Pset_chunk", plist, ctypes.c_int(2), Sizes(50, 100))
    call("H5Pset_filter", plist, ctypes.c_int(wirepress.hdf5.FILTER), ctypes.c_uint(0),
         ctypes.c_size_t(3), values)
    space = call("H5Screate_simple", ctypes.c_int(2), Sizes(100, 200), None)
    kind = known("H5T_NATIVE_FLOAT_g")
    data = call("H5Dcreate2", file, b"d", kind, space, 0, plist, 0)
    call("H5Dwrite", data, kind, 0, 0, 0, pointer)
    call("H5Dclose", data), call("H5Fclose", file)
    with h5py.File("a.h5") as ours, h5py.File("b.h5", "w") as mine:
        frame = ours["d"].id.read_direct_chunk((0, 0))[1]
        info = wirepress.inspect(frame)
        assert (info.dtype, info.shape, info.recipe) == ("float32", (50, 100), "bx:m=6"), info
        assert np.all(np.abs(ours["d"][:] - field) <= np.abs(field) / 128)
        mine.create_dataset("d", data=field, chunks=(50, 100), **wirepress.hdf5.options("planes"))
    file = call("H5Fopen", b"b.h5", ctypes.c_uint(0), 0)
    data = call("H5Dopen2", file, b"d", 0)
    back = np.zeros_like(field)
    call("H5Dread", data, kind, 0, 0, 0, back.ctypes.data_as(ctypes.c_void_p))
    assert np.array_equal(back, field)
    call("H5Dclose", data), call("H5Fclose", file)
"""


def test_two_hdf5_libraries_in_one_process(tmp_path: Path) -> None:
    name = ctypes.util.find_library("hdf5_serial")
    if name is None:
        pytest.skip("Debian's HDF5 library is not installed (hdf5-tools)")
    environment = os.environ | {"HDF5_PLUGIN_PATH": wirepress.hdf5.plugin_path()}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", TWO_LIBRARIES, name],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# ---- netCDF (docs/guides/hdf5.md) -----------------------------------------------------------

WITH_PATH = """
import os, wirepress.hdf5
os.environ["HDF5_PLUGIN_PATH"] = wirepress.hdf5.plugin_path()
import netCDF4
print(netCDF4.Dataset("field.nc")["p"][:].sum())
"""


@pytest.fixture
def netcdf(tmp_path: Path) -> np.ndarray:
    """field.nc in tmp_path, by h5netcdf; returns what p holds."""
    h5netcdf = pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    values = np.linspace(1, 2, 1000, dtype=np.float32)
    with h5netcdf.File(tmp_path / "field.nc", "w") as file:
        file.dimensions = {"x": 1000}
        settings = wirepress.hdf5.options("bx:m=6")
        file.create_variable("p", ("x",), "f4", chunks=(500,), **settings)[:] = values
    with h5netcdf.File(tmp_path / "field.nc") as file:
        found = file["p"][:]
    assert 0 < np.abs(found / values - 1).max() <= 2**-7
    return found


def test_netcdf4_reads_with_the_plugin_path(netcdf: np.ndarray, tmp_path: Path) -> None:
    if importlib.util.find_spec("netCDF4") is None:
        pytest.skip("netCDF4 is not installed")
    command = [sys.executable, "-W", "ignore", "-c", WITH_PATH]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert float(done.stdout) == pytest.approx(float(netcdf.sum()), rel=1e-6), done.stderr


def test_netcdf_tools(netcdf: np.ndarray, tmp_path: Path) -> None:
    if shutil.which("nccopy") is None:
        pytest.skip("netcdf-bin is not installed")
    path = {**os.environ, "HDF5_PLUGIN_PATH": wirepress.hdf5.plugin_path()}
    values = ",".join(str(value) for value in wirepress.hdf5.cd_values("bx:m=6"))
    for arguments in (
        ("nccopy", "-F", "none", "field.nc", "plain.nc"),
        ("nccopy", "-F", f"p,{wirepress.hdf5.FILTER},{values}", "plain.nc", "again.nc"),
    ):
        subprocess.run(arguments, cwd=tmp_path, env=path, check=True)
    for name, filtered in ("plain.nc", False), ("again.nc", True):
        with h5py.File(tmp_path / name) as file:
            n_filters = file["p"].id.get_create_plist().get_nfilters()
            assert n_filters == int(filtered)
            np.testing.assert_array_equal(file["p"][:], netcdf)
