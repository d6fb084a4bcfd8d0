#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deltas of weights: bits a changed word and speed, beside the formats of other projects.

    bench/deltas.py              all of it; some minutes, most of them training
    bench/deltas.py --quick --out FILE     a smoke test; no page
    bench/deltas.py --page       the page from the last results

A transformer for bytes (that of gradients.py) is trained with AdamW, 60 steps at 3e-4, then 9 at
each rate. Of the last 8 steps the bfloat16 weights before and after are the data, at most
2^24 words of them. The formats of
others are made anew from their descriptions, by NumPy and the zstandard package:

    verl, vLLM    32-bit place and new word
    NeMo-RL       gaps of 16 bits, new words, zstd level 1
    PULSE         gaps of 1 to 3 bytes, new words, zstd level 1
    slime, miles  XOR of all bytes, zstd level 1

Only the last is timed: the others' places are found by NumPy here, by other means there. "Compare"
is NumPy's != of both arrays in pieces of 128 KiB. Bound: entropy of the places, if independent, and
of the steps. Seconds of one thread, formats in turns, the best of all rounds.

Writes bench/results/deltas.json and docs/results/deltas.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import torch
except ImportError:
    sys.exit("deltas: there is no PyTorch in this Python; make setup puts it into .venv")

import gradients
import numpy as np
import results
import zstandard

import wirepress
import wirepress.torch as wt

PAGE = results.ROOT / "docs" / "results" / "deltas.md"
WORK = results.ROOT / "build" / "bench"
RATES = (1e-6, 1e-5, 1e-4, 3e-4)
STEPS, MORE = 60, 9  # before the rates differ, and at each of them
KEPT = 8  # steps at the end of each rate
FAR = 1 << 28  # bytes, more than caches hold
MOST = 1 << 24  # words that are measured, from the first of these steps on
Row = dict[str, Any]
Words = np.ndarray


# ---- data -----------------------------------------------------------------------------------


def words_of(model: torch.nn.Module) -> Words:
    weights = [p.detach().bfloat16().reshape(-1).view(torch.int16) for p in model.parameters()]
    return torch.cat(weights).numpy().view(np.uint16).copy()


def trained(steps: int, more: int) -> dict[float, tuple[Words, Words]]:
    """Words before and after some steps at each rate."""
    torch.manual_seed(1)
    model = gradients.Bytes()
    loss = gradients.next_token_loss(
        model, torch.tensor(list(gradients.sample_data.text())), 8, 128
    )
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    for _ in range(steps):
        step()
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = {}
    for rate in RATES:
        model.load_state_dict(start)
        optimizer.param_groups[0]["lr"] = rate
        states = []
        for i in range(more):
            if i >= more - KEPT:
                states.append(words_of(model))
            step()
        states.append(words_of(model))
        found[rate] = np.concatenate(states[:-1]), np.concatenate(states[1:])
    return found


# ---- formats --------------------------------------------------------------------------------


def order(words: Words) -> np.ndarray:
    signed = words.view(np.int16).astype(np.int32)
    return np.where(signed < 0, signed ^ 0x7FFF, signed)


def entropy(counts: np.ndarray) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log2(share)).sum())


def bound(old: Words, new: Words) -> float:
    """Bits a changed word if places are independent and steps too."""
    steps = order(new) - order(old)
    changed = steps[steps != 0]
    places = entropy(np.array([changed.size, steps.size - changed.size])) * steps.size
    return places / changed.size + entropy(np.unique(changed, return_counts=True)[1])


def squeezed(*parts: np.ndarray) -> int:
    coder = zstandard.ZstdCompressor(level=1)
    return sum(len(coder.compress(part.tobytes())) for part in parts)


def varint_gaps(gaps: np.ndarray) -> np.ndarray:
    """Gaps in 7 bits a byte, lowest first."""
    size = 1 + (gaps >= 1 << 7) + (gaps >= 1 << 14)
    ends = np.cumsum(size)
    out = np.zeros(int(ends[-1]), np.uint8)
    for i in range(3):
        there = size > i
        more = np.where(size > i + 1, 128, 0)
        out[(ends - size + i)[there]] = ((gaps >> 7 * i & 127) | more)[there]
    return out


def sizes(old: Words, new: Words) -> dict[str, int]:
    places = np.flatnonzero(old != new)
    gaps, values = np.diff(places, prepend=-1), new[places]
    xor = wirepress.Compressor("shuffle+zstd:1", threads=1)
    return {
        "verl, vLLM": 6 * places.size,
        "NeMo-RL": squeezed(gaps.astype(np.uint16), values),
        "PULSE": squeezed(varint_gaps(gaps), values),
        "slime, miles": squeezed(old ^ new),
        "XOR, `shuffle+zstd:1`": len(xor.compress(old ^ new)),
        "`sparse`": len(wirepress.Compressor("sparse", threads=1).compress_steps(old, new)),
    }


