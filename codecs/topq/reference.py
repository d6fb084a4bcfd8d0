# SPDX-License-Identifier: Apache-2.0
"""topq: some values of each chunk, at two bits and a place."""

import itertools
import struct

PARAMS = ((1.0, 4096.0),)  # k
TYPES = ("float32",)
CHUNK, NAN, INFINITY = 4096, 0x7FC0, 0x7F80


def check(params: list[float], dtype: str) -> None:
    if params[0] != int(params[0]):
        raise ValueError(f"topq: k={params[0]}")


class Bits:
    """Takes parts of whole bytes as numbers."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, bits: int) -> int:
        size = -(-bits // 8)
        part = self.data[self.at : self.at + size]
        self.at += size
        number = int.from_bytes(part, "little")
        if len(part) != size or number >> bits:
            raise ValueError(f"topq: no {bits} bits")
        return number


def places(bits: Bits, n: int, k: int) -> list[int]:
    if k == n:
        return list(range(n))
    if 4 * k >= n:
        bitmap = bits.take(n)
        found = [i for i in range(n) if bitmap >> i & 1]
    else:
        width = (n // k).bit_length() - 1
        size = k + (n - 1 >> width)
        high, low = bits.take(-(-size // 8) * 8), bits.take(k * width)
        ones = [at for at in range(size + 7) if high >> at & 1]
        mask = (1 << width) - 1
        found = [at - i << width | low >> i * width & mask for i, at in enumerate(ones)]
    rising = all(a < b for a, b in itertools.pairwise(found))
    if len(found) != k or not rising or found[-1] >= n:
        raise ValueError(f"topq: {len(found)} places of {k}")
    return found


def decode(data: bytes, params: list[float], raw_size: int) -> bytes:
    n, tail = divmod(raw_size, 4)
    bits, words = Bits(data), []
    for begin in range(0, n, CHUNK):
        count = min(CHUNK, n - begin)
        k = -(-int(params[0]) * count // CHUNK)
        low, high = bits.take(16), bits.take(16)
        chunk = [0] * count
        if (low, high) == (NAN, NAN):
            size = 0 if k == count else 8 * -(-count // 8)
            if 4 * k < count:
                width = (count // k).bit_length() - 1
                size = 8 * (-(-(k + (count - 1 >> width)) // 8) + -(-k * width // 8))
            if bits.take(size + 16 * -(-k // 8)):
                raise ValueError("topq: a NaN chunk with bits")
            chunk = [NAN << 16] * count
        elif low > high or high >= INFINITY:
            raise ValueError(f"topq: levels {low:04x} and {high:04x}")
        else:
            found = places(bits, count, k)
            negative, above = bits.take(k), bits.take(k)
            for i, at in enumerate(found):
                level, sign = high if above >> i & 1 else low, negative >> i & 1
                if sign and not level:
                    raise ValueError("topq: -0")
                chunk[at] = level << 16 | sign << 31
        words += chunk
    rest = data[bits.at :]
    if len(rest) != tail:
        raise ValueError(f"topq: {len(data)} bytes for {raw_size}")
    return struct.pack(f"<{n}I", *words) + rest
