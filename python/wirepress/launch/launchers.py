# SPDX-License-Identifier: Apache-2.0
"""MPI launchers: whose is it, and how are its ranks given variables.

Also runs as a script of its own, in place of a launcher that a shell script starts (write_shims),
so it imports nothing but the standard library, mpi_libraries.py and slurm.py.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

if __package__:
    from . import mpi_libraries, slurm
else:
    if sys.flags.isolated:  # in place of a launcher
        sys.path.append(os.path.dirname(os.path.realpath(__file__)))
    import mpi_libraries
    import slurm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .mpi_libraries import Library
    from .private import Private

RunError = mpi_libraries.RunError

LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun", "srun")
LAUNCHER_SUFFIXES = (".openmpi", ".mpich", ".hydra")
OTHERS = ("aprun", "flux", "jsrun", "lrun", "mpiexec_mpt", "mpirun_rsh", "poe", "prun", "yod")
RANKS_OF_A_JOB = ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")  # in each of them


def is_launcher(word: str) -> bool:
    name = os.path.basename(word)
    for suffix in LAUNCHER_SUFFIXES:
        name = name.removesuffix(suffix)
    return name in LAUNCHERS


def is_srun(command: list[str]) -> bool:
    return os.path.basename(command[0]) == "srun"


def refusal(command: list[str]) -> str:
    """Why no rank of this command could compress: a sentence, or "" where one may."""
    name = os.path.basename(command[0])
    if name in OTHERS:
        return f"{name} is no launcher that wirepress knows: take mpirun, mpiexec or srun"
    return slurm.refusal(command) or started_by_each_rank(command)


def started_by_each_rank(command: list[str]) -> str:
    if "SLURM_PTY_PORT" in os.environ:  # a terminal on a node: one user types there
        return ""
    sizes = [os.environ.get(name, "") for name in RANKS_OF_A_JOB]
    size = max((int(text) for text in sizes if text.isdigit()), default=1)
    if size < 2 or is_launcher(command[0]) or starts_launchers(command[0]):
        return ""
    return (
        f"each of {size} ranks starts a `wirepress run` of its own here: put it before the "
        f"launcher, as in: wirepress run -- srun {os.path.basename(command[0])}"
    )


def starts_launchers(word: str) -> bool:
    """Whether this is no launcher, but may well start some: salloc, a shell, a shell script."""
    if os.path.basename(word) in (*slurm.SHELLS, *slurm.STARTS_LAUNCHERS):
        return True
    try:
        with open(shutil.which(word) or word, "rb") as file:
            line = file.readline(200).decode(errors="replace")
    except OSError:
        return False
    words = line.removeprefix("#!").split()[:2]  # "/usr/bin/env bash", too
    return line.startswith("#!") and any(os.path.basename(w) in slurm.SHELLS for w in words)


# What launchers are called where their packages put them, behind mpirun and mpiexec.
FILES = {
    "openmpi": ("mpirun.openmpi", "mpiexec.openmpi", "orterun", "prterun"),
    "mpich": ("mpirun.mpich", "mpiexec.mpich", "mpirun.hydra", "mpiexec.hydra"),
}


def flavour_of(launcher: str) -> str:
    """openmpi or mpich; "" for one that serves both. By its file's name or else what it says."""
    file = os.path.basename(os.path.realpath(shutil.which(launcher) or launcher))
    for flavour, names in FILES.items():
        if file in names:
            return flavour
    said = version_of(launcher)
    if any(word in said for word in ("open mpi", "openmpi", "open-mpi", "openrte", "prrte")):
        return "openmpi"
    if any(word in said for word in ("hydra", "mpich", "intel(r) mpi")):
        return "mpich"
    if "slurm" in said or os.path.basename(launcher) == "srun":
        return ""
    first = (said.strip().splitlines() or ["nothing"])[0]
    raise RunError(f"{launcher} is neither Open MPI's nor MPICH's: --version says: {first}")


