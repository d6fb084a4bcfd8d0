# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the decoder: see rtl/stream_bench.py."""

import cocotb

from rtl import simulate, stream_bench


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    await stream_bench.decode_vectors(dut, paused, "bx")
