# SPDX-License-Identifier: Apache-2.0
"""Each MPI of this machine with its interposer, the test programs built for it, and a rendezvous
that a test can make behave badly."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OPEN_MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl": "self,tcp",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}

LINKED = ("-l", "-L", "-Wl,", "-shared")  # no options of a compiler


def library_for(name: str) -> Path | None:
    folders = [ROOT / "build" / preset / "integrations" / "mpi" for preset in ("dev", "release")]
    if chosen := os.environ.get("WIREPRESS_LIB_DIR"):
        folders.insert(0, Path(chosen).resolve())
    for folder in folders:
        if (path := folder / f"libwirepress_mpi_{name}.so").is_file():
            return path
    return None


@dataclass
class Mpi:
    name: str
    library: Path
    folder: Path
    built: dict[str, Path] = field(default_factory=dict)
    prefix: Path | None = None  # of an MPI that is not Debian's
    yields: Path | None = None  # what makes it give way while it waits: there are two cores

    def tool(self, name: str) -> str:
        if self.prefix is None:
            return f"{name}.{self.name}"
        suffix = "_abi" if self.name == "abi" and name == "mpicc" else ""
        return str(self.prefix / "bin" / (name + suffix))

    def compiler(self) -> list[str | Path]:
        """For C programs. Intel's wheel has no headers: MPICH's are those of its ABI."""
        if self.name != "intelmpi":
            return [self.tool("mpicc")]
        assert self.prefix is not None
        headers = self.prefix.with_name("mpich5") / "include"
        libraries = [f"-L{self.prefix}/lib", f"-Wl,-rpath,{self.prefix}/lib", "-lmpi"]
        return ["cc", f"-I{headers}", "-Wl,--no-as-needed", *libraries]

    def release(self) -> str:
        """Its version, as its launcher says it: 4.1.4."""
        words = [self.tool("mpirun"), "--version"]
        said = subprocess.run(words, capture_output=True, text=True, env=self.environment()).stdout
        found = re.search(r"\d+\.\d+(\.\d+)?", said)
        assert found, said
        return found[0]

    def compile(
        self,
        target: Path,
        sources: list[Path],
        *options: str | Path,
        compiler: list[str | Path] | None = None,
    ) -> None:
        """A program, or with -shared a library. ccache, where it is, keeps the objects: each run of
        the tests has them anew."""
        compiler = compiler or self.compiler()
        cached = filter(None, [shutil.which("ccache")])
        begin = [*cached, *(word for word in compiler if not str(word).startswith(LINKED))]
        begin += [word for word in options if not str(word).startswith(LINKED)]
        environment = os.environ | {"CCACHE_COMPILERCHECK": "%compiler% -v"}  # of what is wrapped
        objects = [target.with_name(f"{target.name}-{source.stem}.o") for source in sources]
        for source, made in zip(sources, objects, strict=True):
            subprocess.run([*begin, "-c", source, "-o", made], check=True, env=environment)
        subprocess.run([*compiler, "-o", target, *objects, *options], check=True)

    def build(self, source: str, *options: str) -> Path:
        """A test program, or a library from a source that has no main."""
        if source not in self.built:
            target = self.folder / Path(source).stem
            # Open MPI's header makes gcc believe that MPI_STATUSES_IGNORE is an array.
            words = ["-std=gnu99", "-O1", "-g", "-Wall", "-Werror", "-Wno-stringop-overflow"]
            words += ["-pthread", "-lm", *options]
            if source in ("flip.c", "live.c", "memory.c", "nameless.c"):
                words += ["-shared", "-fPIC", "-ldl"]
            if self.name != "openmpi":
                words.append("-DHAS_ISENDRECV")
            self.compile(target, [HERE / "tests" / source], *words)
            self.built[source] = target
        return self.built[source]

    def build_fortran(self, source: str, binding: str) -> Path:
        """The same with mpif.h, mpi or mpi_f08 as the binding."""
        wrapper = f"mpifort.{self.name}"
        if not shutil.which(wrapper):
            pytest.skip(f"no {wrapper} on this machine")
        target = self.folder / f"{Path(source).stem}-{binding}"
        if str(target) not in self.built:
            modules = self.folder / f"modules-{binding}"
            modules.mkdir(exist_ok=True)
            # One call with buffers of several types is an error otherwise, unless a module says
            # that it is meant.
            command = [wrapper, "-O1", "-g", "-w", "-fallow-argument-mismatch", f"-J{modules}"]
            command += ["-ffree-line-length-none", f"-DUSE_{binding.upper().replace('.', '_')}"]
            command += [f"-D{self.name.upper()}", "-o", target, HERE / "tests" / source]
            subprocess.run(command, check=True)
            self.built[str(target)] = target
        return target

    def environment(self) -> dict[str, str]:
        """Without settings of the user's that would reach the ranks."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("WIREPRESS_", "LD_PRE"))}
        kept["WIREPRESS_MPI_CONTEST"] = "off"  # collectives are to go our way, faster or not
        return kept | (OPEN_MPI_SETTINGS if self.name.startswith("openmpi") else {})

    def start(
        self, ranks: list[dict[str, str]], program: list[str | Path], seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """One rank for each entry, with these variables of its own."""
        command: list[str | Path] = [self.tool("mpirun")]
        words = [
            [f"{key}={value}" for key, value in self.yielding(settings).items()]
            for settings in ranks
        ]
        if self.name.startswith("openmpi"):  # Debian 13's ends by a SIGSEGV where a ":" is given
            cases = [f'{i}) exec env {shlex.join(w)} "$@";;' for i, w in enumerate(words)]
            script = f"case $OMPI_COMM_WORLD_RANK in {' '.join(cases)} esac"
            command += ["-n", str(len(ranks)), "sh", "-c", script, "sh", *program]
        else:
            for i, settings in enumerate(words):
                command += [*([":"] if i else []), "-n", "1", "env", *settings, *program]
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=seconds
        )

    def give_way(self, *options: str) -> None:
        shim = self.folder / "yield.so"
        command = ["cc", "-O2", "-shared", "-fPIC", "-o", shim, HERE / "tests" / "yield.c"]
        if subprocess.run([*command, *options], capture_output=True).returncode == 0:
            self.yields = shim

    def yielding(self, settings: dict[str, str]) -> dict[str, str]:
        if self.yields is None:
            return settings
        preloaded = filter(None, [settings.get("LD_PRELOAD"), str(self.yields)])
        return settings | {"LD_PRELOAD": ":".join(preloaded)}

    def run(
        self, n: int, program: list[str | Path], settings: dict[str, str], seconds: float = 60
    ) -> str:
        """All ranks alike, with the interposer: they must succeed and say nothing on stderr."""
        mine = {"LD_PRELOAD": str(self.library), **settings}
        done = self.start([mine] * n, program, seconds)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not [line for line in done.stderr.splitlines() if "wirepress" in line], done.stderr
        return done.stdout


