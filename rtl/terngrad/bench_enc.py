# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the encoder, with pauses on both sides. They hold what codes
decode to, which is coded again to the same bytes, whatever the seed."""

import itertools
import random
import struct

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


def coded(values: list[float], scale: float) -> bytes:
    """The code of values that are 0 or the scale or its negative, in one chunk."""
    code = struct.pack("<f", scale)
    for i in range(0, len(values), 32):
        group = values[i : i + 32]
        code += struct.pack("<I", sum((v != 0) << j for j, v in enumerate(group)))
        code += struct.pack("<I", sum((v < 0) << j for j, v in enumerate(group)))
    return code


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def short_packets(dut, paused: str) -> None:
    """Packets of few rows between longer ones: a chunk waits for the one before it in its buffer,
    and for the scale of that one."""
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    await mixed(bench, 150)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def sink_stops(dut) -> None:
    """For so long that all that is stored fills, and what is on its way must have room."""
    bench = stream_bench.Bench(dut, "none")
    bench.sink.set_pause_generator(clock % 1500 < 1200 for clock in itertools.count())
    await bench.reset()
    await mixed(bench, 60)


async def mixed(bench: stream_bench.Bench, n_packets: int) -> None:
    drawn = random.Random(2)
    codes = []
    for _ in range(n_packets):
        scale = 2.0 ** drawn.randrange(-20, 20)
        n_values = drawn.choice((1, 16, 17, 16 * drawn.randrange(1, 40), drawn.randrange(1, 4097)))
        values = [drawn.choice((0.0, scale, -scale)) for _ in range(n_values)]
        values[drawn.randrange(n_values)] = scale
        await bench.source.send(AxiStreamFrame(struct.pack(f"<{n_values}f", *values)))
        codes.append(coded(values, scale))
    for code in codes:
        assert bytes((await bench.sink.recv()).tdata) == code
    await bench.idle()
