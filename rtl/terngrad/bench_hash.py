# SPDX-License-Identifier: Apache-2.0
"""Random bits of rows, with pauses between them, against Python's."""

import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

LATENCY = 13
MASK = (1 << 32) - 1


def bits(seed: int, index: int) -> int:
    """codecs/terngrad/spec.md."""
    low = (index & MASK) * 0x9E3779B1 + seed & MASK
    high = (index >> 32) * 0x85EBCA6B + (seed >> 32) & MASK
    h = low ^ high
    h = (h ^ h >> 16) * 0x7FEB352D & MASK
    h = (h ^ h >> 15) * 0x846CA68B & MASK
    return h ^ h >> 16


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def both_forms(dut) -> None:
    drawn = random.Random(5)
    cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
    dut.rst_ni.value = 0
    dut.row_i.value = 0
    waits: deque[int | None] = deque([None] * (LATENCY - 1))

    async def clock(expected: int | None) -> None:
        waits.append(expected)
        await FallingEdge(dut.clk_i)
        row = waits.popleft()
        if row is not None:
            assert int(dut.bits_o.value) == row << 512 | row

    for first in (
        0,
        MASK - 40,
        MASK << 32 | MASK - 100,
        *(drawn.getrandbits(64) for _ in range(8)),
    ):
        seed = drawn.getrandbits(64)
        for _ in range(LATENCY):
            await clock(None)
        dut.rst_ni.value = 1
        dut.seed_i.value, dut.first_i.value = seed, first
        for _ in range(6):
            await clock(None)
        n_rows = 0
        while n_rows < 200:
            row = drawn.randrange(4) > 0
            dut.row_i.value, dut.begin_i.value = row, n_rows == 0
            expected = 0
            for lane in range(16):
                index = first + 16 * n_rows + lane & (1 << 64) - 1
                expected |= bits(seed, index) << 32 * lane
            await clock(expected if row else None)
            n_rows += row
        dut.row_i.value = 0
