#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values a clock of the zfp cores of rtl/zfp, simulated, and the page about them.

    bench/zfp_cores.py --count     counts clocks, writes bench/results/zfp_cores.json
    bench/zfp_cores.py --page      writes docs/fpga-zfp.md from it and from rtl_area.json

The field is a sum of waves with a little noise; noise alone is what takes most bits. Each is coded
in blocks of 256 KiB, each a packet, and decoded; clocks are those from a packet's first beat to its
last one.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import results
import rtl_long
import sample_data

import wirepress

SIDE, DEPTH = 512, 64  # SIDE^2 = DEPTH^3 values
BLOCK = "256KiB"
PAGE = results.ROOT / "docs" / "fpga-zfp.md"
MODES = ("rate=4", "rate=8", "rate=16", "precision=12", "precision=32", "accuracy=1e-2",
         "accuracy=1e-5")  # fmt: skip


def field() -> np.ndarray:
    x = np.arange(SIDE, dtype=np.float64)
    waves = sum(np.outer(np.sin(x / k + k), np.cos(x / (2 * k + 3))) for k in (5, 17, 40))
    return (waves + 1e-4 * sample_data.noise(SIDE * SIDE).reshape(SIDE, SIDE)).astype(np.float32)


def cube() -> np.ndarray:
    x = np.arange(DEPTH, dtype=np.float64)
    waves = sum(np.einsum("i,j,k", np.sin(x / k + k), np.cos(x / (2 * k + 3)), np.sin(x / (k + 9)))
                for k in (5, 17, 40))  # fmt: skip
    return (waves + 1e-4 * sample_data.noise(DEPTH**3).reshape(waves.shape)).astype(np.float32)


def measured(name: str, values: np.ndarray, mode: str) -> dict[str, Any]:
    recipe = f"zfp:{mode}"
    before = wirepress.engine_clocks("rtl")
    frame = wirepress.compress(values, recipe, block_size=BLOCK, engine="rtl", threads=1)
    between = wirepress.engine_clocks("rtl")
    if bytes(frame) != bytes(wirepress.compress(values, recipe, block_size=BLOCK, engine="cpu")):
        raise SystemExit(f"{name}, {recipe}: the core's bytes are not libzfp's")
    if between == before:
        raise SystemExit(f"{name}, {recipe}: not coded on the core")
    got = wirepress.decompress(frame, engine="rtl", threads=1)
    after = wirepress.engine_clocks("rtl")
    if bytes(got) != bytes(wirepress.decompress(frame, engine="cpu")):
        raise SystemExit(f"{name}, {recipe}: the core's values are not libzfp's")
    return {"data": name, "dimensions": values.ndim, "mode": mode, "values": values.size,
            "bits_a_value": round(8 * len(bytes(frame)) / values.size, 2),
            "clocks": between - before, "clocks_decoding": after - between}  # fmt: skip


def count() -> None:
    noise = sample_data.noise(SIDE * SIDE)
    data = {
        "field": (field().reshape(-1), field(), cube()),
        "noise": (noise, noise.reshape(SIDE, SIDE), noise.reshape(DEPTH, DEPTH, DEPTH)),
    }
    rows = [measured(name, values, mode) for name, arrays in data.items()
            for values in arrays for mode in MODES]  # fmt: skip
    results.write("zfp_cores", {"block_size": BLOCK, "side": SIDE, "depth": DEPTH, "rows": rows})


def table(rows: list[tuple[str, ...]]) -> str:
    heads, *rest = rows
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *rest))


def rate(values: int, clocks: int) -> str:
    return f"{values / clocks:.2f}" if clocks else "-"


# A packet's ends take up to 330 clocks of its 4096 beats: 16 values a clock are 14.8 then.
LEAST = 14.8


def aims(rows: list[dict[str, Any]], area: dict[str, dict[str, Any]]) -> str:
    """What the cores are to reach; what misses it is named."""
    found = [("core", "what", "aim", "measured", "met")]
    for way, clocks in (("encoders", "clocks"), ("decoders", "clocks_decoding")):
        counted = [row for row in rows if row[clocks]]
        misses = [f"{row['data']} {row['dimensions']}-D {row['mode']}" for row in counted
                  if row["values"] / row[clocks] < LEAST]  # fmt: skip
        left = len(rows) - len(counted)
        text = f"{len(counted) - len(misses)} of {len(rows)} rows"
        text += f", not {', '.join(misses)}" if misses else ""
        text += f", nor {left} that are libzfp's" if left else ""
        met = "yes" if not misses and not left else "**no**"
        found.append((way, "values a clock", f"16: {LEAST} with a packet's ends", text, met))
    for name, most in LUT_AIMS.items():
        if name in area:
            row = area[name]
            for what, bound in (("lut", most), ("depth", 7)):
                found.append((name, {"lut": "LUT", "depth": "levels of logic"}[what],
                              f"at most {bound}", f"{row[what]:g}",
                              "yes" if row[what] <= bound else "**no**"))  # fmt: skip
    return table(found)


