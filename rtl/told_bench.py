# SPDX-License-Identifier: Apache-2.0
"""The cocotb tests of decoders that are told on s_cmd how many values a packet has."""

from __future__ import annotations

from collections.abc import Iterable

from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamFrame, AxiStreamSource

from rtl import stream_bench


class Decoder:
    """A decoder between streams that pause."""

    def __init__(self, dut, paused: str) -> None:
        self.dut = dut
        self.bench = stream_bench.Bench(dut, paused)
        self.commands = self.bench.stream(AxiStreamSource, "s_cmd", byte_lanes=1)

    async def set(self, **values: int) -> None:
        """Settings cfg_NAME_i, between packets."""
        for name, value in values.items():
            getattr(self.dut, f"cfg_{name}_i").value = value
        await ClockCycles(self.dut.clk_i, 3)

    async def packet(self, code: bytes, n_values: int) -> tuple[bytes, bool]:
        """The values of a packet, and whether the core says that it was not valid."""
        await self.commands.send(AxiStreamFrame([n_values - 1]))
        await self.bench.source.send(AxiStreamFrame(code))
        frame = await self.bench.sink.recv(compact=False)
        bad = frame.tuser[-1] if isinstance(frame.tuser, list) else frame.tuser
        frame.compact()
        return bytes(frame.tdata), bool(bad)

    async def refuses(self, codes: Iterable[bytes], good: bytes, expected: bytes) -> int:
        """Damaged codes, which must be an error with the last beat, and behind each the good one,
        for which they must change nothing; how many there were."""
        n_values, n_refused = len(expected) // 4, 0
        for code in codes:
            if code == good:
                continue
            values, bad = await self.packet(code, n_values)
            assert bad and len(values) <= len(expected)
            assert await self.packet(good, n_values) == (expected, False)
            n_refused += 1
        return n_refused
