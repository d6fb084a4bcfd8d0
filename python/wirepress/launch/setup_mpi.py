# SPDX-License-Identifier: Apache-2.0
"""`wirepress setup-mpi`: builds the module for an MPI that none of those here serves.

From the sources that came with wirepress, with the user's compilers alone: an MPI compiler wrapper
says where the header and the library are, and a C++ compiler makes the module. It is linked with
the library of codecs beside the shipped modules and kept in the user's cache.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .mpi_libraries import (
    FAMILIES,
    FEATURES,
    NAMES,
    Library,
    RunError,
    cache_dir,
    cache_key,
    features_of,
    first_mpi,
    library_dirs,
    library_in,
    list_loaded,
    module_for,
    prefix_of,
    read_elf,
    shipped_dirs,
    source_dir,
    sources_like,
)

DOOR = "libwirepress_door.so"
TOGETHER = 7  # sources of a folder that are compiled at once
MACROS = {
    "MPI_Send_c": "WPR_MPI_LARGE",
    "MPI_Isendrecv": "WPR_MPI_ISENDRECV",
    "MPI_Bcast_init": "WPR_MPI_PERSISTENT",
    "MPI_Session_init": "WPR_MPI_SESSIONS",
    "MPI_Request_get_status_all": "WPR_MPI_GET_STATUS_ALL",
    "MPI_Request_get_status_any": "WPR_MPI_GET_STATUS_ANY",
    "MPI_Request_get_status_some": "WPR_MPI_GET_STATUS_SOME",
}
CXX_OF = {"gcc": "g++", "cc": "c++", "clang": "clang++", "icx": "icpx", "nvc": "nvc++"}
# Without MPI's old C++ classes, which want a library of their own.
NO_BINDINGS = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
FLAGS = ["-std=c++20", "-O2", "-fPIC", "-pthread", "-fvisibility=hidden",
         "-fvisibility-inlines-hidden", "-ftls-model=initial-exec",
         *NO_BINDINGS]  # fmt: skip
FORTRAN = """
#include <mpi.h>
#ifndef OPEN_MPI
MPI_F08_status status;
#endif
static_assert(sizeof(MPI_Fint) == sizeof(int));
int main() { return 0; }
"""
NEEDS_MPI = """
#include <mpi.h>
int main() { int major, minor; return MPI_Get_version(&major, &minor); }
"""
NEEDS_CXX20 = """
#include <span>
template <typename T> requires(sizeof(T) > 0) int f(T) { return 0; }
int main() { return f(1); }
"""


def say(text: str) -> None:
    print(f"wirepress: {text}", file=sys.stderr, flush=True)


def call(command: list[Any]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise RunError(f"cannot start {command[0]}: {error.strerror}") from None


def first_error(output: str) -> str:
    """The first line that names a cause; those of the linker have no "error" in them."""
    said = output.splitlines()
    causes = ("error", "undefined reference", "cannot find")
    lines = [line for line in said if any(cause in line for cause in causes)] or said
    return lines[0].strip() if lines else "it says nothing"


# ---- the user's compilers --------------------------------------------------------------------


@dataclass
class Tools:
    mpicc: Path
    cxx: list[str]
    compile_flags: list[str]
    link_flags: list[str]

    def build(self, source: str, folder: Path, name: str) -> tuple[Path, str]:
        """A small program, and what the compiler said; the program is not there if that failed."""
        file, program = folder / f"{name}.cpp", folder / name
        file.write_text(source)
        done = call([*self.cxx, "-std=c++20", *NO_BINDINGS, *self.compile_flags, "-o", program,
                     file, "-Wl,--no-as-needed", *self.link_flags])  # fmt: skip
        return program, done.stdout


def find_mpicc(text: str | None) -> Path:
    found = shutil.which(text or "mpicc")
    if not found:
        raise RunError(
            f"{text}: no such command" if text else
            "no mpicc on the path: load the module of your MPI, or give --mpicc PATH"
        )  # fmt: skip
    return Path(os.path.abspath(found))


def find_cxx(text: str | None, cc: str) -> list[str]:
    """The C++ compiler: as told, by CXX, or the companion of the C compiler that mpicc calls."""
    if chosen := text or os.environ.get("CXX"):
        words = shlex.split(chosen)
        if words and shutil.which(words[0]):
            return words
        raise RunError(f"{chosen}: no such C++ compiler")
    name = os.path.basename(cc)
    companion = next((name.replace(c, cxx) for c, cxx in CXX_OF.items() if c in name), "c++")
    for candidate in (os.path.join(os.path.dirname(cc), companion), "c++", "g++", "clang++"):
        if shutil.which(candidate):
            return [candidate]
    raise RunError("no C++ compiler (c++, g++, clang++): install or load one, or give --cxx PATH")


def find_tools(mpicc_text: str | None, cxx_text: str | None, folder: Path) -> Tools:
    mpicc = find_mpicc(mpicc_text)
    shown = call([mpicc, "-show"])
    words = shlex.split(shown.stdout) if shown.returncode == 0 else []
    if not words:
        raise RunError(f"{mpicc} -show fails: {first_error(shown.stdout)}")
    tools = Tools(
        mpicc,
        find_cxx(cxx_text, words[0]),
        [f"-isystem{word[2:]}" if word.startswith("-I") else word
         for word in words[1:] if word.startswith(("-I", "-D"))],
        [word for word in words[1:] if word.startswith(("-L", "-l", "-Wl,"))],
    )  # fmt: skip
    bare = Tools(mpicc, tools.cxx, [], [])
    program, output = bare.build(NEEDS_CXX20, folder, "cxx20")
    if not program.exists():
        raise RunError(
            f"{shlex.join(tools.cxx)} does not compile C++20 (GCC 10, clang 12 or newer do; give "
            f"--cxx PATH): {first_error(output)}"
        )
    program, output = tools.build(NEEDS_MPI, folder, "mpi")
    if not program.exists():
        why = "cannot build a program with what this mpicc says"
        if "mpi.h" in output:
            why = "finds no mpi.h: install the development files of this MPI"
        raise RunError(f"{shlex.join(tools.cxx)} {why}: {first_error(output)}")
    return tools


def linked_library(program: Path, mpicc: Path) -> Library:
    elf = read_elf(program)
    names = [n for n in elf.needed if n.startswith("libmpi")] if elf else []
    if not elf or not names:
        raise RunError(
            f"{mpicc} does not link a shared MPI library: programs that contain MPI call nothing "
            "that could be preloaded"
        )
    known = [name for name in names if name in FAMILIES]
    if not known:
        raise RunError(
            f"{mpicc} links {names[0]}; wirepress knows {', '.join(FAMILIES)}, not this ABI"
        )
    library = first_mpi(list_loaded(program, elf.interpreter))
    if library is None or library.path is None:
        raise RunError(f"the loader does not find {known[0]}: set LD_LIBRARY_PATH as for a program")
    return Library(library.soname, library.path.absolute())


# ---- building --------------------------------------------------------------------------------


def find_door() -> Path:
    folders = shipped_dirs()
    if chosen := os.environ.get("WIREPRESS_LIB_DIR"):
        folders.insert(0, Path(chosen))
    for folder in folders:
        if (folder / DOOR).is_file():
            return (folder / DOOR).resolve()
    raise RunError(f"this wirepress came without {DOOR} and cannot build modules")


def include_dir() -> Path:
    inside = source_dir() / "include"
    return inside if inside.is_dir() else source_dir().parent.parent / "include"


def joined(sources: list[Path], folder: Path) -> list[Path]:
    """Files that include several sources of a folder each: the headers that all of them include
    take most of the time."""
    files = []
    for name, group in itertools.groupby(sources, key=lambda source: source.parent.name):
        own = list(group)
        for first in range(0, len(own), TOGETHER):
            file = folder / f"{name}-{first}.cpp"
            file.write_text("".join(f'#include "{s}"\n' for s in own[first : first + TOGETHER]))
            files.append(file)
    return files


def compile_all(tools: Tools, flags: list[str], sources: list[Path]) -> list[Path]:
    n_done = 0
    at_once = len(os.sched_getaffinity(0))
    say(f"compiling {len(sources)} files with {shlex.join(tools.cxx)}, {at_once} at a time")

    def one(source: Path) -> Path:
        nonlocal n_done
        target = source.with_suffix(".o")
        command = [*tools.cxx, *flags, *tools.compile_flags]
        done = call([*command, "-c", "-o", target, source])
        if done.returncode:
            raise RunError(f"a source does not compile: {first_error(done.stdout)}")
        n_done += 1
        if sys.stderr.isatty():
            print(f"\rwirepress: {n_done} of {len(sources)}", end="", file=sys.stderr, flush=True)
        return target

    with ThreadPoolExecutor(at_once) as pool:
        objects = [pool.submit(one, source) for source in sources]
        try:
            return [job.result() for job in objects]
        except RunError:
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            if sys.stderr.isatty():
                print(file=sys.stderr)


def link(tools: Tools, objects: list[Path], module: Path) -> None:
    door = find_door()
    command = [*tools.cxx, "-shared", "-pthread", "-o", module, *objects, door,
               f"-Wl,-rpath,{door.parent}", f"-Wl,--version-script={source_dir() / 'exports.map'}",
               "-Wl,--no-as-needed", *tools.link_flags, "-Wl,--as-needed", "-ldl"]  # fmt: skip
    # With the C++ runtime inside, the program's own is left alone. Some systems lack it as archive.
    done = call([*command, "-static-libstdc++", "-static-libgcc"])
    if done.returncode:
        done = call(command)
    if done.returncode:
        raise RunError(f"the module does not link: {first_error(done.stdout)}")


def try_module(module: Path, program: Path, library: Library) -> None:
    """The module loads with the library, every symbol found, and is made for it."""
    environment = {**os.environ, "LD_PRELOAD": f"{module}:{library.path}", "LD_BIND_NOW": "1"}
    done = subprocess.run([program], env=environment, capture_output=True, text=True)
    if done.returncode or "ld.so" in done.stderr:
        raise RunError(f"the module does not load: {first_error(done.stderr)}")
    if features_of(module) != library.features:
        raise RunError("the header and the library of this MPI are of different versions")


def build(tools: Tools, program: Path, library: Library, folder: Path) -> Path:
    features = library.features or frozenset()
    flags = [*FLAGS, f"-I{source_dir()}", f"-I{include_dir()}"]
    flags += [f"-D{MACROS[name]}" for name in FEATURES if name in features]
    sources = sources_like("*.cpp")
    if tools.build(FORTRAN, folder, "fortran")[0].exists():
        flags.append("-DWPR_MPI_FORTRAN")
    else:
        sources = [source for source in sources if source.name != "fortran.cpp"]
    module = folder / f"libwirepress_mpi_{library.family}.so"
    link(tools, compile_all(tools, flags, joined(sources, folder)), module)
    try_module(module, program, library)
    return module


def keep(module: Path, tools: Tools, library: Library) -> Path:
    """Moves the module to its place in the cache, whole or not at all."""
    identity = f"{library.path} {sorted(library.features or ())}"
    name = f"{library.family}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    place = cache_dir() / cache_key() / name
    whole = module.parent / "whole"
    whole.mkdir()
    shutil.move(module, whole / module.name)
    about = {"library": str(library.path), "mpicc": str(tools.mpicc), "cxx": tools.cxx}
    (whole / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        place.rename(module.parent / "old")
    try:
        whole.rename(place)
    except OSError:  # another one was faster: as good as ours
        if not (place / module.name).is_file():
            raise
    return place / module.name


def set_up(args: argparse.Namespace) -> int:
    began = time.monotonic()
    try:
        cache_dir().mkdir(parents=True, exist_ok=True)
        work = tempfile.mkdtemp(prefix=".building-", dir=cache_dir())
    except OSError as error:
        raise RunError(f"cannot write to {cache_dir()}: {error.strerror}") from None
    try:
        folder = Path(work)
        tools = find_tools(args.mpicc, args.cxx, folder)
        program = folder / "mpi"
        library = linked_library(program, tools.mpicc)
        say(f"{tools.mpicc} is of {NAMES[library.family]}: {library.path}")
        with contextlib.suppress(RunError):
            there = module_for(library, library_dirs())
            if not args.force:
                say(f"{there} serves it; --force builds one all the same")
                return 0
        module = keep(build(tools, program, library, folder), tools, library)
        say(f"built {module} in {time.monotonic() - began:.0f} s; `wirepress run` takes it")
        return 0
    except OSError as error:
        raise RunError(f"cannot build in {work}: {error}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


# ---- the list --------------------------------------------------------------------------------


def installed_libraries() -> list[Library]:
    """Of the MPIs whose launcher or compiler is on the path or beside this Python."""
    folders = [
        *os.environ.get("PATH", os.defpath).split(os.pathsep),
        os.path.join(sys.prefix, "bin"),
    ]
    folders += [
        os.path.join(os.environ[v], "bin") for v in ("MPI_HOME", "I_MPI_ROOT") if v in os.environ
    ]
    libraries: dict[Path, Library] = {}
    for folder in dict.fromkeys(folders):
        for tool in sorted(Path(folder or ".").glob("mpi[cer]*")):
            if tool.name.split(".")[0] not in ("mpicc", "mpicc_abi", "mpirun", "mpiexec"):
                continue
            for family in NAMES:
                library = library_in(prefix_of(str(tool)), (family,))
                if library and library.path:
                    libraries.setdefault(library.path.resolve(), library)
    return list(libraries.values())


def served_by(library: Library) -> str:
    try:
        module = module_for(library, library_dirs())
    except RunError:
        return f"nothing yet: wirepress setup-mpi --mpicc {library.mpicc or 'PATH'}"
    return f"{module}"


def show_list() -> int:
    libraries = installed_libraries()
    if not libraries:
        print("no MPI on the path: load its module, or give --mpicc PATH")
        return 0
    for library in libraries:
        print(f"{library.path}  ({NAMES[library.family]})\n    {served_by(library)}")
    return 0


# ---- the command -----------------------------------------------------------------------------


def main(args: argparse.Namespace) -> int:
    try:
        return show_list() if args.list else set_up(args)
    except RunError as error:
        say(f"setup-mpi: {error}")
        return 2


def add_parser(parsers: Any) -> argparse.ArgumentParser:
    parser = parsers.add(
        "setup-mpi",
        "build the module that wirepress run preloads, for an MPI that none here serves",
        main,
        "  wirepress setup-mpi --list\n"
        "  wirepress setup-mpi                                  # for the mpicc on the path\n"
        "  wirepress setup-mpi --mpicc /opt/openmpi/bin/mpicc --cxx g++-12\n\n"
        "the module is kept in $XDG_CACHE_HOME/wirepress/mpi (~/.cache/wirepress/mpi), which\n"
        "all hosts of a job must see, and is taken by wirepress run",
    )
    parser.add_argument("--mpicc", metavar="PATH", help="MPI's compiler (default: mpicc)")
    parser.add_argument("--cxx", metavar="COMMAND", help="C++ compiler (default: CXX, or mpicc's)")
    parser.add_argument("--force", action="store_true", help="build even if a module serves it")
    parser.add_argument(
        "--list", action="store_true", help="which MPIs are here, and which module serves each"
    )
    return parser
