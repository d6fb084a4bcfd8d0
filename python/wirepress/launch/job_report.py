# SPDX-License-Identifier: Apache-2.0
"""What an MPI job reports: its file, the summary at the end of the run, and the explanation.

Fields are those of spec/report.md. Standard library only, as run.py, which uses it.
"""

from __future__ import annotations

import re
from typing import Any

if __package__:
    from .rendezvous import Job, ranges
else:
    from rendezvous import Job, ranges

VERSION = 1  # of the report (spec/report.md)


# What a packet has besides MPI's bytes: Ethernet, IPv4 and TCP with time stamps; InfiniBand's local
# route and base transport headers with a checksum.
PACKET_HEADERS = {"ethernet": 66, "infiniband": 24}
LEAST_OWN = 0.02  # of all bytes, to be worth a word
AGREEMENT, LEAST_DIFFERENCE = 0.01, 100_000  # from which a difference is said, in shares and bytes


def call_totals(jobs: list[Job]) -> dict[str, Any]:
    """Sums over all ranks and calls; the fields of a call are those of spec/report.md.

    `raw_bytes` and `wire_bytes` hold all that left the nodes: where MPI's connections say more than
    the calls do, `other_bytes` is the rest.
    """
    totals: dict[str, Any] = {
        "messages": 0,
        "compressed_messages": 0,
        "raw_bytes": 0,
        "wire_bytes": 0,
        "modelled_bytes": 0,
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
    other = other_bytes(jobs, totals)
    totals["other_bytes"] = other
    totals["raw_bytes"] += other
    totals["wire_bytes"] += other
    totals["ratio"] = totals["raw_bytes"] / totals["wire_bytes"] if totals["wire_bytes"] else 1.0
    totals["bypasses"] = bypasses
    return totals


def tcp_bytes(jobs: list[Job], field: str = "tcp_sent_bytes") -> int | None:
    """What ranks gave to TCP connections to other hosts; None: not all of them say."""
    total = 0
    for job in jobs:
        said = [(rank.get("network") or {}).get(field) for rank in job.reports.values()]
        if None in said or len(said) < job.size:
            return None
        total += sum(said)
    return total


def other_bytes(jobs: list[Job], totals: dict[str, Any]) -> int:
    """What the connections carried besides the bytes of calls: MPI's own headers, one-sided
    messages, files, and what its collectives send more, or less, than the model has."""
    sent = tcp_bytes(jobs)
    own = totals["wire_bytes"] - totals["modelled_bytes"]
    # Where MPI has another way between hosts, connections carry next to nothing of its messages.
    if not sent or sent < own:
        return 0
    return sent - totals["wire_bytes"]


def nic_bytes(jobs: list[Job]) -> dict[str, Any] | None:
    """What the NICs of all hosts sent while the jobs ran; None: no host said."""
    found: dict[str, Any] = {"nic_bytes": 0, "nic_packets": 0, "nic_payload_bytes": 0, "hosts": 0}
    for rank in (rank for job in jobs for rank in job.reports.values()):
        nics = (rank.get("network") or {}).get("nics")
        found["hosts"] += bool(nics)
        for nic in nics or []:
            header = PACKET_HEADERS["infiniband" if nic.get("infiniband") else "ethernet"]
            found["nic_bytes"] += nic["sent_bytes"]
            found["nic_packets"] += nic["sent_packets"]
            found["nic_payload_bytes"] += nic["sent_bytes"] - header * nic["sent_packets"]
    return found if found["hosts"] else None


def network(jobs: list[Job]) -> dict[str, Any]:
    """What was counted beside what the kernel saw (spec/report.md)."""
    totals, tcp = call_totals(jobs), tcp_bytes(jobs)
    nics = nic_bytes(jobs)
    return {
        "counted_bytes": totals["wire_bytes"],
        "tcp_bytes": tcp,
        "resent_bytes": tcp_bytes(jobs, "tcp_resent_bytes"),
        **(nics or {}),
        "difference": difference(totals, nics, jobs),
    }


def difference(totals: dict[str, Any], nics: dict[str, Any] | None, jobs: list[Job]) -> str:
    """A clause that says where NICs and count differ, and by what; "": they agree."""
    complete = all(len(job.reports) == job.size for job in jobs)
    # A job on one host has no reason to use a NIC, and all reason for others to do so.
    if nics is None or not complete or all(len(set(job.nodes)) < 2 for job in jobs):
        return ""
    counted, seen = totals["wire_bytes"], nics["nic_payload_bytes"]
    resent = tcp_bytes(jobs, "tcp_resent_bytes") or 0
    enough = max(AGREEMENT * counted, LEAST_DIFFERENCE)
    if abs(seen - counted) <= enough:
        return ""
    if abs(seen - counted - resent) <= enough:
        why = f"TCP sent {resent / 1e6:,.1f} MB again"
    elif seen < counted:
        why = "MPI has a way between hosts that these counters do not see"
        if totals["modelled_bytes"] > counted - seen:
            why += f", or its collectives took less than the {megabytes(totals)} of the model"
    elif totals["other_bytes"]:
        why = "the rest is not of the ranks' connections: launcher, files, other programs"
    else:
        why = "MPI's own headers and messages, or other programs of these hosts"
        if totals["modelled_bytes"] > AGREEMENT * counted:
            why = f"MPI's collectives take more than the {megabytes(totals)} of the model, {why}"
    share = less_or_more(counted, seen)
    return f"the NICs carried {max(seen, 0) / 1e6:,.1f} MB besides packet headers, {share}: {why}"


def megabytes(totals: dict[str, Any]) -> str:
    return f"{totals['modelled_bytes'] / 1e6:,.1f} MB"


def less_or_more(counted: int, seen: int) -> str:
    if seen > 3 * counted:
        return f"{(seen - counted) / 1e6:,.1f} MB more"
    share = abs(seen - counted) / counted
    return f"{100 * share:.{1 if share < 0.1 else 0}f} % {'more' if seen > counted else 'less'}"


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
        "network": network([job]),
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
    if (own := own_bytes(jobs)) > LEAST_OWN * t["wire_bytes"]:
        parts.append(f"{own / 1e6:,.1f} MB of that were sent to measure the links and to agree")
    if engine := engine_summary(jobs):
        parts.append(engine)
    if clause := difference(t, nic_bytes(jobs), jobs):
        parts.append(clause)
    if errors := allowed_errors(jobs):
        parts.append(
            f"floats were allowed to differ ({', '.join(errors)}): compare the results with those "
            "of a run without --error (--verify does), above all of iterative solvers"
        )
    if missing:
        parts.append(f"{missing} of {ranks} ranks did not report")
    return "; ".join(parts)


def engine_bytes(job: Job) -> list[tuple[str, int, int]]:
    """Call, raw bytes that a device coded and expanded, and those that the cores did for it."""
    sums: dict[str, tuple[int, int]] = {}
    for report in job.reports.values():
        for name, call in (report.get("calls") or {}).items():
            device, cores = sums.get(name, (0, 0))
            device += call.get("device_bytes", 0)
            sums[name] = (device, cores + call.get("cores_bytes", 0))
    return [(name, *both) for name, both in sums.items() if any(both)]


def engine_summary(jobs: list[Job]) -> str:
    """What the device of option `engine` took; "": none was named."""
    reports = [report for job in jobs for report in job.reports.values()]
    said = [report["engine"] for report in reports if "engine" in report]
    if not said:
        return ""
    refusals = sorted({engine["refusal"] for engine in said} - {""})
    rows = [row for job in jobs for row in engine_bytes(job)]
    device, cores = sum(row[1] for row in rows), sum(row[2] for row in rows)
    text = f"{said[0]['name']} did {device / 1e6:,.1f} MB, the cores {cores / 1e6:,.1f} MB for it"
    return "; ".join([text, *(f"{why}: the cores did all" for why in refusals)])


def engine_lines(job: Job) -> list[str]:
    """Bytes by call, then the states of the ranks' devices with the reasons, each once."""
    lines = [
        f"{name}: {device / 1e6:,.1f} MB by the device, {cores / 1e6:,.1f} MB by the cores for it"
        for name, device, cores in engine_bytes(job)
    ]
    for rank in sorted(job.reports):
        if engine := job.reports[rank].get("engine"):
            said = engine["state"] or f"{engine['refusal']}; the cores do its jobs"
            lines.append(f"rank {rank}, {engine['name']}: {said}")
    return lines if len(lines) <= MOST_SITES else [*lines[:MOST_SITES], "and more: see the report"]


def own_bytes(jobs: list[Job]) -> int:
    """What ranks sent to other nodes for wirepress's sake alone."""
    calls = [report.get("calls") or {} for job in jobs for report in job.reports.values()]
    return sum(call.get("wirepress", {}).get("wire_bytes", 0) for call in calls)


def allowed_errors(jobs: list[Job]) -> list[str]:
    """The bounds in force, such as rel:1e-3; none where nothing may be lost."""
    reports = [report for job in jobs for report in job.reports.values()]
    said = {(report.get("options") or {}).get("mpi_error") for report in reports}
    return sorted(said - {None, "", "none"})


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


OPERATOR = re.compile(r"\boperator(\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|<|>)")
FORTRAN = re.compile(r"__(\w+)_MOD_(\w+)")
OPENING, CLOSING = "<([", ">)]"


def short_name(function: str) -> str:
    """A function as one would say it: without arguments, return type and what is in < >."""
    if module := FORTRAN.fullmatch(function):
        return f"{module[1]}::{module[2]}"
    kept: list[str] = []  # operators, whose signs are no brackets

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    text = OPERATOR.sub(keep, function.replace("(anonymous namespace)", "{anonymous}"))
    depth, name = 0, ""
    for letter in text:
        if letter in OPENING:
            name += "<>" if letter == "<" and depth == 0 else ""
            depth += 1
        elif letter in CLOSING and depth:
            depth -= 1
        elif depth == 0:
            name += letter
    name = re.sub(r"( (const|volatile|&&?|noexcept))+$", "", name.strip())
    # A template's return type stands in front, and names have no blank but in an operator's.
    if "operator" not in name:
        name = name.split(" ")[-1]
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], name)


