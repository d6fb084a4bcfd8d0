# SPDX-License-Identifier: Apache-2.0
"""The frozen vectors of the codecs (codecs/*/vectors) that a core can take: float32."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

CODECS = Path(__file__).resolve().parent.parent / "codecs"
ROUNDS = ["nearest", "truncate", "midpoint"]


class Setting(NamedTuple):
    m: int = 5
    round: int = 0
    flush: int = 0
    ways: int = 1


def by_setting(codec: str, ways: int = 1) -> dict[Setting, list[tuple[bytes, bytes]]]:
    """Raw and coded, of float32; bytes behind the last value are not the cores' business."""
    folder = CODECS / codec / "vectors"
    found: dict[Setting, list[tuple[bytes, bytes]]] = {}
    for line in (folder / "index.txt").read_text().splitlines():
        name, recipe, *rest = line.split()
        raw = folder / f"{name}.raw"
        if "ok" not in rest or {"bfloat16", "float16", "float64"} & set(rest) or not raw.exists():
            continue
        values: dict[str, int] = {}
        for text in recipe.partition(":")[2].split(","):
            key, _, value = text.partition("=")
            if key:
                values[key] = ROUNDS.index(value) if key == "round" else int(value)
        values["m"] = values.get("m", 5) or 23
        setting, content = Setting(**values), raw.read_bytes()
        code, tail = raw.with_suffix(".enc").read_bytes(), len(content) % 4
        if len(content) >= 4 and setting.ways == ways:
            pair = (content[: len(content) - tail], code[: len(code) - tail])
            found.setdefault(setting, []).append(pair)
    assert found
    return found


def decoded(codec: str, setting: Setting, code: bytes, raw_size: int) -> bytes:
    """By the independent decoder of the specification."""
    path = CODECS / codec / "reference.py"
    spec = importlib.util.spec_from_file_location(f"{codec}_reference", path)
    assert spec and spec.loader
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    parameters = list(setting if codec == "fre" else setting[:3])
    return reference.decode(code, parameters, raw_size, "float32")
