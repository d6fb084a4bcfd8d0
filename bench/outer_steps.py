#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outer steps and deltas of FSDP2: bytes, the loss that is left, and steps over a slow link.

    bench/outer_steps.py                    what is not there yet, about an hour; links need root
    bench/outer_steps.py --only short --again       rows of that kind anew
    bench/outer_steps.py --page             page and picture from the last results

short  Four peers, processes that exchange over gloo. The model is the byte transformer of
       examples/two_sites, 0.13 million parameters, AdamW at 3e-3, a batch of 4, a round in every 10
       steps, 24 rounds, 3 seeds. "A quarter missing": in each round one peer, in turns, gives
       nothing and takes what the others have. Loss: held out, of 256 pieces.
long   The same with 120 rounds and each of some outer optimizers; the best of each method then has
       two more seeds.
fsdp   Two ranks, bfloat16 parameters, AdamW, 60 steps at 1e-3, then 9 at each rate, by rising
       rates; bytes are those of the all-gathers of the last 8 of them, one rank. `int8` is the
       recipe for the same gathers, whose size is the same in every step.
link   Two hosts (network namespaces) at 200 Mb/s, the transformer of examples/gpt_ddp. Outer steps:
       blocks of 30 steps with a round at the end, and without, in turns. FSDP2: bfloat16, AdamW at
       1e-5, gradients by int8 wherever parameters are coded; a few steps of each in turns.

Writes bench/results/outer_steps.json, docs/results/outer-steps.md and docs/guides/training.svg.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from statistics import mean, median
from typing import Any

import numpy as np
import results
import torch
import torch.distributed as dist
import torch_jobs
import trainings
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import wirepress
import wirepress.torch as wt

PAGE = results.ROOT / "docs" / "results" / "outer-steps.md"
PICTURE = results.ROOT / "docs" / "guides" / "training.svg"
EXAMPLE = results.ROOT / "examples" / "two_sites" / "train.py"
PEERS, EVERY, BATCH = 4, 10, 4
ROUNDS = {"short": 24, "long": 120}
SEEDS = (1, 2, 3)
OUTERS = (
    "nesterov:lr=0.7,momentum=0.9",
    "nesterov:lr=0.5,momentum=0.9",
    "nesterov:lr=0.9,momentum=0.5",
    "sgd:lr=1",
)
LONG = ("float32", "int4", "sparseloco:k=64")
LEARNT, MORE, KEPT = 60, 9, 8  # of FSDP2
RATES = (1e-6, 1e-5, 1e-4, 3e-4)
METHODS = {
    "float32": "none",
    "int8": "int8",
    "int4": "int4",
    "sparseloco:k=64": "sparseloco:k=64",
}
RATE = "200mbit"
BLOCK = 30  # steps from round to round, over the link
TURNS = (4, 8)
SENDING = {"nothing": None, "float32": "none", "int4": "int4", "sparseloco:k=64": "sparseloco:k=64"}
GATHERED: dict[str, str | None] = {  # parameters of FSDP2
    "plain": None, "int8": "int8", "planes": "planes", "delta": "delta"
}  # fmt: skip
WAYS = {"outer": list(SENDING), "gathered": list(GATHERED)}
Row = dict[str, Any]
Done = Callable[[Row], Row | None]  # the row that was measured before and has these words


