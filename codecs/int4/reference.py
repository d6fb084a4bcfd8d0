# SPDX-License-Identifier: Apache-2.0
"""int4: a scale for each block, and signed nibbles."""

import struct

PARAMS = ((7, 12), (0, 1))  # block, round
TYPES = ("float32",)


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    block = 1 << params[0]
    out, at = [], 0
    for first in range(0, n, block):
        count = min(block, n - first)
        size = 4 + (count + 1) // 2
        out.append(decode_block(data[at : at + size], count))
        at += size
    if len(data) != at + tail:
        raise ValueError(f"int4: {len(data)} bytes for {raw_size}")
    return b"".join(out) + data[at:]


def decode_block(data: bytes, count: int) -> bytes:
    nibbles = [half for byte in data[4:] for half in (byte & 15, byte >> 4)]
    if not count <= len(nibbles) <= count + 1 or any(nibbles[count:]):
        raise ValueError(
            f"int4: {len(nibbles)} codes for {count} values, or an unused one is not 0"
        )
    word = int.from_bytes(data[:4], "little")
    if word in (0, 0x7FC00000):
        if any(nibbles):
            raise ValueError("int4: codes in a block that has none")
        return data[:4] * count
    if word & 127 or not 0x0C124980 <= word <= 0x7E124900 or 8 in nibbles:
        raise ValueError(f"int4: scale {word:08x}, or a code of -8")
    (scale,) = struct.unpack("<f", data[:4])
    codes = (code - 16 if code > 7 else code for code in nibbles[:count])
    return struct.pack(f"<{count}f", *(code * scale for code in codes))
