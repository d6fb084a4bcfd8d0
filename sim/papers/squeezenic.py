# SPDX-License-Identifier: Apache-2.0
"""SqueezeNIC: gradient quantisation in the NIC of nodes with several GPUs."""

from __future__ import annotations

import dataclasses
from typing import Any

from wirepress.sim import engine_files, models
from wirepress.sim.papers import Data, Experiment, Paper, Result, Row

PAPER = Paper(
    "squeezenic",
    "Rebai et al.: SqueezeNIC: Low-Latency In-NIC Compression for Distributed Deep Learning. "
    "NAIC'24",
)

NODES = (2, 4, 8, 16)
SIZE = 4 * 340e6  # BERT-Large, float32; not printed
PARTITION = 25e6
BERT_BATCH = 3.300  # s, table 4, without compression
ONE_BIT = 0.062  # s a model on the GPU, table 2
MODEL = models.TwoLevels(
    nodes=16, local=8, intra=75e9, inter=100e9 / 8, share=1 / 32, intra_latency=5e-6,
    inter_latency=10e-6, gpu_compress=ONE_BIT / SIZE, gpu_decompress=ONE_BIT / SIZE,
)  # fmt: skip


def iteration(nodes: int, how: str, compute: float, chunked: bool = True) -> float:
    """Seconds: computing, and all partitions by `how`, a method of TwoLevels."""
    two = dataclasses.replace(MODEL, nodes=nodes, chunked=chunked)
    return compute + SIZE / PARTITION * getattr(two, how)(PARTITION)


def _fitted_compute() -> float:
    """Seconds of computing with which approach 1 gains its printed 1.21 at 16 nodes."""
    slow, fast = iteration(16, "approach1_on_gpu", 0.0), iteration(16, "approach1", 0.0)
    return (slow - 1.21 * fast) / 0.21


def _fig_3(_: Data) -> Result:
    compute = _fitted_compute()

    def gain(approach: str, compute: float = compute, nodes: int = 16) -> float:
        return iteration(nodes, f"{approach}_on_gpu", compute) / iteration(nodes, approach, compute)

    guess = "computing time, gradient size, rates and start-ups are not printed"
    rows = [
        Row("s of computing with which approach 1 gains its 1.21 at 16 nodes", None, compute),
        Row("approach 2 against the same on the GPU, 16 nodes", 1.15, gain("approach2"), 0.02,
            guess),
        Row("approach 1, with the 3.3 s a BERT batch of table 4", 1.21,
            gain("approach1", BERT_BATCH), 0.02,
            "the gain is the codec's time on the GPU by the iteration's: it hangs on the computing "
            "time"),
        Row("gain of approach 1 at 16 nodes : at 2 nodes (text: grows with the nodes)", None,
            gain("approach1") / gain("approach1", nodes=2)),
        Row("s an iteration with whole partitions in every hop (eq. 1 as printed)", None,
            iteration(16, "baseline", compute, chunked=False)),
        Row("s an iteration with chunks in every hop", None, iteration(16, "baseline", compute)),
    ]  # fmt: skip
    ways = ("baseline", "approach1_on_gpu", "approach1", "approach2_on_gpu", "approach2")
    curves = {
        way: [(n, iteration(n, way, compute) / iteration(n, "baseline", compute)) for n in NODES]
        for way in ways
    }
    return Result(
        rows,
        [
            "Guessed: 340 million float32, 100 Gb/s between nodes, 75 GB/s and 8 GPUs inside, "
            "ratio 32, start-ups 5 and 10 us, 0.062 s on the GPU each for compressing and "
            "expanding, and a computing time fitted to the 1.21 of approach 1, which is therefore "
            "no test of it.",
            "Eq. (1) is called the compressed baseline and has no codec in it. A hop of eqs (1) to "
            "(3) moves the whole partition; a ring moves 1/N of it.",
        ],
        curves,
    )


def _table_2(_: Data) -> Result:
    table = engine_files.load("v100").tables["2"]
    ratios = {}
    for model, ternary, ternary_dpu, dgc, dgc_dpu, *_rest in table["rows"]:
        ratios[f"{model}, TernGrad"] = ternary_dpu / ternary
        ratios[f"{model}, DGC"] = dgc_dpu / dgc
    rows = [
        Row("DPU : GPU, the largest (text: 187, NCF with TernGrad)", 187, max(ratios.values()),
            0.02),
        Row("DPU : GPU, the smallest (text: 3, ResNet with DGC)", 3,
            ratios["ResNet, DGC"], 0.2, "0.509 / 0.133"),
    ]  # fmt: skip
    if min(ratios.values()) < ratios["ResNet, DGC"]:
        key = min(ratios, key=lambda k: ratios[k])
        rows[1] = Row(
            "DPU : GPU, the smallest (text: 3, ResNet with DGC)", 3, ratios[key], 0.2, key
        )
    rates = {name: SIZE / 1e9 / seconds for name, seconds in zip(
        table["columns"][1:], table["rows"][0][1:], strict=True)}  # fmt: skip
    rows += [Row(f"{k}: GB/s if BERT is 1.36 GB", None, rate) for k, rate in rates.items()]
    return Result(rows)


