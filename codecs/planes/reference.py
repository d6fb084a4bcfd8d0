# SPDX-License-Identifier: Apache-2.0
"""planes: zeros left out, bytes by significance, a partition code for what is not noise."""

TYPES = ("float16", "bfloat16", "float32", "float64")
TYPED = True
FORMER_ID = 0x11
LINE, CHUNK, MOST_LENGTH, MOST_LEAVES, ESCAPE = 64, 16384, 11, 256, 256
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "bytes": 4, "float64": 8}
LINES, SIGNS, DIFFERENCES, ELEMENTS = 1, 2, 4, 8


def decode(data: bytes, params: list[int], raw_size: int, dtype: str) -> bytes:
    reader = Reader(data)
    out = b""
    if raw_size:
        lines = -(-raw_size // LINE)
        flags = reader.byte(LINES | SIGNS | DIFFERENCES | ELEMENTS)
        bitmap = (1 << lines) - 1
        if flags & LINES:
            bitmap = int.from_bytes(reader.take(-(-lines // 8)), "little")
        sizes = [min(LINE, raw_size - i * LINE) for i in range(lines)]
        kept = [bitmap >> i & 1 for i in range(lines)]
        body_size = sum(s for s, k in zip(sizes, kept, strict=True) if k)
        if bitmap >> lines or (flags & LINES and raw_size - body_size <= -(-lines // 8)):
            raise ValueError("planes: a bitmap that no encoder writes")
        body = decode_body(reader, flags, body_size, SIZES[dtype])
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

    def byte(self, most: int = 255) -> int:
        value = self.take(1)[0]
        if value > most:
            raise ValueError(f"planes: {value} at {self.at - 1}, at most {most}")
        return value

    def bits(self, n: int) -> list[int]:
        value = int.from_bytes(self.take(-(-n // 8)), "little")
        if value >> n:
            raise ValueError(f"planes: bits behind {n}")
        return [value >> i & 1 for i in range(n)]


Table = dict[str, int]  # by its code, as text of 0 and 1: the value, or ESCAPE


def decode_body(reader: Reader, flags: int, size: int, each: int) -> bytes:
    n, out = size // each, b""
    there = [1] * n
    if flags & ELEMENTS:
        there = read_marks(reader, n)
        n = sum(there)
    if not n and flags & (SIGNS | DIFFERENCES):
        raise ValueError("planes: flags for no elements")
    if n:
        base = int.from_bytes(reader.take(2), "little") if each == 8 else 0
        if base > 2046:
            raise ValueError(f"planes: base {base}")
        stored = [read_plan(reader) for _ in range(each + bool(flags & SIGNS))]
        if (flags & SIGNS and stored[0] is None) or (
            flags & DIFFERENCES and stored[each - 1] is None
        ):
            raise ValueError("planes: signs or differences, and a plane as it is")
        for at in range(0, n, CHUNK):
            planes = read_chunk(reader, stored, min(CHUNK, n - at), each, flags)
            for element in zip(*planes, strict=True):
                out += word(int.from_bytes(bytes(element), "little"), each, base)
    elements = (out[at : at + each] for at in range(0, len(out), each))
    body = b"".join(next(elements) if bit else bytes(each) for bit in there)
    return body + reader.take(size - len(body))


def read_marks(reader: Reader, n: int) -> list[int]:
    """Which of n elements are not 0."""
    table, size = read_plan(reader), -(-n // 8)
    if table is None:
        return reader.bits(n)
    marks = []
    for at in range(0, size, CHUNK):
        marks += read_values(reader, table, min(CHUNK, size - at))
    return Reader(bytes(marks)).bits(n)


def word(turned: int, each: int, base: int) -> bytes:
    bits, turn = 8 * each, 4 if each == 8 else 1
    value = turned >> turn | turned << bits - turn
    if each == 8 and value >> 52 & 2047:
        value += base << 52
    return (value % (1 << bits)).to_bytes(each, "little")


def read_plan(reader: Reader) -> Table | None:
    """None: the plane as it is; a table without codes: none."""
    mode = reader.byte(2)
    if mode < 2:
        return {} if mode else None
    first, last = reader.take(2)
    if first > last:
        raise ValueError(f"planes: codes from {first} to {last}")
    symbols = [ESCAPE, *range(first, last + 1)]
    packed = reader.take(-(-len(symbols) // 2))
    nibbles = [half for byte in packed for half in (byte & 15, byte >> 4)]
    lengths = dict(zip(symbols, nibbles, strict=False))
    total = sum(1 << MOST_LENGTH - n for n in nibbles if 0 < n <= MOST_LENGTH)
    leaves = sum(n > 0 for n in nibbles)
    if not all((lengths[ESCAPE], lengths[first], lengths[last])) or any(nibbles[len(symbols) :]):
        raise ValueError(f"planes: codes from {first} to {last}")
    if total != 1 << MOST_LENGTH or max(nibbles) > MOST_LENGTH or leaves > MOST_LEAVES:
        raise ValueError("planes: code lengths do not add up")
    table, code, length = {}, 0, 0
    for size, value in sorted((size, value) for value, size in lengths.items() if size):
        code <<= size - length
        table[f"{code:0{size}b}"] = value
        code, length = code + 1, size
    return table


def read_chunk(
    reader: Reader, stored: list[Table | None], n: int, each: int, flags: int
) -> list[list[int]]:
    sizes = [n] * each + [-(-n // 8)]
    planes = [list(reader.take(size)) if table is None else []
              for table, size in zip(stored, sizes, strict=False)]  # fmt: skip
    for p, table in enumerate(stored):
        if table is not None:
            planes[p] = read_values(reader, table, sizes[p])
    if flags & DIFFERENCES:
        before = 0
        for i, step in enumerate(planes[each - 1]):
            before = planes[each - 1][i] = before + step - 128 & 255
    if flags & SIGNS:
        signs, sign, place = int.from_bytes(planes.pop(), "little"), 0, 3 if each == 8 else 0
        if signs >> n:
            raise ValueError(f"planes: signs behind {n}")
        for i in range(n):
            sign ^= signs >> i & 1
            planes[0][i] = planes[0][i] & ~(1 << place) | sign << place
    return planes


def read_values(reader: Reader, table: Table, n: int) -> list[int]:
    kind = reader.byte(3)
    if kind == 0:
        return list(reader.take(n))
    if kind == 2:
        return list(reader.take(1)) * n
    if kind == 3:
        return read_bits(reader, n)
    if not table:
        raise ValueError("planes: a code without a table")
    return read_node(reader, table, "", n)


def read_bits(reader: Reader, n: int) -> list[int]:
    mask = reader.byte()
    if not mask:
        raise ValueError("planes: no bits")
    values = []
    for at in range(0, n, 8):
        eight = [0] * min(8, n - at)
        for place in (i for i in range(8) if mask >> i & 1):
            for i, bit in enumerate(reader.bits(len(eight))):
                eight[i] |= bit << place
        values += eight
    return values


def read_node(reader: Reader, table: Table, code: str, n: int) -> list[int]:
    """The n values whose codes begin with `code`."""
    if n == 0:
        return []
    value = table.get(code)
    if value == ESCAPE:
        return list(reader.take(n))
    if value is not None:
        return [value] * n
    right = reader.bits(n)
    sides = [
        iter(read_node(reader, table, code + "0", n - sum(right))),
        iter(read_node(reader, table, code + "1", sum(right))),
    ]
    return [next(sides[bit]) for bit in right]
