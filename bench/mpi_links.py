#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What jobs take the rate of their links for, and what finding it out costs.

A job that does nothing (mpi_start.c) on hosts joined at known rates (tests/net, needs root), plain
and under `wirepress run`, in turns. A row gives, of the jobs in one place, the rates that they
found, how many are within a tenth, the seconds that a job takes longer, and the bytes that the NICs
sent. `--load N` runs N loops beside them that take what processor time they get.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import results
from mpi_pingpong import FLAVOURS, ROOT, environment, mpi_version
from mpi_start import build

sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, bits_per_second, why_not

PAYLOAD = 0.95  # of a link's bits
CLOSE = 1.1
EXAMPLES = """\
examples:
  bench/mpi_links.py                                     0.2, 1, 2.5 Gb/s; three minutes
  bench/mpi_links.py --link 1gbit --hosts 4 --jobs 4 --load 6
"""


@contextlib.contextmanager
def load(n: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(hosts: Hosts, mpi: str, ranks: int, wirepress: list[str]) -> tuple[float, int]:
    """Seconds of a job, and the bytes that the NICs sent meanwhile."""
    command = hosts.on(0, [*wirepress, *hosts.mpirun(mpi, ranks), str(build(mpi))])
    sent, start = sum(hosts.sent_bytes()), time.perf_counter()
    done = subprocess.run(
        command, env=environment(None), capture_output=True, text=True, timeout=300
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"mpi_links: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return seconds, sum(hosts.sent_bytes()) - sent


def measure(hosts: Hosts, rate: str, mpi: str, ranks: int, jobs: int) -> dict[str, Any]:
    found, added, sent = [], [], []
    tool = str(Path(sys.executable).parent / "wirepress")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [tool, "run", "--quiet", "--report", str(report), "--"]
        for _ in range(jobs):
            plain, _ = run(hosts, mpi, ranks, [])
            seconds, n_bytes = run(hosts, mpi, ranks, words)
            rank = json.loads(report.read_text())["ranks"][0]
            found.append(round(8e-9 * ranks * rank["link_bytes_per_second"] / PAYLOAD, 3))
            added.append(seconds - plain)
            sent.append(n_bytes)
    true = 1e-9 * bits_per_second(rate)
    right = sum(max(value / true, true / max(value, 1e-9)) < CLOSE for value in found)
    return {
        "link": rate,
        "hosts": hosts.n,
        "ranks": ranks,
        "mpi": mpi_version(mpi),
        "jobs": jobs,
        "right": right,
        "gbps": {str(value): n for value, n in sorted(Counter(found).items())},
        "added_seconds": round(median(added), 3),
        "nic_bytes": round(median(sent)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--link", nargs="+", default=["200mbit", "1gbit", "2.5gbit"])
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], help="of each host")
    parser.add_argument("--jobs", type=int, default=6, help="in each place (6)")
    parser.add_argument("--load", type=int, default=0, help="loops that take processor time (0)")
    parser.add_argument("--output", type=Path, help="(bench/results/mpi_links.json)")
    args = parser.parse_args()
    if reason := why_not():
        print(f"mpi_links: {reason}", file=sys.stderr)
        return 2
    rows = []
    with load(args.load):
        for rate in args.link:
            for n in args.hosts:
                with Hosts(n, rate) as hosts:
                    for mpi in FLAVOURS:
                        for ranks in args.ranks:
                            row = measure(hosts, rate, mpi, ranks, args.jobs)
                            rows.append(row | {"load": args.load})
                            print(json.dumps(rows[-1]), flush=True)
    right, jobs = sum(row["right"] for row in rows), sum(row["jobs"] for row in rows)
    print(f"{right} of {jobs} jobs found the rate")
    path = results.write("mpi_links", {"right": right, "jobs": jobs, "rows": rows}, args.output)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