def example() -> Any:
    spec = importlib.util.spec_from_file_location("two_sites", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(module: Any) -> tuple[torch.Tensor, torch.Tensor]:
    ids = module.text.byte_ids(module.text.read(1 << 18)[0])
    return ids[1 << 14 :], ids[: 1 << 14]


# ---- outer steps ----------------------------------------------------------------------------


def skipping(outer: wt.OuterStep, rank: int) -> None:
    """In every fourth round this peer has nothing to give."""
    exchange = outer._exchange

    def without(meeting: Any, way: torch.Tensor) -> Any:
        if meeting.number % PEERS == rank:
            way = torch.full_like(way, float("nan"))
        return exchange(meeting, way)

    outer._exchange = without


def peer(method: str, missing: bool, rounds: int, by: str | None, seed: int) -> Row:
    module = example()
    ids, held_out = texts(module)
    torch.manual_seed(seed)
    model = module.Model()
    outer = wt.OuterStep(model, method, every=EVERY, outer=by)
    if missing:
        skipping(outer, dist.get_rank())
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(EVERY * rounds):
        optimizer.zero_grad()
        draw = step * PEERS + dist.get_rank() + (seed - 1) * 1_000_000
        module.loss_of(model, ids, BATCH, draw).backward()
        optimizer.step()
        outer.step()
    with torch.no_grad():
        loss = module.loss_of(model, held_out, 256, -1).item()
    values = sum(p.numel() for p in model.parameters())
    given = outer.counts.raw_bytes / 4 / values  # rounds
    share = outer.counts.coded_bytes / (given * values)
    return {"loss": loss, "bytes_a_value": share, "rounds": outer.counts.rounds, "values": values}


# ---- FSDP2 ----------------------------------------------------------------------------------


def gathers(parameters: str, learnt: int, rates: tuple[float, ...]) -> list[Row]:
    module = example()
    ids, _ = texts(module)
    torch.manual_seed(1)
    model = module.Model()
    policy = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16)}
    for layer in model.layers.layers:
        fully_shard(layer, **policy)
    fully_shard(model, **policy)
    state = wt.compress_fsdp(model, "none", parameters=parameters, threshold=0, trials=False)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    step, rows = 0, []

    def train(steps: int) -> float:
        """The part of the words that a step changes."""
        nonlocal step
        changed = words = 0
        for _ in range(steps):
            optimizer.zero_grad()
            module.loss_of(model, ids, BATCH, step * 2 + dist.get_rank()).backward()
            was = [p.to_local().bfloat16() for p in model.parameters()]
            optimizer.step()
            for a, p in zip(was, model.parameters(), strict=True):
                changed += int((a != p.to_local().bfloat16()).sum())
                words += a.numel()
            step += 1
        return changed / max(words, 1)

    train(learnt)
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        train(MORE - KEPT)
        before = state.statistics()["parameters"].wire_bytes
        changed = train(KEPT)
        sent = state.statistics()["parameters"].wire_bytes - before
        rows.append({"rate": rate, "bytes_a_step": sent / KEPT, "changed": changed})
    return rows


# ---- runs -----------------------------------------------------------------------------------


def begin(rank: int, n: int, folder: str, what: str, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=n)
    row = {"peer": peer, "gathers": gathers}[what](*arguments)
    if rank == 0:
        with open(f"{folder}/row", "w") as file:
            json.dump(row, file)
    dist.barrier()
    dist.destroy_process_group()


