#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`wirepress simulate` against reality: predicted and measured times of the same jobs.

Jobs: a wave with halo exchange and a language model by Allreduce (examples/, Open MPI), and a
training with DistributedDataParallel (gloo). Each is traced once on 2 and on 4 hosts (network
namespaces; needs root) whose links are not limited. Then the links are limited, `wirepress
calibrate` measures them, the trace is replayed with what it found, and the job runs there, without
and with a codec. What is compared: the seconds of the program's loop, or of a training step; the
middle of --runs counts. The codec's speed and ratio are measured on samples in the trace.

About ten minutes on two quiet cores; what is in bench/results/validate.json is not measured again
(--again), and --for SECONDS stops in time, to go on later. --predict replays the kept traces again
and measures nothing. Writes docs/results/validation.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import results
import torch_jobs
import trainings
from results import ROOT
from torch_jobs import Row

sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, why_not

from wirepress.sim import calibrate, models, plan, simulate, trace_calls, trace_reader
from wirepress.sim.calls import Call, Workload

KEPT = ROOT / "build" / "bench" / "validate"  # traces, and what calibrate found
RAW = results.FOLDER / "validate.json"
PAGE = ROOT / "docs" / "results" / "validation.md"
RATES = ("200mbit", "1gbit", "2.5gbit")
WANTED = {"median": 0.10, "worst": 0.25}
LIMIT = 150  # seconds of one run
SAMPLE = "64MiB"
WARM, STEPS = 3, 5  # training steps
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclasses.dataclass(frozen=True)
class Job:
    """`recipe`: the codec; `collective`: how its Allreduce goes, raw and with the codec."""

    name: str
    kind: str  # "mpi" or "torch"
    recipe: str
    collective: tuple[str, str] = ("ring", "ring")
    command: tuple[str, ...] = ()


def jobs(args: argparse.Namespace) -> list[Job]:
    model = str(ROOT / "examples" / "lm_mpi" / "lm_mpi.py")
    wave = (str(KEPT / "wave_mpi"), "--steps", "144", "--every", "16")
    language = (sys.executable, model, "--steps", "6", "--text", "1000000")
    found = [
        Job("wave", "mpi", "lz4", command=wave),
        Job("lm", "mpi", "lz4", ("openmpi", "ring"), language),
        Job("gpt", "torch", "int8"),
    ]
    if args.short:
        found = found[:1]
    if trainings.why_not():
        print(f"validate: gpt: {trainings.why_not()}", file=sys.stderr)
        found = [job for job in found if job.kind != "torch"]
    return [job for job in found if not args.jobs or job.name in args.jobs]


# ---- running ------------------------------------------------------------------------------------


def library() -> str:
    import wirepress

    path = Path(wirepress.__file__).parent / "lib" / "libwirepress_mpi_openmpi.so"
    if not path.exists():
        raise SystemExit(f"validate: {path} is not there: make setup")
    return str(path)


def run_mpi(hosts: Hosts, job: Job, settings: dict[str, str]) -> float:
    """Seconds that the program says its loop took."""
    words = ["env", *(f"{k}={v}" for k, v in settings.items())] if settings else []
    command = hosts.on(0, [*hosts.mpirun("openmpi", 1), *words, *job.command])
    done = subprocess.run(
        command, env=os.environ | ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT
    )
    said = re.search(r"^seconds (\S+)", done.stdout, re.M)
    if done.returncode or not said:
        raise SystemExit(f"validate: {job.name} failed:\n{done.stdout}{done.stderr}")
    return float(said[1])


def preload(**more: str) -> dict[str, str]:
    values = {f"WIREPRESS_MPI_{name.upper()}": value for name, value in more.items()}
    return {"LD_PRELOAD": library(), "WIREPRESS_MPI_TRUST": "1"} | values


def run_job(hosts: Hosts, job: Job) -> dict[bool, float]:
    """Seconds without and with the codec, one after the other."""
    if job.kind == "torch":
        work = {"model": job.name, "methods": ["plain", f"wp {job.recipe}"], "trace": ""}
        rows = torch_jobs.run(__file__, hosts, hosts.n, work, LIMIT)
        return {row["method"] != "plain": row["seconds"] for row in rows}
    coding = preload(codec=job.recipe, contest="off")
    return {coded: run_mpi(hosts, job, coding if coded else {}) for coded in (False, True)}


def record(hosts: Hosts, job: Job) -> None:
    """Traces the job where nothing limits the links."""
    folder = folder_of(job, hosts.n)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if job.kind == "torch":
        work = {"model": job.name, "methods": ["plain"], "trace": str(folder)}
        torch_jobs.run(__file__, hosts, hosts.n, work, LIMIT)
    else:
        run_mpi(hosts, job, preload(compress="off", trace=str(folder), trace_sample=SAMPLE))


