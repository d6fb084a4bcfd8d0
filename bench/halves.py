#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bucket of bfloat16 gradients through the hook's own steps, with and without float32 of it.

Codes a bucket piece by piece with error feedback, and takes the mean of two such messages, as
`wirepress.torch.compress` does on two ranks: once on a copy of the bucket as float32, which the
hook made before, and once on the bucket as it lies. One thread, processor time, in turns; the best
of each counts. Writes bench/results/halves.json.
"""

from __future__ import annotations

import argparse
import time

import results
import torch

from wirepress.torch import exchange
from wirepress.torch.coder import Coder
from wirepress.torch.ddp.buckets import on_host
from wirepress.torch.ddp.plan import PIECE

RECIPES = ("onebit", "tbq", "topk:0.001", "int8", "planes")


class Bucket:
    def __init__(self, n: int, recipe: str) -> None:
        torch.manual_seed(1)
        self._gradient = (torch.randn(n) * 1e-3).bfloat16()
        self._values = self._gradient.clone()
        self._residual = torch.zeros(n)
        self._coder = Coder(recipe)
        self._frames = [
            torch.empty(self._coder.bound(PIECE), dtype=torch.uint8) for _ in range(0, n, PIECE)
        ]
        self._pieces = [(at, min(at + PIECE, n)) for at in range(0, n, PIECE)]

    def step(self, halves: bool) -> tuple[float, float]:
        """Seconds until it is coded, and until the mean of two is there."""
        self._values.copy_(self._gradient)
        begin = time.thread_time()
        place = on_host(self._values, halves=halves)
        sizes = []
        for (start, end), room in zip(self._pieces, self._frames, strict=True):
            feedback = None if self._coder.lossless else self._residual[start:end]
            sizes.append(self._coder.encode(place.values[start:end], room, feedback))
        coded = time.thread_time()
        for (start, end), room, size in zip(self._pieces, self._frames, sizes, strict=True):
            values = place.values[start:end]
            mean = exchange.FLOATS.beside(values)
            self._coder.decode(room[:size], mean)
            self._coder.decode_add(room[:size], mean)
            exchange.put(mean.mul_(0.5), values)
        place.fetch()
        return coded - begin, time.thread_time() - coded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--values", type=int, default=25 << 19, help="of a bucket: 25 MiB")
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for recipe in RECIPES:
        bucket = Bucket(args.values, recipe)
        best = {False: [1e9, 1e9], True: [1e9, 1e9]}
        for turn in range(args.turns + 1):
            for halves in best:
                spent = bucket.step(halves)
                if turn:  # the first warms up
                    best[halves] = [min(a, b) for a, b in zip(best[halves], spent, strict=True)]
        row = {"recipe": recipe, "values": args.values}
        for halves, name in (False, "float32"), (True, "bfloat16"):
            row |= {f"encode_{name}_ms": 1e3 * best[halves][0],
                    f"mean_{name}_ms": 1e3 * best[halves][1]}  # fmt: skip
        rows.append(row)
        print({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    results.write("halves", {"rows": rows})


if __name__ == "__main__":
    main()
