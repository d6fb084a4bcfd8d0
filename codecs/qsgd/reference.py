# SPDX-License-Identifier: Apache-2.0
"""qsgd: a sign and a magnitude a value, one unit for 512."""

import struct

PARAMS = ((2, 8),)  # bits
TYPES = ("float32",)
CHUNK, NAN, INFINITY, LEAST = 512, 0x7FC00000, 0x7F800000, 0x0D800000


def float_of(word: int) -> float:
    return struct.unpack("<f", struct.pack("<I", word))[0]


def multiple(k: int, unit: int) -> int:
    """k * unit as a float32 word; the product of doubles is exact."""
    try:
        return struct.unpack("<I", struct.pack("<f", k * float_of(unit)))[0]
    except OverflowError:
        return INFINITY


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    bits = params[0]
    most = (1 << (bits - 1)) - 1
    n, tail = divmod(raw_size, 4)
    if len(data) != 4 * -(-n // CHUNK) + 4 * bits * -(-n // 32) + tail:
        raise ValueError(f"qsgd: {len(data)} bytes for {raw_size}")
    words, at = [], 0
    for begin in range(0, n, CHUNK):
        unit = int.from_bytes(data[at : at + 4], "little")
        at += 4
        empty = unit in (0, NAN)
        if not empty and not (LEAST <= unit < INFINITY and multiple(most, unit) < INFINITY):
            raise ValueError(f"qsgd: unit {unit:08x}")
        value = [unit if empty else multiple(k, unit) for k in range(most + 1)]
        for group in range(begin, min(begin + CHUNK, n), 32):
            planes = struct.unpack_from(f"<{bits}I", data, at)
            at += 4 * bits
            for i in range(32):
                k = sum((planes[p] >> i & 1) << p for p in range(bits - 1))
                sign = planes[-1] >> i & 1
                if (sign and not k) or (k and (empty or group + i >= n)):
                    raise ValueError("qsgd: bits that say nothing")
                if group + i < n:
                    words.append(value[k] | sign << 31)
    return struct.pack(f"<{n}I", *words) + data[at:]
