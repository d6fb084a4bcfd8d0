# SPDX-License-Identifier: Apache-2.0
"""Files of tensors on the command line: each tensor as its type, all else as it is."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import wirepress
import wirepress.arrays
from wirepress import wps
from wirepress.commands import cli, tensors
from wirepress.commands.tensors import storages

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

Main = Callable[..., tuple[int, str]]

RNG = np.random.default_rng(5)
WEIGHTS = RNG.normal(size=(40, 70)).astype(np.float32)


def back(main: Main, name: str, *, verify: bool = True) -> bytes:
    """What a frame of this file expands to; the file is away."""
    os.replace(name, name + ".before")
    status, error = main("decompress", "-q", name + ".wpr")
    assert status == 0, error
    assert not verify or main("inspect", "--verify", name + ".wpr")[0] == 0
    content = Path(name).read_bytes()
    os.replace(name + ".before", name)
    os.unlink(name + ".wpr")
    return content


def one_sentence(error: str) -> str:
    assert error.startswith("wirepress: ") and error.count("\n") == 1, error
    return error


# ---- .npy -----------------------------------------------------------------------------------

DTYPES = "? i1 u1 <i2 <u4 <i8 <f2 <f4 <f8 <c8 <c16 >f4 >f8 >i2 >u8 >c8 <M8[ns] >m8[s] S5 <U3 V7"
DTYPES += " <f16 f4,i2 O"
SHAPES = [(), (0,), (0, 3), (1,), (700,), (30, 21), (5, 6, 7), (2, 3, 2, 3, 2)]


def array_of(dtype: str, shape: tuple[int, ...], order: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.hasobject:
        array = np.full(shape, None, dtype=object)
    elif kind.kind in "fc":
        array = RNG.normal(size=shape).astype(kind)
    else:
        raw = RNG.integers(0, 2, int(np.prod(shape)) * kind.itemsize, np.uint8)
        array = np.frombuffer(raw.tobytes(), kind).reshape(shape)
    return np.asarray(array, order=order)


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_every_npy_file_comes_back(dtype: str, main: Main) -> None:
    for shape in SHAPES:
        for order in "CF" if len(shape) > 1 else "C":
            array = array_of(dtype, shape, order)
            np.save("x.npy", array, allow_pickle=True)
            whole = Path("x.npy").read_bytes()
            status, error = main("compress", "-q", "x.npy")
            assert (status, error) == (0, "")
            assert back(main, "x.npy") == whole, (shape, order)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_npy(version: tuple[int, int], main: Main) -> None:
    for array in WEIGHTS, np.asfortranarray(WEIGHTS), WEIGHTS.astype(">f4"):
        with open("x.npy", "wb") as file:
            np.lib.format.write_array(file, array, version=version)
        whole = Path("x.npy").read_bytes()
        assert main("compress", "x.npy")[0] == 0
        assert back(main, "x.npy") == whole


@pytest.mark.parametrize(
    "recipe", ["bx:m=6", "fre:m=6", "sz3:pw=1e-2", "auto:rel=1e-2,link=1Gbps", "zfp:rate=16"]
)
def test_lossy_npy_in_either_order(recipe: str, main: Main) -> None:
    for order in "CF":
        values = np.asarray(WEIGHTS, order=order)
        np.save("x.npy", values)
        head = Path("x.npy").read_bytes()[:128]
        assert main("compress", "-r", recipe, "x.npy")[0] == 0
        content = back(main, "x.npy")
        assert content[:128] == head
        found = np.load(io.BytesIO(content))
        assert found.flags.f_contiguous == (order == "F")
        bound = np.abs(values) * 2.0**-6 if "zfp" not in recipe else 0.1
        assert np.all(np.abs(found - values) <= bound)
        assert np.any(found != values)


@pytest.mark.parametrize("dtype", ["<c8", "<c16"])
def test_complex_npy_is_pairs_to_a_float_codec(dtype: str, main: Main) -> None:
    values = (WEIGHTS + 1j * WEIGHTS[::-1]).astype(dtype)
    np.save("x.npy", values)
    assert main("compress", "-r", "bx:m=6", "x.npy")[0] == 0
    found = np.load(io.BytesIO(back(main, "x.npy")))
    assert np.all(np.abs(found.imag - values.imag) <= np.abs(values.imag) * 2.0**-6)


@pytest.mark.parametrize(
    "dtype", ["?", "<i4", "<u8", ">f4", ">f8", ">c8", "<M8[ns]", "S5", "f4,i2", "O", "<f16"]
)
def test_lossy_npy_of_what_is_no_float_is_refused(dtype: str, main: Main, tmp_path: Path) -> None:
    np.save("x.npy", array_of(dtype, (40, 30), "C"), allow_pickle=True)
    for flags in (), ("--format", "npy"):
        status, error = main("compress", "-r", "bx:m=6", *flags, "x.npy")
        assert status == 1
        assert "x.npy" in one_sentence(error)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_a_header_is_never_taken_for_numbers(main: Main, tmp_path: Path) -> None:
    np.save("x.npy", WEIGHTS)
    (tmp_path / "y").write_bytes((tmp_path / "x.npy").read_bytes())
    for flags in (
        ("x.npy", "--dtype", "float32"),
        ("x.npy", "--dtype", "float32", "--format", "npy"),
        ("x.npy", "--dtype", "float32", "--format", "bytes"),
        ("x.npy", "--no-npy"),
        ("y", "--dtype", "float32"),
        ("y",),
    ):
        for recipe in "bx:m=6", "topk", "auto:rel=1e-2":
            if recipe[:4] == "auto" and "--dtype" not in flags:
                continue  # it changes nothing of bytes
            status, error = main("compress", "-r", recipe, *flags)
            assert status == 1, flags
            one_sentence(error)
    assert {path.name for path in tmp_path.iterdir()} == {"x.npy", "y"}
    assert main("compress", "-r", "bx:m=6", "y", "--format", "npy")[0] == 0
    assert np.load("x.npy").shape == wirepress.inspect(Path("y.wpr").read_bytes()).shape


def test_several_arrays_in_a_npy_file(main: Main) -> None:
    with open("x.npy", "wb") as file:
        np.save(file, WEIGHTS)
        np.save(file, WEIGHTS * 2)
    whole = Path("x.npy").read_bytes()
    assert main("compress", "-r", "bx:m=6", "x.npy")[0] == 0
    content = back(main, "x.npy")
    end = 128 + WEIGHTS.nbytes
    assert content[end:] == whole[end:]
    assert content[128:end] != whole[128:end]


def test_npy_files_that_are_cut_short(main: Main, tmp_path: Path) -> None:
    for order in "CF":
        np.save("whole.npy", np.asarray(WEIGHTS, order=order))
        whole = Path("whole.npy").read_bytes()
        for size in 0, 5, 9, 40, 127, 128, 200, len(whole) - 1:
            Path("x.npy").write_bytes(whole[:size])
            status, error = main("compress", "-r", "bx:m=6", "x.npy")
            assert status == 1, size
            one_sentence(error)
            if main("compress", "-q", "--format", "bytes", "x.npy")[0] == 0:
                assert back(main, "x.npy") == whole[:size]
    assert {path.name for path in tmp_path.iterdir()} == {"whole.npy", "x.npy"}


def test_a_file_that_is_cut_while_it_is_read(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save("x.npy", WEIGHTS)
    np.save("y.npy", np.asfortranarray(WEIGHTS))
    size = tensors.Source.size
    monkeypatch.setattr(tensors.Source, "size", lambda self: (size(self) or 0) + 4096)
    for name in "x.npy", "y.npy":
        os.truncate(name, 5000)
        status, error = main("compress", name)
        assert status == 1
        assert "while it was read" in one_sentence(error) or "bytes of elements" in error


# ---- .safetensors ---------------------------------------------------------------------------

TENSORS = {
    "embed": WEIGHTS.astype(ml_dtypes.bfloat16).repeat(2, 0),
    "norm": np.ones(70, np.float32),
    "w": WEIGHTS,
    "half": WEIGHTS.astype(np.float16),
    "double": WEIGHTS.astype(np.float64),
    "ids": np.arange(5000),
    "mask": WEIGHTS.repeat(2, 0) > 0,
    "f8": WEIGHTS.repeat(2, 0).astype(ml_dtypes.float8_e4m3fn),
    "c": (WEIGHTS + 1j).astype(np.complex64),
    "scalar": np.float32(1.5),
    "none": np.zeros((0, 5), np.float32),
    "u4": RNG.integers(0, 256, 5000).astype(np.uint8),
}
WORDS = dict(
    zip(
        "embed norm w half double ids mask f8 c scalar none u4".split(),
        "BF16 F32 F32 F16 F64 I64 BOOL F8_E4M3 C64 F32 F32 F4".split(),
        strict=True,
    )
)


def safetensors(content: dict[str, np.ndarray] = TENSORS) -> bytes:
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, array in content.items():
        raw = np.asarray(array).tobytes()
        offsets = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": WORDS[name], "shape": list(array.shape), "data_offsets": offsets}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def tensors_of(whole: bytes) -> dict[str, np.ndarray]:
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + at for at in entry["data_offsets"])
            found[name] = np.frombuffer(whole[begin:end], np.asarray(TENSORS[name]).dtype)
    return found


LOSSLESS = ["zstd:1", "shuffle+lz4", "planes", "bx:m=0", "auto", "zfp", "deflate"]


@pytest.mark.parametrize("recipe", [*LOSSLESS, None, "--smallest"])
def test_safetensors_come_back(recipe: str | None, main: Main, tmp_path: Path) -> None:
    whole = safetensors()
    Path("m.safetensors").write_bytes(whole)
    flags = () if recipe is None else (recipe,) if recipe[0] == "-" else ("-r", recipe)
    status, error = main("compress", *flags, "m.safetensors")
    assert status == 0, error
    assert "float32 by" in error and "with loss" not in error
    assert back(main, "m.safetensors") == whole


@pytest.mark.parametrize(
    "recipe", ["bx:m=6", "fre:m=6", "bf16", "sz3:abs=1e-3", "auto:rel=1e-2,link=1Gbps"]
)
def test_lossy_safetensors(recipe: str, main: Main) -> None:
    whole = safetensors()
    Path("m.safetensors").write_bytes(whole)
    status, error = main("compress", "-r", recipe, "m.safetensors")
    assert status == 0, error
    assert f"float32 by {recipe} (with loss)" in error
    content = back(main, "m.safetensors")
    assert len(content) == len(whole)
    for name, found in tensors_of(content).items():
        expected = np.asarray(TENSORS[name]).reshape(-1)
        if name in ("ids", "mask", "norm", "scalar", "none", "u4", "f8"):
            assert found.tobytes() == expected.tobytes(), name
        else:
            error = np.abs(found.astype("c16") - expected.astype("c16"))
            assert np.all(error <= np.abs(expected.astype("c16")) * 0.04 + 1e-3), name
    assert tensors_of(content)["w"].tobytes() != WEIGHTS.tobytes()


def test_json_says_what_was_done(main: Main, capfd: pytest.CaptureFixture[str]) -> None:
    from wirepress.commands import files

    Path("m.safetensors").write_bytes(safetensors())
    capfd.readouterr()
    assert cli.main(["compress", "--json", "-r", "bx:m=6", "m.safetensors"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    groups = {(group["dtype"], group["recipe"]): group for group in row["tensors"]}
    assert groups["float32", "bx:m=6"] == {
        "dtype": "float32", "recipe": "bx:m=6", "lossless": False,
        "count": 1, "raw_size": WEIGHTS.nbytes,
    }  # fmt: skip
    assert groups["int64", files.DEFAULT_RECIPE]["lossless"]
    assert row["frame_size"] == Path("m.safetensors.wpr").stat().st_size


def test_a_lossy_recipe_without_use_is_refused(main: Main) -> None:
    Path("m.safetensors").write_bytes(safetensors({"ids": TENSORS["ids"]}))
    status, error = main("compress", "-r", "bx:m=6", "m.safetensors")
    assert (status, "takes none of its tensors" in one_sentence(error)) == (1, True)


def test_large_tensors_take_several_frames(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    from wirepress.commands import files

    monkeypatch.setattr(files, "_FRAME", 5000)
    whole = safetensors()
    Path("m.safetensors").write_bytes(whole)
    for recipe in "planes", "zfp", None:
        assert main("compress", *(("-r", recipe) if recipe else ()), "m.safetensors")[0] == 0
        assert back(main, "m.safetensors") == whole


def bad_safetensors() -> dict[str, bytes]:
    whole = safetensors()
    length = int.from_bytes(whole[:8], "little")
    text = whole[8 : 8 + length]

    def with_header(header: bytes) -> bytes:
        return struct.pack("<Q", len(header)) + header + whole[8 + length :]

    return {
        "empty": b"",
        "text": b"this is no such file at all",
        "short": whole[:-10],
        "in its header": whole[:100],
        "no json": with_header(b"{" + text[5:]),
        "nested": with_header(b"[" * 100_000),
        "list": with_header(b"{}"[:1] + b'"a": 3}'),
        "overlap": with_header(text.replace(b'"data_offsets": [0,', b'"data_offsets": [9,', 1)),
        "beyond": with_header(text.replace(b"11200]", b"99999999999]", 1)),
        "negative": with_header(text.replace(b"[80, 70]", b"[-80, 70]", 1)),
        "huge": struct.pack("<Q", 1 << 62) + text,
    }


@pytest.mark.parametrize("case", list(bad_safetensors()))
def test_bad_safetensors(case: str, main: Main) -> None:
    whole = bad_safetensors()[case]
    Path("m.safetensors").write_bytes(whole)
    for flags in ("-r", "bx:m=6"), ("--format", "safetensors"):
        status, error = main("compress", *flags, "m.safetensors")
        assert status == 1
        one_sentence(error)
    assert not Path("m.safetensors.wpr").exists()
    flags = ("--format", "bytes") if "short" in case or "beyond" in case or "in its" in case else ()
    status, error = main("compress", *flags, "m.safetensors")
    assert status == 0, error
    assert back(main, "m.safetensors") == whole


# ---- .pt ------------------------------------------------------------------------------------


def saved(path: Path | str, **more: object) -> bytes:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    values = torch.from_numpy(WEIGHTS)
    state = {
        "w": values,
        "transposed": values.t(),
        "part": values.repeat(3, 1)[1:5],
        "bf": values.repeat(2, 1).bfloat16(),
        "half": values.half(),
        "ids": torch.arange(3000),
        "bool": values.repeat(2, 2) > 0,
        "f8": values.repeat(2, 2).to(torch.float8_e4m3fn),
        "u2": torch.arange(4000).to(torch.uint16),
        "c": torch.complex(values, values),
        "small": torch.ones(3),
        "step": 7,
        "name": "wirepress",
        "parameter": torch.nn.Parameter(values * 2),
    }
    torch.save(state | more, path)
    return Path(path).read_bytes()


def test_types_of_storages(main: Main, tmp_path: Path) -> None:
    saved("x.pt")
    with zipfile.ZipFile("x.pt") as archive:
        found = storages(archive.read("x/data.pkl"))
    assert {dtype for dtype, _ in found.values()} == {
        "float32", "bfloat16", "float16", "int64", "bool", "float8_e4m3", "uint16", "complex64",
    }  # fmt: skip
    assert found["0"] == ("float32", WEIGHTS.shape)


@pytest.mark.parametrize("recipe", [None, "planes", "zstd:3", "--smallest"])
def test_pt_comes_back(recipe: str | None, main: Main) -> None:
    whole = saved("x.pt")
    flags = () if recipe is None else (recipe,) if recipe[0] == "-" else ("-r", recipe)
    status, error = main("compress", *flags, "x.pt")
    assert status == 0, error
    assert "bfloat16 by" in error
    assert back(main, "x.pt") == whole


@pytest.mark.parametrize("recipe", ["bx:m=6", "sz3:pw=1e-2", "auto:rel=1e-2,link=1Gbps"])
def test_lossy_pt_is_a_good_archive(recipe: str, main: Main) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    saved("x.pt")
    before = torch.load("x.pt")
    assert main("compress", "-r", recipe, "x.pt")[0] == 0
    Path("y.pt").write_bytes(back(main, "x.pt"))
    with zipfile.ZipFile("y.pt") as archive:
        assert archive.testzip() is None
    after = torch.load("y.pt")
    for name in "ids", "bool", "f8", "u2", "small":
        assert torch.equal(before[name].float(), after[name].float())
    for name in "w", "bf", "half", "transposed", "part", "parameter", "c":
        error = (after[name] - before[name]).abs().to(torch.float64)
        assert bool((error <= before[name].abs() * 0.02 + 1e-7).all()), name
    assert not torch.equal(before["w"], after["w"])


@pytest.mark.parametrize("recipe", ["terngrad", "qsgd:bits=4"])
def test_a_pt_of_a_codec_that_draws_is_a_good_archive(recipe: str, main: Main) -> None:
    """What is coded twice is not the same twice."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    saved("x.pt")
    assert main("compress", "-r", recipe, "x.pt")[0] == 0
    Path("y.pt").write_bytes(back(main, "x.pt"))
    with zipfile.ZipFile("y.pt") as archive:
        assert archive.testzip() is None


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("this-ran",)


