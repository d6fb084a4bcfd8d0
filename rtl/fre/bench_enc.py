# SPDX-License-Identifier: Apache-2.0
"""The codec's frozen vectors through the encoder, as packets behind each other, with pauses."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from rtl import simulate
from rtl.fre import vectors


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def vectors_stream(dut, paused: str) -> None:
    cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
    dut.rst_ni.value = 0
    names = {"reset": dut.rst_ni, "reset_active_level": False}
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk_i, **names)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk_i, **names)
    source.set_pause_generator(simulate.pauses(1, simulate.PAUSES[paused][0]))
    sink.set_pause_generator(simulate.pauses(2, simulate.PAUSES[paused][1]))
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    for setting, packets in vectors.by_setting().items():
        dut.cfg_m_i.value = setting.m
        dut.cfg_nearest_i.value = setting.round == 0
        dut.cfg_flush_i.value = setting.flush
        await ClockCycles(dut.clk_i, 3)
        for raw, _ in packets:
            await source.send(AxiStreamFrame(raw))
        for _, code in packets:
            assert bytes((await sink.recv()).tdata) == code
        await ClockCycles(dut.clk_i, 20)
        assert sink.empty() and sink.idle()
