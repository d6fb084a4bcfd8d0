# SPDX-License-Identifier: Apache-2.0
"""Pages of `wirepress report` in a real headless Chromium: plots, sorting, filters, print."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from python.tests.report_samples import NASTY, RESULTS, bench, mpi_job, simulation, write
from wirepress.commands import cli

pytest.importorskip("plotly", reason="package plotly is not installed (wirepress[report])")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="package playwright is not installed"
)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
if not CHROMIUM:
    pytest.skip("no chromium is installed", allow_module_level=True)

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 812}
WAIT = 60_000  # milliseconds; machines are busy
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=WAIT
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Makes the page of some files and opens it; in the end nothing was said on its console, no
    script of a file ran, and nothing was asked of a network."""
    said: list[str] = []
    contexts: list[Any] = []

    def call(*values: Any, viewport: dict[str, int] = DESKTOP, scheme: str = "light") -> Any:
        names = [
            str(value) if isinstance(value, Path) else write(tmp_path, f"f{i}.json", value)
            for i, value in enumerate(values)
        ]
        target = tmp_path / "page.html"
        assert cli.main(["report", "-q", *names, "-o", str(target)]) == 0
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", lambda message: said.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:"))
                or said.append(f"request: {r.url}"))  # fmt: skip
        page.goto(target.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield call
    for context in contexts:
        context.close()
    assert said == []


def drawn(page: Any) -> list[int]:
    """Marks of each plot: paths and texts beyond what an empty one has."""
    return page.evaluate(
        """[...document.querySelectorAll(".plot")].map((plot) => plot.querySelectorAll(
             ".plot-container .trace, .plot-container .hm image, .plot-container .point").length)"""
    )  # type: ignore[no-any-return]


def overflow(page: Any) -> int:
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")  # type: ignore[no-any-return]


def column(page: Any, table: Any, i: int) -> list[str]:
    return table.locator(f"tbody tr:not([hidden]) td:nth-child({i})").all_text_contents()  # type: ignore[no-any-return]


def test_a_page_with_hostile_text_works(open_page: Open) -> None:
    page = open_page(mpi_job(text=NASTY), viewport=PHONE, scheme="dark")
    assert all(drawn(page)) and len(drawn(page)) == 6
    assert overflow(page) <= 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 22, 26)"

    sites = page.locator(".table", has=page.get_by_role("heading", name="Sites:"))
    assert len(column(page, sites, 1)) == 8
    sites.locator(".search").fill("from>500kB")
    assert set(column(page, sites, 4)) == {"1.05 MB"} and len(column(page, sites, 4)) == 4
    assert sites.locator(".count").text_content() == "4 of 8 rows"
    sites.locator(".search").fill("")
    sites.get_by_label("to node").select_option("several")
    assert set(column(page, sites, 5)) == {"several"}
    long = sites.locator("tr:not([hidden]) td.long").first
    closed = long.bounding_box()["height"]
    assert closed < 60  # two lines
    long.click()
    assert long.bounding_box()["height"] > closed

    ranks = page.locator(".table", has=page.get_by_role("heading", name="Ranks", exact=True))
    head = ranks.get_by_role("button", name="waiting")
    head.click()
    assert column(page, ranks, 1)[-1] == "3"  # waits least
    head.click()
    assert column(page, ranks, 1)[0] == "3"

    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(244, 245, 247)"
    assert all(drawn(page))


def ticks(page: Any, title: str, side: str) -> list[str]:
    """What stands at an axis of the plot of this title, in order of the values."""
    plot = page.locator(".plot", has=page.get_by_role("heading", name=title))
    return plot.locator(f".{side}tick text").all_text_contents()  # type: ignore[no-any-return]


def beyond(page: Any, title: str) -> int:
    """Pixels of a table that cannot be seen without scrolling."""
    box = page.locator(".table", has=page.get_by_role("heading", name=title)).locator(".scroll")
    return box.evaluate("box => box.scrollWidth - box.clientWidth")  # type: ignore[no-any-return]


def test_numbers_of_a_bench_can_be_read(open_page: Open) -> None:
    """Each tick of a logarithmic axis has its whole number, and at 1200 pixels all columns show."""
    page = open_page(bench(), viewport={"width": 1200, "height": 900})
    speeds = "Speed-up by the link's rate"
    assert ticks(page, speeds, "x") == "0.1 0.2 0.5 1 2 5 10 20 50 100 200".split()
    across = [float(text) for text in ticks(page, speeds, "y")]
    assert len(across) > 3 and across == sorted(set(across))
    assert beyond(page, "All of it") <= 0
    page.set_viewport_size(PHONE)
    page.wait_for_function("() => document.querySelector('.canvas')._fullLayout.width < 400")
    assert ticks(page, speeds, "x") == "0.1 1 10 100".split()
    # zoomed in, there are ticks between 1, 2 and 5
    page.evaluate(
        "Plotly.relayout(document.querySelector('.canvas'), {'xaxis.range': [0.35, 0.6]})"
    )
    page.wait_for_function(
        "() => document.querySelector('.canvas')._fullLayout.xaxis.tickvals[0] > 2"
    )
    zoomed = [float(text) for text in ticks(page, speeds, "x")]
    assert all(10**0.35 <= tick <= 10**0.6 for tick in zoomed)


