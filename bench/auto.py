#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recipe auto against the best fixed recipe: time until data are expanded behind a link.

Every recipe that auto may choose is measured on every data set (one thread);
the finish time at a link rate follows from ratio and speeds, block by block overlapping, as
`wirepress explain` reckons. auto is measured the same way, with what it costs to choose. Writes
bench/results/auto.json and docs/results/auto.md.

    python3 bench/auto.py                              data that every machine can make
    python3 bench/auto.py build/bench/data/*.f32       files of float32 (.f64, others: bytes)
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import results
import sample_data

from wirepress import api, arrays
from wirepress.commands import bench, explain

LINKS = ("1Gbps", "10Gbps", "25Gbps", "100Gbps")
BLOCK = 512 << 10
GOALS = ("auto", "auto:rel=1e-2")
PAGE = results.ROOT / "docs" / "results" / "auto.md"


def own_data() -> Iterator[tuple[str, Any]]:
    yield "gradients", sample_data.gradients()
    yield "noise", sample_data.noise()
    yield "noise64", sample_data.noise64()
    yield "zeros", np.zeros(1 << 23, np.float32)
    yield "text", np.frombuffer(sample_data.text(), np.uint8)[: 32 << 20]


def read(path: Path, limit: int) -> tuple[str, Any]:
    dtype = {".f32": np.float32, ".f64": np.float64}.get(path.suffix, np.uint8)
    return path.stem, np.fromfile(path, dtype, limit // np.dtype(dtype).itemsize)


@dataclasses.dataclass
class Measured:
    recipe: str
    ratio: float
    compress: float  # bytes a second
    expand: float

    def finish(self, size: int, link: str) -> float:
        rate = api.rate(link)
        return explain.finish(self.ratio, size, BLOCK, self.compress, self.expand, rate)


def measure(
    data: memoryview, view: arrays.View, recipe: str, link: str, seconds: float
) -> Measured:
    subject = bench.frame_subject(data, view, recipe, threads=1, link=link)
    subject.check = lambda: None  # lossy ones differ; the tests check
    row = bench.measure("", data, subject, seconds)
    return Measured(recipe, row.ratio, row.compress_gbps * 1e9, row.decompress_gbps * 1e9)


def rows_of(name: str, array: Any, goal: str, seconds: float) -> Iterator[dict[str, Any]]:
    view = arrays.describe(array if array.dtype != np.uint8 else array.tobytes())
    data = memoryview(np.ascontiguousarray(array)).cast("B")
    candidates = dict.fromkeys(row.recipe for row in api.Compressor(goal).explain_view(view))
    fixed = [measure(data, view, recipe, LINKS[0], seconds) for recipe in candidates]
    for link in LINKS:
        auto = measure(data, view, goal, link, seconds)
        choices = api.Compressor(goal, link=link).explain_view(view)
        model = sum(row.finish * row.size for row in choices if row.chosen)
        chosen: dict[str, int] = {}
        for row in choices:
            if row.chosen:
                chosen[row.recipe] = chosen.get(row.recipe, 0) + row.size
        best = min(fixed, key=lambda m: m.finish(len(data), link))
        yield {
            "data": name,
            "size": len(data),
            "goal": goal,
            "link": link,
            "auto_ms": 1e3 * auto.finish(len(data), link),
            "model_ms": 1e3 * model,
            "chosen": max(chosen, key=lambda r: chosen[r]),
            "best_ms": 1e3 * best.finish(len(data), link),
            "best": best.recipe,
            "raw_ms": 1e3 * fixed[0].finish(len(data), link),
            "fixed": [dataclasses.asdict(m) for m in fixed] if link == LINKS[0] else [],
        }


def page(rows: list[dict[str, Any]], machine: dict[str, Any]) -> str:
    lines = [
        "# What `auto` chooses",
        "",
        "Written by `bench/auto.py`. Milliseconds until the data are expanded behind a link of",
        "that rate, one thread on each side, blocks overlapping. *best* is the best fixed recipe",
        "of those auto may choose, *model* what auto expected of its choice, *raw* plain copies.",
        "",
        f"{machine['cpu']}, {machine['cores']} cores; raw numbers: `bench/results/auto.json`. "
        f"The text is {sample_data.TEXT}.",
        "`wirepress explain FILE` prints the table behind a choice.",
    ]
    for goal in GOALS:
        lines += ["", f"## `{goal}`", ""]
        lines.append(
            "| data | link | auto | model | best | raw | auto / best | mostly chose | best is |"
        )
        lines.append("|---|---|---|---|---|---|---|---|---|")
        for r in rows:
            if r["goal"] == goal:
                lines.append(
                    f"| {r['data']} | {r['link']} | {r['auto_ms']:.1f} | {r['model_ms']:.1f} | "
                    f"{r['best_ms']:.1f} | {r['raw_ms']:.1f} | {r['auto_ms'] / r['best_ms']:.2f} | "
                    f"`{r['chosen']}` | `{r['best']}` |"
                )
        of_goal = [r for r in rows if r["goal"] == goal]
        near = sum(r["auto_ms"] <= 1.05 * r["best_ms"] for r in of_goal)
        lines += ["", f"Within 5 % of the best: {near} of {len(of_goal)}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="raw float32, float64 (.f64) or bytes")
    parser.add_argument("--limit", type=int, default=32, help="MiB of each file (32)")
    parser.add_argument(
        "--seconds", type=float, default=0.4, help="that each timing may take (0.4)"
    )
    parser.add_argument("--output", type=Path, help="the raw results, instead of bench/results")
    args = parser.parse_args()
    named = (read(path, args.limit << 20) for path in args.files)
    data = list(named if args.files else own_data())
    rows = []
    for name, array in data:
        for goal in GOALS if array.dtype != np.uint8 else GOALS[:1]:
            for row in rows_of(name, array, goal, args.seconds):
                rows.append(row)
                print(
                    f"{name:12} {goal:14} {row['link']:8} auto {row['auto_ms']:8.2f} ms, "
                    f"model {row['model_ms']:8.2f}, best {row['best_ms']:8.2f} ({row['best']}), "
                    f"chose {row['chosen']}"
                )
                sys.stdout.flush()
    results.write("auto", {"block_size": BLOCK, "rows": rows}, args.output)
    if not args.output:
        PAGE.write_text(page(rows, bench.machine()))
    near = sum(row["auto_ms"] <= 1.05 * row["best_ms"] for row in rows)
    print(f"within 5 % of the best fixed recipe: {near} of {len(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
