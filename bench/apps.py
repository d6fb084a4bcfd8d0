#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs, plain and under `wirepress run`, on two hosts joined at a rate, and on one host.

Seven programs from Debian's packages (app_programs.py) run unchanged. Hosts are network namespaces
(tests/net/hosts.py). Runs come in pairs, one plain and one with wirepress; the first of a pair
alternates. Each run gives its wall time, the seconds by the program's own timer, the bytes that
the NICs sent, wirepress's report, what the whole machine's processors did meanwhile and what other
machines took from them, and a checksum of the program's results, which must be that of every other
run in the same place. Raw results: bench/results/apps/PROGRAM.json, with the load of
the machine before every run. The table and the picture of docs/results/apps.md are made from them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import app_programs
import results
from app_programs import PROGRAMS, Program
from results import ROOT

sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, why_not

FOLDER = results.FOLDER / "apps"
BUILD = ROOT / "build" / "apps"
PAGE = ROOT / "docs" / "results" / "apps.md"
PICTURE = ROOT / "docs" / "results" / "apps.png"
LINKS = {"200Mbps": "200mbit", "1Gbps": "1gbit", "none": "none", "shm": ""}
LINK_NAMES = {"200Mbps": "0.2 Gb/s", "1Gbps": "1 Gb/s", "none": "no limit", "shm": "one host"}
QUIET = 6  # the highest load under which a time says something: a run's own ranks are in it
LIMIT = 600  # seconds for one run: a hang must not last
NEW_PAGE = "# Real programs\n"
EXAMPLES = """\
examples:
  make apps                                       everything; most of an hour on a quiet machine
  make apps ARGS="--program lammps --pairs 3 --link 200Mbps"
  make apps ARGS="--program petsc --link 1Gbps --ranks 2 --wirepress=--codec=zstd:1"
  make apps ARGS=--trace                          what the programs send, and what it shrinks by
  make apps ARGS=--predict                        three programs simulated, beside what they take
  make apps ARGS=--page                           the table and the picture, from the raw results
"""


class AppsError(RuntimeError):
    """A run that failed, or a result that is another one."""


@dataclass(frozen=True)
class Cell:
    """One program in one place."""

    program: Program
    link: str  # a key of LINKS
    ranks: int  # of each host

    @property
    def total_ranks(self) -> int:
        return self.ranks if self.link == "shm" else 2 * self.ranks

    def __str__(self) -> str:
        if self.link == "shm":
            return f"{self.program.name}, one host, {self.ranks} ranks"
        return f"{self.program.name}, 2 hosts x {self.ranks}, {LINK_NAMES[self.link]}"


class Progress:
    """A line on stderr: what runs, how much is done, how long the rest may take."""

    def __init__(self, total: int, quiet: bool) -> None:
        self.total, self.quiet, self.done, self.start = total, quiet, 0, time.monotonic()

    def step(self, text: str) -> None:
        if not self.quiet:
            filled = 24 * self.done // max(self.total, 1)
            rest = ""
            if self.done:
                each = (time.monotonic() - self.start) / self.done
                rest = f", {math.ceil(each * (self.total - self.done) / 60)} min left"
            bar = "#" * filled + "." * (24 - filled)
            end = "" if sys.stderr.isatty() else "\n"
            line = f"[{bar}] {self.done}/{self.total} {text}{rest}"
            print(f"\r\033[K{line}" if not end else line, end=end, file=sys.stderr, flush=True)
        self.done += 1

    def close(self) -> None:
        if not self.quiet and sys.stderr.isatty():
            print(file=sys.stderr)


# ---- running ----


def environment(program: Program) -> dict[str, str]:
    return {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",  # there may be fewer cores than ranks
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **program.environment,
    }


def launcher(cell: Cell, hosts: Hosts | None) -> list[str]:
    if hosts:
        return hosts.mpirun("openmpi", cell.ranks)
    return ["mpirun.openmpi", "-n", str(cell.total_ranks), "--oversubscribe", "--bind-to", "none"]


