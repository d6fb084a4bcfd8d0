# SPDX-License-Identifier: Apache-2.0
"""The specification checks itself: an independent decoder reads what the library writes."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wirepress
from spec.tests import frames
from spec.tests.frames import decode

HERE = Path(__file__).parent
CODECS = HERE.parent / "codecs"

RECIPES = [
    "store",
    "lz4:1",
    "lz4:9",
    "snappy",
    "zstd:3",
    "deflate:6",
    "zlib:1",
    "gzip:9",
    "shuffle:4+zstd:1",
    "fre:m=6,round=truncate",
    "fre:m=5,ways=4",
    "fre:m=5,ways=0",
]


def wave(n: int) -> np.ndarray:
    x = np.arange(n, dtype=np.float32)
    return (np.round(np.sin(x / 20) * 64) / 8).astype(np.float32)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("n", [0, 1, 255, 256, 1500])
def test_fresh_frames(recipe: str, n: int) -> None:
    array = wave(n)
    frame = wirepress.compress(array, recipe=recipe, block_size="1KiB")
    header, raw = decode.decode(frame)
    assert header.dtype == "float32" and header.shape == (n,)
    assert raw == wirepress.decompress(frame).tobytes()
    if "fre" not in recipe:
        assert raw == array.tobytes()


@pytest.mark.parametrize("checksum", [True, False])
def test_truncations_and_flips_agree_with_the_library(checksum: bool) -> None:
    frame = wirepress.compress(wave(600), recipe="lz4:1", block_size="1KiB", checksum=checksum)
    damaged = [frame[:n] for n in range(0, len(frame), 3)]
    rng = random.Random(1)
    for _ in range(300):
        bad = bytearray(frame)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        damaged.append(bytes(bad))
    for bad in damaged:
        try:
            mine = decode.decode(bad)[1]
        except decode.FrameError:
            mine = None
        try:
            library = np.asarray(wirepress.decompress(bad)).tobytes()
        except wirepress.WirepressError:
            library = None
        assert mine == library


def vectors() -> list[tuple[str, str, str, int, bool, str, int]]:
    found = []
    for index in sorted(CODECS.glob("*/vectors/index.txt")):
        for line in index.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                name, recipe, size, verdict, dtype, shape = (*line.split(), "bytes", "0")[:6]
                codec = index.parent.parent.name
                ok = verdict == "ok"
                found.append((codec, name, recipe, int(size), ok, dtype, int(shape)))
    return found


def shape_of(choice: int) -> tuple[int, ...] | None:
    """As tests/conformance/data.cpp tells it; the outermost extent follows from the size."""
    inner = (1 + choice // 4 % 8, 1 + choice // 32 % 8, 3)
    return (0, *inner[: choice % 4]) if choice % 4 else None


def header_of(recipe: str, dtype: str):
    """Of bytes, too: frames of them are made by lossless recipes only, those of others are read."""
    lossless = wirepress.Compressor(recipe).lossless(dtype)
    told = "float32" if dtype == "bytes" and not lossless else dtype
    header, _ = decode.decode(wirepress.compress(b"", recipe=recipe, dtype=told))
    header.dtype = dtype
    return header


@pytest.mark.parametrize(("codec", "name", "recipe", "size", "ok", "dtype", "shape"), vectors())
def test_vectors(
    codec: str, name: str, recipe: str, size: int, ok: bool, dtype: str, shape: int
) -> None:
    folder = CODECS / codec / "vectors"
    # The parameters as a frame of this recipe would carry them.
    header = header_of(recipe, dtype)
    header.shape, header.slabs = shape_of(shape), shape != 0
    params = header.stages[0][1]
    payload = (folder / f"{name}.enc").read_bytes()
    if ok:
        raw = decode.expand(header, codec, params, payload, size)
        assert raw == (folder / f"{name}.raw").read_bytes()
        return
    try:
        raw = decode.expand(header, codec, params, payload, size)
    except ValueError:
        return
    assert len(raw) != size


def test_a_former_format_is_refused_by_its_name() -> None:
    with pytest.raises(decode.FrameError, match="0x011: an older format of planes"):
        decode.refuse_id(0x11)
    with pytest.raises(decode.FrameError, match="unknown codec id 0xffe"):
        decode.refuse_id(0xFFE)


def test_the_example_of_the_document() -> None:
    text = (HERE / "frame.md").read_text()
    example = text[text.index("## Example") : text.index("## History")]
    lines = re.findall(r"^    ((?:[0-9a-f]{2} ?)+)$", example, re.M)
    frame = bytes.fromhex("".join(lines))
    array = wirepress.decompress(frame)
    assert array.shape == (2, 4) and array.dtype == np.float32 and (array == 1).all()
    assert decode.decode(frame)[1] == array.tobytes()
    cells = re.findall(r"^\| (`[0-9a-f` ]+`) \|", example, re.M)
    quoted = bytes.fromhex(" ".join(cells).replace("`", " "))
    assert quoted == frame


@pytest.mark.parametrize("streamed", [False, True])
def test_blocks_with_their_own_recipe(streamed: bool) -> None:
    rng = np.random.default_rng(1)
    parts = [np.zeros(5000), np.sin(np.arange(9000) / 50), rng.normal(size=9000), np.zeros(3000)]
    array = np.concatenate(parts).astype(np.float32)
    recipe = "auto:goal=ratio"
    if streamed:
        stream = wirepress.StreamCompressor(recipe, dtype="float32", block_size="1KiB")
        frame = stream.update(array) + stream.finish()
    else:
        frame = wirepress.compress(array, recipe, block_size="1KiB")
    header, raw = decode.decode(frame)
    assert raw == array.tobytes()
    assert len(header.own) >= 1
    for at in range(20, len(frame), 977):  # no damage gets through
        bad = bytearray(frame)
        bad[at] ^= 64
        with pytest.raises(decode.FrameError):
            decode.decode(bytes(bad))
        with pytest.raises(wirepress.FrameError):
            wirepress.decompress(bytes(bad))


@pytest.mark.parametrize("shape", [(9, 13), (7, 6, 5), (5, 4, 3, 6)])
def test_blocks_of_whole_rows(shape: tuple[int, ...]) -> None:
    field = np.sin(np.arange(np.prod(shape)) / 20).reshape(shape).astype(np.float32)
    for recipe in "zfp:accuracy=1e-3", "zfp", "sz3:abs=1e-3":
        frame = wirepress.compress(field, recipe, block_size="1KiB")
        header, raw = decode.decode(frame)
        assert header.slabs and header.shape == shape
        assert raw == wirepress.decompress(frame).tobytes()


def test_series(tmp_path: Path) -> None:
    """A file of several types, as the command line writes it (spec/series.md)."""
    with open(tmp_path / "x.npy", "wb") as file:
        np.save(file, np.asfortranarray(wave(3000).reshape(30, 100)))
        np.save(file, wave(10))
    whole = (tmp_path / "x.npy").read_bytes()
    command = [sys.executable, "-m", "wirepress", "compress", "-q", tmp_path / "x.npy"]
    for flags in ("-r", "shuffle+lz4"), ("-r", "bx:m=0", "--block-size", "1KiB", "-f"):
        subprocess.run([*command, *flags], check=True)
        series = (tmp_path / "x.npy.wpr").read_bytes()
        headers, raw = decode.decode_series(series)
        assert raw == whole
        assert [header.dtype for header in headers] == ["bytes", "float32", "bytes"]
        assert headers[1].shape == (100, 30)
        for damaged in series[:-1], series[:4], series + b"x", series[:-3] + b"abc", b"WPS\x20":
            with pytest.raises(decode.FrameError):
                decode.decode_series(damaged)


def test_only_the_first_codec_is_told_the_shape() -> None:
    """A codec behind another takes its values in a row, though blocks are whole rows."""
    field = np.ones((8, 16), np.float32)
    shuffled = np.frombuffer(field.tobytes(), np.uint8).reshape(-1, 4).T.tobytes()
    payload = frames.first_block(wirepress.compress(np.frombuffer(shuffled, np.float32), "zfp"))
    assert payload is not None
    slabs = b"WPR" + bytes([frames.PLAIN | 4, 11 | 2 << 5, frames.BLOCK_LOG | 2 << 5])
    stages = frames.stage_of("shuffle:4", "float32") + frames.stage_of("zfp", "float32")
    frame = frames.sealed(slabs + stages + bytes([8, 16])) + len(payload).to_bytes(4, "little")
    assert decode.decode(frame + payload)[1] == field.tobytes()
    assert wirepress.decompress(frame + payload).tobytes() == field.tobytes()
