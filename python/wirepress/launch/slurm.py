# SPDX-License-Identifier: Apache-2.0
"""Slurm's commands: what srun hands to its tasks, which programs it starts, what cannot be wrapped.

Standard library only, as launchers.py, which uses it.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

TYPE_CHECKING = False  # of typing, which takes its time to load
if TYPE_CHECKING:
    from collections.abc import Mapping

# srun's options (Slurm 22.05 to 26.05). Where its program begins follows from them alone.
WITH_VALUE = """accel-bind account acctg-freq autocomplete bb bbf bcast-exclude begin chdir cluster
    cluster-constraint clusters comment constraint container container-id context core-spec
    cores-per-socket cpu-bind cpu-freq cpu_bind cpus-per-gpu cpus-per-task deadline delay-boot
    dependency distribution epilog error exclude export extra extra-node-info gid gpu-bind gpu-freq
    gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint ignore-signals
    input job-name jobid licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu
    mem-per-gpu mem-update mincpus mpi msg-timeout network nodefile nodelist nodes ntasks
    ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode
    output pack-group partition power prefer priority profile prolog qos relative reservation
    resources runtime segment signal slurmd-debug sockets-per-node switches task-epilog task-prolog
    tasks-per-node thread-spec threads threads-per-core time time-min tmp treewidth tres-bind
    tres-per-task uid wait wckey""".split()
# Here a value, if there is one, follows a "=".
WITHOUT_VALUE = """async bcast compress consolidate-segments contiguous debugger-test disable-status
    exact exclusive external-launcher help hold immediate interactive kill-on-bad-exit label
    multi-prog nice no-allocate no-kill oom-kill-step overcommit overlap oversubscribe parsable
    preserve-env propagate pty quiet quit-on-interrupt reboot resv-ports send-libs spread-job
    spread-segments stepmgr test-only unbuffered usage use-min-nodes verbose version
    wait-for-children whole x11""".split()
SHORT_WITH_VALUE = "ABCDFGJLMNSTWbcdeimnopqrtwx"
SHORT_OPTIONAL = "IKk"  # a value stands in the same word

EXPORT_VARIABLES = ("SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV")  # the first that is set counts
ENTRY = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*"|['"])+""")  # of such a list; quotes hide commas
STARTS_LAUNCHERS = ("salloc",)
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish")
QUEUES = ("sbatch", "qsub", "bsub", "msub", "oarsub", "condor_submit")


class Option:
    def __init__(self, flag: str, value: str | None = None, in_one_word: bool = False) -> None:
        self.flag, self.value, self.in_one_word = flag, value, in_one_word  # --flag=value

    def is_long(self, name: str) -> bool:
        """getopt takes every beginning of a name that no other option shares."""
        return len(self.flag) > 3 and f"--{name}".startswith(self.flag)

    def words(self) -> list[str]:
        if self.value is None:
            return [self.flag]
        return [f"{self.flag}={self.value}"] if self.in_one_word else [self.flag, self.value]


class Component:
    """One part of an srun command line; a heterogeneous job has several, with ":" between them."""

    def __init__(self, options: list[Option], program: list[str]) -> None:
        self.options, self.program = options, program

    def find(self, name: str) -> Option | None:
        """The last one counts."""
        return next((o for o in reversed(self.options) if o.is_long(name)), None)


def takes_next(flag: str, following: str) -> bool:
    """Whether the word after an option is its value."""
    if not flag.startswith("--"):
        for i, letter in enumerate(flag[1:], 2):
            if letter in SHORT_WITH_VALUE:
                return i == len(flag)
            if letter in SHORT_OPTIONAL:
                return False
        return False
    name = flag[2:]
    if name in WITHOUT_VALUE:
        return False
    if any(known.startswith(name) for known in WITH_VALUE):
        return True
    if any(known.startswith(name) for known in WITHOUT_VALUE):
        return False
    # of a plug-in of this Slurm, or newer than this list
    return not following.startswith("-") and shutil.which(following) is None


def component(words: list[str]) -> Component:
    options: list[Option] = []
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] != "-":
        flag, equals, value = words[i].partition("=")
        i += 1
        if flag.startswith("--") and equals:
            options.append(Option(flag, value, in_one_word=True))
        elif words[i - 1] == "--":
            options.append(Option("--"))
            break
        elif i < len(words) and takes_next(words[i - 1], words[i]):
            options.append(Option(words[i - 1], words[i]))
            i += 1
        else:
            options.append(Option(words[i - 1]))
    return Component(options, words[i:])


