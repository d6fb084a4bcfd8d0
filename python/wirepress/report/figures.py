# SPDX-License-Identifier: Apache-2.0
"""Figures as plotly takes them. Colours of the theme, fonts and margins are page.js's business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirepress.report.parts import Figure, short

# Middle tones that are told apart on white and on black, and by those who see few colours.
COMPUTE, CODEC, EXPAND, WIRE, WAIT, GREY = (
    "#4c8dd6", "#e39a26", "#c9742f", "#35a57c", "#c9577f", "#8b929c",
)  # fmt: skip
_TONES = (COMPUTE, CODEC, WIRE, WAIT, "#8f76cf", "#41b3c9", "#a6823c", "#7f9a3a", "#d0654a",
          GREY)  # fmt: skip


def _mixed(tone: str, other: int, part: float) -> str:
    channels = (int(tone[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(c + (other - c) * part):02x}" for c in channels)


# the tones, lighter, and darker
COLOURS = (*_TONES, *(_mixed(t, 255, 0.4) for t in _TONES), *(_mixed(t, 0, 0.3) for t in _TONES))
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_BAR = 26  # pixels that a horizontal bar takes
_AXES = 64  # pixels of what is around them
_THICK = 18  # of a rank in a timeline


def axis(title: str, log: bool = False, **more: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"title": {"text": title}, **more}
    if log:
        settings |= {"type": "log"}  # page.js sets its ticks
    return settings


def link_axis(links: Sequence[float]) -> dict[str, Any]:
    """Bytes a second, as Gb/s, with a tick at each of a few rates."""
    rates = sorted({8 * link / 1e9 for link in links})
    return axis("link, Gb/s", type="log", tickvals=rates, ticktext=[f"{r:g}" for r in rates])


def stacked(
    names: Sequence[str],
    parts: Mapping[str, Sequence[float | None]],
    title: str,
    colours: Mapping[str, str] | None = None,
    unit: str = "s",
) -> Figure:
    """Horizontal bars, one a name, of parts one after the other."""
    return _bars(names, parts, title, "stack", colours or {}, unit)


def grouped(
    names: Sequence[str],
    groups: Mapping[str, Sequence[float | None]],
    title: str,
    colours: Mapping[str, str] | None = None,
    unit: str = "",
    log: bool = False,
) -> Figure:
    """Horizontal bars beside each other."""
    figure = _bars(names, groups, title, "group", colours or {}, unit)
    if log:
        figure["layout"]["xaxis"] |= {"type": "log"}
    return figure


def _bars(
    names: Sequence[str],
    parts: Mapping[str, Sequence[float | None]],
    title: str,
    mode: str,
    colours: Mapping[str, str],
    unit: str,
) -> Figure:
    places = list(range(len(names)))
    lines = len(parts) if mode == "group" else 1
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": places,
            "x": list(values),
            "customdata": list(names),
            "marker": {"color": colours.get(name, COLOURS[i % len(COLOURS)])},
            "hovertemplate": "%{customdata}: %{x:.4g}" + (f" {unit}" if unit else ""),
        }
        for i, (name, values) in enumerate(parts.items())
    ]
    return {
        "data": data,
        "layout": {
            "barmode": mode,
            "height": _AXES + len(names) * max(1, 0.62 * lines) * _BAR,
            "xaxis": axis(title, rangemode="tozero"),
            "yaxis": {
                "autorange": "reversed",
                "tickvals": places,
                "ticktext": [short(name) for name in names],
            },
        },
    }


def lines(
    series: Mapping[str, Sequence[tuple[float | None, float | None]]],
    x: dict[str, Any],
    y: dict[str, Any],
    text: Mapping[str, Sequence[str]] | None = None,
    marks: bool = True,
) -> Figure:
    """A line for each name, of (x, y)."""
    data = []
    for i, (name, points) in enumerate(series.items()):
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if marks else "lines",
                "name": name,
                "x": [point[0] for point in points],
                "y": [point[1] for point in points],
                "text": list(text[name]) if text else None,
                "line": {
                    "color": COLOURS[i % len(COLOURS)],
                    "dash": DASHES[i // len(COLOURS) % len(DASHES)],
                },
                "hovertemplate": "%{text}" if text else "%{x}: %{y:.4g}",
            }
        )
    return {"data": data, "layout": {"xaxis": x, "yaxis": y}}


def points(
    series: Mapping[str, Sequence[tuple[float, float, str]]], x: dict[str, Any], y: dict[str, Any]
) -> Figure:
    """Marks of (x, y, what it is), a colour for each name."""
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [mark[0] for mark in marks],
            "y": [mark[1] for mark in marks],
            "text": [mark[2] for mark in marks],
            "marker": {"size": 10, "color": COLOURS[i % len(COLOURS)], "symbol": i // len(COLOURS)},
            "hovertemplate": "%{text}",
        }
        for i, (name, marks) in enumerate(series.items())
    ]
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, "hovermode": "closest"}}


def heat(
    down: Sequence[str], across: Sequence[str], cells: Mapping[tuple[str, str], tuple[float, str]],
    y: str, x: str,
) -> Figure:  # fmt: skip
    """Who (down) by whom (across): a value for the colour, and what it says."""

    def grid(part: int, none: Any) -> list[list[Any]]:
        return [[cells[a, b][part] if (a, b) in cells else none for b in across] for a in down]

    data = {
        "type": "heatmap",
        "x": list(across),
        "y": list(down),
        "z": grid(0, None),
        "text": grid(1, ""),
        "texttemplate": "%{text}" if len(across) <= 8 else "",
        "hovertemplate": f"{y} %{{y}}, {x} %{{x}}: %{{text}}",
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }
    return {
        "data": [data],
        "layout": {
            "height": _AXES + max(60, 34 * len(down)),
            "xaxis": axis(x, type="category"),
            "yaxis": axis(y, type="category", autorange="reversed"),
        },
    }


Span = tuple[str, float, float]  # what, begin, end


def timeline(
    ranks: Sequence[tuple[str, Sequence[Span]]], colours: Mapping[str, str], seconds: str = "s"
) -> Figure:
    """When each rank did what: one line for each kind of work, with gaps, so that many thousands of
    spans are a few elements of the page. Times are seconds."""
    marks: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
        name: ([], [], []) for name in colours
    }
    for place, (rank, spans) in enumerate(ranks):
        for what, begin, end in spans:
            xs, ys, texts = marks[what]
            said = f"{rank}: {what} {end - begin:.4g} s from {begin:.6g} s"
            xs += [begin, end, None]
            ys += [place, place, None]
            texts += [said, said, ""]
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": xs,
            "y": ys,
            "text": texts,
            "connectgaps": False,
            "line": {"color": colours[name], "width": 0.7 * _THICK, "simplify": False},
            "hovertemplate": "%{text}",
        }
        for name, (xs, ys, texts) in marks.items()
        if xs
    ]
    return {
        "data": data,
        "layout": {
            "height": _AXES + len(ranks) * _THICK,
            "hovermode": "closest",
            "xaxis": axis(seconds, rangemode="tozero", rangeslider={"visible": False}),
            "yaxis": {
                "range": [len(ranks) - 0.4, -0.6],
                "tickvals": list(range(len(ranks))),
                "ticktext": [short(name, 14) for name, _ in ranks],
                "zeroline": False,
                "showgrid": False,
                "fixedrange": True,
            },
        },
    }
