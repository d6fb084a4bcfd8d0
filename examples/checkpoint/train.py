#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sharded model that is trained, saved while it trains, killed, and loaded by other ranks.

    torchrun --nproc-per-node 4 train.py checkpoints --steps 60 --die-at 45
    torchrun --nproc-per-node 2 train.py checkpoints --steps 60

The first job saves every 20 steps, in the background, and dies; the second, on half as many ranks,
goes on after the last checkpoint that is complete. README.md says more.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from concurrent.futures import Future
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

from wirepress.torch import CheckpointReader, CheckpointWriter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ddp_common import text

LENGTH, BATCH = 32, 16  # bytes of a piece of text, and pieces of all ranks together


class Model(nn.Module):
    """Predicts the next byte."""

    def __init__(self, width: int = 192, layers: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True)
            for _ in range(layers)
        )
        self.output = nn.Linear(width, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.output(x)


def sharded() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = Model()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    return model, torch.optim.AdamW(model.parameters(), 1e-3)


def loss_of(model: nn.Module, ids: torch.Tensor, step: int) -> torch.Tensor:
    """Of this rank's share of the step's pieces, which are the same for any number of ranks."""
    draw = torch.Generator().manual_seed(step)
    pieces, following = text.windows(ids, BATCH, LENGTH, draw)
    mine = slice(dist.get_rank(), BATCH, dist.get_world_size())
    guess = model(pieces[mine])
    return nn.functional.cross_entropy(guess.flatten(0, 1), following[mine].flatten())


def saved(folder: Path) -> list[int]:
    """Steps whose checkpoints are complete: those that have their metadata."""
    return sorted(int(path.parent.name) for path in folder.glob("*/.metadata"))


def load(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> int:
    """The step to go on with."""
    if not (steps := saved(folder)):
        return 0
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "step": 0}
    reader = CheckpointReader(folder / str(steps[-1]))
    dcp.load(state, storage_reader=reader)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    if dist.get_rank() == 0:
        print(f"goes on after step {state['step']}; rank 0 read {reader.bytes_read} bytes")
    return state["step"]


class Saver:
    """Saves in the background; one save at a time."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self._folder, self._recipe = folder, recipe
        # Of its own, as the collectives of saving come between those of training as they may.
        self._group = dist.new_group()
        self._save: Future | None = None
        self._writer: CheckpointWriter | None = None

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        self.wait()
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments, "step": step}
        self._writer = CheckpointWriter(self._folder / str(step), self._recipe, threads=1)
        self._save = dcp.async_save(state, storage_writer=self._writer, process_group=self._group)

    def wait(self) -> None:
        """Until the last save is on stable storage."""
        if self._save is not None and self._writer is not None:
            self._save.result()
            if dist.get_rank() == 0:
                raw, stored = self._writer.raw_bytes, self._writer.stored_bytes
                print(f"{self._writer.path}: rank 0 stored {stored} bytes of {raw}")
            self._save = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=20, help="steps from save to save")
    parser.add_argument("--die-at", type=int, help="the job ends in this step, without a word")
    parser.add_argument("--recipe", default="planes", help="of the floats; planes loses nothing")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ids = text.byte_ids(text.read(1 << 18)[0])
    model, optimizer = sharded()
    saver = Saver(args.folder, args.recipe)
    for step in range(load(model, optimizer, args.folder), args.steps):
        optimizer.zero_grad()
        loss = loss_of(model, ids, step)
        loss.backward()
        optimizer.step()
        if (step + 1) % args.every == 0:
            saver.save(model, optimizer, step + 1)
        if step == args.die_at:
            os._exit(9)
        if step + 1 == args.steps:
            dist.all_reduce(loss.detach_().div_(dist.get_world_size()))
            if dist.get_rank() == 0:
                print(f"step {step + 1}: loss {loss.item():.4f}")
    saver.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
