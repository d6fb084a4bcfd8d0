#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients and weights of four small trainings, as test data: raw float32 files.

    bench/gradients.py FOLDER [--steps 12] [--only lstm tf cnn mlp]

Trains for a few steps on this machine's processor and writes, for the last step,

    lstm_all  an LSTM for words (embedding 50257 x 830, layers 830-1150-1150-650, output 50257;
              batch 20 x 35, Adam 1e-3, clipped at 0.25), all parameters; the first quarter of
              each bucket, so that the file has 99 MB and the mix of the whole
    lstm_l2   its second layer alone, dense; lstm_l2_w: the weights of that layer
    lstm_out  its output layer alone, dense; the first 100 MB
    tf        a transformer for bytes (384 wide, 4 layers)
    cnn       a convolutional network with ReLU and batch norm on synthetic images
    mlp       64-1024-1024-10 with ReLU on synthetic digits

_all, tf, cnn and mlp are in the order in which data-parallel training sends them: parameters last
to first, one after the other, in buckets of 25 MiB. The text is that of
sample_data.py.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("gradients: there is no PyTorch in this Python; make setup puts it into .venv")

import numpy as np
import sample_data

BUCKET = 25 << 20  # bytes
MOST = 100 * 10**6  # bytes of a file

Step = Callable[[], torch.Tensor]


# ---- models ---------------------------------------------------------------------------------


