# SPDX-License-Identifier: Apache-2.0
"""The page: one HTML file that needs no other, and no network.

What files say is text: it goes through escape() into HTML, through _for_plotly() into figures, and
its content security policy lets nothing run but the two scripts whose hashes it names.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import json
import math
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any

from wirepress.commands.needs import need
from wirepress.report.parts import (
    Cards,
    Column,
    Explorer,
    Part,
    Plot,
    Section,
    Table,
    Words,
    is_number,
    unique,
)

GENERATOR = "wirepress report"
MOST_ROWS = 5000  # of a table
_MANY_SENTENCES, _SHOWN_SENTENCES = 16, 10  # of so many, how many are shown at once
_MOST_CHOICES = 40  # of a column's filter
_WIDE = 9  # columns from which a table is printed smaller
_SHORT, _LONG = 24, 60  # characters of a cell that stays in one line, or wants room
_TEMPLATES = ("hovertemplate", "texttemplate")  # ours, with %{...}


@functools.cache
def plotly() -> str:
    """The library. Raises ImportError with what to install."""
    need("plotly", "wirepress report")
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _own(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def escape(text: object) -> str:
    return html.escape(str(text), quote=True)


# ---- figures --------------------------------------------------------------------------------


def _for_plotly(value: Any, key: str = "") -> Any:
    """JSON without NaN, and with the signs escaped that plotly would read as markup."""
    if isinstance(value, dict):
        return {name: _for_plotly(item, name) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_plotly(item, key) for item in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    if isinstance(value, str) and key not in _TEMPLATES:
        return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return value


def _script_data(value: Any) -> str:
    """JSON that cannot end its script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _choice(label: str, names: Sequence[str], attributes: str = "") -> str:
    options = "".join(f"<option>{escape(name)}</option>" for name in names)
    return f"<label>{escape(label)} <select {attributes}>{options}</select></label>"


def _plot(part: Plot) -> Iterator[str]:
    views = {name: _for_plotly(figure) for name, figure in part.views.items()}
    yield f'<figure class="plot" data-facet="{escape(part.facet)}">'
    yield f"<figcaption><h3>{escape(part.title)}</h3>"
    if len(views) > 1:
        yield _choice(part.facet, list(views), 'class="view"')
    yield '</figcaption><div class="legend"></div><div class="canvas"></div>'
    if part.note:
        yield f'<p class="note">{escape(part.note)}</p>'
    # by place, not by name: names are for reading
    yield f'<script type="application/json">{_script_data(list(views.values()))}</script></figure>'


def _explorer(part: Explorer) -> Iterator[str]:
    names = [column.name for column in part.columns]
    numbers = [column.name for column in part.columns if column.unit is not None]
    texts = [column.name for column in part.columns if column.unit is None]
    yield '<figure class="plot explorer">'
    yield f"<figcaption><h3>{escape(part.title)}</h3>"
    for label, known, first in zip(
        ("across", "up", "colour"), (names, numbers, ["none", *texts]), part.first, strict=True
    ):
        ordered = unique([first, *known]) if first in known else known
        yield _choice(label, ordered, f'class="axis" data-axis="{label}"')
    yield '</figcaption><div class="legend"></div><div class="canvas"></div>'
    rows = [
        [_for_plotly(cell) if is_number(cell) or cell is None else _for_plotly(str(cell))
         for cell in row]
        for row in part.rows
    ]  # fmt: skip
    columns = [[column.name, column.unit] for column in part.columns]
    yield f'<script type="application/json">{_script_data({"columns": columns, "rows": rows})}'
    yield "</script></figure>"


# ---- tables ---------------------------------------------------------------------------------


def _filters(part: Table) -> Iterator[str]:
    """A choice for each column of text that has few values."""
    for i, column in enumerate(part.columns):
        if column.unit is not None:
            continue
        values = unique(column.show(row[i]) for row in part.rows)
        if 1 < len(values) <= min(_MOST_CHOICES, max(2, len(part.rows) - 1)):
            label = f'data-column="{i}" data-name="{escape(column.name)}"'
            yield _choice(column.name, ["all", *sorted(values)], f'class="pick" {label}')


