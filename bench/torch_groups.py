#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of process groups, and FSDP2 steps, with wirepress and without, in turns.

Two ranks on two hosts (network namespaces; needs root). Groups: calls of plain gloo and of the
backend wirepress alternate in blocks; what counts is the ratio of neighbours, its median and its
mean, in which the calls are that `adaptive` spends on trying. FSDP2: the transformer of
examples/gpt_ddp, a model for each way of sending, a few steps in turns. About 20 minutes; a job
that is there is not run again (--again). Writes bench/results/torch_groups.json and a part of
docs/results/torch.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import results
import torch_jobs
import trainings
from results import ROOT
from torch_jobs import Row

sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, why_not

CALLS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
DATA = ("dense", "rows")  # a gradient of no zeros; an embedding's, most rows of which are zero
KIB = (64, 256, 1024, 4096, 16384)
GROUPS: dict[str, dict[str, Any]] = {  # beside "gloo"; arguments of wrap_group
    "adaptive": {},
    "always": {"adaptive": False},
    "int8": {"recipe": "int8"},
}
LEARNT = 33  # calls before a group's first block: both ways timed, and one pause of the contest
BLOCK_SECONDS = 0.03
PAIRS = (8, 60)
LIMIT = 1.02  # adaptive against gloo, median
THRESHOLD_KIB = 256  # the groups' default
WAYS: dict[str, dict[str, str] | None] = {  # of FSDP2; arguments of compress_fsdp
    "plain": None,
    "gradients int8": {"gradients": "int8"},
    "gradients int4": {"gradients": "int4"},
    "int8, parameters planes": {"gradients": "int8", "parameters": "planes"},
    "int8, parameters int8": {"gradients": "int8", "parameters": "int8"},
}
STEPS = 2  # in a block, after one that is not timed
ROUNDS = (4, 12)


# ---- a rank --------------------------------------------------------------------------------------


def values(kind: str, n: int) -> Any:
    """Of this rank: float32, as large as gradients are."""
    import torch
    import torch.distributed as dist

    draw = torch.Generator().manual_seed(1 + dist.get_rank())
    found = 1e-3 * torch.randn(n, generator=draw)
    if kind == "rows":
        rows = found.view(-1, 256)
        rows[torch.rand(len(rows), generator=draw) > 0.02] = 0
    return found


def call_of(name: str, data: Any, group: Any) -> Callable[[], Any]:
    import torch
    import torch.distributed as dist

    size = dist.get_world_size()
    part = data[: len(data) // size]
    whole, share = torch.empty_like(data), torch.empty_like(part)

    def all_reduce() -> None:
        whole.copy_(data)  # else sums grow from call to call
        dist.all_reduce(whole, group=group)

    return {
        "all_reduce": all_reduce,
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(share, data, group=group),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part, group=group),
        "broadcast": lambda: dist.broadcast(data, group_src=0, group=group),
    }[name]