def worker(job: Row) -> list[Row]:
    """A rank of a training."""
    return [{"method": method, "seconds": step_seconds(job, method)} for method in job["methods"]]


def step_seconds(job: Row, method: str) -> float:
    """Seconds of a step, on the slowest rank."""
    import torch
    import torch.distributed as dist
    import torch_steps
    from ddp_common import training

    import wirepress.torch

    task = trainings.task_type(job["model"])("small")
    trainer = training.Trainer(task, torch_steps.options_of(task, method, 10**6, True))
    tracer = None
    if job["trace"]:
        tracer = wirepress.torch.trace_buckets(trainer.ddp, job["trace"], sample=SAMPLE)
    for _ in range(WARM):
        trainer.step()
    dist.barrier()
    began = time.perf_counter()
    for _ in range(STEPS):
        trainer.step()
    slowest = torch.tensor((time.perf_counter() - began) / STEPS)
    if tracer:
        tracer.close()
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def calibration_of(hosts: Hosts, kind: str) -> dict[str, Any]:
    if kind == "mpi":
        launcher = hosts.on(0, hosts.mpirun("openmpi", 1))
        return calibrate.measure(launcher, 0.15, LIMIT, True, os.environ | ENVIRONMENT)
    processes = []
    for i in reversed(range(hosts.n)):
        mine = {"RANK": i, "WORLD_SIZE": hosts.n, "MASTER_ADDR": hosts.address(0),
                "MASTER_PORT": torch_jobs.PORT, "GLOO_SOCKET_IFNAME": "eth0"}  # fmt: skip
        words = hosts.on(i, ["env", *(f"{key}={value}" for key, value in mine.items())])
        environment = os.environ | ENVIRONMENT
        if i == 0:
            found = calibrate.measure(words, 0.15, LIMIT, True, environment)
        else:
            words += [sys.executable, "-m", "wirepress.sim.probe", "--seconds", "0.15"]
            silent = subprocess.DEVNULL
            processes.append(subprocess.Popen(words, env=environment, stdout=silent, stderr=silent))
    for process in processes:
        process.wait(LIMIT)
    return found


# ---- predicting ---------------------------------------------------------------------------------


def folder_of(job: Job, n: int) -> Path:
    return KEPT / f"{job.name}-{n}"


def calibration_file(job: Job, n: int, rate: str) -> Path:
    return KEPT / f"{job.kind}-{n}-{rate}.json"


def between(calls: list[Call], job: Job) -> list[Call]:
    """The calls of what is timed: the loop, or the steps after the first ones."""
    names = [call.op for call in calls]
    if job.kind == "torch":
        ends = [i for i, (a, b) in enumerate(zip(names, [*names[1:], ""], strict=True))
                if a == "complete" and b != "complete"]  # fmt: skip
        return calls[ends[WARM - 1] + 1 : ends[WARM + STEPS - 1] + 1]
    last = "barrier" if job.name == "wave" else "allreduce"
    end = max(i for i, name in enumerate(names) if name == last)
    return calls[names.index("barrier") + 1 : end + 1]


def workload_of(job: Job, n: int, eager: float) -> tuple[Workload, list[plan.Sample]]:
    read = trace_reader.read(folder_of(job, n))
    made, left = trace_calls.workload(read, eager)
    if left.counts:
        print(f"validate: {job.name}: not simulated: {left}", file=sys.stderr)
    made = dataclasses.replace(made, programs=[between(p, job) for p in made.programs])
    made.check()
    return made, plan.samples_of(read)


def codec_of(job: Job, n: int) -> Row:
    """Ratio and speed on the samples, measured once."""
    path = KEPT / f"codec-{job.name}-{n}.json"
    if not path.exists():
        args = argparse.Namespace(threads=1, seconds=0.3, recipes=[job.recipe], quiet=True)
        samples = plan.samples_of(trace_reader.read(folder_of(job, n)))
        model = plan.measured_cpu(samples, [job.recipe], args, {}).codecs[job.recipe]
        row = {"recipe": job.recipe, "ratio": model.ratio, "compress": model.compress.total,
               "decompress": model.decompress.total}  # fmt: skip
        path.write_text(json.dumps(row))
    return json.loads(path.read_text())


