# SPDX-License-Identifier: Apache-2.0
"""FRE: compressed frames between a reverse time migration and its disk."""

from __future__ import annotations

from typing import Any

import wirepress
from wirepress.sim import engine_files, models
from wirepress.sim.papers import Data, Experiment, Paper, Result, Row

PAPER = Paper(
    "fre",
    "AlSaleh et al.: Accelerating memory and I/O intensive HPC applications using hardware "
    "compression. Journal of Parallel and Distributed Computing, 2024",
)

FRAMES = 176
EDGES = {"Regular": 530, "Large1": 584, "Large2": 700, "Large3": 1000}
SNAPSHOTS = {"Regular": 97.6, "Large1": 130.6, "Large2": 224.9, "Large3": 655.6}  # GiB
IMAGES = {"Regular": 567.9, "Large1": 759.8, "Large2": 1.3 * 1024, "Large3": 3.7 * 1024}  # MiB
BACKWARD = 733e6  # B/s of the backward kernel at 23 threads (section 6.3)
EXPAND = 458.58e6  # B/s of the FPGA's expander there
ISABEL = ("CLOUDf48", "PRECIPf48", "QCLOUDf48", "QGRAUPf48", "QICEf48", "QRAINf48", "QSNOWf48",
          "QVAPORf48", "Pf48", "TCf48", "Uf48", "Vf48", "Wf48")  # fmt: skip


def _table_1(_: Data) -> Result:
    prefix, sign, mantissa, exponent, whole = 1, 1, 6, 8, 23
    delta = {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 8, 9: 8}  # bits of the difference's code
    widths = {
        "denormal": (27, 3 + sign + whole),
        "equal": (2, 2),
        "exponents differ by 0": (9, prefix + sign + mantissa + delta[0]),
        "exponents differ by 9": (17, prefix + sign + mantissa + delta[9] + sign),
        "exponents differ by more": (18, 3 + sign + exponent + mantissa),
    }
    rows = [Row(f"{what}, bits", paper, ours, 0) for what, (paper, ours) in widths.items()]
    lengths = [delta[min(i, 6)] for i in range(10)]
    kraft = sum(2.0**-n for n in lengths)
    rows += [
        Row("code of differences: sum of 2^-bits (1: prefix-free, nothing unused)", None, kraft),
        Row("ratio at most (all equal)", None, 32 / 2),
        Row("ratio at least (all denormal)", None, 32 / 27),
    ]
    return Result(
        rows,
        [
            "Zero has exponent 0: by the order of the table it is a denormal of 27 bits each, and "
            "frames that are mostly zero would grow. Only with the test for equal values first can "
            "the printed ratios come out."
        ],
    )


def _table_2(_: Data) -> Result:
    rows = []
    for name, edge in EDGES.items():
        total = FRAMES * 4 * edge**3 / 2**30
        rows.append(Row(f"{name}, {edge}^3: GB of snapshots", SNAPSHOTS[name], total, 0.002))
        image = 4 * edge**3 / 2**20
        rows.append(Row(f"{name}: MB of the image", IMAGES[name], image, 0.02))
    return Result(rows, ["Cubes of float32 in 176 frames, MB and GB as powers of 1024."])


def _table_5(_: Data) -> Result:
    table = engine_files.load("arria10").tables["5"]
    rows = []
    for name, _ratio, compress, expand, watts in table["rows"]:
        joules = watts * (1 / compress + 1 / expand)
        rows.append(Row(f"{name}: J per GB compressed and expanded", None, joules))
    by_name = {row[0]: row for row in table["rows"]}
    fre = by_name["FPGA-FRE"]
    rows += [
        Row("expanding : compressing of FPGA-FRE (section 4: half)", 0.5, fre[3] / fre[2], 0.02,
            "table 5 has a fifth"),
        Row("power of cuSZ : FPGA-FRE (text: about four times)", 4, by_name["cuSZ"][4] / fre[4],
            0.1),
        Row("rate 6 of 32 bits, ratio", 5.33, 32 / 6, 0.002),
    ]  # fmt: skip
    note = "Energy is the printed power for the printed time, busy with nothing else."
    return Result(rows, [note])


