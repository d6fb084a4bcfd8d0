# SPDX-License-Identifier: Apache-2.0
"""Packets of 60 B to 9.6 kB and beyond through the box, both ways; what they hold is made and read
by the library (peer.py), their checksums are checked as a host does it."""

import random
import struct
from typing import Any, NamedTuple

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

from rtl import simulate
from rtl.nic import peer

PORT, MOST = 5000, 9600
AS_IT_CAME = b"as it came"
COUNTERS = ["coded", "stored", "passed", "dropped", "expanded", "host_passed", "host_dropped"]


class Bench:
    def __init__(self, dut, paused: str, m: int = 5, interface: int | None = None) -> None:
        """interface: of OpenNIC's user box; None: a box alone, without tuser_dst."""
        self.dut = dut
        self.codec = peer.codec(int(dut.Codec.value) if hasattr(dut, "Codec") else 0, m)
        self.interface, self.base = interface, 0x100 * (interface or 0)
        self.peer = peer.Peer(self.codec.recipe, self.codec.dtype, self.codec.engine)
        self.software = peer.Peer(self.codec.recipe, self.codec.dtype)  # codes of its own
        cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
        dut.rst_ni.value = 0
        reset = {"reset": dut.rst_ni, "reset_active_level": False}
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, **reset)
        self.source, self.sink = {}, {}
        for seed, name in enumerate(("h2c", "adap_rx")):
            bus = AxiStreamBus.from_prefix(dut, name)
            self.source[name] = AxiStreamSource(bus, dut.clk_i, **reset)
            pauses = simulate.pauses(seed, simulate.PAUSES[paused][0])
            self.source[name].set_pause_generator(pauses)
        for seed, name in enumerate(("adap_tx", "c2h")):
            bus = AxiStreamBus.from_prefix(dut, name)
            self.sink[name] = AxiStreamSink(bus, dut.clk_i, **reset)
            pauses = simulate.pauses(seed + 5, simulate.PAUSES[paused][1])
            self.sink[name].set_pause_generator(pauses)

    async def read(self, at: int) -> int:
        return await self.registers.read_dword(self.base + at)

    async def write(self, at: int, word: int) -> None:
        await self.registers.write_dword(self.base + at, word)

    async def begin(self, most: int = MOST, reset: Any = None) -> None:
        """reset: a signal that is 1 when reset is done, where it is not at once."""
        await ClockCycles(self.dut.clk_i, 5)
        self.dut.rst_ni.value = 1
        await ClockCycles(self.dut.clk_i, 5)
        while reset is not None and not reset.value:
            await ClockCycles(self.dut.clk_i, 5)
        assert await self.read(0) == 0x01525057
        await self.write(0x08, most)
        await self.write(0x14, PORT)
        header = self.peer.header + bytes(-len(self.peer.header) % 4)
        for i, word in enumerate(struct.unpack(f"<{len(header) // 4}I", header)):
            await self.write(0x20 + 4 * i, word)
        await self.write(0x04, 3 | self.codec.control << 8)
        assert await self.read(0x14) == PORT

    async def send(self, name: str, frame: bytes, size: int | None = None) -> None:
        user = (len(frame) if size is None else size) | 3 << 16
        await self.source[name].send(AxiStreamFrame(frame, tuser=user))

    async def receive(self, name: str) -> bytes:
        frame = await self.sink[name].recv()
        users = frame.tuser if isinstance(frame.tuser, list) else [frame.tuser]
        data = bytes(frame.tdata)
        first = 0x40 if name == "adap_tx" else 1
        dst = 0 if self.interface is None else first << self.interface
        assert set(users) == {len(data) | 3 << 16 | dst << 32}
        return data

    async def nothing_more(self) -> None:
        await ClockCycles(self.dut.clk_i, 300)
        for sink in self.sink.values():
            assert sink.empty() and sink.idle()

    async def counted(self) -> dict[str, int]:
        return {name: await self.read(0x40 + 4 * i) for i, name in enumerate(COUNTERS)}


def stored(header: bytes, payload: bytes) -> bytes:
    return header + struct.pack("<II", len(payload) | 3 << 30, len(payload)) + payload


class Sent(NamedTuple):
    frame: bytes
    kind: str  # of COUNTERS
    size: int | None = None  # what is promised of it


