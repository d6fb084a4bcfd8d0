# SPDX-License-Identifier: Apache-2.0
"""What `wirepress run` tells its ranks: its flags and the WIREPRESS_ variables.

All of it is checked before a rank starts, by the library where its extension is here: ranks that
refuse a setting run uncompressed to the end. Standard library only, as run.py, which uses it.
"""

from __future__ import annotations

import os
import re

if __package__:
    from .launchers import SECRET, RunError, take_setting
else:
    from launchers import SECRET, RunError, take_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

PREFIX = "WIREPRESS_"
OPTION_PREFIX = "mpi_"
ONLY_WITHOUT = ("mpi_report", "mpi_trust")  # what they are for, this command does
ALSO = ("engine",)  # options of the library that a job is often started with
GRACE = "WIREPRESS_MPI_GRACE"
OWN = (
    "WIREPRESS_LIB_DIR",
    "WIREPRESS_HDF5_DIR",
    "WIREPRESS_LAUNCH",
    "WIREPRESS_PORTS",
    GRACE,
    SECRET,
)  # no options of the library
# Values of wpr_dtype (wirepress.h) that types of MPI have.
DTYPES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 15)
# What wpr_error_kind and a codec's parameter call the bounds on errors.
BOUNDS = (None, "fraction_bits", "absolute")


def extension() -> Any:
    """The library, or None in a source tree that has not built it."""
    try:
        from wirepress import _core
    except ImportError:
        return None
    return _core


def option_rows() -> list[tuple[str, str, str]]:
    """Key, default and sentence of the options that ranks take, from the library's own table."""
    rows = [("mpi_codec", "auto", "recipe for messages"), ("mpi_threshold", "auto", "least size")]
    if library := extension():
        rows = [(row[0], row[2], row[4]) for row in library.options()]
    own = [row for row in rows if row[0].startswith(OPTION_PREFIX) and row[0] not in ONLY_WITHOUT]
    return own + [row for row in rows if row[0] in ALSO]


def variable(key: str) -> str:
    return PREFIX + key.upper()


def flag(key: str) -> str:
    return "--" + key.removeprefix(OPTION_PREFIX).replace("_", "-")


def grace_seconds() -> float:
    text = os.environ.get(GRACE, "10")
    try:
        grace = float(text)
    except ValueError:
        grace = -1.0
    if not 0 < grace <= 3600:
        raise RunError(f"{GRACE}: {text!r} is not a number of seconds from 0 to 3600")
    return grace


def most_like(word: str, names: Mapping[str, str], likeness: float) -> str:
    """What the name that is most like the word stands for, or "" where none is so much like it."""
    import difflib  # only who made a mistake waits for it

    by_lower = {name.lower(): meant for name, meant in names.items()}
    near = difflib.get_close_matches(word.lower(), by_lower, 1, likeness)
    return by_lower[near[0]] if near else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" with the known word that is most like it, or "" where none is."""
    meant = most_like(word, {name: name for name in known}, 0.6)
    return f"; did you mean {meant}?" if meant else ""


# ---- the check -------------------------------------------------------------------------------


def check(flags: dict[str, str], words: list[str], flavour: str) -> None:
    """Raises RunError for a setting that no rank could use.

    `flags` are options by key, from this command's line; `words` are the launcher's, which may set
    variables of the ranks, too.
    """
    library = extension()
    if library is None:  # the ranks have the library: they say what they refuse
        return
    keys = {variable(row[0]): row[0] for row in library.options()}
    by_launcher = set_by_launcher(words, flavour) if flavour else {}
    check_names([*os.environ, *by_launcher], [*keys, *OWN])
    values = [(key, flag(key), value) for key, value in flags.items()]
    values += [(keys[name], name, by_launcher[name]) for name in by_launcher if name in keys]
    check_values(library, values)


def set_by_launcher(words: list[str], flavour: str) -> dict[str, str]:
    """WIREPRESS_ variables that the launcher's own flags set in the ranks."""
    names = {name for word in words for name in re.findall(f"^({PREFIX}[A-Z_]+)(?:=|$)", word)}
    found = {name: take_setting(words, flavour, name)[1] for name in names}
    return {name: value for name, value in found.items() if value is not None}


