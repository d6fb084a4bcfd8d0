# SPDX-License-Identifier: Apache-2.0
"""Bytes that went through a part are compared with what Python makes of them."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from rtl import simulate

BEAT = 16


class Bench:
    def __init__(self, dut, paused: str) -> None:
        self.dut = dut
        self.pauses = simulate.PAUSES[paused]
        cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
        dut.rst_ni.value = 0
        dut.cfg_beats_i.value = 3
        dut.cfg_patience_i.value = 200
        self.sources = {name: self.source(name, lanes) for name, lanes in
                        {"a": None, "c": None, "e": 1, "g": 1, "h": 1, "j": 1}.items()}  # fmt: skip
        self.sinks = {name: self.sink(name, lanes) for name, lanes in
                      {"b": None, "d": None, "f": 1, "i": 1, "k": 1}.items()}  # fmt: skip
        self.dropped = dict.fromkeys(("c", "j"), 0)

    def bus(self, name: str, lanes: int | None) -> tuple:
        more = {} if lanes is None else {"byte_lanes": lanes}
        reset = {"reset": self.dut.rst_ni, "reset_active_level": False}
        return AxiStreamBus.from_prefix(self.dut, name), more | reset

    def source(self, name: str, lanes: int | None) -> AxiStreamSource:
        bus, more = self.bus(name, lanes)
        made = AxiStreamSource(bus, self.dut.clk_i, **more)
        made.set_pause_generator(simulate.pauses(ord(name), self.pauses[0]))
        return made

    def sink(self, name: str, lanes: int | None) -> AxiStreamSink:
        bus, more = self.bus(name, lanes)
        made = AxiStreamSink(bus, self.dut.clk_i, **more)
        made.set_pause_generator(simulate.pauses(ord(name), self.pauses[1]))
        return made

    async def begin(self) -> None:
        await ClockCycles(self.dut.clk_i, 4)
        self.dut.rst_ni.value = 1
        await ClockCycles(self.dut.clk_i, 2)
        cocotb.start_soon(self.count("c"))
        cocotb.start_soon(self.count("j"))

    async def count(self, name: str) -> None:
        wire = getattr(self.dut, f"{name}_dropped")
        while True:
            await RisingEdge(self.dut.clk_i)
            self.dropped[name] += int(wire.value)

    async def nothing_more(self, name: str) -> None:
        await ClockCycles(self.dut.clk_i, 60)
        assert self.sinks[name].empty() and self.sinks[name].idle()


def listed(value, size: int) -> list[int]:
    return value if isinstance(value, list) else [value] * size


def header(number: int, size: int, first: bool, last: bool) -> bytes:
    word = size | last << 30 | 1 << 31
    return word.to_bytes(4, "little") + (number % 65536 | first << 16).to_bytes(4, "little")


def blocks_of(message: bytes, number: int, size: int) -> list[bytes]:
    """As the document of the packetizer says."""
    cuts = range(0, len(message), size)
    return [header(number + i, len(message[at : at + size]), at == 0, at + size >= len(message)) +
            message[at : at + size] for i, at in enumerate(cuts)]  # fmt: skip


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def packetizer_and_pool(dut, paused: str) -> None:
    drawn = random.Random(1)
    bench = Bench(dut, paused)
    await bench.begin()
    number = 0
    for n_beats in (4, 1, 7):
        dut.cfg_beats_i.value = n_beats - 1
        messages = [drawn.randbytes(n) for n in [*range(1, 2 * BEAT + 2, 3), 64, 65, 128, 300]]
        expected = []
        for message in messages:
            blocks = blocks_of(message, number, n_beats * BEAT)
            expected += blocks
            number += len(blocks)
            await bench.sources["a"].send(AxiStreamFrame(message))
        for block in expected:
            assert bytes((await bench.sinks["b"].recv()).tdata) == block
        await bench.nothing_more("b")


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def reassembler(dut, paused: str) -> None:
    drawn = random.Random(2)
    bench = Bench(dut, paused)
    await bench.begin()
    number = 0

    async def way(blocks: list[bytes]) -> None:
        for block in blocks:
            await bench.sources["c"].send(AxiStreamFrame(block))

    async def arrives(message: bytes, whole: bool = True) -> None:
        frame = await bench.sinks["d"].recv(compact=False)
        lanes = zip(frame.tdata, frame.tkeep, strict=True)
        bad = listed(frame.tuser, 1)[-1]
        assert (bytes(byte for byte, keep in lanes if keep), bool(bad)) == (message, not whole)

    def cut(n: int) -> tuple[bytes, list[bytes]]:
        nonlocal number
        message = drawn.randbytes(n)
        blocks = blocks_of(message, number, 5 * BEAT)
        number += len(blocks)
        return message, blocks

    # in order, every size of the last beat; reordered, repeated and damaged; back to back
    sent = [cut(n) for n in [*range(1, 2 * BEAT + 2, 3), 80, 81, 160, 700]]
    for _, blocks in sent:
        await way(blocks)
    for message, _ in sent:
        await arrives(message)
    message, blocks = cut(600)
    order = [1, 0, 0, 3, 2, 1, 5, 4, 7, 6]
    await way([blocks[0][:8], blocks[0] + b"more", blocks[1][:-1], *(blocks[i] for i in order)])
    await arrives(message)
    await bench.nothing_more("d")
    assert bench.dropped["c"] == 5  # a runt, two of another size, two that were there already
    # one is lost in the middle: the message ends where it is missing, the next one is whole
    message, blocks = cut(600)
    following = [cut(300), cut(20)]
    await way(blocks[:3] + blocks[4:])
    for _, more in following:
        await way(more)
    await arrives(message[: 3 * 80], whole=False)
    for message, _ in following:
        await arrives(message)
    # all slots' worth and more is lost, then the numbers run on; and one of another stream comes
    cut(80 * 20)
    message, blocks = cut(400)
    await way(blocks)
    await arrives(b"", whole=False)
    await arrives(message)
    stray = blocks_of(b"x" * 30, number + 30000, 80)
    message, blocks = cut(400)
    await way(stray + blocks)
    await arrives(b"", whole=False)
    await arrives(b"x" * 30)
    await arrives(b"", whole=False)
    await arrives(message)
    await bench.nothing_more("d")


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def pack_and_split(dut, paused: str) -> None:
    drawn = random.Random(3)
    bench = Bench(dut, paused)
    await bench.begin()
    for largest in (3, 40, 64, 64):
        sizes = [drawn.choice((drawn.randrange(largest + 1), largest)) for _ in range(60)]
        pieces = [drawn.getrandbits(size) if size else 0 for size in sizes]
        total, bits = 0, 0
        for size, piece in zip(sizes, pieces, strict=True):
            bits |= piece << total
            total += size
        n_words = max(1, -(-total // 64))
        words = [bits >> 64 * i & (1 << 64) - 1 for i in range(n_words)]
        of_words = [64] * (n_words - 1) + [total - 64 * (n_words - 1)]
        await bench.sources["e"].send(AxiStreamFrame(pieces, tuser=sizes))
        frame = await bench.sinks["f"].recv(compact=False)
        assert (list(frame.tdata), listed(frame.tuser, n_words)) == (words, of_words)
        # too short, too long, and then as it is: the errors and no others
        for damage in (-1, 1, 0):
            given = words[: max(1, n_words + damage)] + [7] * max(0, damage)
            given_sizes = of_words[: n_words + damage] if damage < 0 else of_words + [64] * damage
            if damage == 1 and of_words[-1] < 64:
                given_sizes = [64] * n_words + [64]
            if damage < 0 and n_words < 2:
                continue
            cocotb.start_soon(bench.sources["g"].send(AxiStreamFrame(given, tuser=given_sizes)))
            await bench.sources["h"].send(AxiStreamFrame(sizes))
            frame = await bench.sinks["i"].recv(compact=False)
            users = listed(frame.tuser, len(sizes))
            assert [user & 127 for user in users] == sizes
            errors = [user >> 7 for user in users]
            assert any(errors) == (damage != 0) and (damage <= 0 or errors[:-1] == [0] * 59)
            for bad, piece, got in zip(errors, pieces, frame.tdata, strict=True):
                assert bad or got == piece
    for name in "fi":
        await bench.nothing_more(name)


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def packet_fifo(dut, paused: str) -> None:
    drawn = random.Random(4)
    bench = Bench(dut, paused)
    await bench.begin()
    kept, n_dropped = [], 0
    for number in range(120):
        size = drawn.choice((1, 2, 3, drawn.randrange(1, 17), 16, 17, 40))
        words = [drawn.getrandbits(16) for _ in range(size)]
        drop = drawn.randrange(4) == 0
        await bench.sources["j"].send(AxiStreamFrame(words, tuser=[number | drop << 8] * size))
        if drop or size > 16:
            n_dropped += 1
        else:
            kept.append((words, [number | (at == 0) << 8 for at in range(size)]))
    for words, users in kept:
        frame = await bench.sinks["k"].recv(compact=False)
        assert (list(frame.tdata), listed(frame.tuser, 1)) == (words, users)
    await bench.nothing_more("k")
    assert bench.dropped["j"] == n_dropped
