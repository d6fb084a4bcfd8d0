# SPDX-License-Identifier: Apache-2.0
"""The codecs' frozen vectors through the decoder of fp16 and bf16, with pauses on both sides;
between them packets of an odd number of bytes, which are an error with the last beat and change
nothing for the next packet."""

import random

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, stream_bench, vectors


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES), codec=["fp16", "bf16"])
async def vectors_stream(dut, paused: str, codec: str) -> None:
    drawn = random.Random(1)
    reference = vectors.reference(codec)
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    dut.cfg_half_i.value = codec == "fp16"
    await ClockCycles(dut.clk_i, 1)
    expected = []
    for *_, code in vectors.whole_values(codec):
        odd = code[: 2 * drawn.randrange(1, len(code) // 2 + 1)] + b"\xff"
        for sent, bad in ((code, False), (odd, True), (code[:2], False)):
            await bench.source.send(AxiStreamFrame(sent))
            values = reference.decode(sent[: len(sent) // 2 * 2], [], len(sent) // 2 * 4)
            expected.append((values, bad))
    assert len(expected) > 15
    for values, bad in expected:
        assert await bench.received() == (values, bad)
    await bench.idle()
