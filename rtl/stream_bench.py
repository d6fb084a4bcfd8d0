# SPDX-License-Identifier: Apache-2.0
"""What the encoders' and decoders' cocotb tests share: the codec's frozen vectors as packets, with
pauses on both sides; for decoders damaged ones between them, which are an error with the last beat,
never a hang, and change nothing for the next packet."""

from __future__ import annotations

import random
from collections.abc import Iterable

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from rtl import simulate, vectors


class Bench:
    """The streams of a core, with values in lanes of 32 bits where it has no tkeep."""

    def __init__(self, dut, paused: str) -> None:
        self.dut = dut
        self.names = {"reset": dut.rst_ni, "reset_active_level": False}
        self.source = self.stream(AxiStreamSource, "s_axis")
        self.sink = self.stream(AxiStreamSink, "m_axis")
        if hasattr(dut, "s_cmd_tvalid"):
            self.commands = self.stream(AxiStreamSource, "s_cmd", byte_lanes=1)
        self.source.set_pause_generator(simulate.pauses(1, simulate.PAUSES[paused][0]))
        self.sink.set_pause_generator(simulate.pauses(2, simulate.PAUSES[paused][1]))
        cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())

    def stream(self, kind, prefix: str, **options):
        bus = AxiStreamBus.from_prefix(self.dut, prefix)
        if not hasattr(self.dut, f"{prefix}_tkeep") and "byte_lanes" not in options:
            options["byte_lanes"] = 4
        return kind(bus, self.dut.clk_i, **options, **self.names)

    async def reset(self) -> None:
        self.dut.rst_ni.value = 0
        for name in ("nearest", "midpoint", "flush", "bfloat16", "half", "saturate"):
            if hasattr(self.dut, f"cfg_{name}_i"):
                getattr(self.dut, f"cfg_{name}_i").value = 0
        await ClockCycles(self.dut.clk_i, 4)
        self.dut.rst_ni.value = 1

    async def set(self, setting: vectors.Setting) -> None:
        values = {"m": setting.m, "nearest": setting.round == 0, "midpoint": setting.round == 2}
        for name, value in (values | {"flush": setting.flush}).items():
            if hasattr(self.dut, f"cfg_{name}_i"):
                getattr(self.dut, f"cfg_{name}_i").value = value
        await ClockCycles(self.dut.clk_i, 3)

    async def received(self) -> tuple[bytes, bool]:
        """The next packet, and whether it says that it is not valid."""
        frame = await self.sink.recv(compact=False)
        bad = frame.tuser[-1] if isinstance(frame.tuser, list) else frame.tuser
        frame.compact()
        return bytes(frame.tdata), bool(bad)

    async def decoded(self, code: bytes, n_values: int) -> tuple[bytes, bool]:
        await self.commands.send(AxiStreamFrame([n_values - 1]))
        await self.source.send(AxiStreamFrame(code))
        return await self.received()

    async def refuses(self, codes: Iterable[bytes], n_values: int) -> int:
        """Sends damaged codes; how many there were."""
        n_codes = 0
        for code in codes:
            values, bad = await self.decoded(code, n_values)
            assert bad and len(values) <= 4 * n_values
            n_codes += 1
        return n_codes

    async def idle(self) -> None:
        await ClockCycles(self.dut.clk_i, 30)
        assert self.sink.empty() and self.sink.idle()


async def encode_vectors(dut, paused: str, codec: str, ways: int = 1) -> None:
    bench = Bench(dut, paused)
    await bench.reset()
    for setting, packets in vectors.by_setting(codec, ways).items():
        await bench.set(setting)
        for raw, _ in 2 * packets:
            await bench.source.send(AxiStreamFrame(raw))
        for _, code in 2 * packets:
            assert bytes((await bench.sink.recv()).tdata) == code
        await bench.idle()


async def decode_vectors(dut, paused: str, codec: str, ways: int = 1) -> None:
    drawn = random.Random(1)
    bench = Bench(dut, paused)
    await bench.reset()
    for setting, packets in vectors.by_setting(codec, ways).items():
        await bench.set(setting)
        for raw, code in packets:
            n_values = len(raw) // 4
            cut = code[: drawn.randrange(len(code) // 2, len(code))]
            junk = code + bytes(drawn.randrange(256) for _ in range(1 + drawn.randrange(9)))
            await bench.refuses(filter(None, (cut, junk)), n_values)
            expected = vectors.decoded(codec, setting, code, len(raw))
            assert await bench.decoded(code, n_values) == (expected, False)
        await bench.idle()
