# SPDX-License-Identifier: Apache-2.0
"""bx: floats with a block exponent, in bit planes."""

PARAMS = ((1, 52), (0, 2), (0, 1))  # m, round, flush
TYPED = True
FORMATS = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
TYPES = tuple(FORMATS)


def check(params: list[int], dtype: str) -> None:
    digits, _ = FORMATS.get(dtype, FORMATS["float32"])
    if params[0] > digits:
        raise ValueError(f"bx: m={params[0]} of {digits} for {dtype}")


def decode(data: bytes, params: list[int], raw_size: int, dtype: str = "float32") -> bytes:
    m, rounding, _flush = params
    digits, exponent_bits = FORMATS.get(dtype, FORMATS["float32"])
    size = (1 + exponent_bits + digits) // 8
    n, tail = divmod(raw_size, size)
    at = 0

    def take(count: int) -> int:
        nonlocal at
        if at + count > len(data):
            raise ValueError(f"bx: ends at byte {len(data)}")
        at += count
        return int.from_bytes(data[at - count : at], "little")

    def group(header: int) -> list[int]:
        half = 16 if exponent_bits > 8 else 8
        base, shape = header & (1 << half) - 1, header >> half
        width, zero, full, sign = shape & 15, shape >> 4 & 1, shape >> 5 & 1, shape >> 6
        fraction = digits if full else m
        drop = digits - fraction
        planes = [take(2) for _ in range(fraction + width + (sign == 2))]
        values = []
        for i in range(16):
            code = sum((plane >> i & 1) << p for p, plane in enumerate(planes))
            negative = sign == 2 and code & 1
            value = (code >> (sign == 2)) << drop
            if not zero or value >> digits:
                value += base << digits
                negative ^= sign == 1
            value = (value + (negative << 8 * size - 1)) & (1 << 8 * size) - 1
            exponent = value >> digits & (1 << exponent_bits) - 1
            if rounding == 2 and drop and 0 < exponent < (1 << exponent_bits) - 1:
                value |= 1 << (drop - 1)
            values.append(value)
        return values

    def check(header: int) -> None:
        half = 16 if exponent_bits > 8 else 8
        base, shape = header & (1 << half) - 1, header >> half
        bad = base >> exponent_bits or shape >> 8 or shape & 15 > exponent_bits
        if bad or shape >> 6 == 3 or (shape & 32 and m == digits):
            raise ValueError(f"bx: header {header:#x}")

    def planes_of(header: int) -> int:
        shape = header >> (16 if exponent_bits > 8 else 8)
        return (digits if shape & 32 else m) + (shape & 15) + (shape >> 6 == 2)

    words: list[int] = []
    while len(words) < n:
        groups = min(256, -(-(n - len(words)) // 16))
        head, begin = take(2), at
        if head == 0:
            words += [0] * 16 * groups
            continue
        present = (1 << groups) - 1 if head >> 15 else take(-(-groups // 16) * 2)
        if present >> groups:
            raise ValueError("bx: a bit for no group")
        headers = [take(4 if exponent_bits > 8 else 2) for _ in range(present.bit_count())]
        for header in headers:
            check(header)
        if begin + 2 * (head & 0x7FFF) != at + 2 * sum(map(planes_of, headers)):
            raise ValueError(f"bx: a chunk of {head & 0x7FFF} words")
        left = iter(headers)
        for g in range(groups):
            words += group(next(left)) if present >> g & 1 else [0] * 16
    if any(words[n:]):
        raise ValueError("bx: values after the last")
    if len(data) - at != tail:
        raise ValueError(f"bx: {len(data) - at} bytes after {n} values")
    return b"".join(word.to_bytes(size, "little") for word in words[:n]) + data[at:]
