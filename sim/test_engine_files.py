# SPDX-License-Identifier: Apache-2.0
"""Engine files: what ships is complete, what is wrong is refused with file, line, key and value."""

from __future__ import annotations

import json
import math
import re
import runpy
from pathlib import Path

import pytest

import wirepress
from wirepress.errors import ParameterError
from wirepress.sim import engine_files

ROOT = Path(__file__).resolve().parent.parent
GOOD = """title = "a card"
kind = "fpga"
source = "a data sheet"
latency = "10 us"

[codec.lz4]
ratio = 2.0
power = "20 W"
compress = { rate = "222 MB/s", engines = 32, luts = 3000 }
decompress = { rate = "1.59 GB/s", engines = 4, luts = 11000 }
"""


def written(folder: Path, text: str) -> str:
    (folder / "card.toml").write_text(text)
    return str(folder / "card.toml")


@pytest.mark.parametrize("name", engine_files.names())
def test_what_ships_is_complete(name: str) -> None:
    engine = engine_files.load(name)
    known = {codec.name for codec in wirepress.codecs()}
    for codec in engine.codecs.values():
        assert codec.source
        assert codec.recipe.split(":")[0].split("+")[0] in known, f"{name}: {codec.recipe}"
        wirepress.Compressor(codec.recipe)  # parameters, too
        assert codec.ratio is None or codec.ratio_data
        for key, value in codec.area().items():
            assert value <= engine.capacity.get(key, float("inf")), f"{name}.{codec.name}: {key}"


def test_a_file(tmp_path: Path) -> None:
    engine = engine_files.load(written(tmp_path, GOOD))
    codec = engine.codec("lz4")
    assert (engine.name, codec.source) == ("card", "a data sheet")
    assert engine.latency == pytest.approx(1e-5)
    assert codec.compress.total == pytest.approx(7.104e9)
    assert codec.rate == pytest.approx(6.36e9)  # FPGA-MPI, figure 5.2
    assert codec.area() == {"luts": 32 * 3000 + 4 * 11000}
    assert codec.joules_per_byte == pytest.approx(20 / 7.104e9 + 20 / 6.36e9)
    assert codec.with_counts(1, 1).rate == pytest.approx(222e6)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"222 MB/s"', "222", r'card.toml:9: codec.lz4.compress.rate: "222" has no unit.*MB/s'),
        ('"222 MB/s"', '"222"', r':9: .*"222" has no unit'),
        ('"222 MB/s"', '"222 apples"', r':9: .*"222 apples" is not a rate'),
        ('"222 MB/s"', '"0 MB/s"', r":9: .*must be more than 0"),
        ('"222 MB/s"', '"-1 MB/s"', r":9: .*not negative"),
        ("engines = 4", "engines = 0", r":10: codec.lz4.decompress.engines: 0 is not a count"),
        ('"10 us"', '"10 W"', r':4: latency: "10 W" is not a time'),
        ('"fpga"', '"abacus"', r':2: kind: "abacus" is none of cpu, gpu, dpu, fpga'),
        ("ratio = 2.0", "ratio = nan", r":7: codec.lz4.ratio: nan must be finite"),
        ("ratio = 2.0", 'ratio = "2"', r":7: codec.lz4.ratio: '2' is not a number"),
        ("luts = 3000", "leds = 3000", r":9: codec.lz4.compress.leds: unknown key; known: rate"),
        ('title = "a card"', "", r": title: is missing"),
        ('source = "a data sheet"', "source = 7", r":3: source: 7 is not text"),
        ("[codec.lz4]", "[codec.lz4", r"card.toml: .*line 6"),
        ("decompress =", "expand =", r"codec.lz4.expand: unknown key"),
        ("[codec.lz4]", "[codecs.lz4]", r"codecs: unknown key; known: title"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ParameterError, match=said):
        engine_files.load(written(tmp_path, GOOD.replace(old, new)))


