# SPDX-License-Identifier: Apache-2.0
"""`wirepress plan`: the right answer, its reasons with numbers, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

THESIS = ("--size", "395247592B", "--engine", "fpga:lz4=32c4d,snappy=32c4d,zstd=16c8d", "--compute",
          "71.8ms", "--latency", "0s")  # fmt: skip


def plan(wirepress_in, *arguments: object) -> dict:
    done = wirepress_in("plan", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("link", "gains"),
    [  # FPGA-MPI's model at compute : exchange = 1 : 2.64 and its engine counts
        (25, {"lz4": 1.336, "snappy": 1.325, "zstd": 1.276}),
        (10, {"lz4": 1.43, "snappy": 1.41, "zstd": 1.66}),
    ],
)
def test_engines_of_the_thesis(wirepress_in, link: int, gains: dict[str, float]) -> None:
    result = plan(wirepress_in, *THESIS, "--link", f"{link}Gbps")
    found = {option["codec"]: option["speed_up"] for option in result["options"]}
    assert found == pytest.approx(gains, rel=0.01)
    assert not result["raw_is_best"]
    steps = [option["step_seconds"] for option in result["options"]]
    assert steps[0] <= min(steps) * 1.01  # within which the smaller one is named first


def test_fast_links_are_left_alone(wirepress_in) -> None:
    result = plan(wirepress_in, *THESIS, "--link", "100Gbps", "--sweep", "10Gbps", "200Gbps")
    assert result["raw_is_best"]
    assert result["sentences"][0].startswith("Send raw")
    assert [row["best"] for row in result["sweep"]] == ["zstd on fpga", None]
    for option in result["options"]:
        assert option["break_even_link"] * 8 < 100e9
        assert option["speed_up"] < 1


def test_fewest_engines(wirepress_in) -> None:
    """As few as fill the link, and one less is slower."""
    result = plan(wirepress_in, "--size", "1GB", "--engine", "fpga:zstd", "--link", "25Gbps")
    (option,) = result["options"]
    c, d = option["compress_engines"], option["decompress_engines"]
    assert 5.75e9 * 0.98 <= c * 292.5e6 <= 5.75e9 * 1.06
    assert d * 556.81e6 <= c * 292.5e6 + 556.81e6
    fewer = plan(
        wirepress_in, "--size", "1GB", "--engine", f"fpga:zstd={c - 1}c{d}d", "--link", "25Gbps"
    )
    assert fewer["options"][0]["step_seconds"] > 1.02 * option["step_seconds"]
    assert option["area"]["luts"] == c * 11000 + d * 23000
    # what does not fit the card is not proposed
    fast = plan(wirepress_in, "--size", "1GB", "--engine", "fpga:zstd", "--link", "200Gbps")
    assert fast["options"][0]["area"]["luts"] <= 1182240


@pytest.mark.parametrize("engine", ["fpga:zstd", "fpga"])
@pytest.mark.parametrize("overlap", [(), ("--compute", "100ms", "--overlap", "--bucket", "25MB")])
def test_a_sweep_counts_engines_for_each_link(wirepress_in, engine: str, overlap: tuple) -> None:
    """Each row is what a plan for that link would say."""
    job = ("--size", "395MB", "--engine", engine, *overlap)
    links = ["1Gbps", "10Gbps", "25Gbps", "100Gbps", "400Gbps"]
    rows = plan(wirepress_in, *job, "--sweep", *links)["sweep"]
    for link, row in zip(links, rows, strict=True):
        alone = plan(wirepress_in, *job, "--link", link)
        best = alone["options"][0]
        assert row["plain_seconds"] == alone["plain"]["step_seconds"]
        if alone["raw_is_best"]:
            assert (row["best"], row["compress_engines"], row["speed_up"]) == (None, None, 1)
            continue
        assert row["best"] == f"{best['codec']} on {best['engine']}"
        for key in "compress_engines", "decompress_engines", "step_seconds", "speed_up":
            assert row[key] == best[key]
    assert [row["best"] for row in rows[:3]] != [None] * 3


def test_a_sweep_keeps_the_engines_that_were_named(wirepress_in) -> None:
    job = ("--size", "395MB", "--engine", "fpga:zstd=16c8d", "--sweep", "10Gbps", "25Gbps")
    rows = plan(wirepress_in, *job)["sweep"]
    assert {(row["compress_engines"], row["decompress_engines"]) for row in rows} == {(16, 8)}
    assert "16c8d" in wirepress_in("plan", *job).stdout.splitlines()[-1]


def test_a_sample(wirepress_in, tmp_path: Path) -> None:
    """Ratios are the sample's, the CPU's speed is measured on it."""
    (tmp_path / "log").write_bytes(b"".join(b"line %d of a log\n" % i for i in range(20000)))
    flags = ("--seconds", "0", "--recipes", "lz4", "zstd:1")
    result = plan(wirepress_in, "log", "--link", "100Mbps", *flags)
    assert result["request"]["size"] == (tmp_path / "log").stat().st_size
    by_name = {(o["engine"], o["codec"]): o for o in result["options"]}
    assert set(by_name) == {("cpu", "lz4"), ("cpu", "zstd:1"), ("fpga", "lz4")}
    assert by_name["fpga", "lz4"]["ratio"] == pytest.approx(by_name["cpu", "lz4"]["ratio"])
    assert by_name["fpga", "lz4"]["ratio_data"] == "the sample"
    assert not result["raw_is_best"]
    text = wirepress_in("plan", "log", "--link", "100Mbps", *flags).stdout
    assert text.startswith("Use ")
    assert "the sample" in text and "Break-even" in text and "raw" in text


def test_noise_goes_raw(wirepress_in, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, 1 << 18, np.uint8)
    noise.tofile(tmp_path / "noise")
    result = plan(wirepress_in, "noise", "--recipes", "lz4", "--seconds", "0")
    assert result["raw_is_best"]
    assert "does not make these data smaller" in " ".join(result["sentences"])


def test_a_gpu_that_trains_gains_nothing_by_overlap(wirepress_in) -> None:
    """gCOW's first gap: compression on the device that computes hides behind nothing."""
    job = ("--size", "1.36GB", "--compute", "500ms", "--overlap", "--bucket", "25MB", "--lossy",
           "--workers", "16", "--link", "100Gbps")  # fmt: skip
    on_gpu = plan(wirepress_in, *job, "--engine", "v100:onebit")["options"][0]
    in_nic = plan(wirepress_in, *job, "--engine", "squeezenic:onebit")["options"][0]
    assert in_nic["step_seconds"] == pytest.approx(0.5, rel=0.01)
    assert on_gpu["step_seconds"] > 0.5 + 2 * 1.36e9 / 21.9e9


