# SPDX-License-Identifier: Apache-2.0
"""`wirepress report` of traces: who waited for whom. How they are read: sim/test_trace.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.test_trace import File, call
from wirepress.commands import cli
from wirepress.report import sections
from wirepress.report.parts import Plot, Table, Words
from wirepress.sim import trace_reader

pytest.importorskip("plotly", reason="package plotly is not installed (wirepress[report])")
MEAN = "MPI_Allreduce"


def write(folder: Path) -> Path:
    """Two ranks, 100 ms: rank 1 comes 30 ms late to an Allreduce that then takes 10 ms, and sends
    1 MB to rank 0, which waits 40 ms for it."""
    folder.mkdir()
    own = {
        0: [call(MEAN, 20, 60, sent=4096, received=4096), call("MPI_Recv", 60, 100, peer=1,
                                                               received=1 << 20)],
        1: [call(MEAN, 50, 60, sent=4096, received=4096), call("MPI_Send", 90, 100, peer=0,
                                                               sent=1 << 20)],
    }  # fmt: skip
    for rank, records in own.items():
        file = File(rank, 2).comm(0, 1).calls(call("MPI_Barrier", 0, 0), *records)
        file.sample(bytes(4096), 1 << 20)
        (folder / f"job-{rank:05}.wpt").write_bytes(file.bytes())
    return folder


def test_waiting_for_others_is_told_from_exchange(tmp_path: Path) -> None:
    found = sections(["t"], [trace_reader.read(write(tmp_path / "t"))])
    plots = {p.title: p for s in found for p in s.parts if isinstance(p, Plot)}
    bars = {bar["name"]: bar["x"] for bar in plots["Where each rank's time went"].views[""]["data"]}
    near = pytest.approx
    assert bars["collectives, for the last to come"] == [near(0.03), near(0.0)]
    assert bars["collectives"] == [near(0.01), near(0.01)]
    assert bars["point to point"] == [near(0.04), near(0.01)]
    assert bars["computing"] == [near(0.02), near(0.08)]
    line = next(t for t in plots["When each rank did what"].views[""]["data"]
                if t["name"] == "collectives, for the last to come")  # fmt: skip
    assert line["x"][:2] == [near(0.02), near(0.05)] and line["y"][:2] == [0, 0]
    said = " ".join(t for s in found for p in s.parts if isinstance(p, Words) for t in p.sentences)
    assert "Rank 1 computes 80 ms, rank 0 20 ms: the others wait for rank 1" in said
    assert "15 ms a rank (15 %) went by in collectives until the last rank came" in said
    peers = plots["Sent from point to point"].views[""]["data"][0]
    assert peers["y"] == ["0", "1"] and peers["z"] == [[None, None], [float(1 << 20), None]]
    samples = next(
        p for s in found for p in s.parts if isinstance(p, Table) and p.title == "Samples"
    )
    assert len(samples.rows) == 2 and samples.rows[0][5] > 10


def test_command_takes_folders_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "app.trace")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "-q", "app.trace"]) == 0
    assert "When each rank did what" in (tmp_path / "app.html").read_text()
    files = [str(path) for path in sorted(folder.glob("*.wpt"))]
    assert cli.main(["report", "-q", *files, "-o", "files.html"]) == 0
    assert "2 on 2" in (tmp_path / "files.html").read_text()


def test_bad_traces_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "t")
    (folder / "job-00001.wpt").unlink()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "t"]) == 2
    assert "no trace of rank 1" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cli.main(["report", "empty"]) == 2
    assert "no *.wpt in this folder" in capsys.readouterr().err
