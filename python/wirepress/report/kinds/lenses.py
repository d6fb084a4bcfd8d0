# SPDX-License-Identifier: Apache-2.0
"""Figures and sentences for rows of measurements that are known by their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wirepress import units
from wirepress.report import expect, figures, parts
from wirepress.report.expect import NUMBER, Maybe, Positive
from wirepress.report.parts import Plot, Unexpected, Words, is_number

Named = Sequence[tuple[str, dict[str, Any]]]  # (input, row)
_MOST_VIEWS = 60
_MOST_SAID = 8
_WIDE = 20  # ratios further apart stand on a logarithmic axis
_NOTHING = "noop"  # the method of torch_steps that sends nothing


def _view(row: dict[str, Any], fields: Sequence[str]) -> str:
    """Which of several figures a row belongs to."""
    found = {field: row[field] for field in fields if field in row}
    return ", ".join(f"{f} {v}" if is_number(v) else str(v) for f, v in found.items())


def _name(given: str, text: Any, several: bool) -> str:
    return f"{text} ({given})" if several else str(text)


def _fits(row: dict[str, Any], fields: dict[str, Any]) -> bool:
    try:
        expect.check(row, fields)
    except Unexpected:
        return False
    return True


def look(named: Named, several: bool) -> Iterator[parts.Part]:
    """What is known to fit; `several`: the rows are of several inputs."""
    for fields, lens in _LENSES:
        if fitting := [(given, row) for given, row in named if _fits(row, fields)]:
            yield from lens(fitting, several)


# ---- MPI calls, without and with wirepress --------------------------------------------------


def _mpi_calls(named: Named, several: bool) -> Iterator[parts.Part]:
    """mpi_speed, mpi_guard: seconds of one call, `plain` and `ours`, by size."""
    views: dict[str, dict[str, list[tuple[float | None, float | None]]]] = {}
    gains = []
    for given, row in named:
        if not row["plain"] or not row["ours"]:
            continue
        gain = parts.median(row["plain"]) / parts.median(row["ours"])
        view = _view(row, ("rate", "link", "codec", "ranks", "kind"))
        views.setdefault(view, {}).setdefault(_name(given, row["call"], several), []).append(
            (row["size"], gain)
        )
        gains.append((gain, f"{row['call']} of {units.size(row['size'])}, {view}"))
    if not gains:
        return
    best, worst = max(gains), min(gains)
    middle = parts.median([gain for gain, _ in gains])
    yield Words("In short", [
        f"The median of {len(gains):,} cells is {middle:.3f} times the speed of plain MPI; "
        f"best {best[1]}: {best[0]:.2f}; worst {worst[1]}: {worst[0]:.2f}.",
    ])  # fmt: skip
    plots = {
        view: figures.lines(
            {name: sorted(points) for name, points in by.items()},  # type: ignore[type-var]
            figures.axis("bytes of the message", log=True), figures.axis("plain / with wirepress"),
        )
        for view, by in list(views.items())[:_MOST_VIEWS]
    }  # fmt: skip
    yield Plot("Speed-up by size and call", plots, "of")


# ---- steps of training ----------------------------------------------------------------------


def _steps(named: Named, several: bool) -> Iterator[parts.Part]:
    """torch_steps: seconds of a step by method."""
    views: dict[str, dict[str, float]] = {}
    for given, row in named:
        if seconds := row["seconds"]:
            view = _view(row, ("what", "model", "ranks", "rate", "size"))
            views.setdefault(view, {})[_name(given, row["method"], several)] = parts.median(seconds)
    said = []
    for view, by in views.items():
        if by.get("plain"):
            real = {name: seconds for name, seconds in by.items() if name != _NOTHING}
            method = min(real, key=lambda name: real[name])
            text = f"{view}: {method} is {by['plain'] / by[method]:.2f} times as fast as plain"
            if by.get(_NOTHING):
                text += f" ({by['plain'] / by[_NOTHING]:.2f} if nothing were sent)"
            said.append(text + ".")
    if said:
        yield Words("The fastest", said, "change")
    yield Plot(
        "Seconds of a step",
        {
            view: figures.grouped(list(by), {"seconds": list(by.values())}, "seconds", unit="s")
            for view, by in views.items()
        },
        "of",
    )


def _trainings(named: Named, several: bool) -> Iterator[parts.Part]:
    """convergence: the loss along each training."""
    views: dict[str, dict[str, list[tuple[float | None, float | None]]]] = {}
    for given, row in named:
        name = _name(given, f"{row['method']}, seed {row.get('seed', '?')}", several)
        views.setdefault(str(row["model"]), {})[name] = [
            (float(i), v) for i, v in enumerate(row["train"])
        ]
    yield Plot(
        "Loss along the training",
        {
            model: figures.lines(
                by, figures.axis("point of the training"), figures.axis("loss"), marks=False
            )
            for model, by in views.items()
        },
        "model",
    )


# ---- what auto chose ------------------------------------------------------------------------


def _auto(named: Named, several: bool) -> Iterator[parts.Part]:
    views: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for given, row in named:
        views.setdefault(_view(row, ("goal", "link")), []).append((given, row))
    yield Plot(
        "Until the data are there",
        {
            view: figures.grouped(
                [_name(given, row["data"], several) for given, row in rows],
                {
                    "raw": [row["raw_ms"] for _, row in rows],
                    "auto": [row["auto_ms"] for _, row in rows],
                    "best recipe": [row["best_ms"] for _, row in rows],
                },
                "milliseconds",
                {"raw": figures.GREY, "auto": figures.COMPUTE, "best recipe": figures.WIRE},
                "ms",
                log=True,
            )
            for view, rows in views.items()
        },
        "goal",
    )
    lost = [row["auto_ms"] / row["best_ms"] for _, row in named if row["best_ms"]]
    if lost:
        yield Words("In short", [
            f"auto takes {parts.median(lost):.3f} times as long as the best recipe (median of "
            f"{len(lost)}), at worst {max(lost):.2f} times."
        ])  # fmt: skip


# ---- the frame store ------------------------------------------------------------------------

_STORE = {
    "waiting to put": figures.WAIT,
    "waiting to get": "#e08aa4",
    "computing and copying": figures.COMPUTE,
}


def _store(named: Named, several: bool) -> Iterator[parts.Part]:
    """store, store_writes: forward and backward, and what of it was waiting."""
    views: dict[str, dict[str, tuple[float, float, float]]] = {}
    work = []
    for given, row in named:
        view = _view(row, ("rate", "side", "workers"))
        name = _view(row, ("policy", "way")) + (", direct" if row.get("direct_asked") else "")
        name = _name(given, name, several)
        n = row.get("workers") or 1  # waits are summed over them
        put, get = row["put_wait"] / n, row["get_wait"] / n
        total = row["forward"] + row["backward"]
        known = views.setdefault(view, {})
        known[name if name not in known else f"{name} #{len(known) + 1}"] = (total, put, get)
        work.append((put + get, f"{name} at {view}", total))
    yield Words("Where time was lost", [
        f"{name}: a worker waits {units.seconds(wait)} of {units.seconds(total)} for the store "
        f"({parts.share(parts.quotient(wait, total, 0))})."
        for wait, name, total in sorted(work, key=lambda item: -item[0])[:4]
    ], "lost")  # fmt: skip
    said = []
    for view, by in views.items():
        best = min(by, key=lambda name: by[name][0])
        worst = max(by, key=lambda name: by[name][0])
        (least, *_), (most, *_) = by[best], by[worst]
        if best != worst and least:
            text = f"{view}: {best} takes {units.seconds(least)}, {worst} {units.seconds(most)}."
            said.append((most / least, text))
    if said:
        texts = [text for _, text in sorted(said, reverse=True)[:_MOST_SAID]]
        yield Words("What to use, where it matters most", texts, "change")
    yield Plot(
        "Forward and backward",
        {
            view: figures.stacked(
                list(by),
                {
                    "computing and copying": [max(0.0, t - p - g) for t, p, g in by.values()],
                    "waiting to put": [p for _, p, _ in by.values()],
                    "waiting to get": [g for _, _, g in by.values()],
                },
                "seconds",
                _STORE,
            )
            for view, by in views.items()
        },
        "of",
    )


def _migration(named: Named, several: bool) -> Iterator[parts.Part]:
    """rtm: runs by policy; wall time by its parts, and the ratio of each frame."""
    split: dict[str, list[float]] = {"kernel": [], "storage": [], "barrier": []}
    names, lines = [], {}
    for given, row in named:
        what = ", ".join(filter(None, (row["policy"], str(row.get("recipe") or ""))))
        name = _name(given, what, several)
        names.append(name)
        for part in split:
            split[part].append(row["forward"][part] + row["backward"][part])
        frames = [(f["step"], f["ratio"]) for f in row["frames"] if {"step", "ratio"} <= f.keys()]
        if any(ratio != 1 for _, ratio in frames):
            lines[name] = frames
    colours = {"kernel": figures.COMPUTE, "storage": figures.WAIT, "barrier": figures.CODEC}
    yield Plot("Where time goes", {"": figures.stacked(names, split, "seconds", colours)})
    if lines:
        ratios = [ratio for points in lines.values() for _, ratio in points]
        wide = max(ratios) > _WIDE * min(ratios) > 0
        figure = figures.lines(
            lines, figures.axis("step"), figures.axis("ratio", log=wide), marks=False
        )
        yield Plot("Ratio by step", {"": figure})


def _demo(named: Named, several: bool) -> Iterator[parts.Part]:
    """demo: fastest run of each kind."""
    views: dict[str, dict[str, float]] = {}
    for given, row in named:
        if seconds := [run["seconds"] for run in row["runs"]]:
            views.setdefault(str(row["program"]), {})[_name(given, row["kind"], several)] = min(
                seconds
            )
    yield Plot(
        "Seconds of the fastest run",
        {
            program: figures.grouped(list(by), {"seconds": list(by.values())}, "seconds", unit="s")
            for program, by in views.items()
        },
        "program",
    )
    yield Words("In short", [
        f"{program}: {kind} takes {units.seconds(seconds)}, plain {units.seconds(by['plain'])}: "
        f"{by['plain'] / seconds:.2f} times as fast."
        for program, by in views.items() if "plain" in by
        for kind, seconds in by.items() if kind != "plain"
    ])  # fmt: skip


Lens = Callable[[Named, bool], Iterator[parts.Part]]
_WAY = {"kernel": NUMBER, "storage": NUMBER, "barrier": NUMBER}
_LENSES: tuple[tuple[dict[str, Any], Lens], ...] = (
    ({"plain": [Positive], "ours": [Positive], "call": str, "size": Positive}, _mpi_calls),
    ({"method": str, "seconds": [Positive], "model": str, "ranks": int}, _steps),
    ({"method": str, "model": str, "train": [NUMBER]}, _trainings),
    ({"auto_ms": Positive, "best_ms": Positive, "raw_ms": Positive, "data": str}, _auto),
    (
        {
            "forward": NUMBER,
            "backward": NUMBER,
            "put_wait": NUMBER,
            "get_wait": NUMBER,
            "workers": Maybe(int),
        },
        _store,
    ),
    ({"policy": str, "forward": _WAY, "backward": _WAY, "frames": [{str: NUMBER}]}, _migration),
    ({"program": str, "kind": str, "runs": [{"seconds": Positive}]}, _demo),
)