def on_ranks(n: int, what: str, *arguments: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(begin, (n, folder, what, arguments), nprocs=n)
        with open(f"{folder}/row") as file:
            return json.load(file)


def short(done: Done) -> Iterator[Row]:
    for (name, method), missing, seed in itertools.product(METHODS.items(), (False, True), SEEDS):
        row = {"kind": "short", "method": name, "missing": missing, "seed": seed}
        if not done(row):
            yield row | on_ranks(PEERS, "peer", method, missing, ROUNDS["short"], None, seed)


def long(done: Done) -> Iterator[Row]:
    for name in LONG:
        losses = {}
        for by in OUTERS:
            row = {"kind": "long", "method": name, "outer": by, "seed": SEEDS[0]}
            if (found := done(row)) is None:
                yield (found := row | long_run(name, by, SEEDS[0]))
            losses[by] = found["loss"]
        best = min(losses, key=losses.__getitem__)
        for seed in SEEDS[1:]:
            row = {"kind": "long", "method": name, "outer": best, "seed": seed}
            if done(row) is None:
                yield row | long_run(name, best, seed)


def long_run(name: str, by: str, seed: int) -> Row:
    return on_ranks(PEERS, "peer", METHODS[name], False, ROUNDS["long"], by, seed)


def fsdp(done: Done) -> Iterator[Row]:
    for parameters, learnt, rates in (("int8", 0, RATES[:1]), ("delta", LEARNT, RATES)):
        if done({"kind": "fsdp", "method": parameters, "rate": rates[-1]}):
            continue
        for row in on_ranks(2, "gathers", parameters, learnt, rates):
            yield {"kind": "fsdp", "method": parameters, **row}


def link(done: Done) -> Iterator[Row]:
    sys.path.insert(0, str(results.ROOT / "tests" / "net"))
    from hosts import Hosts, why_not

    if reason := why_not():
        print(f"outer_steps: link: {reason}", file=sys.stderr)
        return
    with Hosts(2, RATE) as hosts:
        for what, size in (("outer", "mini"), ("gathered", "small")):
            if done({"kind": "link", "what": what, "way": WAYS[what][-1]}):
                continue
            job = {"what": what, "size": size, "seconds": 60.0}
            for row in torch_jobs.run(__file__, hosts, 2, job, 900):
                yield {"kind": "link", "what": what, "size": size, **row}


KINDS = {"short": short, "long": long, "fsdp": fsdp, "link": link}


# ---- over a link ----------------------------------------------------------------------------


def stepper(task: Any, model: Any, rate: float) -> Callable[[], None]:
    from ddp_common import training

    optimizer = torch.optim.AdamW(model.parameters(), rate)
    number = itertools.count()

    def step() -> None:
        inputs, target = task.batch(training.draw_of(1, dist.get_rank(), next(number)))
        optimizer.zero_grad()
        task.loss(model(inputs), target).backward()
        optimizer.step()

    return step


def outer_blocks(job: Row) -> dict[str, Callable[[], None]]:
    """Blocks of steps that end with a round, and of as many that send nothing."""
    task = trainings.task_type("gpt")(job["size"])

    def block_of(method: str | None) -> Callable[[], None]:
        torch.manual_seed(1)
        model = task.model()
        step = stepper(task, model, 1e-3)
        outer = wt.OuterStep(model, method, every=BLOCK) if method else None

        def block() -> None:
            for _ in range(BLOCK):
                step()
                if outer is not None:
                    outer.step()

        return block

    return {name: block_of(method) for name, method in SENDING.items()}


def sharded_steps(job: Row) -> dict[str, Callable[[], None]]:
    task = trainings.task_type("gpt")(job["size"])
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)

    def step_of(parameters: str | None) -> Callable[[], None]:
        torch.manual_seed(1)
        model = task.model()
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
        if parameters:
            wt.compress_fsdp(model, "int8", parameters=parameters)
        return stepper(task, model, 1e-5)

    return {name: step_of(parameters) for name, parameters in GATHERED.items()}


def worker(job: Row) -> list[Row]:
    """Seconds of the blocks of all ways, in turns, on the slowest rank."""
    ways = outer_blocks(job) if job["what"] == "outer" else sharded_steps(job)
    for way in ways.values():
        for _ in range(1 if job["what"] == "outer" else 3):
            way()
    rows: dict[str, Row] = {name: {"way": name, "seconds": []} for name in ways}

    def turn(number: int) -> None:
        names = list(ways)
        first = number % len(names)
        for name in names[first:] + names[:first]:
            dist.barrier()
            began = time.perf_counter()
            for _ in range(1 if job["what"] == "outer" else 3):
                ways[name]()
            slowest = torch.tensor(time.perf_counter() - began, dtype=torch.float64)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            rows[name]["seconds"].append(slowest.item())

    torch_jobs.rounds_of(job, TURNS, turn)
    return list(rows.values())


def key(row: Row) -> Any:
    """The order of rows: by kind, else as they were measured."""
    return list(KINDS).index(row["kind"])


# ---- page -----------------------------------------------------------------------------------


def losses(rows: list[Row], kind: str, **of: Any) -> dict[int, float]:
    """By seed."""
    of = {"kind": kind, **of}
    return {row["seed"]: row["loss"] for row in rows if of.items() <= row.items()}


