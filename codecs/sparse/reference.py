# SPDX-License-Identifier: Apache-2.0
"""sparse: integers that are mostly zero: their places, signs, and magnitudes by levels."""

import itertools

TYPES = ("int8", "int16", "int32")
TYPED = True
SIZES = {"bytes": 1, "int8": 1, "int16": 2, "int32": 4}
GROUP = 65536


def decode(data: bytes, params: list[int], raw_size: int, dtype: str) -> bytes:
    size = SIZES[dtype]
    reader, out = Reader(data), b""
    n = raw_size // size
    for first in range(0, n, GROUP):
        out += decode_group(reader, min(GROUP, n - first), size)
    out += reader.take(raw_size % size)
    if reader.at != len(data):
        raise ValueError(f"sparse: {len(data)} bytes, not {reader.at}")
    return out


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise ValueError(f"sparse: ends at {len(self.data)}")
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
            raise ValueError(f"sparse: a count of {value}, at most {most}")
        return value

    def bits(self, n: int) -> list[int]:
        number = int.from_bytes(self.take((n + 7) // 8), "little")
        if number >> n:
            raise ValueError("sparse: bits behind the last one")
        return [number >> i & 1 for i in range(n)]


def read_set(reader: Reader, n: int, k: int) -> list[int]:
    if k == n:
        return list(range(n))
    if 4 * k >= n:
        places = [i for i, bit in enumerate(reader.bits(n)) if bit]
    else:
        width = (n // k).bit_length() - 1
        high = reader.bits(k + (n - 1 >> width))
        low = reader.bits(k * width)
        ones = [at for at, bit in enumerate(high) if bit]
        fields = [low[i * width : (i + 1) * width] for i in range(k)]
        lows = [sum(bit << b for b, bit in enumerate(field)) for field in fields]
        if len(ones) != k:
            raise ValueError(f"sparse: {len(ones)} places instead of {k}")
        places = [at - i << width | lows[i] for i, at in enumerate(ones)]
    rising = all(a < b for a, b in itertools.pairwise(places))
    if len(places) != k or not rising or places[-1] >= n:
        raise ValueError(f"sparse: places that are not {k} of {n}")
    return places


def decode_group(reader: Reader, n: int, size: int) -> bytes:
    bits = 8 * size
    count = reader.count(n + 1)
    if count == n + 1:
        return reader.take(n * size)
    values = [0] * n
    if count == 0:
        return bytes(n * size)
    level = read_set(reader, n, count)  # of its elements the places in the group
    signs = dict(zip(level, reader.bits(count), strict=True))
    for place in level:
        values[place] = 1
    for j in range(1, bits):
        count = reader.count(len(level))
        if count == 0:
            break
        level = [level[i] for i in read_set(reader, len(level), count)]
        for place, bit in zip(level, reader.bits(count), strict=True):
            # The one that led the magnitude is now one higher.
            values[place] += (1 << j) - (1 << j - 1) + (bit << j - 1)
    for place, sign in signs.items():
        if sign:
            values[place] = -values[place]
    if not all(-(1 << bits - 1) <= v < 1 << bits - 1 for v in values):
        raise ValueError("sparse: a magnitude beyond the type")
    return b"".join(v.to_bytes(size, "little", signed=True) for v in values)