def run(cell: Cell, hosts: Hosts | None, before: list[str]) -> tuple[dict[str, Any], Path]:
    """One run; `before` are the words that stand before the launcher's. Returns its row and the
    folder in which it ran.

    Raises:
        AppsError: the program failed, hung, or left out its result.
    """
    program = cell.program
    inputs = app_programs.make_inputs(
        program, cell.total_ranks, BUILD / "inputs" / f"{program.name}-{cell.total_ranks}"
    )
    folder = BUILD / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs, folder)
    command = [*before, *launcher(cell, hosts), *program.command]
    if hosts:
        command = hosts.on(0, command)
    load, processor = os.getloadavg()[0], results.processor_seconds()
    nics, start = sum(hosts.sent_bytes()) if hosts else 0, time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(program),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise AppsError(f"{cell}: it ran for more than {LIMIT} seconds") from None
    row: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 3)}
    used = [b - a for a, b in zip(processor, results.processor_seconds(), strict=True)]
    row["processor_seconds"], row["stolen_seconds"] = (round(seconds, 2) for seconds in used)
    if done.returncode:
        raise AppsError(
            f"{cell}: exit status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"
        )
    try:
        row["own_seconds"] = round(app_programs.own_seconds(program, folder, done.stdout), 3)
        row["result"] = app_programs.result(program, folder, done.stdout)
    except ValueError as error:
        raise AppsError(f"{cell}: {error}\n{(done.stdout + done.stderr)[-2000:]}") from None
    row["nic_bytes"] = sum(hosts.sent_bytes()) - nics if hosts else 0
    row["load"] = round(load, 2)
    return row, folder


def run_kind(cell: Cell, hosts: Hosts | None, kind: str, words: list[str]) -> dict[str, Any]:
    if kind == "plain":
        return run(cell, hosts, [])[0]
    report = BUILD / "report.json"
    report.unlink(missing_ok=True)
    tool = str(Path(sys.executable).parent / "wirepress")
    row, _ = run(cell, hosts, [tool, "run", "--quiet", "--report", str(report), *words, "--"])
    said = json.loads(report.read_text())
    if said["state"] != "on":
        raise AppsError(f"{cell}: wirepress was off: {said.get('reason', 'it did not say why')}")
    totals = said["totals"]
    return row | {"raw_bytes": totals["raw_bytes"], "wire_bytes": totals["wire_bytes"]}


@contextlib.contextmanager
def place(link: str) -> Iterator[Hosts | None]:
    if link == "shm":
        yield None
        return
    with Hosts(2, LINKS[link]) as hosts:
        yield hosts


def measure(
    cell: Cell, hosts: Hosts | None, options: argparse.Namespace, progress: Progress
) -> list[dict[str, Any]]:
    """Pairs of runs. The results of all must be one.

    Raises:
        AppsError: a run failed, or computed something else.
    """
    rows: list[dict[str, Any]] = []
    for pair in range(1, options.pairs + 1):
        for kind in ("plain", "wirepress") if pair % 2 else ("wirepress", "plain"):
            progress.step(f"{cell}, pair {pair}, {kind}")
            row = run_kind(cell, hosts, kind, options.wirepress)
            about = {"link": cell.link, "ranks": cell.ranks, "pair": pair, "kind": kind}
            if options.wirepress and kind == "wirepress":
                about["options"] = options.wirepress
            rows.append(about | row)
            if row["result"] != rows[0]["result"]:
                raise AppsError(
                    f"{cell}, pair {pair}, {kind}: other results than the first run "
                    f"({cell.program.compared})"
                )
    return rows


# ---- raw results ----


def raw_file(program: Program, folder: Path) -> Path:
    return folder / f"{program.name}.json"


def read_rows(program: Program, folder: Path) -> list[dict[str, Any]]:
    path = raw_file(program, folder)
    return json.loads(path.read_text())["rows"] if path.exists() else []


def keep(cell: Cell, rows: list[dict[str, Any]], folder: Path) -> None:
    """Rows of this cell in the place of those that were there."""
    others = [
        row
        for row in read_rows(cell.program, folder)
        if (row["link"], row["ranks"]) != (cell.link, cell.ranks)
    ]
    merged = sorted(
        others + rows, key=lambda row: (list(LINKS).index(row["link"]), row["ranks"], row["pair"])
    )
    about = {
        "program": cell.program.title,
        "packages": list(cell.program.packages),
        "compared": cell.program.compared,
        "rows": merged,
    }
    results.write(cell.program.name, about, raw_file(cell.program, folder))


# ---- the page ----


