#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recipe auto against the best fixed recipe: time until data are expanded behind a link.

Every recipe that auto may choose is measured on every data set (one thread);
the finish time at a link rate follows from ratio and speeds, block by block overlapping, as
`wirepress explain` reckons. auto is measured the same way, with what it costs to choose, in turns
with the fixed recipes that came closest to the best, and the median of the turns' ratios counts.
Writes bench/results/auto.json and docs/results/auto.md.

    python3 bench/auto.py                              data that every machine can make
    python3 bench/auto.py build/bench/data/*.f32       files of float32 (.f64, others: bytes)
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
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


# What a file holds, by its suffix; bfloat16 as its words. Others hold bytes.
TYPES = {
    ".f32": ("float32", np.float32),
    ".f64": ("float64", np.float64),
    ".f16": ("float16", np.float16),
    ".bf16": ("bfloat16", np.uint16),
}


@dataclasses.dataclass
class Data:
    name: str
    array: Any
    dtype: str


def own_data() -> Iterator[Data]:
    yield Data("gradients", sample_data.gradients(), "float32")
    yield Data("noise", sample_data.noise(), "float32")
    yield Data("noise64", sample_data.noise64(), "float64")
    yield Data("zeros", np.zeros(1 << 23, np.float32), "float32")
    yield Data("text", np.frombuffer(sample_data.text(), np.uint8)[: 32 << 20], "bytes")


def read(path: Path, limit: int) -> Data:
    dtype, item = TYPES.get(path.suffix, ("bytes", np.uint8))
    array = np.fromfile(path, item, limit // np.dtype(item).itemsize)
    name = path.stem if path.suffix in (".f32", ".f64") else path.name
    return Data(name, array, dtype)


@dataclasses.dataclass
class Measured:
    recipe: str
    ratio: float
    compress: float  # bytes a second
    expand: float

    def finish(self, size: int, link: str) -> float:
        rate = api.rate(link)
        return explain.finish(self.ratio, size, BLOCK, self.compress, self.expand, rate)


class Room:
    """A data set, and the buffers of all that is measured on it: where they lie changes speeds."""

    def __init__(self, data: Data) -> None:
        typed = data.dtype != "bytes"
        self.view = arrays.describe(
            data.array if typed else data.array.tobytes(), data.dtype if typed else None
        )
        self.size = data.array.nbytes
        self._frame = bytearray(api.Compressor("store").bound(self.size) + (1 << 20))
        self._out = bytearray(self.size)

    def subject(self, recipe: str, link: str) -> bench.Subject:
        compressor = api.Compressor(recipe, threads=1, link=link)
        size = 0

        def compress() -> int:
            nonlocal size
            size = compressor.compress_view_into(self.view, self._frame)
            return size

        def expand() -> None:
            compressor.decompress(memoryview(self._frame)[:size], self._out)

        # lossy ones differ; the tests check
        return bench.Subject(recipe, "auto", compress, expand, lambda: None)

    def measure(self, recipe: str, link: str, seconds: float) -> Measured:
        data = memoryview(self._out)
        row = bench.measure("", data, self.subject(recipe, link), seconds)
        return Measured(recipe, row.ratio, row.compress_gbps * 1e9, row.decompress_gbps * 1e9)

    def turns(self, recipes: list[str], link: str, turns: int) -> list[list[float]]:
        """Finish times of each recipe, by turn."""
        subjects = [self.subject(recipe, link) for recipe in recipes]
        finishes: list[list[float]] = [[] for _ in recipes]
        for turn in range(turns + 1):
            for i, subject in enumerate(subjects):
                ratio = self.size / subject.compress()
                speeds = [
                    self.size / bench.time_of(f) for f in (subject.compress, subject.decompress)
                ]
                if turn:  # the first warms up
                    finishes[i].append(Measured(recipes[i], ratio, *speeds).finish(self.size, link))
        return finishes


def rows_of(data: Data, goal: str, seconds: float, turns: int) -> Iterator[dict[str, Any]]:
    room = Room(data)
    candidates = dict.fromkeys(row.recipe for row in api.Compressor(goal).explain_view(room.view))
    fixed = [room.measure(recipe, LINKS[0], seconds) for recipe in candidates]
    for link in LINKS:
        choices = api.Compressor(goal, link=link).explain_view(room.view)
        model = sum(row.finish * row.size for row in choices if row.chosen)
        chosen: dict[str, int] = {}
        for row in choices:
            if row.chosen:
                chosen[row.recipe] = chosen.get(row.recipe, 0) + row.size
        mostly = max(chosen, key=lambda r: chosen[r])
        ranked = sorted(fixed, key=lambda m: m.finish(room.size, link))
        close = list(dict.fromkeys([*(m.recipe for m in ranked[:3]), mostly, fixed[0].recipe]))
        auto, *others = room.turns([goal, *close], link, turns)
        medians = {r: statistics.median(t) for r, t in zip(close, others, strict=True)}
        best = min(medians, key=lambda r: medians[r])
        ratios = sorted(a / b for a, b in zip(auto, others[close.index(best)], strict=True))
        yield {
            "data": data.name,
            "size": room.size,
            "goal": goal,
            "link": link,
            "auto_ms": 1e3 * statistics.median(auto),
            "model_ms": 1e3 * model,
            "chosen": mostly,
            "best_ms": 1e3 * medians[best],
            "best": best,
            "raw_ms": 1e3 * medians[fixed[0].recipe],
            "auto_by_best": statistics.median(ratios),
            "quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]],
            "close_ms": {r: 1e3 * t for r, t in medians.items()},
            "fixed": [dataclasses.asdict(m) for m in fixed] if link == LINKS[0] else [],
        }


def page(rows: list[dict[str, Any]], machine: dict[str, Any]) -> str:
    lines = [
        "# What `auto` chooses",
        "",
        "Written by `bench/auto.py`. Milliseconds until the data are expanded behind a link of",
        "that rate, one thread on each side, blocks overlapping. *best* is the best fixed recipe",
        "of those auto may choose, *model* what auto expected of its choice, *raw* plain copies.",
        "Medians of turns; *auto / best* is the median of the turns' ratios, in brackets the",
        "quartiles: where 1.05 lies between them, the cell may fall on the other side next time.",
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
                    f"{r['best_ms']:.1f} | {r['raw_ms']:.1f} | {r['auto_by_best']:.2f} "
                    f"({r['quartiles'][0]:.2f}-{r['quartiles'][1]:.2f}) | "
                    f"`{r['chosen']}` | `{r['best']}` |"
                )
        of_goal = [r for r in rows if r["goal"] == goal]
        near = sum(r["auto_by_best"] <= 1.05 for r in of_goal)
        worst = max(r["auto_by_best"] for r in of_goal)
        lines += ["", f"Within 5 % of the best: {near} of {len(of_goal)}; the worst {worst:.2f}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "files", nargs="*", type=Path, help="raw values (.f32, .f64, .f16, .bf16) or bytes"
    )
    parser.add_argument("--goals", nargs="+", default=GOALS, help="these alone")
    parser.add_argument("--limit", type=int, default=32, help="MiB of each file (32)")
    parser.add_argument(
        "--seconds", type=float, default=0.4, help="that each first timing may take (0.4)"
    )
    parser.add_argument("--turns", type=int, default=9, help="of auto and those close (9)")
    parser.add_argument("--output", type=Path, help="the raw results, instead of bench/results")
    args = parser.parse_args()
    named = (read(path, args.limit << 20) for path in args.files)
    rows = []
    for data in list(named if args.files else own_data()):
        for goal in args.goals if data.dtype != "bytes" else GOALS[:1]:
            for row in rows_of(data, goal, args.seconds, args.turns):
                rows.append(row)
                print(
                    f"{data.name:12} {goal:14} {row['link']:8} auto {row['auto_ms']:8.2f} ms, "
                    f"model {row['model_ms']:8.2f}, best {row['best_ms']:8.2f} ({row['best']}), "
                    f"chose {row['chosen']}, {row['auto_by_best']:.3f}"
                )
                sys.stdout.flush()
    results.write("auto", {"block_size": BLOCK, "rows": rows}, args.output)
    if not args.output:
        PAGE.write_text(page(rows, bench.machine()))
    near = sum(row["auto_by_best"] <= 1.05 for row in rows)
    print(f"within 5 % of the best fixed recipe: {near} of {len(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
