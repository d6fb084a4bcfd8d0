# SPDX-License-Identifier: Apache-2.0
"""FPGA-MPI: lossless codecs in the path of MPI messages, replayed traces of an LSTM's training."""

from __future__ import annotations

from typing import Any

from wirepress.sim import calls, engine_files, models, simulate
from wirepress.sim.papers import Data, Experiment, Paper, Result, Row

PAPER = Paper(
    "fpga-mpi",
    "Reducing MPI Communication Latency with FPGA-Based Hardware Compression. Master's thesis, "
    "Chalmers University of Technology, 2025",
)

NAMES = {"lz4": "LZ4", "snappy": "Snappy", "zstd": "Zstd"}
COMPUTE = 5068.29  # s, section 5.2
PLAIN = 13399.01  # s of communication, figure 5.3
COMMUNICATION = {"lz4": 8757.52, "snappy": 8873.52, "zstd": 7282.07}
SPEED_UP = {"lz4": 1.34, "snappy": 1.32, "zstd": 1.50}
REDUCTION = {"lz4": 34.6, "snappy": 33.8, "zstd": 45.7}  # % of communication
AGGREGATE = {"lz4": 6.36, "snappy": 6.68, "zstd": 4.45}  # GB/s, figure 5.2
ITERATIONS, RANKS, GBPS = 337, 4, 25
PARAMETERS = 98_811_898

# What its public repository shows: a smaller model's gradients in two buckets, every Allreduce
# logged twice (as sent and as received).
BUCKETS = (51_665_224, 27_313_152)
STEPS = 85
FLAT_RATE = 1e6  # bytes/s: size / 13399.01 s


def stage(name: str) -> models.Stage:
    codec = engine_files.load("fpga").codec(name)
    c, d = codec.compress.total, codec.decompress.total
    assert codec.ratio and c and d
    return models.Stage(codec.ratio, c, d)


def replayed_bytes() -> int:
    """Of all log records that the printed baseline is made of."""
    return 2 * STEPS * sum(BUCKETS) - BUCKETS[1]


def step_gain(name: str, link: float, limited: bool = True) -> float:
    """Speed-up of a step with compute : exchange as printed at the link of the paper, by the model
    of section 4.6.7. At other links only the exchange changes."""
    s = stage(name) if limited else models.Stage(stage(name).ratio)
    exchange = PLAIN * (GBPS * 1e9 / 8) / link
    return (COMPUTE + exchange) / (COMPUTE + exchange / models.gain(s, link))


def _table_4_1(_: Data) -> Result:
    def lstm(inputs: int, hidden: int) -> int:
        return 4 * hidden * (inputs + hidden + 1)  # four gates; one bias vector

    words, width, out = 50_258, 830, 650
    layers = {
        "Embedding, parameters": (41_714_140, words * width),
        "LSTM1, parameters": (9_112_600, lstm(width, 1150)),
        "LSTM2, parameters": (10_584_600, lstm(1150, 1150)),
        "LSTM3, parameters": (4_682_600, lstm(1150, out)),
        "Output, parameters": (32_717_958, (out + 1) * words),
    }
    rows = [Row(what, paper, ours, 0) for what, (paper, ours) in layers.items()]
    rows.append(Row("Total, parameters", PARAMETERS, sum(ours for _, ours in layers.values()), 0))
    flops = {"LSTM1": (18.2, 9_112_600), "LSTM2": (21.2, 10_584_600), "LSTM3": (9.36, 4_682_600),
             "Output": (65.3, 650 * words)}  # fmt: skip
    rows += [Row(f"{k}, MFLOP a step", p, 2 * n / 1e6, 0.003) for k, (p, n) in flops.items()]
    note = "Vocabulary 50,258, widths 830, 1150, 1150, 650 are what the counts have in common."
    return Result(rows, [note])


def _fig_5_1(_: Data) -> Result:
    cpu = engine_files.load("cpu")
    ours = {"lz4": "lz4", "snappy": "snappy", "zstd": "zstd:1"}
    reason = (
        "gradients of an LSTM of the same sizes trained on other text (bench/results/codecs.json); "
        "the ratio comes from the zero rows of the embedding's gradient, of which other texts and "
        "batches leave others"
    )
    fpga = engine_files.load("fpga")
    rows = [
        Row(f"{NAMES[k]}, ratio", fpga.codec(k).ratio, cpu.codec(r).ratio, 0.05, reason)
        for k, r in ours.items()
    ]
    return Result(rows)