def from_host(drawn: random.Random, codec: peer.Codec, header: bytes) -> list[Sent]:
    def udp(kind: str, payload: bytes, **more) -> Sent:
        return Sent(peer.udp_frame(payload, more.pop("port", PORT), **more), kind)

    def small(n_values: int) -> bytes:
        return codec.small(drawn, 4 * n_values)

    found = []
    for n_values in (1, 5, 6, 16, 66, 259, 369, 2200, 2388):  # 60 B to 9594 B
        found.append(udp("coded", small(n_values)))
        found.append(udp("stored", codec.large(drawn, 4 * min(n_values, 2380))))
    found[0] = Sent(found[0].frame, "passed")  # padded
    found[1] = Sent(found[1].frame, "passed")
    odd = "stored" if codec.unit == 4 else "coded"
    found += [udp(odd, small(300)[:size]) for size in (41, 42, 43, 1001)]
    found += [
        udp("passed", small(100), port=PORT + 1),
        udp("coded", small(100), checksum=False),
        udp("passed", small(100), flags=0x2000),  # a fragment
        Sent(
            peer.udp_frame(b"x" * 100, PORT).replace(b"\x08\x00\x45", b"\x86\xdd\x60", 1), "passed"
        ),
        Sent(bytes(range(14)) + bytes(28), "passed"),  # a runt
        Sent(b"\x00", "passed"),
        Sent(drawn.randbytes(64), "passed"),
        Sent(drawn.randbytes(9600), "passed"),
        udp("passed", codec.large(drawn, MOST - 42)),  # no room for a frame
        udp("dropped", header + codec.large(drawn, MOST - 42 - len(header))),  # looks like one
        udp("coded", header + bytes(-len(header) % 4) + small(300)),
        Sent(drawn.randbytes(16400), "dropped"),
        Sent(peer.udp_frame(small(4100), PORT), "dropped"),
        Sent(peer.udp_frame(small(100), PORT)[:200], "passed", 442),  # promised more
        Sent(peer.udp_frame(small(100), PORT)[:42], "passed", 442),
        Sent(peer.udp_frame(small(50), PORT) + bytes(100), "passed", 242),
        udp("coded", bytes(4000)),
    ]
    return found


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def host_to_wire(dut, paused: str) -> None:
    drawn = random.Random(1)
    bench = Bench(dut, paused, m=23)  # with which noise does not shrink
    await bench.begin()
    sent = from_host(drawn, bench.codec, bench.peer.header)
    drawn.shuffle(sent)
    for frame, _, size in sent:
        await bench.send("h2c", frame, size)
    for frame, kind, _ in sent:
        if kind == "dropped":
            continue
        out = await bench.receive("adap_tx")
        if kind == "passed":
            assert out == frame
            continue
        payload, made = frame[42:], peer.payload_of(out)
        assert out[:16] == frame[:16] and out[26:38] == frame[26:38]
        if kind == "coded":
            assert made == bench.peer.compress(payload), f"{len(payload)} bytes"
            assert (frame[40:42] == b"\0\0") == (out[40:42] == b"\0\0")
        else:
            assert made == stored(bench.peer.header, payload)
            assert bench.peer.decompress(made) == payload
    await bench.nothing_more()
    counted = await bench.counted()
    for kind in ("coded", "stored", "passed", "dropped"):
        assert counted[kind] == sum(s.kind == kind for s in sent)


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def wire_to_host(dut, paused: str) -> None:
    drawn = random.Random(2)
    bench = Bench(dut, paused)
    await bench.begin()
    codec, header = bench.codec, bench.peer.header
    other = peer.Peer(codec.other, codec.dtype)
    senders = [bench.software] + ([bench.peer] if codec.engine != "cpu" else [])
    sent: list[tuple[bytes, bytes | None]] = []  # what comes, and the payload that the host gets

    def add(frame: bytes, payload: bytes | None, **more) -> None:
        sent.append((peer.udp_frame(frame, PORT, **more), payload))

    for n_values in (1, 2, 16, 66, 259, 369, 2380):
        for payload in (codec.small(drawn, 4 * n_values), codec.large(drawn, 4 * n_values)):
            for sender in senders:
                code = sender.compress(payload)
                coded, head = code[len(header) + 3] < 0x80, code[len(header) + 8 :][:4]
                reversible = codec.reversible and coded and head[3] >= 0x80
                expected = AS_IT_CAME if reversible else bench.peer.decompress(code)
                add(code, expected, checksum=n_values != 16)
            add(stored(header, payload + b"abc"), payload + b"abc")
        payload = codec.small(drawn, 4 * n_values)
        add(other.compress(payload), AS_IT_CAME)  # other settings
        add(payload, AS_IT_CAME)
    payload = codec.small(drawn, 2000)
    code = bench.software.compress(payload)
    begin = len(header) + 8  # of the block
    word, size = struct.unpack("<II", code[begin - 8 : begin])

    def with_sizes(block_word: int, raw_size: int) -> bytes:
        return header + struct.pack("<II", block_word, raw_size) + code[begin:]

    for damaged in (
        code[: (begin + len(code)) // 2],
        code + b"\0",
        with_sizes(word & 0xFFFF, size),
        with_sizes(word | 1 << 29, size),
        with_sizes(word, size + (1 << 16)),
        with_sizes(word, 9600),
        header,
        code[:begin],
        stored(header, payload)[:-1],
    ):
        add(damaged, AS_IT_CAME)  # not of our form: the host's library says what is wrong
    # Of our form, but the code holds another number of bytes; or the size is none of whole values.
    for lie in (size + 40, size - 16):
        add(with_sizes(word, lie), None)
    add(with_sizes(word, size + 1), AS_IT_CAME if codec.unit > 1 else None)
    sent.append((drawn.randbytes(17000), None))
    sent.append((peer.udp_frame(code, PORT)[:-30], AS_IT_CAME))
    drawn.shuffle(sent)
    cocotb.log.setLevel("WARNING")
    for frame, _ in sent:
        await bench.send("adap_rx", frame)
    for frame, payload in sent:
        if payload is None:
            continue
        out = await bench.receive("c2h")
        if payload == AS_IT_CAME:
            assert out == frame
            continue
        assert peer.payload_of(out) == payload
        assert (frame[40:42] == b"\0\0") == (out[40:42] == b"\0\0")
    await bench.nothing_more()
    assert (await bench.counted())["host_dropped"] == sum(p is None for _, p in sent)


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(paused=["none", "both"])
async def corrupted_on_the_wire(dut, paused: str) -> None:
    """A bit flipped anywhere behind the Ethernet header: dropped, or the host sees a bad checksum;
    the packets between are whole."""
    drawn = random.Random(3)
    bench = Bench(dut, paused)
    await bench.begin()
    n_dropped = 0
    for trial in range(60):
        code = bench.software.compress(bench.codec.small(drawn, 240))
        frame = bytearray(peer.udp_frame(code, PORT))
        behind = 14 if trial % 2 else 50 + len(bench.peer.header)
        at = drawn.randrange(behind, len(frame))
        frame[at] ^= 1 << drawn.randrange(8)
        good = bench.codec.small(drawn, 120)
        await bench.send("adap_rx", bytes(frame))
        await bench.send("adap_rx", peer.udp_frame(bench.peer.compress(good), PORT))
        expected = bench.peer.decompress(bench.peer.compress(good))
        out = await bench.receive("c2h")
        if len(out) == 42 + len(good) and out[42:] == expected:
            n_dropped += 1
            continue
        with pytest.raises(AssertionError):  # as a host's stack
            peer.payload_of(out)
        assert peer.payload_of(await bench.receive("c2h")) == expected
    await bench.nothing_more()
    assert 0 < n_dropped == (await bench.counted())["host_dropped"]


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(paused=["none", "both"])
async def through_a_network(dut, paused: str) -> None:
    """From the host over a network that loses, repeats and reorders, to the host."""
    drawn = random.Random(4)
    bench = Bench(dut, paused)
    await bench.begin()
    codec = bench.codec
    payloads = [
        codec.small(drawn, 4 * n) if n % 2 else codec.large(drawn, n) for n in range(21, 400, 9)
    ]
    for payload in payloads:
        await bench.send("h2c", peer.udp_frame(payload, PORT))
    frames = [await bench.receive("adap_tx") for _ in payloads]
    kept = [(i, frame) for i, frame in enumerate(frames) if drawn.randrange(5)]
    kept += [drawn.choice(kept) for _ in range(5)]
    drawn.shuffle(kept)
    for _, frame in kept:
        await bench.send("adap_rx", frame)
    for i, _ in kept:
        expected = payloads[i]
        out = peer.payload_of(await bench.receive("c2h"))
        whole = len(expected) % codec.unit == 0
        coded = bench.peer.decompress(bench.peer.compress(expected)) if whole else None
        assert out in (expected, coded)
    await bench.nothing_more()
