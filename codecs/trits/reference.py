# SPDX-License-Identifier: Apache-2.0
"""trits: behind terngrad: the places and signs of what is not zero."""

import itertools
import struct

NEEDS_SIZE = False
UNIT, GROUP = 128, 16  # pairs


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    reader, out = Reader(data), b""
    size = reader.count(raw_size)
    while (left := size - len(out)) > 0:
        pairs = max(0, min(UNIT, (left - 4) // 8))
        out += reader.take(4 if pairs > 0 else left)
        for first in range(0, pairs, GROUP):
            out += read_group(reader, min(GROUP, pairs - first))
    if reader.at != len(data):
        raise ValueError(f"trits: {len(data)} bytes, not {reader.at}")
    return out


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise ValueError(f"trits: ends at {len(self.data)}")
        return self.data[self.at - size : self.at]

    def count(self, most: int) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        if value > most or (byte == 0 and shift > 0):
            raise ValueError(f"trits: a count of {value}, at most {most}")
        return value

    def bits(self, n: int) -> list[int]:
        number = int.from_bytes(self.take((n + 7) // 8), "little")
        if number >> n:
            raise ValueError("trits: bits behind the last one")
        return [number >> i & 1 for i in range(n)]


def read_set(reader: Reader, n: int, k: int) -> list[int]:
    if k == n:
        return list(range(n))
    if 4 * k >= n:
        places = [i for i, bit in enumerate(reader.bits(n)) if bit]
    else:
        width = (n // k).bit_length() - 1
        high = [at for at, bit in enumerate(reader.bits(k + (n - 1 >> width))) if bit]
        low = reader.bits(k * width)
        if len(high) != k:
            raise ValueError(f"trits: {len(high)} places instead of {k}")
        places = [
            at - i << width | sum(low[i * width + b] << b for b in range(width))
            for i, at in enumerate(high)
        ]
    rising = all(a < b for a, b in itertools.pairwise(places))
    if len(places) != k or not rising or places[-1] >= n:
        raise ValueError(f"trits: places that are not {k} of {n}")
    return places


def read_group(reader: Reader, pairs: int) -> bytes:
    n = 32 * pairs
    k = reader.count(n + 1)
    if k == n + 1:
        raw = reader.take(8 * pairs)
        words = struct.unpack(f"<{2 * pairs}I", raw)
        if not any(sign & ~here for here, sign in zip(words[::2], words[1::2], strict=True)):
            raise ValueError("trits: a group as it is that has a code")
        return raw
    pair = [[0, 0] for _ in range(pairs)]
    places = read_set(reader, n, k) if k > 0 else []
    for place, sign in zip(places, reader.bits(k), strict=True):
        pair[place // 32][0] |= 1 << place % 32
        pair[place // 32][1] |= sign << place % 32
    return b"".join(struct.pack("<II", *words) for words in pair)
