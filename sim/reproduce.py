# SPDX-License-Identifier: Apache-2.0
"""`wirepress reproduce`: tables and figures of the papers beside what comes out here."""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wirepress.commands import bench, files, paths, show
from wirepress.commands.needs import need
from wirepress.errors import ParameterError
from wirepress.sim import papers
from wirepress.sim.papers import Data, Experiment, Paper, Result, Row

CLASSES = {
    "R1": "checkable on any CPU",
    "R2": "computable, or a simulation",
    "R3": "needs the authors' hardware: a model with their parameters",
    "R4": "needs the authors' data",
    "R5": "a training",
}
_ORDER = (papers.MATCHES, papers.DEVIATES, papers.IMPOSSIBLE, papers.NOT_RUN, papers.OURS)
_MEANING = {
    papers.MATCHES: "within the printed digits, or the tolerance that the row's text implies",
    papers.DEVIATES: "the paper's own parameters give something else",
    papers.IMPOSSIBLE: "cannot be computed: a parameter, the data or the hardware is missing",
    papers.NOT_RUN: "needs files of yours (--data), or SimGrid",
    papers.OURS: "the paper prints no number",
}


def catalogue() -> list[tuple[Paper, Experiment]]:
    from wirepress.sim.papers import fpga_mpi, fre, gcow, pedal, squeezenic

    modules = (fpga_mpi, gcow, pedal, squeezenic, fre)
    return [(module.PAPER, e) for module in modules for e in module.EXPERIMENTS]


def full_id(paper: Paper, experiment: Experiment) -> str:
    return f"{paper.name}/{experiment.id}"


def choose(wanted: list[str]) -> list[tuple[Paper, Experiment]]:
    """Those whose id or pattern (pedal/table-*) is wanted, or whose paper is; all of them where
    nothing is."""
    everything = catalogue()
    if not wanted:
        return everything
    chosen = []
    for name in wanted:
        found = [
            (p, e)
            for p, e in everything
            if name == p.name or fnmatch.fnmatchcase(full_id(p, e), name)
        ]
        if not found:
            known = ", ".join(dict.fromkeys(p.name for p, _ in everything))
            raise ParameterError(
                f'"{name}" is no experiment: `wirepress reproduce --list` names all; '
                f"papers: {known}"
            )
        chosen += [pair for pair in found if pair not in chosen]
    return chosen


def run(
    experiment: Experiment, identity: str, data: Data, known: dict[str, tuple[float, str]]
) -> Result:
    """The experiment; rows that need files take what was measured before, if it is known."""
    result = experiment.run(data)
    rows = []
    for row in result.rows:
        key = f"{identity}: {row.what}"
        if row.status == papers.NOT_RUN and key in known:
            ours, reason = known[key]
            row = dataclasses.replace(row, ours=ours, reason=reason)
        rows.append(row)
    return dataclasses.replace(result, rows=rows)


def counts(results: list[Result]) -> Counter[str]:
    return Counter(row.status for result in results for row in result.rows)


def summary(total: Counter[str]) -> str:
    return ", ".join(f"{total[status]} {status}" for status in _ORDER if total[status])


# ---- text -----------------------------------------------------------------------------------


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 1e6 or (float(value).is_integer() and abs(value) >= 1e4):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 1000 else f"{value:.4g}"


def deviation(row: Row) -> str:
    if row.deviation is None:
        return ""
    percent = 100 * row.deviation
    if abs(percent) < 0.005:
        return "0"
    if abs(percent) >= 95:
        return f"{row.deviation + 1:.3g}x"
    return f"{percent:+.2f} %" if abs(percent) < 10 else f"{percent:+.0f} %"


def _wrapped(text: str, indent: str) -> Iterator[str]:
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    yield from textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ")


