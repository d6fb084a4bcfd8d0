#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels for GPUs beside a copy on the device: raw data and code lie in its memory.

    bench/gpu.py                 build, measure 256 MiB on this machine's GPU, write the result
    bench/gpu.py --from FILE     of what scripts/gpu-check measured on another machine
    bench/gpu.py --emulated      that the benchmark runs: 2 MiB by the emulator; nothing is written

Builds tests/bench/gpu.cu (target gpu_bench). Each code is compared with the processor's. Three
tables: kernels on one block, by events on the stream, beside nvCOMP's codecs where the build knows
them (-DWPR_NVCOMP=FOLDER) and the machine has its library; and whole frames by jobs of the C door,
by the clock on the wall, of 25 MiB and of all. A time is the best of 20, or of what 0.3 s allow;
a fraction is that of the copy's time in the same run. Writes bench/results/gpu-DEVICE.json.
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


# Terabytes of raw data a second on an H200, whose copy moves 4.3 of reads and writes.
AIMS = {
    ("bx:m=5", "encode"): 1.7, ("bx:m=5", "decode"): 1.7,
    ("onebit", "encode"): 3.3, ("onebit", "encode_feedback"): 1.0,
    ("terngrad", "encode_feedback"): 1.0, ("tbq", "encode_feedback"): 1.0,
    ("graddrop", "encode_feedback"): 0.8, ("topk", "encode_feedback"): 0.8,
    ("dgc", "encode_feedback"): 0.5,
    ("zfp:rate=8", "encode"): 0.4, ("zfp:rate=8", "decode"): 0.4,
    ("zfp:accuracy=1e-3", "encode"): 0.4, ("zfp:accuracy=1e-3", "decode"): 0.4,
}  # fmt: skip
BUCKET_AIM = 100e-6  # seconds for the frame of 25 MiB by onebit
BLOCK = ("encode", "decode", "encode_feedback", "decode_add")
FRAME = (
    "compress", "compress_queued", "compress_to_cores", "expand", "expand_from_cores",
    "compress_feedback", "add_from_cores",
)  # fmt: skip


def parse(text: str) -> dict[str, Any]:
    """What the program said: a line for the device, then its rows."""
    head, *rows = map(json.loads, text.splitlines())
    return {**head, "rows": rows}


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
    return parse(ran.stdout)


def cells(row: dict[str, Any], columns: tuple[str, ...], size: int, copy: float) -> str:
    """GB/s of raw data, and in brackets the fraction of the copy's; * where an aim is missed."""
    found = []
    for column in columns:
        seconds = row.get(f"{column}_s", 0)
        if not seconds:
            found.append(f"{'-':>17}")
            continue
        aim = AIMS.get((row["recipe"], column), 0) * 1e12
        short = row["kind"] == "block" and size / seconds < aim
        text = f"{size / seconds / 1e9:.0f} ({copy / seconds:.2f}){'*' if short else ''}"
        found.append(f"{text:>17}")
    return " ".join(found)


def table(measured: dict[str, Any]) -> str:
    copy, size, rows = measured["copy_s"], measured["size"], measured["rows"]
    lines = [
        f"{measured['device']}: {size} bytes, copied in {1e6 * copy:.1f} us; GB/s of raw data, and "
        "the fraction of the copy's speed; *: short of its aim on an H200",
        f"{'one block':<22} {'dtype':<9} {'ratio':>7} " + " ".join(f"{c:>17}" for c in BLOCK),
    ]
    lines += [
        f"{row['recipe']:<22} {row['dtype']:<9} {row['ratio']:>7.2f} "
        f"{cells(row, BLOCK, size, copy)}"
        for row in rows
        if row["kind"] not in ("frame", "pieces")
    ]
    lines.append(f"{'frames by jobs':<22} {'MiB':<9} {'ratio':>7} "
                 + " ".join(f"{c:>17}" for c in FRAME))  # fmt: skip
    for row in (row for row in rows if row["kind"] == "frame"):
        part = row["size"]
        cores = f"  cores: {row['cores_bytes']} bytes" if row["cores_bytes"] else ""
        lines.append(
            f"{row['recipe']:<22} {part >> 20:<9} {row['ratio']:>7.2f} "
            f"{cells(row, FRAME, part, copy * part / size)}{cores}"
        )
    bucket = [r for r in rows if r["kind"] == "frame" and r["recipe"] == "onebit"][:1]
    lines += [
        f"onebit, a frame of {row['size']} bytes: {1e6 * row['compress_s']:.1f} us (aim "
        f"{1e6 * BUCKET_AIM:.0f} for 25 MiB)"
        for row in bucket
    ]
    lines += [
        f"{row['recipe']}, {row['pieces']} pieces of {row['size']} bytes together, with error "
        f"feedback, in us: {1e6 * row['one_job_s']:.1f} as one job, {1e6 * row['jobs_s']:.1f} as "
        f"jobs, {1e6 * row['calls_s']:.1f} by calls"
        for row in rows
        if row["kind"] == "pieces"
    ]
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
        table(measured)  # that it can be made of such rows
        print(f"{len(measured['rows'])} rows, all codes right; an emulator has no speeds")
        return 0
    measured = parse(args.source.read_text()) if args.source else measure("gpu_bench", 256, 20)
    if measured["device"] == "emulated":
        raise SystemExit("an emulator has no speeds: nothing is written")
    print(table(measured))
    name = re.sub(r"[^a-z0-9_]+", "-", measured["device"].lower()).strip("-")
    print(results.write(f"gpu-{name}", measured, args.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
