# SPDX-License-Identifier: Apache-2.0
"""Every MPI that people load under `wirepress run`: Debian's Open MPI and MPICH, Open MPI 5,
MPICH 5 and Intel MPI as PyPI has them, the standard ABI; modules that `setup-mpi` builds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
WHEELS = HERE.parents[1] / "build" / "third_party" / "mpi"
SETTINGS = {
    "WIREPRESS_MPI_SAME_HOST": "on",
    "WIREPRESS_MPI_THRESHOLD": "1",
    "WIREPRESS_MPI_LINK": "100Mbps",
    "WIREPRESS_MPI_CONTEST": "off",
    "WIREPRESS_MPI_CODEC": "lz4",
}


def wirepress(
    words: list[str | Path], environment: dict[str, str], seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wirepress", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def job(mpi: Any, program: list[str | Path], folder: Path, **more: str) -> tuple[str, dict]:
    """What a job of two ranks printed, and its report: it was compressed and nothing is wrong."""
    report = folder / "report.json"
    command = ["run", "--report", report, "--", mpi.tool("mpirun"), "-n", "2", *program]
    done = wirepress(command, mpi.environment() | SETTINGS | more)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(report.read_text())
    assert said["state"] == "on" and not any(r["events"]["corrupt"] for r in said["ranks"])
    assert compressed(said) > 0
    return done.stdout, said


def compressed(report: dict) -> int:
    calls = [call for rank in report["ranks"] for call in rank["calls"].values()]
    return sum(call["compressed_messages"] for call in calls)


def wheel(name: str) -> Path:
    if not (WHEELS / name / "release").is_file():
        pytest.skip(f"{WHEELS / name} is not there (scripts/setup gets it from PyPI)")
    return WHEELS / name


# ---- the matrix --------------------------------------------------------------------------------


def test_point_to_point(any_mpi, tmp_path):
    out, _ = job(any_mpi, [any_mpi.build("p2p.c"), "threads"], tmp_path)
    assert out.count("ok ") == 18


def test_large_messages(any_mpi, tmp_path):
    """And looks at requests, which MPI 4.1 has: no MPI of Debian 12 is as new."""
    if any_mpi.name == "intelmpi":
        pytest.skip(
            "without the library, too, a small MPI_Ssend to a receive of 0 bytes is no error"
        )
    out, _ = job(any_mpi, [any_mpi.build("pieces.c"), "single"], tmp_path)
    assert out.count("ok ") == 9


@pytest.mark.slow
def test_collectives(any_mpi, tmp_path):
    out, _ = job(any_mpi, [any_mpi.build("matrix.c"), "11", "200"], tmp_path)
    assert "ok matrix" in out


def test_mpi4py_of_the_wheel(any_mpi, tmp_path):
    """PyPI's mpi4py asks for libmpi.so.12 or libmpi.so.40, whatever the MPI calls its library."""
    if any_mpi.name == "abi":
        pytest.skip("PyPI's mpi4py has no module for the standard ABI")
    python = any_mpi.prefix / "bin" / "python" if any_mpi.prefix else Path(sys.executable)
    if subprocess.run([python, "-c", "import mpi4py, numpy"], capture_output=True).returncode:
        pytest.skip(f"{python} has no mpi4py or no numpy")
    code = "from mpi4py import MPI; print(MPI.Get_library_version())\n"
    program = tmp_path / "program.py"
    program.write_text(code + (HERE / "tests" / "objects.py").read_text())
    out, _ = job(any_mpi, [python, program], tmp_path)
    assert version(any_mpi) in " ".join(out.split())


def version(mpi: Any) -> str:
    """What the MPI says of itself, as far as it tells the MPIs of this file apart."""
    if mpi.prefix is None:
        release = mpi.release()
    else:
        release = (mpi.prefix / "release").read_text().strip().split("==")[1]
    if mpi.name.startswith("openmpi"):
        return f"Open MPI v{release}"
    if mpi.name == "intelmpi":
        return f"Intel(R) MPI Library {release}"
    return release if mpi.name == "mpich5" else f"MPICH Version: {release}"


# ---- one MPI's program, another's library ------------------------------------------------------


def build_without_rpath(source: str, prefix: Path, target: Path) -> Path:
    """A program that asks for libmpi.so.12 and does not say where it is."""
    subprocess.run(
        ["cc", "-std=gnu99", "-O1", f"-I{prefix}/include", HERE / "tests" / source, "-o", target,
         f"-L{prefix}/lib", "-lmpi", "-pthread", "-lm", "-Wl,--allow-shlib-undefined"],
        check=True,
    )  # fmt: skip
    return target