def _table_6(data: Data) -> Result:
    ratios, counted = [], []
    for name in ISABEL:
        content = data.find(f"{name}.bin.f32") or data.find(f"{name}.bin")
        if content:
            frame = wirepress.compress(content, "fre:m=6,round=truncate", dtype="float32")
            ratios.append(len(content) / len(frame))
            counted.append(name)
    ours = sum(ratios) / len(ratios) if ratios else None
    need = "--data FOLDER with Hurricane Isabel's 13 fields (SDRBench, NAME.bin.f32)"
    rows = [
        Row("FRE on Hurricane Isabel, mean ratio", 5.5, ours, 0.1,
            f"{len(counted)} of 13 fields" if ratios else need, needs_data=True),
        Row("SZ 1.4, 2^-6 point-wise, Isabel", 3.35, None, reason="SZ 1.4 is not here; SZ3 has no "
            "such mode"),
        Row("FPZIP, 26 bit, Isabel", 3.03, None, reason="FPZIP is a peer of the benchmarks, not a "
            "codec of wirepress"),
        Row("FRE on seismic snapshots", 4.8, None, reason="the snapshots are not public"),
    ]  # fmt: skip
    cpu = engine_files.load("cpu")
    fre = cpu.codec("fre:m=6,round=truncate")
    assert fre.compress.rate and fre.decompress.rate
    rows += [
        Row("FRE on one core of a CPU, compress, GB/s", None, fre.compress.rate / 1e9),
        Row("FRE on one core of a CPU, expand, GB/s", None, fre.decompress.rate / 1e9),
    ]
    return Result(rows)


def _store(_: Data) -> Result:
    frame = 4 * EDGES["Regular"] ** 3
    # both kernels are the same stencil (section 6.1); no disk is printed: it never limits here
    kernels = models.FrameStore(FRAMES, frame, frame / BACKWARD, frame / BACKWARD, 1e12, 1e12)
    codec = models.Stage(4.67, 2.40e9, EXPAND)
    total = kernels.compressed(codec)
    wait = kernels.compressed_wait(codec)
    rows = [
        Row("% of the time for reading, machine 2, 23 threads", 23, 100 * wait / total, 0.03),
        Row("the same with a second expander", None,
            100 * kernels.compressed_wait(codec, engines=2) / total),
        Row("MB/s of raw frames that the expander lacks", None, (BACKWARD - EXPAND) / 1e6),
    ]  # fmt: skip
    why = "the disks' rates are not printed, and the system's buffers hide part of them"
    rows += [
        Row("total below Disk, machine 2, regular model, %", 14, None, reason=why),
        Row("total below Disk, Large3, %", 50, None, reason=why),
        Row("writing faster than Disk, at least", 22.5, None, reason=why),
    ]
    curves = []
    for rate in [50e6 * 1.15**i for i in range(32)]:
        disk = models.FrameStore(FRAMES, frame, frame / BACKWARD, frame / BACKWARD, rate, rate)
        curves.append((rate, disk.on_disk(), disk.compressed(codec), disk.compressed(codec, 2)))
    even = next((r for r, raw, coded, _ in curves if raw <= coded), None)
    if even:
        rows.append(
            Row("MB/s of disk from which raw frames are faster (regular model)", None, even / 1e6)
        )
    return Result(
        rows,
        [
            "A codec hides behind computing while it is as fast: the backward kernel takes 733 "
            "MB/s, the expander gives 458.58. The forward kernel is taken to be as fast."
        ],
        curves,
    )


def _draw_store(figure: Any, result: Result) -> None:
    axes = figure.subplots()
    rates, raw, one, two = zip(*result.curves, strict=True)
    x = [rate / 1e6 for rate in rates]
    axes.plot(x, raw, label="raw frames", color="0.4")
    axes.plot(x, one, label="FPGA-FRE", color="tab:blue")
    axes.plot(x, two, "--", label="FPGA-FRE, two expanders", color="tab:blue")
    axes.set_xscale("log")
    axes.set_xlabel("disk, MB/s each way")
    axes.set_ylabel("seconds, 176 frames of 530$^3$ there and back")
    axes.set_ylim(0, min(max(raw), 6 * max(one)))
    axes.grid(color="0.92")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


EXPERIMENTS = [
    Experiment("table-1", "Table 1", "the code", "R1", _table_1),
    Experiment("table-2", "Table 2", "sizes of the models", "R1", _table_2),
    Experiment("table-5", "Table 5", "engines in the migration", "R3", _table_5),
    Experiment("table-6", "Table 6", "software rows", "R1", _table_6),
    Experiment(
        "store", "Section 6.3, figures 13 to 18", "the frame store", "R2", _store, _draw_store
    ),
]