def check_names(given: Iterable[str], known: list[str]) -> None:
    """A variable with a slip of the pen must not be a setting that nobody sees. Others may have
    variables of that prefix: a rank names those that are like none of ours."""
    names = {name.removeprefix(PREFIX).removeprefix(OPTION_PREFIX.upper()): name for name in known}
    names |= {name.removeprefix(PREFIX): name for name in known}
    for name in sorted({name for name in given if name.startswith(PREFIX)} - set(known)):
        meant = most_like(name.removeprefix(PREFIX), names, 0.75)
        if meant or name.startswith(variable(OPTION_PREFIX)):
            also = f"; did you mean {meant}?" if meant else ""
            raise RunError(f"{name}: wirepress has no such setting{also}")


def check_values(library: Any, values: list[tuple[str, str, str]]) -> None:
    """`values`: key, what the user called the option, and value; the later ones win."""
    try:
        context = library.Context()  # which takes the variables
    except ValueError as error:
        found = re.search(r"in the environment, WIREPRESS_(\w+): (.*)", str(error), re.DOTALL)
        if not found:  # a default that this build cannot use
            raise RunError(str(error)) from None
        key = found[1].lower()
        raise RunError(explained(found[2], key, variable(key))) from None
    for key, called, value in values:
        try:
            context.set(key, value)
        except ValueError as error:
            raise RunError(explained(str(error), key, called)) from None
    called = {row[0]: variable(row[0]) for row in library.options()}
    check_together(library, context, called | {key: name for key, name, _ in values})


def explained(sentence: str, key: str, called: str) -> str:
    """The library's sentence under the user's name of the option, with a suggestion."""
    sentence = f"{called}: {sentence.removeprefix(f'{key}: ')}"
    unknown = re.search(r'unknown \w+ "(.*?)"; known: (.*)', sentence)
    return sentence + (suggestion(unknown[1], re.split(r", |\|", unknown[2])) if unknown else "")


def check_together(library: Any, context: Any, called: dict[str, str]) -> None:
    """What is right by itself and cannot be together; ranks refuse the same (candidates.cpp)."""
    codec, error = context.get("mpi_codec"), context.get("mpi_error")
    check_engine(context, codec, called)
    bounds = BOUNDS[context.error_bound("mpi_error")[0]]
    keepers = ["auto", *codecs_that_bound(library, bounds)] if bounds else []
    if bounds and codec not in keepers:
        raise RunError(
            f"{called['mpi_error']}: {error} is kept by {', '.join(keepers)}, which take "
            f"what they need from it, not by {codec} ({called['mpi_codec']})"
        )
    if not bounds and codec != "auto" and not any(keeps(context, codec)):
        raise RunError(
            f"{called['mpi_codec']}: {codec} changes values, and MPI messages must not change: "
            "give the error that results may have by --error, or a codec that loses nothing"
        )
    if is_on(context, "mpi_deterministic") and not is_on(context, "mpi_collectives"):
        raise RunError(
            f"{called['mpi_deterministic']}: sums have one order only in wirepress's collectives, "
            f"and {called['mpi_collectives']} is off"
        )


def check_engine(context: Any, codec: str, called: dict[str, str]) -> None:
    engine, _, variant = context.get("engine").partition(":")
    if engine == "auto" or engine.endswith("compressdev") or (engine == "cpu" and not variant):
        return  # the processor codes what a device has no kernel for
    if engine == "cpu" and codec == "auto":
        return  # what has no such kernel runs by another, which the report counts
    if codec == "auto":
        raise RunError(
            f"{called['engine']}: auto chooses among kernels of the processor; name a codec that "
            f"{engine} has ({called['mpi_codec']})"
        )
    try:
        context.set("recipe", codec)
    except ValueError as error:
        raise RunError(f"{called['mpi_codec']}: {str(error).removeprefix('recipe: ')}") from None


def codecs_that_bound(library: Any, bounds: str) -> Iterable[str]:
    for _, name, *_, params, _ in library.codecs(False):
        if any(param[-1] == bounds for param in params):
            yield name


def keeps(context: Any, codec: str) -> Iterable[bool]:
    """For each type of MPI that the codec takes, whether it loses nothing."""
    for dtype in DTYPES:
        try:
            yield context.lossless(codec, dtype)
        except ValueError:
            continue


def is_on(context: Any, key: str) -> bool:
    return bool(context.number(key))