@dataclass
class Summary:
    """What the pairs of one cell say."""

    program: str
    link: str
    ranks: int
    plain: float  # seconds, median
    ratios: list[float]  # plain / wirepress, by wall time, of each pair
    own_ratios: list[float]  # by the program's timer
    processor_ratios: list[float]  # by the processor time of the machine; empty if not measured
    nic: float  # plain / wirepress
    reported: float  # raw / wire bytes of the report
    load: float  # the highest

    @property
    def quiet(self) -> bool:
        return self.load <= QUIET

    @property
    def place(self) -> str:
        return f"one host x {self.ranks}" if self.link == "shm" else f"2 x {self.ranks}"


def summary(program: str, rows: list[dict[str, Any]]) -> Summary:
    pairs = sorted({row["pair"] for row in rows})
    of = {(row["pair"], row["kind"]): row for row in rows}
    plain = [of[pair, "plain"] for pair in pairs]
    pressed = [of[pair, "wirepress"] for pair in pairs]

    def ratios(key: str) -> list[float]:
        return [a[key] / max(b[key], 1e-3) for a, b in zip(plain, pressed, strict=True)]

    sent = sum(row["nic_bytes"] for row in pressed)
    wire = sum(row["wire_bytes"] for row in pressed)
    return Summary(
        program,
        rows[0]["link"],
        rows[0]["ranks"],
        median(row["seconds"] for row in plain),
        ratios("seconds"),
        ratios("own_seconds"),
        ratios("processor_seconds") if all("processor_seconds" in row for row in rows) else [],
        sum(row["nic_bytes"] for row in plain) / sent if sent else 1,
        sum(row["raw_bytes"] for row in pressed) / wire if wire else 1,
        max(row["load"] for row in rows),
    )


def summaries(folder: Path) -> list[Summary]:
    found = []
    for program in PROGRAMS.values():
        cells: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in read_rows(program, folder):
            cells.setdefault((row["link"], row["ranks"]), []).append(row)
        found += [summary(program.name, rows) for rows in cells.values()]
    return found