def timed(call: Callable[[], Any], n: int) -> float:
    """Seconds of a call, on the slowest rank."""
    import torch
    import torch.distributed as dist

    dist.barrier()
    began = time.perf_counter()
    for _ in range(n):
        call()
    slowest = torch.tensor((time.perf_counter() - began) / n, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def collectives(job: Row) -> list[Row]:
    """One kind of call on one kind of data, all sizes."""
    import torch.distributed as dist

    import wirepress.torch

    groups = {"gloo": dist.new_group(backend="gloo")}
    groups |= {name: wirepress.torch.wrap_group(**knobs) for name, knobs in GROUPS.items()}
    rows = []
    for number, kib in enumerate(job["kib"]):
        torch_jobs.tell(job, number / len(job["kib"]))
        data = values(job["data"], kib * 256)
        calls = {name: call_of(job["call"], data, group) for name, group in groups.items()}
        for call in calls.values():
            for _ in range(LEARNT):
                call()
        before = {name: counts(groups[name], job["call"]) for name in GROUPS}
        once = max(timed(calls["gloo"], 4), 1e-6)
        n = max(1, round(BLOCK_SECONDS / once))
        pairs = round(job["seconds"] / (n * once * len(calls)))
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(min(max(pairs, PAIRS[0]), PAIRS[1])):
            names = list(calls)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                seconds[name].append(timed(calls[name], n))
        for name, found in seconds.items():
            row: Row = {"kib": kib, "group": name, "calls": n, "seconds": found}
            if name in GROUPS:
                now = counts(groups[name], job["call"])
                all_calls, compressed = (b - a for a, b in zip(before[name], now, strict=True))
                row["compressed"] = compressed / all_calls
            rows.append(row)
    return rows


def counts(group: Any, call: str) -> tuple[int, int]:
    """Calls so far, and those of them that were compressed."""
    import wirepress.torch

    traffic = wirepress.torch.statistics(group)[call]
    return traffic.calls, traffic.compressed_calls


def fsdp(job: Row) -> list[Row]:
    import torch
    import torch.distributed as dist
    from ddp_common import training
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import wirepress.torch

    task = trainings.task_type("gpt")(job["size"])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    steps = {}
    for number, (name, knobs) in enumerate(WAYS.items()):
        torch.manual_seed(1)
        model = task.model()
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        if knobs is not None:
            wirepress.torch.compress_fsdp(model, **knobs)
        optimizer = torch.optim.SGD(model.parameters(), task.rate, task.momentum)
        steps[name] = stepper(task, model, optimizer, training.draw_of)
        for _ in range(2):
            steps[name]()
        torch_jobs.tell(job, 0.3 * number / len(WAYS))
    rows: dict[str, Row] = {name: {"way": name, "seconds": [], "bytes": []} for name in WAYS}

    def one(number: int) -> None:
        names = list(WAYS)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            steps[name]()
            dist.barrier()
            sent = training.sent_bytes()
            rows[name]["seconds"].append(timed(steps[name], STEPS))
            total = torch.tensor((training.sent_bytes() - sent) / STEPS, dtype=torch.float64)
            dist.all_reduce(total)
            rows[name]["bytes"].append(total.item())

    torch_jobs.rounds_of(job, ROUNDS, one)
    return list(rows.values())


def stepper(task: Any, model: Any, optimizer: Any, draw_of: Any) -> Callable[[], None]:
    import torch.distributed as dist

    number = itertools.count()

    def step() -> None:
        inputs, target = task.batch(draw_of(1, dist.get_rank(), next(number)))
        optimizer.zero_grad()
        task.loss(model(inputs), target).backward()
        optimizer.step()

    return step


def worker(job: Row) -> list[Row]:
    return fsdp(job) if job["what"] == "fsdp" else collectives(job)


# ---- jobs ----------------------------------------------------------------------------------------


def jobs(options: argparse.Namespace) -> list[Row]:
    groups = [
        {"what": "group", "rate": rate, "call": call, "data": data}
        for rate in options.rates
        for call in options.calls
        for data in DATA
    ]
    sharded = [{"what": "fsdp", "rate": rate} for rate in options.fsdp_rates]
    return groups + sharded


def measure(options: argparse.Namespace, rows: list[Row]) -> None:
    def mine(row: Row, job: Row) -> bool:
        return all(row.get(key) == value for key, value in job.items())

    left = [job for job in jobs(options) if options.again or not any(mine(r, job) for r in rows)]
    if not left:
        return
    seconds = options.seconds
    weights = [100.0 if j["what"] == "fsdp" else 15 + 1.3 * seconds * len(KIB) for j in left]
    progress = torch_jobs.Progress(weights)
    with Hosts(2, "none") as hosts:
        for job in left:
            hosts.set_rate(job["rate"])
            more = {"kib": options.kib, "seconds": seconds, "size": options.size}
            if job["what"] == "fsdp":
                more["seconds"] = 12 * seconds
            began = time.monotonic()
            measured = torch_jobs.run(__file__, hosts, 2, job | more, options.limit, progress.at)
            rows = [row for row in rows if not mine(row, job)] + [job | row for row in measured]
            about = {"torch": trainings.version(), "ranks": 2, "size": options.size}
            results.write("torch_groups", about | {"rows": rows}, options.raw)
            words = " ".join(str(value) for value in job.values())
            progress.next(f"{words}: {time.monotonic() - began:.0f} s")
    progress.close()


# ---- the page ------------------------------------------------------------------------------------


def ratios(row: Row, base: Row) -> list[float]:
    """Times of neighbours, of plain's."""
    return [a / b for a, b in zip(row["seconds"], base["seconds"], strict=True)]


def group_tables(rows: list[Row]) -> str:
    text = ""
    for rate in dict.fromkeys(row["rate"] for row in rows):
        cells = [row for row in rows if row["rate"] == rate]
        base = {(r["call"], r["data"], r["kib"]): r for r in cells if r["group"] == "gloo"}
        text += f"\n### Process groups, {rate_words(rate)}\n\n"
        text += (
            "| call | data | size | gloo, ms | adaptive: time of gloo's | mean | went compressed "
        )
        text += "| always compressed | `int8` |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
        for key, plain in base.items():
            mine = {r["group"]: r for r in cells if (r["call"], r["data"], r["kib"]) == key}
            found = {name: ratios(row, plain) for name, row in mine.items()}
            ms, middle = 1e3 * median(plain["seconds"]), median(found["adaptive"])
            text += (
                f"| {key[0]} | {key[1]} | {size_words(key[2])} | {ms:.3g}"
                f" | {marked(middle)} | {mean(found['adaptive']):.2f} "
                f"| {100 * mine['adaptive']['compressed']:.0f} % | {median(found['always']):.2f} "
                f"| {median(found['int8']):.2f} |\n"
            )
    return text


def fsdp_tables(rows: list[Row]) -> str:
    text = ""
    for rate in dict.fromkeys(row["rate"] for row in rows):
        ways = {row["way"]: row for row in rows if row["rate"] == rate}
        text += f"\n### FSDP2, transformer, {rate_words(rate)}\n\n"
        text += "| gradients, parameters | ms a step | times as fast as plain | MB a step |\n"
        text += "|---|---:|---:|---:|\n"
        for name, row in ways.items():
            faster = median(1 / ratio for ratio in ratios(row, ways["plain"]))
            ms, sent = 1e3 * median(row["seconds"]), median(row["bytes"]) / 1e6
            text += f"| {name} | {ms:.0f} | {faster:.2f} | {sent:.2f} |\n"
    return text


def rate_words(rate: str) -> str:
    return "link without a limit" if rate == "none" else rate


def size_words(kib: int) -> str:
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def marked(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio <= LIMIT else f"**{ratio:.2f}**"


def page_text(measured: Row) -> str:
    rows, machine = measured["rows"], measured["machine"]
    groups = [row for row in rows if row["what"] == "group"]
    adaptive = [row for row in groups if row["group"] == "adaptive"]
    base = {cell_of(r): r for r in groups if r["group"] == "gloo"}
    slow = [r for r in adaptive if median(ratios(r, base[cell_of(r)])) > LIMIT]
    text = (
        f"Made by `make bench ARGS=torch_groups` on {measured['date'][:10]}, {machine['cpu']}, "
        f"{machine['cores']} cores; 2 ranks on 2 hosts, calls of gloo and of the "
        "backend `wirepress` in turns, the median of the ratios of neighbouring blocks. *mean*: "
        "with the calls that `adaptive` spends on trying the other way. *rows*: a gradient 98 % of "
        f"whose rows are zero. Below the threshold of {THRESHOLD_KIB} KiB all go raw.\n"
    )
    if adaptive:
        below = [r for r in adaptive if r["kib"] < THRESHOLD_KIB]
        slow_below = [r for r in slow if r["kib"] < THRESHOLD_KIB]
        text += (
            f"\nOf {len(adaptive) - len(below)} cells above the threshold "
            f"{len(slow) - len(slow_below)} are slower than gloo by more than {LIMIT - 1:.0%} "
            f"(bold); of {len(below)} below it, where both do the same, {len(slow_below)}: noise.\n"
        )
    return text + group_tables(groups) + fsdp_tables([r for r in rows if r["what"] == "fsdp"])


def cell_of(row: Row) -> tuple[Any, ...]:
    return row["rate"], row["call"], row["data"], row["kib"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", nargs="*", default=["1gbit", "none"], help="of groups")
    parser.add_argument("--fsdp-rates", nargs="*", default=["1gbit", "200mbit"])
    parser.add_argument("--calls", nargs="*", choices=CALLS, default=[*CALLS])
    parser.add_argument("--kib", nargs="*", type=int, default=[*KIB], help="sizes")
    parser.add_argument("--size", default="small", help="of the transformer (%(default)s)")
    parser.add_argument("--seconds", type=float, default=6, help="of a size's blocks, about")
    parser.add_argument("--limit", type=float, default=900, help="seconds after which a job hangs")
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--raw", type=Path, default=results.FOLDER / "torch_groups.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results" / "torch.md")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    parser.epilog = "example: torch_groups.py --rates 1gbit --calls all_reduce --kib 1024 16384"
    options = parser.parse_args()
    if options.worker:
        torch_jobs.work(options.worker, worker)
        return 0
    for reason in (trainings.why_not(), why_not()):
        if reason:
            print(f"torch_groups: {reason}", file=sys.stderr)
            return 77
    rows = json.loads(options.raw.read_text())["rows"] if options.raw.exists() else []
    measure(options, rows)
    text = page_text(json.loads(options.raw.read_text()))
    print(text)
    results.put(options.page, "torch_groups", text, "# PyTorch\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
