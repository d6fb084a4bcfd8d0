# SPDX-License-Identifier: Apache-2.0
"""Why no rank of a job loaded wirepress: what can be known from the launcher's host.

Each sentence is true of what it names; where several causes are left it says so. Standard library
only, as run.py, which uses it.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

if __package__:
    from . import mpi_libraries
    from .launchers import LAUNCHERS, is_launcher
    from .mpi_libraries import FAMILIES, NAMES
else:
    import mpi_libraries
    from launchers import LAUNCHERS, is_launcher
    from mpi_libraries import FAMILIES, NAMES

# Start another program, in an environment that they leave as it is.
WRAPPERS = ("env", "nice", "ionice", "time", "timeout", "numactl", "taskset", "chrt", "stdbuf",
            "nohup", "setsid", "strace", "ltrace", "perf", "valgrind", "gdb", "catchsegv",
            "sh", "bash", "dash", "zsh", "ksh")  # fmt: skip
INTERPRETERS = r"(python|julia|perl|ruby|R|Rscript|octave|lua|java|matlab|node)[\d.]*$"
OTHER_LAUNCHERS = ("aprun", "flux", "ibrun", "jsrun", "lrun", "prun", "yod")
BY_PATH = re.compile(
    rf"(?<![\w./-])(?:\.{{0,2}}/[\w.+-]+)*/(?:{'|'.join(LAUNCHERS)})(?:\.\w+)?(?![\w/.-])"
)
DROPPERS = ("sudo", "ssh", "su", "runuser", "singularity", "apptainer", "docker", "podman")
DROPS = re.compile(
    rf"\b(?:env\s+(?:-i\b|-\s|--ignore-environment)|(?:{'|'.join(DROPPERS)})\s|"
    r"unset\s+LD_PRELOAD|(?:export\s+)?LD_PRELOAD=)"
    r"|(?<!\S)(?:--export=NONE|--cleanenv|-g?envnone)\b"
)
# Flags of launchers that take values which may look like programs: how many.
VALUES = {
    **dict.fromkeys(("mca", "gmca", "prtemca", "pmixmca", "genv", "env"), 2),
    **dict.fromkeys(("x", "launcher", "launcher-exec", "rmk", "host", "hosts", "H", "hostfile"), 1),
    **dict.fromkeys(("machinefile", "f", "n", "np", "ppn", "c", "wdir", "wd", "prefix", "path"), 1),
    **dict.fromkeys(("map-by", "bind-to", "rank-by", "iface", "mpi", "w", "p", "A", "J", "N"), 1),
}
MPI_LIBRARY = re.compile(r"^libmpi(?:ch)?(?:_\w+)?\.so[.\d]*$")
OPEN = ", and nothing speaks against it"
MOST_CALLS = 3  # that have a sentence each


def causes(
    command: list[str], flavour: str, calls: list[tuple[str, list[str]]], failed: bool
) -> list[str]:
    """Sentences. None where the command failed and nothing speaks against its program.

    `flavour` is the MPI of the command if it is a launcher, else ""; `calls` are flavour and words
    of the launchers that a script has called.
    """
    sentences = all_causes(command, flavour, calls)
    return [sentence for sentence in sentences if not (failed and OPEN in sentence)]


def all_causes(command: list[str], flavour: str, calls: list[tuple[str, list[str]]]) -> list[str]:
    if flavour:
        return of_call(flavour, command)
    if not calls:
        return of_script(command)
    sentences = []
    for called, words in calls[:MOST_CALLS]:
        sentences += of_call(called, words) if called else of_inner_run(words)
    return list(dict.fromkeys(sentences))


def of_inner_run(words: list[str]) -> list[str]:
    return [f"{words[0]} was called inside another `wirepress run`, which its ranks belong to"]


# ---- a command that is no launcher -----------------------------------------------------------


def of_script(command: list[str]) -> list[str]:
    """Of a command that called no launcher by PATH."""
    texts = {command[0]: text_of(shutil.which(command[0]))}
    texts |= {word: text_of(word) or word for word in command[1:]}
    for name, text in texts.items():
        if found := BY_PATH.search(text):
            where = "the command" if found[0] in name else name
            return [
                f"{where} names the launcher {found[0]} by its path; wirepress stands in for "
                f"launchers that are found by PATH: write {os.path.basename(found[0])}, or put "
                "`wirepress run --` before it there"
            ]
    for text in texts.values():
        for other in OTHER_LAUNCHERS:
            if re.search(rf"(?:^|[\s;&|(/]){other}\s", f"{text} ", re.M):
                return [f"{other} is no launcher that wirepress knows ({', '.join(LAUNCHERS)})"]
    name = command[0]
    if mpi := mpi_of(shutil.which(name)):
        return [
            f"{name} is linked with MPI ({mpi}) and was started without a launcher: wirepress run "
            f"-- mpirun -n 1 {name}"
        ]
    drops = next((found[0] for text in texts.values() if (found := DROPS.search(text))), "")
    told = f"; `{drops.strip()}` in it may hide one from wirepress" if drops else ""
    return [f"{name} called no launcher that it found by PATH ({', '.join(LAUNCHERS)}){told}"]


def text_of(path: str | None) -> str:
    """Of a script, without its comments; "" for anything else."""
    try:
        data = Path(path or "").read_bytes()[: 1 << 20]
    except (OSError, ValueError):
        return ""
    if not data.startswith(b"#!") and b"\0" in data:
        return ""
    return re.sub(r"(?m)(?:^|(?<=\s))#.*", "", data.decode("utf-8", "replace"))


# ---- a launcher's words ----------------------------------------------------------------------


def of_call(flavour: str, words: list[str]) -> list[str]:
    given = without_values(words[1:])
    programs = programs_in(given)
    own = next((name for name, _ in programs if os.path.basename(name) not in DROPPERS), "")
    before = given[: given.index(own)] if own else given  # what follows are its arguments
    if drops := DROPS.search(" ".join(before) + " "):
        return [
            f"`{drops[0].strip()}` in the command may keep LD_PRELOAD and the other variables of "
            "wirepress from the ranks"
        ]
    if not programs:
        return [
            "none of the words of the command is a program on this host, so it could not be looked "
            "at: it must be linked with the launcher's MPI, dynamically"
        ]
    name, path = programs[0]
    text = text_of(path)
    if text and (found := BY_PATH.search(text) or DROPS.search(text)):
        return [f"`{found[0].strip()}` in {name} may keep wirepress from the ranks"]
    if text and not re.search(INTERPRETERS, interpreter_of(path)):
        return [f"{name} is a script: what it starts was not looked at"]
    return [of_program(name, path, flavour, os.path.basename(words[0]))]


def without_values(words: list[str]) -> list[str]:
    """A launcher's words without what its flags take: an agent is no program of the job."""
    kept, left = [], iter(words)
    for word in left:
        kept.append(word)
        for _ in range(VALUES.get(word.lstrip("-"), 0) if word.startswith("-") else 0):
            next(left, None)
        if not word.startswith("-"):
            return [*kept, *left]
    return kept