def _table_4(_: Data) -> Result:
    table = engine_files.load("v100").tables["4"]
    rows = []
    for model, plain, *others in table["rows"]:
        factors = [seconds / plain for seconds in others if seconds > 0]
        low, high = (4, 5) if model == "DeepLight" else (2, 2)
        rows += [
            Row(f"{model}: slower at least", low, min(factors), 0.15),
            Row(f"{model}: slower at most", high, max(factors), 0.15,
                "2.24 to 2.40 times; the text has 2" if model == "BERT" else ""),
        ]  # fmt: skip
    return Result(rows)


def _table_5(_: Data) -> Result:
    table = engine_files.load("squeezenic").tables["5"]
    sizes = [int(name.split()[0]) for name in table["columns"][1:]]
    rows = []
    for size, gbps in zip(sizes, table["rows"][0][1:], strict=True):
        rows.append(
            Row(f"{size} B: million packets a second without compression", None,
                gbps * 1e9 / 8 / size / 1e6)
        )  # fmt: skip
    for size, column in zip(sizes, zip(*(r[1:] for r in table["rows"]), strict=True), strict=True):
        worst = min(column[1:]) / column[0]
        rows.append(
            Row(f"{size} B: throughput with compression by without, the worst (text: no effect)",
                1.0, worst, 0.05, "25 to 28 % less" if size == 308 else "")
        )  # fmt: skip
    box = engine_files.load("nic").tables["5"]
    for row, printed in zip(box["rows"], table["rows"], strict=True):
        for size, ours, paper in zip(sizes, row[1:], printed[1:], strict=True):
            rows.append(
                Row(f"{size} B, ratio {row[0]}: Gb/s through two boxes of rtl/nic, simulated",
                    paper, ours, 0.1,
                    "their host sends 3 to 5 million packets a second" if size < 1518 else
                    "codes leave room on the wire, so the host can send faster than it")
            )  # fmt: skip
    line = 1518 / (1518 + 20) * 100  # preamble and gap between packets
    rows.append(Row("1518 B: Gb/s that fit 100 Gb/s Ethernet", None, line))
    note = (
        "308 and 1076 B go at 4.3 and 4.9 million packets a second: the host's rate, not the NIC's."
    )
    return Result(rows, [note])


def _table_6(_: Data) -> Result:
    engine = engine_files.load("squeezenic")
    table = engine.tables["6"]
    rows = [
        Row("% of CLBs at 6400 Gb/s (text: under 40)", 40, table["rows"][-1][3], 0.005),
        Row("LUTs of one 100 Gb/s lane, in thousand, from 400 and 6400 Gb/s", None,
            (table["rows"][-1][1] - table["rows"][0][1]) / 100 * engine.capacity["luts"] / 60e3),
        Row("LUTs at 3200 : at 1600 Gb/s (twice the lanes)", 2, 12.59 / 13.60, 0.5,
            "the printed 3200 Gb/s takes less of the device than 1600"),
        Row("80 transceivers of 32.75 Gb/s, Tb/s (text: 2.6)", 2.6, 80 * 32.75 / 1e3, 0.01),
        Row("100 transceivers, Tb/s (text: 4 and more)", 4, 100 * 32.75 / 1e3, 0.01,
            "4 Tb/s need 122"),
        Row("HBM2 behind a double buffer, GB/s (text: half of 460)", 230, 460 / 2, 0),
    ]  # fmt: skip
    lanes = engine_files.load("nic").tables["6"]["rows"]
    rows += [
        Row(f"{rate} Gb/s: Gb/s of rtl/nic's lanes to one wire of 100 Gb/s, simulated", rate, ours,
            0.1, "a lane takes more than 100 Gb/s")
        for rate, ours, *_ in lanes
    ]  # fmt: skip
    rows.append(
        Row("% of LUTs that 6400 Gb/s take more than 400: lanes of rtl/nic, synthesised",
            table["rows"][-1][1] - table["rows"][0][1],
            100 * (lanes[-1][2] - lanes[0][2]) / engine.capacity["luts"], 0.1,
            "ours store packets and rewrite headers, 64 times")
    )  # fmt: skip
    return Result(rows)


def _draw_3(figure: Any, result: Result) -> None:
    axes = figure.subplots()
    labels = {
        "baseline": "no compression",
        "approach1_on_gpu": "approach 1 on the GPU",
        "approach1": "approach 1, SqueezeNIC",
        "approach2_on_gpu": "approach 2 on the GPU",
        "approach2": "approach 2, SqueezeNIC",
    }
    colours = ("0.7", "#9ecae1", "#2171b5", "#fdae6b", "#d94801")
    for i, (way, points) in enumerate(result.curves.items()):
        at = [x + 0.16 * (i - 2) for x in range(len(points))]
        axes.bar(at, [y for _, y in points], 0.15, color=colours[i], label=labels[way])
    axes.set_xticks(range(len(NODES)), [str(n) for n in NODES])
    axes.set_xlabel("nodes of 8 GPUs")
    axes.set_ylabel("iteration, by that without compression")
    axes.margins(y=0.3)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)


EXPERIMENTS = [
    Experiment("table-2", "Table 2", "seconds to compress gradients", "R3", _table_2),
    Experiment("table-4", "Table 4", "iterations with compression on the GPU", "R3", _table_4),
    Experiment("table-5", "Table 5", "throughput by packet size", "R3", _table_5),
    Experiment("table-6", "Table 6, section 2.1", "area by host rate", "R2", _table_6),
    Experiment("fig-3", "Figure 3, eqs (1) to (3)", "gain by nodes", "R2", _fig_3, _draw_3),
]
