# SPDX-License-Identifier: Apache-2.0
"""fre: float32 or bfloat16 with a short mantissa and exponent differences."""

import struct

PARAMS = ((1, 23), (0, 2), (0, 1), (0, 4))  # m, round, flush, ways
TYPES = ("float32", "bfloat16")
TYPED = True
MIDPOINT = 2
CHUNK = 1024  # values of a stream with ways=0


def check(params: list[int], dtype: str) -> None:
    m, _, _, ways = params
    if ways not in (0, 1, 4) or (dtype == "bfloat16" and m > 7):
        raise ValueError(f"fre: ways={ways}, m={m} for {dtype}")


def decode(data: bytes, params: list[int], raw_size: int, dtype: str) -> bytes:
    m, rounding, _flush, ways = params
    size = 2 if dtype == "bfloat16" else 4
    n, tail = divmod(raw_size, size)
    codes, rest = data[: len(data) - tail], data[len(data) - tail :]
    if len(rest) != tail or (n == 0 and codes):
        raise ValueError(f"fre: {len(data)} bytes do not hold {raw_size}")
    words: list[int] = []
    each, field = (-(-n // ways), 4) if ways else (CHUNK, 2)
    ways = ways or -(-n // CHUNK)
    head = field * (ways - 1) if n else 0
    sizes = [int.from_bytes(codes[at : at + field], "little") for at in range(0, head, field)]
    sizes.append(len(codes) - head - sum(sizes))
    if min(sizes) < 0 or len(codes) < head:
        raise ValueError(f"fre: streams of {sizes} bytes in {len(codes)}")
    for way, stream_size in enumerate(sizes):
        count = max(0, min(each, n - way * each))
        words += decode_stream(codes[head : head + stream_size], m, count)
        head += stream_size
    if rounding == MIDPOINT and m < (7 if size == 2 else 23):
        words = [q | 1 << (22 - m) if 1 <= q >> 23 & 255 <= 254 else q for q in words]
    if size == 4:
        return struct.pack(f"<{n}I", *words) + rest
    if any(q & 0xFFFF for q in words):
        raise ValueError("fre: a denormal that is no bfloat16")
    return struct.pack(f"<{n}H", *(q >> 16 for q in words)) + rest


def decode_stream(data: bytes, m: int, n: int) -> list[int]:
    stream, at, left = int.from_bytes(data, "little"), 0, 8 * len(data)

    def bits(count: int) -> int:
        nonlocal at
        at += count
        return stream >> (at - count) & ((1 << count) - 1)

    def word(e: int) -> int:
        return bits(m) << (23 - m) | e << 23

    words, p = [], 0
    for _ in range(n):
        if bits(1):
            k = 0
            while k < 6 and bits(1):
                k += 1
            if k == 6:
                k += bits(2)
            e = (p >> 23 & 255) + (-k if k and bits(1) else k)
            if not 1 <= e <= 254:
                raise ValueError(f"fre: exponent {e}")
            p = word(e) | bits(1) << 31
        elif bits(1):
            if bits(1):
                p = bits(m) << (23 - m) | bits(8) << 23
                if p < 1 << 23:
                    raise ValueError("fre: exponent 0")
            else:
                p = bits(23) if bits(1) else 0
            p |= bits(1) << 31
        words.append(p)
    if not 0 <= left - at < 8 or stream >> at:
        raise ValueError(f"fre: {at} bits used of {left}")
    return words
