# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the decoder, with pauses on both sides; between them damaged
codes, which are an error with the last beat, never a hang, and change nothing for the next
packet."""

import random
from collections.abc import Iterator

import cocotb
from cocotb.triggers import ClockCycles

from rtl import simulate, stream_bench, vectors


def damaged(code: bytes, n_values: int, drawn: random.Random) -> Iterator[bytes]:
    yield code[: drawn.randrange(1, len(code))]
    yield code + bytes(1 + drawn.randrange(9))
    yield b"\x00\x00\x80\x7f" + code[4:]  # a mean that is infinite
    yield code[:7] + bytes([code[7] | 0x80]) + code[8:]  # one that must not be negative
    if n_values % 32:
        yield code[:-1] + bytes([code[-1] | 0x80])  # a bit of a value that is not there


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    drawn = random.Random(1)
    reference = vectors.reference("onebit")
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    n_bad = 0
    for parameters, raw, code in vectors.whole_values("onebit"):
        block = int(parameters.get("block", "12"))
        dut.cfg_block_i.value = block
        await ClockCycles(dut.clk_i, 3)
        n_values = len(raw) // 4
        n_bad += await bench.refuses(damaged(code, n_values, drawn), n_values)
        expected = reference.decode(code, [block] if block < 12 else [], len(raw))
        assert await bench.decoded(code, n_values) == (expected, False)
    assert n_bad > 10
    await bench.idle()