def version_of(launcher: str) -> str:
    try:
        result = subprocess.run(
            [launcher, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
        )
    except OSError as error:
        raise RunError(f"cannot start {launcher}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"{launcher} --version does not end") from None
    return (result.stdout + result.stderr).lower()


def flavour_of_program(words: list[str]) -> str:
    """For a launcher that serves several MPIs: what the first program among the words has."""
    library = mpi_libraries.library_of_program(words)
    return library.family if library else ""


def merge_preload(ours: list[Path], theirs: str | None) -> str:
    """The module first, MPI's library after the user's; a list is separated by colons or blanks."""
    module, *libraries = map(str, ours)
    rest = [part for part in (theirs or "").replace(":", " ").split() if part not in map(str, ours)]
    return ":".join([module, *rest, *libraries])


SECRET = "WIREPRESS_RENDEZVOUS"  # holds the token: every user of a host reads its command lines
HANDED_ON = ("-genvlist", "--genvlist", "-envlist", "--envlist")  # of hydra
NOTHING_HANDED_ON = ("-genvnone", "--genvnone", "-envnone", "--envnone")
SETTING_FLAGS = {"openmpi": ("-x", "--x"), "mpich": ("-genv", "--genv", "-env", "--env")}


def take_setting(words: list[str], flavour: str, name: str) -> tuple[list[str], str | None]:
    """Splits the user's own setting of a variable in the ranks off the launcher's arguments.

    That is `-x NAME=VALUE` or `-x NAME` (Open MPI), or `-genv NAME VALUE` (MPICH). Where the
    program begins only the launcher knows, so the words are compared exactly and nothing else is.
    """
    kept: list[str] = []
    value: str | None = None
    i = 0
    while i < len(words):
        is_flag = words[i] in SETTING_FLAGS[flavour] and i + 1 < len(words)
        if is_flag and flavour == "openmpi" and words[i + 1].split("=", 1)[0] == name:
            value = words[i + 1].split("=", 1)[1] if "=" in words[i + 1] else os.environ.get(name)
            i += 2
        elif is_flag and flavour == "mpich" and words[i + 1] == name and i + 2 < len(words):
            value = words[i + 2]
            i += 3
        else:
            kept.append(words[i])
            i += 1
    return kept, value


def inject(command: list[str], flavour: str, variables: dict[str, str]) -> list[str]:
    """The launcher's command line with the variables set in its ranks, not in itself.

    SECRET is to be in the launcher's environment: the command line only says that ranks get it.
    """
    launcher, words = command[0], command[1:]
    for name in variables:
        words, _ = take_setting(words, flavour, name)
    public = {name: value for name, value in variables.items() if name != SECRET}
    if flavour == "mpich":
        ours = [word for item in public.items() for word in ("-genv", *item)]
        return [launcher, *ours, *let_pass(words)]
    ours = [word for name, value in public.items() for word in ("-x", f"{name}={value}")]
    ours += ["-x", SECRET] if SECRET in variables else []
    for i in reversed([i for i, word in enumerate(words) if word == ":"]):
        words[i + 1 : i + 1] = ours  # -x holds for one program of an MPMD line, -genv for all
    return [launcher, *ours, *words]


def let_pass(words: list[str]) -> list[str]:
    """Hydra's words with SECRET among what it hands on: that is all, unless told otherwise."""
    passing: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if before in HANDED_ON:
            passing.append(f"{word},{SECRET}")
        elif word in NOTHING_HANDED_ON:
            passing += [f"{word.removesuffix('none')}list", SECRET]
        else:
            passing.append(word)
    return passing


def rank_variables(
    command: list[str], flavour: str, library: Library, settings: dict[str, str]
) -> dict[str, str]:
    """What the ranks shall have in their environment, the user's own settings merged in."""

    def user(name: str) -> str | None:
        if is_srun(command):
            return slurm.named_value(command, os.environ, name)
        return take_setting(command[1:], flavour, name)[1]

    def inherited(name: str) -> str | None:
        if is_srun(command):
            return slurm.handed_on(command, os.environ, name)
        return user(name) or os.environ.get(name)

    settings = settings | {"WIREPRESS_LAUNCH": os.urandom(8).hex()}  # this call of the launcher
    variables = {name: user(name) or value for name, value in settings.items()}
    ours = mpi_libraries.preloaded(library, mpi_libraries.library_dirs())
    variables["LD_PRELOAD"] = merge_preload(ours, inherited("LD_PRELOAD"))
    return variables


def words_of(command: list[str]) -> list[str]:
    """Those of a launcher's words among which its program is."""
    return slurm.programs(command) if is_srun(command) else command[1:]


def find_flavour(command: list[str], given: str = "") -> str:
    """openmpi or mpich; `given` by the user, who may not know which launchers a script starts."""
    flavour = flavour_of(command[0]) or given or flavour_of_program(words_of(command))
    if not flavour:
        raise RunError(
            f"{command[0]} serves several MPIs and its program does not say which: "
            "give --mpi openmpi, --mpi mpich or --mpi abi"
        )
    return flavour


def check_parts(words: list[str], flavour: str) -> None:
    """Refuses a preload for some programs of an MPMD line: ours is for all of them."""
    flags = SETTING_FLAGS[flavour][-2:]  # those that hold for one program
    values, preload = [], ""
    for i, word in enumerate([*words, ":"]):
        if word in flags and words[i + 1 : i + 2] and words[i + 1].split("=")[0] == "LD_PRELOAD":
            preload = " ".join(words[i + 1 : i + 3 - (flavour == "openmpi")])
        elif word == ":":
            values.append(preload)
            preload = ""
    if len(set(values)) > 1:
        raise RunError(
            'LD_PRELOAD is set for some programs of the command line, whose parts ":" divides: set '
            "it for all of them, as wirepress' own is for all"
        )


def wrap(
    command: list[str], flavour: str, settings: dict[str, str], by_path: bool | None = None
) -> tuple[list[str], dict[str, str]]:
    """The command line that starts the ranks with the interposer, and its environment. `by_path`:
    whether the program calls the launcher so; None: if the command does."""
    library = mpi_libraries.find_library(command[0], words_of(command), flavour, by_path)
    if flavour == "abi":  # that of the program; launchers have words of their own
        flavour = flavour_of(command[0]) or "mpich"
    variables = rank_variables(command, flavour, library, settings)
    if is_srun(command):  # it hands its own environment to the ranks
        return slurm.export(command, os.environ, variables)
    check_parts(command[1:], flavour)
    secret = {name: value for name, value in variables.items() if name == SECRET}
    # MPICH's mpiexec leaves handing on the environment to the srun that starts its proxies
    return inject(command, flavour, variables), slurm.environment_with(os.environ, secret)


# ---- scripts that start a launcher -----------------------------------------------------------


CALLS = "calls"  # a file with a line for each call of a launcher: pid, its start, flavour, words


def write_shims(private: Private, settings: dict[str, str], mpi: str = "") -> Path:
    """A folder for PATH in which every launcher is ours: it adds the variables and goes on."""
    folder = private / "bin"
    folder.mkdir()
    (private / "settings.json").write_text(json.dumps([settings, mpi]))
    launchers = [base + suffix for base in LAUNCHERS for suffix in ("", *LAUNCHER_SUFFIXES)]
    for name in (*launchers, *slurm.QUEUES):
        if real := shutil.which(name):
            words = [sys.executable, "-IS", str(Path(__file__).resolve()), str(folder.parent), real]
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (folder / name).chmod(0o700)
    return folder


def start_time(pid: int) -> str:
    """When a process began, in the kernel's clock; "" where there is none, or only its status."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] == "Z" else words[19]


def note_call(private: Path, flavour: str, command: list[str]) -> None:
    """Tells `wirepress run` of a launcher, which this process is about to become."""
    line = json.dumps([os.getpid(), start_time(os.getpid()), flavour, command]) + "\n"
    handle = os.open(private / CALLS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, line.encode())
    os.close(handle)


def noted_calls(private: Private) -> list[tuple[int, str, str, list[str]]]:
    """Process, its start, flavour and words of each launcher that a script has called."""
    path = private.file(CALLS)
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path else []


def launchers_left(private: Private) -> list[int]:
    """The processes of launchers that a script has called and that have not ended."""
    return [pid for pid, start, *_ in noted_calls(private) if start and start_time(pid) == start]


def stand_in(private: Path, command: list[str]) -> None:
    """What a shim does: becomes the real launcher, for the ranks of which it adds the variables."""
    # a launcher may itself be a script that starts another: that one is not to be wrapped again
    os.environ["PATH"] = os.environ["PATH"].replace(f"{private / 'bin'}:", "", 1)
    name = os.path.basename(command[0])
    if name in slurm.QUEUES:
        print(f"wirepress: {slurm.notice(name)}", file=sys.stderr, flush=True)
        os.execv(command[0], [name, *command[1:]])
    if SECRET in os.environ:  # by a `wirepress run` inside the script, which wrapped it already
        note_call(private, "", command)
        os.execv(command[0], [name, *command[1:]])
    if reason := slurm.refusal(command):
        raise RunError(reason)
    settings, mpi = json.loads((private / "settings.json").read_text())
    flavour = find_flavour(command, mpi)
    wrapped, environment = wrap(command, flavour, settings, by_path=False)
    note_call(private, flavour, command)
    # Open MPI called by a full path changes PATH and LD_LIBRARY_PATH of the ranks: keep the name
    os.execve(command[0], [name, *wrapped[1:]], environment)


if __name__ == "__main__":
    try:
        stand_in(Path(sys.argv[1]), sys.argv[2:])
    except (RunError, OSError) as error:
        sys.exit(f"wirepress: {error}")