def test_pickles_are_not_run(main: Main, tmp_path: Path) -> None:
    whole = saved("x.pt", evil=_Evil())
    assert main("compress", "x.pt")[0] == 0
    assert back(main, "x.pt") == whole
    assert not Path("this-ran").exists()
    for rubbish in b"", b"\x80", b"garbage", b"\x80\x02]]]].", b"(" * 9999, pickle.dumps(_Evil()):
        assert storages(rubbish) == {}
    data = pickle.dumps({"a": [1, 2.5, (3, "x")], "b": {4}}, 4)
    for i in range(len(data)):
        storages(data[:i] + bytes([data[i] ^ 0x55]) + data[i + 1 :])
        storages(data[:i])


def _as_zip(compression: int) -> bytes:
    saved("x.pt")
    with zipfile.ZipFile("x.pt") as old, zipfile.ZipFile("y.pt", "w", compression) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    return Path("y.pt").read_bytes()


@pytest.mark.parametrize(
    "case", ["deflated", "legacy", "cut", "text", "no pickle", "big endian", "empty"]
)
def test_other_pt_files_stay_bytes(case: str, main: Main) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    whole = saved("x.pt")
    if case == "deflated":
        whole = _as_zip(zipfile.ZIP_DEFLATED)
    elif case == "legacy":
        torch.save({"w": torch.ones(5000)}, "x.pt", _use_new_zipfile_serialization=False)
        whole = Path("x.pt").read_bytes()
    elif case == "cut":
        whole = whole[:-100]
    elif case == "text":
        whole = b"some notes " * 500
    elif case == "empty":
        whole = b""
    elif case == "no pickle":
        with zipfile.ZipFile("z", "w") as archive:
            archive.writestr("x/data/0", WEIGHTS.tobytes())
        whole = Path("z").read_bytes()
    else:
        with zipfile.ZipFile("x.pt") as old, zipfile.ZipFile("z", "w") as new:
            for entry in old.infolist():
                big = entry.filename.endswith("byteorder")
                new.writestr(entry.filename, b"big" if big else old.read(entry))
        whole = Path("z").read_bytes()
    Path("y.pt").write_bytes(whole)
    status, error = main("compress", "-r", "bx:m=6", "y.pt")
    assert status == 1
    one_sentence(error)
    status, error = main("compress", "-q", "y.pt", *(("--format=bytes",) if case == "cut" else ()))
    assert status == 0, error
    assert "pipe" not in error
    assert back(main, "y.pt") == whole


