# SPDX-License-Identifier: Apache-2.0
"""Data that every machine can make: synthetic gradients, text, noise, zeros."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from prose import prose

TEXT = "made from a seed by `examples/prose.py`"


def text(size: int = 32 << 20) -> bytes:
    """See TEXT."""
    return prose(size)


def gradients(n: int = 1 << 23, seed: int = 1) -> np.ndarray:
    """40 % exact zeros, else Laplace of scale 1e-3, one in ten of scale 5e-3."""
    draw = np.random.Generator(np.random.PCG64(seed))
    scale = np.where(draw.random(n, dtype=np.float32) < 0.1, np.float32(5e-3), np.float32(1e-3))
    u = draw.random(n) - 0.5
    values = -np.sign(u) * np.log1p(-2 * np.abs(u)) * scale
    values[draw.random(n, dtype=np.float32) < 0.4] = 0
    return values.astype(np.float32)


def noise(n: int = 1 << 23, seed: int = 2) -> np.ndarray:
    """Uniform in (-1, 1)."""
    draw = np.random.Generator(np.random.PCG64(seed))
    return (2 * draw.random(n) - 1).astype(np.float32)


def noise64(n: int = 1 << 22, seed: int = 2) -> np.ndarray:
    """Uniform in (-1, 1), float64."""
    return 2 * np.random.Generator(np.random.PCG64(seed)).random(n) - 1
