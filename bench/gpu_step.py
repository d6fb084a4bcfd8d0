#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the hook costs a training step on one GPU: GPT-2 small, without and with compression.

    bench/gpu_step.py                   methods onebit, int8, topk and planes on this machine's GPU
    bench/gpu_step.py --out FILE        the same, the result to FILE
    bench/gpu_step.py --device cpu --layers 1 --width 64 --heads 4 --tokens 32 --vocabulary 300
                                        that it runs, on any machine

One rank: DistributedDataParallel sends nothing, and the hook codes every gradient and expands what
it would have sent. 124 million parameters, 8 sequences of 1024 tokens, bfloat16 autocast, AdamW;
all models are trained in turns, a few steps each, and a cost is the median over rounds of the ratio
to plain DDP's neighbouring turn (aim: below 1.03). Needs PyTorch and wirepress. Writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def model_of(options: argparse.Namespace) -> Any:
    import torch
    from torch import nn

    class Gpt(nn.Module):
        """Blocks of attention and two linear layers; the head has the embedding's weights."""

        def __init__(self) -> None:
            super().__init__()
            width = options.width
            self.tokens = nn.Embedding(options.vocabulary, width)
            self.places = nn.Embedding(options.tokens, width)
            block = nn.TransformerEncoderLayer(
                width, options.heads, 4 * width, dropout=0.0, activation="gelu",
                batch_first=True, norm_first=True,
            )  # fmt: skip
            self.blocks = nn.TransformerEncoder(
                block, options.layers, nn.LayerNorm(width), enable_nested_tensor=False
            )

        def forward(self, text: Any) -> Any:
            n = text.shape[1]
            x = self.tokens(text) + self.places.weight[:n]
            mask = nn.Transformer.generate_square_subsequent_mask(n, device=text.device)
            return self.blocks(x, mask=mask, is_causal=True) @ self.tokens.weight.T

    torch.manual_seed(0)
    return Gpt().to(options.device)


def trainer(options: argparse.Namespace, method: str) -> tuple[Callable[[], None], Any, int]:
    """A function that does a step, the hook's state (None without a hook), and the number of
    parameters."""
    import torch
    from torch.nn import functional
    from torch.nn.parallel import DistributedDataParallel

    import wirepress.torch

    model = DistributedDataParallel(model_of(options))
    state = wirepress.torch.compress(model, method) if method else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    random = torch.Generator().manual_seed(1)
    shape = (options.batch, options.tokens + 1)
    text = torch.randint(options.vocabulary, shape, generator=random).to(options.device)

    def step() -> None:
        with torch.autocast(options.device, torch.bfloat16):
            guess = model(text[:, :-1])
        loss = functional.cross_entropy(guess.float().flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, state, sum(p.numel() for p in model.parameters())


def turn(options: argparse.Namespace, step: Callable[[], None]) -> float:
    """Seconds of a step, when all of them are done."""
    import torch

    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    wait()
    begin = time.perf_counter()
    for _ in range(options.steps):
        step()
    wait()
    return (time.perf_counter() - begin) / options.steps


def measure(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    trainers = {name: trainer(options, name) for name in ("", *options.methods)}
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for name in trainers:  # warms up
        turn(options, trainers[name][0])
    for _ in range(options.rounds):
        for name in trainers:
            seconds[name].append(turn(options, trainers[name][0]))
    on_gpu = options.device == "cuda"
    rows = []
    for name, (_, state, _) in trainers.items():
        ratios = [a / b for a, b in zip(seconds[name], seconds[""], strict=True)]
        row = {"method": name or "plain", "step_s": statistics.median(seconds[name]),
               "cost": statistics.median(ratios)}  # fmt: skip
        if state is not None:
            row["statistics"] = state.statistics()
            state.close()
        rows.append(row)
    return {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "torch": torch.__version__,
        "parameters": trainers[""][2],
        "settings": {name: value for name, value in vars(options).items() if name != "out"},
        "rows": rows,
    }


def table(found: dict[str, Any]) -> str:
    lines = [f"{found['device']}: {found['parameters'] / 1e6:.0f} million parameters"]
    for row in found["rows"]:
        line = (
            f"{row['method']:<10} {1e3 * row['step_s']:9.2f} ms a step, {row['cost']:.3f} of plain"
        )
        if "statistics" in row:
            done = row["statistics"]
            line += f"; bytes coded by the device {done['device_bytes']}"
            line += f", by the cores in its place {done['cores_bytes']}"
        lines.append(line)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=["onebit", "int8", "topk", "planes"])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path)
    sizes = {"layers": 12, "width": 768, "heads": 12, "tokens": 1024, "batch": 8}
    for name, value in {**sizes, "vocabulary": 50257, "steps": 5, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    options = parser.parse_args()
    if options.width % options.heads:
        parser.error(f"--width {options.width} is no multiple of --heads {options.heads}")
    import torch
    import torch.distributed as dist

    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("gpu_step: PyTorch sees no CUDA device; --device cpu tries the program")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=0, world_size=1)
        found = measure(options)
        dist.destroy_process_group()
    print(table(found))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
