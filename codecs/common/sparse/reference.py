# SPDX-License-Identifier: Apache-2.0
"""Codes of graddrop, topk and dgc: some values of a block and their positions (spec.md)."""


def decode(data: bytes, _params: list[float], raw_size: int) -> bytes:
    n = raw_size // 4
    body, tail = data[: len(data) - raw_size % 4], data[len(data) - raw_size % 4 :]
    if len(tail) != raw_size % 4 or (n == 0 and body) or (n > 0 and len(body) < 4):
        raise ValueError(f"sparse: {len(data)} bytes do not hold {raw_size}")
    if n == 0:
        return tail
    count = int.from_bytes(body[:4], "little")
    width, high_size, low_size = 0, 0, 0
    if 0 < count < n:
        width = (n // count).bit_length() - 1
        high_size = (count + (n - 1 >> width) + 7) // 8
        low_size = (count * width + 7) // 8
    values, high, low = split(body[4:], 4 * count, high_size, low_size)
    words = [values[at : at + 4] for at in range(0, len(values), 4)]
    if count == n:
        if b"\0\0\0\x80" in words:
            raise ValueError("sparse: -0")
        return values + tail
    if len(body) >= 4 + 4 * n or count > n:
        raise ValueError(f"sparse: positions of {count} of {n} values")

    ones = [at for at in range(8 * high_size) if high >> at & 1]
    if len(ones) != count or low >> count * width:
        raise ValueError(f"sparse: {len(ones)} positions of {count}")
    out, last = bytearray(4 * n), -1
    for i, (at, word) in enumerate(zip(ones, words, strict=True)):
        position = at - i << width | low >> i * width & ((1 << width) - 1)
        if not last < position < n or word in (b"\0\0\0\0", b"\0\0\0\x80"):
            raise ValueError(f"sparse: value {i} at {position}")
        out[4 * position : 4 * position + 4] = word
        last = position
    return bytes(out) + tail


def split(body: bytes, *sizes: int) -> tuple[bytes, int, int]:
    """The values, and the two bit fields as numbers."""
    if len(body) != sum(sizes):
        raise ValueError(f"sparse: {len(body)} bytes instead of {sizes}")
    a, b = sizes[0], sizes[0] + sizes[1]
    return body[:a], int.from_bytes(body[a:b], "little"), int.from_bytes(body[b:], "little")
