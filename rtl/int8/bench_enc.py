# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the encoder, with pauses on both sides. They hold what codes
decode to, which is coded again to the same bytes."""

import itertools

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, stream_bench, vectors


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()

    def block_of(vector) -> int:
        return int(vector[0].get("block", "8"))

    n_packets = 0
    for block, group in itertools.groupby(vectors.whole_values("int8"), block_of):
        dut.cfg_block_i.value = block
        await ClockCycles(dut.clk_i, 3)
        packets = 2 * [(raw, code) for _, raw, code in group]
        for raw, _ in packets:
            await bench.source.send(AxiStreamFrame(raw))
        for _, code in packets:
            assert bytes((await bench.sink.recv()).tdata) == code
        n_packets += len(packets)
        await bench.idle()
    assert n_packets > 10
