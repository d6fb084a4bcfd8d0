# SPDX-License-Identifier: Apache-2.0
"""`wirepress reproduce`: each row has a verdict, each deviation a reason; the page is current."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import pytest

from wirepress.errors import ParameterError
from wirepress.sim import papers, reproduce
from wirepress.sim.papers import Data, Row

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "bench" / "results" / "reproduce.json"
IDS = [reproduce.full_id(paper, experiment) for paper, experiment in reproduce.catalogue()]


@pytest.mark.parametrize("identity", IDS)
def test_every_experiment(identity: str) -> None:
    ((_, experiment),) = reproduce.choose([identity])
    result = experiment.run(Data())
    assert result.rows
    assert experiment.cls in reproduce.CLASSES
    whats = [row.what for row in result.rows]
    assert len(set(whats)) == len(whats)
    for row in result.rows:
        assert row.paper is not None or row.ours is not None, row.what
        if row.status in (papers.DEVIATES, papers.IMPOSSIBLE, papers.NOT_RUN):
            assert row.reason, f"{row.what}: no reason"
        if row.ours is not None:
            assert row.ours == row.ours and abs(row.ours) < float("inf")


def test_verdicts() -> None:
    assert Row("", 100, 100.4).status == papers.MATCHES
    assert Row("", 100, 101).status == papers.DEVIATES
    assert Row("", 100, 101, 0.02).status == papers.MATCHES
    assert Row("", 100, None).status == papers.IMPOSSIBLE
    assert Row("", 100, None, needs_data=True).status == papers.NOT_RUN
    assert Row("", None, 1).status == papers.OURS
    assert Row("", 200, 100).deviation == -0.5


def test_headline_of_fpga_mpi() -> None:
    """13399.01 s is bytes by 1 MB/s; the times with codecs are that by the ratio; Zstd's own
    engines give 1.28, not 1.50."""
    from wirepress.sim.papers import fpga_mpi

    assert fpga_mpi.replayed_bytes() == 13_399_010_768
    ((_, experiment),) = reproduce.choose(["fpga-mpi/fig-5.3"])
    rows = {row.what: row for row in experiment.run(Data()).rows}
    for name in ("plain", "LZ4", "Snappy", "Zstd"):
        row = rows[f"{name}, s of communication"]
        assert row.status == papers.MATCHES and abs(row.deviation or 0) < 1e-6
    zstd = rows["Zstd, s with its engines' rates at 25 Gb/s"]
    assert zstd.status == papers.DEVIATES
    assert zstd.ours == pytest.approx(9399.95, abs=0.01)
    gains = [fpga_mpi.step_gain(key, 25e9 / 8) for key in ("lz4", "snappy", "zstd")]
    assert gains == pytest.approx([1.3357, 1.3246, 1.2764], abs=1e-4)


def test_files_of_the_user(tmp_path: Path) -> None:
    content = b"<element attribute='value'>text</element>\n" * 3000
    (tmp_path / "xml").write_bytes(content)
    ((_, experiment),) = reproduce.choose(["pedal/table-v"])
    rows = {row.what: row for row in experiment.run(Data(tmp_path)).rows}
    assert rows["xml, zlib"].ours == pytest.approx(len(content) / len(zlib.compress(content, 6)))
    assert rows["xml, LZ4"].ours is not None and rows["xml, LZ4"].ours > 20
    assert rows["mr, zlib"].status == papers.NOT_RUN
    assert "mr" in rows["mr, zlib"].reason


def test_the_page_is_current(tmp_path: Path) -> None:
    """docs/results/reproduced.md is what the command writes; so are the names of its figures."""
    known = reproduce._known(str(MEASURED))
    assert known["pedal/table-v: xml, zlib"][0] == pytest.approx(7.769, abs=1e-3)
    found = [
        (paper, e, reproduce.run(e, reproduce.full_id(paper, e), Data(), known))
        for paper, e in reproduce.catalogue()
    ]
    page = ROOT / "docs" / "results" / "reproduced.md"
    assert page.read_text() == reproduce.page(found, "reproduced"), (
        "stale: wirepress reproduce --all --measured bench/results/reproduce.json "
        "--report docs/results/reproduced.md"
    )
    drawn = {f"{p.name}-{e.id}.svg" for p, e in reproduce.catalogue() if e.draw}
    assert {path.name for path in page.with_suffix("").iterdir()} == drawn


def test_command(wirepress_in, tmp_path: Path) -> None:
    listed = wirepress_in("reproduce", "--list").stdout
    assert all(identity in listed for identity in IDS)
    done = wirepress_in("reproduce", "fpga-mpi/table-4.1", "gcow/table-4.1")
    assert done.returncode == 0
    assert "98,811,898" in done.stdout and "16 rows: 13 matches, 1 deviates, 2 ours" in done.stdout
    report = json.loads(wirepress_in("reproduce", "fre", "--json").stdout)
    assert {e["id"].split("/")[0] for e in report["experiments"]} == {"fre"}
    assert sum(report["counts"].values()) == sum(len(e["rows"]) for e in report["experiments"])


def test_figures(wirepress_in, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    done = wirepress_in("reproduce", "fpga-mpi/links", "--plot", "links.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "links.png").read_bytes().startswith(b"\x89PNG")
    two = wirepress_in("reproduce", "gcow", "--plot", "x.png")
    assert two.returncode == 2 and "--plot draws one figure; 2 of" in two.stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    done = wirepress_in("reproduce", "gcow/fig-4.4", "--plot", "x.png")
    assert done.returncode == 1
    assert "--plot needs matplotlib: pip install matplotlib" in done.stderr
    assert "Traceback" not in done.stderr


def test_papers_and_patterns_are_chosen() -> None:
    """Each experiment once, however often it is wanted."""
    of = {
        wanted: [reproduce.full_id(*pair) for pair in reproduce.choose(wanted.split())]
        for wanted in ("pedal", "pedal/*", "pedal/table-*", "pedal pedal/*", "*/table-1")
    }
    assert of["pedal"] == of["pedal/*"] == of["pedal pedal/*"]
    assert of["pedal/table-*"] == [one for one in of["pedal"] if one.startswith("pedal/table-")]
    assert of["*/table-1"] == ["fre/table-1"]
    with pytest.raises(ParameterError, match="is no experiment"):
        reproduce.choose(["pedal/tables-*"])


def test_nonsense_is_refused(wirepress_in, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"is no experiment.*papers: fpga-mpi, gcow"):
        reproduce.choose(["gcow/fig-9.9"])
    (tmp_path / "bad.json").write_text("{}")
    for arguments, said in (
        ((), "name an experiment or a paper, or --all"),
        (("gcow", "--data", "nowhere"), "--data nowhere is no folder"),
        (("gcow", "--measured", "bad.json"), "bad.json: not a report of `wirepress reproduce"),
        (("gcow", "--measured", "none.json"), "none.json: No such file"),
    ):
        done = wirepress_in("reproduce", *arguments)
        assert done.returncode in (1, 2)
        assert said in done.stderr and "Traceback" not in done.stderr
