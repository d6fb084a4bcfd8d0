# SPDX-License-Identifier: Apache-2.0
"""gCOW: ZFP on an FPGA SmartNIC for the gradients of distributed training."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

from wirepress.sim import engine_files, models
from wirepress.sim.papers import Data, Experiment, Paper, Result, Row

PAPER = Paper(
    "gcow",
    "Hongyu He: FPGA-based SmartNIC for Distributed Machine Learning. Master's thesis, ETH Zurich, "
    "2024",
)

WORKERS = [2**i for i in range(1, 11)]  # "from 2 to 1024"
LINK = 100e9 / 8  # not printed for figure 4.4; the SmartNIC's
CODEC = models.Stage(50.0, 10 * 2**30, 10 * 2**30)  # table 4.2


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    size: float  # bytes of gradients
    compute: float  # seconds
    n_buckets: int


RESNET = Model("ResNet50", 97.5 * 2**20, 0.300, 4)  # table 4.2; size: section 1.1
VIT = Model("ViT H/14", 2.5e9, 0.800, 11)
SCHEMES = {
    "PS": models.parameter_server,
    "CA": models.concurrent_allreduce,
    "RA": models.ring_allreduce,
}
PRINTED = {"PS": (7.5, 14.8), "CA": (18.0, 22.0), "RA": (1.0, 1.2)}  # section 4.4
OVERLAP = (1.3, 1.6)


def seconds(
    model: Model, scheme: str, n: int, compressed: bool, overlap: bool, in_path: bool = False
) -> float:
    """Of an iteration, in the reading of figure 4.4 that needs no guess but the link's rate: what
    is sent shrinks by the ratio; every worker's engine codes the gradients and expands them once,
    one after the other, at 10 GiB/s. With `in_path` the engines stand in the path of every message,
    shared by all that pass a node."""
    bucket = model.size / model.n_buckets
    if in_path and compressed:
        exchange = SCHEMES[scheme](n, bucket, models.Network(LINK, 0.0, CODEC))
    else:
        ratio = CODEC.ratio if compressed else 1.0
        exchange = SCHEMES[scheme](n, bucket / ratio, models.Network(LINK))
        if compressed:
            exchange += bucket / CODEC.compress + bucket / CODEC.decompress
    return models.step(model.compute, exchange, exchange, model.n_buckets, overlap=overlap)


def speed_up(model: Model, scheme: str, in_path: bool = False) -> float:
    """Arithmetic mean over the numbers of workers, no overlap."""
    gains = [
        seconds(model, scheme, n, False, False) / seconds(model, scheme, n, True, False, in_path)
        for n in WORKERS
    ]
    return sum(gains) / len(gains)


def overlap_gain(model: Model) -> float:
    """With gCOW: without by with overlap, mean over schemes and numbers of workers."""
    gains = [
        seconds(model, s, n, True, False) / seconds(model, s, n, True, True)
        for s in SCHEMES
        for n in WORKERS
    ]
    return sum(gains) / len(gains)


def _fig_1_1(_: Data) -> Result:
    def ratio(model: Model, scheme: str, n: int, gbps: float) -> float:
        exchange = SCHEMES[scheme](n, model.size, models.Network(gbps * 1e9 / 8))
        return models.compute_to_communication(model.compute, exchange)

    curves = {
        (model.name, scheme, gbps): [(n, ratio(model, scheme, n, gbps)) for n in WORKERS]
        for model in (RESNET, VIT)
        for scheme in ("PS", "RA")
        for gbps in (100, 10)
    }
    needed = models.SENT["ps"](128) * RESNET.size * 2 / 2**30
    rows = [
        Row("PS, 128 nodes, ResNet50 twice a second, GB/s", 24.38, needed, 0.001),
        Row("training efficiency, ResNet50 : ViT H/14 (text: more than 10)", 10,
            ratio(RESNET, "PS", 128, 100) / ratio(VIT, "PS", 128, 100), 0.05,
            "with the times of table 4.2; those of the figure are not printed"),
        Row("link of ConnectX-5, GB/s", 12.5, LINK / 1e9, 0),
    ]  # fmt: skip
    return Result(
        rows,
        [
            "The curves are drawn from table 4.2's computing times: those behind the figure, and "
            "on which GPU (the caption has the RTX 3090, the text the A100), are not printed. "
            "24.38 GB/s needs MB and GB as powers of 1024."
        ],
        curves,
    )


def _table_2_1(_: Data) -> Result:
    def exponent(f: Any) -> float:
        return math.log2(f(1024) / f(512))

    net = models.Network(1.0)
    rows = []
    for name, key, peak in (
        ("Parameter Server", "ps", 1),
        ("Concurrent Allreduce", "concurrent", 2),
        ("Ring Allreduce", "ring", 0),
        ("Sequential Allreduce", "sequential", 1),
    ):
        # 0 cannot be compared relatively: exponents are shown plus one
        ours = exponent(models.PEAK_BANDWIDTH[key])
        rows.append(Row(f"{name}: peak bandwidth, exponent of N, plus 1", peak + 1, ours + 1, 0.01))
    steps = {
        "Parameter Server": (0, lambda n: 2.0),
        "Concurrent Allreduce": (0, lambda n: 1.0),
        "Ring Allreduce": (1, lambda n: 2.0 * (n - 1)),
        "Sequential Allreduce": (1, lambda n: float(n)),
    }
    for name, (paper, rounds) in steps.items():
        rows.append(
            Row(f"{name}: rounds one after the other, exponent of N, plus 1", paper + 1,
                exponent(rounds) + 1, 0.01)
        )  # fmt: skip
    times = ", ".join(
        f"{key} {exponent(lambda n, k=key: models.SCHEMES[k](n, 1.0, net)):.0f}"
        for key in ("ps", "concurrent", "ring", "sequential")
    )
    note = (
        f'"Compute time" is the number of rounds. Time at a fixed link rate grows as N to: {times}.'
    )
    return Result(rows, [note])


def _stages(_: Data) -> Result:
    elements = {"Emax": 32, "Cast": 8, "Decorrelate": 8, "Reorder": 2, "Bitplane": 128}
    rows = [
        Row(f"{stage}: GB/s of one of its {k} elements for 100 Gb/s", None, LINK / k / 1e9)
        for stage, k in elements.items()
    ]
    names = list(elements)
    for a, b in itertools.pairwise(names):
        depth = models.fifo_depth(elements[a], elements[b])
        rows.append(Row(f"{a} to {b}: blocks that the queue must hold", None, depth))
    rows += [
        Row("throughput against 100 Gb/s (abstract: saturates)", 1.0, 7 * 2**30 / LINK, 0.05,
            "7 GiB/s on average are 60 Gb/s of raw data; compressed 50 times they fill 1.2 Gb/s"),
        Row("a 512-bit word each clock at 250 MHz, GiB/s", 15, 64 * 250e6 / 2**30, 0.01),
        Row("Bitplane with 128 elements, Gb/s (figure 4.2: just under 100)", 100, None,
            reason="the rates of single elements are drawn, not printed"),
    ]  # fmt: skip
    return Result(rows, ["The numbers of elements are those of the public source."])


def _table_4_1(_: Data) -> Result:
    engine = engine_files.load("gcow")
    area = engine.codec("zfp").compress.area
    reason = {
        "luts": "380,591 are 19.6 % of 1.94 million; the device has 1,728,000 (data sheet DS962)"
    }
    rows = [
        Row(f"{key.upper()}, % of the U250", percent, 100 * area[key] / engine.capacity[key], 0.015,
            reason.get(key, ""))
        for key, percent in (("luts", 19.6), ("ffs", 10.4), ("brams", 8.5), ("dsps", 3.6))
    ]  # fmt: skip
    watts = engine.codec("zfp").power
    assert watts
    for name, rate in (("10 GiB/s of table 4.2", 10), ("7 GiB/s as measured", 7)):
        rows.append(Row(f"J per GB compressed, at {name}", None, watts / (rate * 2**30) * 1e9))
    return Result(rows)


def _fig_4_4(_: Data) -> Result:
    rows = []
    known = (
        "link rate, latency and averaged numbers of workers are not printed; here 100 Gb/s, none, "
    )
    known += "powers of two"
    for scheme, printed in PRINTED.items():
        for model, paper in zip((RESNET, VIT), printed, strict=True):
            rows.append(
                Row(f"{scheme}, {model.name}: speed-up by gCOW", paper, speed_up(model, scheme),
                    0.1, known)
            )  # fmt: skip
    for model, paper in zip((RESNET, VIT), OVERLAP, strict=True):
        rows.append(
            Row(
                f"{model.name}: further speed-up by overlap", paper, overlap_gain(model), 0.1, known
            )
        )
    for scheme in SCHEMES:
        for model in (RESNET, VIT):
            rows.append(
                Row(f"{scheme}, {model.name}: the same with the engine in every message's path",
                    None, speed_up(model, scheme, in_path=True))
            )  # fmt: skip
    order = [speed_up(m, s) for m in (RESNET, VIT) for s in ("CA", "PS", "RA")]
    curves = {
        (model.name, scheme, compressed, overlap): [
            (n, seconds(model, scheme, n, compressed, overlap)) for n in WORKERS
        ]
        for model in (RESNET, VIT)
        for scheme in SCHEMES
        for compressed in (False, True)
        for overlap in (False, True)
    }
    held = order[2] < min(order[:2]) and order[5] < min(order[3:5])
    return Result(
        rows,
        [
            "Schemes that are bound by bandwidth gain most, ring least: "
            + ("that holds." if held else "that does not hold.")
            + " The printed gain of CA needs N (N-1) vectors over one link: then it is "
            f"{_one_link(RESNET):.3g} and {_one_link(VIT):.3g}.",
            "The gains suppose that what is sent can be added in compressed form, or as many "
            "expanders as senders: a 10 GiB/s engine in the path of all messages of the head (PS) "
            "or of a worker (CA) is slower than the 12.5 GB/s link, and the last six rows are what "
            "is left.",
        ],
        curves,
    )


def _one_link(model: Model) -> float:
    """CA's gain where all vectors cross one link."""
    bucket, k = model.size / model.n_buckets, model.n_buckets
    gains = []
    for n in WORKERS:
        net = models.Network(LINK)
        plain = models.concurrent_allreduce_one_link(n, bucket, net)
        small = models.concurrent_allreduce_one_link(n, bucket / CODEC.ratio, net)
        small += bucket / CODEC.compress + bucket / CODEC.decompress
        gains.append((model.compute + k * plain) / (model.compute + k * small))
    return sum(gains) / len(gains)


