# SPDX-License-Identifier: Apache-2.0
"""The operator in ADIOS2 itself, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wirepress

ADIOS2 = Path(__file__).resolve().parents[2] / "build" / "third_party" / "adios2"
if not (ADIOS2 / "adios2").is_dir():
    pytest.skip("ADIOS2 is not in build/third_party (scripts/setup)", allow_module_level=True)
try:
    import wirepress.adios2
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

HEAD = """
import sys
sys.modules["torch"] = None  # which adios2 imports where it is installed: seconds
import adios2, numpy as np, wirepress, wirepress.adios2
field = np.cumsum(np.random.default_rng(1).normal(size=(20, 30, 40)), axis=2)
def write(path, data, recipe, engine="BP5", steps=1):
    io = adios2.Adios().declare_io("w")
    io.set_engine(engine)
    with adios2.Stream(io, path, "w") as stream:
        for step in range(steps):
            stream.begin_step()
            shape, start = list(data.shape), [0] * data.ndim
            if step == 0:
                variable = io.define_variable("p", data, shape, start, shape, True)
                variable.add_operation_string("plugin", wirepress.adios2.parameters(recipe))
            stream.write(variable, data + step)
            stream.end_step()
def read(path, **selection):
    with adios2.Stream(path, "r") as stream:
        return [stream.read("p", **selection) for _ in stream.steps()]
"""


def run(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [*sys.path, str(ADIOS2)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", HEAD + code, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def said(code: str, folder: Path, *arguments: str) -> str:
    done = run(code, folder, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


@pytest.mark.parametrize("engine", ["BP4", "BP5"])
def test_steps_come_back(tmp_path: Path, engine: str) -> None:
    code = """
data = field.astype("f4")
for recipe in "shuffle+zstd:1", "planes", "bx:m=6":
    write(recipe + ".bp", data, recipe, sys.argv[1], steps=3)
    for step, back in enumerate(read(recipe + ".bp")):
        assert back.dtype == np.float32 and back.shape == data.shape
        error = np.abs(back - (data + step))
        assert np.all(error <= np.abs(data + step) * (2**-7 if "bx" in recipe else 0))
    part = read(recipe + ".bp", start=[3, 4, 5], count=[2, 1, 30])[0]
    assert np.all(np.abs(part - data[3:5, 4:5, 5:35]) <= np.abs(data[3:5, 4:5, 5:35]) / 64)
"""
    said(code, tmp_path, engine)
    raw = 3 * 20 * 30 * 40 * 4
    assert size_of(tmp_path / "bx:m=6.bp") < raw / 2.5
    assert size_of(tmp_path / "planes.bp") < raw


def test_every_type_comes_back(tmp_path: Path) -> None:
    code = """
for name in "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split():
    data = (field * 10).astype("i8").astype(name)
    write(name + ".bp", data, "shuffle+lz4")
    np.testing.assert_array_equal(read(name + ".bp")[0], data)
deep = field.reshape(2, 10, 5, 6, 4, 10)
write("deep.bp", deep, "zfp:accuracy=1e-3")
np.testing.assert_allclose(read("deep.bp")[0], deep, atol=1e-3)
"""
    said(code, tmp_path)


def test_blocks_of_several_writers(tmp_path: Path) -> None:
    code = """
data = field.astype("f4")
io = adios2.Adios().declare_io("w")
with adios2.Stream(io, "b.bp", "w") as stream:
    stream.begin_step()
    variable = io.define_variable("p", data, [20, 30, 40], [0, 0, 0], [10, 30, 40], False)
    variable.add_operation_string("plugin", wirepress.adios2.parameters("bx:m=0"))
    for z in 0, 10:
        variable.set_selection([[z, 0, 0], [10, 30, 40]])
        stream.write(variable, np.ascontiguousarray(data[z : z + 10]))
    stream.end_step()
np.testing.assert_array_equal(read("b.bp")[0], data)
np.testing.assert_array_equal(read("b.bp", start=[8, 0, 0], count=[4, 30, 40])[0], data[8:12])
"""
    said(code, tmp_path)


def test_a_type_that_the_recipe_does_not_take_goes_raw(tmp_path: Path) -> None:
    code = """
data = (field * 10).astype("i4")
write("t.bp", data, "bx:m=6")
np.testing.assert_array_equal(read("t.bp")[0], data)
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "does not support data type int32_t" in done.stdout + done.stderr


def test_bad_input() -> None:
    with pytest.raises(wirepress.ParameterError, match='"zpaq"'):
        wirepress.adios2.parameters("zpaq")
    with pytest.raises(wirepress.ParameterError, match='unknown option "level"'):
        wirepress.adios2.parameters("zstd", level=3)


def test_a_bad_recipe_past_our_check_does_not_end_the_program(tmp_path: Path) -> None:
    code = """
wirepress.adios2.parameters = lambda recipe: {
    "PluginName": "wirepress", "PluginLibrary": "wirepress_adios2", "recipe": recipe}
write("t.bp", field, "zpaq")
np.testing.assert_array_equal(read("t.bp")[0], field)
"""
    said(code, tmp_path)


def test_whole_frames_of_another_size_are_not_noticed(tmp_path: Path) -> None:
    """What the guide says of the interface, with a smaller frame: a larger one ends the process.
    Fails when ADIOS2 looks at the size, or says it: then the operator and the guide can do better.
    """
    code = """
import pathlib
data = np.arange(1000, dtype="f4")
write("t.bp", data, "store", sys.argv[1])
path = pathlib.Path("t.bp/data.0")
good, frame = path.read_bytes(), wirepress.compress(data, recipe="store")
at = good.index(frame[:8])
noise = np.random.default_rng(1).integers(0, 255, 4000, dtype=np.uint8)
small = wirepress.Compressor("store", block_size=1024)
size = next(n for n in range(3000, 4000) if len(small.compress(noise[:n])) == len(frame))
path.write_bytes(good[:at] + small.compress(noise[:size]) + good[at + len(frame) :])
back = read("t.bp")[0]
assert back.shape == data.shape and back.tobytes()[:size] == noise[:size].tobytes()
"""
    for engine in "BP4", "BP5":
        folder = tmp_path / engine
        folder.mkdir()
        said(code, folder, engine)


def test_damaged_blocks_are_errors(tmp_path: Path) -> None:
    code = """
import pathlib
write("t.bp", field[:4, :8, :8], "shuffle+zstd:1")
path = pathlib.Path("t.bp/data.0")
good = path.read_bytes()
at = good.index(b"WPR")
rng = np.random.default_rng(1)
for i in [at, at + 1, *rng.integers(at, len(good) - 8, 40)]:
    path.write_bytes(good[:i] + bytes([good[i] ^ 16]) + good[i + 1 :])
    try:
        back = read("t.bp")[0]
    except Exception as error:
        assert "wirepress" in str(error), error
    else:
        raise AssertionError(f"byte {i} of {at}..{len(good)}")
"""
    said(code, tmp_path)