def programs_in(words: list[str]) -> list[tuple[str, str]]:
    """Words that are programs, with their paths; those that only start others are left out."""
    found = []
    for word in words:
        path = None if word.startswith("-") else shutil.which(word)
        if path and os.path.basename(word) not in WRAPPERS and not is_launcher(word):
            found.append((word, path))
    return found


def interpreter_of(path: str) -> str:
    """The name of the program in a script's first line."""
    with open(path, "rb") as file:
        words = file.readline(512).decode("utf-8", "replace").removeprefix("#!").split()
    names = [os.path.basename(word) for word in words if not word.startswith("-")]
    return next((name for name in names if name != "env"), "")


def of_program(name: str, path: str, flavour: str, launcher: str) -> str:
    elf = Elf.read(path)
    if elf and elf.static:
        return f"{name} is linked statically: nothing can be preloaded into it"
    if elf and (other := elf.differs_from(modules())):
        return f"{name} is {other}, which wirepress's modules for MPI are not"
    if is_privileged(path):
        return f"{name} has privileges of its own: the loader takes no LD_PRELOAD from its user"
    mpi = mpi_of(path)
    if not mpi and re.search(INTERPRETERS, os.path.basename(path) if elf else interpreter_of(path)):
        return (
            f"{name} is an interpreter: it is not seen from outside whether its program calls "
            f"MPI_Init, and by which MPI; it must be the one of {launcher}"
        )
    if not mpi:
        return f"{name} is not linked with an MPI library{missing(path)}"
    if f"{mpi} => not found" in linked(path):
        return f"{name} is linked with {mpi}, which the loader does not find on this host"
    family = FAMILIES.get(mpi)
    if family == "abi" and not any("_abi" in module.name for module in modules()):
        return (
            f"{name} is linked with the standard ABI of MPI 5 ({mpi}), for which this wirepress "
            "has no module"
        )
    if family not in (None, "abi", flavour):
        return (
            f"{name} is linked with {NAMES[family]} ({mpi}), and {launcher} is the launcher of "
            f"{NAMES[flavour]}"
        )
    if family is None:
        return f"{name} is linked with {mpi}, an MPI that wirepress does not know"
    return (
        f"{name} is linked with {mpi}{OPEN}: it ended before MPI_Init, begins MPI by "
        "sessions alone, did not get LD_PRELOAD (a login, container or wrapper between), or its "
        "host has no wirepress at the same path"
    )


