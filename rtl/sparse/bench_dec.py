# SPDX-License-Identifier: Apache-2.0
"""Codes of few, many and all values through the decoder, with pauses on both sides, against the
specification's own decoder; behind damaged ones, which are an error with the last beat, never a
hang, and change nothing for the next packet."""

import random
import struct
from collections.abc import Iterator

import cocotb
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiStreamFrame

from rtl import simulate, told_bench, vectors
from rtl.sparse import model

N_MOST = 1 << 9  # LogValues of the test
CLOCK_NS = 4
MORE_CLOCKS = 23  # a packet


def codes(drawn: random.Random) -> Iterator[tuple[bytes, int]]:
    """And how many values they have."""
    for n in (1, 16, 31, 100, N_MOST):
        for share in (0, 0.02, 0.06, 0.12, 0.25, 0.4, 0.6, 0.9, 1):
            places = sorted(drawn.sample(range(n), round(n * share)))
            yield model.payload({at: 1 + drawn.getrandbits(31) for at in places}, n), n
    row = dict.fromkeys([0, *range(240, 256), N_MOST - 1], 0xC0000000)
    yield model.payload(row, N_MOST), N_MOST


def damaged(code: bytes, n: int, drawn: random.Random) -> Iterator[bytes]:
    count = int.from_bytes(code[:4], "little")
    yield code[: drawn.randrange(1, len(code))]
    yield code[:-1]
    yield code + bytes(1 + drawn.randrange(99))
    yield code + bytes(4 * N_MOST)  # more than a block's memory
    yield struct.pack("<I", count + 1) + code[4:]
    yield struct.pack("<I", count - 1 & 0xFFFFFFFF) + code[4:]
    yield struct.pack("<I", count | 0x80000000) + code[4:]
    if count == 0:
        return
    yield code[:4] + b"\0\0\0\x80" + code[8:]  # -0
    if count == n:
        return
    yield code[:4] + bytes(4) + code[8:]  # +0
    at = 4 + 4 * count
    for _ in range(6):  # another position, or none, or one more, or bits behind the last
        bit = drawn.randrange(8 * (len(code) - at))
        text = bytearray(code)
        text[at + bit // 8] ^= 1 << bit % 8
        yield bytes(text)
    yield code[:-1] + bytes([code[-1] | 0x80])
    yield code[:at] + bytes(len(code) - at)
    yield code[:at] + b"\xff" * (len(code) - at)


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def refused_or_decoded(dut, paused: str) -> None:
    drawn = random.Random(1)
    reference = vectors.reference("graddrop")
    decoder = told_bench.Decoder(dut, paused)
    await decoder.bench.reset()

    def decoded(code: bytes, n: int) -> bytes | None:
        try:
            return reference.decode(code, [], 4 * n)
        except ValueError:
            return None

    n_refused = 0
    for code, n in codes(drawn):
        expected = decoded(code, n)
        assert expected is not None
        wrong = [text for text in damaged(code, n, drawn) if decoded(text, n) is None]
        few = drawn.sample(wrong, min(8, len(wrong)))
        n_refused += await decoder.refuses(few, code, expected)
        assert await decoder.packet(code, n) == (expected, False)
    assert n_refused > 250
    await decoder.bench.idle()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(paused=list(simulate.PAUSES))
async def behind_each_other(dut, paused: str) -> None:
    """Packets that wait for each other."""
    drawn = random.Random(2)
    reference = vectors.reference("graddrop")
    decoder = told_bench.Decoder(dut, paused)
    await decoder.bench.reset()
    packets = list(codes(drawn))
    drawn.shuffle(packets)
    for code, n in packets:
        await decoder.commands.send(AxiStreamFrame([n - 1]))
        await decoder.bench.source.send(AxiStreamFrame(code))
    for code, n in packets:
        assert await decoder.bench.received() == (reference.decode(code, [], 4 * n), False)
    await decoder.bench.idle()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(every=[None, 100, 17, 1])
async def rate(dut, every: int | None) -> None:
    """Codes behind each other, in which one in so many values is sent: a row a clock, and what a
    packet takes more."""
    decoder = told_bench.Decoder(dut, "none")
    await decoder.bench.reset()
    sent = {} if every is None else dict.fromkeys(range(0, N_MOST, every), 1)
    code = model.payload(sent, N_MOST)
    raw = struct.pack(f"<{N_MOST}I", *(sent.get(at, 0) for at in range(N_MOST)))
    for _ in range(12):
        await decoder.commands.send(AxiStreamFrame([N_MOST - 1]))
        await decoder.bench.source.send(AxiStreamFrame(code))
    ends = []
    for _ in range(12):
        assert await decoder.bench.received() == (raw, False)
        ends.append(get_sim_time("ns") / CLOCK_NS)
    clocks = (ends[-1] - ends[2]) / 9
    dut._log.info("%s: %.1f clocks a packet of %d rows", every, clocks, N_MOST // 16)
    assert clocks <= N_MOST // 16 + MORE_CLOCKS
