# SPDX-License-Identifier: Apache-2.0
"""The codecs' frozen vectors through the encoder of fp16 and bf16, with pauses on both sides."""

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, stream_bench, vectors


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES), codec=["fp16", "bf16"])
async def vectors_stream(dut, paused: str, codec: str) -> None:
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    n_packets = 0
    for saturate in ("0", "1"):
        packets = [
            (raw, code)
            for parameters, raw, code in vectors.whole_values(codec)
            if parameters.get("round", "nearest") == "nearest"
            and parameters.get("saturate", "0") == saturate
        ]
        dut.cfg_half_i.value = codec == "fp16"
        dut.cfg_saturate_i.value = saturate == "1"
        await ClockCycles(dut.clk_i, 1)
        for raw, _ in 2 * packets:
            await bench.source.send(AxiStreamFrame(raw))
        for _, code in 2 * packets:
            assert bytes((await bench.sink.recv()).tdata) == code
        await bench.idle()
        n_packets += len(packets)
    assert n_packets > 5
