# SPDX-License-Identifier: Apache-2.0
"""Gradients through the encoder, with pauses on both sides: more and fewer of them reach tau."""

import random
import struct

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, stream_bench
from rtl.tbq import model

TAU = 1.5


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def gradients(dut, paused: str) -> None:
    drawn = random.Random(1)
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    dut.cfg_tau_i.value = struct.unpack("<I", struct.pack("<f", TAU))[0] >> 8
    await ClockCycles(dut.clk_i, 3)
    packets = []
    for n_values in (1, 9000, 6, 31, 32, 33, 250, 1000, 16, 700):
        for deviation in (0.3, 1.0, 3.0) if n_values < 5000 else (0.9,):
            values = [drawn.gauss(0, deviation) for _ in range(n_values)]
            values[drawn.randrange(n_values)] = drawn.choice((TAU, -TAU, float("inf"), -0.0))
            packets.append(struct.pack(f"<{n_values}f", *values))
    for raw in packets:
        await bench.source.send(AxiStreamFrame(raw))
    for raw in packets:
        values = list(struct.unpack(f"<{len(raw) // 4}f", raw))
        assert bytes((await bench.sink.recv()).tdata) == model.encoded(values, TAU)
    await bench.idle()
