# SPDX-License-Identifier: Apache-2.0
"""zeros: a bitmap of 64-byte lines, and those that are not zero."""

LINE = 64


def decode(data: bytes, params: list[int], raw_size: int) -> bytes:
    lines = -(-raw_size // LINE)
    at = -(-lines // 8)
    bitmap = int.from_bytes(data[:at], "little")
    if len(data) < at or bitmap >> lines:
        raise ValueError(f"zeros: {len(data)} bytes, or bits beyond line {lines}")
    out = []
    for i in range(lines):
        size = min(LINE, raw_size - i * LINE)
        line = bytes(size)
        if bitmap >> i & 1:
            line = data[at : at + size]
            at += size
            if len(line) != size or not any(line):
                raise ValueError(f"zeros: line {i} has {len(line)} bytes, or is zero")
        out.append(line)
    if at != len(data):
        raise ValueError(f"zeros: {len(data)} bytes, not {at}")
    return b"".join(out)
