# SPDX-License-Identifier: Apache-2.0
"""Every option with right and wrong values, through every door: Python, environment, command line.

pipeline/options_test.cpp does the same at the C door.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirepress
from wirepress.launch import settings

VALUES = {
    "text": (["any text"], []),
    "size": (["64KiB", "64 k"], ["-1", "1.5", "many"]),
    "integer": (["1", "2"], ["-1", "1.5", "many"]),
    "rate": (["1.2GB/s", "25Gbps"], ["10", "-1Gbps", "fast"]),
    "boolean": (["on", "no"], ["perhaps", "2"]),
    "recipe": (["lz4", "shuffle:4+zstd:1"], ["lz5", "zstd:99", "auto:x"]),
    "error bound": (["none", "rel:1e-3", "bits:6"], ["1e-3", "rel:2", "bits:0"]),
}
OF_ENGINE = (["auto", "cpu"], ["cpus", "cpu:sse9"])


def cases() -> Iterator[Any]:
    for option in wirepress.options():
        good, bad = OF_ENGINE if option.key == "engine" else VALUES[option.type]
        over = [str(int(option.max) + 1)] if 0 < option.max < 2**53 else []
        under = [str(int(option.min) - 1)] if option.min > 0 else []
        bad = [*bad, *over, *under] if option.type in ("size", "integer") else bad
        for values, right in (good, True), (bad, False):
            for value in values:
                yield pytest.param(option, value, right, id=f"{option.key}={value}")


CASES = list(cases())
matrix = pytest.mark.parametrize(("option", "value", "right"), CASES)


def one_sentence(text: str, named: str, value: str) -> None:
    """One line that names the option and what is wrong: of a recipe the parameter."""
    assert len(text.strip().splitlines()) == 1, text
    assert named in text and value.rpartition(":")[2] in text


@matrix
def test_in_python(option: wirepress.Option, value: str, right: bool) -> None:
    if right:
        compressor = wirepress.Compressor(**{option.key: value})
        assert compressor.option(option.key) == (value, "set")
        return
    with pytest.raises(wirepress.ParameterError) as refusal:
        wirepress.Compressor(**{option.key: value})
    one_sentence(str(refusal.value), f"{option.key}: ", value)


def test_booleans_may_be_numpys() -> None:
    for value, text in ((np.True_, "on"), (np.False_, "off")):
        assert wirepress.Compressor(checksum=value).option("checksum") == (text, "set")


@matrix
def test_in_the_environment(
    option: wirepress.Option, value: str, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(option.variable, value)
    if right:
        assert wirepress.Compressor().option(option.key) == (value, "environment")
        return
    with pytest.raises(wirepress.ParameterError) as refusal:
        wirepress.Compressor()
    one_sentence(str(refusal.value), f"{option.variable}: ", value)


@matrix
def test_in_the_check_of_a_job(option: wirepress.Option, value: str, right: bool) -> None:
    """What `wirepress run` does with its flags, and with what the launcher sets in the ranks."""
    words = ["-x", f"{option.variable}={value}", "./app"]
    if right:
        settings.check({}, words, "openmpi")
        return
    with pytest.raises(settings.RunError) as refusal:
        settings.check({}, words, "openmpi")
    one_sentence(str(refusal.value), f"{option.variable}: ", value)


def said_of(variables: dict[str, str], *words: str) -> list[str]:
    """The lines on stderr of a process with these variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(settings.PREFIX)}
    command = [sys.executable, *words]
    return subprocess.run(
        command, env=kept | variables, capture_output=True, text=True, check=True
    ).stderr.splitlines()


USE = "import wirepress; [wirepress.Compressor().compress(b'x') for _ in range(3)]"


@pytest.mark.parametrize("words", [("-c", USE), ("-m", "wirepress", "options")], ids=["api", "cli"])
def test_a_variable_that_nobody_reads_is_named_once(words: tuple[str, ...]) -> None:
    said = said_of({"WIREPRESS_CODEK": "zstd", "WIREPRESS_THREDS": "1"}, *words)
    lines = [line for line in said if "CODEK" in line]
    assert len(lines) == 1
    assert "WIREPRESS_CODEK (did you mean WIREPRESS_MPI_CODEC?)" in lines[0]
    assert "WIREPRESS_THREDS (did you mean WIREPRESS_THREADS?)" in lines[0]


def test_variables_that_somebody_reads_are_known() -> None:
    """All that sources read by name, and those of the options."""
    reads = re.compile(r"""(?:environ|getenv|variable)\W+(?:get\W+)?"(WIREPRESS_[A-Z0-9_]+)""")
    root = Path(__file__).parents[2]
    sources = [path for room in ("python", "integrations", "base", "pipeline", "store", "engines")
               for path in (root / room).rglob("*")
               if path.suffix in (".py", ".cpp", ".hpp") and "test" not in path.name]  # fmt: skip
    names = {name for path in sources for name in reads.findall(path.read_text())}
    assert {"WIREPRESS_LIB_DIR", "WIREPRESS_HDF5_DIR", "WIREPRESS_RENDEZVOUS"} <= names
    names |= {*settings.OWN, *(option.variable for option in wirepress.options())}
    code = "from wirepress import _core; print(_core.take_warning())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | dict.fromkeys(names, "1"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "\n"


def test_on_the_command_line(main: Any, tmp_path: Any) -> None:
    """Flags of one command: those of the library itself."""
    data = tmp_path / "data"
    data.write_bytes(b"0123456789" * 100)
    seen = set()
    for case in CASES:
        option, value, right = case.values
        if option.key.startswith(("mpi_", "torch_")):
            continue
        seen.add(option.key)
        line = ["compress", str(data), "-f", "-o", str(tmp_path / "out"), f"{option.flag}={value}"]
        status, error = main(*line)
        assert (status == 0) == right, (shlex.join(line), error)
        if not right:
            one_sentence(error, option.key, value)
    own = {o.key for o in wirepress.options() if not o.key.startswith(("mpi_", "torch_"))}
    assert seen == own


def test_every_option_is_shown(wirepress_in: Any) -> None:
    rows = json.loads(wirepress_in("options", "--json", check=True).stdout)
    assert [row["key"] for row in rows] == [option.key for option in wirepress.options()]
    text = wirepress_in("options", check=True).stdout.decode()
    for option in wirepress.options():
        assert re.search(rf"^{option.key} .* {option.variable}$", text, re.MULTILINE)
        assert option.sentence in text
    assert {key.partition("_")[0] for key in (row["key"] for row in rows)} >= {"mpi", "torch"}
