# SPDX-License-Identifier: Apache-2.0
"""The command line, for the tests of this room."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from wirepress.commands import cli

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def wirepress_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs `wirepress ARGUMENTS` in tmp_path, in this process: a new one would take longer than
    most of what these commands do. Processes, pipes and signals are tested with python/tests."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(cli, "_drop_stdout", lambda: None)  # it is about a process that ends
        capsys.readouterr()
        words = [str(argument) for argument in arguments]
        try:
            code = cli.main(words)
        except SystemExit as stop:  # what argparse refuses
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, out, err)

    return run
