#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a convolutional network on scikit-learn's handwritten digits, by DistributedDataParallel.

1,797 pictures of 8 x 8, a fifth of them held out. Needs scikit-learn, which has the pictures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from ddp_common import training


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures, n x 1 x 8 x 8, and what they show, in a fixed random order."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise SystemExit(f"cnn: {error} (pip install scikit-learn)") from None
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    pictures = torch.from_numpy(data.images).float()[order, None] / 16
    return pictures, torch.from_numpy(data.target).long()[order]


class CnnTask(training.Task):
    NAME = "cnn"
    # channels: 3.9 k, 0.23 M and 0.90 M parameters
    SIZES: ClassVar = {"tiny": 4, "mini": 32, "small": 64}
    rate = 0.05
    BATCH = 32  # for a rank and step

    def __init__(self, size: str) -> None:
        self.channels = self.SIZES[size]
        pictures, labels = digits()
        n = len(labels) // 5
        self.held_out = pictures[:n], labels[:n]
        self.pictures, self.labels = pictures[n:], labels[n:]

    def model(self) -> nn.Module:
        c = self.channels
        model = nn.Sequential(
            nn.Conv2d(1, c, 3, padding=1), nn.ReLU(),
            nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * c, 4 * c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(16 * c, 8 * c), nn.ReLU(), nn.Linear(8 * c, 10),
        )  # fmt: skip
        for layer in model:
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        return model

    def batch(self, draw: torch.Generator) -> training.Batch:
        chosen = torch.randint(len(self.labels), (self.BATCH,), generator=draw)
        return self.pictures[chosen], self.labels[chosen]

    def loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return training.cross_entropy(output, target)

    def quality(self, model: nn.Module) -> dict[str, float]:
        pictures, labels = self.held_out
        output = model(pictures)
        right = (output.argmax(1) == labels).float().mean()
        return {"loss": self.loss(output, labels).item(), "accuracy": right.item()}


if __name__ == "__main__":
    sys.exit(training.main(CnnTask, __doc__))