def print_result(paper: Paper, experiment: Experiment, result: Result) -> None:
    print(f"{full_id(paper, experiment)}: {experiment.item}, {experiment.title} [{experiment.cls}]")
    cells = [
        (row.what, number(row.paper), number(row.ours), deviation(row), row.status)
        for row in result.rows
    ]
    head = ("", "paper", "ours", "deviation", "")
    print(show.table(cells, head, right=("paper", "ours", "deviation")))
    reasons: dict[str, list[Row]] = {}
    for row in result.rows:
        if row.reason and row.status in (papers.DEVIATES, papers.IMPOSSIBLE, papers.NOT_RUN):
            reasons.setdefault(row.reason, []).append(row)
    for reason, rows in reasons.items():
        what = rows[0].what if len(rows) == 1 else f"{len(rows)} rows"
        print("\n".join(_wrapped(f"{what}: {reason}", "  ")))
    for note in result.notes:
        print("\n".join(_wrapped(note, "  ")))
    print()


def as_json(paper: Paper, experiment: Experiment, result: Result) -> dict[str, Any]:
    return {
        "id": full_id(paper, experiment),
        "paper": paper.reference,
        "item": experiment.item,
        "title": experiment.title,
        "class": experiment.cls,
        "rows": [
            dataclasses.asdict(row) | {"deviation": row.deviation, "status": row.status}
            for row in result.rows
        ],
        "notes": result.notes,
    }


# ---- figures and the page ---------------------------------------------------------------------


