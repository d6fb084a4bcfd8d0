# SPDX-License-Identifier: Apache-2.0
"""onebit: one bit a value, two means a block."""

import struct

PARAMS = ((5, 12),)  # block
LATER = (12,)
TYPES = ("float32",)
NAN, INFINITY = 0x7FC00000, 0x7F800000


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    block = 1 << (params[0] if params else 12)
    if len(data) != 8 * -(-n // block) + 4 * -(-n // 32) + tail:
        raise ValueError(f"onebit: {len(data)} bytes for {raw_size}")
    words, at = [], 0
    for begin in range(0, n, block):
        count = min(block, n - begin)
        size = 4 * -(-count // 32)
        negative, other = struct.unpack_from("<II", data, at)
        bits = int.from_bytes(data[at + 8 : at + 8 + size], "little")
        at += 8 + size
        if bits >> count:
            raise ValueError("onebit: bits of no value")
        if (negative, other) == (NAN, NAN):
            if bits:
                raise ValueError("onebit: a NaN block with bits")
        elif other >= INFINITY or (negative and not 1 << 31 < negative < INFINITY | 1 << 31):
            raise ValueError(f"onebit: means {negative:08x} and {other:08x}")
        words += [negative if bits >> i & 1 else other for i in range(count)]
    return struct.pack(f"<{n}I", *words) + data[at:]
