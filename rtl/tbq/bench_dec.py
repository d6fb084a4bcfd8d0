# SPDX-License-Identifier: Apache-2.0
"""Codes of lists, planes, sums and chunks of NaNs through the decoder, with pauses on both sides,
against the specification's own decoder; behind damaged ones, which are an error with the last beat,
never a hang, and change nothing for the next packet."""

import random
import struct
from collections.abc import Iterator

import cocotb

from rtl import simulate, told_bench, vectors
from rtl.tbq.model import in_list, in_planes

TAU = 0.5


def packets(drawn: random.Random) -> Iterator[tuple[bytes, int]]:
    """Codes, and how many values they have."""
    counts = [1, 2, 7, 8, -1, -3]
    for n_values in (1, 16, 17, 33, 100):
        for most in (1, 3, 127):
            drawn_counts = [drawn.randrange(-most, most + 1) for _ in range(n_values - 1)]
            yield in_planes([most, *drawn_counts]), n_values
        n_most = (n_values + 31) // 32 * 4 - 2
        for share in (0, 1, 2, 3):  # no entry, half of what a list can have, all of it, more
            places = sorted(drawn.sample(range(n_values), min(n_values, n_most * share // 2)))
            yield in_list({at: drawn.choice((1, -1)) for at in places}), n_values
            yield in_list({at: drawn.choice(counts) for at in places}), n_values
    sparse = dict.fromkeys(range(0, 4096, 100), 1)
    nan = b"\xff\xff\xff\xff"
    yield in_list(sparse) + nan + in_planes([1, 0, -1]), 2 * 4096 + 3
    # Rows that are full, of the first and of the last chunk, and an entry behind each.
    full = dict.fromkeys([*range(32), 40, *range(4064, 4080), 4081], -1)
    yield in_list(full) + in_list(full), 4096 + 4090


def damaged(code: bytes, drawn: random.Random) -> Iterator[bytes]:
    yield code[: drawn.randrange(1, len(code))]
    yield code[:-4] or b"\0"
    yield code + bytes(1 + drawn.randrange(99))
    yield b"\x00\x00\x08\x00" + code[4:]  # eight planes
    yield b"\x01\x00\x01\x00" + code[4:]  # a list and a plane
    yield b"\xff\x0f\x00\x00" + code[4:]  # a list of 4095
    if code[:2] == b"\0\0":
        yield code[:-4] + b"\xff\xff\xff\xff"  # signs of zeros, or of no values
    elif len(code) > 4:
        yield code[:4] + code[-4:] + code[4:-4]  # positions that do not rise, if they are many
        yield code[:5] + bytes([code[5] | 0x0F]) + code[6:]


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def codes(dut, paused: str) -> None:
    drawn = random.Random(1)
    reference = vectors.reference("tbq")
    decoder = told_bench.Decoder(dut, paused)
    await decoder.bench.reset()
    await decoder.set(tau=struct.unpack("<I", struct.pack("<f", TAU))[0] >> 8)

    def decoded(code: bytes, n_values: int) -> bytes | None:
        try:
            return reference.decode(code, [TAU, 1], 4 * n_values)
        except ValueError:
            return None

    n_refused = 0
    for code, n_values in packets(drawn):
        expected = decoded(code, n_values)
        if expected is None:  # a list that is no smaller than planes
            _, bad = await decoder.packet(code, n_values)
            assert bad
            n_refused += 1
            continue
        if n_values < 1000:
            wrong = [text for text in damaged(code, drawn) if decoded(text, n_values) is None]
            n_refused += await decoder.refuses(wrong, code, expected)
        assert await decoder.packet(code, n_values) == (expected, False)
    assert n_refused > 100
    await decoder.bench.idle()
