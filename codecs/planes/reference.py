# SPDX-License-Identifier: Apache-2.0
"""planes: zero lines left out, bytes by significance, a prefix code for what is not noise."""

TYPES = ("float16", "bfloat16", "float32", "float64")
TYPED = True
LINE, STREAMS, MOST_LENGTH = 64, 8, 11
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "bytes": 4, "float64": 8}


def decode(data: bytes, params: list[int], raw_size: int, dtype: str) -> bytes:
    reader = Reader(data)
    out = b""
    if raw_size:
        lines = -(-raw_size // LINE)
        mode = reader.take(1)[0]
        if mode > 1:
            raise ValueError(f"planes: first byte {mode}")
        bitmap = int.from_bytes(reader.take(-(-lines // 8)), "little") if mode else (1 << lines) - 1
        sizes = [min(LINE, raw_size - i * LINE) for i in range(lines)]
        kept = [bitmap >> i & 1 for i in range(lines)]
        body_size = sum(s for s, k in zip(sizes, kept, strict=True) if k)
        if bitmap >> lines or (mode and raw_size - body_size <= -(-lines // 8)):
            raise ValueError("planes: a bitmap that no encoder writes")
        body = decode_body(reader, body_size, SIZES[dtype])
        for size, keep in zip(sizes, kept, strict=True):
            out += body[:size] if keep else bytes(size)
            body = body[size:] if keep else body
    if reader.at != len(data):
        raise ValueError(f"planes: {len(data)} bytes, not {reader.at}")
    return out


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise ValueError(f"planes: ends at {len(self.data)}")
        return self.data[self.at - size : self.at]


def decode_body(reader: Reader, size: int, each: int) -> bytes:
    n = size // each
    planes = [decode_plane(reader, n) for _ in range(each if n else 0)]
    top = 8 * each - 1
    out = bytearray()
    for element in zip(*planes, strict=True):
        word = int.from_bytes(bytes(element), "big")
        out += (word >> 1 | (word & 1) << top).to_bytes(each, "little")
    return bytes(out) + reader.take(size - n * each)


def decode_plane(reader: Reader, n: int) -> bytes:
    mode = reader.take(1)[0]
    if mode == 0:
        return reader.take(n)
    if mode == 2:
        return reader.take(1) * n
    if mode != 1:
        raise ValueError(f"planes: plane stored as {mode}")
    codes = read_codes(reader)
    sizes = [int.from_bytes(reader.take(4), "little") for _ in range(STREAMS)]
    each, out = -(-n // STREAMS), b""
    for j, size in enumerate(sizes):
        count = min(n, (j + 1) * each) - min(n, j * each)
        out += decode_stream(reader.take(size), count, codes)
    return out


def read_codes(reader: Reader) -> dict[tuple[int, int], int]:
    """By length and code, highest bit first: the byte."""
    first, last = reader.take(2)
    values = range(first, last + 1)
    packed = reader.take((len(values) + 1) // 2)
    nibbles = [half for byte in packed for half in (byte & 15, byte >> 4)]
    lengths = dict(zip(values, nibbles, strict=False))
    total = sum(1 << MOST_LENGTH - n for n in lengths.values() if 0 < n <= MOST_LENGTH)
    if first >= last or not lengths[first] or not lengths[last] or any(nibbles[len(values) :]):
        raise ValueError(f"planes: codes from {first} to {last}")
    if total != 1 << MOST_LENGTH or max(nibbles) > MOST_LENGTH:
        raise ValueError("planes: code lengths do not add up")
    codes, code, length = {}, 0, 0
    for size, value in sorted((size, value) for value, size in lengths.items() if size):
        code <<= size - length
        codes[size, code] = value
        code, length = code + 1, size
    return codes


def decode_stream(data: bytes, count: int, codes: dict[tuple[int, int], int]) -> bytes:
    stream, at, out = int.from_bytes(data, "little"), 0, bytearray()
    for _ in range(count):
        length, code = 0, 0
        while (length, code) not in codes:
            code = code << 1 | stream >> at & 1
            at, length = at + 1, length + 1
        out.append(codes[length, code])
    if -(-at // 8) != len(data) or stream >> at:
        raise ValueError(f"planes: {at} bits of {len(data)} bytes")
    return bytes(out)
