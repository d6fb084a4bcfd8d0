# SPDX-License-Identifier: Apache-2.0
"""Gradients through the encoder, with pauses on both sides, against what the library makes of them.
(The codec's frozen vectors hold what codes decode to, which is not what they were made of.)"""

import random
import struct

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, stream_bench
from rtl.nic import peer


def code_of(library: peer.Peer, raw: bytes) -> bytes:
    frame = library.compress(raw)
    word, size = struct.unpack_from("<II", frame, len(library.header))
    assert not word >> 31 and size == len(raw)  # not stored
    return frame[len(library.header) + 8 :]


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def gradients(dut, paused: str) -> None:
    drawn = random.Random(1)
    bench = stream_bench.Bench(dut, paused)
    await bench.reset()
    for block in (12, 5, 8):
        library = peer.Peer(f"onebit:block={block}")
        dut.cfg_block_i.value = block
        await ClockCycles(dut.clk_i, 3)
        packets = []
        for n_values in (4096, 6, 31, 32, 33, 250, 1000, 16, 700):
            # Close together, down to denormals, and up to sums that are infinite.
            low, high = drawn.choice(((-8, 8), (-149, -120), (-149, 90), (110, 126)))
            values = [
                drawn.gauss(0, 1) * 2.0 ** drawn.randrange(low, high) for _ in range(n_values)
            ]
            packets.append(struct.pack(f"<{n_values}f", *values))
        for raw in packets:
            await bench.source.send(AxiStreamFrame(raw))
        for raw in packets:
            assert bytes((await bench.sink.recv()).tdata) == code_of(library, raw)
        await bench.idle()
