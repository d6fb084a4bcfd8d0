# SPDX-License-Identifier: Apache-2.0
"""The page docs/results/benchmarks.md from bench/results/codecs.json: aims, tables, pictures."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import results

from wirepress.commands import bench, plot
from wirepress.commands.show import table

Row = dict[str, Any]
PAGE = results.ROOT / "docs" / "results" / "benchmarks.md"
PICTURES = results.ROOT / "docs" / "results" / "benchmarks"
MAIN = "-float32-32768k"
FRAMES = "-float32-32768k-frames"
PLAIN = "plain"
NEAR = 0.02


def pick(rows: Iterable[Row], run: str, subject: str, variant: str | None = None) -> Row | None:
    """The row of a run; without a variant the best kernel's, which stands first."""
    for row in rows:
        if row["run"] == run and row["subject"] == subject and "skipped" not in row:
            if variant is None and row["variant"] != PLAIN:
                return row
            if row["variant"] == variant:
                return row
    return None


# ---- aims -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Aim:
    """A speed of one kernel over memcpy's, or a ratio, that a codec shall reach."""

    subject: str
    data: str
    what: str  # encode, decode, encode_feedback, ratio, feedback_ratio
    least: float
    variant: str | None = None
    run: str = ""

    def value(self, rows: list[Row]) -> float | None:
        row = pick(rows, self.run or self.data + MAIN, self.subject, self.variant)
        if row is None or self.what not in row:
            return None
        if self.what.endswith("ratio"):
            return row[self.what]
        return row[self.what] / row["memcpy"]


@dataclasses.dataclass(frozen=True)
class FrameAim(Aim):
    """A ratio over the 19 frames of one wave together."""

    def value(self, rows: list[Row]) -> float | None:
        found = [r for r in rows if r["run"].endswith(FRAMES) and r["subject"] == self.subject]
        if not found or any("skipped" in row for row in found):
            return None
        return sum(r["raw_size"] for r in found) / sum(r["code_size"] for r in found)


@dataclasses.dataclass(frozen=True)
class PeerAim(Aim):
    """A speed over that of fpzip at the same bound on each value's relative error."""

    def value(self, rows: list[Row]) -> float | None:
        run = self.data + MAIN
        own = pick(rows, run, self.subject, self.variant)
        peer = pick(rows, run, "fpzip 2^-6", PLAIN)
        return own[self.what] / peer[self.what] if own and peer else None


# subject, then for AVX-512 and AVX2: compression and expansion over memcpy's speed
_BOTH = (
    ("bx:m=5", (0.50, 0.60), (0.25, 0.38)),
    ("bx:m=23", (0.40, 0.50), ()),
    ("fre:m=5", (0.40, 0.08), ()),
    ("fre:m=5,ways=4", (0.30, 0.15), ()),
    ("planes", (0.40, 0.60), (0.15, 0.35)),
)
_FEEDBACK = (("onebit", 0.65), ("tbq", 0.75), ("topk:1e-3", 0.65))
_GRADIENT = (("terngrad", 0.45), ("qsgd:4", 0.40))
_CASTS = (("bf16", 1.2, 0.8), ("fp16", 1.2, 0.8), ("fp8", 0.85, None), ("int8", 0.6, 0.3))
_RATIOS = (
    ("bx:m=5", "lstm_out", 3.2, "ratio"),
    ("bx:m=23", "lstm_out", 1.13, "ratio"),
    ("planes", "lstm_out", 1.17, "ratio"),
    ("onebit", "lstm_out", 31, "feedback_ratio"),
    ("topk:1e-3", "lstm_out", 400, "feedback_ratio"),
    ("terngrad", "lstm_out", 15.9, "ratio"),
    ("qsgd:4", "lstm_out", 7.9, "ratio"),
    ("bf16", "lstm_out", 2, "ratio"),
    ("fp16", "lstm_out", 2, "ratio"),
    ("fp8", "lstm_out", 3.99, "ratio"),
    ("int8", "lstm_out", 3.9, "ratio"),
)


