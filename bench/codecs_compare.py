#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of every codec and kernel in two builds, as new over old: what a change costs or gains.

    bench/codecs_compare.py OLD NEW [--data FOLDER] [--rounds 3] [--within 0.02] [--out FILE]

OLD and NEW are two builds of the target `codecs` (build/dev/bench/codecs). FOLDER holds the data
that bench/codecs.py made (build/bench/data). Both programs measure the same buffers by turns, in
thread CPU time on one core, and the best turn of each cell counts. Cells outside the bound are
measured again, up to --again times, since noise only makes a cell slower. Prints the cells that
stay outside.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import results


def neighbour() -> ModuleType:
    """bench/codecs.py, whose name is also one of Python's own modules."""
    spec = importlib.util.spec_from_file_location(
        "codecs_bench", Path(__file__).with_name("codecs.py")
    )
    assert spec and spec.loader
    module = sys.modules["codecs_bench"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = neighbour()

MIB = 1 << 20
WAYS = ("encode", "decode", "decode_add", "encode_feedback")
Runs = list[bench.Run]
Cell = tuple[str, str, str, str]  # run, recipe, kernel, way
Best = dict[Cell, list[float]]  # GB/s of the old build, of the new one


def all_runs() -> Runs:
    return [
        bench.Run(bench.data_of("wave_t800"), 4 * MIB, (*bench.EXACT, *bench.FIELD)),
        bench.Run(bench.data_of("gradsyn"), 4 * MIB, (*bench.EXACT, *bench.GRADIENT)),
        bench.Run(bench.data_of("wave_t400", "float64"), 4 * MIB, (*bench.EXACT64, *bench.FIELD64)),
    ]


def take_turns(runs: Runs, rounds: int, args: argparse.Namespace, best: Best) -> None:
    for _ in range(rounds):
        for run in runs:
            for which, program in enumerate((args.old, args.new)):
                for row in bench.measure(run, args.data, program, args.cpu):
                    for way in (w for w in WAYS if w in row):
                        cell = (run.name, row["subject"], row.get("variant", ""), way)
                        kept = best.setdefault(cell, [0.0, 0.0])
                        kept[which] = max(kept[which], row[way])


def outside(best: Best, within: float) -> dict[Cell, float]:
    ratios = {cell: new / old for cell, (old, new) in best.items() if old and new}
    return {cell: ratio for cell, ratio in ratios.items() if ratio < 1 - within}


def narrowed(runs: Runs, cells: dict[Cell, float]) -> Runs:
    """The runs with only the recipes of these cells."""
    wanted = [(run, {cell[1] for cell in cells if cell[0] == run.name}) for run in runs]
    return [dataclasses.replace(run, recipes=tuple(r)) for run, r in wanted if r]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("--data", type=Path, default=bench.WORK / "data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--again", type=int, default=3)
    parser.add_argument("--within", type=float, default=0.02)
    parser.add_argument("--seconds", type=float, default=0.05, help="a subject and turn")
    parser.add_argument("--cpu", type=int, help="the core to measure on (the last)")
    parser.add_argument("--out", type=Path, help="JSON goes here")
    args = parser.parse_args()

    runs = [dataclasses.replace(run, seconds=args.seconds) for run in all_runs()]
    bench.make_data(args.data, args.old.parent.parent, runs, None)
    best: Best = {}
    take_turns(runs, args.rounds, args, best)
    for _ in range(args.again):
        if not (slow := outside(best, args.within)):
            break
        take_turns(narrowed(runs, slow), args.rounds, args, best)
    slow = outside(best, args.within)
    for cell, ratio in sorted(slow.items(), key=lambda item: item[1]):
        print(f"{ratio:.3f}  {' '.join(cell)}")
    both = [new / old for old, new in best.values() if old and new]
    alone = sorted({" ".join(cell[1:3]) for cell, speeds in best.items() if not all(speeds)})
    print(f"{len(both)} cells, {len(slow)} below {1 - args.within:.2f} of the old build; "
          f"median {sorted(both)[len(both) // 2]:.3f}")  # fmt: skip
    if alone:
        print("only one build knows", ", ".join(alone))
    if args.out:
        rows = [
            dict(zip(("run", "recipe", "kernel", "way"), cell, strict=True))
            | {"old_gbps": old, "new_gbps": new}
            for cell, (old, new) in sorted(best.items())
        ]
        results.write("codecs_compare", {"rows": rows}, args.out)


if __name__ == "__main__":
    main()
