# SPDX-License-Identifier: Apache-2.0
"""Real text that is on every machine: the Python standard library's own source code."""

from __future__ import annotations

import functools
import os
import random
import re
import sysconfig
from collections import Counter
from pathlib import Path

import torch

WORD = re.compile(r"[A-Za-z_]+|[0-9]+|[^\sA-Za-z_0-9]")
HELD_OUT = 20  # one file in so many is not trained on


def read(size: int) -> tuple[bytes, bytes]:
    """About `size` bytes to train on, and a part more that is held out: whole files, shuffled
    in an order that is always the same."""
    train, held_out, total = [], [], 0
    for i, path in enumerate(_files()):
        piece = path.read_bytes()
        if i % HELD_OUT == 0:
            held_out.append(piece)
            continue
        train.append(piece)
        total += len(piece)
        if total >= size:
            break
    return b"".join(train), b"".join(held_out)


@functools.cache
def _files() -> list[Path]:
    files = []
    for folder, inner, names in os.walk(sysconfig.get_path("stdlib")):
        inner[:] = [name for name in inner if not name.endswith("-packages")]  # not the library's
        files += [Path(folder) / name for name in names if name.endswith(".py")]
    files.sort()
    random.Random(1).shuffle(files)
    return files


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
