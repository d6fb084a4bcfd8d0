#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Public MPI test suites, unmodified, without and with the interposer.

No test that passes plain may fail interposed: such tests are listed, and the exit status is 1.
Suites are fetched (PyPI, Debian) into build/conformance-mpi, built there and run on this machine's
Open MPI and MPICH, with every message that can be compressed compressed: threshold 1 byte, ranks
of a host treated as remote. Tests that differ run again, both ways, before they count.

  suite      what                                      from
  mpi4py     mpi4py's tests on 1 and 2 ranks           PyPI, the version that is installed
  mpich      test/mpi of MPICH, folder by folder       Debian's source package
  programs   NetPIPE -i, HPCC, ScaLAPACK's testers     Debian's packages, not installed
  osu        OSU micro-benchmarks with validation      --osu DIR, built for one MPI
  imb        Intel MPI Benchmarks built with CHECK     --imb DIR, built for one MPI

examples:
  make conformance-mpi
  make conformance-mpi ARGS="--mpi mpich --suite mpich --part pt2pt --part errhan"
  make conformance-mpi ARGS="--suite mpi4py --part test_p2p_buf --way lz4 --way auto"
  make conformance-mpi ARGS="--mpi openmpi5 --mpi mpich5 --suite mpi4py"
  make conformance-mpi ARGS="--suite mpich --part coll --set mpi_nonblocking=on"
  make conformance-mpi ARGS="--mpi openmpi --suite osu --osu ~/osu-micro-benchmarks/c"

