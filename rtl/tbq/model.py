# SPDX-License-Identifier: Apache-2.0
"""Codes of tbq with of=one, made as the specification says."""

from __future__ import annotations

import math
import struct

CHUNK = 4096


def in_list(counts: dict[int, int]) -> bytes:
    entries = [at | (abs(count) - 1) << 12 | (count < 0) << 15 for at, count in counts.items()]
    entries += [0] * (len(entries) % 2)
    return struct.pack(f"<I{len(entries)}H", len(counts), *entries)


def in_planes(counts: list[int]) -> bytes:
    n_planes = max(1, *(abs(count).bit_length() for count in counts))
    code = struct.pack("<I", n_planes << 16)
    for first in range(0, len(counts), 32):
        group = counts[first : first + 32]
        for plane in range(n_planes):
            bits = sum((abs(count) >> plane & 1) << i for i, count in enumerate(group))
            code += struct.pack("<I", bits)
        code += struct.pack("<I", sum((count < 0) << i for i, count in enumerate(group)))
    return code


def encoded(values: list[float], tau: float) -> bytes:
    """By tau of 16 significant bits."""
    code = b""
    for first in range(0, len(values), CHUNK):
        chunk = values[first : first + CHUNK]
        if not all(map(math.isfinite, chunk)):
            code += b"\xff\xff\xff\xff"
            continue
        counts = [(x >= tau) - (x <= -tau) for x in chunk]
        listed = in_list({at: count for at, count in enumerate(counts) if count})
        planes = in_planes(counts)
        code += min(planes, listed, key=len)
    return code