def _fig_5_2(_: Data) -> Result:
    rows = []
    for key, paper in AGGREGATE.items():
        codec = engine_files.load("fpga").codec(key)
        assert codec.rate
        rows.append(Row(f"{NAMES[key]}, GB/s through both sides", paper, codec.rate / 1e9, 0.002))
    lz4 = engine_files.load("fpga").codec("lz4")
    assert lz4.rate and lz4.compress.rate
    rows += [
        Row("LZ4, GB/s as the text has it", 1.59, lz4.rate / 1e9, 0.002,
            '"matching the aggregate throughput to approximately 1.59 GB/s" is one expander; '
            "the next sentence has 6.36"),
        Row("LZ4, MB/s of one compressor", 222, 150_167e3 / 67.5947e-3 / 1e6, 0.01,
            "its repository's emulation log: 150,167 KB in 67.5947 ms, ten times table 5.1; "
            "eight engines in a unit would be 278 MB/s each"),
        Row("LZ4, ratio of that log", 1.53, 150_167 / 98_196.062, 0.002),
    ]  # fmt: skip
    return Result(rows, curves={"fpga": AGGREGATE})


def _fig_5_3(_: Data) -> Result:
    rows = [
        Row("plain, s of communication", PLAIN, replayed_bytes() / FLAT_RATE, 1e-6),
        Row("communication : computing", 2.64, PLAIN / COMPUTE, 0.002),
    ]
    for key, paper in COMMUNICATION.items():
        rows.append(Row(f"{NAMES[key]}, s of communication", paper, PLAIN / stage(key).ratio, 1e-5))
    for key, paper in COMMUNICATION.items():
        limited = PLAIN / models.gain(stage(key), GBPS * 1e9 / 8)
        rows.append(
            Row(f"{NAMES[key]}, s with its engines' rates at {GBPS} Gb/s", paper, limited, 1e-3,
                "" if key != "zstd" else "its engines expand 4.45 GB/s; a ratio of 1.84 at 25 Gb/s "
                "needs 5.75")
        )  # fmt: skip
    ring = models.ring_allreduce(RANKS, 4 * PARAMETERS, models.Network(GBPS * 1e9 / 8))
    rows.append(
        Row("plain, s: 337 Allreduces of 98.8 million float32 in a ring of 4 at 25 Gb/s", PLAIN,
            ITERATIONS * ring, 0.01, "the printed time is not that of the printed job: 0.12 Gb/s "
            "of link would give it")
    )  # fmt: skip
    return Result(
        rows,
        [
            f"The printed baseline is {replayed_bytes():,} bytes at {FLAT_RATE / 1e6:g} MB/s, to "
            "every digit: 2 x 85 x (51,665,224 + 27,313,152) - 27,313,152, that is 85 steps of the "
            "19.7 million parameter model of its repository, each Allreduce logged as sent and as "
            "received. The link rate and the model of the text are not in it.",
            "The times with codecs are the baseline divided by the ratio; no engine's rate is in "
            "them.",
        ],
        curves={"printed": COMMUNICATION},
    )


def _fig_5_8(_: Data) -> Result:
    rows = []
    total = COMPUTE + PLAIN
    for key, paper in SPEED_UP.items():
        ours = total / (COMPUTE + COMMUNICATION[key])
        rows.append(Row(f"{NAMES[key]}, speed-up of the training", paper, ours, 0.005))
    for key, paper in REDUCTION.items():
        ours = 100 * (1 - COMMUNICATION[key] / PLAIN)
        rows.append(Row(f"{NAMES[key]}, % less communication", paper, ours, 0.002))
    for key, paper in SPEED_UP.items():
        why = "codec-bound: Zstd falls behind LZ4 and Snappy" if key == "zstd" else ""
        rows.append(
            Row(f"{NAMES[key]}, speed-up with its engines' rates at 25 Gb/s", paper,
                step_gain(key, 25e9 / 8), 0.005, why)
        )  # fmt: skip
    return Result(rows)


LINKS = (10, 25, 40, 50, 100, 200)


