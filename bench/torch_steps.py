#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps on hosts joined by a slow link: seconds, bytes and loss, by communication hook.

The trainings of examples/ in size `small`, 2 and 4 ranks on two hosts (network namespaces; needs
root), with DistributedDataParallel as it is, with PyTorch's fp16, bf16 and PowerSGD hooks, with
wirepress's, and with one that sends nothing. In one job all of them train in turns, each its own
copy of the model, a few steps at a time; seconds are medians of the blocks, ratios medians of the
ratios of neighbours. Bytes are those of the network cards. The loss comes from jobs without a limit
of the rate, which change nothing but the clock. All of it takes about 35 minutes on two quiet
cores, and goes on where it was stopped: a job that is there is not run again (--again). Writes
bench/results/torch_steps.json and a part of docs/results/torch.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import results
import torch_jobs
import trainings
from results import ROOT
from torch_jobs import Row

sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, why_not

THEIRS = {  # name in the table: arguments of train.py; {warm}: a fifth of the steps
    "plain": "",
    "plain, 25 MB": "--bucket-mb 25",
    "noop": "--hook noop",
    "fp16": "--hook fp16",
    "bf16": "--hook bf16",
    "PowerSGD 1": "--hook powersgd:1",
    "PowerSGD 4": "--hook powersgd:4",
}
OURS = {
    "wp none": "--compress none",
    "wp int8": "--compress int8",
    "wp int4": "--compress int4",
    "wp int4+zstd": "--compress int4+zstd:1",
    "wp onebit": "--compress onebit:block=7 --warmup {warm}",
    "wp terngrad": "--compress terngrad",
    "wp terngrad+zstd": "--compress terngrad+zstd:1",
    "wp terngrad+trits": "--compress terngrad+trits",
    "wp terngrad, no clip, +trits": "--compress terngrad:clip=0+trits",
    "wp topk 1 %": "--compress topk:ratio=0.01",
    "wp dgc 1 %": "--compress dgc:ratio=0.01 --set ramp_steps={warm}",
    "wp powersgd 1": "--compress powersgd:rank=1",
    "wp powersgd 4": "--compress powersgd:rank=4",
    "wp auto": "--compress auto",
}
METHODS = THEIRS | OURS
NOT_BY_DEFAULT = ("wp none", "wp topk 1 %")
# Decode to the same bits, so the loss is the same, and is not measured again.
SAME_BITS = {"wp int4+zstd": "wp int4", "wp terngrad+zstd": "wp terngrad",
             "wp terngrad+trits": "wp terngrad"}  # fmt: skip
NOTHING_NEW = ("noop", "plain, 25 MB")  # for the loss: learns on each rank apart; is plain
# DDP's own, 25 MB, are most of these models, and leave when backward is done. PyTorch's PowerSGD
# wants one bucket (examples/ddp_common/hooks.py).
SMALL_BUCKETS = "--bucket-mb 4"
LOSS_STEPS = {"lstm": 80, "gpt": 100, "cnn": 100}
WARM = 3  # steps before a method's first block: DDP makes its buckets anew after the first
AUTO_WARM = 20  # until auto has chosen
BLOCK = 2  # steps timed in a block, after one that is not
TIMELINE = 4  # steps in a timeline
ROUNDS = (3, 16)  # blocks of each method, at least and at most
WITHIN = 0.005  # of the baseline's loss
ABOUT = {"lstm": 65, "gpt": 60, "cnn": 35}  # seconds of a job on two ranks at 1 Gb/s
ABOUT_LOSS = {"lstm": 300, "gpt": 420, "cnn": 60}


# ---- a rank --------------------------------------------------------------------------------------


def worker(job: Row) -> list[Row]:
    task = trainings.task_type(job["model"])(job["size"])
    return (losses if job["what"] == "loss" else blocks)(job, task)


def arguments(method: str, timed: bool) -> str:
    return f"{SMALL_BUCKETS} {METHODS[method]}".strip() if timed else METHODS[method]