@pytest.fixture(scope="session", params=["openmpi", "mpich"])
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    return find_mpi(request.param, tmp_path_factory)


def find_mpi(name: str, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    for tool in (f"mpicc.{name}", f"mpirun.{name}"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool} on this machine")
    library = library_for(name)
    if library is None:
        pytest.skip(f"libwirepress_mpi_{name}.so is not built (make build)")
    mpi = Mpi(name, library, tmp_path_factory.mktemp(name))
    if name == "mpich":
        # Linked with UCX: mpi4py loads MPI where RTLD_NEXT does not look.
        mpi.give_way("-DWITH_UCX", "-Wl,--no-as-needed", "-l:libucp.so.0", "-ldl")
    else:
        mpi.give_way()
    return mpi


# From PyPI, by scripts/setup: newer MPIs than Debian's, and the standard ABI.
NEWER = {"openmpi5": "openmpi5", "mpich5": "mpich5", "abi": "mpich5", "intelmpi": "intelmpi"}
# Intel MPI has MPICH's ABI: one of MPICH's modules serves it.
MODULES = {"intelmpi": "mpich5"}


@pytest.fixture(scope="session", params=["openmpi", "mpich", *NEWER])
def any_mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    """Every MPI that people load, each with the module that serves it."""
    name = request.param
    if name not in NEWER:
        return find_mpi(name, tmp_path_factory)
    prefix = ROOT / "build" / "third_party" / "mpi" / NEWER[name]
    if not (prefix / "release").is_file():
        pytest.skip(f"{prefix} is not there (scripts/setup gets it from PyPI)")
    library = library_for(MODULES.get(name, name))
    if library is None:
        pytest.skip(f"libwirepress_mpi_{name}.so is not built (make build)")
    mpi = Mpi(name, library, tmp_path_factory.mktemp(name), prefix=prefix)
    mpi.give_way()
    return mpi


class Rendezvous:
    """The protocol of spec/report.md, with the nodes that the test wants.

    `breaks`: ranks whose connection ends without a verdict, the others being told.
    `repeats`: how often such a rank is turned away before it is told; None: always.
    `crossed`: every rank is told a cookie of its own, as if it were of another job.
    """

    def __init__(
        self,
        size: int,
        nodes: list[int] | None,
        breaks: tuple[int, ...] = (),
        repeats: int | None = None,
        crossed: bool = False,
    ) -> None:
        self.size, self.nodes, self.breaks, self.crossed = size, nodes, breaks, crossed
        self.token, self.cookie = secrets.token_hex(24), secrets.token_hex(8)
        self.hellos: dict[int, list[str]] = {}  # by rank: what follows its number
        self.reports: dict[int, str] = {}
        self.repeats, self.asked_again = repeats, 0
        self._ranks: dict[str, int] = {}  # by process
        self._waiting: list[tuple[int, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def settings(self) -> dict[str, str]:
        # The first address answers nothing: ranks are to try the next.
        port = self._listener.getsockname()[1]
        return {"WIREPRESS_RENDEZVOUS": f"127.0.0.1:1,127.0.0.1:{port};{self.token}"}

    def close(self) -> None:
        self._stop.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # accept() ends at once
        self._thread.join()
        self._listener.close()

    def __enter__(self) -> Rendezvous:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                if self._stop.is_set():
                    break
                raise
            client.settimeout(10)
            client.sendall(f"wirepress 2 {self.token[:16]}\n".encode())
            stream = client.makefile("r", encoding="utf-8")
            words = stream.readline().rstrip("\n").split(" ", 11)
            assert words[1:3] == ["2", self.token]
            if words[0] == "report":
                self.reports[self._ranks[words[3]]] = stream.read(int(words[4]))
                client.sendall(b"ok\n")
                client.close()
                continue
            assert words[0] == "hello"
            again, rank = words[4] in self._ranks, int(words[5])
            self._ranks[words[4]] = rank
            self.hellos[rank] = words[6:]
            if again:
                self.asked_again += 1
                if self.repeats is not None and self.asked_again > self.repeats:
                    client.sendall(self._verdict(rank))
                self._hang_up(client)
                continue
            self._waiting.append((rank, client))
            if len(self._waiting) == self.size:
                self._answer()

    def _verdict(self, rank: int) -> bytes:
        if not self.nodes:
            return b"off some reason\n"
        own = f"{rank:016x}" if self.crossed else self.cookie
        return f"on {own}{self.token[:16]} {' '.join(map(str, self.nodes))}\n".encode()

    def _answer(self) -> None:
        for rank, client in self._waiting:
            if rank not in self.breaks:
                client.sendall(self._verdict(rank))
            self._hang_up(client)
        self._waiting.clear()

    @staticmethod
    def _hang_up(client: socket.socket) -> None:
        client.shutdown(socket.SHUT_RDWR)  # the reader above still holds it open
        client.close()


@pytest.fixture(scope="session")
def rendezvous_class() -> type[Rendezvous]:
    return Rendezvous


@pytest.fixture(scope="session")
def mpi4py_python(mpi: Mpi) -> tuple[str, dict[str, str]]:
    """A Python with mpi4py and numpy, and the settings with which it finds this MPI."""
    python = sys.executable
    if subprocess.run([python, "-c", "import mpi4py, numpy"], capture_output=True).returncode:
        pytest.skip(f"{python} has no mpi4py or no numpy")
    if mpi.name == "openmpi":
        return python, {"MPI4PY_LIBMPI": "libmpi.so.40"}
    # mpi4py looks for MPICH's usual name; Debian's differs.
    alias = mpi.folder / "alias"
    alias.mkdir(exist_ok=True)
    listed = subprocess.run(["ldd", mpi.library], capture_output=True, text=True).stdout
    real = next(line.split()[2] for line in listed.splitlines() if "libmpi" in line)
    for name in ("libmpi.so.12", "libmpich.so.12"):
        if not (alias / name).exists():
            (alias / name).symlink_to(real)
    return python, {"LD_LIBRARY_PATH": str(alias), "MPI4PY_LIBMPI": "libmpi.so.12"}