# ---- speed ----------------------------------------------------------------------------------


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def compare(old: Words, new: Words) -> int:
    piece = 1 << 16
    return sum(
        int(np.count_nonzero(old[at : at + piece] != new[at : at + piece]))
        for at in range(0, old.size, piece)
    )


def speeds(old: Words, new: Words, rounds: int) -> dict[str, float]:
    """GB/s of weights, by what is done."""
    ours = wirepress.Compressor("sparse", threads=1)
    steps, xor = ours.compress_steps(old, new), old ^ new
    coder, words, target = zstandard.ZstdCompressor(level=1), old.copy(), np.empty_like(old)
    best: dict[str, float] = {}

    def timed(name: str, call: Callable[[], object]) -> None:
        best[name] = min(best.get(name, 1e9), seconds(call))

    for _ in range(rounds):
        timed("memcpy", lambda: np.copyto(target, new))
        timed("compare", lambda: compare(old, new))
        timed("encode", lambda: ours.compress_steps(old, new))
        timed("zstd-1 of the XOR", lambda: coder.compress(xor.data))
        np.copyto(words, old)
        timed("patch", lambda: ours.take_steps(steps, words))
        if not np.array_equal(words, new):
            raise RuntimeError("the patch did not make the new words")
    return {name: old.nbytes / taken / 1e9 for name, taken in best.items()}


def pause(old: Words, new: Words, rounds: int) -> Row:
    """Milliseconds that a load takes: all tensors from memory, and what a subscriber hands over."""
    cut = np.array_split(np.arange(old.size), 60)
    parts = [slice(int(c[0]), int(c[-1]) + 1) for c in cut]
    states = [
        {str(i): torch.from_numpy(w[p].view(np.int16).copy()).view(torch.bfloat16)
         for i, p in enumerate(parts)}
        for w in (old, new)
    ]  # fmt: skip
    target = {name: tensor.clone() for name, tensor in states[0].items()}
    # Both loads come from memory. Without this the check of the turn before leaves the plain load's
    # tensors in caches, while staged ones were last touched a stage ago.
    far = np.zeros(FAR, np.uint8)
    plain, ours, staged = [], [], []

    def load(name: str, tensor: torch.Tensor) -> None:
        target[name].copy_(tensor)

    for i in range(rounds):
        place = f"memory://deltas{id(states)}-{i}"
        now = {name: tensor.clone() for name, tensor in states[0].items()}
        publisher = wt.WeightPublisher(now, place, threads=1)
        publisher.publish()
        subscriber = wt.WeightSubscriber(place, threads=1)
        subscriber.stage()
        subscriber.commit()
        for name, tensor in states[1].items():
            now[name].copy_(tensor)
        publisher.publish()
        staged.append(seconds(subscriber.stage))
        turns = [
            lambda: plain.append(
                seconds(lambda: [target[n].copy_(t) for n, t in states[1].items()])
            ),
            lambda by=subscriber: ours.append(seconds(lambda: by.commit(load))),
        ]
        for turn in turns if i % 2 else reversed(turns):
            for name, tensor in states[0].items():
                target[name].copy_(tensor)
            far += 1
            turn()
            if not all(torch.equal(target[n], t) for n, t in states[1].items()):
                raise RuntimeError("the subscriber handed over other weights")
    return {"plain": 1e3 * min(plain), "commit": 1e3 * min(ours), "stage": 1e3 * min(staged)}


def measure(args: argparse.Namespace) -> list[Row]:
    cache = WORK / "deltas.npz"
    if args.quick:
        data = trained(5, KEPT + 1)
    elif cache.exists():
        held = np.load(cache)
        data = {rate: (held[f"{rate}.0"], held[f"{rate}.1"]) for rate in RATES}
    else:
        data = trained(STEPS, MORE)
        cache.parent.mkdir(parents=True, exist_ok=True)
        np.savez(cache, **{f"{r}.{i}": w for r, pair in data.items() for i, w in enumerate(pair)})
    if args.train:
        return []
    rows = []
    for rate, (old, new) in data.items():
        old, new = old[:MOST].copy(), new[:MOST].copy()
        changed = int(np.count_nonzero(old != new))
        bits = {name: 8 * size / changed for name, size in sizes(old, new).items()}
        steps = np.abs(order(new) - order(old))
        rows.append({
            "rate": rate, "words": old.size, "changed": changed / old.size,
            "one step": float((steps[steps > 0] == 1).mean()), "bound": bound(old, new),
            "bits": bits, "speed": speeds(old, new, 2 if args.quick else 5),
            "pause": pause(old, new, 2 if args.quick else 12),
        })  # fmt: skip
        print(json.dumps(rows[-1]), flush=True)
    return rows


