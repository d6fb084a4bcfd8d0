# SPDX-License-Identifier: Apache-2.0
"""`wirepress run -- mpirun ...`: an unmodified MPI job with its messages compressed.

Starts the launcher so that its ranks load the interposer (launchers.py), is their meeting point
meanwhile (rendezvous.py), and ends with a summary and the job's report. Standard library only, so
that `python3 python/wirepress/launch/run.py` does the same in a source tree, without the extension.
Every job waits until this has loaded: what only the end needs is loaded while the job runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

if __package__:
    from . import launchers, settings, stdio
    from .launchers import SECRET, RunError
    from .private import Private, sweep
    from .rendezvous import Rendezvous
else:
    import launchers
    import settings
    import stdio
    from launchers import SECRET, RunError
    from private import Private, sweep
    from rendezvous import Rendezvous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

OPTION_PREFIX = settings.OPTION_PREFIX


# ---- the report's file -----------------------------------------------------------------------


def beside(path: Path) -> tuple[int, Path]:
    """A new file in the folder of `path`, open for writing."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), temporary


def write_atomically(path: Path, text: str) -> None:
    """All of it under the final name, or nothing; OSError says why."""
    if path.exists() and not path.is_file():  # a pipe, /dev/stdout: nothing to put in its place
        path.write_text(text, encoding="utf-8")
        return
    handle, temporary = beside(path)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def report_path(path: Path, i: int) -> Path:
    """The second job of one run goes to name-2.json, and so on."""
    return path if i == 0 else path.with_name(f"{path.stem}-{i + 1}{path.suffix}")


def check_report(path: Path) -> None:
    """Raises RunError where a report could not be written: the job's end is too late to say so."""
    if path.is_dir():
        raise RunError(f"--report: {path} is a folder")
    if not path.parent.is_dir():
        raise RunError(f"--report: {path.parent} is not a folder")
    try:
        if path.exists() and not path.is_file():
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            return
        handle, temporary = beside(path)
        os.close(handle)
        os.unlink(temporary)
        status, folder = path.lstat() if path.exists() else None, path.parent.stat()
    except OSError as error:
        raise RunError(f"--report: cannot write {path}: {error.strerror}") from None
    sticky = status and folder.st_mode & 0o1000 and os.getuid() not in (0, folder.st_uid)
    if sticky and status.st_uid != os.getuid():
        raise RunError(f"--report: cannot write {path}: it is another user's")


# ---- the command -----------------------------------------------------------------------------

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2)  # fmt: skip
GROUP_SECONDS = 0.05  # in which a signal reaches all of a group
LOOK_SECONDS = 0.1  # between looks at launchers that are nobody's children


class Watcher:
    """Ends a launcher with SIGTERM when this process is gone, SIGKILL included.

    A launcher then ends its ranks. Without the command that they meet at they could go on, but
    nobody would hear of it. A process of its own watches, since PR_SET_PDEATHSIG signals for each
    thread of a parent that dies, and Open MPI's launcher takes a second SIGTERM for leave to go
    without its ranks.

    It tells, too, whether a signal came to the whole process group, as `timeout` and batch systems
    send it: it has all signals blocked, and then has this one pending.
    """

    def __init__(self) -> None:
        read, self._write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            with contextlib.suppress(BaseException):
                os.close(self._write)
                self._watch(read)
            os._exit(0)
        os.close(read)

    @staticmethod
    def _watch(pipe: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with open(pipe, "rb") as file:
            end = Watcher._signals(int(file.readline()))
            for word in file:  # until this process's parent has closed its end, or is gone
                if word != b"forget\n":
                    return
                while signal.sigtimedwait(signal.valid_signals(), 0):
                    pass
        end(signal.SIGTERM)

    def forget(self) -> None:
        """What is pending there is of the past."""
        with contextlib.suppress(OSError):
            os.write(self._write, b"forget\n")

    def has_it_too(self, number: int) -> bool:
        """Whether a signal that has just come came to the whole group."""
        time.sleep(GROUP_SECONDS)
        try:
            with open(f"/proc/{self._pid}/status") as file:
                pending = next(line for line in file if line.startswith("ShdPnd:"))
        except (OSError, StopIteration):
            return False
        if not int(pending.split()[1], 16) >> (number - 1) & 1:
            return False
        signal.sigtimedwait({number}, 0)  # one that came to this process alone beside it
        self.forget()
        return True

    @staticmethod
    def _signals(pid: int) -> Callable[[int], None]:
        """By a handle, where the kernel has them (5.3): `pid` may be another process's later."""
        try:
            handle = os.pidfd_open(pid)
        except (AttributeError, OSError):
            return lambda number: os.kill(pid, number)
        return lambda number: signal.pidfd_send_signal(handle, number)

    def watch_this(self) -> None:
        """In the launcher, before its program begins."""
        os.write(self._write, b"%d\n" % os.getpid())

    def end(self) -> None:
        """The launcher has ended."""
        with contextlib.suppress(OSError):
            os.write(self._write, b"ended")
        os.close(self._write)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def start_child(
    command: list[str],
    environment: dict[str, str],
    old: Any,
    watcher: Watcher,
    descriptors: tuple[int, int],
) -> Any:
    on_child = signal.getsignal(signal.SIGCHLD)

    def before_it_begins() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)
        signal.signal(signal.SIGCHLD, on_child)
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        watcher.watch_this()

    if on_child is signal.SIG_IGN:  # by who started this: the child's status would be lost
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        # Descriptors that this process was given are for the command, as with `<(...)` of a shell.
        return subprocess.Popen(
            command, env=environment, preexec_fn=before_it_begins, close_fds=False
        )
    except OSError as error:  # a script without its first line, too many arguments
        raise RunError(f"cannot start {command[0]}: {error.strerror}") from None