# ---- files -----------------------------------------------------------------------------------

PT_INTERP = 3
MACHINES = {3: "x86 with 32 bits", 62: "x86-64", 183: "AArch64", 21: "POWER", 243: "RISC-V"}


class Elf:
    """What a file's ELF header and segments say: machine, interpreter, whether it is static."""

    def __init__(self, machine: int, bits: int, interpreter: str) -> None:
        self.machine, self.bits, self.interpreter = machine, bits, interpreter

    @property
    def static(self) -> bool:
        return not self.interpreter

    @classmethod
    def read(cls, path: str | Path) -> Elf | None:
        try:
            with open(path, "rb") as file:
                head = file.read(64)
                if head[:4] != b"\x7fELF":
                    return None
                bits, order = 32 * head[4], "<" if head[5] == 1 else ">"
                (machine,) = struct.unpack_from(f"{order}H", head, 18)
                word, at_size, at_segment = ("Q", 54, 8) if bits == 64 else ("I", 42, 4)
                (offset,) = struct.unpack_from(order + word, head, 32 if bits == 64 else 28)
                size, n = struct.unpack_from(f"{order}HH", head, at_size)
                file.seek(offset)
                table = file.read(size * n)
                for at in range(0, size * n, size):
                    if struct.unpack_from(f"{order}I", table, at)[0] != PT_INTERP:
                        continue
                    begin, _, _, length = struct.unpack_from(
                        order + 4 * word, table, at + at_segment
                    )
                    file.seek(begin)
                    return cls(machine, bits, file.read(length).rstrip(b"\0").decode())
                return cls(machine, bits, "")
        except (OSError, struct.error, ValueError):
            return None

    def differs_from(self, modules: list[Path]) -> str:
        """What a preloaded module would have to be, and is not; "" where it is."""
        if "ld-musl" in self.interpreter:
            return "linked with musl"
        ours = next(filter(None, map(Elf.read, modules)), None)
        if ours is None or (ours.machine, ours.bits) == (self.machine, self.bits):
            return ""
        return f"for {MACHINES.get(self.machine, f'machine {self.machine} of ELF')}"


def modules() -> list[Path]:
    return mpi_libraries.modules(mpi_libraries.library_dirs())


def is_privileged(path: str) -> bool:
    status = os.stat(path)
    other = (status.st_mode & 0o4000 and status.st_uid != os.getuid()) or (
        status.st_mode & 0o2000 and status.st_gid != os.getgid()
    )
    try:
        return bool(other) or (os.getuid() != 0 and bool(os.getxattr(path, "security.capability")))
    except OSError:
        return bool(other)


def linked(path: str) -> str:
    """What the loader would load for a program: ldd's lines."""
    if Elf.read(path) is None or not shutil.which("ldd"):
        return ""
    done = subprocess.run(["ldd", path], capture_output=True, text=True, errors="replace")
    return done.stdout


def mpi_of(path: str | None) -> str:
    """The MPI library that a program is linked with, if only through others; or ""."""
    words = [line.split()[0] for line in linked(path or "").splitlines() if line.strip()]
    names = [name for name in map(os.path.basename, words) if MPI_LIBRARY.match(name)]
    known = [name for name in names if name in FAMILIES]  # libmpi_mpifh.so.40 says less
    return (known or names or [""])[0]


def missing(path: str) -> str:
    lost = re.findall(r"^\s*(\S+) => not found", linked(path), re.M)
    return f"; the loader does not find {', '.join(lost)}" if lost else ""