# ---- series ---------------------------------------------------------------------------------


def test_damaged_series_are_refused(main: Main) -> None:
    Path("m.safetensors").write_bytes(safetensors({"w": WEIGHTS, "ids": TENSORS["ids"]}))
    assert main("compress", "-q", "-r", "zstd:9", "m.safetensors")[0] == 0
    whole = Path("m.safetensors.wpr").read_bytes()
    ends = [at for at in range(len(whole)) if whole[at : at + 3] in (b"WPR", b"WPE")]
    flips = [*range(40), *range(40, len(whole), 997), *range(len(whole) - 24, len(whole))]
    bad = [whole[:i] for i in {3, 4, 20, *ends, len(whole) - 1}]
    bad += [whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :] for i in flips]
    bad += [whole + b"x", whole + whole, whole[:4] + whole[-24:]]
    bad += [whole[: ends[0]] + whole[ends[1] :], whole[: ends[1]] + whole[ends[0] :]]
    for damaged in bad:
        Path("x.wpr").write_bytes(damaged)
        status, error = main("decompress", "x.wpr")
        assert status == 1, damaged[:8]
        one_sentence(error)
        assert not Path("x").exists()
        assert main("inspect", "--verify", "x.wpr")[0] == 1


def test_series_through_pipes(main: Main, tmp_path: Path) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "wirepress"]
    for whole, form in (safetensors(), "safetensors"), (npy_file(), "npy"):
        frames = subprocess.run(
            [*command, "compress", "-q", "-", "--format", form],
            input=whole, capture_output=True, check=True,
        ).stdout  # fmt: skip
        assert frames[:3] == b"WPS"
        done = subprocess.run(
            [*command, "decompress", "-q", "-"], input=frames, capture_output=True, check=True
        )
        assert done.stdout == whole
        cut = subprocess.run(
            [*command, "compress", "-q", "-", "--format", form],
            input=whole[:-9], capture_output=True,
        )  # fmt: skip
        assert cut.returncode == 1
        assert "while it was read" in one_sentence(cut.stderr.decode())
    refused = subprocess.run(
        [*command, "compress", "-", "--format", "pt"], input=b"PK", capture_output=True
    )
    assert "cannot be a pipe" in one_sentence(refused.stderr.decode())