def run_child(
    command: list[str],
    environment: dict[str, str],
    rendezvous: Rendezvous,
    left_over: Callable[[], list[int]],
) -> int:
    """Starts the launcher, passes signals on, and returns its exit code as a shell would.

    Ends when the command has ended, and with it the launchers that a script of it started: a
    signal that ends the script alone is passed to them.
    """
    # what is ignored stays so, for the launcher too: SIGHUP under nohup, SIGINT in the background
    forwarded = {s for s in FORWARDED if signal.getsignal(s) is not signal.SIG_IGN}
    watched = {*forwarded, signal.SIGCHLD}
    old = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    watcher = Watcher()
    try:
        child = start_child(command, environment, old, watcher, rendezvous.descriptors)
        rendezvous.start()  # inherits the blocked signals: they come to the loop below
        sweep()
        beside_this("job_report")  # for the end, which then does not wait for it
        passed = None
        while child.poll() is None:
            if number := to_be_passed(signal.sigwaitinfo(watched), watcher):
                passed = number
                child.send_signal(passed)
        while left := left_over():
            for pid in left if passed else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, passed)
            info = signal.sigtimedwait(watched, LOOK_SECONDS)
            passed = to_be_passed(info, watcher) if info else None
        return child.returncode if child.returncode >= 0 else 128 - child.returncode
    finally:
        watcher.end()
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def to_be_passed(info: Any, watcher: Watcher) -> int | None:
    """The signal that the launcher does not have yet; None: it has, or there is none for it."""
    number: int = info.si_signo
    if number == signal.SIGCHLD:
        return None
    if info.si_code > 0:  # of the terminal, which gives it to the whole group
        watcher.forget()
        return None
    return None if watcher.has_it_too(number) else number


def given_options(args: argparse.Namespace) -> dict[str, str]:
    """The options of ranks on the command line, by key."""
    return {
        key: value
        for key, value in vars(args).items()
        if key.startswith((OPTION_PREFIX, *settings.ALSO)) and value is not None
    }


def rank_settings(options: dict[str, str], rendezvous: Rendezvous) -> dict[str, str]:
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(settings.PREFIX) and name != "WIREPRESS_LIB_DIR"
    }
    variables |= {settings.variable(key): value for key, value in options.items()}
    return variables | {SECRET: rendezvous.address()}


def ports_to_listen_at() -> range:
    """Those that a firewall between the hosts lets through; range(1): any."""
    text = os.environ.get("WIREPRESS_PORTS", "0")
    match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not first <= last < 65536 or (first == 0 < last):
        raise RunError(f"WIREPRESS_PORTS: {text!r} is no range of ports such as 60000-60999")
    return range(first, last + 1)


def start_rendezvous() -> Rendezvous:
    grace, ports = settings.grace_seconds(), ports_to_listen_at()
    try:
        return Rendezvous(grace, ports)
    except OSError as error:
        raise RunError(f"cannot listen for the ranks: {error.strerror}") from None


def say(text: str) -> None:
    with contextlib.suppress(OSError):  # a closed stderr is no reason to lose the exit code
        print(f"wirepress: {text}", file=sys.stderr, flush=True)


def beside_this(name: str) -> Any:
    """A module of this folder, loaded when it is needed."""
    import importlib

    return importlib.import_module(f"{__package__}.{name}" if __package__ else name)


