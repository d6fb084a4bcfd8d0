# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the decoder, with pauses on both sides; between them damaged
codes, which are an error with the last beat, never a hang, and change nothing for the next
packet."""

import random
from collections.abc import Iterator

import cocotb

from rtl import simulate, stream_bench, vectors


def damaged(code: bytes, n_values: int, drawn: random.Random) -> Iterator[bytes]:
    yield code[: drawn.randrange(1, len(code))]
    yield code + bytes(1 + drawn.randrange(9))
    yield b"\x00\x00\x80\x7f" + code[4:]  # a scale that is infinite
    yield code[:3] + bytes([code[3] | 0x80]) + code[4:]  # one that must not be negative
    yield code[:8] + bytes([~code[4] & 0xFF]) + code[9:]  # signs of values that are 0
    if n_values % 32:
        yield code[:-5] + bytes([code[-5] | 0x80]) + code[-4:]  # a value that is not there


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    drawn = random.Random(1)
    reference = vectors.reference("terngrad")
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    n_bad = 0
    for _, raw, code in vectors.whole_values("terngrad"):
        n_values = len(raw) // 4
        wrong = (other for other in damaged(code, n_values, drawn) if other != code)
        n_bad += await bench.refuses(wrong, n_values)
        expected = reference.decode(code, [], len(raw))
        assert await bench.decoded(code, n_values) == (expected, False)
    assert n_bad > 10
    await bench.idle()