def of_plain(mine: dict[int, float], plain: dict[int, float]) -> list[float]:
    """Losses, of float32's with the same seed."""
    return [mine[seed] / plain[seed] for seed in mine if seed in plain]


def outer_table(rows: list[Row]) -> list[str]:
    lines = [
        "| method | peers | bytes a value and round | loss | of float32's | each seed |",
        "|---|---|---:|---:|---:|---|",
    ]
    for name, missing in itertools.product(METHODS, (False, True)):
        mine = losses(rows, "short", method=name, missing=missing)
        if not mine:
            continue
        found = of_plain(mine, losses(rows, "short", method="float32", missing=missing))
        sent = mean(
            r["bytes_a_value"] for r in rows if r["kind"] == "short" and r["method"] == name
        )
        lines.append(
            f"| `{name}` | {'a quarter missing' if missing else 'all'} | {sent:.4f} | "
            f"{mean(mine.values()):.4f} | {mean(found):.4f} | "
            f"{', '.join(f'{ratio:.4f}' for ratio in found)} |"
        )
    return lines


def best_of(rows: list[Row], name: str) -> str:
    """The outer optimizer of a method that had more seeds."""
    found = {r["outer"]: losses(rows, "long", method=name, outer=r["outer"])
             for r in rows if r["kind"] == "long" and r["method"] == name}  # fmt: skip
    return max(found, key=lambda by: len(found[by]))


def long_table(rows: list[Row]) -> list[str]:
    lines = [
        "| method | outer optimizer | bytes a value and round | loss | of float32's | each seed |",
        "|---|---|---:|---:|---:|---|",
    ]
    plain = losses(rows, "long", method="float32", outer=best_of(rows, "float32"))
    for name in LONG:
        for by in OUTERS:
            mine = losses(rows, "long", method=name, outer=by)
            found = of_plain(mine, plain)
            row = next(r for r in rows if r["kind"] == "long" and r["method"] == name)
            mark = "**" if by == best_of(rows, name) else ""
            lines.append(
                f"| `{name}` | {mark}{by}{mark} | {row['bytes_a_value']:.4f} | "
                f"{mean(mine.values()):.4f} | {mean(found):.4f} | "
                f"{', '.join(f'{ratio:.4f}' for ratio in found)} |"
            )
    return lines


def link_rates(rows: list[Row], what: str) -> dict[str, float]:
    """Of blocks beside those of the first way, the median of neighbours."""
    found = {r["way"]: r["seconds"] for r in rows if r["kind"] == "link" and r["what"] == what}
    first = next(iter(found.values()))
    return {
        name: median(a / b for a, b in zip(first, seconds, strict=True))
        for name, seconds in found.items()
    }


def link_table(rows: list[Row], what: str, first: str) -> list[str]:
    lines = [f"| {first} | ms | rate, of the first row's |", "|---|---:|---:|"]
    seconds = {r["way"]: r["seconds"] for r in rows if r["kind"] == "link" and r["what"] == what}
    for name, rate in link_rates(rows, what).items():
        lines.append(f"| {name} | {1e3 * median(seconds[name]):.0f} | {rate:.3f} |")
    return lines


def fsdp_table(rows: list[Row]) -> list[str]:
    found = [row for row in rows if row["kind"] == "fsdp"]
    int8 = next(row["bytes_a_step"] for row in found if row["method"] == "int8")
    lines = ["| rate | words that a step changes | KB a step | of int8's |", "|---|---:|---:|---:|"]
    for row in found:
        if row["method"] == "delta":
            sent, part = row["bytes_a_step"], 100 * row["changed"]
            lines.append(
                f"| {row['rate']:g} | {part:.1f}% | {sent / 1e3:.1f} | {sent / int8:.3f} |"
            )
    return lines


