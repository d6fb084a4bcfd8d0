#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values a clock of the zfp encoder of rtl/zfp, simulated, and the page about it.

    bench/zfp_cores.py --count     counts clocks, writes bench/results/zfp_cores.json
    bench/zfp_cores.py --page      writes docs/fpga-zfp.md from it and from rtl_area.json

The field is a sum of waves with a little noise; noise alone is what takes most bits. Each is coded
in blocks of 256 KiB, each a packet; clocks are those from a packet's first beat to its last one.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import results
import sample_data

import wirepress

SIDE = 512
BLOCK = "256KiB"
PAGE = results.ROOT / "docs" / "fpga-zfp.md"
MODES = ("rate=4", "rate=8", "rate=16", "precision=12", "precision=32", "accuracy=1e-2",
         "accuracy=1e-5")  # fmt: skip


def field() -> np.ndarray:
    x = np.arange(SIDE, dtype=np.float64)
    waves = sum(np.outer(np.sin(x / k + k), np.cos(x / (2 * k + 3))) for k in (5, 17, 40))
    return (waves + 1e-4 * sample_data.noise(SIDE * SIDE).reshape(SIDE, SIDE)).astype(np.float32)


def measured(name: str, values: np.ndarray, mode: str) -> dict[str, Any]:
    recipe = f"zfp:{mode}"
    before = wirepress.engine_clocks("rtl")
    frame = wirepress.compress(values, recipe, block_size=BLOCK, engine="rtl", threads=1)
    clocks = wirepress.engine_clocks("rtl") - before
    if bytes(frame) != bytes(wirepress.compress(values, recipe, block_size=BLOCK, engine="cpu")):
        raise SystemExit(f"{name}, {recipe}: the core's bytes are not libzfp's")
    if clocks == 0:
        raise SystemExit(f"{name}, {recipe}: not coded on the core")
    return {"data": name, "dimensions": values.ndim, "mode": mode, "values": values.size,
            "bits_a_value": round(8 * len(bytes(frame)) / values.size, 2),
            "clocks": clocks}  # fmt: skip


def count() -> None:
    data = {"field": field(), "noise": sample_data.noise(SIDE * SIDE).reshape(SIDE, SIDE)}
    rows = [measured(name, values, mode) for name, square in data.items()
            for values in (square.reshape(-1), square) for mode in MODES]  # fmt: skip
    results.write("zfp_cores", {"block_size": BLOCK, "side": SIDE, "rows": rows})


def table(rows: list[tuple[str, ...]]) -> str:
    heads, *rest = rows
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *rest))


def page() -> None:
    raw = json.loads((results.FOLDER / "zfp_cores.json").read_text())
    area = json.loads((results.FOLDER / "rtl_area.json").read_text())
    rates = [("data", "dimensions", "mode", "bits a value", "clocks", "values a clock")]
    rates += [(row["data"], str(row["dimensions"]), row["mode"], f"{row['bits_a_value']:.2f}",
               str(row["clocks"]), f"{row['values'] / row['clocks']:.2f}")
              for row in raw["rows"]]  # fmt: skip
    cores = [("core", "LUT", "FF", "BRAM", "DSP", "depth")]
    cores += [(row["name"], str(row["lut"]), str(row["ff"]), str(row["bram"]), str(row["dsp"]),
               f"{row['depth']:.1f}")
              for row in area["rows"] if row["top"] == "wpr_zfp_enc"]  # fmt: skip
    cores.append(("gCOW (published: table 4.1, U250)", "380591", "358933", "228.5", "441", "-"))
    PAGE.write_text(HEAD + table(rates) + RATES.format(**raw) + table(cores) + AREA)


HEAD = """# The zfp encoder on an FPGA

Values a clock of the encoder of [`rtl/zfp`](../rtl/zfp/README.md), counted in simulation. Its bytes
are those of libzfp.

"""
RATES = """
    {command}
    python3 bench/zfp_cores.py --page

counted the clocks ({date}, [raw](../bench/results/zfp_cores.json))
and wrote this page. The data are {side} x {side} values, as one or two dimensions, in blocks of
{block_size}; bits a value are those of the whole frame. Neither side pauses, and a packet's first
and last clocks count. The core is built for all modes, with 64 bytes a beat out: four cells of one
dimension that have more bits take two clocks.

ZHW, the published core of libzfp's authors, codes 0.7 to 1 value a clock. gCOW, an encoder for one
to three dimensions, stays just below 100 Gb/s at 250 MHz, which is 12.5 values a clock.

## Area

"""
AREA = """
`scripts/rtl area wpr_zfp_enc --write` measured the cores ([all of them](results/fpga-area.md)):
estimates before place and route of UltraScale+. gCOW is a whole kernel with its memory interfaces,
of all three dimensions; ours are a stream in and a stream out, without the gathering of cells.
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
