#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lossy gradients do to the result of a training, for every compressor.

Four simulated workers in one process train a transformer for bytes (0.47 million parameters) and a
convolutional network on digits (0.23 million), the models of examples/gpt_ddp and cnn_ddp. Each
worker's gradient is encoded by wirepress, decoded and added up; a parameter of fewer than 4,096
values goes as it is. All else, the seeds of data and weights too, is that of the baseline. Results
that are there are not computed again (--again). Writes bench/results/convergence.json, a page and
a figure.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import results
import trainings
from results import ROOT

import wirepress

WORKERS = 4
LEAST = 4096  # values of a parameter that is compressed
STEPS = {"gpt": 200, "cnn": 120}
SIZE = "mini"
RANDOM = ("terngrad", "qsgd", "graddrop", "dgc")  # draw anew in every step, on every worker


@dataclasses.dataclass(frozen=True)
class Method:
    name: str
    recipe: str  # or "none", "powersgd:RANK"
    feedback: bool = False
    decay: float = 1.0  # what is left of a residual in the next step
    warm: float = 0.0  # share of the steps: without compression; of DGC: while it ramps up
    family: str = "others"


def all_methods() -> list[Method]:
    def plain(family: str, *recipes: str) -> list[Method]:
        return [Method(recipe, recipe, family=family) for recipe in recipes]

    def fed_back(family: str, *recipes: str, warm: float = 0.0, decay: float = 1.0) -> list[Method]:
        words = ("" if decay == 1 else f" x {decay:g}") + (f", after {warm:.0%}" if warm else "")
        return [Method(f"{r} + EF{words}", r, True, decay, warm, family) for r in recipes]

    zfp = [f"zfp:{mode}={strength}" for mode, strengths in ZFP.items() for strength in strengths]
    return [
        Method("none", "none", family="baseline"),
        *plain("casts", "bf16", "fp16", "fp8", "int8", "int4", "bx:m=5", "fre:m=3"),
        *fed_back("casts", "int4"),
        *plain("signs", "onebit", "signsgd", "terngrad", "terngrad+zstd", "qsgd:bits=4"),
        *plain("signs", "terngrad:clip=2.5"),
        *fed_back("signs", "onebit", "signsgd", "tbq:tau=3", "tbq:tau=1e-3,of=one"),
        *fed_back("signs", "onebit", "signsgd", "onebit:block=7", warm=0.2),
        *fed_back("signs", "onebit:block=7", warm=0.2, decay=0.5),
        *fed_back("signs", "onebit:block=6", warm=0.2, decay=0.3),
        Method("onebit:block=7, after 20%", "onebit:block=7", warm=0.2, family="signs"),
        *fed_back("sparse", "topk:ratio=0.01", "topk:ratio=0.001", "graddrop:ratio=0.01"),
        Method("DGC 1 %", "dgc:ratio=0.01", family="sparse"),
        Method("DGC 1 %, ramp of 20%", "dgc:ratio=0.01", warm=0.2, family="sparse"),
        Method("DGC 0.1 %", "dgc:ratio=0.001", family="sparse"),
        Method("DGC 0.1 %, ramp of 20%", "dgc:ratio=0.001", warm=0.2, family="sparse"),
        Method("DGC 0.1 %, ramp of 60%", "dgc:ratio=0.001", warm=0.6, family="sparse"),
        *[Method(f"PowerSGD {r}", f"powersgd:{r}", True, family="low rank") for r in (1, 2, 4)],
        *plain("zfp", *zfp),
        *fed_back("zfp", "zfp:accuracy=1e-1", "zfp:rate=8", "zfp:rate=4"),
    ]


ZFP = {  # modes and strengths, the strongest first
    "accuracy": ("1e-1", "1e-3", "1e-6", "1e-9"),
    "precision": ("4", "8", "16", "32"),
    "rate": ("4", "8", "16", "32"),
}
STRENGTHS = ("high", "medium", "low", "very low")