def test_a_program_of_libmpi_on_debians_libmpich(mpi, tmp_path):
    if mpi.name != "mpich":
        pytest.skip("Open MPI's library has one name everywhere")
    program = build_without_rpath("types.c", wheel("mpich5"), tmp_path / "program")
    job(mpi, [program], tmp_path)


def test_a_program_of_libmpich_on_libmpi(any_mpi, tmp_path):
    """Debian's name for it leads to the launcher's, where the loader finds no libmpich."""
    if any_mpi.name != "mpich5":
        pytest.skip("for MPICH 5, which others call libmpi.so.12")
    if not shutil.which("mpicc.mpich"):
        pytest.skip("no mpicc.mpich on this machine")
    program = tmp_path / "program"
    command = ["mpicc.mpich", "-std=gnu99", "-O1", HERE / "tests" / "types.c", "-o", program]
    subprocess.run([*command, "-pthread", "-lm"], check=True)
    from wirepress.launch.mpi_libraries import Library, library_dirs, preloaded

    real = Library("libmpi.so.12", any_mpi.prefix / "lib" / "libmpi.so.12")
    preload = ":".join(map(str, preloaded(real, library_dirs())))
    report = tmp_path / "report.json"
    settings = {"LD_PRELOAD": preload, "WIREPRESS_MPI_TRUST": "1", **SETTINGS}
    done = any_mpi.start([settings | {"WIREPRESS_MPI_REPORT": str(report)}] * 2, [program])
    assert done.returncode == 0, done.stdout + done.stderr
    assert compressed(json.loads(report.read_text())) > 0


def test_a_module_for_another_version_keeps_out(any_mpi, tmp_path):
    """MPI_Isendrecv of Open MPI 5 would go around a module that was built for Open MPI 4."""
    others = {"openmpi5": "openmpi", "mpich5": "mpich", "openmpi": "openmpi5", "mpich": "mpich5"}
    if any_mpi.name not in others:
        pytest.skip("one module serves every standard ABI")
    older = any_mpi.library.with_name(f"libwirepress_mpi_{others[any_mpi.name]}.so")
    if not older.is_file():
        pytest.skip(f"{older.name} is not built")
    from wirepress.launch.mpi_libraries import features_of, library_in, preloaded

    if features_of(older) == features_of(any_mpi.library):
        pytest.skip(f"{older.name} serves this MPI, too")
    family = any_mpi.name.rstrip("5")
    library = library_in(any_mpi.prefix or Path("/usr"), (family,))
    assert library is not None
    _, *libraries = preloaded(library, [any_mpi.library.parent])
    settings = {"LD_PRELOAD": ":".join(map(str, [older, *libraries])), "WIREPRESS_MPI_TRUST": "1"}
    done = any_mpi.start([settings | SETTINGS] * 2, [any_mpi.build("types.c")])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "off: rank 0: this module of wirepress was built for an MPI with" in done.stderr
    assert "setup-mpi" in done.stderr


def test_a_native_module_under_the_standard_abi_ends_in_a_sentence(any_mpi):
    """Its handles are other numbers: whatever the program calls would go wrong."""
    if any_mpi.name != "abi":
        pytest.skip("for the standard ABI")
    native = any_mpi.library.with_name("libwirepress_mpi_mpich5.so")
    if not native.is_file():
        pytest.skip(f"{native.name} is not built")
    libraries = f"{native}:{any_mpi.prefix}/lib/libmpi.so.12"
    done = any_mpi.start([{"LD_PRELOAD": libraries}] * 2, [any_mpi.build("types.c")])
    assert done.returncode != 0
    assert "loads libmpi_abi.so.1" in done.stderr and "the option --mpi abi" in done.stderr


# ---- setup-mpi ---------------------------------------------------------------------------------