def predict(job: Job, n: int, rate: str) -> dict[bool, float]:
    """Seconds, without and with the codec."""
    measured = calibrate.fit(json.loads(calibration_file(job, n, rate).read_text()))
    assert measured.rate and measured.latency is not None
    made, _ = workload_of(job, n, measured.eager)
    transport = simulate.transport_of(measured)
    network = simulate.Network(
        measured.rate, measured.latency, measured.fabric, transport=transport
    )
    codec = codec_of(job, n)
    slower = transport.slowdown
    stage = models.Stage(codec["ratio"], codec["compress"] / slower, codec["decompress"] / slower,
                         block=transport.block)  # fmt: skip
    coded = made
    if made.overlaps:
        coded = simulate.with_codec_time(made, stage, job.collective[1], transport.crowd)
    todo = [
        simulate.Job(made, network, None, job.collective[0]),
        simulate.Job(coded, network, stage, job.collective[1], bypass=False, one_core=True),
    ]
    steps = STEPS if job.kind == "torch" else 1
    raw, with_codec = (outcome.seconds / steps for outcome in simulate.run(todo))
    return {False: raw, True: with_codec}


# ---- all cells ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cell:
    """Two rows: without and with the codec."""

    job: Job
    n: int
    rate: str

    def key(self, coded: bool) -> Row:
        codec = self.job.recipe if coded else "none"
        return {"job": self.job.name, "hosts": self.n, "link": self.rate, "codec": codec}

    def rows(self, rows: list[Row]) -> dict[bool, Row]:
        """Those that are there."""
        found = {}
        for coded in (False, True):
            for row in rows:
                if all(row[key] == value for key, value in self.key(coded).items()):
                    found[coded] = row
        return found

    def runs(self, rows: list[Row]) -> int:
        found = self.rows(rows)
        return min(len(row["runs"]) for row in found.values()) if len(found) == 2 else 0

    def __str__(self) -> str:
        return f"{self.job.name}, {self.n} hosts, {self.rate}"


def cells(args: argparse.Namespace) -> list[Cell]:
    return [Cell(job, n, rate) for n in args.hosts for rate in args.rates for job in jobs(args)]


class Clock:
    """Says when no more is to be begun."""

    def __init__(self, seconds: float | None) -> None:
        self.end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.end


def prepare(args: argparse.Namespace, clock: Clock, say: Callable[[str], None]) -> bool:
    """Traces and calibrations that are missing; whether all are there."""
    subprocess.run(
        ["make", "-s", "-C", str(ROOT / "examples" / "wave_mpi"), "MPICC=mpicc.openmpi",
         f"OUT={KEPT / 'wave_mpi'}"], check=True,
    )  # fmt: skip
    for n in args.hosts:
        tracing = [job for job in jobs(args)
                   if args.trace_again or not any(folder_of(job, n).glob("*.wpt"))]  # fmt: skip
        kinds = {(job.kind, rate): job for job in jobs(args) for rate in args.rates}
        measuring = [
            (kind, rate, job)
            for (kind, rate), job in kinds.items()
            if args.calibrate_again or not calibration_file(job, n, rate).exists()
        ]
        if not tracing and not measuring:
            continue
        with Hosts(n, "none") as hosts:
            for job in tracing:
                if clock.over:
                    return False
                say(f"trace of {job.name} on {n} hosts")
                record(hosts, job)
                (KEPT / f"codec-{job.name}-{n}.json").unlink(missing_ok=True)
                codec_of(job, n)
            for kind, rate, job in measuring:
                if clock.over:
                    return False
                hosts.set_rate(rate)
                say(f"calibrate {n} hosts at {rate}, {kind}")
                calibration_file(job, n, rate).write_text(json.dumps(calibration_of(hosts, kind)))
    return True


def groups(todo: list[Cell]) -> Iterator[tuple[int, str, list[Cell]]]:
    for n, rate in dict.fromkeys((cell.n, cell.rate) for cell in todo):
        yield n, rate, [cell for cell in todo if (cell.n, cell.rate) == (n, rate)]


def measure(
    args: argparse.Namespace, rows: list[Row], clock: Clock, say: Callable[[str], None]
) -> list[Row]:
    """Runs that are missing."""
    todo = cells(args)
    if args.again:
        gone = [id(row) for cell in todo for row in cell.rows(rows).values()]
        rows = [row for row in rows if id(row) not in gone]
    for number in range(args.runs):
        for n, rate, here in groups([cell for cell in todo if cell.runs(rows) <= number]):
            if clock.over:
                return rows
            with Hosts(n, rate) as hosts:
                for cell in here:
                    if clock.over:
                        return rows
                    seconds = run_job(hosts, cell.job)
                    say(f"{cell}: {seconds[False]:.3f} s, {cell.job.recipe} {seconds[True]:.3f} s")
                    for coded in (False, True):
                        if coded not in cell.rows(rows):
                            rows.append(cell.key(coded) | {"runs": []})
                        cell.rows(rows)[coded]["runs"].append(seconds[coded])
                    save(rows, args)
    return rows