# ---- encoding ------------------------------------------------------------------------------------


class Encoder:
    """All workers' gradients of one parameter to their mean, as if sent."""

    def __init__(self, method: Method, shape: tuple[int, ...], number: int, steps: int) -> None:
        self.method, self.number = method, number
        self.warm_steps = round(method.warm * steps)
        self.residuals = np.zeros((WORKERS, math.prod(shape)), np.float32)
        self.shared = wirepress.Compressor(method.recipe, threads=1)

    def compressor(self, step: int, worker: int) -> wirepress.Compressor:
        if not self.method.recipe.startswith(RANDOM):
            return self.shared
        seed = (step * WORKERS + worker) * 1024 + self.number
        return wirepress.Compressor(self.recipe(step), threads=1, seed=seed)

    def recipe(self, step: int) -> str:
        del step
        return self.method.recipe

    def encode(self, gradient: np.ndarray, step: int, worker: int) -> bytes:
        compressor = self.compressor(step, worker)
        if self.method.feedback:
            self.residuals[worker] *= np.float32(self.method.decay)
            return compressor.compress_feedback(gradient, self.residuals[worker])
        return compressor.compress(gradient)

    def mean(self, gradients: np.ndarray, step: int) -> tuple[np.ndarray, int]:
        """The mean (workers x values in), and what one worker sends."""
        if step < self.warm_steps:
            return gradients.mean(axis=0), gradients[0].nbytes
        total, sent = np.zeros(gradients.shape[1], np.float32), 0
        for worker, gradient in enumerate(gradients):
            frame = self.encode(gradient, step, worker)
            sent += len(frame)
            self.shared.decompress_add(frame, total)
        return total / np.float32(WORKERS), sent // WORKERS

    def error(self, gradient: np.ndarray) -> float:
        """What encoding loses, relative to the norm; with error feedback it must stay below 1."""
        norm = np.linalg.norm(gradient)
        decoded = self.shared.decompress(self.shared.compress(gradient))
        return float(np.linalg.norm(decoded - gradient) / norm) if norm else 0.0


class Dgc(Encoder):
    """Deep Gradient Compression: momentum before compressing, masked where values were sent, and
    a ramp of sparsity from 75 % on. (Its gradient clipping is in Simulation.)"""

    MOMENTUM = 0.9
    RAMP = (0.25, 0.0625, 0.015625, 0.004)

    def __init__(self, method: Method, shape: tuple[int, ...], number: int, steps: int) -> None:
        super().__init__(method, shape, number, steps)
        self.ramp_steps, self.warm_steps = self.warm_steps, 0  # no step is uncompressed
        self.ratio = float(method.recipe.rpartition("=")[2])
        self.velocity = np.zeros_like(self.residuals)

    def recipe(self, step: int) -> str:
        if step >= self.ramp_steps:
            return self.method.recipe
        ramp = [share for share in self.RAMP if share > self.ratio]
        return f"dgc:ratio={ramp[step * len(ramp) // self.ramp_steps]}"

    def encode(self, gradient: np.ndarray, step: int, worker: int) -> bytes:
        velocity, residual = self.velocity[worker], self.residuals[worker]
        velocity *= np.float32(self.MOMENTUM)
        velocity += gradient
        frame = self.compressor(step, worker).compress_feedback(velocity, residual)
        velocity[residual == 0] = 0
        return frame