def test_counts_on_the_command_line() -> None:
    engine, chosen = engine_files.choose("fpga:lz4=8c1d,zstd")
    assert chosen == ["lz4", "zstd"]
    assert engine.codecs["lz4"].rate == pytest.approx(1.59e9)
    assert engine.codecs["zstd"].compress.engines == 16
    assert engine_files.choose("fpga")[1] == ["lz4", "snappy", "zstd"]
    for text, said in (
        ("fpga:lzma", 'no codec "lzma"; it has lz4, snappy, zstd'),
        ("fpga:lz4=0c1d", "each kind is needed"),
        ("fpga:lz4=8", "no codec|is not CODEC"),
        ("abacus", 'engine "abacus" is not known; known: .*fpga'),
    ):
        with pytest.raises(ParameterError, match=said):
            engine_files.choose(text)
    with pytest.raises(FileNotFoundError):
        engine_files.load("nowhere.toml")


def test_a_bench_report_is_an_engine(wirepress_in, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"hello wirepress " * 20000)
    flags = ("--recipes", "lz4", "zstd:1", "--seconds", "0", "--json", "here.json")
    assert wirepress_in("bench", "data", *flags).returncode == 0
    engine = engine_files.load(str(tmp_path / "here.json"))
    report = json.loads((tmp_path / "here.json").read_text())
    row = report["rows"][0]
    assert list(engine.codecs) == ["lz4", "zstd:1"]
    assert engine.codecs["lz4"].ratio == row["ratio"]
    assert engine.codecs["lz4"].compress.rate == pytest.approx(1e9 * row["compress_gbps"])
    assert engine.contends
    assert all(codec.lossless for codec in engine.codecs.values())
    more = [
        row
        | {"file": "other", "raw_size": row["raw_size"] * 3, "ratio": 1.0, "compress_gbps": 1.0},
        row | {"kernel": "plain lz4", "compress_gbps": 1e6, "decompress_gbps": 1e6},
        row | {"kernel": "rtl:verilator16", "compress_gbps": 1e6, "decompress_gbps": 1e6},
        row | {"recipe": "onebit"},
        row | {"recipe": "another"},
    ]
    (tmp_path / "here.json").write_text(json.dumps(report | {"rows": [row, *more], "threads": 4}))
    engine = engine_files.load(str(tmp_path / "here.json"))
    assert engine.threads == 4 and engine.codecs["lz4"].ratio_data == "data, other"
    assert engine.codecs["lz4"].ratio == pytest.approx(4 / (1 / row["ratio"] + 3))
    rate = 4e9 / (1 / row["compress_gbps"] + 3)
    assert engine.codecs["lz4"].compress.rate == pytest.approx(rate)
    assert [name for name, codec in engine.codecs.items() if not codec.lossless] == [
        "onebit",
        "another",
    ]
    for text, said in (
        ("{}", "not a report"),
        ("{", "Expecting"),
        ('{"rows": []}', "not a report"),
        ("[" * 100_000, "nested too deeply"),
        (json.dumps(report | {"rows": [row | {"ratio": math.nan}]}), "ratio nan is no number"),
        (json.dumps(report | {"rows": [row | {"compress_gbps": -1}]}), "compress_gbps -1"),
    ):
        (tmp_path / "here.json").write_text(text)
        with pytest.raises(ParameterError, match=re.escape("here.json") + ".*" + said):
            engine_files.load(str(tmp_path / "here.json"))


def test_cpu_is_what_was_measured() -> None:
    """engines/cpu.toml is made from bench/results by a script; it is current."""
    made = runpy.run_path(str(ROOT / "bench" / "cpu_engine.py"))["engine"]()
    assert (ROOT / "sim" / "engines" / "cpu.toml").read_text() == made


def test_nic_is_what_was_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """engines/nic.toml, too."""
    monkeypatch.syspath_prepend(ROOT / "bench")
    measured = json.loads((ROOT / "bench" / "results" / "nic.json").read_text())
    made = runpy.run_path(str(ROOT / "bench" / "nic.py"))["engine"](measured)
    assert (ROOT / "sim" / "engines" / "nic.toml").read_text() == made