def finish(args: argparse.Namespace, rendezvous: Rendezvous, header: dict[str, Any]) -> None:
    import json

    job_report, jobs = beside_this("job_report"), rendezvous.jobs
    for line in [] if args.quiet else job_report.summaries(jobs, header["exit_code"]):
        say(line)
    for i, job in enumerate(jobs, 1) if args.explain else ():
        for line in job_report.explanation(job) if job.reports else ():
            say((f"job {i}: " if len(jobs) > 1 else "") + line)
    if args.report is None or not jobs:
        return
    written = 0
    for i, job in enumerate(jobs):
        path = report_path(args.report, i)
        try:
            whole = job_report.job_report(job, header)
            write_atomically(path, json.dumps(whole, indent=1) + "\n")
            written += 1
        except OSError as error:
            say(f"cannot write the report {path}: {error.strerror}")
    if written and not args.quiet:
        last = f" to {report_path(args.report, len(jobs) - 1)}" if len(jobs) > 1 else ""
        say(("reports: " if last else "report: ") + f"{args.report}{last}")


def launch(
    args: argparse.Namespace,
    command: list[str],
    private: Private,
    conclude: Callable[[argparse.Namespace, Rendezvous, dict[str, Any]], None],
) -> int:
    if shutil.which(command[0]) is None:
        raise RunError(f"{command[0]}: no such command")
    if reason := launchers.refusal(command):
        raise RunError(reason)
    as_script = not launchers.is_launcher(command[0]) and (
        not args.mpi or launchers.starts_launchers(command[0])
    )
    flavour = "" if as_script else args.mpi or launchers.find_flavour(command)
    options = given_options(args)
    settings.check(options, command[1:], "mpich" if flavour == "abi" else flavour)
    rendezvous = start_rendezvous()
    variables = rank_settings(options, rendezvous)
    if flavour:
        wrapped, environment = launchers.wrap(command, flavour, variables)
    else:  # a script: the launchers that it finds by PATH are wrapped
        folder = launchers.write_shims(private, variables, args.mpi or "")
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
        header["exit_code"] = run_child(
            wrapped, environment, rendezvous, lambda: launchers.launchers_left(private)
        )
    finally:
        rendezvous.stop()
    header["seconds"] = round(time.monotonic() - began, 3)
    conclude(args, rendezvous, header)
    if not rendezvous.jobs and not args.quiet:
        calls = [(called, words) for _, _, called, words in launchers.noted_calls(private)]
        failed = header["exit_code"] != 0
        for sentence in beside_this("causes").causes(command, flavour, calls, failed):
            say(sentence)
    return header["exit_code"]


def main(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        say("run: give the launcher and its arguments after --, as in: wirepress run -- mpirun ...")
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
    private = Private()
    try:
        if args.report is not None:
            check_report(args.report)
        return launch(args, command, private, conclude)
    except RunError as error:
        say(str(error))
        return 2
    finally:
        private.remove()


EXAMPLES = """examples:
  wirepress run -- mpirun -n 4 --host a,b ./app          chooses by what it measures
  wirepress run --codec shuffle+zstd:1 -- srun ./app     or says so
  wirepress run --explain --report job.json -- mpiexec -n 4 python train.py
  wirepress run --error bits:12 --verify out.npy -- mpirun -n 4 ./app
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
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
        choices=("openmpi", "mpich", "abi"),
        help="take LAUNCHER for one of this MPI, without asking it; of a script, those launchers "
        "that serve several; abi: its programs have the standard ABI",
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
    for key, value, sentence in settings.option_rows():
        parser.add_argument(
            *dict.fromkeys((settings.flag(key), f"--{key}".replace("_", "-"))),
            dest=key,
            metavar="VALUE",
            help=f"{sentence} (default {value})".replace("%", "%%"),
        )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- LAUNCHER ...")


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


class Parser(argparse.ArgumentParser):
    """One line for a mistake, with the flag that was meant."""

    def error(self, message: str) -> NoReturn:
        flags = [name for action in self._actions for name in action.option_strings]
        unknown = message.removeprefix("unrecognized arguments: ").split()[0]
        meant = settings.suggestion(unknown.partition("=")[0], flags) if unknown[:1] == "-" else ""
        say(f"run: {message}{meant} (wirepress run --help lists all)")
        sys.exit(2)


def end_by_signal(number: int, _frame: Any) -> None:
    sys.exit(128 + number)  # raises, so that nothing is left behind


def standalone(arguments: list[str]) -> int:
    stdio.open_standard_files()
    parser = Parser(prog="wirepress run", allow_abbrev=False)
    add_arguments(parser)
    args = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end_by_signal)
    try:
        return main(args)
    except KeyboardInterrupt:
        say("interrupted")
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(standalone(sys.argv[1:]))
