# SPDX-License-Identifier: Apache-2.0
"""Engine rtl: a model made of the clocks that the simulated FPGA cores take on the user's data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirepress

HAS_CORES = any(e.name == "rtl" and e.available for e in wirepress.engines())
needs_cores = pytest.mark.skipif(not HAS_CORES, reason="built without the simulated cores")
CLOCK = 250e6


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Words, a third of them new: LZ codecs find about half of it."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 256, (256, 8), np.uint8)
    words = np.where(rng.random((20_000, 1)) < 0.3, rng.integers(0, 256, (20_000, 8), np.uint8),
                     words[rng.integers(0, 256, 20_000)])  # fmt: skip
    (tmp_path / "words.bin").write_bytes(words.astype(np.uint8).tobytes())
    return tmp_path / "words.bin"


def plan(wirepress_in: Any, *arguments: object) -> dict[str, Any]:
    done = wirepress_in("plan", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_cores
def test_clocks_are_those_of_the_library(wirepress_in: Any, sample: Path) -> None:
    data = sample.read_bytes()
    before = wirepress.engine_clocks("rtl")
    frame = wirepress.compress(data, "lz4", engine="rtl", threads=1)
    between = wirepress.engine_clocks("rtl")
    assert wirepress.decompress(frame, engine="rtl", threads=1) == data
    after = wirepress.engine_clocks("rtl")
    (option,) = plan(wirepress_in, sample, "--engine", "rtl:lz4=1c1d")["options"]
    assert option["compress_rate"] == pytest.approx(CLOCK * len(data) / (between - before))
    assert option["decompress_rate"] == pytest.approx(CLOCK * len(data) / (after - between))
    assert option["ratio"] == pytest.approx(len(data) / len(frame))
    assert option["ratio"] > 1.2 and option["clock"] == CLOCK


@needs_cores
def test_counts_and_clock_scale_the_rate(wirepress_in: Any, sample: Path) -> None:
    (one,) = plan(wirepress_in, sample, "--engine", "rtl:snappy=1c1d")["options"]
    flags = ("--engine", "rtl:snappy=3c2d", "--clock", "125MHz")
    (more,) = plan(wirepress_in, sample, *flags)["options"]
    assert more["compress_rate"] == pytest.approx(1.5 * one["compress_rate"])
    assert more["decompress_rate"] == pytest.approx(one["decompress_rate"])
    assert (more["compress_engines"], more["decompress_engines"]) == (3, 2)


@needs_cores
def test_without_a_name_all_that_lose_nothing(wirepress_in: Any, sample: Path) -> None:
    result = plan(wirepress_in, sample, "--engine", "rtl", "--link", "25Gbps")
    found = {option["codec"] for option in result["options"]}
    assert {"lz4", "snappy"} <= found
    assert all(option["lossless"] for option in result["options"])


@needs_cores
def test_floats(wirepress_in: Any, tmp_path: Path) -> None:
    path = tmp_path / "wave.npy"
    np.save(path, np.cumsum(np.random.default_rng(1).normal(size=60_000)).astype("f4"))
    (option,) = plan(wirepress_in, path, "--engine", "rtl:bx:m=6", "--lossy")["options"]
    assert option["ratio"] > 2 and option["compress_rate"] > 50 * CLOCK  # of 64 bytes a clock


@needs_cores
@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("rtl:deflate", "no kernel for engine"),
        ("rtl:shuffle+lz4", "no kernel for engine"),
    ],
)
def test_what_no_core_codes_is_left_out(
    wirepress_in: Any, sample: Path, engine: str, said: str
) -> None:
    result = plan(wirepress_in, sample, "--engine", engine)
    assert not result["options"] and said in json.dumps(result["left_out"])


@needs_cores
@pytest.mark.parametrize("engine", ["rtl:nonsense", "rtl:lz4=0c1d"])
def test_mistakes_are_refused(wirepress_in: Any, sample: Path, engine: str) -> None:
    done = wirepress_in("plan", sample, "--engine", engine)
    assert done.returncode != 0 and len(done.stderr.splitlines()) == 1


def test_cores_want_data(wirepress_in: Any) -> None:
    done = wirepress_in("plan", "--size", "1MB", "--engine", "rtl")
    assert done.returncode != 0 and "give a sample" in done.stderr


@needs_cores
def test_blocks_that_the_processor_codes_are_noticed(
    wirepress_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core of lz4 takes blocks of at most 4 MiB; larger ones have no clocks."""
    (tmp_path / "zeros.bin").write_bytes(bytes(5 << 20))
    monkeypatch.setenv("WIREPRESS_BLOCK_SIZE", "8MiB")
    result = plan(wirepress_in, "zeros.bin", "--engine", "rtl:lz4")
    assert not result["options"]
    assert "no core compresses these data" in result["left_out"]["lz4 on rtl"]
