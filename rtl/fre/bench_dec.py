# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the decoder with pauses, and damaged ones between them: an
error with the last beat, never a hang, and the next packet is read as if nothing had been."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from rtl import simulate
from rtl.fre import vectors


class Bench:
    def __init__(self, dut, paused: str) -> None:
        names = {"reset": dut.rst_ni, "reset_active_level": False}

        def bus(prefix: str) -> AxiStreamBus:
            return AxiStreamBus.from_prefix(dut, prefix)

        self.commands = AxiStreamSource(bus("s_cmd"), dut.clk_i, byte_lanes=1, **names)
        self.source = AxiStreamSource(bus("s_axis"), dut.clk_i, **names)
        self.sink = AxiStreamSink(bus("m_axis"), dut.clk_i, byte_lanes=4, **names)
        self.source.set_pause_generator(simulate.pauses(1, simulate.PAUSES[paused][0]))
        self.sink.set_pause_generator(simulate.pauses(2, simulate.PAUSES[paused][1]))

    async def packet(self, code: bytes, n_values: int) -> tuple[bytes, bool]:
        """What comes out, and whether it was found bad."""
        await self.commands.send(AxiStreamFrame([n_values - 1]))
        await self.source.send(AxiStreamFrame(code))
        frame = await self.sink.recv(compact=False)
        bad = frame.tuser[-1] if isinstance(frame.tuser, list) else frame.tuser
        return bytes(frame.tdata), bool(bad)


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    drawn = random.Random(1)
    cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
    dut.rst_ni.value = 0
    dut.cfg_bfloat16_i.value = 0
    bench = Bench(dut, paused)
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    for setting, packets in vectors.by_setting().items():
        dut.cfg_m_i.value = setting.m
        dut.cfg_midpoint_i.value = setting.round == 2
        await ClockCycles(dut.clk_i, 3)
        for raw, code in packets:
            n_values = len(raw) // 4
            cut = code[: drawn.randrange(len(code) // 2, len(code))]
            junk = code + bytes(drawn.randrange(256) for _ in range(1 + drawn.randrange(9)))
            for damaged in filter(None, (cut, junk)):
                values, bad = await bench.packet(damaged, n_values)
                assert bad and len(values) <= len(raw)
            expected = vectors.decoded(setting, code, len(raw))
            assert await bench.packet(code, n_values) == (expected, False)
        await ClockCycles(dut.clk_i, 20)
        assert bench.sink.empty() and bench.sink.idle()
