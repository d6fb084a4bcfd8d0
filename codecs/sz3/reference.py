# SPDX-License-Identifier: Apache-2.0
"""sz3: interpolation of floats within an error bound."""

import ctypes
import itertools
import math
import struct

PARAMS = ((0.0, math.inf), (0.0, 1.0), (0.0, 400.0), (0.0, 1.0))  # abs, rel, psnr, pw
TYPES = ("float32", "float64")
TYPED = True

STORED, CONSTANT, LINEAR, LOGARITHMIC = range(4)
LITERAL = None
LINE = 32
LORENZO = 31
# ln(2)^i / i!
POWER_TERMS = [
    1.0,
    0.6931471805599453,
    0.24022650695910072,
    0.05550410866482158,
    0.009618129107628477,
    0.0013333558146428443,
    0.0001540353039338161,
    1.525273380405984e-05,
    1.3215486790144307e-06,
    1.0178086009239696e-07,
    7.054911620801121e-09,
    4.4455382718708104e-10,
    2.567843599348819e-11,
    1.369148885390412e-12,
]


def check(params: list[float], dtype: str) -> None:
    if sum(map(bool, params)) != 1 or params[3] == 1:
        raise ValueError(f"sz3: bounds {params}")


def single(x: float) -> float:
    """To the nearest float32."""
    return ctypes.c_float(x).value