def npy_file() -> bytes:
    file = io.BytesIO()
    np.save(file, np.asfortranarray(WEIGHTS))
    return file.getvalue()


@pytest.mark.slow
def test_random_damage_never_passes(main: Main) -> None:
    """Rubbish in headers of every format: it comes back as it is, or is refused in a sentence."""
    files = {"x.npy": npy_file(), "x.safetensors": safetensors(), "x.pt": saved("x.pt")}
    for name, whole in files.items():
        places = range(0, min(len(whole), 1500), 7) if name != "x.pt" else range(0, len(whole), 997)
        for i in places:
            damaged = whole[:i] + bytes([whole[i] ^ (1 << i % 8)]) + whole[i + 1 :]
            Path(name).write_bytes(damaged)
            status, error = main("compress", "-q", name)
            if status == 0:
                assert back(main, name) == damaged
            else:
                one_sentence(error)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name + ".wpr")


# ---- every codec, every type, every kind of file --------------------------------------------

_SAFETENSORS_WORDS = {dtype: word for word, dtype in wps.DTYPES.items()}
_FLOATS = ("float32", "float64", "float16", "bfloat16")


def raw_of(dtype: str, n: int) -> bytes:
    """Numbers of any type that most codecs like."""
    if dtype in ("bool", "bytes"):
        return bytes(i % 3 == 0 for i in range(n))
    word = {"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype)
    kind = np.dtype(getattr(ml_dtypes, word, None) or word)
    return (np.sin(np.arange(n) / 9) * 50 + 60).astype(kind).tobytes()


def file_of(form: str, dtype: str, raw: bytes) -> bytes | None:
    """A file of that one tensor; None: the format has no such type."""
    size = wirepress.arrays.dtype_size(wirepress.arrays.dtype_code(dtype))
    if form == "raw":
        return raw
    if form == "npy":
        from wirepress.commands import npy

        head = npy.make_header(npy.Header(dtype, (len(raw) // size,)))
        return head + raw if b"V" not in head else None
    if form == "safetensors":
        if dtype not in _SAFETENSORS_WORDS:
            return None
        entry = {"dtype": _SAFETENSORS_WORDS[dtype], "shape": [len(raw) // size]}
        text = json.dumps({"x": entry | {"data_offsets": [0, len(raw)]}}).encode()
        return struct.pack("<Q", len(text)) + text + raw
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    word = {"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype)
    if not hasattr(torch, word):
        return None
    torch.save(torch.frombuffer(bytearray(raw), dtype=getattr(torch, word)), "t.pt")
    return Path("t.pt").read_bytes()


def check_file(main: Main, recipe: str, dtype: str, form: str) -> str:
    """It comes back bit for bit, or floats within the file changed, or it is refused."""
    raw = raw_of(dtype, 4500)
    whole = file_of(form, dtype, raw)
    if whole is None:
        return "none"
    name = f"x.{form}"
    Path(name).write_bytes(whole)
    flags = ("--dtype", dtype) if form == "raw" else ()
    status, error = main("compress", "-f", "-r", recipe, *flags, name)
    if status:
        one_sentence(error)
        assert not Path(name + ".wpr").exists()
        return "refused"
    content = back(main, name, verify=False)
    assert len(content) == len(whole)
    if content == whole:
        return "same"
    at = whole.find(raw)
    assert content[:at] == whole[:at] or form == "pt"  # whose checksums say what is there now
    if form == "pt":
        Path("back.pt").write_bytes(content)
        with zipfile.ZipFile("back.pt") as archive:
            assert archive.testzip() is None
    else:
        assert content[at + len(raw) :] == whole[at + len(raw) :]
    return "changed"


def recipes() -> list[str]:
    return [codec.name for codec in wirepress.codecs()] + [
        "bx:m=0", "zfp:rate=8", "sz3:abs=1e-3+zstd:1", "auto", "auto:rel=1e-2", "auto:goal=ratio"
    ]  # fmt: skip


def check_recipe(main: Main, recipe: str, dtypes: tuple[str, ...], forms: tuple[str, ...]) -> None:
    if recipe == "sz3":  # alone it has no bound
        recipe = "sz3:rel=1e-3"
    for dtype in dtypes:
        takes = True
        try:
            lossless = wirepress.Compressor(recipe).lossless(dtype)
        except wirepress.ParameterError:
            takes = lossless = False
        for form in forms:
            found = check_file(main, recipe, dtype, form)
            where = (recipe, dtype, form, found)
            if found == "none":
                continue
            if takes and (lossless or dtype not in _FLOATS):
                # integers of a file of tensors are coded without loss where a codec would change
                # them; of a file of their own as was asked for
                allowed = {"same"} | ({"changed"} if form in ("raw", "npy") else {"refused"})
                assert found in ({"same"} if lossless else allowed), where
            elif takes:
                assert found in ("changed", "same"), where
            elif form in ("raw", "npy"):
                assert found == "refused" or dtype.startswith("complex"), where
            else:
                assert found in ("same", "refused") or dtype.startswith("complex"), where


@pytest.mark.parametrize("recipe", ["zstd", "planes", "bx", "topk", "zfp:rate=8", "auto:rel=1e-2"])
def test_types_and_files(recipe: str, main: Main) -> None:
    check_recipe(main, recipe, ("float32", "bfloat16", "int32"), ("raw", "npy", "safetensors"))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes())
def test_every_codec_type_and_file(recipe: str, main: Main) -> None:
    dtypes = tuple(dtype for dtype in wirepress.DTYPES if dtype != "bytes")
    check_recipe(main, recipe, dtypes, ("raw", "npy", "safetensors", "pt"))
