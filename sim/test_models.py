# SPDX-License-Identifier: Apache-2.0
"""The closed forms on values worked out from the papers, and on cases with an obvious answer."""

from __future__ import annotations

import math

import pytest

from wirepress.errors import ParameterError
from wirepress.sim import engine_files, models

GB = 1e9
LINK_25 = 25e9 / 8
FPGA = engine_files.load("fpga").codecs


def stage(name: str) -> models.Stage:
    codec = FPGA[name]
    return models.Stage(codec.ratio, codec.compress.total, codec.decompress.total)


def test_alpha_beta() -> None:
    assert models.alpha_beta(12.5e9, 1e-3, 12.5e9) == pytest.approx(1.001)


@pytest.mark.parametrize(
    ("name", "rate", "full", "even", "gains"),
    [  # FPGA-MPI's engines in a bounded-rate pipeline: GB/s; Gb/s; gain of the exchange by Gb/s
        ("lz4", 6.36, 33.25, 50.88, {25: 1.53, 50: 1.0176, 100: 0.5088, 200: 0.2544}),
        ("snappy", 6.68, 35.39, 53.44, {25: 1.51, 50: 1.0688, 100: 0.5344, 200: 0.2672}),
        ("zstd", 4.45448, 19.37, 35.64, {10: 1.84, 25: 1.4254, 100: 0.35636, 200: 0.17818}),
    ],
)
def test_engines_of_the_thesis(name, rate, full, even, gains) -> None:
    s = stage(name)
    assert s.rate == pytest.approx(rate * GB, rel=1e-9)
    assert models.full_ratio_until(s) * 8 / GB == pytest.approx(full, rel=1e-3)
    assert models.break_even(s) * 8 / GB == pytest.approx(even, rel=1e-3)
    for gbps, gain in gains.items():
        assert models.gain(s, gbps * GB / 8) == pytest.approx(gain, rel=1e-3)


def test_the_ranking_flips_at_25_gbps() -> None:
    """Compute 5068.29 s, exchange 13399.01 s (figure 5.3): with the engines' own rates Zstd falls
    behind LZ4, while the printed 1.34 / 1.32 / 1.50 need engines without a limit."""

    def speed_up(s: models.Stage) -> float:
        return (5068.29 + 13399.01) / (5068.29 + 13399.01 / models.gain(s, LINK_25))

    limited = [speed_up(stage(name)) for name in ("lz4", "snappy", "zstd")]
    free = [speed_up(models.Stage(FPGA[name].ratio)) for name in ("lz4", "snappy", "zstd")]
    assert limited == pytest.approx([1.336, 1.325, 1.276], abs=1e-3)
    assert free == pytest.approx([1.336, 1.325, 1.495], abs=1e-3)


def test_break_even_of_a_codec_that_overlaps_nothing() -> None:
    """Dense float32 gradients, zstd:1: 25 MiB, ratio 1.08, 22 ms: below about 0.7 Gb/s."""
    rate = models.break_even_serial(25 * 2**20, 1.08, 22e-3)
    assert 8 * rate == pytest.approx(0.706e9, rel=1e-3)
    raw, coded = 25 * 2**20 / rate, 25 * 2**20 / 1.08 / rate + 22e-3
    assert raw == pytest.approx(coded)
    assert models.break_even_serial(1, 1.0, 1) == 0


def test_messages_by_blocks() -> None:
    """Stages that hand on block by block: the sum of one block, the slowest for the rest."""
    s = models.Stage(2.0, compress=4.0, decompress=8.0, latency=3.0, block=8.0)
    one = 8 / 4 + 8 / 2 / 1 + 8 / 8  # link 1: 4 s are the slowest stage
    assert s.message(8, 0.5, 1.0) == pytest.approx(0.5 + 2 * 3 + one)
    assert s.message(80, 0.5, 1.0) == pytest.approx(0.5 + 2 * 3 + one + 9 * 4)
    assert models.Stage(2.0).message(80, 0.5, 1.0) == 40.5


