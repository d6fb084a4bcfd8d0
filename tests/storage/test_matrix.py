# SPDX-License-Identifier: Apache-2.0
"""Every codec, for every type, through HDF5, Zarr format 3 and ADIOS2: right, or refused.

Right is bit for bit where `lossless` says so, else what `decompress(compress(x))` gives. HDF5 and
Zarr refuse a type that the recipe does not take; ADIOS2 knows no refusal: it stores such data raw.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import wirepress

pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
from python.tests.test_matrix import in_memory, recipes, values

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
ADIOS2 = ROOT / "build" / "third_party" / "adios2"
SHAPES = (3000,), (3, 20, 50)
TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
PAIRS = {"complex64": "float32", "complex128": "float64"}  # as chunks see complex numbers


def takes(recipe: str, dtype: str) -> bool:
    try:
        wirepress.Compressor(recipe).lossless(dtype)
    except wirepress.ParameterError:
        return False
    return True


def check(recipe: str, seen: str, x: np.ndarray, back: np.ndarray) -> None:
    """`seen`: the type by which the door describes the elements."""
    assert (back.dtype, back.shape) == (x.dtype, x.shape)
    if wirepress.Compressor(recipe).lossless(seen):
        assert in_memory(back) == in_memory(x)
    elif not recipe.startswith("auto"):
        pairs = x.view(seen).reshape(*x.shape, 2) if x.dtype.kind == "c" else x
        alike = wirepress.decompress(wirepress.compress(pairs, recipe))
        assert in_memory(back) == in_memory(alike)


def hdf5(x: np.ndarray, recipe: str, folder: Path) -> list[np.ndarray]:
    import h5py

    import wirepress.hdf5

    with h5py.File(folder / "t.h5", "w") as file:
        filtered = {"chunks": x.shape} | wirepress.hdf5.options(recipe)
        file.create_dataset("d", data=x, **filtered)
        direct = file.create_dataset("e", x.shape, x.dtype, **filtered)
        wirepress.hdf5.write(direct, x, threads=2)
    with h5py.File(folder / "t.h5") as file:  # anew: the chunk cache holds what was written
        return [file["d"][...], file["e"][...], wirepress.hdf5.read(file["d"], threads=2)]


def zarr(x: np.ndarray, recipe: str, folder: Path) -> list[np.ndarray]:
    import zarr

    from wirepress.zarr import WirepressCodec

    zarr.create_array(
        folder / "z", data=x, chunks=x.shape, serializer=WirepressCodec(recipe), compressors=None,
        overwrite=True,
    )  # fmt: skip
    return [zarr.open_array(folder / "z", mode="r")[...]]


Door = Callable[[np.ndarray, str, Path], list[np.ndarray]]


def matrix(door: Door, recipe: str, folder: Path, described: dict[str, str]) -> None:
    for dtype in [*TYPES, *PAIRS]:
        seen = described.get(dtype, dtype)
        for shape in SHAPES:
            x = values(dtype, 3000).reshape(shape)
            if not takes(recipe, seen):
                with pytest.raises(ValueError, match="takes") as refused:
                    door(x, recipe, folder)
                assert len(str(refused.value)) < 400
                continue
            for back in door(x, recipe, folder):
                check(recipe, seen, x, back)


@pytest.mark.parametrize("recipe", recipes())
def test_hdf5(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    matrix(hdf5, recipe, tmp_path, PAIRS | {"bool": "int8"})


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("recipe", recipes())
def test_zarr(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    matrix(zarr, recipe, tmp_path, PAIRS)


IN_ADIOS2 = """
import sys
sys.modules["torch"] = None  # which adios2 imports where it is installed: seconds
import adios2, numpy as np, wirepress.adios2
arrays = np.load("in.npz")
recipes = sys.argv[1:]
for i, recipe in enumerate(recipes):
    io = adios2.Adios().declare_io("w")
    with adios2.Stream(io, f"{i}.bp", "w") as stream:
        stream.begin_step()
        for name, x in arrays.items():
            shape = list(x.shape)
            variable = io.define_variable(name, x, shape, [0] * x.ndim, shape, True)
            variable.add_operation_string("plugin", wirepress.adios2.parameters(recipe))
            stream.write(variable, x)
        stream.end_step()
    with adios2.Stream(f"{i}.bp", "r") as stream:
        for _ in stream.steps():
            np.savez(f"{i}.npz", **{name: stream.read(name) for name in arrays})
"""


def test_adios2(tmp_path: Path) -> None:
    if not (ADIOS2 / "adios2").is_dir():
        pytest.skip("ADIOS2 is not in build/third_party (scripts/setup)")
    # ADIOS2 has no bool and no float16, and its Python reads no complex numbers.
    types = [dtype for dtype in TYPES if dtype not in ("bool", "float16")]
    arrays = {
        f"{dtype}_{len(shape)}": values(dtype, 3000).reshape(shape)
        for dtype in types
        for shape in SHAPES
    }
    np.savez(tmp_path / "in.npz", **arrays)
    paths = os.pathsep.join([*filter(None, sys.path), str(ADIOS2)])
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", IN_ADIOS2, *recipes()],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for i, recipe in enumerate(recipes()):
        with np.load(tmp_path / f"{i}.npz") as back:
            for name, x in arrays.items():
                dtype = name.split("_")[0]
                if takes(recipe, dtype):
                    check(recipe, dtype, x, back[name])
                else:
                    assert in_memory(back[name]) == in_memory(x)
