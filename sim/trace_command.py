# SPDX-License-Identifier: Apache-2.0
"""`wirepress trace`: records what an MPI job calls, shows it, and writes it in other formats.

The interposer does the recording (spec/trace.md); `run` does the launching.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepress import units
from wirepress.commands import files, paths, show
from wirepress.commands.needs import need
from wirepress.errors import WirepressError
from wirepress.launch import job_report, run
from wirepress.sim import plan

if TYPE_CHECKING:  # needs NumPy, which recording does not
    from wirepress.sim.trace_reader import Job

FORMATS = ("simgrid-ti", "chrome", "csv")


def _read(args: argparse.Namespace, what: str) -> Job:
    need("numpy", what)
    from wirepress.sim import trace_reader

    return trace_reader.read(args.traces, args.partial)


# ---- recording ------------------------------------------------------------------------------


def _sort_jobs(folder: Path, jobs: list[Any]) -> list[Path]:
    """One folder a job: those of a script's second job and so on into folders of their own."""
    folders = [folder][: len(jobs)]
    for i, job in enumerate(jobs[1:], 2):
        into = folder / f"job-{i}"
        into.mkdir(exist_ok=True)
        for path in folder.glob(f"{job.cookie[:8]}-*.wpt"):
            path.rename(into / path.name)
        folders.append(into)
    return folders


def _summary(folder: Path) -> str:
    try:
        from wirepress.sim import trace_export, trace_reader

        job = trace_reader.read(folder, partial=True)
    except ImportError:
        return f"{folder}: written"
    except (WirepressError, OSError) as error:
        return str(error)
    bytes_ = sum(rank.path.stat().st_size for rank in job.ranks)
    n = sum(len(rank.records) for rank in job.ranks)
    cut = [str(rank.rank) for rank in job.ranks if not rank.whole]
    rows = [r for r in trace_export.by_call(job) if r["call"] not in ("tracer", "completion")]
    seconds = max(job.seconds, 1e-9)
    inside = sum(row["seconds"] for row in rows) / seconds
    most = ", ".join(f"{r['call']} {r['seconds'] / seconds:.0%}" for r in rows[:3])
    return (
        f"{folder}: {job.n_ranks} ranks, {units.seconds(job.seconds)}, {n:,} records in "
        f"{units.size(bytes_)}; in MPI {inside:.0%} of the time"
        + (f" ({most})" if most else "")
        + (f"; rank {', '.join(cut[:8])} ended before the trace did" if cut else "")
    )


def _conclude(args: argparse.Namespace, rendezvous: Any, header: dict[str, Any]) -> None:
    jobs = rendezvous.jobs
    for i, job in enumerate(jobs or [None], 1):
        if job is None or job.state != "on":
            said = job_report.summary(job, header["exit_code"])
            said = said.replace("nothing was compressed", "nothing was traced")
            run.say(f"job {i}: {said}" if len(jobs) > 1 else said)
    on = [job for job in jobs if job.state == "on"]
    for folder, job in zip(_sort_jobs(Path(args.mpi_trace), on), on, strict=True):
        for rank in sorted(job.reports):
            if problem := (job.reports[rank].get("trace") or {}).get("problem"):
                run.say(f"rank {rank}: {problem}")
        if not args.quiet:
            run.say(_summary(folder))


def _record(args: argparse.Namespace, command: list[str]) -> int:
    folder = Path(args.output).absolute()
    if folder.exists() and not folder.is_dir():
        raise files.UsageError(f"-o: {folder} is not a folder")
    if folder.is_dir() and any(folder.glob("*.wpt")):
        raise files.UsageError(f"-o: {folder} holds a trace; give another folder")
    args.mpi_trace = str(folder)
    args.mpi_trace_sample = args.sample and str(round(args.sample))
    args.mpi_compress = "on" if args.compress else "off"
    args.explain, args.report = False, None
    return run.start(args, command, _conclude)


# ---- show and export ------------------------------------------------------------------------


def _per_rank(job: Job) -> list[dict[str, Any]]:
    from wirepress.sim import trace_calls

    made, _ = trace_calls.workload(job)
    rows = []
    for rank, program in zip(job.ranks, made.programs, strict=True):
        rows.append(
            {
                "rank": rank.rank,
                "host": rank.meta["host"],
                "records": len(rank.records),
                "threads": len(set(rank.threads.tolist())),
                "compute_seconds": sum(c.seconds for c in program if c.op == "compute"),
                "samples": len(rank.samples),
                "whole": rank.whole,
            }
        )
    return rows


