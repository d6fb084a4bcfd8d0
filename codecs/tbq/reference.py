# SPDX-License-Identifier: Apache-2.0
"""tbq: whole numbers times a level; a list or planes for each chunk of 4096."""

import math
import struct

PARAMS = ((1e-30, 1e30), (0, 1))  # tau, of
TYPES = ("float32",)
CHUNK, NAN, INFINITY = 4096, 0x7FC00000, 0x7F800000


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple[int, ...]:
        size = struct.calcsize("<" + form)
        if self.at + size > len(self.data):
            raise ValueError(f"tbq: ends at byte {len(self.data)}")
        self.at += size
        return struct.unpack_from("<" + form, self.data, self.at - size)


def refuse(condition: bool, sentence: str) -> None:
    if condition:
        raise ValueError(f"tbq: {sentence}")


def listed(source: Bytes, k: int, n: int) -> list[int]:
    counts = [0] * n
    *entries, rest = *source.take(f"{k}H"), *(source.take("H") if k % 2 else (0,))
    positions = [entry & 4095 for entry in entries]
    refuse(positions != sorted(set(positions)) or max(positions, default=-1) >= n, "positions")
    for entry in entries:
        size = (entry >> 12 & 7) + 1
        counts[entry & 4095] = -size if entry >> 15 else size
    most = max(map(abs, counts), default=0)
    planes = max(most.bit_length(), 1)
    refuse(rest != 0 or 4 * -(-k // 2) >= 4 * (planes + 1) * -(-n // 32), "not a list")
    return counts


def in_planes(source: Bytes, planes: int, n: int) -> list[int]:
    counts = []
    for _ in range(-(-n // 32)):
        *size, sign = source.take(f"{planes + 1}I")
        for i in range(32):
            count = sum((word >> i & 1) << p for p, word in enumerate(size))
            refuse(count == 0 and bool(sign >> i & 1), "the sign of a zero")
            counts.append(-count if sign >> i & 1 else count)
    refuse(any(counts[n:]), "bits of no value")
    refuse(max(map(abs, counts)).bit_length() != planes, "an empty plane")
    return counts[:n]


def decode(data: bytes, params: list[float], raw_size: int) -> bytes:
    tau, of_one = params
    fraction, exponent = math.frexp(tau)
    tau = math.ldexp(round(math.ldexp(fraction, 16)), exponent - 16)
    source, out = Bytes(data), b""
    left, tail = divmod(raw_size, 4)
    while left:
        n = min(left, CHUNK)
        left -= n
        (head,) = source.take("I")
        level, word = tau, 0
        if not of_one:
            (word,) = source.take("I")
            (level,) = struct.unpack("<f", struct.pack("<I", word))
        if head == 0xFFFFFFFF:
            refuse(not of_one and word != NAN, "the level of a NaN chunk")
            out += struct.pack("<I", NAN) * n
            continue
        planes, k = head >> 16, head & 0xFFFF
        refuse(planes > 7 or (planes > 0 and k > 0) or k > n, f"head {head:08x}")
        counts = in_planes(source, planes, n) if planes else listed(source, k, n)
        if not of_one:
            refuse(word >= INFINITY or (word == 0) == any(counts), f"level {word:08x}")
            refuse(max(map(abs, counts)) > 1, "a count beyond 1")
        out += struct.pack(f"<{n}f", *[count * level if count else 0.0 for count in counts])
    refuse(source.at + tail != len(data), f"{len(data) - source.at} bytes at the end")
    return out + data[source.at :]
