# SPDX-License-Identifier: Apache-2.0
"""terngrad: two bits a value, one scale a chunk."""

import struct

PARAMS = ((0.0, 100.0),)  # clip
TYPES = ("float32",)
CHUNK, NAN, INFINITY, SIGN = 4096, 0x7FC00000, 0x7F800000, 1 << 31


def check(params: list[float], dtype: str) -> None:
    if 0 < params[0] < 0.1:
        raise ValueError(f"terngrad: clip={params[0]}")


def decode(data: bytes, params: list[float], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    if len(data) != 4 * -(-n // CHUNK) + 8 * -(-n // 32) + tail:
        raise ValueError(f"terngrad: {len(data)} bytes for {raw_size}")
    words, at = [], 0
    for begin in range(0, n, CHUNK):
        scale = int.from_bytes(data[at : at + 4], "little")
        at += 4
        for group in range(begin, min(begin + CHUNK, n), 32):
            count = min(32, n - group)
            taken, negative = struct.unpack_from("<II", data, at)
            at += 8
            if taken >> count or negative & ~taken or (scale == NAN and taken):
                raise ValueError(f"terngrad: bits {taken:08x} {negative:08x}")
            zero = scale if scale == NAN else 0
            for i in range(count):
                words.append(scale ^ (negative >> i & 1) << 31 if taken >> i & 1 else zero)
        if scale >= INFINITY and scale != NAN:
            raise ValueError(f"terngrad: scale {scale:08x}")
    return struct.pack(f"<{n}I", *words) + data[at:]
