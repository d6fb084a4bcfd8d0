#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guard: with the library and mpi_codec=auto no MPI call may take 3 % longer than without.

A grid of data kinds, sizes, links and calls (mpi_calls.c). Blocks of calls through the library and
past it alternate in one job; the median of the ratios of neighbours counts. A cell beyond the limit
is measured again, with more pairs, and both are kept: noise seldom strikes twice. Draws
docs/results/mpi_guard.png and prints the worst cells. Cells that are in the raw results
already are not measured again (--again does). Exit status 1 if a cell is beyond the limit in both.

--quick: two sizes, three kinds and a fast link, half a minute.
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

KINDS = ("noise", "text", "dense", "sparse", "smooth", "zeros")
CALLS = ("pingpong", "exchange", "bcast", "allreduce", "allgather", "alltoall")
SIZES = tuple(2**i for i in (3, 6, 9, 12, 14, 16, 17, 19, 21, 23, 25, 26))
LINKS = ("shm", "none", "1gbit")
LINK_NAMES = {"shm": "shared memory", "none": "TCP, unshaped", "1gbit": "TCP, 1 Gb/s"}
LIMIT = 1.03

Cell = tuple[str, str, str, int]  # link, call, kind, size


def measure(
    options: argparse.Namespace,
    link: str,
    call: str,
    kinds: list[str],
    sizes: list[int],
    pairs: int,
) -> list[dict[str, Any]]:
    arguments = {
        "CALL": call,
        "KIND": ",".join(kinds),
        "SIZE": ",".join(map(str, sizes)),
        "PAIRS": pairs,
        "BLOCK": 0.004,
        "MOST": options.most,
    }
    lib = mpi_jobs.library(options.mpi, options.build)
    if link == "shm":
        rows, _ = mpi_jobs.run(options.mpi, lib, None, 2, arguments, {}, 1200)
    else:
        with mpi_jobs.Hosts(2, link) as hosts:
            rows, _ = mpi_jobs.run(options.mpi, lib, hosts, 1, arguments, {}, 1200)
    return [{"link": link, "ratio": round(mpi_jobs.ratio(row), 4), **row} for row in rows]


def cell_of(row: dict[str, Any]) -> Cell:
    return row["link"], row["call"], row["kind"], row["size"]


def save(options: argparse.Namespace, cells: dict[Cell, dict[str, Any]]) -> None:
    results.write("mpi_guard", {"mpi": options.mpi, "rows": list(cells.values())}, options.raw)


def grid(options: argparse.Namespace, cells: dict[Cell, dict[str, Any]]) -> None:
    for link in options.links:
        for call in options.calls:
            missing = [
                (kind, size)
                for kind in options.kinds
                for size in options.sizes
                if (link, call, kind, size) not in cells
            ]
            if missing:
                kinds = [kind for kind in options.kinds if kind in {m[0] for m in missing}]
                sizes = sorted({size for _, size in missing})
                for row in measure(options, link, call, kinds, sizes, options.pairs):
                    cells[cell_of(row)] = row
                save(options, cells)
            mine = {c: r for c, r in cells.items() if c[:2] == (link, call)}
            slow = [c for c, r in mine.items() if r["ratio"] > LIMIT and "second" not in r]
            # A kind at a time: what the library learnt of others is not to help it.
            for kind in dict.fromkeys(c[2] for c in slow):
                sizes = sorted(c[3] for c in slow if c[2] == kind)
                for row in measure(options, link, call, [kind], sizes, 3 * options.pairs):
                    first = cells[cell_of(row)]
                    first["second"] = row["ratio"]
            save(options, cells)
            worst = max(mine.values(), key=final)
            print(f"{LINK_NAMES.get(link, link):14s} {call:10s} worst {final(worst):.3f} at "
                  f"{worst['kind']}, {worst['size']} bytes", flush=True)  # fmt: skip


def final(row: dict[str, Any]) -> float:
    return min(row["ratio"], row.get("second", row["ratio"]))