def of_twelve_and_two() -> float:
    """The bytes of a code of 64 of 4096, of those of 12 bits for a place and 2 for a value."""
    values = np.random.default_rng(1).normal(size=1 << 20).astype(np.float32)
    frame = len(wirepress.Compressor("topq:k=64", checksum=False).compress(values))
    return frame / (values.size // 4096 * 64 * (12 + 2) / 8)


def shares(rows: list[Row]) -> list[tuple[str, float]]:
    """Bytes that a rank sends for a parameter and step, to one other; the way of the picture."""
    outer = {r["method"]: r["bytes_a_value"] for r in rows if r["kind"] == "short"}
    fsdp = {(r["method"], r.get("rate")): r for r in rows if r["kind"] == "fsdp"}
    int8 = fsdp["int8", RATES[0]]["bytes_a_step"]
    delta = [2 * fsdp["delta", rate]["bytes_a_step"] / int8 for rate in (1e-4, 1e-6)]
    return [
        ("gradients: float32", 4.0),
        ("gradients: bf16", 2.0),
        ("gradients: int8", 1.0),
        ("gradients: int4", 0.5),
        ("gradients: terngrad", 0.25),
        ("gradients: topk, 1 %", 0.06),
        ("FSDP2 parameters: bf16, two gathers", 4.0),
        ("FSDP2 parameters: int8", 2.0),
        ("FSDP2 parameters: delta, rate 1e-4", delta[0]),
        ("FSDP2 parameters: delta, rate 1e-6", delta[1]),
        ("outer steps, every 30: float32", 4 / 30),
        ("outer steps, every 30: int4", outer["int4"] / 30),
        ("outer steps, every 30: sparseloco:k=64", outer["sparseloco:k=64"] / 30),
    ]


def draw(rows: list[Row]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "wirepress"
    from matplotlib import pyplot

    names, sizes = zip(*reversed(shares(rows)), strict=True)
    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    colours = {"g": "#4c78a8", "F": "#59a14f", "o": "#f28e2b"}
    bars = axes.barh(names, sizes, color=[colours[name[0]] for name in names])
    axes.bar_label(bars, [f"{size:.2g}" for size in sizes], padding=3, fontsize=8)
    axes.set(xscale="log", xlim=(3e-4, 12), xlabel="bytes a parameter and step, to one other rank")
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None})


# Parts of the page: each is there where its rows are, and has its lines of the table of aims.


def short_part(rows: list[Row]) -> tuple[list[str], list[str]]:
    values = next(row["values"] for row in rows if row["kind"] == "short")
    lines = [
        f"{PEERS} peers, {ROUNDS['short']} rounds of {EVERY} steps, a byte transformer of "
        f"{values / 1e6:.2f} million parameters; {len(SEEDS)} seeds, losses beside",
        "float32's of the same seed; their means. Outer optimizers are the methods' own:",
        "Nesterov's step at rate 0.7 for float32 and integers, the plain mean for `sparseloco`.",
        "",
        *outer_table(rows),
        "",
    ]
    bytes_of = "`topq`, 64 of 4096: bytes, of 12 + 2 bits each: at most 0.76"
    aims = [aim(bytes_of, of_twelve_and_two(), 0.76)]
    for missing, words in ((False, ""), (True, ", a quarter missing")):
        mine, plain = (
            losses(rows, "short", method=name, missing=missing) for name in ("int4", "float32")
        )
        aims.append(
            aim(
                f"`int4`{words}: loss, of float32's: at most 1.005",
                mean(of_plain(mine, plain)),
                1.005,
            )
        )
    return lines, aims


def long_part(rows: list[Row]) -> tuple[list[str], list[str]]:
    lines = [
        f"{ROUNDS['long']} rounds, with outer optimizers tried one by one on one seed; the best of "
        "each method (bold) has",
        "three, and is compared with float32's best.",
        "",
        *long_table(rows),
        "",
    ]
    tuned = {name: losses(rows, "long", method=name, outer=best_of(rows, name)) for name in LONG}
    topq = mean(of_plain(tuned["sparseloco:k=64"], tuned["float32"]))
    words = f"| `topq`, {ROUNDS['long']} rounds, tuned: loss, of float32's tuned (no aim)"
    return lines, [f"{words} | {topq:.4f} | |"]