def test_collectives_move_what_they_must() -> None:
    net = models.Network(10.0, latency=1.0)
    assert models.ring_allreduce(4, 100, net) == 6 * (1 + 2.5)
    assert models.ring_allreduce(1, 100, net) == 0
    assert models.recursive_doubling_allreduce(8, 100, net) == 3 * 11
    assert models.recursive_doubling_allreduce(6, 100, net) == (2 + 2) * 11
    assert models.tree_allreduce(8, 100, net) == 6 * 11
    assert models.tree_broadcast(5, 100, net) == 3 * 11
    assert models.parameter_server(4, 100, net) == 2 * (1 + 40)
    assert models.concurrent_allreduce(4, 100, net) == 1 + 30
    assert models.concurrent_allreduce_one_link(4, 100, net) == 1 + 120
    assert models.sequential_allreduce(4, 100, net) == 4 * (1 + 30)


def test_cost_table_of_gcow() -> None:
    """Table 2.1: how time and peak bandwidth grow with N (exponents from N = 512 to 1024)."""
    net = models.Network(1.0)

    def exponent(f) -> float:
        return math.log2(f(1024) / f(512))

    peak = {name: exponent(f) for name, f in models.PEAK_BANDWIDTH.items()}
    assert peak == pytest.approx({"ps": 1, "concurrent": 2, "ring": 0, "sequential": 1}, abs=0.01)
    assert exponent(lambda n: models.ring_allreduce(n, 1, net)) == pytest.approx(0, abs=0.01)
    assert exponent(lambda n: models.parameter_server(n, 1, net)) == pytest.approx(1)
    assert exponent(lambda n: models.concurrent_allreduce_one_link(n, 1, net)) == pytest.approx(
        2, abs=0.01
    )
    assert exponent(lambda n: models.sequential_allreduce(n, 1, net)) == pytest.approx(2, abs=0.01)


def test_parameter_server_of_the_introduction() -> None:
    """G, section 1.1: ResNet50 (97.5 MB), 2 iterations a second, 128 nodes: 24.38 GB/s. It comes
    out with MB and GB as powers of 1024."""
    push = models.parameter_server(128, 97.5 * 2**20, models.Network(24.38 * 2**30)) / 2
    assert push == pytest.approx(0.5, rel=1e-3)


def test_a_step_of_training() -> None:
    """Agarwal et al.: max(gamma compute, (k-1) bucket) + last bucket."""
    assert models.step(300, 50, 50, 4, overlap=False) == 500
    assert models.step(300, 50, 50, 4, overlap=True) == 350
    assert models.step(100, 50, 50, 4, overlap=True) == 200
    assert models.step(100, 50, 20, 4, overlap=True, gamma=2) == 220
    assert models.step(300, 50, 50, 4, overlap=True, codec=7) == 357
    assert models.bucket_sizes(98_811_898 * 4, 25 * 2**20)[-1] == pytest.approx(
        98_811_898 * 4 - 15 * 25 * 2**20
    )
    assert models.bucket_sizes(10, 25) == [10]
    assert models.bucket_sizes(50, 25) == [25, 25]


