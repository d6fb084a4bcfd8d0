# SPDX-License-Identifier: Apache-2.0
"""`wirepress explain --json`: what auto chose for which part of a file, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wirepress import units
from wirepress.report import figures, parts
from wirepress.report.expect import ANY, NUMBER, Maybe
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "what auto chooses (wirepress explain ... --json)"
ORDER = 60

EXPECTED = [
    {
        "file": str,
        "recipe": str,
        "link": ANY,
        "groups": [
            {
                "offset": int,
                "size": int,
                "reused": ANY,
                "rows": [
                    {
                        "recipe": str,
                        "ratio": Maybe(NUMBER),
                        "chosen": Maybe(bool),
                        "why": Maybe(str),
                    }
                ],
            }
        ],
    }
]
_MOST = 400  # groups of a figure


def matches(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "groups" in first and "recipe" in first


def _chosen(group: dict[str, Any]) -> str:
    return next((row["recipe"] for row in group["rows"] if row.get("chosen")), "not known")


def _shares(file: dict[str, Any]) -> dict[str, int]:
    shares: dict[str, int] = {}
    for group in file["groups"]:
        shares[_chosen(group)] = shares.get(_chosen(group), 0) + group["size"]
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _words(name: str, file: dict[str, Any]) -> str:
    shares = _shares(file)
    total = sum(shares.values()) or 1
    said = [f"{parts.share(size / total)} {recipe}" for recipe, size in shares.items()]
    return f"{name}: {parts.listed(said) or 'nothing'} of {units.size(total)}."


def _map(file: dict[str, Any]) -> parts.Figure:
    """What was chosen, along the file."""
    recipes = list(_shares(file))
    colours = {r: figures.COLOURS[i % len(figures.COLOURS)] for i, r in enumerate(recipes)}
    spans = [
        (_chosen(g), g["offset"] / 1e6, (g["offset"] + g["size"]) / 1e6)
        for g in file["groups"][:_MOST]
    ]
    lines: dict[str, list[tuple[float | None, float | None]]] = {recipe: [] for recipe in recipes}
    for what, begin, end in spans:
        place = float(recipes.index(what))
        lines[what] += [(begin, place), (end, place), (None, None)]
    figure = figures.lines(
        lines, figures.axis("MB from the file's begin"), figures.axis(""), marks=False
    )
    for trace in figure["data"]:
        trace |= {"line": {"color": colours[trace["name"]], "width": 14}, "connectgaps": False}
    figure["layout"] |= {
        "height": 70 + 30 * len(recipes),
        "yaxis": {
            "tickvals": list(range(len(recipes))),
            "ticktext": [parts.short(recipe) for recipe in recipes],
            "range": [len(recipes) - 0.5, -0.5],
            "zeroline": False,
        },
    }
    return figure


def build(inputs: Sequence[Input]) -> list[Section]:
    files = {}
    for given in inputs:
        for file in given.value:
            name = parts.file_name(file["file"])
            name = name if len(inputs) == 1 else f"{given.name}: {name}"
            same = sum(1 for known in files if known == name or known.startswith(f"{name} ("))
            files[f"{name} ({same + 1})" if same else name] = file
    columns = [
        Column("file"), Column("offset", "bytes"), Column("size", "bytes"), Column("recipe"),
        Column("ratio", "x"), Column("compresses", "rate"), Column("expands", "rate"),
        Column("chosen"), Column("why not"),
    ]  # fmt: skip
    rows = [
        [name, group["offset"], group["size"], row["recipe"], row.get("ratio"),
         row.get("compress_rate"), row.get("expand_rate"), "yes" if row.get("chosen") else "",
         row.get("why") or ""]
        for name, file in files.items() for group in file["groups"] if not group["reused"]
        for row in group["rows"]
    ]  # fmt: skip
    content: list[parts.Part] = [
        Cards([("files", str(len(files))), ("link", str(next(iter(files.values()))["link"]))]),
        Words("What auto chose", [_words(name, file) for name, file in files.items()], "change"),
        Plot("Along the file", {name: _map(file) for name, file in files.items()}, "file"),
        Table("Every decision", columns, rows),
    ]
    return [Section("What auto chooses", content)]
