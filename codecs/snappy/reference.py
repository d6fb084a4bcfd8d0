# SPDX-License-Identifier: Apache-2.0
"""snappy: one raw Snappy stream."""

NEEDS_SIZE = False


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    out = bytearray()
    at = 0

    def number(n: int) -> int:
        nonlocal at
        if at + n > len(data):
            raise ValueError(f"snappy: ends at byte {len(data)}, inside an element")
        at += n
        return int.from_bytes(data[at - n : at], "little")

    size = shift = 0
    while True:
        byte = number(1)
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
        if shift > 28:
            raise ValueError("snappy: a length of more than 32 bits")

    while at < len(data) and len(out) <= size:
        tag = number(1)
        kind, high = tag & 3, tag >> 2
        if kind == 0:
            n = (high if high < 60 else number(high - 59)) + 1
            if at + n > len(data):
                raise ValueError("snappy: a literal runs past the end")
            out += data[at : at + n]
            at += n
            continue
        if kind == 1:
            n, offset = (high & 7) + 4, (high >> 3 << 8) | number(1)
        else:
            n, offset = high + 1, number(2 if kind == 2 else 4)
        if not 1 <= offset <= len(out):
            raise ValueError(f"snappy: offset {offset} at {len(out)} bytes of output")
        for _ in range(n):
            out.append(out[-offset])
    if len(out) != size:
        raise ValueError(f"snappy: {len(out)} bytes instead of {size}")
    return bytes(out)