def _links(_: Data) -> Result:
    rows, curves = [], {}
    for key, name in NAMES.items():
        s = stage(key)
        curves[name] = [(g, step_gain(key, g * 1e9 / 8)) for g in range(5, 201)]
        rows.append(
            Row(f"{name}, Gb/s up to which its ratio counts whole", None,
                8 * models.full_ratio_until(s) / 1e9)
        )  # fmt: skip
        rows.append(Row(f"{name}, Gb/s of break-even", None, 8 * models.break_even(s) / 1e9))
        rows += [
            Row(f"{name}, speed-up at {g} Gb/s", None, step_gain(key, g * 1e9 / 8)) for g in LINKS
        ]
    for g in (100, 200):
        best = max(step_gain(key, g * 1e9 / 8) for key in NAMES)
        rows.append(
            Row(f"best speed-up at {g} Gb/s (text: the trend holds, so above 1)", 1.0, best, 0,
                "every codec is slower than the link: sending raw is faster")
        )  # fmt: skip
    return Result(
        rows,
        [
            'The text says "trends are confirmed" up to 200 Gb/s and prints no number. A codec '
            "must be faster than the link times its ratio, not than the link."
        ],
        curves,
    )


def replayed(names: tuple[str, ...] = ("lz4", "snappy", "zstd")) -> list[simulate.Job]:
    """The log records behind the printed times, in a ring of 4: raw, then with `names`' ratios
    and engines without limits. 1 MB/s for the whole vector is a ring over links of 1.5 MB/s."""
    records = [sum(BUCKETS)] * 2 + list(BUCKETS) * (2 * (STEPS - 1))
    records.pop()  # the printed sum lacks the last one
    pause = COMPUTE / len(records)
    program = [
        call
        for size in records
        for call in (calls.Call("compute", seconds=pause), calls.Call("allreduce", size=size))
    ]
    job = calls.Workload("fpga-mpi", RANKS, [program])
    network = simulate.Network(FLAT_RATE * 2 * (RANKS - 1) / RANKS, 0.0)
    codecs = [None, *(models.Stage(stage(name).ratio) for name in names)]
    return [simulate.Job(job, network, codec, bypass=False) for codec in codecs]


def described(link: float, intervals: bool = False) -> list[simulate.Job]:
    """The job of the text: 98.8 million float32 in buckets of 25 MiB, 4 ranks in a ring, computing
    such that it is 1 : 2.64 at 25 Gb/s; raw, then its engines with their rates."""
    size = 4.0 * PARAMETERS
    ring = models.ring_allreduce(RANKS, size, models.Network(GBPS * 1e9 / 8))
    compute = ring * COMPUTE / PLAIN
    job = calls.training(RANKS, size, compute, 25 * 2**20, False, 3)
    codecs = [None, *(stage(name) for name in NAMES)]
    network = simulate.Network(link, 0.0)
    return [simulate.Job(job, network, c, bypass=False, intervals=intervals) for c in codecs]


def _replay(data: Data) -> Result:
    try:
        outcomes = list(simulate.run(replayed())) if data.simulate else []
        real = list(simulate.run(described(GBPS * 1e9 / 8, True))) if data.simulate else []
    except simulate.SimulationError:
        outcomes, real = [], []
    need = "needs SimGrid: apt-get install python3-simgrid"
    rows = []
    times = {"plain": PLAIN} | {NAMES[k]: v for k, v in COMMUNICATION.items()}
    for i, (name, paper) in enumerate(times.items()):
        ours = outcomes[i].exchange[0] if outcomes else None
        rows.append(
            Row(f"{name}, s of communication, replayed", paper, ours, 1e-5, need, needs_data=True)
        )
    for i, (key, paper) in enumerate(SPEED_UP.items(), 1):
        ours = outcomes[0].seconds / outcomes[i].seconds if outcomes else None
        rows.append(
            Row(f"{NAMES[key]}, speed-up, replayed", paper, ours, 0.005, need, needs_data=True)
        )
    why = "its engines expand 4.45 GB/s; a ratio of 1.84 at 25 Gb/s needs 5.75"
    for i, (key, paper) in enumerate(SPEED_UP.items(), 1):
        ours = real[0].seconds / real[i].seconds if real else None
        rows.append(
            Row(f"{NAMES[key]}, speed-up of the job as described, {GBPS} Gb/s", paper, ours,
                0.005, why if key == "zstd" and real else need, needs_data=True)
        )  # fmt: skip
    return Result(
        rows,
        [
            "Replayed: the 337 log records of the repository's model in a ring over links of 1.5 "
            "MB/s, with engines that have no limit: that is what is printed. Described: the model, "
            "the buckets, the link and the engines of the text."
        ],
        real,
    )


