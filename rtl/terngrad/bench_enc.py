# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the encoder, with pauses on both sides. They hold what codes
decode to, which is coded again to the same bytes, whatever the seed."""

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, stream_bench, vectors


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    dut.cfg_seed_i.value = 0x0123456789ABCDEF
    dut.cfg_first_i.value = 0xFFFFFFF0
    await ClockCycles(dut.clk_i, 3)
    packets = [
        (raw, code)
        for parameters, raw, code in vectors.whole_values("terngrad")
        if "clip" not in parameters
    ]
    assert len(packets) > 5
    for raw, _ in 2 * packets:
        await bench.source.send(AxiStreamFrame(raw))
    for _, code in 2 * packets:
        assert bytes((await bench.sink.recv()).tdata) == code
    await bench.idle()
