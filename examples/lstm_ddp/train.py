#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a word language model, three LSTM layers, by DistributedDataParallel.

Size `paper` has 98,811,898 trained parameters: vocabulary 50,258, embedding of 830, layers of
1150, 1150 and 650, a dense layer back to the vocabulary; `small` has the same proportions. Nearly
all rows of the embedding's gradient are zero (words not in the batch), all else is dense.
"""

from __future__ import annotations

import itertools
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
    words: int
    dims: tuple[int, int, int, int]  # of the embedding and the layers
    batch: int  # pieces of text for a rank and step
    length: int  # words of a piece
    text: int  # bytes to train on


class Lstm(nn.Module):
    def __init__(self, words: int, dims: tuple[int, ...]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, dims[0])
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        pairs = itertools.pairwise(dims)
        self.layers = nn.ModuleList([nn.LSTM(a, b, batch_first=True) for a, b in pairs])
        for layer in self.layers:  # a second bias adds nothing but bytes
            nn.init.zeros_(layer.bias_hh_l0)
            layer.bias_hh_l0.requires_grad_(False)
        self.output = nn.Linear(dims[-1], words)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x, _ = layer(x)
        return self.output(x)


class LstmTask(training.Task):
    NAME = "lstm"
    SIZES: ClassVar = {
        "tiny": Size(500, (16, 24, 24, 16), 4, 16, 200_000),
        "small": Size(10_000, (200, 460, 460, 260), 8, 35, 8_000_000),
        "paper": Size(50_258, (830, 1150, 1150, 650), 20, 35, 40_000_000),
    }
    rate = 2.0
    clip = 0.25

    def __init__(self, size: str) -> None:
        self.size = self.SIZES[size]
        self.ids, self.held_out = text.word_ids(self.size.words, *text.read(self.size.text))

    def model(self) -> nn.Module:
        return Lstm(self.size.words, self.size.dims)

    def batch(self, draw: torch.Generator) -> training.Batch:
        return text.windows(self.ids, self.size.batch, self.size.length, draw)

    def loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return training.cross_entropy(output, target)

    def quality(self, model: nn.Module) -> dict[str, float]:
        draw = torch.Generator().manual_seed(0)
        inputs, target = text.windows(self.held_out, 32, self.size.length, draw)
        return {"loss": self.loss(model(inputs), target).item()}


if __name__ == "__main__":
    sys.exit(training.main(LstmTask, __doc__))