def setup(words: list[str | Path], cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WIREPRESS_")}
    environment = kept | {"XDG_CACHE_HOME": str(cache)} | more
    return wirepress(["setup-mpi", *words], environment, 1200)


# The test asks whether the module works, not how fast: it is compiled without optimizing. The last
# word of a command that compiles is a source in a temporary folder: ccache is given it by a name
# that stays, and its folder, for the test's cache is none of the user's.
HURRIED = """
case " $* " in *" -c "*) ;; *) exec c++ "$@" ;; esac
n=$#
for word; do
  shift
  n=$((n - 1))
  [ $n -eq 0 ] || set -- "$@" "$word"
done
cp "$word" "{kept}/${{word##*/}}"
CCACHE_DIR="{kept}/ccache" exec $(command -v ccache) c++ "$@" -O0 "{kept}/${{word##*/}}"
"""


@pytest.mark.slow
def test_a_module_that_the_user_builds(any_mpi, tmp_path):
    if any_mpi.name != "mpich5":
        pytest.skip("one MPI will do: the sources are those that CMake compiles for all")
    mpicc = any_mpi.tool("mpicc")
    kept = HERE.parents[1] / "build" / "test-modules"
    kept.mkdir(exist_ok=True)
    cxx = str(script(tmp_path / "c++", HURRIED.format(kept=kept)))
    first = setup(["--mpicc", mpicc, "--force"], tmp_path / "cache", CXX=cxx)
    assert first.returncode == 0, first.stderr
    assert "compiling" in first.stderr and "`wirepress run` takes it" in first.stderr
    (module,) = (tmp_path / "cache").rglob("*.so")
    again = setup(["--mpicc", mpicc], tmp_path / "cache", CXX=cxx)
    assert again.returncode == 0 and f"{module} serves it" in again.stderr
    listed = setup(
        ["--list"], tmp_path / "cache", PATH=f"{Path(mpicc).parent}:{os.environ['PATH']}"
    )
    assert f"{any_mpi.prefix}/lib/libmpi.so.12  (MPICH)\n    {module}\n" in listed.stdout
    program = tmp_path / "program.sh"
    program.write_text(f'echo "$LD_PRELOAD"; exec {any_mpi.build("p2p.c")} threads\n')
    out, _ = job(any_mpi, ["sh", program], tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert str(module) in out and out.count("ok ") == 18


def test_what_every_mpicc_says_suffices_to_link(any_mpi, tmp_path):
    """Open MPI 4's header has classes for C++ that want a library of their own."""
    if any_mpi.name == "intelmpi":
        pytest.skip("Intel's wheel has no mpicc")
    from wirepress.launch.setup_mpi import find_tools

    assert find_tools(any_mpi.tool("mpicc"), None, tmp_path).link_flags


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("mpicc", "cxx", "sentence"),
    [
        (None, "", "no mpicc on the path: load the module of your MPI, or give --mpicc PATH"),
        ("exit 3", "", "-show fails"),
        ("echo cc -lmpi", "no-such-compiler", "no-such-compiler: no such C++ compiler"),
        ("echo cc -lmpi", "old", "does not compile C++20 (GCC 10, clang 12 or newer do"),
        ("echo cc -I/none -lm", "c++", "finds no mpi.h: install the development files"),
    ],
)
def test_what_is_missing_is_named(tmp_path, mpicc, cxx, sentence):
    words: list[str | Path] = []
    more = {"CXX": cxx} if cxx else {}
    if cxx == "old":
        old = script(
            tmp_path / "old", "echo \"c++: error: unrecognized option '-std=c++20'\"; exit 1"
        )
        words += ["--cxx", old]
    if mpicc:
        words += ["--mpicc", script(tmp_path / "mpicc", mpicc)]
    else:
        more["PATH"] = str(tmp_path)
    done = setup(words, tmp_path / "cache", **more)
    assert done.returncode == 2
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert list((tmp_path / "cache").rglob("*")) == [
        tmp_path / "cache/wirepress",
        tmp_path / "cache/wirepress/mpi",
    ]


def test_a_static_mpi_is_refused(tmp_path):
    (tmp_path / "mpi.h").write_text('extern "C" int MPI_Get_version(int*, int*);\n')
    (tmp_path / "mpi.c").write_text("int MPI_Get_version(int *a, int *b) { return *a = *b = 0; }\n")
    compiled = ["cc", "-c", tmp_path / "mpi.c", "-o", tmp_path / "mpi.o"]
    subprocess.run(compiled, check=True)
    subprocess.run(["ar", "cr", tmp_path / "libmpi.a", tmp_path / "mpi.o"], check=True)
    mpicc = script(tmp_path / "mpicc", f"echo cc -I{tmp_path} -L{tmp_path} -lmpi")
    done = setup(["--mpicc", mpicc], tmp_path / "cache", LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 2 and "does not link a shared MPI library" in done.stderr