exit status: 0 no difference, 1 differences, 2 wrong use, 77 nothing to run (with the reason).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WORK = ROOT / "build" / "conformance-mpi"
OPEN_MPI_4 = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl": "self,tcp",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
OPEN_MPI_5 = OPEN_MPI_4 | {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
TRUST = {"TRUST": "1", "SAME_HOST": "1", "THRESHOLD": "1", "LINK": "100Mbps", "CONTEST": "off"}
Verdicts = dict[str, str]  # pass, fail, skip or lost, by test


class CannotRun(Exception):
    """A suite or an MPI that this machine cannot run, and why."""


def shell(command: list[str | Path], log: Path | None = None, **kwargs: object) -> str:
    """Runs a step of fetching or building; its output, also in `log`."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        **kwargs,  # type: ignore[call-overload]
    )  # fmt: skip
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(done.stdout)
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise CannotRun(f"{' '.join(map(str, command[:4]))}: {last[:200]}")
    return done.stdout


def once(step: Callable[[Path], None], folder: Path) -> Path:
    """Makes `folder` by `step` unless it is there; never leaves half of one."""
    if not folder.exists():
        part = folder.with_name(folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        step(part)
        part.rename(folder)
    return folder


# ---- the MPIs ----------------------------------------------------------------------------------


@dataclass
class Mpi:
    name: str
    settings: dict[str, str]
    folder: Path  # with bin/mpicc, bin/mpiexec ...
    library: Path
    python: str
    version: str = ""
    release: str = ""  # of a wheel
    python_settings: dict[str, str] = field(default_factory=dict)
    fortran: bool = True
    preloaded: list[Path] = field(default_factory=list)  # with and without the interposer

    @property
    def mpiexec(self) -> Path:
        return self.folder / "bin" / "mpiexec"

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("WIREPRESS_", "LD_PRE"))}
        return kept | self.settings

    def under(self, way: str) -> Path:
        """A command before which a program runs the given way; `plain` adds nothing."""
        script = WORK / "ways" / f"{self.name}-{way}"
        script.parent.mkdir(parents=True, exist_ok=True)
        lines = ["#!/bin/sh"]
        preloaded = self.preloaded
        if way != "plain":
            preloaded = [self.library, *preloaded]
            reports = self.reports(way)
            values = {f"MPI_{key}": value for key, value in TRUST.items()} | {"MPI_CODEC": way}
            lines += [f"export WIREPRESS_{key}={value}" for key, value in values.items()]
            lines.append(f'export WIREPRESS_MPI_REPORT="{reports}/${{WPR_PART:-${{1##*/}}}}.json"')
        if preloaded:
            lines.append(f"export LD_PRELOAD={':'.join(map(str, preloaded))}")
        script.write_text("\n".join([*lines, 'exec "$@"', ""]))
        script.chmod(0o755)
        return script

    def reports(self, way: str) -> Path:
        folder = WORK / "reports" / f"{self.name}-{way}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def tally(self, way: str) -> collections.Counter[str]:
        """What the interposer counted since the last time."""
        total: collections.Counter[str] = collections.Counter()
        for file in self.reports(way).glob("*.json"):
            with contextlib.suppress(ValueError, KeyError):
                job = json.loads(file.read_text())
                calls = [call for rank in job["ranks"] for call in rank["calls"].values()]
                sent = sum(call["compressed_messages"] for call in calls)
                total["programs"] += 1
                total["programs_compressing"] += sent > 0
                total["compressed_messages"] += sent
            file.unlink()
        return total


def yielding(tools: Path) -> Path:
    """A library that makes MPICH over UCX give way to others while it waits."""
    source, library = Path(__file__).with_name("yield.c"), tools / "yield.so"
    # Linked with UCX: mpi4py loads MPI where RTLD_NEXT does not look.
    command = ["cc", "-O2", "-shared", "-fPIC", "-DWITH_UCX", "-o", library, source]
    shell([*command, "-Wl,--no-as-needed", "-l:libucp.so.0", "-ldl"])
    return library


def debian(name: str) -> Mpi:
    if not shutil.which(f"mpicc.{name}") or not shutil.which(f"mpirun.{name}"):
        raise CannotRun(f"no mpicc.{name} or mpirun.{name} on this machine")
    tools = WORK / "tools" / name
    (tools / "bin").mkdir(parents=True, exist_ok=True)
    for tool in ("mpicc", "mpicxx", "mpif77", "mpif90", "mpifort", "mpiexec"):
        (tools / "bin" / tool).write_text(f'#!/bin/sh\nexec {tool}.{name} "$@"\n')
        (tools / "bin" / tool).chmod(0o755)
    library = built(name)
    settings = OPEN_MPI_4 if name == "openmpi" else {}
    mpi = Mpi(name, settings, tools, library, sys.executable)
    if name == "openmpi":
        mpi.python_settings = {"MPI4PY_LIBMPI": "libmpi.so.40"}
    else:  # mpi4py looks for MPICH's usual name; Debian's differs
        alias = WORK / "tools" / name / "alias"
        alias.mkdir(exist_ok=True)
        listed = shell(["ldd", library])
        real = next(line.split()[2] for line in listed.splitlines() if "libmpi" in line)
        for link in ("libmpi.so.12", "libmpich.so.12"):
            (alias / link).unlink(missing_ok=True)
            (alias / link).symlink_to(real)
        mpi.python_settings = {"LD_LIBRARY_PATH": str(alias), "MPI4PY_LIBMPI": "libmpi.so.12"}
        with contextlib.suppress(CannotRun):  # not over UCX
            mpi.preloaded = [yielding(tools)]
    return mpi


# Got from PyPI by scripts/setup; the standard ABI is MPICH 5's. Intel MPI has MPICH's ABI and comes
# without a compiler: it runs mpi4py's suite.
NEWER = {"openmpi5": "openmpi5", "mpich5": "mpich5", "abi": "mpich5", "intelmpi": "intelmpi"}
MODULES = {"intelmpi": "mpich5"}


def newer(name: str) -> Mpi:
    prefix = ROOT / "build" / "third_party" / "mpi" / NEWER[name]
    if not (prefix / "release").is_file():
        raise CannotRun(f"{prefix} is not there (scripts/setup gets it from PyPI)")
    tools = WORK / "tools" / name
    (tools / "bin").mkdir(parents=True, exist_ok=True)
    for tool in ("mpicc", "mpicxx", "mpiexec"):
        real = prefix / "bin" / (f"{tool}_abi" if name == "abi" and tool != "mpiexec" else tool)
        (tools / "bin" / tool).write_text(f'#!/bin/sh\nexec {real} "$@"\n')
        (tools / "bin" / tool).chmod(0o755)
    settings = OPEN_MPI_5 if name == "openmpi5" else {}
    python = str(prefix / "bin" / "python")
    mpi = Mpi(name, settings, tools, built(MODULES.get(name, name)), python, fortran=False)
    if name in MODULES:  # the module would load the MPI that it was built with
        mpi.preloaded = [prefix / "lib" / "libmpi.so.12"]
    mpi.release = (prefix / "release").read_text().strip().partition("==")[2]
    return mpi


def built(name: str) -> Path:
    folders = [ROOT / "build" / preset / "integrations/mpi" for preset in ("dev", "release")]
    if chosen := os.environ.get("WIREPRESS_LIB_DIR"):
        folders.insert(0, Path(chosen).resolve())
    for folder in folders:
        if (library := folder / f"libwirepress_mpi_{name}.so").is_file():
            return library
    raise CannotRun(f"libwirepress_mpi_{name}.so is not built (make build)")


def installed_mpi4py() -> str:
    code = "import importlib.metadata as m; print(m.version('mpi4py'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        raise CannotRun(f"{sys.executable} has no mpi4py")
    return done.stdout.strip()


# ---- running -----------------------------------------------------------------------------------


def run(
    command: list[str | Path], environment: dict[str, str], folder: Path, seconds: float
) -> tuple[int, str]:
    """Exit status (124: it ran past its time) and output of a program with all it started."""
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    ) as child:  # fmt: skip
        try:
            output, _ = child.communicate(timeout=seconds)
            return child.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGTERM)
        except BaseException:  # Ctrl-C or SIGTERM: nothing that was started stays behind
            os.killpg(child.pid, signal.SIGTERM)
            raise
        try:
            output, _ = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, _ = child.communicate()
        return 124, output


@dataclass
class Part:
    """A piece of a suite that runs as a whole. run(way, only) gives verdicts; `only`: the tests
    that are of interest, None for all."""

    suite: str
    name: str
    run: Callable[[str, set[str] | None], Verdicts]


# ---- mpi4py ------------------------------------------------------------------------------------


def mpi4py_tests() -> Path:
    version = installed_mpi4py()

    def fetch(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", folder]
        shell([*pip, "--no-binary", "mpi4py", f"mpi4py=={version}"])
        shell(["tar", "-C", folder, "--strip-components=1", "-xf", next(folder.glob("*.tar.gz"))])

    return once(fetch, WORK / f"mpi4py-{version}") / "test"


RANK_LOG = """#!/bin/sh
# LOG COMMAND...: standard error of each rank in a file of its own
log=$1
shift
exec "$@" 2> "$log.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"
"""
TEST_LINE = re.compile(r"^(\w+) \(([\w.]+)\)")
ENDING = re.compile(r"(?:^|\.\.\. )(ok|FAIL|ERROR|skipped .*|expected failure)\s*$")
FAILURE = re.compile(r"^(?:FAIL|ERROR): (?:\w+) \(([\w.]+)\)")


def unittest_verdicts(text: str) -> Verdicts:
    verdicts: Verdicts = {}
    test = ""
    for line in text.splitlines():
        if match := TEST_LINE.match(line):
            test = match[2]
            verdicts[test] = "lost"
        if test and (match := ENDING.search(line)):
            word = match[1].split()[0]
            verdicts[test] = {"ok": "pass", "expected": "pass", "skipped": "skip"}.get(word, "fail")
            test = ""
        if match := FAILURE.match(line):
            verdicts[match[1]] = "fail"
    return verdicts


def worst(verdicts: Iterable[Verdicts]) -> Verdicts:
    """One verdict of what the ranks say."""
    order = {"skip": 0, "pass": 1, "lost": 2, "fail": 3}
    result: Verdicts = {}
    for of_rank in verdicts:
        for test, verdict in of_rank.items():
            if test not in result or order[verdict] > order[result[test]]:
                result[test] = verdict
    return result


def run_mpi4py(mpi: Mpi, module: str, n: int, way: str, only: set[str] | None) -> Verdicts:
    tests = mpi4py_tests()
    logs = WORK / "logs" / mpi.name / "mpi4py"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{module}-{n}-{way}"
    for old in logs.glob(log.name + ".*"):
        old.unlink()
    rank_log = WORK / "ways" / "rank-log"
    under = mpi.under(way)
    rank_log.write_text(RANK_LOG)
    rank_log.chmod(0o755)
    ended = f"{module}: ended"
    whole = only is None or ended in only
    names = [module] if whole else sorted(only or ())
    program = [mpi.python, tests / "main.py", "-v", *names]
    environment = mpi.environment() | mpi.python_settings | {"WPR_PART": module}
    command = [mpi.mpiexec, "-n", str(n), rank_log, log, under, *program]
    code, output = run(command, environment, tests, seconds=240)
    log.with_suffix(".out").write_text(output)
    ranks = [p.read_text(errors="replace") for p in logs.glob(log.name + ".[0-9]*")]
    verdicts = worst(unittest_verdicts(text) for text in ranks)
    complete = len(ranks) == n and all(re.search(r"^Ran \d+ test", t, re.M) for t in ranks)
    if whole:
        verdicts[ended] = "pass" if complete and code != 124 else "lost"
    return verdicts


def mpi4py_suite(mpi: Mpi, options: argparse.Namespace) -> Iterator[Part]:
    if mpi.name == "abi":
        raise CannotRun("PyPI's mpi4py has no module for the standard ABI")
    modules = sorted(path.stem for path in mpi4py_tests().glob("test_*.py"))
    for n in options.ranks or (1, 2):
        for module in modules:
            yield Part("mpi4py", f"{module} -n {n}", functools.partial(run_mpi4py, mpi, module, n))


# ---- MPICH's suite -----------------------------------------------------------------------------

MPICH_FOLDERS = "pt2pt coll datatype comm group attr errhan threads topo errors f77 f90 f08".split()


def apt_options() -> list[str]:
    """An apt of one's own: nothing of the machine's changes, and no root is needed."""
    key = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if not shutil.which("apt-get") or not key.exists():
        raise CannotRun("no Debian: its packages cannot be fetched")
    apt = WORK / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    listed = shell(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE)",
         "Created-By: Packages"],
    )  # fmt: skip
    found = re.search(r"^Debian (\S+) (\w+)$", listed, re.M)
    if not found:
        raise CannotRun("no Debian among the package sources of this machine")
    suite = f"[signed-by={key}] {found[1]} {found[2]}"
    (apt / "sources.list").write_text(f"deb {suite} main\ndeb-src {suite} main\n")
    return [
        "-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
        "-o", f"Dir::State::lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache", "-o",
        "APT::Sandbox::User=",
    ]  # fmt: skip


@functools.cache
def apt() -> list[str]:
    options = apt_options()
    shell(["apt-get", "-q", *options, "update"], WORK / "logs" / "apt.log")
    return options


def mpich_source() -> Path:
    def fetch(folder: Path) -> None:
        command = ["apt-get", "-q", *apt(), "source", "--download-only", "mpich"]
        shell(command, WORK / "logs" / "mpich-source.log", cwd=folder)
        archive = next(folder.glob("mpich_*.orig.tar.*"))
        shell(["tar", "-C", folder, "--strip-components=1", "-xf", archive])

    return once(fetch, WORK / "mpich") / "test" / "mpi"


def mpich_build(mpi: Mpi) -> Path:
    source = mpich_source()
    folder = WORK / "suites" / f"mpich-{mpi.name}"
    whole = folder / "configured"  # not moved into place, as by once(): it knows where it lies
    if not whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command: list[str | Path] = [
            source / "configure", f"--with-mpi={mpi.folder}", "--enable-threads=multiple",
            "--disable-spawn", "--disable-rma", "--disable-cxx", "--disable-perftest",
            # what Open MPI's header hides, and what newer compilers refuse
            "CPPFLAGS=-DOMPI_OMIT_MPI1_COMPAT_DECLS=0", "FFLAGS=-fallow-argument-mismatch",
            "FCFLAGS=-fallow-argument-mismatch",
        ]  # fmt: skip
        if not mpi.fortran:
            command.append("--disable-fortran")
        log = WORK / "logs" / mpi.name / "mpich-configure.log"
        shell(command, log, cwd=folder, env=mpi.environment())
        if mpi.fortran:
            # configure leaves this library empty where MPICH itself is not being built
            command = ["make", "am_libmtest_f08_la_OBJECTS=mtest_f08.lo", "libmtest_f08.la"]
            log = log.with_name("mpich-f08-library.log")
            shell(command, log, cwd=folder / "util", env=mpi.environment())
            for listed in folder.glob("f[0-9]*/testlist"):  # files: minutes, and left to MPI
                listed.write_text(listed.read_text().replace("\nio\n", "\n"))
        whole.touch()
    return folder


def numbered(names: Iterable[str]) -> Iterator[str]:
    """The suite lists some programs several times, with other arguments."""
    seen: collections.Counter[str] = collections.Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} #{seen[name]}"


def tap_verdicts(text: str) -> Verdicts:
    found = re.findall(r"^(ok|not ok) \d* ?- \./(\S+(?: \d+)?)(.*)$", text, re.M)
    names = numbered(name for _, name, _ in found)
    return {
        name: "skip" if "# SKIP" in rest else "pass" if ok == "ok" else "fail"
        for name, (ok, _, rest) in zip(names, found, strict=True)
    }


def short_lists(build: Path, source: Path, folder: str, programs: set[str]) -> str:
    """A test list of those programs only, all along the tree; its name."""
    name = "testlist.again"

    def write(where: str) -> None:
        lists = [tree / where / "testlist" for tree in (build, source)]
        lines = next(path for path in lists if path.exists()).read_text().splitlines()
        kept = []
        for line in lines:
            words = line.partition("#")[0].split()
            if words and (build / where / words[0]).is_dir():
                write(f"{where}/{words[0]}")
                kept.append(words[0])
            elif words and f"{where}/{words[0]}" in programs:
                kept.append(line)
        (build / where / name).write_text("\n".join(kept or ["#"]) + "\n")

    write(folder)
    return name


def run_mpich(mpi: Mpi, folder: str, limit: int, way: str, only: set[str] | None) -> Verdicts:
    source, build = mpich_source().resolve(), mpich_build(mpi).resolve()
    listed = "testlist"
    if only is not None:
        listed = short_lists(build, source, folder, {test.split()[0] for test in only})
    log = WORK / "logs" / mpi.name / f"mpich-{folder}-{way}"
    log.parent.mkdir(parents=True, exist_ok=True)
    tap = log.with_suffix(".tap")
    environment = mpi.environment() | {
        "MPITEST_CLEANUP": "0",
        "MPITEST_TIMEOUT": str(limit),
        "MPITEST_PROGRAM_WRAPPER": str(mpi.under(way)),
    }
    srcdir = f"-srcdir={os.path.relpath(source, build)}"
    command = ["./runtests", srcdir, f"-testdirs={folder}", f"-tests={listed}", f"-tapfile={tap}"]
    tap.unlink(missing_ok=True)
    _, output = run(command, environment, build, seconds=7200)  # type: ignore[arg-type]
    log.with_suffix(".log" if only is None else ".again.log").write_text(output)
    return tap_verdicts(tap.read_text(errors="replace")) if tap.exists() else {}


def mpich_suite(mpi: Mpi, options: argparse.Namespace) -> Iterator[Part]:
    for folder in MPICH_FOLDERS:
        if folder.startswith("f") and not mpi.fortran:
            continue
        yield Part("mpich", folder, functools.partial(run_mpich, mpi, folder, options.limit))


# ---- NetPIPE, HPCC, ScaLAPACK ------------------------------------------------------------------

PACKAGES = """netpipe-openmpi netpipe-mpich2 hpcc scalapack-mpi-test scalapack-test-common
    libscalapack-openmpi2.2 libscalapack-mpich2.2 libblas3 liblapack3 libgfortran5""".split()


def debian_programs() -> Path:
    def fetch(folder: Path) -> None:
        known = shell(["apt-cache", *apt_options(), "pkgnames"]) if apt() else ""
        wanted = [name for name in PACKAGES if name in known.split()]
        downloads = folder / "downloads"
        downloads.mkdir()
        log = WORK / "logs" / "programs.log"
        shell(["apt-get", "-q", *apt(), "download", *wanted], log, cwd=downloads)
        for package in downloads.glob("*.deb"):
            shell(["dpkg", "-x", package, folder])

    return once(fetch, WORK / "programs")


def run_program(
    mpi: Mpi, way: str, n: int, program: list[str | Path], folder: Path, seconds: float = 180
) -> tuple[int, str]:
    libraries = debian_programs() / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    paths = ":".join(str(libraries / part) for part in ("", "blas", "lapack"))
    command = [mpi.mpiexec, "-n", str(n), mpi.under(way), *program]
    return run(command, mpi.environment() | {"LD_LIBRARY_PATH": paths}, folder, seconds)


def scratch(mpi: Mpi, name: str, way: str) -> Path:
    folder = WORK / "scratch" / f"{mpi.name}-{name}-{way}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def run_netpipe(mpi: Mpi, way: str, _: set[str] | None) -> Verdicts:
    program = debian_programs() / "usr" / "bin" / "NPopenmpi"
    folder = scratch(mpi, "netpipe", way)
    code, output = run_program(mpi, way, 2, [program, "-i", "-u", "1000000"], folder)
    (folder / "output").write_text(output)
    sizes = re.findall(r"(\d+) bytes .*--> *(.*)", output)
    verdicts = {f"{n} bytes": "pass" if "passed" in said else "fail" for n, said in sizes}
    return verdicts | {"ended": "pass" if code == 0 else "fail"}


def run_hpcc(mpi: Mpi, way: str, _: set[str] | None) -> Verdicts:
    root = debian_programs()
    folder = scratch(mpi, "hpcc", way)
    example = root / "usr/share/doc/hpcc/examples/_hpccinf.txt"
    shutil.copy(example, folder / "hpccinf.txt")
    code, output = run_program(mpi, way, 4, [root / "usr/bin/hpcc"], folder, seconds=400)
    (folder / "output").write_text(output)
    written = folder / "hpccoutf.txt"
    text = written.read_text(errors="replace") if written.exists() else ""
    verdicts = {
        "ended": "pass" if code == 0 else "fail",
        "Success=1": "pass" if "Success=1" in text else "fail",
        "HPL residuals": "pass"
        if "1 tests completed and passed residual checks" in text
        else "fail",
    }
    for test in ("PTRANS", "MPIRandomAccess", "MPIRandomAccess_LCG", "MPIFFT", "StarDGEMM"):
        ended = re.search(rf"^Begin of {test}.*?End of {test}", text, re.M | re.S)
        bad = ended and re.search(r"\bFAILED\b|\b[1-9]\d* errors", ended[0])
        verdicts[test] = "pass" if ended and not bad else "fail"
    return verdicts


def run_scalapack(mpi: Mpi, tester: Path, way: str, _: set[str] | None) -> Verdicts:
    folder = scratch(mpi, tester.name, way)
    for data in tester.parent.glob("*.dat"):
        (folder / data.name).symlink_to(data.resolve())
    code, output = run_program(mpi, way, 4, [tester], folder, seconds=120)
    (folder / "output").write_text(output)
    # Some write a report of their own.
    for report in folder.glob("*.out"):
        output += report.read_text(errors="replace")
    passed = sum(map(int, re.findall(r"(\d+) tests completed and passed residual", output)))
    failed = sum(map(int, re.findall(r"(\d+) tests completed and failed residual", output)))
    failed += len(re.findall(r"\bFAILED\b", output))
    if code == 0 and not failed and passed:
        return {f"{tester.name}: {passed} residual checks": "pass"}
    verdicts = {f"{tester.name}: ended": "pass" if code == 0 else "fail"}
    return verdicts | {f"{tester.name}: checks": "pass" if passed and not failed else "fail"}


def programs_suite(mpi: Mpi, options: argparse.Namespace) -> Iterator[Part]:
    if mpi.name not in ("openmpi", "mpich"):
        return
    root = debian_programs()
    if mpi.name == "openmpi":
        yield Part("programs", "NetPIPE", functools.partial(run_netpipe, mpi))
        yield Part("programs", "HPCC", functools.partial(run_hpcc, mpi))
    testers = root.glob(f"usr/lib/*/scalapack/{mpi.name}-tests/x*")
    for tester in sorted(testers):
        yield Part(
            "programs", f"ScaLAPACK {tester.name}", functools.partial(run_scalapack, mpi, tester)
        )
    for level in (1, 2, 3):
        for tester in sorted(root.glob(f"usr/lib/*/scalapack/{mpi.name}-tests/PBLAS/*{level}tst")):
            yield Part(
                "programs", f"PBLAS {tester.name}", functools.partial(run_scalapack, mpi, tester)
            )


# ---- OSU and Intel MPI Benchmarks --------------------------------------------------------------


def executables(folder: Path, pattern: str) -> list[Path]:
    found = [
        path
        for path in sorted(folder.rglob(pattern))
        if path.is_file() and os.access(path, os.X_OK) and not path.suffix
    ]
    if not found:
        raise CannotRun(f"no {pattern} programs below {folder}")
    return found


def run_osu(mpi: Mpi, program: Path, way: str, _: set[str] | None) -> Verdicts:
    n = 4 if program.parent.name in ("collective", "blocking", "non_blocking") else 2
    # MPI_INT: sums of 8-bit integers overflow, and what that gives is the library's choice.
    words = ["-c", "-m", "1:262144", "-i", "20", "-x", "2"]
    if n == 4:
        words += ["-T", "mpi_int"] if "reduce" in program.name or "scan" in program.name else []
    folder = scratch(mpi, program.name, way)
    code, output = run_program(mpi, way, n, [program.resolve(), *words], folder, seconds=120)
    (folder / "output").write_text(output)
    good = code == 0 and "Fail" not in output and "Pass" in output
    return {program.name: "pass" if good else "fail"}


def osu_suite(mpi: Mpi, options: argparse.Namespace) -> Iterator[Part]:
    if not options.osu:
        return
    for program in executables(options.osu, "osu_*"):
        if program.parent.name not in ("one-sided", "startup"):
            yield Part("osu", program.name, functools.partial(run_osu, mpi, program))


def run_imb(mpi: Mpi, program: Path, way: str, _: set[str] | None) -> Verdicts:
    n = 4
    folder = scratch(mpi, program.name, way)
    words = ["-npmin", str(n), "-iter", "5,10,100", "-msglog", "0:20", "-time", "2"]
    code, output = run_program(mpi, way, n, [program.resolve(), *words], folder, seconds=900)
    (folder / "output").write_text(output)
    verdicts = {"ended": "pass" if code == 0 else "fail"}
    # A table for each benchmark; with data checks its last column is the number of defects.
    for title, table in re.findall(
        r"^# Benchmarking (\w+)(.*?)(?=^# Benchm|\Z)", output, re.M | re.S
    ):
        rows = re.findall(r"^ +\d+ .*?([\d.]+) *$", table, re.M)
        bad = "defects" in table and any(float(defects) for defects in rows)
        name = f"{program.name} {title}"
        verdicts[name] = "fail" if bad or verdicts.get(name) == "fail" else "pass"
    return verdicts


def imb_suite(mpi: Mpi, options: argparse.Namespace) -> Iterator[Part]:
    if not options.imb:
        return
    for program in executables(options.imb, "IMB-*"):
        if program.name in ("IMB-MPI1", "IMB-NBC", "IMB-EXT", "IMB-P2P"):
            yield Part("imb", program.name, functools.partial(run_imb, mpi, program))


SUITES: dict[str, Callable[[Mpi, argparse.Namespace], Iterator[Part]]] = {
    "mpi4py": mpi4py_suite,
    "mpich": mpich_suite,
    "programs": programs_suite,
    "osu": osu_suite,
    "imb": imb_suite,
}


# ---- comparing ---------------------------------------------------------------------------------


def progress(*words: object) -> None:
    print(time.strftime("%H:%M:%S"), *words, flush=True)


def counts(verdicts: Verdicts) -> dict[str, int]:
    counted = collections.Counter(verdicts.values())
    return {word: counted[word] for word in ("pass", "fail", "skip", "lost")}


def in_words(verdicts: Verdicts) -> str:
    return ", ".join(f"{n} {word}" for word, n in counts(verdicts).items() if n) or "no tests"


def worse(plain: Verdicts, got: Verdicts) -> set[str]:
    return {test for test, said in plain.items() if said == "pass" and got.get(test) != "pass"}


class Plain:
    """Plain results, kept: they do not change while the interposer does."""

    def __init__(self, mpi: Mpi, fresh: bool) -> None:
        self.file = WORK / "plain" / f"{mpi.name}.json"
        self.kept: dict[str, Verdicts] = {}
        if not fresh and self.file.exists():
            saved = json.loads(self.file.read_text())
            if saved["version"] == mpi.version:
                self.kept = saved["results"]
        self.version = mpi.version

    def get(self, part: Part) -> Verdicts:
        key = f"{part.suite} {part.name}"
        if key not in self.kept:
            self.kept[key] = part.run("plain", None)
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps({"version": self.version, "results": self.kept}))
        return self.kept[key]


def compare(
    mpi: Mpi, part: Part, plain: Verdicts | None, way: str, tries: int
) -> dict[str, object]:
    """Runs a part interposed; what differs runs again, both ways, until it agrees or counts.

    Without plain results, only what does not pass interposed runs plain: the rest cannot be worse.
    """
    mpi.tally(way)
    began = time.time()
    got = part.run(way, None)
    tally = mpi.tally(way)
    whole = plain is not None
    if plain is None:
        rest = {test for test, said in got.items() if said != "pass"}
        plain = part.run("plain", rest) if rest else {}
    suspects = worse(plain, got)
    steady = dict(plain)
    for _ in range(tries - 1):
        if not suspects:
            break
        again = part.run(way, suspects)
        got |= {test: "pass" for test in suspects if again.get(test) == "pass"}
        suspects = worse(plain, got)
    if suspects:
        again = part.run("plain", suspects)
        for test in suspects:
            steady[test] = again.get(test, "lost")
        suspects = worse(steady, got)
    mpi.tally(way)
    better = {test for test in worse(got, plain) if test in plain}
    new = {test for test in got if whole and test not in plain}
    progress(
        f"{mpi.name} {part.suite} {part.name} {way}: {in_words(got)} (plain: {in_words(plain)})"
        + (f"; DIFFERS: {' '.join(sorted(suspects))}" if suspects else "")
        + f"  {time.time() - began:.0f} s"
    )
    return {
        "suite": part.suite, "part": part.name, "way": way, "plain": counts(plain),
        "interposed": counts(got), "interposer": dict(tally), "fails_interposed": sorted(suspects),
        "unsteady": sorted(t for t in plain if plain[t] != steady[t]),
        "passes_interposed_only": sorted(better), "new": sorted(new),
        "fails_both": sorted(t for t in plain if plain[t] in ("fail", "lost") and t not in better),
        "seconds": round(time.time() - began, 1),
    }  # fmt: skip


def describe_mpi(mpi: Mpi) -> str:
    done = subprocess.run(
        [mpi.mpiexec, "--version"], capture_output=True, text=True, env=mpi.environment()
    )
    if match := re.search(r"(?:\(Open MPI\)|\(OpenRTE\)|Version:)\s+(\S+)", done.stdout):
        return match[1]
    return mpi.release or "?"


def run_all(
    mpi: Mpi,
    options: argparse.Namespace,
    results: list[dict[str, object]],
    save: Callable[[], None],
) -> None:
    plain = Plain(mpi, options.fresh)
    for suite in options.suite or SUITES:
        try:
            for part in SUITES[suite](mpi, options):
                if options.part and part.name.split()[0] not in options.part:
                    continue
                before = None if options.brief else plain.get(part)
                for way in options.way or ["lz4"]:
                    results.append(compare(mpi, part, before, way, options.tries))
                    save()
        except CannotRun as why:
            progress(f"{mpi.name} {suite}: not run: {why}")
            results.append({"suite": suite, "not_run": str(why)})


# ---- telling -----------------------------------------------------------------------------------


def table(job: dict[str, object]) -> Iterator[str]:
    head = ("MPI", "suite", "way", "tests", "plain", "interposed", "compressed", "differ")
    yield "{:<16} {:<9} {:<6} {:>6} {:>6} {:>10} {:>11} {:>6}".format(*head)
    for mpi in job["mpis"]:  # type: ignore[attr-defined]
        rows: dict[tuple[str, str], collections.Counter[str]] = {}
        for result in mpi["results"]:
            if "not_run" in result:
                continue
            key = (result["suite"], result["way"])
            row = rows.setdefault(key, collections.Counter())
            row["tests"] += sum(result["plain"].values())
            row["plain"] += result["plain"]["pass"]
            row["interposed"] += result["interposed"]["pass"]
            row["compressed"] += result["interposer"].get("compressed_messages", 0)
            row["differ"] += len(result["fails_interposed"])
        name = f"{mpi['name']} {mpi['version']}"
        for (suite, way), row in rows.items():
            numbers = [row[w] for w in ("tests", "plain", "interposed", "compressed", "differ")]
            yield "{:<16} {:<9} {:<6} {:>6} {:>6} {:>10} {:>11} {:>6}".format(
                name, suite, way, *numbers
            )


def listing(job: dict[str, object], key: str) -> list[str]:
    return [
        f"  {mpi['name']} {result['suite']} {result['part']} {result['way']}: {test}"
        for mpi in job["mpis"]  # type: ignore[attr-defined]
        for result in mpi["results"]
        for test in result.get(key, [])
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["openmpi", "mpich", *NEWER]
    parser.add_argument(
        "--mpi", action="append", choices=names, help="default: openmpi and mpich; may be repeated"
    )
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="default: all")
    parser.add_argument("--part", action="append", help="a module, folder or program of the suite")
    parser.add_argument("--way", action="append", help="value of mpi_codec; default: lz4")
    parser.add_argument(
        "--set", action="append", default=[], metavar="mpi_OPTION=VALUE", help="may be repeated"
    )
    parser.add_argument("--ranks", action="append", type=int, help="mpi4py: default 1 and 2")
    parser.add_argument("--osu", type=Path, metavar="DIR", help="built OSU micro-benchmarks")
    parser.add_argument("--imb", type=Path, metavar="DIR", help="built Intel MPI Benchmarks")
    parser.add_argument(
        "--limit", type=int, default=180, help="seconds of a test of MPICH's suite (%(default)s)"
    )
    parser.add_argument("--tries", type=int, default=3, help="runs before a difference counts")
    parser.add_argument("--fresh", action="store_true", help="run plain again, too")
    parser.add_argument(
        "--brief", action="store_true", help="run plain only what does not pass interposed (mpi4py)"
    )
    parser.add_argument("--json", type=Path, help="default: build/conformance-mpi/result.json")
    options = parser.parse_args()
    if options.brief and options.suite != ["mpi4py"]:
        parser.error("--brief is for --suite mpi4py: others do not say how many tests they have")
    return options


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for setting in options.set:
        name, _, value = setting.partition("=")
        TRUST[name.removeprefix("mpi_").upper()] = value
    job: dict[str, object] = {
        "command": " ".join(sys.argv),
        "date": time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.platform()}",
        "settings": TRUST,
        "mpis": [],
    }
    output = options.json or WORK / "result.json"
    output.parent.mkdir(parents=True, exist_ok=True)

    def save() -> None:
        output.write_text(json.dumps(job, indent=1) + "\n")

    for name in options.mpi or ["openmpi", "mpich"]:
        try:
            mpi = newer(name) if name in NEWER else debian(name)
        except CannotRun as why:
            progress(f"{name}: not run: {why}")
            job["mpis"].append({"name": name, "version": "", "results": [{"not_run": str(why)}]})  # type: ignore[attr-defined]
            continue
        mpi.version = describe_mpi(mpi)
        results: list[dict[str, object]] = []
        job["mpis"].append({"name": name, "version": mpi.version, "results": results})  # type: ignore[attr-defined]
        run_all(mpi, options, results, save)
    save()
    ran = [r for mpi in job["mpis"] for r in mpi["results"] if "not_run" not in r]  # type: ignore[attr-defined]
    if not ran:
        reasons = [r["not_run"] for mpi in job["mpis"] for r in mpi["results"]]  # type: ignore[attr-defined]
        print("nothing to run:", "; ".join(reasons) or "no part of that name")
        return 77
    print(*table(job), sep="\n")
    for title, key in (
        ("pass plain, fail interposed", "fails_interposed"),
        ("fail plain, pass interposed", "passes_interposed_only"),
        ("unsteady: passed plain, then not", "unsteady"),
    ):
        if found := listing(job, key):
            print(f"{title}:", *found, sep="\n")
    print(f"raw: {output}")
    return 1 if listing(job, "fails_interposed") else 0


if __name__ == "__main__":
    sys.exit(main())