LUT_AIMS = {
    "zfp encoder, 2-D, integer rates to 8": 30000,
    "zfp encoder, 2-D, integer rates to 16": 30000,
    "zfp encoder, 2-D, all modes": 45000,
    "zfp encoder, 1-D, integer rates to 16": 30000,
    "zfp encoder, 1-D, all modes": 45000,
    "zfp encoder, 3-D, all modes": 45000,
    "zfp decoder, 1-D, integer rates to 16": 35000,
    "zfp decoder, 2-D, integer rates to 8": 35000,
    "zfp decoder, 2-D, integer rates to 16": 35000,
    "zfp decoder, 3-D, rates to 16": 35000,
    "zfp decoder, 3-D, all modes": 35000,
}


def page() -> None:
    raw = json.loads((results.FOLDER / "zfp_cores.json").read_text())
    area = json.loads((results.FOLDER / "rtl_area.json").read_text())
    rates = [("data", "dimensions", "mode", "bits a value", "encoder", "decoder")]
    rates += [(row["data"], str(row["dimensions"]), row["mode"], f"{row['bits_a_value']:.2f}",
               rate(row["values"], row["clocks"]), rate(row["values"], row["clocks_decoding"]))
              for row in raw["rows"]]  # fmt: skip
    cores = [("core", "LUT", "FF", "BRAM", "DSP", "depth")]
    cores += [(row["name"], str(row["lut"]), str(row["ff"]), str(row["bram"]), str(row["dsp"]),
               f"{row['depth']:.1f}")
              for row in area["rows"] if row["top"].startswith("wpr_zfp_")]  # fmt: skip
    cores.append(("gCOW (published: table 4.1, U250)", "380591", "358933", "228.5", "441", "-"))
    by_name = {row["name"]: row for row in area["rows"]}
    long = rtl_long.ran("zfp", "Coded and decoded as libzfp does it, bit for bit, in long runs")
    PAGE.write_text(HEAD + table(rates) + RATES.format(**raw, long=long) + table(cores) + AREA
                    + AIMS.format(aims=aims(raw["rows"], by_name)))  # fmt: skip


HEAD = """# The zfp cores on an FPGA

Values a clock of the encoders and decoders of [`rtl/zfp`](../rtl/zfp/README.md), counted in
simulation. Their bytes are those of libzfp. "-" is what libzfp does instead.

"""
RATES = """
    {command}
    python3 bench/zfp_cores.py --page

counted the clocks ({date}, [raw](../bench/results/zfp_cores.json))
and wrote this page. The data are {side} x {side} values, as one or two dimensions, or
{depth} x {depth} x {depth}, in blocks of {block_size}; bits a value are those of the whole frame.
Neither side pauses, and a packet's first and last clocks count: about 50 of an encoder, 160, 250
or 330 of a decoder. The encoders are built for all modes, with 64 bytes a beat out: four cells of
one dimension that have more bits take two clocks, and so do eight planes of a cell of three.

The clocks were counted before registers were put into the cores: since then the encoders take 4 to
7 clocks more a packet and the decoder of two dimensions 32, which is 0.1 to 0.2 % and 0.7 % here.

With a precision or an accuracy a cell's begin is the end of the one before it, and only the index
tells where groups of 1024 values begin. So the decoder of three dimensions reads up to 74 groups
side by side, of which a packet of {block_size} has 64: 13.8 values a clock at most, less the clocks
in which the stream comes in, which a packet behind it would hide. A stream above 255 KiB, and such
streams of one or two dimensions, are libzfp's: there a cell is read in 134 or 230 clocks, so
that four cells or one a clock would need 536 or 230 groups at a time.

{long}
ZHW, the published core of libzfp's authors, codes 0.7 to 1 value a clock. gCOW, an encoder for one
to three dimensions, stays just below 100 Gb/s at 250 MHz, which is 12.5 values a clock; 7 GiB/s,
its mean in figure 4.3, are 7.5. It has no decoder.

## Area

"""
AREA = """
`scripts/rtl area wpr_zfp_enc wpr_zfp_dec wpr_zfp_dec3 --write` measured the cores ([all of
them](results/fpga-area.md)): estimates before place and route of UltraScale+. gCOW is a whole
kernel with its memory interfaces, of all three dimensions; ours are a stream in and a stream out,
without the gathering of cells.
"""
AIMS = """
## Aims

{aims}
Seven levels of logic are the class of 250 MHz. Streams with a precision or an accuracy are decoded
in three dimensions only.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--count", action="store_true", help="writes bench/results/zfp_cores.json")
    group.add_argument("--page", action="store_true", help="writes docs/fpga-zfp.md")
    if parser.parse_args().count:
        count()
    else:
        page()


if __name__ == "__main__":
    main()
