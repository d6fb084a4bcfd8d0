#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time by policy and workers, its parts, ratio by age, errors of images: plot.py A.json OUT.png"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def name(run: dict[str, Any]) -> str:
    return f"{run['policy']} {run['recipe']}".strip()


def draw_parts(axes: Any, runs: list[dict[str, Any]]) -> None:
    """Stacked: what the workers did with the time, forward and backward."""
    labels = [f"{name(run)}, {run['threads']}" for run in runs]
    parts = [
        ("FP kernel", [r["forward"]["kernel"] + r["forward"]["barrier"] for r in runs]),
        ("I/O write", [r["forward"]["storage"] for r in runs]),
        ("BP kernel", [r["backward"]["kernel"] + r["backward"]["barrier"] for r in runs]),
        ("I/O read", [r["backward"]["storage"] for r in runs]),
        ("close", [r["finish"] for r in runs]),
    ]
    left = [0.0] * len(runs)
    for label, values in parts:
        axes.barh(labels, values, left=left, label=label)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="seconds", title="policy, recipe, workers")
    axes.legend(fontsize=8)


def draw_threads(axes: Any, runs: list[dict[str, Any]]) -> None:
    for label in dict.fromkeys(name(run) for run in runs):
        mine = [run for run in runs if name(run) == label]
        axes.plot([r["threads"] for r in mine], [r["seconds"] for r in mine], "o-", label=label)
    axes.set(xlabel="workers", ylabel="seconds", ylim=(0, None), title="total time")
    axes.set_xticks(sorted({run["threads"] for run in runs}))
    axes.legend(fontsize=8)


def draw_ratios(axes: Any, runs: list[dict[str, Any]]) -> None:
    seen = set()
    for run in runs:
        if run["recipe"] and name(run) not in seen:
            seen.add(name(run))
            steps = [frame["step"] for frame in run["frames"]]
            axes.plot(steps, [frame["ratio"] for frame in run["frames"]], label=name(run))
    axes.set(xlabel="time step of the frame", ylabel="ratio", yscale="log", title="ratio by age")
    if seen:
        axes.legend(fontsize=8)


def draw_errors(axes: Any, runs: list[dict[str, Any]]) -> None:
    seen = set()
    for run in runs:
        image = run.get("image")
        if not image or image["equal"] or name(run) in seen:
            continue
        seen.add(name(run))
        shares = image["histogram"]
        axes.plot(list(shares), [100 * share for share in shares.values()], "o-",
                  label=f"{name(run)}: {image['snr_db']:.1f} dB")  # fmt: skip
    axes.set(ylabel="% of points", title="error of the image's points, by their value")
    if seen:
        axes.legend(fontsize=8)


def draw_sizes(axes: Any, report: dict[str, Any]) -> None:
    """Each recipe's image by the size of its frames; lines join what is of equal size."""
    points = {}
    for run in report["runs"]:
        if run["recipe"] and "image" in run and not run["image"]["equal"]:
            points[run["recipe"]] = (run["ratio"], run["image"]["snr_db"])
    for recipe, (ratio, snr) in points.items():
        axes.plot(ratio, snr, "o")
        axes.annotate(recipe, (ratio, snr), fontsize=7, xytext=(4, 3), textcoords="offset points")
    for pair in report["equal_size"]:
        for ours in pair["ours"]:
            ends = [points.get(end["recipe"]) for end in (pair["rival"], ours)]
            if all(ends):
                axes.plot(*zip(*ends, strict=True), "k:", linewidth=1)
    axes.set(xlabel="ratio of all frames", ylabel="dB", title="SNR of the image by size")


def draw_column(axes: Any, report: dict[str, Any]) -> None:
    """The image in the middle, and where the earth reflects."""
    axes.plot(report["column"], range(len(report["column"])))
    for depth in report["reflectors"]:
        axes.axhline(depth, color="gray", linestyle=":", linewidth=1)
    axes.invert_yaxis()
    axes.set(ylabel="cells of depth", title="image in the middle; reflectors of the earth")


def draw(report: dict[str, Any], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    runs = report["runs"]
    figure = Figure(figsize=(16, 8), layout="constrained")
    FigureCanvasAgg(figure)
    (parts, threads, sizes), (ratios, errors, column) = figure.subplots(2, 3)
    draw_parts(parts, runs)
    draw_threads(threads, runs)
    draw_ratios(ratios, runs)
    draw_errors(errors, runs)
    draw_sizes(sizes, report)
    draw_column(column, report)
    x, y, z = report["size"]
    figure.suptitle(f"{x} x {y} x {z} cells, {report['model']}, {report['steps']} steps, "
                    f"every {report['every']}. kept")  # fmt: skip
    figure.savefig(path, dpi=110)


def main(words: list[str]) -> int:
    if len(words) != 2 or not words[1].endswith(".png"):
        print(__doc__, file=sys.stderr)
        return 2
    draw(json.loads(Path(words[0]).read_text()), Path(words[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
