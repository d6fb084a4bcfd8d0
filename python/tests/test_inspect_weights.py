# SPDX-License-Identifier: Apache-2.0
"""`wirepress inspect` of .wps files and patches, and what it says of files of other formats."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import wirepress
from python.tests.conftest import Command
from wirepress import wps


def weights(step: int) -> dict[str, np.ndarray]:
    grid = np.linspace(-1, 1, 30_000, dtype=np.float32).reshape(100, 300)
    bias = np.arange(7, dtype=np.int64)
    empty = np.zeros((0, 3), np.float32)
    found = {"grid": grid, "bias": bias, "empty": empty, "scalar": np.array(2.5)}
    found["grid"][step] = 3
    return found


@pytest.fixture
def wps_file(tmp_path: Path) -> Path:
    pieces: list[bytes] = []
    wps.pack(io.BytesIO(save(weights(0))), pieces.append)
    path = tmp_path / "model.wps"
    path.write_bytes(b"".join(pieces))
    return path


@pytest.fixture
def patch_file(tmp_path: Path) -> Path:
    path = tmp_path / "step.wpp"
    path.write_bytes(wirepress.diff(weights(0), weights(1), base=3, target=4))
    return path


def inspected(wirepress_in: Command, *arguments: object, **kwargs: object) -> dict:
    shown = wirepress_in("inspect", "--json", *arguments, check=True, **kwargs).stdout
    return json.loads(shown)[0]


@pytest.mark.parametrize("piped", [False, True])
def test_a_wps_file(wirepress_in: Command, wps_file: Path, piped: bool) -> None:
    data = wps_file.read_bytes()
    where, more = ("-", {"input": data}) if piped else (wps_file.name, {})
    report = inspected(wirepress_in, "--verify", where, **more)
    assert (report["format"], report["file_size"]) == ("wps", len(data))
    rows = {row["name"]: row for row in report["tensors"]}
    assert {name: tuple(row["shape"]) for name, row in rows.items()} == {
        name: array.shape for name, array in weights(0).items()
    }
    assert all(rows[name]["raw_size"] == array.nbytes for name, array in weights(0).items())
    assert sum(row["stored_size"] for row in report["tensors"]) < len(data)


@pytest.mark.parametrize("piped", [False, True])
def test_a_patch(wirepress_in: Command, patch_file: Path, piped: bool) -> None:
    data = patch_file.read_bytes()
    where, more = ("-", {"input": data}) if piped else (patch_file.name, {})
    report = inspected(wirepress_in, "--verify", where, **more)
    assert (report["base_version"], report["target_version"]) == (3, 4)
    assert report["base"] == wirepress.digest(weights(0))
    ops = {row["name"]: row["op"] for row in report["tensors"]}
    assert ops == {"grid": "ulp", "bias": "same", "empty": "same", "scalar": "same"}


def test_what_is_printed(wirepress_in: Command, wps_file: Path, patch_file: Path) -> None:
    names = wps_file.name, patch_file.name
    shown = wirepress_in("inspect", "--verify", *names, check=True).stdout.decode()
    assert "4 tensors, " in shown
    assert "4 tensors of a patch, " in shown
    assert "100x300" in shown
    assert "base    version 3, digest" in shown
    shown = wirepress_in("inspect", "--blocks", "1", wps_file.name, check=True).stdout.decode()
    assert "... and 3 more; --blocks 0 prints all" in shown


@pytest.mark.parametrize("kind", ["wps", "patch"])
def test_damage_is_named(
    wirepress_in: Command, wps_file: Path, patch_file: Path, kind: str
) -> None:
    path = wps_file if kind == "wps" else patch_file
    data = bytearray(path.read_bytes())
    at = data.rindex(b"WPR") + 30 if kind == "patch" else data.index(b"WPR") + 30
    data[at] ^= 16
    path.write_bytes(data)
    done = wirepress_in("inspect", "--verify", path.name)
    assert done.returncode == 1
    assert b"tensor " in done.stderr
    assert done.stderr.count(b"\n") == 1
    for size in (3, 30, len(data) - 1):
        path.write_bytes(data[:size])
        done = wirepress_in("inspect", path.name)
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)


@pytest.mark.parametrize(
    ("magic", "word"),
    [
        (b"WPTb", "wirepress trace show"),
        (b"WPU\x10", "wirepress patch"),
        (b"WPT\x20", "wirepress convert"),
        (b"WPD\x10", "CheckpointReader"),
        (b"WPM\x10", "CheckpointReader"),
        (b"WPRSTORE", "wirepress store ls"),
    ],
)
def test_other_formats_are_told_apart(
    wirepress_in: Command, tmp_path: Path, magic: bytes, word: str
) -> None:
    (tmp_path / "x").write_bytes(magic + bytes(100))
    done = wirepress_in("decompress", "x", "-o", "y")
    assert done.returncode == 1
    assert word in done.stderr.decode()
    assert not (tmp_path / "y").exists()
