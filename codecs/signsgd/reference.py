# SPDX-License-Identifier: Apache-2.0
"""signsgd: one bit a value, one scale a chunk."""

import struct

PARAMS = ((0, 1),)  # scale
TYPES = ("float32",)
CHUNK, NAN, INFINITY, ONE, SIGN = 4096, 0x7FC00000, 0x7F800000, 0x3F800000, 1 << 31


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    mean = params[0] == 0
    n, tail = divmod(raw_size, 4)
    if len(data) != 4 * -(-n // CHUNK) + 4 * -(-n // 32) + tail:
        raise ValueError(f"signsgd: {len(data)} bytes for {raw_size}")
    words, at = [], 0
    for begin in range(0, n, CHUNK):
        count = min(CHUNK, n - begin)
        size = 4 * -(-count // 32)
        scale = int.from_bytes(data[at : at + 4], "little")
        bits = int.from_bytes(data[at + 4 : at + 4 + size], "little")
        at += 4 + size
        if bits >> count:
            raise ValueError("signsgd: bits of no value")
        if scale == NAN:
            if bits:
                raise ValueError("signsgd: a NaN chunk with bits")
        elif scale >= INFINITY if mean else scale != ONE:
            raise ValueError(f"signsgd: scale {scale:08x}")
        words += [scale ^ SIGN if bits >> i & 1 else scale for i in range(count)]
    return struct.pack(f"<{n}I", *words) + data[at:]
