# SPDX-License-Identifier: Apache-2.0
"""MPI launchers: whose is it, and how are its ranks given variables.

Also runs as a script of its own, in place of a launcher that a shell script starts (write_shims),
so it imports nothing but the standard library and mpi_libraries.py.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

if __package__:
    from .mpi_libraries import (
        Library,
        RunError,
        find_library,
        library_dirs,
        library_of_program,
        preloaded,
    )
else:
    if sys.flags.isolated:  # in place of a launcher
        sys.path.append(os.path.dirname(os.path.realpath(__file__)))
    from mpi_libraries import (
        Library,
        RunError,
        find_library,
        library_dirs,
        library_of_program,
        preloaded,
    )

LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun", "srun")
LAUNCHER_SUFFIXES = (".openmpi", ".mpich", ".hydra")


def is_launcher(word: str) -> bool:
    name = os.path.basename(word)
    for suffix in LAUNCHER_SUFFIXES:
        name = name.removesuffix(suffix)
    return name in LAUNCHERS


def flavour_of(launcher: str) -> str:
    """openmpi or mpich, from what the launcher says of itself; "" for one that serves both."""
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
    said = (result.stdout + result.stderr).lower()
    if any(word in said for word in ("open mpi", "openmpi", "open-mpi", "openrte", "prrte")):
        return "openmpi"
    if any(word in said for word in ("hydra", "mpich", "intel(r) mpi")):
        return "mpich"
    if "slurm" in said or os.path.basename(launcher) == "srun":
        return ""
    first = (said.strip().splitlines() or ["nothing"])[0]
    raise RunError(f"{launcher} is neither Open MPI's nor MPICH's: --version says: {first}")


def flavour_of_program(words: list[str]) -> str:
    """For a launcher that serves several MPIs: what the first program among the words has."""
    library = library_of_program(words)
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
        return take_setting(command[1:], flavour, name)[1]

    settings = settings | {"WIREPRESS_LAUNCH": secrets.token_hex(8)}  # this call of the launcher
    variables = {name: user(name) or value for name, value in settings.items()}
    variables["LD_PRELOAD"] = merge_preload(
        preloaded(library, library_dirs()),
        user("LD_PRELOAD") or os.environ.get("LD_PRELOAD"),
    )
    return variables


def export_by_srun(
    command: list[str], variables: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """srun's command line and environment, with the variables in what it hands on."""
    environment = os.environ | variables

    def more(names: str) -> str:
        kept = [name for name in names.split(",") if name not in ("", "NONE", "NIL")]
        return names if "ALL" in kept else ",".join([*kept, *variables])

    words = list(command)
    for i, word in enumerate(words):
        if word.startswith("--export="):
            words[i] = f"--export={more(word.removeprefix('--export='))}"
        elif word == "--export" and i + 1 < len(words):
            words[i + 1] = more(words[i + 1])
    if names := environment.get("SLURM_EXPORT_ENV"):  # from sbatch --export
        environment["SLURM_EXPORT_ENV"] = more(names)
    return words, environment


def find_flavour(command: list[str]) -> str:
    flavour = flavour_of(command[0]) or flavour_of_program(command[1:])
    if not flavour:
        raise RunError(
            f"{command[0]} serves several MPIs and its program does not say which: "
            "give --mpi openmpi, --mpi mpich or --mpi abi"
        )
    return flavour


def wrap(
    command: list[str], flavour: str, _private: Path, settings: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The command line that starts the ranks with the interposer, and its environment."""
    library = find_library(command, flavour)
    if flavour == "abi":  # that of the program; launchers have words of their own
        flavour = flavour_of(command[0]) or "mpich"
    variables = rank_variables(command, flavour, library, settings)
    if os.path.basename(command[0]) == "srun":  # it hands its own environment to the ranks
        return export_by_srun(command, variables)
    secret = {name: value for name, value in variables.items() if name == SECRET}
    return inject(command, flavour, variables), os.environ | secret


# ---- scripts that start a launcher -----------------------------------------------------------


def write_shims(private: Path, settings: dict[str, str]) -> Path:
    """A folder for PATH in which every launcher is ours: it adds the variables and goes on."""
    folder = private / "bin"
    folder.mkdir()
    (private / "settings.json").write_text(json.dumps(settings))
    for name in (base + suffix for base in LAUNCHERS for suffix in ("", *LAUNCHER_SUFFIXES)):
        if real := shutil.which(name):
            words = [sys.executable, "-I", str(Path(__file__).resolve()), str(private), real]
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (folder / name).chmod(0o700)
    return folder


def stand_in(private: Path, command: list[str]) -> None:
    """What a shim does: becomes the real launcher, for the ranks of which it adds the variables."""
    # a launcher may itself be a script that starts another: that one is not to be wrapped again
    os.environ["PATH"] = os.environ["PATH"].replace(f"{private / 'bin'}:", "", 1)
    if SECRET in os.environ:  # by a `wirepress run` inside the script, which wrapped it already
        os.execv(command[0], [os.path.basename(command[0]), *command[1:]])
    settings = json.loads((private / "settings.json").read_text())
    wrapped, environment = wrap(command, find_flavour(command), private, settings)
    # Open MPI called by a full path changes PATH and LD_LIBRARY_PATH of the ranks: keep the name
    os.execve(command[0], [os.path.basename(command[0]), *wrapped[1:]], environment)


if __name__ == "__main__":
    try:
        stand_in(Path(sys.argv[1]), sys.argv[2:])
    except (RunError, OSError) as error:
        sys.exit(f"wirepress: {error}")
