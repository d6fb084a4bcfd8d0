# SPDX-License-Identifier: Apache-2.0
"""The loop of data-parallel training, its measurements, and its command line."""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import os
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed as dist

# DDP imports this module when it is first made. The module's default arguments then keep the
# group of that moment for ever.
import torch.distributed.nn
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from . import hooks

Batch = tuple[torch.Tensor, torch.Tensor]


class Task(ABC):
    """A model, its data, and how it learns. `SIZES`: what each name of --size means."""

    NAME: ClassVar[str]
    SIZES: ClassVar[dict[str, Any]]
    rate: float  # of learning, at the start
    momentum: float = 0.9
    clip: float = math.inf  # norm of the averaged gradient

    @abstractmethod
    def model(self) -> nn.Module: ...

    @abstractmethod
    def batch(self, draw: torch.Generator) -> Batch:
        """One rank's part of a step."""

    @abstractmethod
    def loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor: ...

    @abstractmethod
    def quality(self, model: nn.Module) -> dict[str, float]:
        """On data that were not trained on; `loss` is among them."""


def cross_entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())


def rate_at(step: int, steps: int, rate: float) -> float:
    """Rises in the first tenth of the steps, then falls to 0 as a cosine."""
    return rate * min(1, (step + 1) / (0.1 * steps)) * 0.5 * (1 + math.cos(math.pi * step / steps))


def draw_of(seed: int, rank: int, step: int) -> torch.Generator:
    """What a rank draws in a step, whatever happened before."""
    return torch.Generator().manual_seed((seed * 1_000_003 + step) * 4096 + rank)


class Trainer:
    """One training under way; every rank makes the same calls."""

    def __init__(self, task: Task, options: argparse.Namespace) -> None:
        self.task, self.options = task, options
        torch.manual_seed(options.seed)
        self.model = task.model()
        # buckets as views of gradients: one copy less in a step, with every hook
        self.ddp = DistributedDataParallel(
            self.model, bucket_cap_mb=hooks.bucket_cap(options), gradient_as_bucket_view=True
        )
        self.state = hooks.register(self.ddp, options, task)
        named = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.trained = list(named.values())
        corrected = hooks.has_momentum(self.state)
        groups = [
            {"params": [p for name, p in named.items() if name not in corrected]},
            {"params": [p for name, p in named.items() if name in corrected], "momentum": 0.0},
        ]
        self.optimizer = torch.optim.SGD(
            [g for g in groups if g["params"]], task.rate, task.momentum
        )
        self.clip = math.inf if corrected else task.clip  # the hook clips before compressing
        self.steps_done = 0

    def step(self) -> float:
        """This rank's loss."""
        task, options = self.task, self.options
        draw = draw_of(options.seed, dist.get_rank(), self.steps_done)
        inputs, target = task.batch(draw)
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.steps_done, options.steps, task.rate)
        self.optimizer.zero_grad()
        loss = task.loss(self.ddp(inputs), target)
        loss.backward()
        if self.clip < math.inf:
            nn.utils.clip_grad_norm_(self.trained, self.clip)
        self.optimizer.step()
        self.steps_done += 1
        return loss.item()

    def quality(self) -> dict[str, float]:
        self.model.eval()
        with torch.no_grad():
            measured = self.task.quality(self.model)
        self.model.train()
        return measured


def nic() -> str:
    """The network device that gloo uses; between ranks of one machine that is the loopback."""
    return os.environ.get("GLOO_SOCKET_IFNAME") or "lo"


def sent_bytes(device: str | None = None) -> int:
    """What this host's network device has sent so far, by whatever program."""
    counter = Path("/sys/class/net") / (device or nic()) / "statistics" / "tx_bytes"
    return int(counter.read_text()) if counter.exists() else 0


@dataclass
class Record:
    """What is written to --json."""

    about: dict[str, Any]
    loss: list[float] = field(default_factory=list)  # mean of the ranks, by step
    step_seconds: list[float] = field(default_factory=list)
    nic_bytes: list[int] = field(default_factory=list)  # sent by this host since the start
    held_out: list[dict[str, float]] = field(default_factory=list)
    statistics: dict[str, Any] = field(default_factory=dict)  # wirepress's own

    def write(self, path: Path) -> None:
        series = {key: value for key, value in vars(self).items() if key != "about"}
        path.write_text(json.dumps({**self.about, **series}, indent=1, default=str) + "\n")


