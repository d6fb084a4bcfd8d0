# SPDX-License-Identifier: Apache-2.0
"""The scatter plot of `wirepress bench`: what a ratio costs in speed. Needs matplotlib."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wirepress.commands.speeds import Row

_PLAIN = "plain"
_GAP = 9  # points between a mark and its label
_WIDE = 20  # from here on the ratios' axis is logarithmic too


def _family(row: Row) -> str:
    """What shares a colour: the codec, whatever its level; plain lz4 and ours."""
    return row.recipe.split(":")[0]


def _labels(rows: list[Row]) -> list[str]:
    """The recipe, with the kernel where the same recipe stands there twice."""
    count = Counter(row.recipe for row in rows if not row.kernel.startswith(_PLAIN))
    labels = []
    for row in rows:
        if row.kernel.startswith(_PLAIN):
            labels.append(f"{_PLAIN} {row.recipe}")
        elif count[row.recipe] > 1:
            labels.append(f"{row.recipe} ({row.kernel.split(':')[-1]})")
        else:
            labels.append(row.recipe)
    return labels


def _places() -> Iterator[tuple[float, float, str]]:
    """Offsets of a label from its mark, in points, best first."""
    for rise in (0, 8, -8, 14, -14, 21, -21, 30, -30, 40, -40, 52, -52, 66, -66):
        yield _GAP, rise, "left"
        yield -_GAP, rise, "right"


def _place_labels(axes: Any, points: list[tuple[float, float]], labels: list[str]) -> None:
    """Writes each label at the first place where it covers no mark, label or edge."""
    from matplotlib.transforms import Bbox

    renderer = axes.figure.canvas.get_renderer()
    inside = axes.get_window_extent(renderer)
    marks = axes.transData.transform(points)
    taken = [Bbox.from_bounds(x - 7, y - 7, 14, 14) for x, y in marks]
    taken += [text.get_window_extent(renderer) for text in axes.texts]
    for i in sorted(range(len(points)), key=lambda i: -points[i][1]):
        others = taken[:i] + taken[i + 1 :]
        for dx, dy, align in _places():
            note = axes.annotate(
                labels[i],
                points[i],
                xytext=(dx, dy),
                textcoords="offset points",
                ha=align,
                va="center",
                fontsize=8,
                color="0.15",
                zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4},
                arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkB": 3}
                if abs(dy) > 8
                else None,
            )
            box = Bbox(note.get_tightbbox(renderer) if dy == 0 else _text_box(note, renderer))
            free = not any(box.overlaps(other) for other in others)
            if free and inside.x0 <= box.x0 and box.x1 <= inside.x1 + 8:
                break
            note.remove()
        else:
            continue  # no room: the mark stays without a label; the table has it
        taken.append(box)


def _text_box(note: Any, renderer: Any) -> Any:
    """The extent of an annotation's words, without its line."""
    note.update_positions(renderer)
    from matplotlib.text import Text

    return Text.get_window_extent(note, renderer)


def _scale(axes: Any, ratios: list[float], speeds: list[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.set_ylim(min(speeds) / 1.5, max(speeds) * 1.6)
    if max(ratios) > _WIDE * min(ratios):
        axes.set_xscale("log")
        room = (max(ratios) / min(ratios)) ** 0.15
        axes.set_xlim(min(ratios) / room, max(ratios) * room)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        span = max(max(ratios) - min(ratios), 0.2)
        axes.set_xlim(min(ratios) - 0.12 * span, max(ratios) + 0.2 * span)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="0.92", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)


def _panel(axes: Any, rows: list[Row], memcpy: float, speed: str, colours: dict[str, Any]) -> None:
    points = [(row.ratio, getattr(row, speed)) for row in rows]
    for row, point in zip(rows, points, strict=True):
        colour = colours[_family(row)]
        plain = row.kernel.startswith(_PLAIN)
        axes.scatter(
            *point, s=46, facecolors="white" if plain else colour, edgecolors=colour, zorder=3
        )
    _scale(axes, [x for x, _ in points], [memcpy, *(y for _, y in points)])
    axes.axhline(memcpy, color="0.45", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.text(
        0.995,
        memcpy * 1.05,
        "memcpy",
        transform=axes.get_yaxis_transform(),
        ha="right",
        va="bottom",
        fontsize=8,
        color="0.35",
    )


def scatter(rows: list[Row], memcpy: float, path: str, machine: str, threads: int) -> None:
    """Draws ratio against both speeds, and memcpy's in GB/s, a row of panels for each file; the
    suffix of `path` says the format."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row.file for row in rows))
    families = list(dict.fromkeys(_family(row) for row in rows))
    palette = matplotlib.colormaps["tab10"]
    colours = {family: palette(i % 10) for i, family in enumerate(families)}
    figure = Figure(figsize=(11, 0.6 + 4.6 * len(names)), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(names), 2, squeeze=False)
    sides = (("compress_gbps", "compression"), ("decompress_gbps", "expansion"))
    for (i, name), (j, (speed, title)) in itertools.product(enumerate(names), enumerate(sides)):
        axes = panels[i][j]
        _panel(axes, [row for row in rows if row.file == name], memcpy, speed, colours)
        axes.set_title(f"{name}: {title}", loc="left", fontsize=10)
        axes.set_ylabel("GB/s" if j == 0 else "")
        axes.set_xlabel("ratio (raw size / frame size)" if i == len(names) - 1 else "")
    count = "1 thread" if threads == 1 else f"{threads} threads"
    figure.suptitle(f"wirepress bench, {count}, {machine}", fontsize=11)
    figure.canvas.draw()  # settles the layout, on which the labels' places depend
    figure.set_layout_engine("none")
    for (i, name), (j, (speed, _)) in itertools.product(enumerate(names), enumerate(sides)):
        chosen = [row for row in rows if row.file == name]
        points = [(row.ratio, getattr(row, speed)) for row in chosen]
        _place_labels(panels[i][j], points, _labels(chosen))
    figure.savefig(path, format=Path(path).suffix.lstrip(".") or "png", dpi=150)