@pytest.mark.parametrize("compute", [0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize(
    "runs", [[(1, 4.0)], [(7, 2.0)], [(7, 2.0), (1, 9.0)], [(3, 5.0), (4, 1.0)]]
)
def test_equal_buckets_go_as_one_by_one(runs: list[tuple[int, float]], compute: float) -> None:
    computed = sent = 0.0
    for exchange in [each for n, each in runs for _ in range(n)]:
        computed += compute
        sent = max(sent, computed) + exchange
    assert models.overlapped_step([(n, compute, each) for n, each in runs]) == sent


def test_any_number_of_buckets() -> None:
    assert models.bucket_runs(1e18, 1)[0][0] == 10**18
    with pytest.raises(ParameterError, match=r"1e\+18 buckets: .* at most"):
        models.bucket_sizes(1e18, 1)


def test_two_levels() -> None:
    """S, eqs (1) to (3), by hand: M = 2, N = 3, whole g in every hop as printed."""
    two = models.TwoLevels(
        nodes=3, local=2, intra=10, inter=1, share=0.5, intra_latency=1, inter_latency=2,
        gpu_compress=0.1, gpu_decompress=0.2, nic_compress=0.01, nic_decompress=0.02, chunked=False,
    )  # fmt: skip
    assert two.baseline(100) == pytest.approx(1 * 11 + 4 * 102)
    assert two.approach1(100) == pytest.approx(11 + 4 * 52 + 3 * 1 + 3 * 2)
    assert two.approach2(100) == pytest.approx(6 + 10 + 20 + 3 * 1 + 3 * 2 + 4 * 52)
    assert two.approach1_on_gpu(100) == pytest.approx(11 + 4 * 52 + 3 * 10 + 3 * 20)
    chunked = models.TwoLevels(3, 2, 10, 1, 0.5)
    assert chunked.baseline(90) == pytest.approx(4.5 + 4 * 30)


def test_stages_on_an_fpga() -> None:
    """G, section 3.3: K_i so that every stage keeps up with 100 Gb/s."""
    rates = [0.4, 1.6, 1.7, 6.3, 0.09]  # GB/s of one element
    counts = models.processing_elements(12.5, rates)
    assert counts == [32, 8, 8, 2, 139]
    assert models.pipeline_rate(rates, counts) >= 12.5
    assert models.pipeline_rate(rates, [32, 8, 8, 2, 128]) == pytest.approx(11.52)
    assert models.fifo_depth(1, 1) == 1
    assert models.fifo_depth(32, 8) == 32
    assert models.fifo_depth(3, 2) == 4
    assert models.fifo_depth(8, 128, slack=5) == 133
    with pytest.raises(ParameterError, match="at least 1 token"):
        models.fifo_depth(0, 2)


def test_no_deadlock_at_the_depth_and_one_below() -> None:
    """Runs the two stages: they finish at that depth and block at one less."""

    def runs(p: int, c: int, depth: int) -> bool:
        held = 0
        for _ in range(4 * p * c):
            if held >= c:
                held -= c
            elif held + p <= depth:
                held += p
            else:
                return False
        return True

    for p, c in ((1, 1), (3, 2), (32, 8), (8, 32), (7, 5), (2, 128)):
        assert runs(p, c, models.fifo_depth(p, c))
        assert not runs(p, c, models.fifo_depth(p, c) - 1)


def test_frame_store() -> None:
    """F, section 6.3: the expander (458.58 MB/s) is slower than the backward kernel (733 MB/s), so
    23 % of the time went for reading; a second one would have hidden it."""
    assert not models.hidden(733e6, 458.58e6)
    assert models.hidden(733e6, 2 * 458.58e6)
    frame = 530**3 * 4
    store = models.FrameStore(
        176, frame, frame / 733e6, frame / 733e6, disk_write=1e9, disk_read=1e9
    )
    fre = models.Stage(4.67, 2.40e9, 458.58e6)
    assert store.compressed_wait(fre) == pytest.approx(176 * frame * (1 / 458.58e6 - 1 / 733e6))
    assert store.compressed_wait(fre, engines=2) == 0
    assert store.in_memory() < store.compressed(fre, engines=2) < store.compressed(fre)
    slow = models.FrameStore(176, frame, 0.5, 0.5, disk_write=1e8, disk_read=1e8)
    assert slow.on_disk() / slow.compressed(models.Stage(4.67)) == pytest.approx(4.67, rel=0.05)
    assert slow.compressed_by_workers(fre) > slow.compressed(fre)


def test_nonsense_is_refused() -> None:
    for call in (
        lambda: models.Stage(0.0),
        lambda: models.Network(0.0),
        lambda: models.Network(1.0, -1.0),
        lambda: models.ring_allreduce(0, 1, models.Network(1.0)),
        lambda: models.step(1, 1, 1, 0, overlap=True),
        lambda: models.bucket_sizes(1, 0),
    ):
        with pytest.raises(ParameterError):
            call()
