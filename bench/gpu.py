#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels for GPUs beside a copy on the device: raw data and code lie in its memory.

    bench/gpu.py                 build, measure 256 MiB on this machine's GPU, write the result
    bench/gpu.py --from FILE     of what scripts/gpu-check measured on another machine
    bench/gpu.py --emulated      that the benchmark runs: 2 MiB by the emulator; nothing is written

Builds tests/bench/gpu.cu (target gpu_bench). Each code is compared with the portable kernel's
before its time counts. A time is the best of 20, by events on the stream; a fraction is that of the
copy's time in the same run. Writes bench/results/gpu-DEVICE.json.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import results
from frame_cost import BUILD, configure

NO_DEVICE = 77


def measure(program: str, mib: int, rounds: int) -> dict[str, Any]:
    configure()
    subprocess.run(["cmake", "--build", str(BUILD), "--target", program], check=True)
    ran = subprocess.run(
        [str(BUILD / "bench" / program), str(mib), str(rounds)], capture_output=True, text=True
    )
    if ran.returncode == NO_DEVICE:
        raise SystemExit(f"{ran.stderr.strip()}; --emulated tries the benchmark without one")
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return json.loads(ran.stdout)


def table(measured: dict[str, Any]) -> str:
    copy = measured["copy_s"]
    columns = ("encode", "decode", "encode_feedback", "decode_add")
    lines = [
        f"{measured['device']}: {measured['size']} bytes, copied in {1e6 * copy:.1f} us; fractions "
        "of the copy's speed",
        f"{'recipe':<12} {'dtype':<9} {'ratio':>7} " + " ".join(f"{c:>15}" for c in columns),
    ]
    for row in measured["rows"]:
        times = [row[f"{column}_s"] for column in columns]
        cells = " ".join(f"{copy / time if time else 0:>15.2f}" for time in times)
        lines.append(f"{row['recipe']:<12} {row['dtype']:<9} {row['ratio']:>7.2f} {cells}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.emulated:
        measured = measure("gpu_bench_emulated", 2, 1)
        print(f"{len(measured['rows'])} rows, all codes right; an emulator has no speeds")
        return 0
    measured = json.loads(args.source.read_text()) if args.source else measure("gpu_bench", 256, 20)
    if measured["device"] == "emulated":
        raise SystemExit("an emulator has no speeds: nothing is written")
    print(table(measured))
    name = re.sub(r"[^a-z0-9_]+", "-", measured["device"].lower()).strip("-")
    print(results.write(f"gpu-{name}", measured, args.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