def aims() -> Iterator[Aim]:
    for subject, avx512, avx2 in _BOTH:
        for data in ("wave_t800", "lstm_out"):
            for variant, least in (("avx512", avx512), ("avx2", avx2)):
                for what, value in zip(("encode", "decode"), least, strict=False):
                    yield Aim(subject, data, what, value, variant)
    for what, subjects in (("encode_feedback", _FEEDBACK), ("encode", _GRADIENT)):
        for subject, least in subjects:
            yield Aim(subject, "lstm_out", what, least, "avx512")
            yield Aim(subject, "lstm_out", what, 0.25, "avx2")
    for subject, wide, narrow in _CASTS:
        yield Aim(subject, "lstm_out", "encode", wide, "avx512")
        if narrow:
            yield Aim(subject, "lstm_out", "encode", narrow, "avx2")
    yield FrameAim("bx:m=5", "19 frames", "ratio", 4.6)
    yield FrameAim("fre:m=5", "19 frames", "ratio", 4.6)
    yield FrameAim("fre:m=6,round=truncate", "19 frames", "ratio", 4.2)
    for subject, data, least, what in _RATIOS:
        yield Aim(subject, data, what, least)
    for subject, least in (("bx:m=23", 1.95), ("planes", 2.0)):
        yield Aim(subject, "lstm_all", "ratio", least, run="lstm_all-float32-whole")
    for subject in ("bx:m=5", "fre:m=5"):
        for data in ("wave_t800", "lstm_out"):
            yield PeerAim(subject, data, "encode", 40)
            yield PeerAim(subject, data, "decode", 30)


_SAID = {
    "encode": "compression",
    "decode": "expansion",
    "encode_feedback": "compression with error feedback",
    "ratio": "ratio",
    "feedback_ratio": "ratio with error feedback",
}
_AIM_HEAD = ("codec", "kernel", "data", "what", "aim", "measured", "")


