# SPDX-License-Identifier: Apache-2.0
"""Gradients through the encoder, with pauses on both sides: from none to all of them reach the
threshold; blocks of one value to as many as its memory has, and of more, which is an error."""

import random
import struct

import cocotb
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, stream_bench
from rtl.sparse import model

N_MOST = 1 << 9  # LogValues of the test
CLOCK_NS = 4
MORE_CLOCKS = 18  # a block
DEVIATIONS = (0, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 3, 12, 30, 100)
ODD = (float("inf"), float("nan"), -0.0, 1.0, -1.0, 1e-45)


def blocks(drawn: random.Random) -> list[bytes]:
    found = []
    for n_values in (1, 2, 15, 16, 17, 33, 100, 250, N_MOST - 1, N_MOST):
        for deviation in DEVIATIONS:
            values = [drawn.gauss(0, deviation) for _ in range(n_values)]
            if deviation > 0:
                values[drawn.randrange(n_values)] = drawn.choice(ODD)
            found.append(struct.pack(f"<{n_values}f", *values))
    edges = [0.0] * N_MOST  # far from each other, and a row that is full
    edges[0] = edges[-1] = 2.0
    edges[240:256] = [-1.5] * 16
    found.append(struct.pack(f"<{N_MOST}f", *edges))
    drawn.shuffle(found)
    return found


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def gradients(dut, paused: str) -> None:
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    threshold = model.words_of(struct.pack("<f", 1.0))[0]
    dut.cfg_threshold_i.value = threshold
    await ClockCycles(dut.clk_i, 3)
    packets = blocks(random.Random(1))
    for raw in packets:
        await bench.source.send(AxiStreamFrame(raw))
    for raw in packets:
        assert await bench.received() == (model.encoded(raw, threshold), False)
    await bench.idle()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def too_many_values(dut, paused: str) -> None:
    drawn = random.Random(2)
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    threshold = model.words_of(struct.pack("<f", 1.0))[0]
    dut.cfg_threshold_i.value = threshold
    await ClockCycles(dut.clk_i, 3)
    for n_values in (N_MOST + 1, 100, N_MOST + 16, 3 * N_MOST + 5, N_MOST, 1):
        for deviation in (0.5, 100):
            values = [drawn.gauss(0, deviation) for _ in range(n_values)]
            raw = struct.pack(f"<{n_values}f", *values)
            await bench.source.send(AxiStreamFrame(raw))
            expected = model.encoded(raw[: 4 * N_MOST], threshold)
            assert await bench.received() == (expected, n_values > N_MOST)
    await bench.idle()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(every=[None, 100, 17, 1])
async def rate(dut, every: int | None) -> None:
    """Blocks behind each other, of whose values one in so many is sent: a row a clock, and what a
    block takes more."""
    bench = stream_bench.Bench(dut, "none")
    await bench.reset()
    dut.cfg_threshold_i.value = 1
    await ClockCycles(dut.clk_i, 3)
    words = [int(every is not None and at % every == 0) for at in range(N_MOST)]
    raw = struct.pack(f"<{N_MOST}I", *words)
    for _ in range(12):
        await bench.source.send(AxiStreamFrame(raw))
    ends = []
    for _ in range(12):
        assert await bench.received() == (model.encoded(raw, 1), False)
        ends.append(get_sim_time("ns") / CLOCK_NS)
    clocks = (ends[-1] - ends[2]) / 9
    dut._log.info("%s: %.1f clocks a block of %d rows", every, clocks, N_MOST // 16)
    assert clocks <= N_MOST // 16 + MORE_CLOCKS