class PowerSgd(Encoder):
    """Vogels, Karimireddy, Jaggi (NeurIPS 2019): one power iteration, warm start."""

    def __init__(self, method: Method, shape: tuple[int, ...], number: int, steps: int) -> None:
        del steps
        self.method = method
        self.shape = (shape[0], math.prod(shape[1:]))
        rank = min(int(method.recipe.partition(":")[2]), *self.shape)
        draw = np.random.default_rng(number)
        self.q = draw.standard_normal((self.shape[1], rank)).astype(np.float32)
        self.residuals = np.zeros((WORKERS, *self.shape), np.float32)

    def mean(self, gradients: np.ndarray, step: int) -> tuple[np.ndarray, int]:
        del step
        self.residuals += gradients.reshape(self.residuals.shape)
        p, _ = np.linalg.qr((self.residuals @ self.q).mean(axis=0))
        self.q = (self.residuals.transpose(0, 2, 1) @ p).mean(axis=0)
        sent = p @ self.q.T
        self.residuals -= sent
        return sent.ravel(), p.nbytes + self.q.nbytes

    def error(self, gradient: np.ndarray) -> float:
        matrix = gradient.reshape(self.shape)
        p, _ = np.linalg.qr(matrix @ self.q)
        return float(np.linalg.norm(matrix - p @ (p.T @ matrix)) / np.linalg.norm(matrix))


def encoder(method: Method, shape: tuple[int, ...], number: int, steps: int) -> Encoder | None:
    """None where the parameter goes as it is."""
    kind = method.recipe.partition(":")[0]
    if kind == "none" or math.prod(shape) < LEAST:
        return None
    return {"dgc": Dgc, "powersgd": PowerSgd}.get(kind, Encoder)(method, shape, number, steps)


# ---- training ------------------------------------------------------------------------------------


class Simulation:
    CLIP = 2.0  # of DGC: norm of a worker's gradient, 1 * sqrt(4 workers)

    def __init__(self, task: Any, method: Method, seed: int, steps: int) -> None:
        import torch

        self.task, self.seed, self.steps = task, seed, steps
        torch.manual_seed(seed)
        self.model = task.model()
        self.parameters = list(self.model.parameters())
        self.encoders = [
            encoder(method, tuple(p.shape), i, steps) for i, p in enumerate(self.parameters)
        ]
        self.dgc = method.recipe.startswith("dgc")
        self.optimizer = torch.optim.SGD(
            self.parameters, task.rate, 0.0 if self.dgc else task.momentum
        )
        self.velocity = [np.zeros(p.numel(), np.float32) for p in self.parameters]
        self.raw_size = self.sent_size = 0
        self.error = 0.0  # the worst seen

    def gradients(self, step: int) -> tuple[list[np.ndarray], float]:
        """Of each parameter, workers x values; and the mean loss."""
        import torch
        from ddp_common import training

        stacks = [np.empty((WORKERS, p.numel()), np.float32) for p in self.parameters]
        loss = 0.0
        for worker in range(WORKERS):
            inputs, target = self.task.batch(training.draw_of(self.seed, worker, step))
            self.optimizer.zero_grad()
            part = self.task.loss(self.model(inputs), target)
            part.backward()
            loss += part.item() / WORKERS
            if self.dgc:
                torch.nn.utils.clip_grad_norm_(self.parameters, self.CLIP)
            for stack, parameter in zip(stacks, self.parameters, strict=True):
                stack[worker] = parameter.grad.numpy().ravel()
        return stacks, loss

    def exchange(self, stacks: list[np.ndarray], step: int) -> Iterator[np.ndarray]:
        for stack, encode, velocity in zip(stacks, self.encoders, self.velocity, strict=True):
            self.raw_size += stack[0].nbytes
            if encode is None:
                sum_of, sent = stack.mean(axis=0), stack[0].nbytes
                if self.dgc:
                    velocity *= np.float32(Dgc.MOMENTUM)
                    velocity += sum_of
                    sum_of = velocity
            else:
                if step % 10 == 0:
                    self.error = max(self.error, encode.error(stack[0]))
                sum_of, sent = encode.mean(stack, step)
            self.sent_size += sent
            yield sum_of

    def run(self) -> dict[str, Any]:
        import torch
        from ddp_common import training

        losses = []
        for step in range(self.steps):
            stacks, loss = self.gradients(step)
            losses.append(round(loss, 5))
            if not math.isfinite(loss):
                break
            rate = training.rate_at(step, self.steps, self.task.rate)
            self.optimizer.param_groups[0]["lr"] = rate
            means = self.exchange(stacks, step)
            for parameter, value in zip(self.parameters, means, strict=True):
                parameter.grad = torch.from_numpy(value.copy()).view_as(parameter)
            if self.task.clip < math.inf and not self.dgc:
                torch.nn.utils.clip_grad_norm_(self.parameters, self.task.clip)
            self.optimizer.step()
        with torch.no_grad():
            quality = self.task.quality(self.model.eval())
        return {
            **quality,
            "ratio": self.raw_size / self.sent_size,
            "error": self.error,
            "train": losses,
        }