def test_rows_of_a_phone_are_as_high_as_what_they_show(
    open_page: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "plan --size 395MB --engine fpga --compute 190ms --json"
    assert cli.main(words.split()) == 0
    page = open_page(json.loads(capsys.readouterr().out), viewport=PHONE)
    options = page.locator(".table", has=page.get_by_role("heading", name="All options"))
    heights = options.evaluate("t => [...t.querySelectorAll('tr')].map((r) => r.offsetHeight)")
    assert len(heights) == 4 and max(heights) < 36  # one line
    # the first column stays while the others scroll, and a row that is pressed shows all
    options.locator(".scroll").evaluate("box => { box.scrollLeft = 1e4 }")
    first = options.locator("td").first.bounding_box()
    assert first["x"] < 40
    options.locator("td.middle, td.long").first.click()
    assert options.locator("tr.open").count() == 1


@pytest.mark.slow
def test_views_and_filters_of_a_section_go_together(open_page: Open) -> None:
    page = open_page(bench(), bench(1.5))
    table = page.locator(".table", has=page.get_by_role("heading", name="All of it"))
    plot = page.locator(".plot", has=page.get_by_role("heading", name="compressing"))
    before = plot.locator(".main-svg").first.inner_html()
    plot.locator(".view").select_option("log.txt")
    assert set(column(page, table, 2)) == {"log.txt"}
    assert plot.locator(".main-svg").first.inner_html() != before or all(drawn(page))
    table.get_by_label("file").select_option("field.npy")
    assert plot.locator(".view").input_value() == "field.npy"
    names = plot.locator(".legend button").all_text_contents()
    assert "lz4 (f0)" in names and "lz4 (f1)" in names
    marks = plot.locator(".point").count()
    plot.locator(".legend button").first.click()
    page.wait_for_function(
        "([plot, n]) => plot.querySelectorAll('.point').length < n",
        arg=[plot.element_handle(), marks],
    )


@pytest.mark.slow
def test_rows_can_be_drawn_by_any_columns(open_page: Open) -> None:
    page = open_page(RESULTS / "hdf5.json")
    plot = page.locator(".explorer")
    assert plot.locator(".point").count() > 10
    plot.locator('[data-axis="up"]').select_option("read_mb_s")
    assert "read_mb_s" in plot.locator(".ytitle").text_content()


_DRAWN = (
    "auto", "codecs", "convergence", "demo-openmpi", "mpi_speed", "reproduce", "rtm", "store",
    "torch_steps",
)  # fmt: skip
KINDS: dict[str, Any] = {
    "job": mpi_job(),
    "bench": bench(),
    "simulation": simulation(),
    **{name: RESULTS / f"{name}.json" for name in _DRAWN},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn(open_page: Open, kind: str) -> None:
    page = open_page(KINDS[kind], viewport=PHONE)
    assert all(drawn(page)), page.locator(".plot h3").all_text_contents()
    assert overflow(page) <= 0
    page.set_viewport_size(DESKTOP)
    page.wait_for_timeout(400)
    assert overflow(page) <= 0 and all(drawn(page))
    assert page.locator("table").count() > 0
    # the buttons of a plot stand above what is drawn
    assert page.evaluate(
        """[...document.querySelectorAll(".canvas")].every((c) =>
             c.querySelector(".modebar").getBoundingClientRect().bottom <= c._fullLayout._size.t
               + c.querySelector(".main-svg").getBoundingClientRect().top)"""
    )


@pytest.mark.slow
def test_print_is_light_and_whole(open_page: Open, tmp_path: Path) -> None:
    page = open_page(mpi_job(), scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert (
        not page.locator("#theme").is_visible() and not page.locator(".search").first.is_visible()
    )
    widths = page.evaluate("[...document.querySelectorAll('.main-svg')].map((s) => s.clientWidth)")
    assert max(widths) <= 700
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(media="screen")
    pdf = page.pdf(path=str(tmp_path / "page.pdf"), format="A4")
    assert pdf[:5] == b"%PDF-" and len(pdf) > 20_000
