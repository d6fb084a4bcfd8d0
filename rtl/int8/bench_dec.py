# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the decoder, with pauses on both sides; behind damaged codes,
which are an error with the last beat, never a hang, and change nothing for the next packet."""

import random
from collections.abc import Iterator

import cocotb

from rtl import simulate, told_bench, vectors


def damaged(code: bytes, drawn: random.Random) -> Iterator[bytes]:
    yield code[: drawn.randrange(1, len(code))]
    yield code[: len(code) // 64 * 64 or 1]  # as many whole beats as it has
    yield code + bytes(1 + drawn.randrange(99))
    yield b"\x00\x00\x80\x7f" + code[4:]  # a scale that is infinite
    yield bytes([code[0] | 0x40]) + code[1:]  # one of more than 17 bits
    yield code[:3] + bytes([code[3] | 0x80]) + code[4:]  # one that must not be negative
    yield bytes(4) + code[4:-1] + b"\x01"  # a code where there is none
    yield code[:-1] + b"\x80"  # -128


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    drawn = random.Random(1)
    reference = vectors.reference("int8")
    decoder = told_bench.Decoder(dut, paused)
    await decoder.bench.reset()
    n_refused = 0
    for parameters, raw, code in vectors.whole_values("int8"):
        block = int(parameters.get("block", "8"))
        await decoder.set(block=block)
        expected = reference.decode(code, [block], len(raw))
        n_refused += await decoder.refuses(damaged(code, drawn), code, expected)
        assert await decoder.packet(code, len(raw) // 4) == (expected, False)
    assert n_refused > 30
    await decoder.bench.idle()
