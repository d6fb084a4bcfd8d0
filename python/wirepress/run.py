# SPDX-License-Identifier: Apache-2.0
"""`wirepress run -- mpirun ...`: an unmodified MPI job with its messages compressed.

Starts the launcher so that its ranks load the interposer (launchers.py), is their meeting point
meanwhile (rendezvous.py), and ends with a summary and the job's report. Standard library only, so
that `python3 python/wirepress/run.py` does the same in a source tree, without the extension.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __package__:
    from .job_report import explanation, job_report, summaries
    from .launchers import SECRET, RunError, find_flavour, is_launcher, wrap, write_shims
    from .rendezvous import Rendezvous
else:
    from job_report import explanation, job_report, summaries
    from launchers import SECRET, RunError, find_flavour, is_launcher, wrap, write_shims
    from rendezvous import Rendezvous

OPTION_PREFIX = "mpi_"
ONLY_WITHOUT = ("mpi_report", "mpi_trust")  # what they are for, this command does


def write_atomically(path: Path, text: str) -> None:
    """All of it under the final name, or nothing; OSError says why."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def report_path(path: Path, i: int) -> Path:
    """The second job of one run goes to name-2.json, and so on."""
    return path if i == 0 else path.with_name(f"{path.stem}-{i + 1}{path.suffix}")


# ---- the command -----------------------------------------------------------------------------

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2)  # fmt: skip


def run_child(command: list[str], environment: dict[str, str], rendezvous: Rendezvous) -> int:
    """Starts the launcher, passes signals on, and returns its exit code as a shell would."""
    # what is ignored stays so, for the launcher too: SIGHUP under nohup, SIGINT in the background
    forwarded = {s for s in FORWARDED if signal.getsignal(s) is not signal.SIG_IGN}
    watched = {*forwarded, signal.SIGCHLD}
    old = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, old),
        )
        rendezvous.start()  # inherits the blocked signals: they come to the loop below
        while child.poll() is None:
            info = signal.sigtimedwait(watched, 0.5)
            from_terminal = info is not None and info.si_code > 0  # the child has it already
            if info is not None and info.si_signo != signal.SIGCHLD and not from_terminal:
                child.send_signal(info.si_signo)
        return child.returncode if child.returncode >= 0 else 128 - child.returncode
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def rank_settings(args: argparse.Namespace, rendezvous: Rendezvous) -> dict[str, str]:
    settings = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("WIREPRESS_") and name not in ("WIREPRESS_LIB_DIR", "WIREPRESS_REPORT")
    }
    for key, value in vars(args).items():
        if key.startswith(OPTION_PREFIX) and value is not None:
            settings[f"WIREPRESS_{key.upper()}"] = value
    settings[SECRET] = rendezvous.address()
    return settings


def grace_seconds() -> float:
    text = os.environ.get("WIREPRESS_MPI_GRACE", "10")
    try:
        grace = float(text)
    except ValueError:
        grace = -1.0
    if not 0 < grace <= 3600:
        raise RunError(f"WIREPRESS_MPI_GRACE: {text!r} is not a number of seconds from 0 to 3600")
    return grace


def say(text: str) -> None:
    with contextlib.suppress(OSError):  # a closed stderr is no reason to lose the exit code
        print(f"wirepress: {text}", file=sys.stderr, flush=True)


def finish(args: argparse.Namespace, rendezvous: Rendezvous, header: dict[str, Any]) -> None:
    jobs = rendezvous.jobs
    for line in [] if args.quiet else summaries(jobs, header["exit_code"]):
        say(line)
    for i, job in enumerate(jobs, 1) if args.explain else ():
        for line in explanation(job) if job.reports else ():
            say((f"job {i}: " if len(jobs) > 1 else "") + line)
    if args.report is None or not jobs:
        return
    written = 0
    for i, job in enumerate(jobs):
        path = report_path(args.report, i)
        try:
            write_atomically(path, json.dumps(job_report(job, header), indent=1) + "\n")
            written += 1
        except OSError as error:
            say(f"cannot write the report {path}: {error.strerror}")
    if written and not args.quiet:
        last = f" to {report_path(args.report, len(jobs) - 1)}" if len(jobs) > 1 else ""
        say(("reports: " if last else "report: ") + f"{args.report}{last}")


