# SPDX-License-Identifier: Apache-2.0
"""Products, and sums of float32 numbers that are not negative, against Python's."""

import random
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

LATENCY = 5
INFINITY = 0xFF << 23


def pairs(drawn: random.Random, n: int) -> list[tuple[int, int]]:
    """Of 31 bits: any; at the ends of their ranges; and with exponents near each other."""
    edges = [0, 1, (1 << 23) - 1, 1 << 23, (1 << 24) - 1, INFINITY - 1, INFINITY, 1 << 17, 1 << 18]
    found = [(a, b) for a in edges for b in edges]
    for _ in range(n):
        a = drawn.getrandbits(31)
        near = drawn.randrange(-30, 31)
        exponent = min(max((a >> 23) + near, 0), 254)
        found += [(a, drawn.getrandbits(31)), (a, exponent << 23 | drawn.getrandbits(23))]
    return found


def sum_of(a: int, b: int) -> int:
    """A double's sum, rounded once more: that changes nothing, as it has more than 2 * 24 bits."""
    x, y = struct.unpack("<2f", struct.pack("<2I", a, b))
    try:
        return int.from_bytes(struct.pack("<f", x + y), "little")
    except OverflowError:
        return INFINITY


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def both_widths(dut) -> None:
    cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
    sent = pairs(random.Random(7), 10_000)
    for i in range(len(sent) + LATENCY):
        await FallingEdge(dut.clk_i)
        if i >= LATENCY:
            a, b = sent[i - LATENCY]
            product = (a & 0xFFFFFF) * (b & 0xFFFFFF)
            assert int(dut.product_o.value) == product << 48 | product, (hex(a), hex(b))
            total, sums = sum_of(a, b), int(dut.sum_o.value)
            for found in (sums & 0x7FFFFFFF, sums >> 31):
                if INFINITY in (a & INFINITY, b & INFINITY, total & INFINITY):
                    assert found >= INFINITY, (hex(a), hex(b))
                else:
                    assert found == total, (hex(a), hex(b))
        if i < len(sent):
            dut.a_i.value, dut.b_i.value = sent[i]
