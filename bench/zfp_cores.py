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
    PAGE.write_text(HEAD + table(rates) + RATES.format(**raw) + table(cores) + AREA)


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
Neither side pauses, and a packet's first and last clocks count: about 45 of an encoder, 160, 220
or 330 of a decoder. The encoders are built for all modes, with 64 bytes a beat out: four cells of
one dimension that have more bits take two clocks, and so do eight planes of a cell of three.

With a precision or an accuracy a cell's begin is the end of the one before it, and only the index
tells where groups of 1024 values begin. So the decoder of three dimensions reads up to 74 groups
side by side, of which a packet of {block_size} has 64: 13.8 values a clock at most, less the clocks
in which the stream comes in, which a packet behind it would hide. A stream above 255 KiB, and such
streams of one or two dimensions, are libzfp's: there a cell is read in 134 or 200 clocks, so
that four cells or one a clock would need 536 or 200 groups at a time.

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