def size_name(size: int) -> str:
    for unit, name in ((2**20, "M"), (2**10, "K")):
        if size >= unit:
            return f"{size // unit}{name}"
    return str(size)


def draw(options: argparse.Namespace, cells: dict[Cell, dict[str, Any]]) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no heat map: pip install matplotlib", file=sys.stderr)
        return
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import numpy as np

    links = [link for link in LINKS if any(cell[0] == link for cell in cells)]
    calls = [call for call in CALLS if any(cell[1] == call for cell in cells)]
    figure, axes = plt.subplots(
        len(calls),
        len(links),
        figsize=(4.6 * len(links), 1.9 * len(calls)),
        squeeze=False,
        layout="constrained",
    )
    image = None
    for i, call in enumerate(calls):
        for j, link in enumerate(links):
            table = np.full((len(options.kinds), len(options.sizes)), np.nan)
            for a, kind in enumerate(options.kinds):
                for b, size in enumerate(options.sizes):
                    if row := cells.get((link, call, kind, size)):
                        table[a, b] = final(row)
            axis = axes[i][j]
            image = axis.imshow(table, cmap="RdYlGn_r", vmin=0.9, vmax=1.1, aspect="auto")
            for (a, b), value in np.ndenumerate(table):
                if not np.isnan(value):
                    color = "white" if abs(value - 1) > 0.07 else "black"
                    axis.text(
                        b, a, f"{value:.2f}", ha="center", va="center", fontsize=5, color=color
                    )
            axis.set_xticks(range(len(options.sizes)))
            axis.set_xticklabels([size_name(s) for s in options.sizes], fontsize=6)
            axis.set_yticks(range(len(options.kinds)))
            axis.set_yticklabels(options.kinds if j == 0 else [""] * len(options.kinds), fontsize=7)
            axis.set_title(f"{call}, {LINK_NAMES.get(link, link)}", fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.5, label="time with wirepress / without")
    figure.savefig(options.figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of blocks for a cell")
    parser.add_argument("--most", type=float, default=1.0, help="seconds for a cell, but 3 pairs")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--links", nargs="*", default=list(LINKS))
    parser.add_argument("--calls", nargs="*", default=list(CALLS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--raw", type=Path, default=results.FOLDER / "mpi_guard.json")
    parser.add_argument("--figure", type=Path, default=ROOT / "docs" / "results" / "mpi_guard.png")
    options = parser.parse_args()
    if options.quick:
        options.kinds, options.sizes, options.pairs = ["noise", "text", "zeros"], [8, 2**20], 5
        options.links, options.calls = ["shm", "none"], ["pingpong", "bcast"]
        options.raw = mpi_jobs.BUILD / "mpi_guard_quick.json"
        options.figure = mpi_jobs.BUILD / "mpi_guard_quick.png"
        options.again = True
    if reason := mpi_jobs.why_not():
        print(f"only shared memory: {reason}", file=sys.stderr)
        options.links = [link for link in options.links if link == "shm"]
    cells: dict[Cell, dict[str, Any]] = {}
    if options.raw.exists():
        cells = {cell_of(row): row for row in json.loads(options.raw.read_text())["rows"]}
    if options.again:
        chosen = (options.links, options.calls, options.kinds, options.sizes)
        cells = {
            cell: row
            for cell, row in cells.items()
            if not all(part in some for part, some in zip(cell, chosen, strict=True))
        }
    grid(options, cells)
    draw(options, cells)
    rows = sorted(cells.values(), key=final, reverse=True)
    for row in rows[:10]:
        print(
            f"{final(row):.3f}  {row['link']:6s} {row['call']:10s} {row['kind']:7s} {row['size']}"
        )
    beyond = sum(final(row) > LIMIT for row in rows)
    print(f"{len(rows)} cells, {beyond} beyond {LIMIT}; the worst {final(rows[0]):.3f}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