def _draw_replay(figure: Any, result: Result) -> None:
    if not result.curves:
        figure.text(0.5, 0.5, "needs SimGrid", ha="center")
        return
    outcomes = list(zip(("raw", *NAMES.values()), result.curves, strict=True))
    simulate.draw_timelines(figure, outcomes)


# ---- figures --------------------------------------------------------------------------------


def _bars(figure: Any, groups: dict[str, dict[str, float]], label: str) -> None:
    axes = figure.subplots()
    width = 0.8 / len(groups)
    names = list(next(iter(groups.values())))
    for i, (group, values) in enumerate(groups.items()):
        at = [x + width * (i - (len(groups) - 1) / 2) for x in range(len(names))]
        bars = axes.bar(at, [values[name] for name in names], width * 0.92, label=group)
        axes.bar_label(bars, fmt="%.4g", fontsize=8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(label)
    axes.margins(y=0.12)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_5_3(figure: Any, result: Result) -> None:
    names = ["plain", *NAMES.values()]
    printed = [PLAIN, *COMMUNICATION.values()]
    limited = [PLAIN] + [PLAIN / models.gain(stage(k), GBPS * 1e9 / 8) for k in NAMES]
    axes = figure.subplots()
    for shift, times, colour, label in (
        (-0.2, printed, "tab:blue", "communication, printed"),
        (0.2, limited, "tab:orange", "communication with the engines' rates at 25 Gb/s"),
    ):
        at = [x + shift for x in range(len(names))]
        computing = "computing" if shift < 0 else None
        axes.bar(at, [COMPUTE] * len(names), 0.36, color="0.8", label=computing)
        bars = axes.bar(at, times, 0.36, bottom=COMPUTE, color=colour, label=label)
        axes.bar_label(bars, [f"{t:,.0f}" for t in times], label_type="center", fontsize=8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("seconds")
    axes.margins(y=0.25)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_5_8(figure: Any, result: Result) -> None:
    ours = {NAMES[k]: step_gain(k, 25e9 / 8) for k in NAMES}
    printed = {NAMES[k]: v for k, v in SPEED_UP.items()}
    groups = {"printed": printed, "with the engines' rates at 25 Gb/s": ours}
    _bars(figure, groups, "speed-up of the training")


def _draw_links(figure: Any, result: Result) -> None:
    axes = figure.subplots()
    for name, points in result.curves.items():
        axes.plot(*zip(*points, strict=True), label=name, linewidth=1.8)
    axes.axhline(1, color="0.4", linewidth=1)
    axes.text(199, 1.02, "raw", ha="right", fontsize=9, color="0.3")
    axes.set_xscale("log")
    axes.set_xticks(LINKS, [str(g) for g in LINKS])
    axes.set_xticks([], minor=True)
    axes.set_xlim(5, 200)
    axes.set_xlabel("link, Gb/s")
    axes.set_ylabel("speed-up of the training")
    axes.grid(color="0.92")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


EXPERIMENTS = [
    Experiment("table-4.1", "Table 4.1", "the LSTM language model", "R1", _table_4_1),
    Experiment("fig-5.1", "Figure 5.1", "ratios on gradients", "R1", _fig_5_1),
    Experiment("fig-5.2", "Figure 5.2, tables 5.1 and 5.2", "engines together", "R2", _fig_5_2),
    Experiment("fig-5.3", "Figure 5.3", "computing and communication", "R1", _fig_5_3, _draw_5_3),
    Experiment("fig-5.8", "Figure 5.8", "speed-up of the training", "R1", _fig_5_8, _draw_5_8),
    Experiment("replay", "Figures 5.3 to 5.8", "the traces, replayed", "R2", _replay, _draw_replay),
    Experiment("links", "Section 5.2", "other link rates", "R2", _links, _draw_links),
]
