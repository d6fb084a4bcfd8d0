# SPDX-License-Identifier: Apache-2.0
"""Which MPI library a program will load, and which module of wirepress serves it.

A module (libwirepress_mpi_*.so) serves the libraries of one ABI that have exactly the functions
that it wraps. If it exported more than the library has, programs would find functions that lead
nowhere; if less, calls would go around it and meet compressed messages.

Imports nothing but the standard library: launchers.py runs as a script of its own.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import re
import shutil
import struct
import subprocess
from collections import namedtuple  # typing takes its time to load
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

# The one table of MPI libraries: soname, ABI. Modules are named after the ABI that they serve.
FAMILIES = {
    "libmpi.so.40": "openmpi",  # Open MPI 3 to 5
    "libmpi.so.12": "mpich",  # MPICH, Intel MPI, MVAPICH and others of the MPICH ABI
    "libmpich.so.12": "mpich",  # the same as Debian names it
    "libmpi_abi.so.1": "abi",  # the standard ABI of MPI 5, of whatever MPI
}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "abi": "the standard MPI ABI"}
# Wrapped where the library has them (integrations/mpi/CMakeLists.txt probes for the same).
FEATURES = (
    "MPI_Send_c",
    "MPI_Isendrecv",
    "MPI_Bcast_init",
    "MPI_Session_init",
    "MPI_Request_get_status_all",
    "MPI_Request_get_status_any",
    "MPI_Request_get_status_some",
)


class RunError(Exception):
    """A mistake the user can act on; its text is the whole message."""


# ---- what the loader reads -------------------------------------------------------------------

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_SONAME = 1, 5, 6, 14
DT_GNU_HASH = 0x6FFFFEF5


class Elf:
    """A program or shared library of 64 bits, little endian; ValueError for any other file."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:  # an empty file
                raise ValueError(f"{path} is not an ELF file") from None
        if self._data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not an ELF file of 64 bits")
        try:
            self._read_segments()
        except (struct.error, LookupError):
            raise ValueError(f"{path} is damaged") from None

    def _read_segments(self) -> None:
        (at,) = self._unpack("<Q", 32)
        size, count = self._unpack("<HH", 54)
        self._loads: list[tuple[int, int, int]] = []
        self.interpreter, dynamic = "", None
        for i in range(count):
            kind, _, offset, address, _, n_bytes = self._unpack("<IIQQQQ", at + i * size)
            if kind == PT_LOAD:
                self._loads.append((address, offset, n_bytes))
            elif kind == PT_INTERP:
                self.interpreter = self._data[offset : offset + n_bytes].rstrip(b"\0").decode()
            elif kind == PT_DYNAMIC:
                dynamic = (offset, n_bytes)
        self._tags: dict[int, list[int]] = {}
        if dynamic:
            for position in range(dynamic[0], dynamic[0] + dynamic[1], 16):
                tag, value = self._unpack("<qQ", position)
                if tag == 0:
                    break
                self._tags.setdefault(tag, []).append(value)
        names = [self._string(value) for value in self._tags.get(DT_NEEDED, [])]
        self.needed: tuple[str, ...] = tuple(names)
        self.soname = "".join(self._string(value) for value in self._tags.get(DT_SONAME, [])[:1])

    def _unpack(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(form, self._data, at)

    def _offset(self, address: int) -> int:
        for start, offset, n_bytes in self._loads:
            if start <= address < start + n_bytes:
                return address - start + offset
        raise IndexError(address)

    def _string(self, place: int) -> str:
        begin = self._offset(self._tags[DT_STRTAB][0]) + place
        end = self._data.find(b"\0", begin)
        if end < 0:
            raise IndexError(place)
        return self._data[begin:end].decode(errors="replace")

    def exports(self, name: str) -> bool:
        """Whether it defines this dynamic symbol."""
        try:
            return self._find(name)
        except (struct.error, LookupError):  # damaged, or without what linkers make today
            return False

    def _find(self, name: str) -> bool:  # by the GNU hash table
        table = self._offset(self._tags[DT_GNU_HASH][0])
        n_buckets, first, n_words, _ = self._unpack("<IIII", table)
        buckets = table + 16 + 8 * n_words
        chains = buckets + 4 * n_buckets
        wanted = 5381
        for c in name.encode():
            wanted = (wanted * 33 + c) & 0xFFFFFFFF
        (i,) = self._unpack("<I", buckets + 4 * (wanted % n_buckets)) if n_buckets else (0,)
        symbols = self._offset(self._tags[DT_SYMTAB][0])
        while i >= first:
            (found,) = self._unpack("<I", chains + 4 * (i - first))
            if found | 1 == wanted | 1:
                (place,) = self._unpack("<I", symbols + 24 * i)
                if self._string(place) == name:
                    return True
            if found & 1:
                break
            i += 1
        return False


@functools.cache
def read_elf(path: Path) -> Elf | None:
    try:
        return Elf(path)
    except (OSError, ValueError):
        return None


def list_loaded(file: Path, interpreter: str, first_dir: Path | None = None) -> dict[str, Path]:
    """By soname, what the loader finds for a program or library; nothing is run."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    if first_dir:
        rest = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{first_dir}:{rest}" if rest else str(first_dir)
    try:
        said = subprocess.run(
            [interpreter, "--list", file],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = re.findall(r"^\s*(\S+) => (/\S+|not found)", said, re.M)
    return {name: Path("" if path == "not found" else path) for name, path in found}


# ---- libraries of MPI ------------------------------------------------------------------------


class Library(namedtuple("Library", ["soname", "path"], defaults=[None])):
    """An MPI library: its soname and, where it is known, its path."""

    soname: str
    path: Path | None
    __slots__ = ()

    @property
    def family(self) -> str:
        return FAMILIES[self.soname]

    @property
    def features(self) -> frozenset[str] | None:
        return features_of(self.path) if self.path else None

    @property
    def mpicc(self) -> Path | None:
        """The compiler wrapper in the same installation."""
        names = ["mpicc_abi"] if self.family == "abi" else [f"mpicc.{self.family}", "mpicc"]
        for prefix in self.path.parents[1:4] if self.path else ():
            for name in names:
                if (prefix / "bin" / name).is_file():
                    return prefix / "bin" / name
        return None

    def __str__(self) -> str:
        return str(self.path or self.soname)


def features_of(path: Path) -> frozenset[str] | None:
    """Those of FEATURES that a library or module exports; None for what is no library."""
    elf = read_elf(path)
    return frozenset(name for name in FEATURES if elf.exports(name)) if elf else None


def library_at(path: Path) -> Library:
    """By the soname that the file says, which is what the loader knows it by: in Debian 13
    libmpi.so.12 is a link to libmpich.so.12."""
    elf = read_elf(path)
    return Library(elf.soname if elf and elf.soname in FAMILIES else path.name, path)


def first_mpi(loaded: dict[str, Path]) -> Library | None:
    for soname, path in loaded.items():
        if soname in FAMILIES:
            return library_at(path) if path.parts else Library(soname)
    return None


def folders_of_libraries(prefix: Path) -> list[Path]:
    multiarch = sorted(prefix.glob("lib/*-linux-gnu*"))
    return [*multiarch, prefix / "lib", prefix / "lib64", prefix / "lib" / "release"]


def library_in(prefix: Path, families: tuple[str, ...]) -> Library | None:
    """The library of an installation; where it has both, MPI's own ABI before the standard one."""
    for soname, family in FAMILIES.items():
        if family in families:
            for folder in folders_of_libraries(prefix):
                if (folder / soname).is_file():
                    return library_at(folder / soname)
    return None


def prefix_of(launcher: str) -> Path:
    return Path(os.path.realpath(shutil.which(launcher) or launcher)).parent.parent


def library_of_launcher(launcher: str, family: str) -> Library:
    usual = next(soname for soname, its in FAMILIES.items() if its == family)
    return library_in(prefix_of(launcher), (family,)) or Library(usual)


def library_of_python(python: Path, interpreter: str) -> Library | None:
    """What mpi4py beside this interpreter is linked with, if that is one MPI.

    Its wheels are linked with several and take the first libmpi that they find: what is preloaded.
    """
    modules = sorted(python.parent.parent.glob("lib*/python3*/site-packages/mpi4py/MPI.*so"))
    if len(modules) > 1:
        return library_in(python.parent.parent, ("mpich", "openmpi"))
    return first_mpi(list_loaded(modules[0], interpreter)) if modules else None


def library_of_program(words: list[str], first_dir: Path | None = None) -> Library | None:
    """The MPI library of the first MPI program among a launcher's words.

    first_dir: a folder that the launcher puts in front of LD_LIBRARY_PATH.
    """
    for word in words:
        path = None if word.startswith("-") else shutil.which(word)
        elf = read_elf(Path(path).resolve()) if path else None
        if not path or not elf or not elf.interpreter:
            continue
        if library := first_mpi(list_loaded(Path(path), elf.interpreter, first_dir)):
            return library
        if os.path.basename(path).startswith("python") and (
            library := library_of_python(Path(path), elf.interpreter)
        ):
            return library
    return None


def find_library(
    launcher: str, words: list[str], family: str, by_path: bool | None = None
) -> Library:
    """The library that the ranks of a launcher of this family will have.

    `words`: of its command line, among them the program.

    The program's own, or the launcher's where the program (a script) does not say; without a path
    where neither is found. The standard ABI's may be any launcher's.
    """
    theirs = library_of_launcher(launcher, family)
    # Open MPI that is called by its full path puts its own libraries first.
    by_path = os.path.isabs(launcher) if by_path is None else by_path
    leads = theirs.path and family == "openmpi" and by_path
    own = library_of_program(words, theirs.path.parent if leads else None)
    if own is None:
        return theirs
    if own.family not in (family, "abi"):
        raise RunError(
            f"the program is linked with {NAMES[own.family]} ({own}), and {launcher} starts "
            f"programs of {NAMES[family]}: use the launcher of {NAMES[own.family]}"
        )
    # A program that was linked with the other name of this MPI runs on what the launcher has.
    return own if own.path or own.family != family else theirs


# ---- modules ---------------------------------------------------------------------------------


def cache_dir() -> Path:
    """Where `wirepress setup-mpi` keeps what it builds, for all versions of wirepress."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(root) if os.path.isabs(root) else Path.home() / ".cache") / "wirepress" / "mpi"


def source_dir() -> Path:
    """The sources of the modules, in the wheel or in the source tree."""
    shipped = PACKAGE / "mpi_sources"
    return shipped if shipped.is_dir() else PACKAGE.parent.parent / "integrations" / "mpi"


def sources_like(pattern: str) -> list[Path]:
    """Sources of the modules, without those of their tests."""
    found = source_dir().glob(f"*/{pattern}")
    return sorted(path for path in found if path.parent.name != "tests")


def cache_key() -> str:
    """One for each processor family, installation of wirepress and state of the sources: hosts
    share homes, and a module needs the library of codecs of the installation that built it."""
    import hashlib

    digest = hashlib.sha256(f"{os.uname().machine} {source_dir()}".encode())
    for path in sources_like("*.[ch]pp"):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def shipped_dirs() -> list[Path]:
    build = PACKAGE.parent.parent / "build"  # run from a source tree
    return [
        PACKAGE / "lib",
        *(build / name / "integrations" / "mpi" for name in ("dev", "release")),
    ]


def library_dirs() -> list[Path]:
    """Where modules may be: as told, those that the user built, those that came with wirepress."""
    dirs = [Path(chosen)] if (chosen := os.environ.get("WIREPRESS_LIB_DIR")) else []
    with contextlib.suppress(OSError, RuntimeError):  # a home that may not be entered, or is none
        if cache_dir().is_dir():
            dirs += sorted((cache_dir() / cache_key()).glob("*"))
    return [*dirs, *shipped_dirs()]


def module_family(path: Path) -> str:
    if elf := read_elf(path):
        for soname in elf.needed:
            if soname in FAMILIES:
                return FAMILIES[soname]
    name = path.name.removeprefix("libwirepress_mpi_").removesuffix(".so")
    return name.rstrip("0123456789")


def modules(folders: list[Path]) -> list[Path]:
    """Every module in these folders; those for Debian's MPIs before those for newer ones."""
    return [path for folder in folders for path in sorted(folder.glob("libwirepress_mpi_*.so"))]


def module_for(library: Library, folders: list[Path]) -> Path:
    """The module that serves the library, or RunError with the command that makes one."""
    found = [path for path in modules(folders) if module_family(path) == library.family]
    wanted = library.features
    for path in found:
        if wanted is None or features_of(path) == wanted:
            return path.absolute()  # not where a link leads: its path may be better
    name = NAMES[library.family]
    raise RunError(
        f"no module of wirepress serves {f'{library.path} ({name})' if library.path else name}"
        f"{': those that are here are for other versions of it' if found else ''}. "
        f"This command builds one, once: wirepress setup-mpi --mpicc {library.mpicc or 'PATH'}"
    )


def other_names(library: Library, folders: list[Path]) -> list[Path]:
    """Empty libraries to be preloaded, which satisfy programs that ask for this MPI by another
    soname; they lead to the library that is loaded already, wherever it lies."""
    names = [n for n, f in FAMILIES.items() if f == library.family and n != library.soname]
    paths = [folder / "other_names" / name for name in names for folder in folders]
    return [path.resolve() for path in paths if path.is_file()][: len(names)]


def preloaded(library: Library, folders: list[Path]) -> list[Path]:
    """What ranks preload: the module, its MPI library by path, and the library's other names.

    By path, so that the loader finds what lies beside it ($ORIGIN), and takes the one that the
    program would have without wirepress.
    """
    module = module_for(library, folders)
    if cannot_be_preloaded(module):
        raise RunError(
            f"wirepress's module for MPI is {module}: a blank or a colon in its path cuts "
            "LD_PRELOAD; move wirepress, or set WIREPRESS_LIB_DIR to a link to that folder "
            "without them, on every host"
        )
    others = [library.path, *other_names(library, folders)] if library.path else []
    for path in filter(cannot_be_preloaded, others):
        raise RunError(
            f"{path} cannot be preloaded: a blank or a colon in its path cuts LD_PRELOAD"
        )
    return [module, *others]


def cannot_be_preloaded(path: Path) -> bool:
    return bool(re.search(r"[\s:;,]", str(path)))