# ---- results -------------------------------------------------------------------------------------

Key = tuple[str, str, int]  # training, method, seed


def measure(options: argparse.Namespace, rows: dict[Key, dict[str, Any]]) -> None:
    import torch

    torch.set_num_threads(1)
    wanted = [m for m in all_methods() if not options.methods or m.name in options.methods]
    tasks = {name: trainings.task_type(name)(SIZE) for name in options.models}
    for seed in range(1, options.seeds + 1):
        for name, task in tasks.items():
            for method in wanted:
                if (name, method.name, seed) in rows:
                    continue
                began = time.perf_counter()
                row = Simulation(task, method, seed, STEPS[name]).run()
                about = {"model": name, "method": method.name, "seed": seed}
                rows[name, method.name, seed] = about | row
                results.write(
                    "convergence", {"workers": WORKERS, "rows": list(rows.values())}, options.raw
                )
                print(f"{name} {method.name}, seed {seed}: loss {row['loss']:.4f}, ratio "
                      f"{row['ratio']:.1f}, {time.perf_counter() - began:.0f} s",
                      flush=True)  # fmt: skip


@dataclasses.dataclass
class Summary:
    method: Method
    model: str
    by_seed: dict[int, float]  # held-out loss, or of digits the accuracy in percent
    ratio: float
    error: float

    @property
    def values(self) -> list[float]:
        return list(self.by_seed.values())

    def worse(self, base: Summary) -> float:
        """How much larger the values are than those of the same seeds, as a part of these."""
        both = self.by_seed.keys() & base.by_seed.keys()
        return mean(self.by_seed[seed] / base.by_seed[seed] for seed in both) - 1

    @property
    def diverged(self) -> int:
        return sum(not math.isfinite(v) for v in self.values)

    @property
    def mean(self) -> float:
        return mean(self.values)

    @property
    def spread(self) -> float:
        return stdev(self.values) if len(self.values) > 1 else math.nan

    def text(self) -> str:
        if self.diverged == len(self.values):
            return "NaN"
        if self.diverged:
            return f"NaN in {self.diverged} of {len(self.values)}"
        digits = 3 if self.model == "gpt" else 2
        tail = "" if math.isnan(self.spread) else f" ± {self.spread:.{digits}f}"
        return f"{self.mean:.{digits}f}{tail}"


def value_of(row: dict[str, Any]) -> float:
    if not math.isfinite(row["loss"]):
        return math.nan
    return row["loss"] if row["model"] == "gpt" else 100 * row["accuracy"]


def summaries(rows: dict[Key, dict[str, Any]]) -> dict[tuple[str, str], Summary]:
    found = {}
    for method in all_methods():
        for model in STEPS:
            mine = [r for (m, name, _), r in rows.items() if (m, name) == (model, method.name)]
            if mine:
                values = {row["seed"]: value_of(row) for row in mine}
                ratio = mean(row["ratio"] for row in mine)
                error = max(row["error"] for row in mine)
                found[model, method.name] = Summary(method, model, values, ratio, error)
    return found


def noise(base: Summary) -> float:
    """Of the baseline: two standard deviations over its seeds, as a part of its mean."""
    spread = 0.0 if math.isnan(base.spread) else base.spread
    return max(0.005, 2 * spread / base.mean)


