#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Held-out loss against time and bytes, of one run or several: plot.py A.json ... OUT.png"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    for run in runs:
        points = [p for p in run["held_out"] if math.isfinite(p["loss"])]
        loss = [p["loss"] for p in points]
        style: dict[str, Any] = {"label": run["method"], "marker": ".", "linewidth": 1}
        left.plot([p["seconds"] for p in points], loss, **style)
        right.plot([p["nic_bytes"] / 1e6 for p in points], loss, **style)
    left.set(xlabel="seconds of training", ylabel="held-out loss")
    right.set(xlabel=f"MB sent by the first host ({runs[0]['nic']})")
    if all(p["nic_bytes"] > 0 for run in runs for p in run["held_out"]):
        right.set_xscale("log")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    left.legend()
    about = runs[0]
    figure.suptitle(f"{about['example']}, {about['parameters']:,} parameters, "
                    f"{about['ranks']} ranks")  # fmt: skip
    figure.savefig(path, dpi=120)


def main(words: list[str]) -> int:
    if len(words) < 2 or not words[-1].endswith(".png"):
        print(__doc__, file=sys.stderr)
        return 2
    draw([json.loads(Path(word).read_text()) for word in words[:-1]], Path(words[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
