# SPDX-License-Identifier: Apache-2.0
"""fp16: IEEE half precision to float32."""

import struct

PARAMS = ((0, 1), (0, 1))  # round, saturate
TYPES = ("float32",)


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    if len(data) != 2 * n + tail:
        raise ValueError(f"fp16: {len(data)} bytes for {raw_size}")
    halves = struct.unpack(f"<{n}H", data[: 2 * n])
    return b"".join(map(value, halves)) + data[2 * n :]


def value(half: int) -> bytes:
    sign, e, f = half >> 15, half >> 10 & 31, half & 1023
    if e == 31:
        quiet = 1 << 22 if f else 0
        return struct.pack("<I", sign << 31 | 0x7F800000 | f << 13 | quiet)
    size = f * 2.0**-24 if e == 0 else (1024 + f) * 2.0 ** (e - 25)
    return struct.pack("<f", -size if sign else size)
