# SPDX-License-Identifier: Apache-2.0
"""The scatter plot of `wirepress bench`: what a ratio costs in speed. Needs matplotlib."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

_MARKERS = "osD^vP*X<>"


def require() -> None:
    """Raises ImportError with what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "--plot needs matplotlib: pip install matplotlib (or wirepress[plot])"
        ) from None


def _label(row: Any) -> str:
    variant = row.kernel.split(":")[-1]
    return row.recipe if variant.startswith(("lib", "auto")) else f"{row.recipe} ({variant})"


def _place_labels(axes: Any, points: list[tuple[float, float, str, Any]]) -> None:
    """Writes each label beside its point, pushed up where it would cover the one before."""
    figure = axes.figure
    figure.canvas.draw()
    height = 11.0  # pixels of a line at the figure's 100 dpi
    taken: list[tuple[float, float]] = []
    for x, y, text, colour in sorted(points, key=lambda p: p[1]):
        px, py = axes.transData.transform((x, y))
        width = 6.2 * len(text) + 12
        slot = py
        while any(abs(slot - ty) < height and abs(px - tx) < width for tx, ty in taken):
            slot += 2
        taken.append((px, slot))
        axes.annotate(
            text,
            (x, y),
            xytext=(8, (slot - py) * 0.72 - 3),
            textcoords="offset points",
            fontsize=8,
            color=colour,
        )


def _panel(axes: Any, rows: list[Any], speed: str, title: str, colours: dict[str, Any]) -> None:
    names = list(dict.fromkeys(row.file for row in rows))
    points = []
    for row in rows:
        x, y = row.ratio, getattr(row, speed)
        colour = colours[row.recipe]
        filled = not row.kernel.startswith("plain")
        axes.scatter(
            x,
            y,
            marker=_MARKERS[names.index(row.file) % len(_MARKERS)],
            s=46,
            facecolors=colour if filled else "none",
            edgecolors=colour,
            zorder=3,
        )
        points.append((x, y, _label(row), colour))
    memcpy = sorted(row.memcpy_gbps for row in rows)[len(rows) // 2]
    axes.axhline(memcpy, color="0.45", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.text(
        0.99,
        memcpy * 1.04,
        "memcpy",
        transform=axes.get_yaxis_transform(),
        ha="right",
        va="bottom",
        fontsize=8,
        color="0.35",
    )
    axes.set_yscale("log")
    low = min(getattr(row, speed) for row in rows)
    axes.set_ylim(10 ** (math.log10(low) - 0.15), 10 ** (math.log10(max(memcpy, low)) + 0.35))
    right = max(row.ratio for row in rows)
    left = min(row.ratio for row in rows)
    span = max(right - left, 0.2)
    axes.set_xlim(left - 0.06 * span, right + 0.22 * span)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("ratio (raw size / frame size)")
    axes.set_ylabel("GB/s")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(True, which="major", color="0.9", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    _place_labels(axes, points)


def _legend(figure: Any, rows: list[Any]) -> None:
    """What the markers mean, where they mean something."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none", "color": "0.3", "markersize": 6}
    names = list(dict.fromkeys(row.file for row in rows))
    handles = []
    if len(names) > 1:
        handles = [
            Line2D([], [], marker=_MARKERS[i % len(_MARKERS)], label=name, **style)
            for i, name in enumerate(names)
        ]
    if any(row.kernel.startswith("plain") for row in rows):
        handles.append(
            Line2D([], [], marker="o", label="plain library", markerfacecolor="none", **style)
        )
    if handles:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8
        )


def scatter(rows: list[Any], path: str, machine: str, threads: int) -> None:
    """Draws ratio against both speeds and writes it to `path`; its suffix says the format."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    recipes = list(dict.fromkeys(row.recipe for row in rows))
    palette = matplotlib.colormaps["tab10" if len(recipes) <= 10 else "tab20"]
    colours = {recipe: palette(i % palette.N) for i, recipe in enumerate(recipes)}
    figure = Figure(figsize=(11, 5.2), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _panel(left, rows, "compress_gbps", "Compression", colours)
    _panel(right, rows, "decompress_gbps", "Expansion", colours)
    files = ", ".join(dict.fromkeys(row.file for row in rows))
    count = "1 thread" if threads == 1 else f"{threads} threads"
    figure.suptitle(f"{files}: ratio and speed, {count}, {machine}", fontsize=11)
    _legend(figure, rows)
    figure.savefig(path, format=Path(path).suffix.lstrip(".") or "png", dpi=150)