def options_of(task: Any, method: str, steps: int, timed: bool) -> argparse.Namespace:
    from ddp_common import training

    # what is timed is the step of after the warm-up
    words = arguments(method, timed).format(warm=0 if timed else steps // 5).split()
    parser = training.make_parser(type(task), task.NAME)
    return parser.parse_args([*words, "--steps", str(steps)])


def losses(job: Row, task: Any) -> list[Row]:
    from ddp_common import training

    rows = []
    for number, method in enumerate(job["methods"]):
        torch_jobs.tell(job, number / len(job["methods"]))
        if method in NOTHING_NEW or method in SAME_BITS:
            continue
        trainer = training.Trainer(task, options_of(task, method, job["steps"], False))
        record = training.train(trainer, {"method": method})
        rows.append({"method": method, "loss": record.loss, "held_out": record.held_out})
        del trainer
    return rows


def blocks(job: Row, task: Any) -> list[Row]:
    from ddp_common import training

    trainers = {}
    for number, method in enumerate(job["methods"]):
        trainers[method] = training.Trainer(task, options_of(task, method, 10**6, True))
        for _ in range(AUTO_WARM if method == "wp auto" else WARM):
            trainers[method].step()
        torch_jobs.tell(job, 0.3 * number / len(job["methods"]))
    rows: dict[str, Row] = {m: {"method": m, "seconds": [], "bytes": []} for m in trainers}

    def one(number: int) -> None:
        names = list(trainers)
        turn = number * 5 % len(names)
        for method in names[turn:] + names[:turn]:
            seconds, sent = block(trainers[method])
            rows[method]["seconds"].append(seconds)
            rows[method]["bytes"].append(sent)

    torch_jobs.rounds_of(job, ROUNDS, one)
    for method, trainer in trainers.items():
        if trainer.state is not None:
            rows[method]["statistics"] = json.loads(
                json.dumps(trainer.state.statistics(), default=str)
            )
            if job["timelines"]:
                words = f"{job['model']} {job['rate']} {job['ranks']} {method}".replace(" ", "-")
                with trainer.state.timeline(f"{job['timelines']}/{words}.json"):
                    for _ in range(TIMELINE):
                        trainer.step()
    return list(rows.values())


def block(trainer: Any) -> tuple[float, float]:
    """Seconds of a step on the slowest rank, and bytes that all hosts sent for it."""
    import torch
    import torch.distributed as dist
    from ddp_common import training

    trainer.step()
    dist.barrier()
    sent, began = training.sent_bytes(), time.perf_counter()
    for _ in range(BLOCK):
        trainer.step()
    slowest = torch.tensor((time.perf_counter() - began) / BLOCK)
    dist.barrier()
    first_of_host = os.environ["LOCAL_RANK"] == "0"
    total = torch.tensor((training.sent_bytes() - sent) / BLOCK if first_of_host else 0.0)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    dist.all_reduce(total)
    return slowest.item(), total.item()


# ---- jobs ----------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, rows: list[Row]) -> list[Row]:
    default = [m for m in METHODS if m not in NOT_BY_DEFAULT]
    methods = [m for m in METHODS if m in (options.methods or default)]
    if trainings.without_hook():
        print("torch_steps: there is no wirepress.torch: PyTorch's own hooks only")
        methods = [m for m in methods if m in THEIRS]
    left = [job for job in jobs(options) if options.again or not there(rows, job, methods)]
    if not left:
        return rows
    progress = torch_jobs.Progress([about(job, len(methods)) for job in left])
    with Hosts(2, "none") as hosts:
        for job in left:
            hosts.set_rate(job["rate"])
            more = {"methods": methods, "size": options.size, "seconds": options.seconds,
                    "steps": options.loss_steps or LOSS_STEPS[job["model"]],
                    "timelines": options.timelines}  # fmt: skip
            began = time.monotonic()
            measured = torch_jobs.run(
                __file__, hosts, job["ranks"], job | more, options.limit, progress.at
            )
            # Blocks of another run are no neighbours of these.
            timed = job["what"] == "steps"
            rows = [r for r in rows if not (same(r, job) and (timed or r["method"] in methods))]
            rows += [
                job | {"size": options.size, "arguments": arguments(row["method"], timed)} | row
                for row in measured
            ]
            results.write("torch_steps", {"torch": trainings.version(), "rows": rows}, options.raw)
            words = " ".join(str(value) for value in job.values())
            progress.next(f"{words}: {time.monotonic() - began:.0f} s")
    progress.close()
    return rows


def there(rows: list[Row], job: Row, methods: list[str]) -> bool:
    """Whether a job was done, with these methods as they are now."""
    timed = job["what"] == "steps"
    found = {
        r["method"]
        for r in rows
        if same(r, job) and r.get("arguments") == arguments(r["method"], timed)
    }
    return found >= set(methods) - set(() if timed else (*NOTHING_NEW, *SAME_BITS))


def about(job: Row, n_methods: int) -> float:
    """Seconds that a job takes, about."""
    if job["what"] == "loss":
        return ABOUT_LOSS[job["model"]] * n_methods / 13
    slower = 1.6 if job["rate"] == "200mbit" else 1.0
    return (15 + ABOUT[job["model"]] * job["ranks"] / 2 * slower) * n_methods / 13


def jobs(options: argparse.Namespace) -> list[Row]:
    timed = [
        {"what": "steps", "model": model, "ranks": ranks, "rate": rate}
        for model in options.models
        for rate in options.rates
        for ranks in options.ranks
    ]
    learning = [
        {"what": "loss", "model": model, "ranks": 2, "rate": "none"} for model in options.models
    ]
    return timed + ([] if options.no_loss else learning)


def same(row: Row, job: Row) -> bool:
    return all(row[key] == value for key, value in job.items())


# ---- the page ------------------------------------------------------------------------------------


class Table:
    """What was measured of one model, link and number of ranks, by method."""

    def __init__(self, rows: list[Row], model: str, ranks: int, rate: str) -> None:
        job = {"what": "steps", "model": model, "ranks": ranks, "rate": rate}
        self.rows = {row["method"]: row for row in rows if same(row, job)}
        self.learned = {
            row["method"]: row for row in rows if row["what"] == "loss" and row["model"] == model
        }

    def seconds(self, method: str) -> float:
        return median(self.rows[method]["seconds"])

    def faster(self, method: str, than: str) -> float:
        """How many times as fast a step is; of neighbours."""
        pairs = zip(self.rows[method]["seconds"], self.rows[than]["seconds"], strict=True)
        return median(b / a for a, b in pairs)

    def loss(self, method: str) -> float:
        row = self.learned.get(SAME_BITS.get(method, method))
        return row["held_out"][-1].get("loss", math.nan) if row else math.nan

    def holds(self, method: str) -> bool:
        """Whether the loss is within the limit of the baseline's."""
        return self.loss(method) <= self.loss("plain") * (1 + WITHIN)

    def time_to_loss(self, method: str) -> float:
        """Seconds until the held-out loss is the baseline's last one, about."""
        aim = self.loss("plain") * (1 + WITHIN)
        learned = self.learned.get(SAME_BITS.get(method, method), {"held_out": []})
        for point in learned["held_out"]:
            if point["loss"] <= aim:
                return point["step"] * self.seconds(method)
        return math.nan

    def text(self) -> str:
        text = (
            "| hook | ms a step | x plain | of noop's rate | MB a step | loss | s to the loss |\n"
            "|---|---:|---:|---:|---:|---:|---:|\n"
        )
        for method in self.rows:
            sent = median(self.rows[method]["bytes"]) / 1e6
            loss = self.loss(method)
            mark = "" if self.holds(method) or math.isnan(loss) else " (!)"
            cells = [
                f"{1e3 * self.seconds(method):.0f}",
                f"{self.faster(method, 'plain'):.2f}",
                f"{self.faster(method, 'noop'):.2f}",
                f"{sent:.2f}",
                number(loss, ".3f") + mark,
                number(self.time_to_loss(method), ".1f"),
            ]
            text += f"| {method} | {' | '.join(cells)} |\n"
        return text

    def aims(self) -> list[str]:
        """The best of ours that holds the loss against what it has to beat."""
        ours = [m for m in self.rows if m in OURS and m != "wp none" and self.holds(m)]
        if not ours:
            return ["", "", "", ""]
        best = max(ours, key=lambda m: self.faster(m, "plain"))
        casts = [m for m in ("fp16", "bf16") if m in self.rows]
        power = [m for m in self.rows if m.startswith("PowerSGD") and self.holds(m)]
        return [
            best,
            mark(self.faster(best, "noop"), 0.8),
            mark(min(self.faster(best, m) for m in casts), 1.3) if casts else "",
            mark(min(self.faster(best, m) for m in power), 1.0) if power else "none holds it",
        ]


def number(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)


def mark(value: float, aim: float) -> str:
    return f"{value:.2f}" if value >= aim else f"**{value:.2f}**"


def page_text(rows: list[Row]) -> str:
    found = {(r["model"], r["rate"], r["ranks"]) for r in rows if r["what"] == "steps"}
    order = {model: place for place, model in enumerate(LOSS_STEPS)}
    keys = sorted(found, key=lambda key: (order[key[0]], key[1:]))
    tables = {key: Table(rows, key[0], key[2], key[1]) for key in keys}
    tables = {key: table for key, table in tables.items() if {"plain", "noop"} <= set(table.rows)}
    text = (
        "Made by `make bench ARGS=torch_steps`. *noop* sends nothing: no hook can be faster, but "
        "for noise. *loss*: held out, after a fixed number of steps; (!): more than "
        f"{WITHIN:.1%} above plain's. *s to the loss*: seconds until the loss is that of plain "
        "at its end.\n\n"
        "The best hook of wirepress that holds the loss, and how many times as fast as others a "
        "step is with it. Aims: 0.8 of noop, 1.3 of fp16 and bf16, 1.0 of every PowerSGD rank "
        "that holds the loss; what is short of them is bold.\n\n"
        "| model | link | ranks | best | of noop's rate | fp16, bf16 | PowerSGD |\n"
        "|---|---|---:|---|---:|---:|---:|\n"
    )
    for (model, rate, ranks), table in tables.items():
        text += f"| {model} | {rate} | {ranks} | {' | '.join(table.aims())} |\n"
    for (model, rate, ranks), table in tables.items():
        text += f"\n### {model}, {rate}, {ranks} ranks\n\n{table.text()}"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", choices=LOSS_STEPS, default=[*LOSS_STEPS])
    parser.add_argument("--methods", nargs="*", choices=METHODS, metavar="NAME")
    parser.add_argument("--rates", nargs="*", default=["1gbit", "200mbit"])
    parser.add_argument("--ranks", nargs="*", type=int, choices=(2, 4, 8), default=[2, 4])
    parser.add_argument("--size", default="small", help="of the models (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of blocks in a job, about")
    parser.add_argument("--loss-steps", type=int, help=f"default {LOSS_STEPS}")
    parser.add_argument("--no-loss", action="store_true")
    parser.add_argument("--timelines", metavar="FOLDER", help="for when buckets passed each stage")
    parser.add_argument("--limit", type=float, default=900, help="seconds after which a job hangs")
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--raw", type=Path, default=results.FOLDER / "torch_steps.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results" / "torch.md")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    parser.epilog = "example: torch_steps.py --models gpt --rates 1gbit --ranks 2 --no-loss"
    options = parser.parse_args()
    if options.worker:
        torch_jobs.work(options.worker, worker)
        return 0
    options.models = [m for m in options.models if not trainings.missing("torch_steps", m)]
    if not options.models:
        return 77
    if reason := why_not():
        print(f"torch_steps: {reason}", file=sys.stderr)
        return 77
    rows = json.loads(options.raw.read_text())["rows"] if options.raw.exists() else []
    rows = measure(options, rows)
    text = page_text(rows)
    print(text)
    results.put(options.page, "torch_steps", text, "# PyTorch\n\n## Measured\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
