# SPDX-License-Identifier: Apache-2.0
"""What the tests share: inputs, and the command line as a process."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from python.tests.run_site import make_launcher
from wirepress.commands import cli

Command = Callable[..., subprocess.CompletedProcess[bytes]]


def make_words(n_bytes: int, seed: int = 1) -> bytes:
    """Text-like bytes: compress about threefold."""
    rng = random.Random(seed)
    vocabulary = [bytes(rng.choices(b"etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(500)]
    return b" ".join(rng.choices(vocabulary, k=n_bytes // 3))[:n_bytes]


@pytest.fixture(scope="session")
def words() -> Callable[..., bytes]:
    return make_words


@pytest.fixture(scope="session")
def text() -> bytes:
    return make_words(3_000_000)


@pytest.fixture(scope="session")
def field() -> np.ndarray:
    """A smooth float32 volume."""
    z, y, x = np.meshgrid(*(np.linspace(0, 4, n) for n in (30, 40, 50)), indexing="ij")
    return (np.sin(x * y) + np.cos(z)).astype(np.float32)


@pytest.fixture
def wirepress_in(tmp_path: Path) -> Command:
    """Runs `wirepress ARGUMENTS` in tmp_path."""

    def run(*arguments: object, **kwargs: object) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "wirepress", *map(str, arguments)]
        options = {"cwd": tmp_path, "capture_output": True, "timeout": 60} | kwargs
        return subprocess.run(command, **options)  # type: ignore[call-overload]

    return run


@pytest.fixture(scope="session")
def parser() -> argparse.ArgumentParser:
    return cli.make_parser()


@pytest.fixture
def main(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    parser: argparse.ArgumentParser,
) -> Callable[..., tuple[int, str]]:
    """Runs a command in tmp_path, within this process; returns its status and its stderr."""
    # The parser of all commands takes longer to make than most of them to run.
    monkeypatch.setattr(cli, "make_parser", lambda: parser)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments: object) -> tuple[int, str]:
        capfd.readouterr()
        try:
            status = cli.main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = int(error.code or 0)
        return status, capfd.readouterr().err

    return run


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Two launchers, both libraries, and nothing of the environment that matters."""
    for name in list(os.environ):
        if name.startswith(("WIREPRESS_", "LD_")):
            monkeypatch.delenv(name)
    (tmp_path / "lib").mkdir()
    for flavour in ("openmpi", "mpich"):
        (tmp_path / "lib" / f"libwirepress_mpi_{flavour}.so").touch()
    monkeypatch.setenv("WIREPRESS_LIB_DIR", str(tmp_path / "lib"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # modules that the user built
    (tmp_path / "bin").mkdir()
    make_launcher(tmp_path, "mpirun", "mpirun (Open MPI) 4.1.4")
    make_launcher(tmp_path, "mpiexec.mpich", "HYDRA build details: Version: 4.0.2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path