def _show(args: argparse.Namespace) -> int:
    job = _read(args, "trace show")
    from wirepress.sim import trace_calls, trace_export

    calls = trace_export.by_call(job)
    ranks = _per_rank(job)
    _, left = trace_calls.workload(job)
    meta = job.ranks[0].meta
    if args.json:
        show.print_json(
            {"job": job.ranks[0].job.hex(), "command": meta["command"], "mpi": meta["mpi"],
             "codec": meta["codec"], "nodes": job.nodes, "seconds": job.seconds,
             "clock_error_seconds": job.clock_error, "ranks": ranks, "calls": calls,
             "not_simulated": dict(left.counts)}
        )  # fmt: skip
        return 0
    print(f"{meta['command']}  ({meta['mpi']})")
    print(
        f"{job.n_ranks} ranks on {len(set(job.nodes))} nodes, {units.seconds(job.seconds)}, clocks "
        f"equal to {units.seconds(job.clock_error)}, "
        + ("messages raw" if meta["codec"] is None else f"messages by {meta['codec']}")
        + "\n"
    )
    cells = [
        (row["call"], f"{row['count']:,}", units.size(row["sent"]), units.size(row["received"]),
         units.seconds(row["seconds"]), f"{row['seconds'] / max(job.seconds, 1e-9):.1%}")
        for row in calls
    ]  # fmt: skip
    head = ("call", "count", "sent", "received", "mean rank", "of the time")
    print(show.table(cells, head, right=head[1:]))
    cells = [
        (row["rank"], row["host"], f"{row['records']:,}", row["threads"],
         units.seconds(row["compute_seconds"]), row["samples"], "" if row["whole"] else "cut")
        for row in ranks[: args.rows]
    ]  # fmt: skip
    head = ("rank", "host", "records", "threads", "computing", "samples", "")
    print("\n" + show.table(cells, head, right=("rank", *head[2:6])))
    if len(ranks) > args.rows:
        print(f"{len(ranks) - args.rows} more: --rows {len(ranks)} shows all")
    if left.counts:
        print(f"\nnot simulated: {left}")
    return 0


def _export(args: argparse.Namespace) -> int:
    job = _read(args, "trace export")
    from wirepress.sim import calls, trace_calls, trace_export

    if args.format == "simgrid-ti":
        if not args.output or args.output == "-":
            raise files.UsageError("simgrid-ti is a folder of files: give it by -o")
        made, left = trace_calls.workload(job, args.eager)
        folder = Path(args.output)
        folder.mkdir(parents=True, exist_ok=True)
        calls.write_ti(made, folder)
        if left.counts:
            run.say(f"left out: {left}")
        return 0
    write = trace_export.write_chrome if args.format == "chrome" else trace_export.write_csv
    if args.output and args.output != "-":
        with paths.open_output(args.output, force=True) as raw:
            import io

            with io.TextIOWrapper(raw, encoding="utf-8", write_through=True) as file:
                write(job, file)
    else:
        write(job, sys.stdout)
    return 0


# ---- the command ----------------------------------------------------------------------------


def _inner(prog: str, sentence: str, examples: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"wirepress trace {prog}",
        description=sentence,
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "traces", nargs="+", metavar="TRACE", help="folder of a job's traces, or its files"
    )
    parser.add_argument(
        "--partial", action="store_true", help="of ranks that were killed, read what is whole"
    )
    return parser


def _show_parser() -> argparse.ArgumentParser:
    parser = _inner(
        "show",
        "Says what a job called, how long that took, and what its ranks did.",
        "  wirepress trace show wirepress-trace\n  wirepress trace show --json --partial t/\n",
    )
    parser.add_argument("--rows", type=int, default=16, metavar="N", help="ranks shown (16)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _export_parser() -> argparse.ArgumentParser:
    parser = _inner(
        "export",
        "Writes a trace in another format: SimGrid's time-independent traces (a folder, for "
        "smpirun -replay), Chrome's trace format (for Perfetto and chrome://tracing), or CSV.",
        "  wirepress trace export t/ --format chrome -o t.json     open it in ui.perfetto.dev\n"
        "  wirepress trace export t/ --format simgrid-ti -o ti/\n"
        "  wirepress trace export t/ --format csv | head\n",
    )
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("-o", "--output", metavar="OUT", help="file or folder (stdout)")
    parser.add_argument(
        "--eager", type=plan.quantity("size"), default=64 << 10, metavar="SIZE",
        help="simgrid-ti: sends up to it do not wait for their receives (64KiB)",
    )  # fmt: skip
    return parser


_INNER = {"show": (_show_parser, _show), "export": (_export_parser, _export)}


def main(args: argparse.Namespace) -> int:
    words = args.command
    if words and words[0] in _INNER:
        make, handler = _INNER[words[0]]
        return handler(make().parse_args(words[1:]))
    command = words[1:] if words[:1] == ["--"] else words
    if not command:
        raise files.UsageError(
            "give the launcher and its arguments after --, as in: wirepress trace -- mpirun ...; "
            "or show, or export"
        )
    return _record(args, command)


def add_parser(parsers: Any) -> None:
    parser = parsers.add(
        "trace",
        "record what an MPI job calls; show it, or export it (simgrid-ti, chrome, csv)",
        main,
        "  wirepress trace -- mpirun -n 4 ./program             into wirepress-trace/\n"
        "  wirepress trace -o t --sample 64MiB -- mpirun -n 4 ./program\n"
        "  wirepress trace show t\n"
        "  wirepress trace export t --format chrome -o t.json\n"
        "  wirepress simulate t --link 10Gbps --engine fpga\n"
        "  wirepress plan --trace t --link 10Gbps\n",
    )
    parser.add_argument(
        "-o", "--output", default="wirepress-trace", metavar="DIR",
        help="folder, on every host (wirepress-trace)",
    )  # fmt: skip
    parser.add_argument(
        "--sample", type=plan.quantity("size"), metavar="SIZE",
        help="keep pieces of what is sent, so much of all ranks together: for ratios and speeds",
    )  # fmt: skip
    parser.add_argument(
        "--compress", action="store_true", help="trace while messages are compressed, as by run"
    )
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), help="as in run")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary at the end")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- LAUNCHER ...",
        help="or: show TRACE, export TRACE (each has --help)",
    )  # fmt: skip