# ---- page -----------------------------------------------------------------------------------


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---:"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def aims(rows: list[Row]) -> list[list[str]]:
    out = []
    for row in rows:
        bits, speed, share = row["bits"], row["speed"], row["changed"]
        cells = []
        if share <= 0.07:
            most = 1.15 if share <= 0.03 else 1.2
            cells += [
                (f"size, of the bound: at most {most}", bits["`sparse`"] / row["bound"], most, 0)
            ]
            cells += [("size, of XOR + zstd-1: at most 0.55",
                       bits["`sparse`"] / bits["slime, miles"], 0.55, 0)]  # fmt: skip
        if share <= 0.015:
            cells += [
                ("encode, of compare: at least 0.8", speed["encode"] / speed["compare"], 0.8, 1)
            ]
            cells += [("patch, of memcpy: at least 1", speed["patch"] / speed["memcpy"], 1, 1)]
        cells += [("encode, of zstd-1 of the XOR: at least 3",
                   speed["encode"] / speed["zstd-1 of the XOR"], 3, 1)]  # fmt: skip
        if share > 0.25:
            cells += [("encode: at least 2 GB/s", speed["encode"], 2, 1)]
            cells += [("patch: at least 2 GB/s", speed["patch"], 2, 1)]
        cells += [("pause, of a plain load: at most 1.1",
                   row["pause"]["commit"] / row["pause"]["plain"], 1.1, 0)]  # fmt: skip
        for what, value, aim, least in cells:
            good = value >= aim if least else value <= aim
            out.append([f"{row['rate']:g}", what, f"{value:.2f}", "met" if good else "missed"])
    return out


def page(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    names, speeds_of = list(rows[0]["bits"]), list(rows[0]["speed"])
    machine = measured["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores"
    text = [
        "# Deltas of weights", "",
        "<!-- Written by bench/deltas.py from bench/results/deltas.json; do not edit. -->", "",
        f"Measured {measured['date'][:10]} on {where}. To repeat it: `bench/deltas.py`. The",
        "raw results are [bench/results/deltas.json](../../bench/results/deltas.json).", "",
        f"A byte transformer of 7.4 million parameters, AdamW, {STEPS} steps at 3e-4, then {MORE}",
        "at the rate of the row; 2^24 bfloat16 weights of the last steps. Others' formats",
        "are made anew from their descriptions. All are lossless. Bound: the entropy of places and",
        "steps, if independent.",
        "", "Bits a changed word:", "",
        *table(["rate", "changed", "by one step", *names, "bound"],
               [[f"{r['rate']:g}", f"{r['changed']:.2%}", f"{r['one step']:.0%}",
                 *(f"{r['bits'][n]:.1f}" for n in names), f"{r['bound']:.1f}"] for r in rows]),
        "GB/s of weights, one thread, in turns, the best of all rounds:", "",
        *table(["rate", *speeds_of],
               [[f"{r['rate']:g}", *(f"{r['speed'][n]:.1f}" for n in speeds_of)] for r in rows]),
        "A subscriber of these weights (34 MB in 60 tensors): milliseconds to load all tensors",
        "from memory, to hand over what was staged, and to stage it beside the work:", "",
        *table(["rate", "plain load", "commit", "stage"],
               [[f"{r['rate']:g}", *(f"{r['pause'][n]:.1f}" for n in ("plain", "commit", "stage"))]
                for r in rows]),
        "Aims:", "", *table(["rate", "what", "measured", ""], aims(rows)),
    ]  # fmt: skip
    return "\n".join(text).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few steps, no page")
    parser.add_argument("--train", action="store_true", help="make the data only")
    parser.add_argument("--page", action="store_true", help="write the page from the last results")
    parser.add_argument("--out", type=Path, help="the raw results' file")
    args = parser.parse_args()
    if not args.page:
        torch.set_num_threads(1)
        rows = measure(args)
        if args.train:
            return
        results.write("deltas", {"rows": rows}, args.out)
    if not args.quick:
        raw = json.loads((results.FOLDER / "deltas.json").read_text())
        PAGE.write_text(page(raw))


if __name__ == "__main__":
    main()
