# SPDX-License-Identifier: Apache-2.0
"""The text that models are trained on, and the same for held-out text, as numbers."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from prose import prose

WORD = re.compile(r"[A-Za-z_]+|[0-9]+|[^\sA-Za-z_0-9]")
HELD_OUT = 20  # of the text, one part in so many is not trained on


def read(size: int) -> tuple[bytes, bytes]:
    """`size` bytes to train on, and the part that follows and is held out."""
    text = prose(size + size // HELD_OUT)
    return text[:size], text[size:]


def byte_ids(text: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


def word_ids(n_words: int, *texts: bytes) -> list[torch.Tensor]:
    """Word numbers by falling frequency in the first text, ties by the alphabet; 0: all others."""
    words = [WORD.findall(text.decode("utf-8", "replace")) for text in texts]
    counts = sorted(Counter(words[0]).items(), key=lambda item: (-item[1], item[0]))
    number = {word: i + 1 for i, (word, _) in enumerate(counts[: n_words - 1])}
    return [torch.tensor([number.get(word, 0) for word in part]) for part in words]


def windows(
    ids: torch.Tensor, n: int, length: int, draw: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """`n` random pieces of a text, and the same one place on: n x length each."""
    starts = torch.randint(len(ids) - length, (n, 1), generator=draw)
    pieces = ids[starts + torch.arange(length + 1)]
    return pieces[:, :-1], pieces[:, 1:]
