#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much faster MPI calls are with the library: tables by codec and link rate.

Ping-pong and Bcast of 64 KiB to 64 MiB, Allreduce of 25 and 100 MiB of float gradients, sparse and
dense, on hosts joined at several rates (mpi_calls.c; needs root). Blocks of calls through the
library and past it alternate in one job; a figure is the median of the ratios of neighbours: how
many times as fast as plain MPI. "ring": a good Allreduce written with plain MPI, so that a better
algorithm does not pass for compression. Results that are there are not measured again (--again).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import mpi_jobs
import results
from results import ROOT

RATES = ("200mbit", "1gbit", "2.5gbit", "10gbit")
CODECS = {  # name in the table: settings
    "auto": {},
    "lz4": {"WIREPRESS_MPI_CODEC": "lz4:1"},
    "zstd": {"WIREPRESS_MPI_CODEC": "zstd:1"},
    "bx lossless": {"WIREPRESS_MPI_CODEC": "bx:m=0"},
    "rel 2^-6": {"WIREPRESS_MPI_ERROR": "bits:6"},
}
Key = tuple[str, str, int, str, str, int]  # rate, codec, ranks, call, kind, size


def jobs(rate: str) -> list[tuple[int, str, str, list[int]]]:
    """Ranks, calls, kinds, sizes; a slow link gets fewer of the large ones."""
    most = 2**24 if rate == "200mbit" else 2**26
    sizes = [size for size in (2**16, 2**20, 2**24, 2**26) if size <= most]
    gradients = [25 * 2**20] if rate == "200mbit" else [25 * 2**20, 100 * 2**20]
    return [
        (2, "pingpong,bcast", "text,sparse", sizes),
        (2, "allreduce", "dense,sparse", gradients[:1]),
        (4, "allreduce", "dense,sparse", gradients),
    ]


def measure(options: argparse.Namespace, rows: dict[Key, dict[str, Any]]) -> None:
    lib = mpi_jobs.library(options.mpi, options.build)
    for rate in options.rates:
        for ranks, calls, kinds, sizes in jobs(rate):
            if ranks not in options.ranks or not set(calls.split(",")) & set(options.only):
                continue
            with mpi_jobs.Hosts(ranks, rate) as hosts:
                for codec in options.codecs:
                    if not options.again and any(
                        key[:3] == (rate, codec, ranks) and key[3] in calls for key in rows
                    ):
                        continue
                    arguments = {
                        "CALL": calls,
                        "KIND": kinds,
                        "SIZE": ",".join(map(str, sizes)),
                        "PAIRS": options.pairs,
                        "WARM": options.warm,
                        "MOST": 1.0,
                        "RING": int(codec == "auto"),
                    }
                    measured, _ = mpi_jobs.run(
                        options.mpi, lib, hosts, 1, arguments, CODECS[codec], 1800
                    )
                    for row in measured:
                        key = (rate, codec, ranks, row["call"], row["kind"], row["size"])
                        rows[key] = {"rate": rate, "codec": codec, "ranks": ranks, **row}
                    results.write(
                        "mpi_speed", {"mpi": options.mpi, "rows": list(rows.values())}, options.raw
                    )
                    print(f"{rate} {calls} {ranks} ranks: {codec}", flush=True)


def size_name(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 2**20 else f"{size >> 10} KiB"


def table(rows: dict[Key, dict[str, Any]], codecs: list[str]) -> str:
    text = f"| link | call | data | size | ranks | plain ms | {' | '.join(codecs)} | ring |\n"
    text += "|---|---|---|---:|---:|---:|" + "---:|" * (len(codecs) + 1) + "\n"
    ordered = sorted(rows, key=lambda key: RATES.index(key[0]))
    for key in dict.fromkeys((k[0], k[3], k[4], k[5], k[2]) for k in ordered):
        rate, call, kind, size, ranks = key
        cells, plain, ring = [], 0.0, ""
        for codec in codecs:
            row = rows.get((rate, codec, ranks, call, kind, size))
            cells.append(f"{1 / mpi_jobs.ratio(row):.2f}" if row else "")
            if row and "ring" in row:
                ring = f"{1 / mpi_jobs.ratio(row, 'ring'):.2f}"
            if row and not plain:
                plain = 1e3 * sorted(row["plain"])[len(row["plain"]) // 2]
        text += f"| {rate} | {call} | {kind} | {size_name(size)} | {ranks} | {plain:.3g} | "
        text += f"{' | '.join(cells)} | {ring} |\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--warm", type=int, default=9, help="calls before; contests take some")
    parser.add_argument("--rates", nargs="*", default=list(RATES))
    parser.add_argument("--codecs", nargs="*", default=list(CODECS))
    parser.add_argument("--ranks", nargs="*", type=int, default=[2, 4])
    parser.add_argument("--only", nargs="*", default=["pingpong", "bcast", "allreduce"])
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--raw", type=Path, help="bench/results/mpi_speed[-mpich].json")
    parser.add_argument("--page", type=Path, help="docs/results/mpi[-mpich].md")
    options = parser.parse_args()
    suffix = "-mpich" if options.mpi == "mpich" else ""
    options.raw = options.raw or results.FOLDER / f"mpi_speed{suffix}.json"
    options.page = options.page or ROOT / "docs" / "results" / f"mpi{suffix}.md"
    if reason := mpi_jobs.why_not():
        print(f"mpi_speed: {reason}", file=sys.stderr)
        return 77
    rows: dict[Key, dict[str, Any]] = {}
    if options.raw.exists():
        for row in json.loads(options.raw.read_text())["rows"]:
            key = (row["rate"], row["codec"], row["ranks"], row["call"], row["kind"], row["size"])
            rows[key] = row
    measure(options, rows)
    text = table(rows, [name for name in CODECS if any(key[1] == name for key in rows)])
    print(text)
    words = "mpi_speed" if options.mpi == "openmpi" else '"mpi_speed --mpi mpich"'
    about = f"Times as fast as plain MPI; made by `make bench ARGS={words}`.\n\n"
    results.put(options.page, "mpi_speed", about + text, "# MPI\n\n## Measured\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