# ---- figures --------------------------------------------------------------------------------


def _log_workers(axes: Any) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(WORKERS[1::2], [str(n) for n in WORKERS[1::2]])
    axes.set_xlabel("workers")
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_1_1(figure: Any, result: Result) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, gbps in ((left, 100), (right, 10)):
        for (model, scheme, rate), points in result.curves.items():
            if rate == gbps:
                style = "-" if scheme == "RA" else "--"
                colour = "tab:blue" if model == "ResNet50" else "tab:orange"
                label = f"{model}, {scheme}"
                axes.plot(*zip(*points, strict=True), style, color=colour, label=label)
        axes.axhline(1, color="0.6", linewidth=0.8)
        axes.set_title(f"{gbps} Gb/s", loc="left", fontsize=10)
        _log_workers(axes)
    left.set_ylabel("computing : communication")
    right.legend(frameon=False, fontsize=8)


def _draw_4_4(figure: Any, result: Result) -> None:
    panels = figure.subplots(1, 2)
    colours = {"PS": "tab:blue", "CA": "tab:green", "RA": "tab:orange"}
    for axes, model in zip(panels, (RESNET, VIT), strict=True):
        for (name, scheme, compressed, overlap), points in result.curves.items():
            if name == model.name:
                label = f"{scheme}{', gCOW' if compressed else ''}{', overlap' if overlap else ''}"
                axes.plot(
                    *zip(*points, strict=True),
                    "-" if compressed else "--",
                    color=colours[scheme],
                    alpha=0.45 if overlap else 1,
                    linewidth=1.3,
                    label=label,
                )
        axes.set_title(model.name, loc="left", fontsize=10)
        _log_workers(axes)
    panels[0].set_ylabel("seconds per iteration")
    panels[0].legend(frameon=False, fontsize=7, ncols=2)


EXPERIMENTS = [
    Experiment(
        "fig-1.1", "Figure 1.1", "computing against communication", "R2", _fig_1_1, _draw_1_1
    ),
    Experiment("table-2.1", "Table 2.1", "costs of four schemes", "R1", _table_2_1),
    Experiment("stages", "Sections 3.3, 4.2", "elements and queues of the stages", "R2", _stages),
    Experiment("table-4.1", "Table 4.1", "area and power", "R2", _table_4_1),
    Experiment("fig-4.4", "Figure 4.4, table 4.2", "2 to 1024 workers", "R2", _fig_4_4, _draw_4_4),
]
