# SPDX-License-Identifier: Apache-2.0
"""`wirepress report`: what files become, and what is said of those that are broken.

How pages look and behave in a browser: test_report_browser.py.
"""

from __future__ import annotations

import copy
import html.parser
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from python.tests.report_samples import NASTY, RESULTS, bench, mpi_job, simulation, write
from wirepress.commands import cli, files
from wirepress.report import expect, kinds, page, sections
from wirepress.report.parts import Plot, Section, Table, Unexpected, Words

pytest.importorskip("plotly", reason="package plotly is not installed (wirepress[report])")

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `wirepress report ARGUMENTS` in tmp_path; exit status and what it said on stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_drop_stdout", lambda: None)  # it is about a process that ends

    def call(*arguments: str) -> tuple[int, str]:
        code = cli.main(["report", *arguments])
        return code, capsys.readouterr().err

    return call


class Elements(html.parser.HTMLParser):
    """Names and attributes of a page's elements, and the data of its figures."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.data: list[Any] = []
        self._in_data = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._in_data = tag == "script" and ("type", "application/json") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data.append(json.loads(data))
            self._in_data = False


def parts_of(found: list[Section], kind: type) -> list[Any]:
    return [part for section in found for part in section.parts if isinstance(part, kind)]


def sentences(found: list[Section]) -> str:
    return "\n".join(text for words in parts_of(found, Words) for text in words.sentences)


# ---- a job ----------------------------------------------------------------------------------


def test_job_says_where_time_went() -> None:
    found = sections(["job.json"], [mpi_job()])
    said = sentences(found)
    # (3 x 4 + 3) / 4 seconds of waiting; 2 calls x 0.5 s in codecs
    assert "Of 10 s a mean rank waited 3.75 s in MPI (38 %), spent 1 s in codecs (10 %)" in said
    # 200 MB less a rank at 100 MB/s
    assert "Codecs cost 1 s a rank and kept about 2 s of sending off the wire" in said
    assert "rank 2 4 s, rank 3 3 s" in said and "Rank 3 is waited for" in said
    plot = next(p for p in parts_of(found, Plot) if p.title == "Where each rank's time went")
    bars = {bar["name"]: bar["x"] for bar in plot.views[""]["data"]}
    assert bars["on the wire (estimate)"] == [1.0] * 4
    assert bars["waiting for others"] == [3.0, 3.0, 3.0, 2.0]
    assert bars["computing, and the rest"] == [5.0, 5.0, 5.0, 6.0]


def test_job_has_ratios_by_size_call_and_peer() -> None:
    found = sections(["job.json"], [mpi_job()])
    plots = {plot.title: plot for plot in parts_of(found, Plot)}
    calls = plots["How much each call shrank"].views[""]
    assert calls["data"][0]["x"] == [3.0] and calls["layout"]["yaxis"]["ticktext"] == ["MPI_Send"]
    sizes = plots["By size of the messages"].views["ratio"]["data"][0]
    assert sizes["customdata"] == ["from 65.5 kB", "from 1.05 MB"] and sizes["x"] == [2.0, 4.0]
    peers = plots["By peer"].views["ratio"]["data"][0]
    assert peers["x"] == ["0", "1", "several"] and peers["y"] == ["0", "1"]
    assert peers["z"] == [[None, 4.0, 2.0], [4.0, None, 2.0]]


def test_job_says_what_to_change() -> None:
    job = mpi_job()
    for rank in job["ranks"]:
        rank["calls"]["MPI_Send"] |= {"bypasses": {"nonblocking": 6}, "compress_seconds": 9.0}
    said = sentences(sections(["job.json"], [job]))
    assert "24 of 80 messages that leave a host went raw, “nonblocking”" in said
    assert "--nonblocking on" in said
    assert "Codecs took longer (9.75 s a rank) than the link saved (2 s)" in said


def test_job_that_failed_says_so() -> None:
    job = mpi_job() | {"exit_code": 3, "ranks": mpi_job()["ranks"][:3]}
    job["ranks"][1] |= {"state": "passive", "reason": "its connection broke"}
    job["ranks"][0]["events"]["corrupt"] = 2
    said = sentences(sections(["job.json"], [job]))
    for text in ("exit code 3", "1 of 4 ranks did not report", "Rank 1 is passive: its connection"):
        assert text in said
    assert "2 frames could not be read" in said
    off = mpi_job() | {"state": "off", "reason": "rank 2 has another version", "ranks": []}
    assert "rank 2 has another version" in sentences(sections(["job.json"], [off]))


def test_jobs_stand_side_by_side() -> None:
    found = sections(["a/job.json", "b/job.json"], [mpi_job(10.0), mpi_job(5.0)])
    assert found[0].title == "Jobs side by side"
    table = parts_of(found, Table)[0]
    assert [row[:3] for row in table.rows] == [["a/job", 10.0, 1.0], ["b/job", 5.0, 2.0]]
    assert "b/job is 2.00 times as fast as a/job (5 s against 10 s)" in sentences(found)


# ---- measurements of codecs -----------------------------------------------------------------


def test_bench_says_what_pays_by_link() -> None:
    said = sentences(sections(["bench.json"], [bench()]))
    # zstd:1 2.5x at 1 GB/s, lz4 1.5x at 4 GB/s: at 10 Gb/s (1.25 GB/s) zstd is slower than raw
    assert "field.npy: 1 Gb/s: zstd:1, 2.50 times raw; 10 Gb/s: lz4, 1.50 times raw; " in said
    assert "100 Gb/s: raw. From 32 Gb/s on nothing here pays." in said


def test_bench_compares_with_the_first() -> None:
    found = sections(["before.json", "after.json"], [bench(), bench(1.5)])
    assert "after compresses at 1.50 times the speed of before: the median of 6 rows" in sentences(
        found
    )
    table = next(t for t in parts_of(found, Table) if t.title == "Against before")
    assert [row[5] for row in table.rows] == pytest.approx([0.5] * 6)


# ---- plans, simulations, the papers ----------------------------------------------------------


def test_simulation_says_what_gains_and_draws_ranks() -> None:
    found = sections(["sim.json"], [simulation()])
    said = sentences(found)
    assert "1 Gb/s, raw: 4 s, of which a mean rank waits 3 s (75 %)" in said
    assert "1 Gb/s: lz4 on fpga, 8c4d, 2.00 times as fast as raw (2 s, 300 MB on the wire" in said
    assert "25 % of its messages go raw" in said and "10 Gb/s: send raw" in said
    timeline = next(p for p in parts_of(found, Plot) if p.title == "When each rank did what")
    assert list(timeline.views) == ["raw, 1 Gb/s", "lz4 on fpga, 8c4d, 1 Gb/s", "raw, 10 Gb/s",
                                    "lz4 on fpga, 8c4d, 10 Gb/s"]  # fmt: skip
    computing, exchange = timeline.views["raw, 1 Gb/s"]["data"]
    assert computing["x"] == [0.0, 1.0, None] * 2 and exchange["x"] == [1.0, 4.0, None] * 2
    assert exchange["y"] == [0, 0, None, 1, 1, None]
    broken = simulation()
    broken["rows"][1]["intervals"] = [[["compute", "0", 1]]]
    with pytest.raises(Exception, match=r"rows\[1\].intervals: expected \[what, begin, end\]"):
        sections(["sim.json"], [broken])


def _json_of(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert cli.main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


def test_plan_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    plan = _json_of(
        capsys, "plan", "--size", "395MB", "--engine", "fpga", "--compute", "190ms", "--json",
        "--sweep", "10Gbps", "100Gbps",
    )  # fmt: skip
    found = sections(["plan.json"], [plan])
    assert plan["sentences"][0] in sentences(found)
    assert len(parts_of(found, Table)[0].rows) == len(plan["options"])
    both = sections(["a.json", "b.json"], [plan, plan])
    assert both[0].title == "Plans side by side"


def test_frames_and_choices_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "field.raw"
    raw.write_bytes(bytes(300_000) + bytes(range(256)) * 2000)
    made = _json_of(capsys, "compress", "-q", "--json", str(raw))
    seen = _json_of(capsys, "inspect", "--json", f"{raw}.wpr")
    why = _json_of(capsys, "explain", "--json", str(raw))
    for value, title in ((made, "Frames"), (seen, "Frames"), (why, "What auto chooses")):
        found = sections(["x.json"], [value])
        assert found[0].title == title and "field.raw" in sentences(found)
    assert "Blocks" in [table.title for table in parts_of(sections(["x"], [seen]), Table)]


def test_store_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    import wirepress

    path = str(tmp_path / "frames")
    with wirepress.FrameStore(path, (64, 64), "float32", recipe="zstd:1", memory=0) as store:
        for step in range(4):
            store.put(step, np.full((64, 64), step, np.float32))
        store.sync()
    listed = sections(["ls.json"], [_json_of(capsys, "store", "ls", "--json", path)])
    assert "4 frames of float32 (64, 64)" in sentences(listed)
    checked = _json_of(capsys, "store", "check", "--json", path)
    assert "4 good frames, 0 damaged" in sentences(sections(["check.json"], [checked]))
    checked["records"][1]["status"] = "corrupt"
    said = sentences(sections(["check.json"], [checked | {"damaged": 1}]))
    assert "1 damaged" in said and "Lost: step " in said


def test_many_lists_alike_are_one_table() -> None:
    modules = {f"test_{name}": [{"pass": i, "fail": 0}] for i, name in enumerate("abcde")}
    modules["test_e"].append({"pass": 7})
    found = sections(["mpi.json"], [{"command": "x", "modules": modules}])
    assert [section.title for section in found] == ["modules", "The measurement"]
    table = parts_of(found, Table)[0]
    assert [column.name for column in table.columns] == ["name", "pass", "fail"]
    assert table.rows[4:] == [["test_e", 4, 0], ["test_e", 7, None]]


def test_the_last_of_many_sentences_wait_to_be_asked() -> None:
    said = [f"sentence {i}" for i in range(25)]
    text = page.write("t", "", [Section("s", [Words("w", said)])])
    head, _, rest = text.partition("<details><summary>15 more</summary>")
    assert "sentence 9<" in head and "sentence 10<" not in head and "sentence 24<" in rest


# ---- every kind -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_of_bench_become_sections(path: Path) -> None:
    found = sections([path.name], [json.loads(path.read_text())])
    assert parts_of(found, Table)


@pytest.mark.slow
def test_figures_are_what_plotly_takes() -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    results = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    for value in (mpi_job(), bench(), simulation(), *results):
        for plot in parts_of(sections(["x.json"], [value]), Plot):
            for figure in plot.views.values():
                graph_objects.Figure(figure)  # raises where a name or value is none of plotly's


def test_kinds_are_told_apart() -> None:
    whats = [kind.WHAT for kind in kinds.known()]
    assert len(set(whats)) == len(whats) and all(whats)
    assert [kind.ORDER for kind in kinds.known()] == sorted(kind.ORDER for kind in kinds.known())


# ---- files that are broken ------------------------------------------------------------------


def _without(value: dict[str, Any], *path: Any) -> dict[str, Any]:
    value = copy.deepcopy(value)
    inner: Any = value
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return value


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ('{"rows": [1,', "expected JSON, and it stops being that at line 1, column 13"),
        ("[" * 100_000, "nested too deeply"),
        ("\ufffe", "expected JSON"),
        ("3", "not a file that wirepress writes; expected one of"),
        ("{}", "a job's report (wirepress run --report FILE)"),
        (json.dumps(_without(mpi_job(), "ranks", 2, "calls")), 'ranks[2]: expected a field "cal'),
        (json.dumps(mpi_job() | {"nodes": ["0"]}), 'nodes[0]: expected a whole number, found te'),
        (json.dumps(mpi_job() | {"ranks": None}), "ranks: expected a list, found null"),
        (json.dumps(mpi_job() | {"seconds": float("nan")}), "seconds: expected a number, found n"),
        (json.dumps(mpi_job() | {"size": 10**30}), "size: expected a whole number, found 1000000"),
        (json.dumps(bench(0.0)), "rows[0].compress_gbps: expected a number above 0, found 0"),
    ],
)  # fmt: skip
def test_broken_files_are_named(run: Run, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "bad.json").write_text(content, encoding="utf-16" if "\ufffe" in content else None)
    code, err = run("bad.json")
    assert code == 2 and err.startswith("wirepress: bad.json") and said in err
    assert not (tmp_path / "bad.html").exists()


def test_one_broken_file_of_several_is_named(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "good.json", mpi_job())
    write(tmp_path, "bad.json", _without(mpi_job(), "ranks", 0, "rank"))
    code, err = run("good.json", "bad.json")
    assert code == 2 and "bad.json: looks like a job's report" in err and "ranks[0]" in err
    assert run("good.json", "none.json")[0] == 1


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*place, key))


@pytest.mark.slow
@pytest.mark.parametrize("value", [mpi_job(), bench(), simulation()], ids=["job", "bench", "sim"])
def test_spoiled_files_are_taken_or_refused(value: dict[str, Any]) -> None:
    rng, refused = random.Random(1), 0
    places = [place for place in _places(value) if place]
    for _ in range(500):
        spoiled, place = copy.deepcopy(value), rng.choice(places)
        inner: Any = spoiled
        for key in place[:-1]:
            inner = inner[key]
        if rng.random() < 0.3:
            del inner[place[-1]]
        else:
            inner[place[-1]] = rng.choice(
                [None, True, -1, 0, 3.5, 1e300, float("nan"), "x", "", [], {}, [[]], {"a": 1}]
            )
        try:
            page.write("t", "", sections(["f.json"], [spoiled]))
        except files.UsageError as error:
            refused += str(error).startswith(("f.json: ", "f: "))  # it is named
    assert 100 < refused < 500


def test_expect_says_the_place() -> None:
    with pytest.raises(Unexpected, match=r"a\.b\[1\]\.c: expected text, found a list"):
        expect.check({"a": {"b": [{"c": ""}, {"c": []}]}}, {"a": {str: [{"c": str}]}})
    expect.check({"a": None}, {"a": expect.Maybe(int), "b": expect.Maybe(int)})
    with pytest.raises(Unexpected, match="expected a whole number, found true or false"):
        expect.check({"a": True}, {"a": int})


# ---- the page -------------------------------------------------------------------------------


def test_text_of_files_is_escaped(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "plain.json", mpi_job())
    write(tmp_path, "nasty.json", mpi_job(text=NASTY))
    assert run("plain.json")[0] == run("nasty.json")[0] == 0
    plain, nasty = (
        Elements((tmp_path / f"{name}.html").read_text()) for name in ("plain", "nasty")
    )
    assert nasty.names == plain.names  # the same elements
    assert nasty.attributes == plain.attributes and "onerror" not in nasty.attributes
    # plotly reads some markup in names
    assert "<" not in json.dumps(nasty.data).replace("<br>", "").replace("<extra>", "")
    assert "&lt;img" in json.dumps(nasty.data)


def test_pages_need_nothing_else(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "job.json", mpi_job())
    assert run("job.json") == (0, run("job.json", "-f")[1])
    page = (tmp_path / "job.html").read_text()
    elements = Elements(page)
    assert not {"src", "href"} & (elements.attributes - {"href"}) and "link" not in elements.names
    assert "default-src 'none'" in page and "unsafe-eval" not in page
    assert len(page) < 3_000_000


def test_only_reports_are_replaced(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "job.json", mpi_job())
    other = tmp_path / "job.html"
    other.write_text("<p>mine</p>")
    code, err = run("job.json")
    assert code == 2 and "job.html exists and is no report; -f" in err
    assert other.read_text() == "<p>mine</p>"
    assert run("job.json", "-f")[0] == 0 and run("job.json")[0] == 0


def test_stdin_and_stdout(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read_end = tmp_path / "job.json"
    read_end.write_text(json.dumps(mpi_job()))
    with read_end.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert cli.main(["report", "-", "-o", "-", "--title", "A & B"]) == 0
    out = capsys.readouterr().out
    assert "<h1>A &amp; B</h1>" in out and out.endswith("</html>\n")
    assert run("job.json", "-o", "-", "--open") == (
        2, "wirepress: --open needs a file, not stdout\n",
    )  # fmt: skip


def test_open_starts_the_browser(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)) or len(opened) < 2)
    write(tmp_path, "job.json", mpi_job())
    assert run("job.json", "--open", "-q") == (0, "")
    assert opened == [(tmp_path / "job.html").as_uri()]
    code, err = run("job.json", "--open", "-q")
    assert code == 2 and "no browser could be started; the page is job.html" in err


def test_without_plotly(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "job.json", mpi_job())
    page.plotly.cache_clear()
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert run("job.json") == (
        1, "wirepress: wirepress report needs plotly: pip install plotly (or wirepress[report])\n",
    )  # fmt: skip
    assert not (tmp_path / "job.html").exists()


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["report", "--help"])
    assert "side by side" in capsys.readouterr().out