def aim_cells(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    for aim in aims():
        value = aim.value(rows)
        unit = "" if aim.what.endswith("ratio") else " mc"
        if isinstance(aim, PeerAim):
            unit = "x fpzip"
        verdict = "not measured" if value is None else "met" if value >= aim.least else "short"
        yield (
            aim.subject,
            aim.variant or "best",
            aim.data,
            _SAID[aim.what],
            f"{aim.least:g}{unit}",
            "-" if value is None else f"{value:.3g}",
            verdict,
        )


def aims_text(rows: list[Row]) -> str:
    cells = list(aim_cells(rows))
    met = sum(cell[-1] == "met" for cell in cells)
    short = sum(cell[-1] == "short" for cell in cells)
    text = table(cells, _AIM_HEAD, right=("aim", "measured"))
    missing = len(cells) - met - short
    return f"{text}\naims: {met} met, {short} fall short, {missing} not measured"


def skipped(rows: list[Row]) -> list[str]:
    said = {f"skipped {row['subject']}: {row['skipped']}" for row in rows if "skipped" in row}
    return sorted(said)


# ---- tables ---------------------------------------------------------------------------------


def markdown(head: tuple[str, ...], cells: Iterable[tuple[str, ...]], words: int) -> str:
    """A table whose columns are numbers but for the first `words`."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    lines = ["| " + " | ".join(line) + " |" for line in (head, *cells)]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]])


def number(value: float | None, digits: int = 3) -> str:
    """So many digits, without an exponent where that is short."""
    if value is None:
        return ""
    if value >= 1000 or 0 < value < 1e-3:
        return f"{value:.1e}"
    return f"{value:#.{digits}g}".rstrip(".")


def speed(row: Row, what: str) -> tuple[str, str]:
    if what not in row:
        return "", ""
    return number(row[what]), f"{row[what] / row['memcpy']:.3f}"


def errors(row: Row) -> tuple[str, str]:
    if "relative_error" not in row:
        return "exact", "exact"
    return number(row["relative_error"], 2), number(row["error_of_range"], 2)


def name_of(row: Row) -> str:
    return f"{PLAIN} {row['subject']}" if row["variant"] == PLAIN else f"`{row['subject']}`"


def first_kernels(rows: Iterable[Row], run: str) -> list[Row]:
    """Of each codec the best kernel's row, then the peers'."""
    seen: dict[str, Row] = {}
    for row in rows:
        if row["run"] == run and "skipped" not in row:
            seen.setdefault(name_of(row), row)
    return list(seen.values())


def main_table(rows: list[Row], run: str) -> str:
    head = ("codec", "kernel", "ratio", "max relative error", "max error / range",
            "comp GB/s", "mc", "exp GB/s", "mc")  # fmt: skip
    return markdown(
        head,
        (
            (name_of(row), row["variant"], number(row["ratio"], 4), *errors(row),
             *speed(row, "encode"), *speed(row, "decode"))
            for row in first_kernels(rows, run)
        ),
        2,
    )  # fmt: skip


def feedback_table(rows: list[Row], run: str) -> str:
    head = ("codec", "kernel", "ratio", "comp with feedback GB/s", "mc", "expand and add GB/s",
            "mc")  # fmt: skip
    return markdown(
        head,
        (
            (name_of(row), row["variant"], number(row.get("feedback_ratio"), 4),
             *speed(row, "encode_feedback"), *speed(row, "decode_add"))
            for row in rows
            if row["run"] == run and ("encode_feedback" in row or "decode_add" in row)
        ),
        2,
    )  # fmt: skip


def kernel_table(rows: list[Row], runs: list[str]) -> str:
    """Codecs that have more kernels than one: C / D over memcpy's speed."""
    cells: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["run"] in runs and "skipped" not in row and row["variant"] != PLAIN:
            cells.setdefault(row["subject"], {}).setdefault(row["variant"], row)
    order = ("avx512", "avx2", "neon", "scalar")
    used = [v for v in order if any(v in by and len(by) > 1 for by in cells.values())]

    def cell(row: Row | None) -> str:
        if row is None:
            return ""
        return f"{row['encode'] / row['memcpy']:.3f} / {row['decode'] / row['memcpy']:.3f}"

    lines = ((f"`{s}`", *(cell(by.get(v)) for v in used)) for s, by in cells.items() if len(by) > 1)
    return markdown(("codec", *used), lines, 1)


def size_table(rows: list[Row], data: str) -> str:
    """Speeds in caches and beyond them."""
    sizes = (("256 KiB", "-float32-256k"), ("4 MiB", "-float32-4096k"), ("32 MiB", MAIN))
    head = ("codec", *(f"{label}: {what}" for label, _ in sizes for what in ("comp", "exp")))
    cells = []
    for row in first_kernels(rows, data + MAIN):
        if row["variant"] == PLAIN:
            continue
        picked = [pick(rows, data + suffix, row["subject"]) for _, suffix in sizes]
        values = [number(r[w]) if r else "" for r in picked for w in ("encode", "decode")]
        cells.append((f"`{row['subject']}`", *values))
    copies = []
    for _, suffix in sizes:
        found = [r["memcpy"] for r in rows if r["run"] == data + suffix and "memcpy" in r]
        copies += [number(max(found, default=None)), ""]
    return markdown(head, [*cells, ("memcpy", *copies)], 1)


def frame_table(rows: list[Row]) -> str:
    found = [r for r in rows if r["run"].endswith(FRAMES) and "skipped" not in r]
    subjects = list(dict.fromkeys(row["subject"] for row in found))
    shown = ("40", "120", "200", "280", "360", "440", "520", "600", "680", "760")
    cells = []
    for subject in subjects:
        by = {r["data"].split("_t")[1]: r for r in found if r["subject"] == subject}
        whole = sum(r["raw_size"] for r in by.values()) / sum(r["code_size"] for r in by.values())
        cells.append((f"`{subject}`", f"{whole:.3f}",
                      *(number(by[t]["ratio"]) if t in by else "" for t in shown)))  # fmt: skip
    return markdown(("codec", "all 19", *shown), cells, 1)


# ---- pictures -------------------------------------------------------------------------------


def bound_of(row: Row) -> int:
    """0: exact, 1: each value is within NEAR of itself, 2: anything else."""
    if "relative_error" not in row:
        return 0
    return 1 if row["relative_error"] <= NEAR and row["changed_zeros"] == 0 else 2


def picture(rows: list[Row], run: str, title: str, machine: str) -> Path:
    """A row of panels for each kind of bound."""
    kinds = ("exact", f"each value within {100 * NEAR:g} %", "bounded otherwise, or not at all")
    points = [
        bench.Row(
            f"{title}, {kinds[bound_of(row)]}",
            row["subject"],
            row["variant"],
            row["raw_size"],
            row["code_size"],
            row["ratio"],
            row["encode"],
            row["decode"],
            row["turns"],
        )
        for row in sorted(first_kernels(rows, run), key=bound_of)
    ]
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": run})
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{run.removesuffix(MAIN)}.svg"
    memcpy = max(row["memcpy"] for row in rows if row["run"] == run and "memcpy" in row)
    plot.scatter(points, memcpy, str(path), machine, 1)
    return path


# ---- the page -------------------------------------------------------------------------------

INTRODUCTION = """# Benchmarks of the codecs

<!-- Written by bench/codecs.py from bench/results/codecs.json; do not edit. -->

Measured {date} on {cpu} ({cores} cores, {system}) with {compiler}; {versions}.
To repeat it: `make bench ARGS=codecs`; a machine with nothing else to do gives numbers worth
keeping. It takes some ten minutes; `bench/codecs.py --page` writes this page again from the raw
results, [bench/results/codecs.json](../../bench/results/codecs.json).

How to read it:

- One core, thread CPU time. GB/s are 10^9 *uncompressed* bytes a second. **mc** is that speed over
  `memcpy`'s of the same buffer, timed in turns with all of them: one figure for each buffer. The
  best of all turns counts, of {rounds} rounds minutes apart.
- Codecs, and libraries for bytes, run block by block (512 KiB; codecs of arrays: whole planes) as
  in a frame, without its checksum. Libraries for arrays ("plain" fpzip, zfp, SZ3) get the whole
  array at once, which favours their ratio.
- **Bounds differ, and a ratio means nothing without its bound.** "max relative error" is the
  largest error of a value over that value (over normal numbers), "max error / range" the largest
  error over the spread of all values. Both are measured. A codec that bounds the second may lose
  small values altogether: relative errors of 1 and far above.
- A ratio of gradients that is far above those of dense layers comes from exact zeros (embeddings,
  ReLU), one of wave fields from space that the wave has not reached: no mean without its data.
"""

DATA_SECTION = """## The data

`bench/wavefield` computes the wave: 200^3 points, eighth order in space, layers of 1500 to
4000 m/s with a faster body in them, denormals flushed. The ratios of early frames depend on where
the fore-runner of the wave is flushed to zero, so on the strength of the source: with one 10^6
times weaker, FRE would make the 19 frames together 5 % smaller. `bench/gradients.py` trains for a
few steps with PyTorch, on text and synthetic pictures; `bench/sample_data.py` makes the synthetic
gradient (40 % exact zeros, the rest Laplace of scale 1e-3, one in ten of 5e-3) and noise. Data of
16 bits are those in float32, rounded to nearest; a float16 gradient is not scaled first, so that
its small values become denormal or 0. The text is {text}."""
EARLIER_TEXT = (
    "the source code of Python 3.11's standard library "
    "(`bench/sample_data.py` makes another one now)"
)

PLOTTED = (
    ("wave_t800", "wave field, step 800"),
    ("wave_t200", "wave field, step 200"),
    ("lstm_out", "gradient, dense"),
    ("gradsyn", "gradient, 40 % zeros"),
)
OTHERS = (
    ("wave_t400-float32-32768k", "Wave field, step 400"),
    ("wave_t400-float64-32768k", "Wave field, step 400, float64"),
    ("wave_t800-bfloat16-32768k", "Wave field, step 800, bfloat16"),
    ("lstm_out-bfloat16-32768k", "Gradient, dense, bfloat16"),
    ("lstm_out-float16-32768k", "Gradient, dense, float16"),
    ("lstm_out-float64-32768k", "Gradient, dense, float32 kept as float64"),
    ("lstm_l2_w-bfloat16-32768k", "Weights of an LSTM's second layer, bfloat16"),
    ("lstm_l2_w-float16-32768k", "Weights of an LSTM's second layer, float16"),
    ("lstm_l2-float32-32768k", "Gradient of an LSTM's second layer, dense"),
    ("lstm_all-float32-whole", "Gradient of the whole LSTM (40 % zeros: its embedding)"),
    ("tf-float32-32768k", "Gradient of a transformer"),
    ("cnn-float32-32768k", "Gradient of a convolutional network"),
    ("mlp-float32-32768k", "Gradient of a small network with ReLU"),
    ("lstm_l2_w-float32-32768k", "Weights of an LSTM's second layer"),
    ("text-bytes-32768k", "Text"),
    ("random-float32-32768k", "Noise"),
    ("random-float64-32768k", "Noise, float64"),
    ("zeros-float32-32768k", "Zeros"),
)


def sections(rows: list[Row], machine: str, text: str) -> Iterator[str]:
    yield "## Aims\n\nWhat the codecs were built for, each against this run."
    yield markdown(_AIM_HEAD, aim_cells(rows), 4)
    for line in skipped(rows):
        yield f"- {line}"
    for data, title in PLOTTED:
        run = data + MAIN
        if not first_kernels(rows, run):
            continue
        path = picture(rows, run, title, machine)
        yield f"## {title[0].upper()}{title[1:]}, 32 MiB"
        yield f"![ratio and speed of each codec]({path.relative_to(PAGE.parent)})"
        yield main_table(rows, run)
        if any("encode_feedback" in row for row in rows if row["run"] == run):
            yield "Error feedback in one pass, and expansion that adds to what is there:"
            yield feedback_table(rows, run)
    yield "## Kernels\n\nCompression / expansion, mc; step 800 of the wave, or dense gradient."
    yield kernel_table(rows, ["wave_t800" + MAIN, "lstm_out" + MAIN])
    yield "## Nineteen frames of one wave\n\nRatios of steps 40, 80 .. 760 together, and of some."
    yield frame_table(rows)
    yield "## Sizes\n\nGB/s of the best kernel: caches help memcpy more than codecs."
    for data, title in (("wave_t800", "Wave field, step 800:"), ("lstm_out", "Dense gradient:")):
        yield title
        yield size_table(rows, data)
    for run, title in OTHERS:
        if first_kernels(rows, run):
            yield f"## {title}"
            yield main_table(rows, run)
    yield DATA_SECTION.format(text=text)


def write(measured: dict[str, Any]) -> None:
    rows = measured["rows"]
    machine = measured["machine"]
    day = datetime.datetime.fromisoformat(measured["date"].removesuffix("Z") + "+00:00")
    os.environ["SOURCE_DATE_EPOCH"] = str(int(day.timestamp()))  # the pictures' date
    versions = ", ".join(f"{name} {said}" for name, said in measured["versions"].items())
    head = INTRODUCTION.format(
        date=measured["date"][:10],
        cpu=machine["cpu"],
        cores=machine["cores"],
        system=machine["system"],
        compiler=measured["compiler"],
        versions=versions,
        rounds=measured["rounds"],
    )
    if again := measured.get("again"):
        names = ", ".join(
            name if name.startswith("all in ") else f"`{name}`" for name in again["recipes"]
        )
        head = head.rstrip() + (
            f"\n- **Measured anew**, {again['date']}: {names}, each beside `memcpy` in that run.\n"
        )
    text = measured.get("text", EARLIER_TEXT)
    PAGE.write_text("\n\n".join([head.strip(), *sections(rows, machine["cpu"], text)]) + "\n")
    print(f"written: {PAGE.relative_to(results.ROOT)}")