class Words(nn.Module):
    """A language model over words."""

    VOCABULARY = 50257
    SIZES = (830, 1150, 1150, 650)

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(self.VOCABULARY, self.SIZES[0])
        pairs = itertools.pairwise(self.SIZES)
        self.layers = nn.ModuleList([nn.LSTM(a, b, batch_first=True) for a, b in pairs])
        self.output = nn.Linear(self.SIZES[-1], self.VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x, _ = layer(x)
        return self.output(x)


class Bytes(nn.Module):
    """A transformer over bytes."""

    WIDTH, LAYERS, LENGTH = 384, 4, 256

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, self.WIDTH)
        self.place = nn.Embedding(self.LENGTH, self.WIDTH)
        layer = nn.TransformerEncoderLayer(
            self.WIDTH, 6, 4 * self.WIDTH, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, self.LAYERS, enable_nested_tensor=False)
        self.output = nn.Linear(self.WIDTH, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        x = self.embedding(tokens) + self.place(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.output(self.layers(x, mask=mask, is_causal=True))


def convolutions() -> nn.Module:
    """Four stages for images of 3 x 32 x 32, 9.7 million parameters."""
    stages: list[nn.Module] = []
    widths = (3, 64, 128, 256, 512)
    for a, b in itertools.pairwise(widths):
        for first in (a, b, b):
            stages += [nn.Conv2d(first, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
        stages.append(nn.MaxPool2d(2))
    return nn.Sequential(*stages, nn.Flatten(), nn.Linear(512 * 4, 10))


# ---- data -----------------------------------------------------------------------------------


def word_tokens(vocabulary: int) -> torch.Tensor:
    """The text as numbers of its words, the commonest first, in order of their appearance."""
    words = re.findall(r"\w+|[^\w\s]", sample_data.text().decode("utf-8", "replace"))
    common = {word for word, _ in Counter(words).most_common(vocabulary - 1)}
    number: dict[str, int] = {}
    ids = [number.setdefault(word, len(number) + 1) if word in common else 0 for word in words]
    return torch.tensor(ids)


def classes(n: int, shape: tuple[int, ...], draw: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Smooth pictures of ten classes with noise, and which of them each is."""
    smooth = nn.functional.interpolate(
        torch.randn((10, shape[0], 4, 4), generator=draw), shape[1:], mode="bicubic"
    )
    labels = torch.randint(10, (n,), generator=draw)
    noise = torch.randn((n, *shape), generator=draw)
    return (smooth[labels] + noise).clamp(min=0), labels


# ---- training -------------------------------------------------------------------------------


def train(name: str, model: nn.Module, loss_of: Step, steps: int, clip: float | None) -> None:
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        spent = time.perf_counter() - began
        print(f"{name}: step {step + 1} of {steps}, loss {loss.item():.3f}, {spent:.1f} s")
        if step + 1 < steps:
            optimizer.step()  # the last gradient is that of the weights as they stand


def next_token_loss(model: nn.Module, tokens: torch.Tensor, batch: int, length: int) -> Step:
    rows = tokens[: len(tokens) // batch * batch].view(batch, -1)
    at = 0

    def loss() -> torch.Tensor:
        nonlocal at
        piece = rows[:, at : at + length + 1]
        at += length
        guess = model(piece[:, :-1])
        return nn.functional.cross_entropy(guess.flatten(0, 1), piece[:, 1:].flatten())

    return loss


def class_loss(model: nn.Module, shape: tuple[int, ...], batch: int, flat: bool) -> Step:
    draw = torch.Generator().manual_seed(3)
    pictures, labels = classes(20 * batch, shape, draw)

    def loss() -> torch.Tensor:
        chosen = torch.randint(len(labels), (batch,), generator=draw)
        x = pictures[chosen].flatten(1) if flat else pictures[chosen]
        return nn.functional.cross_entropy(model(x), labels[chosen])

    return loss


# ---- files ----------------------------------------------------------------------------------


def flat(tensors: list[torch.Tensor]) -> np.ndarray:
    return np.concatenate([t.detach().numpy().ravel() for t in tensors]).astype(np.float32)


def bucketed(model: nn.Module, part: float = 1.0) -> np.ndarray:
    """All gradients, last parameter first; of each bucket its first `part`."""
    whole = flat([p.grad for p in reversed(list(model.parameters()))])
    size = BUCKET // 4
    kept = [whole[i : i + size] for i in range(0, whole.size, size)]
    return np.concatenate([bucket[: int(bucket.size * part)] for bucket in kept])


def write(folder: Path, name: str, values: np.ndarray) -> None:
    values = values[: MOST // 4]
    values.tofile(folder / f"{name}.f32")
    zeros = 100 * np.count_nonzero(values == 0) / values.size
    print(f"{name}: {values.nbytes / 1e6:.1f} MB, {zeros:.1f} % zeros")


def lstm(folder: Path, steps: int) -> None:
    model = Words()
    loss = next_token_loss(model, word_tokens(Words.VOCABULARY), 20, 35)
    train("lstm", model, loss, steps, 0.25)
    write(folder, "lstm_all", bucketed(model, 0.25))
    second = list(model.layers[1].parameters())
    write(folder, "lstm_l2", flat([p.grad for p in second]))
    write(folder, "lstm_l2_w", flat(second))
    write(folder, "lstm_out", flat([model.output.weight.grad]))


def transformer(folder: Path, steps: int) -> None:
    model = Bytes()
    text = torch.frombuffer(bytearray(sample_data.text()), dtype=torch.uint8).long()
    loss = next_token_loss(model, text, 8, Bytes.LENGTH)
    train("tf", model, loss, 5 * steps, 1.0)
    write(folder, "tf", bucketed(model))


def cnn(folder: Path, steps: int) -> None:
    model = convolutions()
    train("cnn", model, class_loss(model, (3, 32, 32), 32, False), steps, None)
    write(folder, "cnn", bucketed(model))


def mlp(folder: Path, steps: int) -> None:
    layers = (nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
    model = nn.Sequential(*layers, nn.Linear(1024, 10))
    train("mlp", model, class_loss(model, (1, 8, 8), 64, True), steps, None)
    write(folder, "mlp", bucketed(model))


def main() -> None:
    jobs = {"lstm": lstm, "tf": transformer, "cnn": cnn, "mlp": mlp}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=12, help="of the LSTM (12)")
    parser.add_argument("--only", nargs="+", choices=jobs, default=[*jobs], metavar="MODEL")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.only:
        torch.manual_seed(1)
        jobs[name](args.folder, args.steps)


if __name__ == "__main__":
    main()