def double(x: float) -> float:
    return x


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise ValueError(f"sz3: ends at byte {len(self.data)}")
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def real(self) -> float:
        return struct.unpack("<d", self.take(8))[0]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.number(1)
            value |= (byte & 127) << shift
            if byte < 128:
                if byte == 0 and shift:
                    break
                return value
        raise ValueError("sz3: not a shortest number")

    def bits(self, n: int) -> list[int]:
        data = int.from_bytes(self.take(-(-n // 8)), "little")
        if data >> n:
            raise ValueError(f"sz3: bits after those of {n} values")
        return [data >> i & 1 for i in range(n)]


def decode(data: bytes, params: list[float], raw_size: int, dtype: str = "float32") -> bytes:
    size = 8 if dtype == "float64" else 4
    n, tail = divmod(raw_size, size)
    reader = Reader(data)
    method = reader.number(1)
    if method == STORED:
        raw = reader.take(raw_size)
        tail, words = 0, []
    elif n == 0:
        raise ValueError(f"sz3: method {method} for {raw_size} bytes")
    elif method == CONSTANT:
        raw, words = b"", [reader.take(size)] * n
    elif method in (LINEAR, LOGARITHMIC):
        raw, words = b"", coded(reader, method, n, size)
    else:
        raise ValueError(f"sz3: method {method}")
    if method != STORED:
        put_runs(reader, words, size)
    raw += b"".join(words) + reader.take(tail)
    if reader.at != len(data):
        raise ValueError(f"sz3: {len(data) - reader.at} bytes too many")
    return raw


def put_runs(reader: Reader, words: list[bytes], size: int) -> None:
    at = 0
    for _ in range(reader.varint()):
        gap, length = reader.varint(), reader.varint()
        word = reader.take(size)
        if length == 0 or at + gap + length > len(words):
            raise ValueError(f"sz3: a run of {length}")
        at += gap + length
        words[at - length : at] = [word] * length


def coded(reader: Reader, method: int, n: int, size: int) -> list[bytes]:
    layout = reader.number(1)
    flags = reader.number(1) if method == LOGARITHMIC else 0
    dims, cubic = 1 + (layout & 3), bool(layout & 4)
    orders = list(itertools.permutations(range(dims)))
    order = layout >> 3
    if (order >= len(orders) and (order != LORENZO or cubic)) or flags > 3:
        raise ValueError(f"sz3: layout {layout}, flags {flags}")
    inner = [reader.number(4) for _ in range(dims - 1)]
    row = math.prod(inner)
    if row == 0 or n % row:
        raise ValueError(f"sz3: rows of {row} in {n} values")
    step = reader.real()
    if not 0 < step < math.inf:
        raise ValueError(f"sz3: a step of {step}")
    stream_size = reader.number(4)
    lengths = read_lengths(reader)
    integers = read_integers(reader.take(stream_size), lengths, n)
    wide = size == 8 or method == LOGARITHMIC
    form = "<d" if wide else "<f"
    literals = [
        struct.unpack(form, reader.take(8 if wide else 4))[0] for i in integers if i is LITERAL
    ]
    rounded = double if wide else single
    shape = [n // row, *inner]
    if order == LORENZO:
        values = by_lorenzo(shape, step, integers, literals, rounded)
    else:
        values = interpolate(shape, cubic, orders[order], step, integers, literals, rounded)
    if method == LINEAR:
        return [struct.pack(form, value) for value in values]
    signs = reader.bits(n) if flags & 1 else [0] * n
    zeros = reader.bits(n) if flags & 2 else [0] * n
    words = []
    for value, sign, zero in zip(values, signs, zeros, strict=True):
        power = 0.0 if zero else power_of_two(value)
        power = power if size == 8 else single(power)
        words.append(struct.pack("<d" if size == 8 else "<f", -power if sign else power))
    return words


# ---- integers ------------------------------------------------------------------------------


def read_lengths(reader: Reader) -> list[int]:
    n = reader.number(1)
    if not 1 <= n <= 161:
        raise ValueError(f"sz3: {n} lengths")
    packed = reader.take(-(-n // 2))
    lengths = [packed[i // 2] >> i % 2 * 4 & 15 for i in range(2 * len(packed))]
    if any(lengths[n:]) or max(lengths) > 11 or lengths[n - 1] == 0:
        raise ValueError("sz3: lengths")
    if sum(2 ** (11 - length) for length in lengths if length) != 2048 and (
        sorted(lengths)[-2:-1] not in ([], [0]) or lengths[n - 1] != 1
    ):
        raise ValueError("sz3: no prefix code")
    return lengths[:n]


def meaning(token: int) -> tuple[int, int, int]:
    """Sign, smallest magnitude and number of extra bits."""
    index, negative = divmod(token - 3, 2)
    index += 1
    sign = -1 if negative else 1
    if index < 16:
        return sign, index, 0
    extra = 2 + (index - 16) // 4
    return sign, (4 + (index - 16) % 4) << extra, extra


def read_integers(data: bytes, lengths: list[int], n: int) -> list[int | None]:
    codes, code = {}, 0
    for length in range(1, 12):
        for token, own in enumerate(lengths):
            if own == length:
                codes[length, code] = token
                code += 1
        code *= 2
    stream, at, end = int.from_bytes(data, "little"), 0, 8 * len(data)
    out: list[int | None] = []
    digit = 0
    while len(out) < n:
        length = code = 0
        while (length, code) not in codes:
            if at == end or length == 11:
                raise ValueError(f"sz3: no code at bit {at} of {end}")
            code = code * 2 + (stream >> at & 1)
            length += 1
            at += 1
        token = codes[length, code]
        if token < 2:
            out += [0] * ((token + 1) << digit)
            digit += 1
            continue
        digit = 0
        if token == 2:
            out.append(LITERAL)
            continue
        sign, base, extra = meaning(token)
        out.append(sign * (base + (stream >> at & ((1 << extra) - 1))))
        at += extra
    if len(out) > n or not 0 <= end - at < 8 or stream >> at:
        raise ValueError(f"sz3: {len(out)} values of {n} in {at} of {end} bits")
    return out


# ---- prediction -------------------------------------------------------------------------


def by_lorenzo(shape, step, integers, literals, rounded):
    f, width, outer = rounded, shape[-1], len(shape) - 1
    strides = [math.prod(shape[i + 1 :]) for i in range(outer)]
    literal, values = iter(literals), []
    for row in itertools.product(*(range(extent) for extent in shape[:-1])):
        begin = len(values)
        near = []
        for steps in range(1, 1 << outer):
            axes = [i for i in range(outer) if steps >> i & 1]
            if all(row[i] for i in axes):
                near.append((begin - sum(strides[i] for i in axes), len(axes) % 2))
        for k in range(width):
            change = 0.0
            for at, odd in near:
                t = f(values[at + k] - values[at + k - 1]) if k else values[at]
                change = f(change + (t if odd else -t))
            predicted = f((values[-1] if k else 0.0) + change)
            integer = integers[begin + k]
            values.append(next(literal) if integer is LITERAL else f(predicted + integer * step))
    return values


def interpolate(shape, cubic, order, step, integers, literals, rounded):
    n, dims = math.prod(shape), len(shape)
    values = [0.0] * n
    strides = [math.prod(shape[i + 1 :]) for i in range(dims)]
    given, literal = iter(integers), iter(literals)

    def put(at: int, predicted: float, width: float) -> None:
        integer = next(given)
        if integer is LITERAL:
            values[at] = next(literal)
        else:
            values[at] = rounded(predicted + integer * width)

    put(0, 0.0, step)
    for level in range(max(shape[i] - 1 for i in range(dims)).bit_length(), 0, -1):
        stride = 1 << (level - 1)
        width = step * 0.5 if level >= 3 else step
        for begin in itertools.product(*(range(0, extent, LINE * stride) for extent in shape)):
            last = [min(b + LINE * stride, extent - 1) for b, extent in zip(begin, shape)]  # noqa: B905
            for turn, along in enumerate(order):
                # Dimensions before this one in the order are filled, those after it are not.
                axes = []
                for place, other in enumerate(order):
                    if place == turn:
                        continue
                    gap = stride if place < turn else 2 * stride
                    start = begin[other] + gap if begin[other] else 0
                    axes.append([i * strides[other] for i in range(start, last[other] + 1, gap)])
                count = (last[along] - begin[along]) // stride + 1
                for others in itertools.product(*axes):
                    at = begin[along] * strides[along] + sum(others)
                    line(values, at, stride * strides[along], count, cubic, width, put, rounded)
    return values


def line(values, begin, stride, n, cubic, width, put, rounded):
    """Every second one of n values, from those between."""
    if n <= 1:
        return
    f = rounded

    def v(i: int) -> float:
        return values[begin + i * stride]

    def done(i: int, predicted: float) -> None:
        put(begin + i * stride, predicted, width)

    if not cubic or n < 5:
        for i in range(1, n - 1, 2):
            done(i, f(f(v(i - 1) + v(i + 1)) / 2))
        if n % 2 == 0:
            i = n - 1
            done(i, v(i - 1) if n < 4 else f(-0.5 * v(i - 3) + 1.5 * v(i - 1)))
        return
    i = 3
    while i + 3 < n:
        sum_ = f(f(-v(i - 3) + f(9 * v(i - 1))) + f(9 * v(i + 1)))
        done(i, f(f(sum_ - v(i + 3)) / 16))
        i += 2
    done(1, f(f(f(f(3 * v(0)) + f(6 * v(2))) - v(4)) / 8))
    done(i, f(f(f(-v(i - 3) + f(6 * v(i - 1))) + f(3 * v(i + 1))) / 8))
    if n % 2 == 0:
        i = n - 1
        done(i, f(f(f(f(3 * v(i - 5)) - f(10 * v(i - 3))) + f(15 * v(i - 1))) / 8))


def power_of_two(v: float) -> float:
    if not -1022 <= v < 1023:
        return 0.0
    whole = math.floor(v + 1024.5) - 1024
    rest, total = v - whole, POWER_TERMS[13]
    for term in POWER_TERMS[12::-1]:
        total = total * rest + term
    return total * 2.0**whole
