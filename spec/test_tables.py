# SPDX-License-Identifier: Apache-2.0
"""The tables of parameters in the codecs' documents are those of the library and of the readers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wirepress
from spec.tests.frames import decode

CODECS = Path(__file__).parent.parent / "codecs"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|", re.M)
RANGE = re.compile(r"(-?[0-9][0-9.e+-]*) to (-?[0-9][0-9.e+-]*)")


def table(codec: str) -> list[tuple[str, str, str]]:
    """Name, range and default of the rows under "| parameter |"."""
    page = (CODECS / codec / "spec.md").read_text()
    found = re.search(r"^\| parameter \|.*?\n\n", page, re.M | re.S)
    return ROW.findall(found[0]) if found else []


@pytest.mark.parametrize("codec", wirepress.codecs(), ids=lambda codec: codec.name)
def test_parameters(codec: wirepress.Codec) -> None:
    rows = table(codec.name)
    assert [name for name, _, _ in rows] == [param.name for param in codec.params]
    limits = getattr(decode.reference(codec.name), "PARAMS", ())
    assert len(limits) == len(rows)
    for (_, said, default), param, (least, most) in zip(rows, codec.params, limits, strict=True):
        assert isinstance(least, float) == param.real
        if number := re.fullmatch(r"-?[0-9.e+-]+", default):
            assert float(number[0]) == param.default
        if ends := RANGE.fullmatch(said):
            # 0 means "not given", below what may be given; a frame of shuffle holds none.
            low = 0 if "not given" in default else float(ends[1])
            library = (least, most) if param.real else (param.min, param.max)
            assert (low, float(ends[2])) == library
            assert low <= least and most == float(ends[2])


@pytest.mark.parametrize("codec", wirepress.codecs(), ids=lambda codec: codec.name)
def test_what_the_page_says_of_sizes_and_loss(codec: wirepress.Codec) -> None:
    page = " ".join((CODECS / codec.name / "spec.md").read_text().split())
    module = decode.reference(codec.name)
    keeps = getattr(module, "KEEPS_SIZE", False)
    assert f"Id 0x{codec.id:02X}." in page or f"Id 0x{codec.id:02x}." in page
    assert ("Keeps sizes." in page) == keeps
    assert ("Does not need the raw size." in page) == (not getattr(module, "NEEDS_SIZE", True))
    assert ("Needs the raw size" in page) == (getattr(module, "NEEDS_SIZE", True) and not keeps)
    assert codec.exact_encode or "Every encoder writes the same bytes" not in page
    assert (re.search(r"Id 0x\w+\. Lossless\.", page) is not None) == codec.lossless
