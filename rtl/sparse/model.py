# SPDX-License-Identifier: Apache-2.0
"""Codes of the sparse codecs, made as the specification says (codecs/common/sparse/spec.md)."""

from __future__ import annotations

import struct

NAN = 0x7FC00000
INFINITY = 0x7F800000
SIGN = 0x80000000


def words_of(raw: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(raw) // 4}I", raw))


def bits(ones: dict[int, int], n_bits: int) -> bytes:
    """A field of n_bits with numbers at their places."""
    return sum(number << at for at, number in ones.items()).to_bytes((n_bits + 7) // 8, "little")


def payload(sent: dict[int, int], n: int) -> bytes:
    """Of words at their positions in a block of n."""
    count = len(sent)
    code = struct.pack(f"<I{count}I", count, *sent.values())
    if 0 < count < n:
        width = (n // count).bit_length() - 1
        highs = {(at >> width) + i: 1 for i, at in enumerate(sent)}
        lows = {i * width: at & (1 << width) - 1 for i, at in enumerate(sent)}
        code += bits(highs, count + (n - 1 >> width)) + bits(lows, count * width)
    if count == n or len(code) >= 4 + 4 * n:
        return struct.pack(f"<I{n}I", n, *(sent.get(at, 0) for at in range(n)))
    return code


def encoded(raw: bytes, threshold: int) -> bytes:
    words = words_of(raw)
    sent = {at: NAN if word & ~SIGN > INFINITY else word
            for at, word in enumerate(words) if word & ~SIGN >= threshold}  # fmt: skip
    return payload(sent, len(words))