def _cell(column: Column, value: Any) -> str:
    text = escape(column.show(value))
    if column.unit is None:
        kind = "long" if len(text) > _LONG else "short" if len(text) <= _SHORT else "middle"
        return f'<td class="{kind}"><div>{text}</div></td>'
    sort = f' data-v="{value!r}"' if is_number(value) else ""
    return f'<td class="n"{sort}>{text}</td>'


def _table(part: Table) -> Iterator[str]:
    rows = part.rows[:MOST_ROWS]
    yield f'<div class="table"><h3>{escape(part.title)}</h3>'
    if len(rows) > 3:
        yield '<div class="tools"><input type="search" class="search" aria-label="filter" '
        yield 'placeholder="filter: words, or a column such as ratio&gt;2">'
        yield "".join(_filters(part))
        yield f'<output class="count">{len(rows):,} rows</output></div>'
    wide = ' class="wide"' if len(part.columns) > _WIDE else ""
    yield f'<div class="scroll" tabindex="0"><table{wide}><thead><tr>'
    for column in part.columns:
        about = f' title="{escape(column.about)}"' if column.about else ""
        kind = ' class="n"' if column.unit is not None else ""
        yield f'<th scope="col"{kind}{about} aria-sort="none"><button type="button">'
        yield f"{escape(column.name)}</button></th>"
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = (_cell(column, cell) for column, cell in zip(part.columns, row, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    notes = [part.note] if part.note else []
    if len(rows) < len(part.rows):
        notes.append(f"The first {len(rows):,} of {len(part.rows):,} rows.")
    if notes:
        yield f'<p class="note">{escape(" ".join(notes))}</p>'
    yield "</div>"


# ---- the rest -------------------------------------------------------------------------------


def _words(part: Words) -> Iterator[str]:
    yield f'<div class="words {escape(part.about)}">'
    if part.title:
        yield f"<h3>{escape(part.title)}</h3>"
    n_shown = len(part.sentences) if len(part.sentences) < _MANY_SENTENCES else _SHOWN_SENTENCES
    yield _list(part.sentences[:n_shown])
    if rest := part.sentences[n_shown:]:
        yield f"<details><summary>{len(rest):,} more</summary>{_list(rest)}</details>"
    yield "</div>"


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in sentences) + "</ul>"


def _cards(part: Cards) -> Iterator[str]:
    yield '<dl class="cards">'
    for what, value in part.pairs:
        yield f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>"
    yield "</dl>"


_WRITERS: dict[type, Callable[[Any], Iterator[str]]] = {
    Plot: _plot, Explorer: _explorer, Table: _table, Words: _words, Cards: _cards,
}  # fmt: skip


def _part(part: Part) -> str:
    return "".join(_WRITERS[type(part)](part))


def _section(index: int, section: Section) -> Iterator[str]:
    yield f'<section id="s{index}"><h2>{escape(section.title)}</h2>'
    if section.about:
        yield f'<p class="note">{escape(section.about)}</p>'
    yield from map(_part, section.parts)
    yield "</section>"


@functools.cache
def _library() -> str:
    """Compressed: a page of 2 MB instead of 5; page.js expands it."""
    packed = gzip.compress(plotly().encode(), 6, mtime=0)
    return base64.b64encode(packed).decode()


def write(title: str, about: str, sections: Sequence[Section]) -> str:
    """The page as text. Raises ImportError without plotly."""
    script = _own("page.js")
    policy = (
        f"default-src 'none'; script-src {_hash(script)} {_hash(plotly())}; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    links = "".join(
        f'<a href="#s{i}">{escape(section.title)}</a>' for i, section in enumerate(sections)
    )
    parts = (piece for i, section in enumerate(sections) for piece in _section(i, section))
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta name="generator" content="{GENERATOR}">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title><style>{_own('page.css')}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>",
            '<button type="button" id="theme" aria-label="light or dark"></button>',
            f'<p class="note">{escape(about)}</p><nav>{links if len(sections) > 1 else ""}</nav>',
            "<noscript><p>The plots, and sorting, need scripts; everything else is here.</p>",
            f"</noscript></header><main>{''.join(parts)}</main>",
            f'<script type="text/plain" id="plotly">{_library()}</script>',
            f"<script>{script}</script></body></html>\n",
        ]
    )