def fsdp_part(rows: list[Row]) -> tuple[list[str], list[str]]:
    lines = [
        "FSDP2, the same model on two ranks, bfloat16; the gathers of a step, which are the same",
        "bits as PyTorch's own.",
        "",
        *fsdp_table(rows),
        "",
    ]
    found = [row for row in rows if row["kind"] == "fsdp"]
    int8 = next(row["bytes_a_step"] for row in found if row["method"] == "int8")
    most = max(r["bytes_a_step"] for r in found if r["method"] == "delta" and r["rate"] <= 1e-4)
    return lines, [
        aim("FSDP2 deltas: bytes, of int8's, at 1e-4 and below: at most 0.3", most / int8, 0.3)
    ]


def link_part(rows: list[Row]) -> tuple[list[str], list[str]]:
    lines = [
        f"Two hosts at 200 Mb/s, blocks of {BLOCK} steps that end with a round; the transformer of",
        "0.47 million parameters.",
        "",
        *link_table(rows, "outer", "sent in a round"),
        "",
        "FSDP2 over the same link, 3 steps, the transformer of 3.3 million parameters, bfloat16,",
        "AdamW at 1e-5; wherever parameters are coded, gradients go by `int8`.",
        "",
        *link_table(rows, "gathered", "parameters"),
        "",
    ]
    rates = link_rates(rows, "outer")
    slowest = min(rates["int4"], rates["sparseloco:k=64"])
    words = (
        "step rate with rounds at 200 Mb/s, of no sending, `int4` and `sparseloco`: at least 0.8"
    )
    return lines, [f"| {words} | {slowest:.3f} | {'met' if slowest >= 0.8 else 'missed'} |"]


WORDS = {
    "short": f"{ROUNDS['short']} rounds",
    "long": f"{ROUNDS['long']} rounds with tuned outer optimizers",
    "fsdp": "FSDP2",
    "link": "steps over 200 Mb/s",
}
PARTS = {"short": short_part, "long": long_part, "fsdp": fsdp_part, "link": link_part}


def aim(text: str, value: float, most: float) -> str:
    return f"| {text} | {value:.4f} | {'met' if value <= most else 'missed'} |"


def write_page(saved: dict[str, Any]) -> None:
    rows = saved["rows"]
    there = {row["kind"] for row in rows}
    if not set(LONG) <= {row["method"] for row in rows if row["kind"] == "long"}:
        there.discard("long")
    parts = [part(rows) for kind, part in PARTS.items() if kind in there]
    missing = [kind for kind in PARTS if kind not in there]
    lines = [
        "# Outer steps, and deltas of FSDP2",
        "",
        "<!-- Written by bench/outer_steps.py from its raw results; do not edit. -->",
        "",
        f"Measured {saved['date'][:10]}, PyTorch on CPUs with gloo. To repeat it: "
        "`bench/outer_steps.py`, whose head says what",
        "was run. The raw results are "
        "[bench/results/outer_steps.json](../../bench/results/outer_steps.json).",
        "",
        *(line for part, _ in parts for line in part),
        "| aim | measured | |",
        "|---|---:|---|",
        *(line for _, aims in parts for line in aims),
        "",
        *([f"Not measured: {'; '.join(WORDS[kind] for kind in missing)}.", ""] if missing else []),
    ]
    PAGE.write_text("\n".join(lines))
    draw(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=KINDS, default=[])
    parser.add_argument("--again", action="store_true", help="rows that are there, too")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        torch_jobs.work(args.worker, worker)
        return
    path = results.FOLDER / "outer_steps.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [row for row in rows if not (args.again and row["kind"] in (args.only or KINDS))]

    def done(words: Row) -> Row | None:
        return next((row for row in rows if words.items() <= row.items()), None)

    for kind in () if args.page else args.only or KINDS:
        for row in KINDS[kind](done):
            print(row, flush=True)
            rows.append(row)
            results.write("outer_steps", {"rows": sorted(rows, key=key)})
    if args.page or not args.only:
        write_page(json.loads(path.read_text()))


if __name__ == "__main__":
    main()