def test_what_cannot_be_planned_is_said(wirepress_in) -> None:
    result = plan(wirepress_in, "--size", "1GB", "--engine", "bf2", "--engine", "gcow")
    assert not result["options"]
    assert "no speed is known" in result["left_out"]["deflate on bf2"]
    assert "--lossy" in result["left_out"]["zfp on gcow"]
    assert result["sentences"][0].startswith("Send raw: nothing")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a sample of the data, or --size"),
        (("--size", "12"), '"12" has no unit: write 25MiB'),
        (("--size", "1GB", "--link", "25"), '"25" has no unit: write 25Gbps'),
        (("--size", "1GB", "--link", "0Gbps"), "--link must be more than 0"),
        (("--size", "1GB", "--sweep", "1Gbps", "0Gbps"), "--sweep must be more than 0"),
        (("--size", "1GB", "--workers", "0"), "not a count of at least 1"),
        (("--size", "1GB", "--workers", "1"), "one worker exchanges nothing"),
        (("--size", "1GB", "--engine", "abacus"), "known: a100"),
        (("--size", "1GB", "--engine", "fpga:lz4=3x"), "lz4"),
        (("--size", "1GB", "--ratio", "lz4"), "CODEC=RATIO"),
        (
            ("--size", "1GB", "--engine", "fpga:lz4", "--ratio", "lz=2"),
            "no codec lz here; known: lz4",
        ),
        (("--size", "1GB", "--seconds", "nan"), "'nan' is no number of seconds"),
        (("--size", "1GB", "--recipes", "zstdd:1"), "no engine that was looked at has zstdd:1"),
        (("--size", "1GB", "--threads", "8"), "--threads is of measuring on samples"),
        (("--size", "0B"), "--size must be more than 0"),
        (("--size", "1GB", "--bucket", "0B"), "--bucket must be more than 0"),
        (("nowhere.npy",), "nowhere.npy: No such file"),
    ],
)
def test_nonsense_is_refused(wirepress_in, arguments: tuple[str, ...], said: str) -> None:
    done = wirepress_in("plan", *arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
