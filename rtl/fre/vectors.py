# SPDX-License-Identifier: Apache-2.0
"""The frozen vectors of the codec (codecs/fre/vectors) that a core can take: float32, one way."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

FRE = Path(__file__).resolve().parent.parent.parent / "codecs" / "fre"
ROUNDS = ["nearest", "truncate", "midpoint"]


class Setting(NamedTuple):
    m: int = 5
    round: int = 0
    flush: int = 0


def by_setting() -> dict[Setting, list[tuple[bytes, bytes]]]:
    """Raw and coded, of float32, one way."""
    found: dict[Setting, list[tuple[bytes, bytes]]] = {}
    for line in (FRE / "vectors" / "index.txt").read_text().splitlines():
        name, recipe, *rest = line.split()
        raw = FRE / "vectors" / f"{name}.raw"
        if "ok" not in rest or "bfloat16" in rest or "ways" in recipe or not raw.exists():
            continue
        values: dict[str, int] = {}
        for text in recipe.partition(":")[2].split(","):
            key, _, value = text.partition("=")
            if key:
                values[key] = ROUNDS.index(value) if key == "round" else int(value)
        content = raw.read_bytes()
        code, tail = raw.with_suffix(".enc").read_bytes(), len(content) % 4
        if len(content) >= 4:  # bytes behind the last value are not the cores' business
            pair = (content[: len(content) - tail], code[: len(code) - tail])
            found.setdefault(Setting(**values), []).append(pair)
    assert len(found) > 5
    return found


def decoded(setting: Setting, code: bytes, raw_size: int) -> bytes:
    """By the independent decoder of the specification."""
    spec = importlib.util.spec_from_file_location("fre_reference", FRE / "reference.py")
    assert spec and spec.loader
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    parameters = [setting.m, setting.round, setting.flush, 1]
    return reference.decode(code, parameters, raw_size, "float32")
