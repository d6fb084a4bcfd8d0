# SPDX-License-Identifier: Apache-2.0
"""`wirepress explain`: what was tried on how much, what corrected the calibration, who is next."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from wirepress.commands import cli, explain

KIB = 1 << 10


@pytest.fixture
def wave(tmp_path: Path) -> Path:
    path = tmp_path / "wave.npy"
    np.save(path, np.sin(np.arange(1 << 21, dtype=np.float32) * 0.001))
    return path


def test_the_table(wave: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(wave), "--link", "1Gbps", "--groups", "1"]) == 0
    said = capsys.readouterr().out
    assert "prior ms  finish ms" in said
    assert "128 KiB" in said or "512 KiB" in said
    assert "1 more decision: --groups 0 shows all" in said or "more decision" not in said


def test_the_numbers(wave: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(wave), "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)
    for group in file["groups"]:
        assert sum(row["chosen"] for row in group["rows"]) == 1
        for row in group["rows"]:
            if row["why"]:
                continue
            assert row["tried"] in (0, 128 * KIB, 256 * KIB, 512 * KIB)
            assert (row["tried"] == 0) == (row["recipe"] == "store")
            assert 0.25 <= row["pace"] <= 16
            assert row["prior"] > 0
            if row["pace"] == 1 and not row["timed"]:
                assert row["prior"] == row["finish"]


def row(recipe: str, finish: float, chosen: bool = False, why: str = "") -> explain.api.Choice:
    group = (0, 1 << 20, False, 0.0, 8.0, 0.0, 0.0, 0.0)
    about = (1.0, 1e9, 1e9, finish, chosen, 128 * KIB, False, 1.0, finish)
    return explain.api.Choice(*group, recipe, why, *about)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (2.0, "next: lz4, 2.00x the time"),
        (1.05, "next: lz4, 1.05x the time; close: "),
        (0.995, "next: lz4, 0.99x the time; close: "),
        (0.5, ""),  # time is not the goal
    ],
)
def test_how_far_behind_the_next_is(other: float, said: str) -> None:
    rows = [row("planes", 1.0, True), row("lz4", other), row("zstd:1", 0.0, why="nothing repeats")]
    line = explain._confidence(explain.Group(0, 1 << 20, False, rows))
    assert line.startswith(said) and bool(line) == bool(said)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
@pytest.mark.parametrize("command", ["explain", "bench", "plan", "simulate", "calibrate"])
def test_times_are_finite_numbers(
    command: str, seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, f"--seconds={seconds}", "data"])
    assert ended.value.code == 2
    assert f"'{seconds}' is no number of seconds" in capsys.readouterr().err


def test_one_recipe_has_no_next() -> None:
    assert explain._confidence(explain.Group(0, 1, False, [row("store", 1.0, True)])) == ""
