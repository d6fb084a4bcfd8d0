# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the decoder, with pauses on both sides; between them damaged
codes, which are an error with the last beat, never a hang, and change nothing for the next
packet."""

import random
from collections.abc import Iterator

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame

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
    for parameters, raw, code in vectors.whole_values("onebit"):
        block = int(parameters.get("block", "12"))
        dut.cfg_block_i.value = block
        await ClockCycles(dut.clk_i, 3)
        for wrong in damaged(code, len(raw) // 4, drawn):
            values, bad = await packet(wrong, len(raw) // 4)
            assert bad and len(values) <= len(raw)
            n_bad += 1
        expected = reference.decode(code, [block] if block < 12 else [], len(raw))
        assert await packet(code, len(raw) // 4) == (expected, False)
    assert n_bad > 10
    await bench.idle()
