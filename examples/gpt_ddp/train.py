#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a transformer that predicts the next byte, by DistributedDataParallel.

All of its gradient is dense: 256 bytes leave no rows of zeros in the embedding.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from ddp_common import text, training


@dataclass(frozen=True)
class Size:
    width: int
    layers: int
    heads: int
    batch: int  # pieces of text for a rank and step
    length: int  # bytes of a piece
    text: int  # bytes to train on


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, size.width)
        self.place = nn.Embedding(size.length, size.width)
        self.blocks = nn.ModuleList([Block(size.width, size.heads) for _ in range(size.layers)])
        self.norm, self.head = nn.LayerNorm(size.width), nn.Linear(size.width, 256)
        nn.init.normal_(self.embedding.weight, std=0.2)
        nn.init.normal_(self.place.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids) + self.place.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class GptTask(training.Task):
    NAME = "gpt"
    SIZES: ClassVar = {
        "tiny": Size(32, 1, 2, 4, 32, 200_000),
        "mini": Size(128, 2, 4, 4, 64, 2_000_000),  # 0.47 M parameters
        "small": Size(256, 4, 8, 8, 128, 8_000_000),  # 3.3 M
        "large": Size(768, 12, 12, 8, 512, 40_000_000),  # 86 M
    }
    rate = 0.1
    clip = 1.0

    def __init__(self, size: str) -> None:
        self.size = self.SIZES[size]
        train, held_out = text.read(self.size.text)
        self.ids, self.held_out = text.byte_ids(train), text.byte_ids(held_out)

    def model(self) -> nn.Module:
        return Gpt(self.size)

    def batch(self, draw: torch.Generator) -> training.Batch:
        return text.windows(self.ids, self.size.batch, self.size.length, draw)

    def loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return training.cross_entropy(output, target)

    def quality(self, model: nn.Module) -> dict[str, float]:
        draw = torch.Generator().manual_seed(0)
        inputs, target = text.windows(self.held_out, 64, self.size.length, draw)
        return {"loss": self.loss(model(inputs), target).item()}


if __name__ == "__main__":
    sys.exit(training.main(GptTask, __doc__))