def train(trainer: Trainer, about: dict[str, Any]) -> Record:
    options, record = trainer.options, Record(about)
    first = dist.get_rank() == 0
    spent, bytes_at_start = 0.0, sent_bytes()
    for step in range(1, options.steps + 1):
        began = time.perf_counter()
        loss = torch.tensor(trainer.step())
        seconds = time.perf_counter() - began
        spent += seconds
        record.nic_bytes.append(sent_bytes() - bytes_at_start)
        dist.all_reduce(loss)
        record.loss.append(loss.item() / dist.get_world_size())
        record.step_seconds.append(seconds)
        if step % options.evaluate == 0 or step == options.steps:
            now = {"step": step, "seconds": spent, "nic_bytes": record.nic_bytes[-1]}
            record.held_out.append({**now, **(trainer.quality() if first else {})})
            if first:
                print(progress(record, step), flush=True)
        if not math.isfinite(record.loss[-1]):
            break  # all ranks see the same mean
    if trainer.state is not None:
        record.statistics = dict(trainer.state.statistics())
    return record


def progress(record: Record, step: int) -> str:
    quality = {k: v for k, v in record.held_out[-1].items() if k not in ("step", "seconds")}
    sent = quality.pop("nic_bytes")
    held_out = "  ".join(f"{key} {value:.4f}" for key, value in quality.items())
    recent = sorted(record.step_seconds[-10:])
    return (
        f"step {step:5d}  train {record.loss[-1]:.4f}  held out: {held_out}  "
        f"{1e3 * recent[len(recent) // 2]:.0f} ms/step  {sent / 1e6:.1f} MB sent on {nic()}"
    )


def make_parser(task: type[Task], text: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=text.splitlines()[0],
        epilog=f"example: torchrun --nproc-per-node 2 {task.NAME}_ddp/train.py --compress int8",
    )
    parser.add_argument("--size", choices=task.SIZES, default="small", help="(%(default)s)")
    parser.add_argument("--steps", type=int, default=100, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--evaluate", type=int, default=10, metavar="N",
                        help="steps between looks at held-out data (%(default)s)")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write loss, seconds and bytes")
    parser.add_argument("--plot", type=Path, metavar="FILE.png",
                        help="draw loss against time and bytes (needs matplotlib)")  # fmt: skip
    hooks.add_arguments(parser)
    return parser


def main(task_type: type[Task], text: str) -> int:
    options = make_parser(task_type, text).parse_args()
    if "RANK" not in os.environ:
        print("start this with torchrun: torchrun --nproc-per-node 2 ...", file=sys.stderr)
        return 2
    if options.steps < 1 or options.evaluate < 1:
        print("--steps and --evaluate are at least 1", file=sys.stderr)
        return 2
    dist.init_process_group("gloo")
    code = run(task_type(options.size), options)
    # DDP lies in a cycle of references and holds the group. A group that outlives this call leaves
    # gloo's threads running, and they may abort the process as it exits.
    gc.collect()
    dist.destroy_process_group()
    return code


def run(task: Task, options: argparse.Namespace) -> int:
    trainer = Trainer(task, options)
    about = {
        "example": task.NAME,
        "method": hooks.name(options),
        "size": options.size,
        "parameters": sum(p.numel() for p in trainer.trained),
        "ranks": dist.get_world_size(),
        "seed": options.seed,
        "nic": nic(),
        "torch": torch.__version__,
    }
    first = dist.get_rank() == 0
    if first:
        print("  ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    record = train(trainer, about)
    if first:
        save(record, options)
    if not math.isfinite(record.loss[-1]):
        print("the loss is no longer finite", file=sys.stderr)
        return 1
    if options.hook != "noop" and not same_everywhere(trainer.model):
        print("the ranks' parameters differ", file=sys.stderr)
        return 1
    return 0


def same_everywhere(model: nn.Module) -> bool:
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    digests: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(digests, digest.digest())
    return len(set(digests)) == 1


def save(record: Record, options: argparse.Namespace) -> None:
    if options.json:
        record.write(options.json)
    if options.plot:
        from . import plot

        plot.draw([{**record.about, **vars(record)}], options.plot)