def launch(
    args: argparse.Namespace,
    command: list[str],
    private: Path,
    conclude: Callable[[argparse.Namespace, Rendezvous, dict[str, Any]], None],
) -> int:
    if shutil.which(command[0]) is None:
        raise RunError(f"{command[0]}: no such command")
    flavour = args.mpi or (find_flavour(command) if is_launcher(command[0]) else "")
    rendezvous = Rendezvous(grace_seconds())
    settings = rank_settings(args, rendezvous)
    if flavour:
        wrapped, environment = wrap(command, flavour, private, settings)
    else:  # a script: the launchers that it finds by PATH are wrapped
        folder = write_shims(private, settings)
        wrapped = command
        environment = os.environ | {"PATH": f"{folder}:{os.environ.get('PATH', os.defpath)}"}
        environment.pop(SECRET, None)  # of another run, a rank of which starts this one
    header = {
        "command": command,
        "mpi": flavour,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    began = time.monotonic()
    try:
        header["exit_code"] = run_child(wrapped, environment, rendezvous)
    finally:
        rendezvous.stop()
    header["seconds"] = round(time.monotonic() - began, 3)
    conclude(args, rendezvous, header)
    return header["exit_code"]


def main(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        say("run: give the launcher and its arguments after --, as in: wirepress run -- mpirun ...")
        return 2
    if args.report is not None and not args.report.parent.is_dir():
        say(f"--report: {args.report.parent} is not a folder")
        return 2
    if args.verify is not None or args.verify_lines:
        if __package__:
            from . import verify
        else:
            import verify
        return verify.run(args, command, lambda: start(args, command), say)
    return start(args, command)


def start(args: argparse.Namespace, command: list[str], conclude: Any = finish) -> int:
    """Runs the command; `conclude` has the last word. The exit status."""
    private = Path(tempfile.mkdtemp(prefix="wirepress-run-"))
    try:
        return launch(args, command, private, conclude)
    except RunError as error:
        say(str(error))
        return 2
    finally:
        shutil.rmtree(private, ignore_errors=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write the job's report (JSON) to FILE"
    )
    parser.add_argument("--quiet", action="store_true", help="no summary at the end")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="at the end, which calls of the program sent what, and why it was compressed or not",
    )
    parser.add_argument(
        "--mpi",
        choices=("openmpi", "mpich"),
        help="take LAUNCHER for one of this MPI, without asking it",
    )
    parser.add_argument(
        "--verify",
        nargs="*",
        metavar="FILE",
        help="afterwards run the command again without wirepress, and compare the numbers of its "
        "standard output and of FILE ... (text, .npy, or raw: FILE:float64); the plain run's files "
        "are kept as FILE.plain",
    )
    parser.add_argument(
        "--verify-tolerance",
        type=float,
        default=1e-3,
        metavar="E",
        help="relative difference up to which --verify ends with status 0 (default %(default)g)",
    )
    parser.add_argument(
        "--verify-lines",
        metavar="REGEX",
        help="with --verify compare lines of standard output that match (default: all but those "
        "about time, memory and the like)",
    )
    for key, value, sentence in option_rows():
        flags = [f"--{key.removeprefix(OPTION_PREFIX)}", f"--{key}"]
        parser.add_argument(
            *(flag.replace("_", "-") for flag in flags),
            dest=key,
            metavar="VALUE",
            help=f"{sentence} (default {value})".replace("%", "%%"),
        )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- LAUNCHER ...")


def option_rows() -> list[tuple[str, str, str]]:
    """Key, default and sentence of the options that ranks take, from the library's own table."""
    rows = [("mpi_codec", "auto", "recipe for messages"), ("mpi_threshold", "64KiB", "least size")]
    with contextlib.suppress(ImportError):
        import wirepress

        rows = [(row.key, row.default, row.sentence) for row in wirepress.options()]
    return [row for row in rows if row[0].startswith(OPTION_PREFIX) and row[0] not in ONLY_WITHOUT]


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "run",
        allow_abbrev=False,
        help="start an MPI job whose messages are compressed",
        description="Starts an unmodified MPI program with its messages compressed: "
        "wirepress run -- mpirun -n 4 ./program",
    )
    add_arguments(parser)
    parser.set_defaults(handler=main)
    return parser


def standalone(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="wirepress run", allow_abbrev=False)
    add_arguments(parser)
    return main(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(standalone(sys.argv[1:]))
