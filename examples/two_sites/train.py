#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sites that train one model together and talk rarely: DDP inside a site, outer steps between them.

    torchrun --nproc-per-node 4 train.py

Two sites of two ranks each. README.md says more.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import wirepress.torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ddp_common import text

LENGTH, BATCH = 32, 8  # bytes of a piece of text, and pieces of a rank


class Model(nn.Module):
    """Predicts the next byte."""

    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.output = nn.Linear(width, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.output(self.layers(self.embedding(tokens), mask=mask, is_causal=True))


def loss_of(model: nn.Module, ids: torch.Tensor, batch: int, seed: int) -> torch.Tensor:
    """Of pieces of text that the seed draws."""
    draw = torch.Generator().manual_seed(seed)
    pieces, following = text.windows(ids, batch, LENGTH, draw)
    return nn.functional.cross_entropy(model(pieces).flatten(0, 1), following.flatten())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--method", default="int4", help="int4, sparseloco:k=64, none (%(default)s)"
    )
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20, help="steps from round to round")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks % args.sites:
        sys.exit(f"{ranks} ranks are not {args.sites} sites of one size")
    of_site = ranks // args.sites
    site = rank // of_site
    groups = [
        dist.new_group(list(range(first, first + of_site))) for first in range(0, ranks, of_site)
    ]
    inside = groups[site]

    ids = text.byte_ids(text.read(1 << 18)[0])
    held_out, ids = ids[: 1 << 14], ids[1 << 14 :]
    torch.manual_seed(1)
    model = Model()
    outer = wirepress.torch.OuterStep(
        model, args.method, every=args.every, inside=inside, name=f"site {site}", peers=args.sites
    )
    ddp = DistributedDataParallel(model, process_group=inside)
    optimizer = torch.optim.AdamW(ddp.parameters(), 3e-3)
    began = time.perf_counter()
    for step in range(args.steps):
        optimizer.zero_grad()
        loss_of(ddp, ids, BATCH, step * ranks + rank).backward()
        optimizer.step()
        if outer.step() and rank == 0:
            with torch.no_grad():
                loss = loss_of(model, held_out, 64, -1).item()
            counts = outer.counts
            print(
                f"step {step + 1}: loss {loss:.4f}; to each other site {counts.coded_bytes} bytes, "
                f"of {counts.raw_bytes} in float32",
                flush=True,
            )
    if rank == 0:
        print(f"{time.perf_counter() - began:.1f} s, {outer.counts.rounds} rounds")
    dist.barrier()
    outer.close()
    del ddp
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
