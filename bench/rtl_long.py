#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long forms of tests of the FPGA cores, by seeds; the pages say which ran.

    bench/rtl_long.py zfp|zstd SEED... [--build BUILD]

runs tests/unit_tests of the build once for each seed, and adds what came of it to
bench/results/rtl_long.json. A seed that ran before is replaced. Ends with status 1 where one
failed, or did not run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import results

BUILD = results.ROOT / "build" / "dev"
RAW = results.FOLDER / "rtl_long.json"
TESTS = {
    "zfp": ("ZfpCore.DISABLED_Long", 1_000_000),
    "zstd": ("Zstd.DISABLED_ManyParameterSets", 10_000),
}
WHAT = {
    "zfp": "cells of fields, noise and random words, in all modes and dimensions",
    "zstd": "frames, each of random parameters of libzstd",
}


def passed(build: Path, test: str, seed: int) -> bool:
    command = [build / "tests" / "unit_tests", "--gtest_also_run_disabled_tests",
               f"--gtest_filter={test}", "--gtest_shuffle",
               f"--gtest_random_seed={seed}"]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return done.returncode == 0 and "[  PASSED  ] 1 test." in done.stdout


def all_rows() -> list[dict[str, Any]]:
    return list(json.loads(RAW.read_text())["rows"]) if RAW.exists() else []


def ran(kind: str, what: str) -> str:
    """What a page says of them: how many, with which seeds, and those that failed."""
    rows = [row for row in all_rows() if row["kind"] == kind]
    seeds = ", ".join(str(row["seed"]) for row in rows if row["passed"])
    failed = ", ".join(str(row["seed"]) for row in rows if not row["passed"])
    count = sum(row["count"] for row in rows if row["passed"])
    text = (
        f"{what}: {count:,} {WHAT[kind]}, with the seeds {seeds or 'none'}"
        + (f"; the seeds {failed} failed" if failed else "")
        + f" (`python3 bench/rtl_long.py {kind} SEED...`,"
    )
    return textwrap.fill(text, 100) + "\n[raw](../bench/results/rtl_long.json)).\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=TESTS)
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--build", type=Path, default=BUILD, help="build/dev by default")
    args = parser.parse_args()
    test, count = TESTS[args.kind]
    found = {(row["kind"], row["seed"]): row for row in all_rows()}
    good = True
    for seed in args.seeds:
        row = {"kind": args.kind, "test": test, "seed": seed, "count": count,
               "passed": passed(args.build, test, seed)}  # fmt: skip
        good = good and row["passed"]
        found[args.kind, seed] = row
        results.write("rtl_long", {"rows": [found[key] for key in sorted(found)]})
        print(re.sub(r"\s+", " ", str(row)), flush=True)
    if not good:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