def components(words: list[str]) -> list[Component]:
    """The arguments of srun; joined() makes the same words of them."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return [component(part) for part in parts]


def joined(parts: list[Component]) -> list[str]:
    words: list[str] = []
    for i, part in enumerate(parts):
        words += [":"] if i else []
        words += [word for option in part.options for word in option.words()] + part.program
    return words


# ---- what tasks get of srun's environment ----------------------------------------------------


def entries(names: str) -> list[str]:
    """Of a list as --export takes it: NAME, NAME=VALUE or ALL. Slurm reads up to a NONE."""
    found = []
    for entry in ENTRY.findall(names):
        if entry.upper() in ("NONE", "NIL"):
            break
        found.append(entry)
    return found


def longer(names: str, variables: Mapping[str, str]) -> str:
    """The list with these variables, of which srun takes the values from its environment."""
    kept = [entry for entry in entries(names) if entry.partition("=")[0] not in variables]
    more = [] if any(entry.upper() == "ALL" for entry in kept) else list(variables)
    return ",".join([*kept, *more])


def export_lists(command: list[str], environment: Mapping[str, str]) -> list[str | None]:
    """What each component hands on; None: everything."""
    general = next((environment[v] for v in EXPORT_VARIABLES if v in environment), None)
    found = [part.find("export") for part in components(command[1:])]
    return [option.value if option else general for option in found]


def handed_on(command: list[str], environment: Mapping[str, str], name: str) -> str | None:
    """The value that a variable would have in the tasks, those of the first component that has it.

    A NAME=VALUE beside ALL counts here even if the environment has NAME, though not for srun.
    """
    for names in export_lists(command, environment):
        listed = ["ALL"] if names is None else entries(names)
        for entry in listed:
            key, equals, value = entry.partition("=")
            if equals and key == name:
                return value.strip("'\"")
        if name in environment and any(e == name or e.upper() == "ALL" for e in listed):
            return environment[name]
    return None


def named_value(command: list[str], environment: Mapping[str, str], name: str) -> str | None:
    """The value that the user gives to a variable in a list of what is handed on."""
    return handed_on(command, {k: environment[k] for k in EXPORT_VARIABLES if k in environment},
                     name)  # fmt: skip


def environment_with(
    environment: Mapping[str, str], variables: Mapping[str, str]
) -> dict[str, str]:
    """The environment, with the variables in it and in what srun hands on of it."""
    given = {v: longer(environment[v], variables) for v in EXPORT_VARIABLES if v in environment}
    return dict(environment) | given | dict(variables)


def export(
    command: list[str], environment: Mapping[str, str], variables: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """srun's command line and environment, with the variables in what it hands on."""
    parts = components(command[1:])
    for part in parts:
        if (option := part.find("export")) and option.value is not None:
            option.value = longer(option.value, variables)
    return [command[0], *joined(parts)], environment_with(environment, variables)


# ---- what srun starts ------------------------------------------------------------------------


def programs(command: list[str]) -> list[str]:
    """The words of an srun line in which its programs are; of --multi-prog those of the file."""
    found = []
    for part in components(command[1:]):
        if part.find("multi-prog") and part.program:
            found += multi_prog(Path(part.program[0]))
        else:
            found += part.program
    return found


def multi_prog(path: Path) -> list[str]:
    """The programs of such a file: its lines are TASKS PROGRAM ARGUMENTS..."""
    try:
        lines = path.read_text(errors="replace").replace("\\\n", " ").splitlines()
    except OSError:
        return []  # srun says it better
    found = []
    for line in lines:
        words = line.split(maxsplit=2)
        if len(words) > 1 and not words[0].startswith("#"):
            found.append(words[1])
    return found


# ---- what cannot be wrapped ------------------------------------------------------------------


def refusal(command: list[str]) -> str:
    """Why ranks of this command could not compress: a sentence, or ""."""
    name = os.path.basename(command[0])
    if name in QUEUES:
        return (
            f"{name} only queues a job, which may start when this run is over, and on other hosts: "
            "put `wirepress run` inside the job's script, as in: wirepress run -- srun ./program"
        )
    if name == "srun" and (shell := interactive_shell(command)):
        return (
            f"srun opens a shell ({shell}) on a node: give `wirepress run` in that shell, before "
            "the launcher, since launchers that are started there are not wrapped from here"
        )
    return ""


def notice(name: str) -> str:
    """What a script that queues a job is told, whose launchers are wrapped."""
    return (
        f"the job that {name} queues is no part of this run: its messages are compressed if its "
        "own script says `wirepress run`"
    )


def interactive_shell(command: list[str]) -> str:
    """The shell that an srun line opens on a node, which is also what salloc may do by itself."""
    for part in components(command[1:]):
        words = part.program
        is_shell = bool(words) and os.path.basename(words[0]) in SHELLS
        if is_shell and all(word.startswith("-") and word != "-c" for word in words[1:]):
            return words[0]
        if part.find("interactive"):
            return " ".join(words)
    return ""
