# SPDX-License-Identifier: Apache-2.0
"""Packets through the second of two interfaces of the OpenNIC user box: its registers' place, its
streams' slices, and where its packets go; the first one is still meanwhile."""

import random

import cocotb
from cocotb.triggers import RisingEdge

from rtl.nic import peer
from rtl.nic.bench_nic import COUNTERS, PORT, Bench


@cocotb.test(timeout_time=400, timeout_unit="us")
async def second_interface(dut) -> None:
    drawn = random.Random(5)
    bench = Bench(dut, "both", interface=1)
    await bench.begin(reset=dut.done_o)
    payloads = [peer.wave(drawn, 4 * n_values) for n_values in (20, 66, 259, 369)]
    frames = [peer.udp_frame(payload, PORT) for payload in payloads]
    for frame in [*frames, peer.udp_frame(payloads[0], PORT + 1)]:
        await bench.send("h2c", frame)
    for payload in payloads:
        code = await bench.receive("adap_tx")
        assert peer.payload_of(code) == bench.peer.compress(payload)
        await bench.send("adap_rx", code)
        expected = bench.peer.decompress(bench.peer.compress(payload))
        assert peer.payload_of(await bench.receive("c2h")) == expected
    assert await bench.receive("adap_tx") == peer.udp_frame(payloads[0], PORT + 1)
    await bench.nothing_more()
    n = len(payloads)
    assert await bench.counted() == dict(zip(COUNTERS, (n, 0, 1, 0, n, 0, 0), strict=True))


@cocotb.test(timeout_time=400, timeout_unit="us")
async def registers_apart(dut) -> None:
    first, drawn = Bench(dut, "none", interface=0), random.Random(6)
    await first.begin(reset=dut.done_o)
    first.base = 0x100
    assert await first.read(0) == 0x01525057
    assert await first.read(0x14) == 0  # of the second interface: not set
    frame = peer.udp_frame(peer.wave(drawn, 200), PORT)
    first.interface = 1
    await first.send("h2c", frame)
    assert await first.receive("adap_tx") == frame
    for _ in range(200):
        await RisingEdge(dut.clk_i)
        assert not dut.other_o.value