def verdict(gpt: Summary, base: Summary) -> str:
    """Held against the baseline of the transformer; digits are too easy."""
    if gpt.diverged:
        return "diverges"
    worse = gpt.worse(base)
    if worse <= noise(base):
        return f"as good ({100 * worse:+.1f} %)"
    return f"{100 * worse:.1f} % worse" if worse <= 0.05 else f"**{100 * worse:.0f} % worse**"


def table(found: dict[tuple[str, str], Summary]) -> str:
    text = (
        "| method | ratio, transformer | held-out loss | against the baseline | encoding error "
        "| ratio, digits | accuracy in % |\n|---|---:|---:|---|---:|---:|---:|\n"
    )
    base = found.get(("gpt", "none"))
    for method in all_methods():
        gpt, cnn = found.get(("gpt", method.name)), found.get(("cnn", method.name))
        cells = [f"`{method.name}`" if method.family != "baseline" else "none (float32)"]
        if gpt and base:
            cells += [f"{gpt.ratio:.1f}", gpt.text(), verdict(gpt, base), f"{gpt.error:.2g}"]
        else:
            cells += [""] * 4
        cells += [f"{cnn.ratio:.1f}", cnn.text()] if cnn else ["", ""]
        if gpt or cnn:
            text += f"| {' | '.join(cells)} |\n"
    return text


def zfp_table(found: dict[tuple[str, str], Summary], model: str) -> str:
    text = f"| mode | {' | '.join(STRENGTHS)} |\n|---|{'---|' * len(STRENGTHS)}\n"
    for mode, strengths in ZFP.items():
        cells = []
        for strength in strengths:
            entry = found.get((model, f"zfp:{mode}={strength}"))
            cells.append(f"{strength}: {entry.text()} ({entry.ratio:.1f}x)" if entry else "")
        text += f"| {mode} | {' | '.join(cells)} |\n"
    return text


def figure(found: dict[tuple[str, str], Summary], path: Any) -> None:
    """Above: methods by ratio, and what they leave; below: three modes of zfp."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(12, 13), layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots(2, 2, gridspec_kw={"height_ratios": (3, 1)})
    for column, model in enumerate(("gpt", "cnn")):
        by_ratio(axes[0][column], found, model)
        zfp_lines(axes[1][column], found, model)
    picture.savefig(path, dpi=90)


COLOURS = {"baseline": "black", "casts": "tab:blue", "signs": "tab:orange",
           "sparse": "tab:green", "low rank": "tab:purple", "zfp": "tab:red"}  # fmt: skip
LIMITS = {"gpt": (2.4, 3.2), "cnn": (90.0, 100.0)}  # what is beyond is drawn at the edge
TITLES = {"gpt": "transformer for bytes: held-out loss", "cnn": "CNN on digits: accuracy in %"}


def by_ratio(axes: Any, found: dict[tuple[str, str], Summary], model: str) -> None:
    low, high = LIMITS[model]
    worst = high if model == "gpt" else low
    entries = sorted((e for (name, _), e in found.items() if name == model), key=lambda e: e.ratio)
    for y, entry in enumerate(entries):
        x = worst if entry.diverged else min(max(entry.mean, low), high)
        bad = x == worst
        axes.errorbar(x, y, None, None if bad else entry.spread, marker="x" if bad else "o",
                      color=COLOURS[entry.method.family], markersize=5)  # fmt: skip
    labels = [f"{entry.method.name}   {entry.ratio:.3g}x" for entry in entries]
    axes.set_yticks(range(len(entries)), labels, fontsize=7)
    axes.margins(y=0.01)
    if (model, "none") in found:
        axes.axvline(found[model, "none"].mean, color="black", linewidth=0.6)
    axes.set(xlim=(low, high), title=f"{TITLES[model]}\n(x: diverged, or beyond the axis)")
    axes.grid(alpha=0.3)


def zfp_lines(axes: Any, found: dict[tuple[str, str], Summary], model: str) -> None:
    low, high = LIMITS[model]
    worst = high if model == "gpt" else low
    labels = list(STRENGTHS)
    for mode, strengths in ZFP.items():
        entries = [found.get((model, f"zfp:{mode}={s}")) for s in strengths]
        values = [math.nan if e is None else worst if e.diverged else min(max(e.mean, low), high)
                  for e in entries]  # fmt: skip
        axes.plot(range(len(STRENGTHS)), values, marker="o", label=mode)
        for i, entry in enumerate(entries):
            labels[i] += "\n" + ("-" if entry is None else f"{entry.ratio:.3g}x")
    if (model, "none") in found:
        axes.axhline(found[model, "none"].mean, color="black", linewidth=0.6)
    axes.set_xticks(range(len(STRENGTHS)), labels)
    below = f"strength of zfp; ratio with {', '.join(ZFP)}"
    axes.set(ylim=(low, high), xlabel=below, title=TITLES[model])
    axes.legend()
    axes.grid(alpha=0.3)


PAGE = """# Convergence

