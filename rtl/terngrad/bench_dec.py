# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the decoder, with pauses on both sides; between them damaged
codes, which are an error with the last beat, never a hang, and change nothing for the next
packet."""

import random
from collections.abc import Iterator

import cocotb
from cocotbext.axi import AxiStreamFrame

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
    commands = bench.stream(stream_bench.AxiStreamSource, "s_cmd", byte_lanes=1)

    async def packet(code: bytes, n_values: int) -> tuple[bytes, bool]:
        await commands.send(AxiStreamFrame([n_values - 1]))
        await bench.source.send(AxiStreamFrame(code))
        frame = await bench.sink.recv(compact=False)
        bad = frame.tuser[-1] if isinstance(frame.tuser, list) else frame.tuser
        frame.compact()
        return bytes(frame.tdata), bool(bad)

    await bench.reset()
    n_bad = 0
    for _, raw, code in vectors.whole_values("terngrad"):
        for wrong in damaged(code, len(raw) // 4, drawn):
            if wrong == code:
                continue
            values, bad = await packet(wrong, len(raw) // 4)
            assert bad and len(values) <= len(raw)
            n_bad += 1
        expected = reference.decode(code, [], len(raw))
        assert await packet(code, len(raw) // 4) == (expected, False)
    assert n_bad > 10
    await bench.idle()
