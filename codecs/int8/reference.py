# SPDX-License-Identifier: Apache-2.0
"""int8: a scale for each block, and signed bytes."""

import struct

PARAMS = ((7, 12), (0, 1))  # block, round
TYPES = ("float32",)


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    block = 1 << params[0]
    if len(data) != n + 4 * -(-n // block) + tail:
        raise ValueError(f"int8: {len(data)} bytes for {raw_size}")
    out, at = [], 0
    for first in range(0, n, block):
        count = min(block, n - first)
        out.append(decode_block(data[at : at + 4 + count]))
        at += 4 + count
    return b"".join(out) + data[at:]


def decode_block(data: bytes) -> bytes:
    word = int.from_bytes(data[:4], "little")
    codes = struct.unpack(f"{len(data) - 4}b", data[4:])
    if word in (0, 0x7FC00000):
        if any(codes):
            raise ValueError("int8: codes in a block that has none")
        return data[:4] * len(codes)
    if word & 127 or not 0x0A010280 <= word <= 0x7C010200 or -128 in codes:
        raise ValueError(f"int8: scale {word:08x}, or a code of -128")
    (scale,) = struct.unpack("<f", data[:4])
    return struct.pack(f"<{len(codes)}f", *(code * scale for code in codes))