What lossy gradients do to the result of a training, and at which ratio: `bench/convergence.py`.

![quality against ratio](convergence.png)
"""


def what_ran(found: dict[tuple[str, str], Summary], about: str) -> str:
    seeds = {model: [len(s.values) for (m, _), s in found.items() if m == model] for model in STEPS}
    counts = "; ".join(
        f"{model}: {len(n)} methods, {' to '.join(map(str, sorted({min(n), max(n)})))} seeds, "
        f"{STEPS[model]} steps" for model, n in seeds.items() if n
    )  # fmt: skip
    base = found.get(("gpt", "none"))
    within = f"{100 * noise(base):.1f} %" if base else "0.5 %"
    return (
        f"{about} {counts}. {WORKERS} simulated workers; mean of the seeds ± standard deviation. "
        f"A parameter of fewer than {LEAST:,} values goes as it is, and counts in the ratio. "
        "*Encoding error*: the largest ‖x - decoded‖ / ‖x‖ seen, without error feedback; from 1 "
        "on, error feedback (EF) has nothing that shrinks. *Against the baseline*: the mean over "
        "seeds of the difference to the baseline of the same seed, and so of the same data; *as "
        f"good*: within {within}, two standard deviations of the baseline over its seeds.\n"
    )


def write_page(options: argparse.Namespace, rows: dict[Key, dict[str, Any]]) -> None:
    found = summaries(rows)
    machine = json.loads(options.raw.read_text())["machine"] if options.raw.exists() else {}
    about = f"{machine.get('cpu', '')}, {os.cpu_count()} cores." if machine else ""
    body = what_ran(found, about) + "\n" + table(found)
    for model in ("cnn", "gpt"):
        if any(m == model and "zfp" in n for m, n in found):
            body += f"\nThree modes of zfp, {TITLES[model]}:\n\n{zfp_table(found, model)}"
    results.put(options.page, "convergence", body, PAGE)
    figure(found, options.page.with_name("convergence.png"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", choices=STEPS, default=["cnn", "gpt"])
    parser.add_argument("--methods", nargs="*", help="by name, as in the table")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="compute what is there already")
    parser.add_argument("--page-only", action="store_true", help="from the results that are there")
    parser.add_argument("--raw", type=Path, default=results.FOLDER / "convergence.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/results/torch-convergence.md")
    options = parser.parse_args()
    options.models = [name for name in options.models if not trainings.missing("convergence", name)]
    if not options.models:
        return 77
    rows: dict[Key, dict[str, Any]] = {}
    if options.raw.exists() and not options.again:
        for row in json.loads(options.raw.read_text())["rows"]:
            rows[row["model"], row["method"], row["seed"]] = row
    if not options.page_only:
        measure(options, rows)
    write_page(options, rows)
    print(table(summaries(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
