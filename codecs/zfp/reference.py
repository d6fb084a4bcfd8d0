# SPDX-License-Identifier: Apache-2.0
"""zfp: cells of 4^d values, transformed and coded by bit planes."""

from __future__ import annotations

import itertools
import math
import struct

PARAMS = ((0.0, math.inf), (0.0, 64.0), (0, 64))  # accuracy, rate, precision
TYPES = ("float32", "float64", "int32", "int64")
TYPED = True
SHAPED = True  # decode() wants the extents of the whole array, or None

# Where coefficient k of a cell stands: x + 4 * y + 16 * z + 64 * w.
ORDER = [
    bytes.fromhex(text)
    for text in (
        "00010203",
        "0001040502080609030c0a070d0b0e0f",
        "0001041014110502082015061218092124030c3016192528220a07131c0d313429261a171d350b232c0e3238"
        "2a1b272d1e36393c330f2b2e3a3d371f3e3b2f3f",
        "00010410400550114441140208208054514515061242184809602124818490030c30c0555246164919582564"
        "619491850aa0228882280713431c4c0d703134c1c4d056596595a189298626a41a989268624a5347174d1d5c"
        "357471d4d1c50b23832c8c0eb03238c2c8e05aa566999669a8a28a2a575d75d51b4b632787936c2d8d9c1e4e"
        "b1b436727839c6d2d8c9e1e40ff033ccc33ca9a69a6a5b67976d9d5eb57679d6d9e5a38b2b8e2eac3ab8b2e8"
        "e2caf1cd3dc737f41fdcd37c734faaa79b6b9e6ead7ab9b6e9e6da5ff577ddd77df2ce3ecb3bf82fece3bcb3"
        "8fabaebaeaf6de7edb7bf96fede7bdb79ffcf3cf3faffabbeeebbefdf7df7ffefbefbfff",
    )
]


def check(params: list[float], dtype: str) -> None:
    accuracy, rate, _ = params
    if sum(map(bool, params)) > 1 or 0 < rate < 0.125 or (accuracy and dtype.startswith("int")):
        raise ValueError(f"zfp: accuracy, rate and precision {params} for {dtype}")


class Type:
    def __init__(self, dtype: str) -> None:
        known = {"float32": (4, 8, "f"), "float64": (8, 11, "d")}
        self.size, self.exponent_bits, self.letter = known.get(dtype, (4, 0, "i"))
        if dtype == "int64":
            self.size, self.letter = 8, "q"
        self.bits = 8 * self.size
        self.bias = (1 << self.exponent_bits - 1) - 1 if self.exponent_bits else 0
        self.planes_bits = 5 if self.size == 4 else 6

    def signed(self, x: int) -> int:
        x &= (1 << self.bits) - 1
        return x - (x >> self.bits - 1 << self.bits)