def draw(paper: Paper, experiment: Experiment, result: Result, path: Path) -> None:
    """The experiment's figure; the suffix says the format."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    assert experiment.draw
    settings = {"svg.hashsalt": "wirepress", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(8, 4), layout="constrained")
        FigureCanvasAgg(figure)
        experiment.draw(figure, result)
        figure.suptitle(f"{paper.name}, {experiment.item}: {experiment.title}", fontsize=10)
        suffix = path.suffix.lstrip(".") or "png"
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(path, format=suffix, dpi=150, metadata=metadata)


def _page_table(result: Result) -> Iterator[str]:
    yield "| | paper | ours | deviation | |"
    yield "|---|---:|---:|---:|---|"
    for row in result.rows:
        yield (
            f"| {row.what} | {number(row.paper)} | {number(row.ours)} | {deviation(row)} | "
            f"{row.status if row.status != papers.OURS else ''} |"
        )


def page(found: list[tuple[Paper, Experiment, Result]], figures: str | None) -> str:
    """docs/results/reproduced.md: every table, its reasons, and how many rows came out."""
    total = counts([result for _, _, result in found])
    lines = [
        "# The papers' numbers, reproduced",
        "",
        "Made by `wirepress reproduce --all --report docs/results/reproduced.md`; do not edit.",
        "`wirepress reproduce ID` prints one table, `--plot FILE` draws its figure. A number is",
        "computed from the paper's own parameters; where those do not give it, ours stands beside",
        "it with the reason.",
        "",
        f"**{sum(total.values())} rows: {summary(total)}.**",
        "",
        *(f"- {status}: {_MEANING[status]}" for status in _ORDER if total[status]),
        "",
        "Classes: " + "; ".join(f"{name} {text}" for name, text in CLASSES.items()) + ".",
        "",
        "| experiment | | class | rows |",
        "|---|---|---|---|",
    ]
    for paper, experiment, result in found:
        anchor = f"{paper.name}{experiment.id}".replace(".", "").replace(" ", "-")
        lines.append(
            f"| [{full_id(paper, experiment)}](#{anchor}) | "
            f"{experiment.item}: {experiment.title} | {experiment.cls} | "
            f"{summary(counts([result]))} |"
        )
    last = None
    for paper, experiment, result in found:
        if paper is not last:
            lines += ["", f"*{paper.name}*: {paper.reference}."]
            last = paper
        lines += ["", f"## {full_id(paper, experiment)}", ""]
        lines += [f"{experiment.item}: {experiment.title} ({experiment.cls}).", ""]
        lines += _page_table(result)
        reasons: dict[str, list[str]] = {}
        for row in result.rows:
            if row.reason and row.status in (papers.DEVIATES, papers.IMPOSSIBLE, papers.NOT_RUN):
                reasons.setdefault(row.reason, []).append(row.what)
        points = [f"- {'; '.join(whats)}: {reason}." for reason, whats in reasons.items()]
        points += [f"- {note}" for note in result.notes]
        lines += ["", *points] if points else []
        if experiment.draw and figures:
            name = f"{figures}/{paper.name}-{experiment.id}.svg"
            lines += ["", f"![{experiment.item}: {experiment.title}]({name})"]
    return "\n".join(lines) + "\n"


# ---- the command ----------------------------------------------------------------------------


def _known(path: str | None) -> dict[str, tuple[float, str]]:
    """What earlier runs found on files or by simulation, and why it deviates, by row."""
    if path is None:
        return {}
    try:
        report = json.loads(Path(path).read_text())
        return {
            f"{experiment['id']}: {row['what']}": (float(row["ours"]), str(row["reason"]))
            for experiment in report["experiments"]
            for row in experiment["rows"]
            if row["needs_data"] and row["ours"] is not None
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{path}: not a report of `wirepress reproduce --json` ({error!r})"
        ) from None


def _list() -> int:
    cells = [
        (full_id(paper, e), e.cls, f"{e.item}: {e.title}", "yes" if e.draw else "")
        for paper, e in catalogue()
    ]
    print(show.table(cells, ("id", "class", "what", "figure")))
    return 0


def main(args: argparse.Namespace) -> int:
    if args.list:
        return _list()
    if not args.ids and not args.all:
        raise files.UsageError("name an experiment or a paper, or --all; --list names them")
    chosen = choose([] if args.all else args.ids)
    drawn = [(p, e) for p, e in chosen if e.draw]
    if args.plot:
        if len(drawn) != 1:
            raise files.UsageError(
                f"--plot draws one figure; {len(drawn)} of the chosen experiments have one"
            )
        need("matplotlib", "--plot")
    if args.report:
        need("matplotlib", "--report")
    if args.data and not os.path.isdir(args.data):
        raise files.UsageError(f"--data {args.data} is no folder")
    data = Data(Path(args.data) if args.data else None, simulate=not args.no_simulation)
    known = _known(args.measured)
    found = []
    for paper, experiment in chosen:
        found.append((paper, experiment, run(experiment, full_id(paper, experiment), data, known)))
    _write(args, found)
    total = counts([result for _, _, result in found])
    if args.json:
        show.print_json(
            bench.provenance()
            | {"experiments": [as_json(*triple) for triple in found], "counts": dict(total)}
        )
        return 0
    if not args.report:
        for triple in found:
            print_result(*triple)
    print(f"{sum(total.values())} rows: {summary(total)}")
    return 0


def _write(args: argparse.Namespace, found: list[tuple[Paper, Experiment, Result]]) -> None:
    if args.plot:
        paper, experiment, result = next(t for t in found if t[1].draw)
        draw(paper, experiment, result, Path(args.plot))
    if not args.report:
        return
    report = Path(args.report)
    folder = report.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for paper, experiment, result in found:
        if experiment.draw:
            name = f"{paper.name}-{experiment.id}.svg"
            draw(paper, experiment, result, folder / name)
    paths.write_text(args.report, page(found, folder.name))
    print(f"wrote {report} and {folder}/", file=sys.stderr)


def add_parser(parsers: Any) -> None:
    parser = parsers.add(
        "reproduce",
        "print tables and figures of the papers beside what comes out here",
        main,
        "  wirepress reproduce --list\n"
        "  wirepress reproduce fpga-mpi/fig-5.8 --plot fig-5.8.png\n"
        "  wirepress reproduce gcow 'pedal/*'\n"
        "  wirepress reproduce pedal/table-v --data silesia/\n"
        "  wirepress reproduce --all --report reproduced.md\n",
    )
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="an experiment, a paper's name, or a pattern"
    )
    parser.add_argument("--list", action="store_true", help="name all experiments")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument(
        "--data", metavar="FOLDER", help="files by their names (xml, mr ...; .zst and .gz, too)"
    )
    parser.add_argument(
        "--measured", metavar="FILE", help="a --json of before, for rows that need files or SimGrid"
    )
    parser.add_argument(
        "--no-simulation", action="store_true", help="leave out what SimGrid is needed for"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the figure (.png, .svg, .pdf)")
    parser.add_argument(
        "--report", metavar="FILE.md", help="write a page, and its figures into a folder beside it"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
