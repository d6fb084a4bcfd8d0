# SPDX-License-Identifier: Apache-2.0
"""What an MPI job reports: its file, the summary at the end of the run, and the explanation.

Fields are those of spec/report.md. Standard library only, as run.py, which uses it.
"""

from __future__ import annotations

from typing import Any

if __package__:
    from .rendezvous import Job, ranges
else:
    from rendezvous import Job, ranges

VERSION = 1  # of the report (spec/report.md)


def call_totals(jobs: list[Job]) -> dict[str, Any]:
    """Sums over all ranks and calls; the fields of a call are those of spec/report.md."""
    totals: dict[str, Any] = {
        "messages": 0,
        "compressed_messages": 0,
        "raw_bytes": 0,
        "wire_bytes": 0,
        "compress_seconds": 0.0,
        "wait_seconds": 0.0,
        "decompress_seconds": 0.0,
    }
    bypasses: dict[str, int] = {}
    for report in (report for job in jobs for report in job.reports.values()):
        for call in (report.get("calls") or {}).values():
            for name in totals:
                totals[name] += call.get(name, 0)
            for reason, count in (call.get("bypasses") or {}).items():
                bypasses[reason] = bypasses.get(reason, 0) + count
    totals["ratio"] = totals["raw_bytes"] / totals["wire_bytes"] if totals["wire_bytes"] else 1.0
    totals["bypasses"] = bypasses
    return totals


def job_report(job: Job, header: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": VERSION,
        **header,
        "program": job.program,
        "state": job.state,
        "reason": job.reason,
        "size": job.size,
        "nodes": job.nodes,
        "totals": call_totals([job]),
        "ranks": [job.reports[rank] for rank in sorted(job.reports)],
    }


def summary(job: Job | None, exit_code: int) -> str:
    if job is None:
        if exit_code:
            return f"no rank reached MPI_Init with wirepress loaded (exit code {exit_code})"
        return "no rank loaded wirepress"
    if job.state == "off":
        # rank 0 said why, if it has the library
        return "nothing was compressed" if 0 in job.hellos else f"off: {job.reason}"
    return traffic([job])


def traffic(jobs: list[Job]) -> str:
    """What jobs that were on have reported."""
    missing, ranks = sum(job.size - len(job.reports) for job in jobs), sum(job.size for job in jobs)
    if missing == ranks:
        return "on, but no rank reached MPI_Finalize to report"
    t = call_totals(jobs)
    parts = [
        f"{t['messages']:,} messages, {t['raw_bytes'] / 1e6:,.1f} MB -> "
        f"{t['wire_bytes'] / 1e6:,.1f} MB ({t['ratio']:.2f}x)",
        f"ranks spent {t['compress_seconds']:.2f} s compressing, {t['wait_seconds']:.2f} s "
        f"waiting, {t['decompress_seconds']:.2f} s decompressing",
    ]
    if t["bypasses"]:
        counts = sorted(t["bypasses"].items(), key=lambda item: -item[1])
        parts.append("sent raw: " + ", ".join(f"{count:,} {reason}" for reason, count in counts))
    if missing:
        parts.append(f"{missing} of {ranks} ranks did not report")
    return "; ".join(parts)


MOST_JOBS = 8  # that have a line each


def summaries(jobs: list[Job], exit_code: int) -> list[str]:
    """The lines at the end of the run."""
    if len(jobs) < 2:
        return [summary(jobs[0] if jobs else None, exit_code)]
    lines = []
    if len(jobs) <= MOST_JOBS:
        for i, job in enumerate(jobs, 1):
            ranks = "1 rank" if job.size == 1 else f"{job.size} ranks"
            lines.append(f"job {i} ({job.program}, {ranks}): {summary(job, exit_code)}")
    on = [job for job in jobs if job.state == "on"]
    if on:
        lines.append(f"{len(on)} of {len(jobs)} jobs compressed: {traffic(on)}")
    off = [i for i, job in enumerate(jobs, 1) if job.state == "off"]
    for reason in sorted({jobs[i - 1].reason for i in off}) if len(jobs) > MOST_JOBS else []:
        numbers = [i for i in off if jobs[i - 1].reason == reason]
        word = "job" if len(numbers) == 1 else "jobs"
        lines.append(f"off: {word} {ranges(numbers)}: {reason}")
    if most := most_lone_ranks(jobs):
        lines.append(
            f"{most} ranks that one call of a launcher started took themselves for jobs of one "
            "rank each: that launcher and the program's MPI do not understand each other; take the "
            "mpirun of the program's MPI, or srun --mpi=pmix (Open MPI), srun --mpi=pmi2 (MPICH, "
            "Intel MPI); srun --mpi=list names what this Slurm has"
        )
    return lines


def most_lone_ranks(jobs: list[Job]) -> int:
    """The most jobs of one rank that came from one call of a launcher; 0 if none has several."""
    launches = [hello.job.split("/")[0] for job in jobs if job.size == 1
                for hello in job.hellos.values()]  # fmt: skip
    most = max((launches.count(launch) for launch in launches if launch != "-"), default=0)
    return most if most > 1 else 0


SITE_KEY = ("call", "caller", "function", "type", "bytes_from")
MOST_SITES = 12


def call_sites(job: Job) -> list[dict[str, Any]]:
    """The sites of all ranks and nodes, added up by caller, the largest first."""
    sites: dict[tuple[Any, ...], dict[str, Any]] = {}
    for rank in sorted(job.reports):
        for site in job.reports[rank].get("sites") or []:
            known = sites.setdefault(
                tuple(site.get(name) for name in SITE_KEY),
                {**site, "messages": 0, "compressed_messages": 0, "raw_bytes": 0, "wire_bytes": 0},
            )
            for name in ("messages", "compressed_messages", "raw_bytes", "wire_bytes"):
                known[name] += site.get(name, 0)
    return sorted(sites.values(), key=lambda site: -site["raw_bytes"])


def explanation(job: Job) -> list[str]:
    """Where in the program the bytes came from, what was done with them, and why."""
    sites = call_sites(job)
    if not sites:
        return ["no messages that could be compressed left a host"]
    lines = [f"{'MB':>10} {'sent as':>10} {'messages':>9} {'shrunk':>7}  call, data, caller"]
    for site in sites[:MOST_SITES]:
        where = site.get("function") or site.get("caller") or "?"
        lines.append(
            f"{site['raw_bytes'] / 1e6:>10,.1f} {site['wire_bytes'] / 1e6:>10,.1f} "
            f"{site['messages']:>9,} {site['compressed_messages']:>7,}  {site['call']}, "
            f"{site['type']} from {site['bytes_from']:,} bytes, {where}"
        )
        lines.append(f"{'':>12}{site['choice']}: {site['why']}")
    if more := len(sites) - MOST_SITES:
        lines.append(f"and {more} more sites: see the report")
    contests = job.reports[min(job.reports)].get("contests") or []
    for contest in contests:
        winner = "MPI's own" if contest["winner"] == "plain" else "wirepress's"
        plain, own = 1e3 * contest["plain_seconds"], 1e3 * contest["own_seconds"]
        lines.append(
            f"{contest['call']} of {contest['type']} from {contest['bytes_from']:,} bytes on "
            f"{contest['ranks']} ranks: {winner} algorithm ({plain:.3g} ms MPI's, {own:.3g} ms "
            "wirepress's)"
        )
    return lines