def spread(ratios: list[float]) -> str:
    if not ratios:
        return "-"
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def table(found: list[Summary]) -> str:
    lines = [
        "| program | hosts x ranks | link | plain s | times as fast, whole run | by its own timer "
        "| by processor time | NIC: times fewer bytes | report says | load |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for s in found:
        # Times of a machine that did something else would be read as results.
        times = ["-"] * 4
        if s.quiet:
            times = [f"{s.plain:.1f}", *map(spread, (s.ratios, s.own_ratios, s.processor_ratios))]
        nic = f"{s.nic:.2f}" if s.link != "shm" else "-"
        lines.append(
            f"| {s.program} | {s.place} | {LINK_NAMES[s.link]} | {' | '.join(times)} | {nic} | "
            f"{s.reported:.2f} | {s.load:.0f} |"
        )
    return "\n".join(lines)


def draw(found: list[Summary], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    links = [link for link in LINKS if any(s.link == link for s in found)]
    names = [name for name in PROGRAMS if any(s.program == name for s in found)]
    figure, axes = plt.subplots(
        1, len(links), figsize=(3.1 * len(links), 3.6), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis, link in zip(axes[0], links, strict=True):
        axis.axvline(1, color="0.6", linewidth=1)
        for s in (s for s in found if s.link == link):
            y = len(names) - names.index(s.program) + (0.12 if s.ranks == 1 else -0.12)
            color = "tab:blue" if s.ranks == 1 else "tab:orange"
            axis.plot([min(s.ratios), max(s.ratios)], [y, y], color=color, linewidth=1.5)
            axis.plot(median(s.ratios), y, "o", color=color, markersize=5)
        axis.set_title(LINK_NAMES[link], fontsize=9)
        axis.set_xlabel("times as fast (whole run)", fontsize=8)
        axis.tick_params(labelsize=8)
    axes[0][0].set_yticks([len(names) - i for i in range(len(names))], names)
    handles = [
        plt.Line2D([], [], marker="o", color=color, label=label)
        for color, label in (("tab:blue", "1 rank a host"), ("tab:orange", "2 ranks a host"))
    ]
    figure.legend(handles=handles, fontsize=8, loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write_page(folder: Path, page: Path, picture: Path) -> None:
    found = summaries(folder)
    if not found:
        return
    text, quiet = table(found), [s for s in found if s.quiet]
    try:
        if quiet:
            draw(quiet, picture)
            text += f"\n\n![Times as fast as plain, by program and link]({picture.name})"
    except ImportError:
        print("apps: no picture: pip install matplotlib", file=sys.stderr)
    results.put(page, "times", text, NEW_PAGE)


# ---- the command ----


def get_packages(programs: list[Program]) -> list[Program]:
    """The programs that are there, after an attempt to install those that are not."""
    absent = [p for p in programs if p.missing()]
    packages = [package for p in absent for package in p.packages]
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        # It says how much is to be downloaded before it does.
        subprocess.run([str(ROOT / "scripts" / "setup"), "packages", *packages])
    for program in absent:
        if program.missing():
            print(
                f"apps: {program.title.split(',')[0]} is not installed, so it is left out: "
                f"sudo apt-get install --no-install-recommends {' '.join(program.packages)}",
                file=sys.stderr,
            )
    return [p for p in programs if not p.missing()]


def cells_of(options: argparse.Namespace, programs: list[Program]) -> list[Cell]:
    cells = []
    for link in options.link:
        for program in programs:
            # On one host: as many ranks as two hosts have of one each.
            ranks = [2] if link == "shm" else options.ranks
            cells += [Cell(program, link, n) for n in ranks]
    return cells


def several(known: list[str]) -> Any:
    def parse(text: str) -> list[str]:
        words = text.split(",")
        for word in words:
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(known)}")
        return words

    return parse


def at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def numbers(text: str) -> list[int]:
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or any(n not in (1, 2) for n in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not 1, 2 or 1,2")
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make apps",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--program", type=several(list(PROGRAMS)), default=list(PROGRAMS),
                        metavar="NAME,...", help=f"of {', '.join(PROGRAMS)} (all)")  # fmt: skip
    parser.add_argument("--link", type=several(list(LINKS)), default=list(LINKS),
                        metavar="RATE,...", help=f"of {', '.join(LINKS)} (all)")  # fmt: skip
    parser.add_argument("--ranks", type=numbers, default=[1, 2], metavar="N,...",
                        help="ranks of each of the two hosts: 1, 2 or 1,2 (1,2)")  # fmt: skip
    parser.add_argument("--pairs", type=at_least_one, default=3, metavar="N",
                        help="pairs of runs in each place (3)")  # fmt: skip
    parser.add_argument("--wirepress", action="append", default=[], metavar="OPTION",
                        help="an option of `wirepress run`")  # fmt: skip
    parser.add_argument("--raw", type=Path, default=FOLDER, metavar="FOLDER",
                        help="raw results (bench/results/apps, of which is the page)")  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--trace", action="store_true", help="what the programs send")
    what.add_argument("--predict", action="store_true", help="simulated times beside measured ones")
    what.add_argument("--page", action="store_true", help="only the table and the picture")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.page:
        write_page(options.raw, PAGE, PICTURE)
        return 0
    if not shutil.which("mpirun.openmpi"):
        print("apps: Open MPI is not installed: sudo apt-get install openmpi-bin", file=sys.stderr)
        return 2
    if reason := why_not():
        print(f"apps: only on one host, since there can be no others: {reason}", file=sys.stderr)
        options.link = [link for link in options.link if link == "shm"]
    programs = get_packages([PROGRAMS[name] for name in options.program])
    if options.trace or options.predict:
        import app_traces

        return app_traces.main(options, programs)
    cells = cells_of(options, programs)
    progress = Progress(2 * options.pairs * len(cells), options.quiet)
    failed = []
    for link in options.link:
        with place(link) as hosts:
            for cell in (cell for cell in cells if cell.link == link):
                try:
                    keep(cell, measure(cell, hosts, options, progress), options.raw)
                except AppsError as error:
                    progress.close()
                    print(f"apps: {error}", file=sys.stderr)
                    failed.append(str(cell))
    progress.close()
    print(table(summaries(options.raw)))
    if options.raw == FOLDER:
        write_page(FOLDER, PAGE, PICTURE)
    if not cells:
        print("apps: nothing was run", file=sys.stderr)
        return 2
    for cell in failed:
        print(f"apps: FAILED: {cell}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