def explanation(job: Job) -> list[str]:
    """Where in the program the bytes came from, what was done with them, and why."""
    sites = call_sites(job)
    if not sites:
        return ["no messages that could be compressed left a host", *engine_lines(job)]
    lines = [f"{'MB':>10} {'sent as':>10} {'messages':>9} {'shrunk':>7}  call, data, caller"]
    for site in sites[:MOST_SITES]:
        where = short_name(site.get("function") or "") or site.get("caller") or "?"
        lines.append(
            f"{site['raw_bytes'] / 1e6:>10,.1f} {site['wire_bytes'] / 1e6:>10,.1f} "
            f"{site['messages']:>9,} {site['compressed_messages']:>7,}  {site['call']}, "
            f"{site['type']} from {site['bytes_from']:,} bytes, {where}"
        )
        lines.append(f"{'':>12}{site['choice']}: {site['why']}")
    if (more := len(sites) - MOST_SITES) > 0:
        lines.append(f"and {more} more {'site' if more == 1 else 'sites'}: see the report")
    contests = job.reports[min(job.reports)].get("contests") or []
    for contest in contests:
        winner = "MPI's own" if contest["winner"] == "plain" else "wirepress's"
        plain, own = 1e3 * contest["plain_seconds"], 1e3 * contest["own_seconds"]
        lines.append(
            f"{contest['call']} of {contest['type']} from {contest['bytes_from']:,} bytes on "
            f"{contest['ranks']} ranks: {winner} algorithm ({plain:.3g} ms MPI's, {own:.3g} ms "
            "wirepress's)"
        )
    return [*lines, *engine_lines(job)]