def extents(values: int, shape: tuple[int, ...]) -> list[int]:
    """Of a block, x first; without those that are 1."""
    row = math.prod(shape[1:])
    if not shape or row == 0 or values % row:
        return [values]
    return [n for n in (*shape[:0:-1], values // row) if n != 1] or [1]


class Bits:
    def __init__(self, data: bytes, begin: int, end: int) -> None:
        part = data[begin // 8 : (end + 7) // 8]
        self.bits = int.from_bytes(part, "little") >> begin % 8 & (1 << end - begin) - 1
        self.at = 0

    def take(self, n: int) -> int:
        self.at += n
        return self.bits >> self.at - n & (1 << n) - 1


class Cell:
    """Decodes one cell after the other."""

    def __init__(self, kind: Type, dims: int, params: list, reversible: bool) -> None:
        self.kind, self.dims, self.n, self.reversible = kind, dims, 4**dims, reversible
        accuracy, rate, precision = params
        self.rate_bits = None
        self.planes, self.least = kind.bits, None
        if reversible:
            return
        if accuracy:
            self.least = math.frexp(accuracy)[1] - 1
        elif rate:
            self.rate_bits = max(math.floor(self.n * rate + 0.5), kind.exponent_bits + 1)
        else:
            self.planes = min(precision, kind.bits)

    def decode(self, bits: Bits) -> list:
        begin = bits.at
        kind, n = self.kind, self.n
        exponent, planes, as_words = None, self.planes, False
        if kind.exponent_bits:
            if not bits.take(1):
                self.skip(bits, begin)
                return [0.0] * n
            as_words = self.reversible and bits.take(1) == 1
            if not as_words:
                exponent = bits.take(kind.exponent_bits) - kind.bias
            if self.least is not None:
                wanted = exponent - self.least + 2 * (self.dims + 1)
                planes = min(max(wanted, 0), kind.bits)
        if self.reversible:
            planes = bits.take(kind.planes_bits) + 1
        budget = None if self.rate_bits is None else self.rate_bits - (bits.at - begin)
        numbers = self.coefficients(bits, planes, budget)
        self.skip(bits, begin)
        self.transform(numbers)
        if exponent is not None:
            return [self.scaled(x, exponent) for x in numbers]
        if not as_words:
            return numbers
        sign = 1 << kind.bits - 1
        words = [x & 2 * sign - 1 if x >= 0 else (x ^ sign - 1) & 2 * sign - 1 for x in numbers]
        raw = struct.pack(f"<{n}{'I' if kind.size == 4 else 'Q'}", *words)
        return [raw[i : i + kind.size] for i in range(0, len(raw), kind.size)]

    def skip(self, bits: Bits, begin: int) -> None:
        if self.rate_bits is not None:
            bits.at = begin + self.rate_bits

    def coefficients(self, bits: Bits, planes: int, budget: int | None) -> list[int]:
        kind, n, known = self.kind, self.n, 0
        left = math.inf if budget is None else budget
        data = [0] * n
        for plane in range(kind.bits - 1, kind.bits - 1 - planes, -1):
            if left <= 0:
                break
            take = int(min(known, left))
            left -= take
            x = bits.take(take)
            while known < n and left > 0:
                left -= 1
                if not bits.take(1):
                    break
                while known < n - 1 and left > 0:
                    left -= 1
                    if bits.take(1):
                        break
                    known += 1
                x |= 1 << known
                known += 1
            for i in range(n):
                data[i] |= (x >> i & 1) << plane
        mask = int("aa" * kind.size, 16)
        numbers = [0] * n
        for i, place in enumerate(ORDER[self.dims - 1]):
            numbers[place] = kind.signed((data[i] ^ mask) - mask)
        return numbers

    def transform(self, numbers: list[int]) -> None:
        lift = self.lift_reversible if self.reversible else self.lift
        for d in reversed(range(self.dims)):
            step = 4**d
            for at in range(self.n):
                if at // step % 4 == 0:
                    line = slice(at, at + 3 * step + 1, step)
                    numbers[line] = [self.kind.signed(v) for v in lift(*numbers[line])]

    def lift(self, x: int, y: int, z: int, w: int) -> tuple[int, ...]:
        s = self.kind.signed
        y = s(y + (w >> 1))
        w = s(w - (y >> 1))
        y, w = s(y + w), s(2 * w - (y + w))
        z, x = s(z + x), s(2 * x - (z + x))
        y, z = s(y + z), s(2 * z - (y + z))
        return s(2 * x - (w + x)), y, z, s(w + x)

    @staticmethod
    def lift_reversible(x: int, y: int, z: int, w: int) -> tuple[int, ...]:
        return x, x + y, x + 2 * y + z, x + 3 * y + 3 * z + w

    def scaled(self, x: int, exponent: int) -> float:
        """x * 2^(exponent - bits + 2), each of the three rounded to the type."""
        return self.rounded(
            self.rounded(float(x)) * self.rounded(math.ldexp(1.0, exponent - self.kind.bits + 2))
        )

    def rounded(self, x: float) -> float:
        if self.kind.size == 8:
            return x
        try:
            return struct.unpack("<f", struct.pack("<f", x))[0]
        except OverflowError:
            return math.copysign(math.inf, x)


def decode(
    data: bytes,
    params: list,
    raw_size: int,
    dtype: str = "float32",
    shape: tuple[int, ...] | None = None,
) -> bytes:
    kind = Type("float32" if dtype == "bytes" else dtype)
    values, tail = divmod(raw_size, kind.size)
    n = extents(values, () if tail or shape is None else shape)
    cells_of = [-(-extent // 4) for extent in n]
    cells = math.prod(cells_of)
    per_group = 1024 // 4 ** len(n)
    groups = -(-cells // per_group)

    def need(condition: bool, sentence: str) -> None:
        if not condition:
            raise ValueError(f"zfp: {sentence}")

    need(len(data) >= tail + 4, "no head")
    head = int.from_bytes(data[:4], "little")
    least, width, reversible = head & 0xFFFFF, head >> 20 & 31, head >> 31 == 1
    need(head >> 25 & 63 == 0 and width <= 17, "head")
    need(groups > 1 or head & 0x7FFFFFFF == 0, "head")
    need(reversible or any(params), "head")
    entries = max(groups - 1, 0) * width
    size = len(data) - 4 - (entries + 7) // 8 - tail
    need(size >= 0 and size % 8 == 0 and (groups > 0 or size == 0), "no stream")
    stream, rest = data[4 : 4 + size], data[4 + size : 4 + size + tail]
    index = int.from_bytes(data[4 + size + tail :], "little")
    need(index >> entries == 0, "bits behind the index")

    cell = Cell(kind, len(n), params, reversible)
    array: list = [None] * values
    places = itertools.product(*(range(c) for c in reversed(cells_of)))
    begin = 0
    for group in range(groups):
        last = group == groups - 1
        end = 8 * size if last else begin + least + (index >> group * width & (1 << width) - 1)
        need(begin <= end <= 8 * size, "a group beyond the stream")
        bits = Bits(stream, begin, end)
        for place in itertools.islice(places, per_group):
            scatter(cell.decode(bits), place[::-1], n, array)
            need(bits.at <= end - begin, "a group that is too short")
        spare = end - begin - bits.at
        need(spare == 0 or (last and spare < 64), "a group that is too long")
        need(bits.bits >> bits.at == 0, "bits behind the last group")
        begin = end
    raw = b"".join(x if isinstance(x, bytes) else struct.pack(f"<{kind.letter}", x) for x in array)
    return raw + rest


def scatter(numbers: list, place: tuple[int, ...], n: list[int], array: list) -> None:
    for i, number in enumerate(numbers):
        at, stride = 0, 1
        for d, extent in enumerate(n):
            x = 4 * place[d] + (i >> 2 * d & 3)
            if x >= extent:
                break
            at += x * stride
            stride *= extent
        else:
            array[at] = number