def predict_all(rows: list[Row], args: argparse.Namespace, say: Callable[[str], None]) -> None:
    for cell in cells(args):
        if not cell.runs(rows):
            continue
        predicted = predict(cell.job, cell.n, cell.rate)
        found = cell.rows(rows)
        for coded, row in found.items():
            row["predicted"] = predicted[coded]
            row["measured"] = median(row["runs"])
            row["error"] = row["predicted"] / row["measured"] - 1
        say(f"{cell}: {found[False]['error']:+.1%}, {cell.job.recipe} {found[True]['error']:+.1%}")


def save(rows: list[Row], args: argparse.Namespace) -> None:
    found: dict[str, Any] = {"rows": rows}
    for n in (2, 4):
        for job in jobs(argparse.Namespace(short=False, jobs=[])):
            for rate in args.rates:
                path = calibration_file(job, n, rate)
                if path.exists():
                    fitted = calibrate.as_json(calibrate.fit(json.loads(path.read_text())))
                    found.setdefault("calibrations", {})[path.stem] = {
                        k: v for k, v in fitted.items() if k not in ("points", "kind", "version")
                    }
            path = KEPT / f"codec-{job.name}-{n}.json"
            if path.exists():
                found.setdefault("codecs", {})[f"{job.name}-{n}"] = json.loads(path.read_text())
    results.write("validate", found, args.raw)


# ---- the page -----------------------------------------------------------------------------------


def errors(rows: list[Row]) -> list[float]:
    return [abs(row["error"]) for row in rows if "error" in row]


def summary(rows: list[Row]) -> str:
    found = errors(rows)
    if not found:
        return "nothing was compared"
    within = sum(error <= WANTED["worst"] for error in found)
    return (
        f"{len(found)} cells: median error {median(found):.1%}, worst {max(found):.1%}; "
        f"{sum(error <= WANTED['median'] for error in found)} within {WANTED['median']:.0%}, "
        f"{within} within {WANTED['worst']:.0%}"
    )


def table(rows: list[Row]) -> str:
    lines = ["| job | hosts | link | codec | predicted s | measured s | error |",
             "|---|---:|---|---|---:|---:|---:|"]  # fmt: skip
    for row in sorted(rows, key=lambda r: (r["job"], r["hosts"], RATES.index(r["link"]))):
        if "error" in row:
            lines.append(
                f"| {row['job']} | {row['hosts']} | {row['link']} | {row['codec']} | "
                f"{row['predicted']:.3f} | {row['measured']:.3f} | {row['error']:+.1%} |"
            )
    return "\n".join([*lines, "", summary(rows) + "."])


def main() -> int:
    if "--worker" in sys.argv:
        torch_jobs.work(json.loads(sys.argv[sys.argv.index("--worker") + 1]), worker)
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", nargs="+", default=[], metavar="JOB", help="wave, lm, gpt")
    parser.add_argument("--hosts", nargs="+", type=int, default=[2, 4], metavar="N")
    parser.add_argument("--rates", nargs="+", default=list(RATES), choices=RATES, metavar="RATE")
    parser.add_argument("--runs", type=int, default=3, help="of each job (%(default)s)")
    parser.add_argument("--for", dest="seconds", type=float, metavar="SECONDS",
                        help="begin nothing after it")  # fmt: skip
    parser.add_argument("--short", action="store_true", help="the wave alone, once, at 1gbit")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--trace-again", action="store_true", help="trace anew")
    parser.add_argument("--calibrate-again", action="store_true", help="calibrate anew")
    parser.add_argument("--predict", action="store_true", help="measure nothing")
    parser.add_argument("--raw", type=Path, default=RAW, metavar="FILE", help="(%(default)s)")
    parser.add_argument("--dry", action="store_true", help="leave the page as it is")
    args = parser.parse_args()
    if args.short:
        args.rates, args.hosts, args.runs = ["1gbit"], [2], 1
    if reason := why_not():
        print(f"validate: {reason}", file=sys.stderr)
        return 1
    with contextlib.suppress(simulate.SimulationError):
        simulate.interpreter()
    KEPT.mkdir(parents=True, exist_ok=True)
    rows = json.loads(args.raw.read_text())["rows"] if args.raw.exists() else []

    def say(text: str) -> None:
        print(f"validate: {text}", file=sys.stderr, flush=True)

    clock = Clock(args.seconds)
    if not args.predict and prepare(args, clock, say):
        rows = measure(args, rows, clock, say)
    if clock.over:
        say("the time is over; again to go on")
        return 0
    predict_all(rows, args, say)
    save(rows, args)
    print(summary(rows))
    if not args.dry and not args.short:
        results.put(PAGE, "validate", table(rows), "# Predicted and measured times\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
